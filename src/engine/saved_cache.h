// A file of Engine::save() as it tells of itself, for who has another model, or another file.
#pragma once

#include "base/result.h"

#include <cstdint>
#include <string>

namespace redline {

struct SavedCache {
    enum class Kind : uint8_t {
        none,           // something else
        other_version,  // of the file's form: nothing more is known of it
        this_version
    };
    Kind kind = Kind::none;
    uint64_t fingerprint = 0;  // Model::fingerprint() of the model that it was saved with
    std::string text;          // of the caller of save()
};
// Reads no caches, and compares nothing with the checksum.
Result<SavedCache> describe_saved_cache(const std::string& path);

}  // namespace redline
