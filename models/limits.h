// Limits of what gates and ups of experts are, by layer.
#pragma once

#include "arch/arch.h"

namespace redline::archs {

// A list of a number for each layer, 0 where there is no limit; empty without the key. Before the layers that
// are not run are left out: it has those, too.
inline Status read_limits(const ModelFile& file, const Config& c, std::string_view rest,
                          std::vector<float>& limits) {
    const std::string key = file.key(rest);
    if (!file.meta().has(key)) return {};
    const std::vector<float>* stored = file.meta().floats(key);
    if (!stored || stored->size() != c.layers)
        return error("{}: {} is not a list of {} numbers", file.gguf.path(), key, c.layers);
    for (const float limit : *stored) {
        if (!(limit >= 0.0f && limit < 1e30f))
            return error("{}: {} holds {}, 0 or a limit expected", file.gguf.path(), key, limit);
        limits.push_back(limit);
    }
    return {};
}

}  // namespace redline::archs
