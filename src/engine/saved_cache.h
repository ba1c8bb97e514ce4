// Describes a file of Engine::save() without its model, for callers that may have another model or another
// file.
#pragma once

#include "base/result.h"
#include "text/tokens/vocabulary.h"

#include <cstdint>
#include <string>
#include <vector>

namespace redline {

struct SavedCache {
    enum class Kind : uint8_t {
        none,           // not a saved cache
        other_version,  // another version of the format, so that nothing more is known
        this_version
    };
    Kind kind = Kind::none;
    uint64_t fingerprint = 0;  // Model::fingerprint() of the model that it was saved with
    std::string text;          // the text given to save()
    std::vector<Token> tokens;
};
// Reads the header, the tokens and the text only: no caches, and no checksum is verified.
Result<SavedCache> describe_saved_cache(const std::string& path);

}  // namespace redline
