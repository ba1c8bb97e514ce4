// A file of findings about this machine's devices, stored by device_key(). Its writers lock it, and readers
// see the file before or after a write; anything that is not such a file counts as empty.
#pragma once

#include "json/json.h"
#include "plan/backend.h"

namespace redline {

// The key that findings are valid for: a device, its driver, the kernels of this build and which of them are
// used.
std::string device_key(const Backend& backend);

class DeviceFile {
public:
    // `folder` is created by the first write. A file of another `version` is ignored, and replaced.
    DeviceFile(const std::string& folder, const std::string& name, uint64_t version);

    const std::string& path() const { return path_; }
    // Returns an object, empty where nothing is known. `problem`: why the whole file is ignored.
    Json read(const std::string& key, std::string* problem = nullptr) const;
    // Changes the entry of a key, after reading what other processes have written until then.
    Status update(const std::string& key, const std::function<void(Json&)>& change) const;

private:
    Json all(std::string& problem) const;

    std::string folder_, path_;
    uint64_t version_;
};

}  // namespace redline
