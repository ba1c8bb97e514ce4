// A file of what this machine's devices were found to do, by what the findings hold for. Its writers take
// turns, and readers see the file before or after a write; what is not such a file counts as empty.
#pragma once

#include "json/json.h"
#include "plan/backend.h"

namespace redline {

// Findings hold for this: a device, its driver, the kernels of this build and which of them are used.
std::string device_key(const Backend& backend);

class DeviceFile {
public:
    // `folder` is made when something is written. A file of another `version` is ignored, and replaced.
    DeviceFile(const std::string& folder, const std::string& name, uint64_t version);

    const std::string& path() const { return path_; }
    // An object; empty where nothing is known. `problem`: why all of the file is ignored.
    Json read(const std::string& key, std::string* problem = nullptr) const;
    // Changes what is known, with what other processes have written by then.
    Status update(const std::string& key, const std::function<void(Json&)>& change) const;

private:
    Json all(std::string& problem) const;

    std::string folder_, path_;
    uint64_t version_;
};

}  // namespace redline
