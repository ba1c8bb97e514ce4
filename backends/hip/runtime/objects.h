// The compiled kernels, embedded by the build, compressed: for each target (gfx1100, gfx11-generic, sm_90)
// one code object per format, for each cache type and for all of them, and one of the rest; and the rule by
// which a device gets its target.
#pragma once

#include "base/result.h"

#include <cstddef>
#include <span>
#include <string_view>
#include <vector>

namespace redline::hip {

struct CodeObject {
    std::string_view target;
    std::string_view name;              // "q4_k", "cache_f16", "vector"
    std::span<const std::byte> packed;  // a frame of zstd that says its size and has a checksum
};
// Written by the build.
std::span<const CodeObject> all_objects();
std::vector<std::string_view> built_targets();
// Null when there is none.
const CodeObject* find_object(std::string_view target, std::string_view name);

// As the compiler wrote it. An error says which kernels are damaged, and how.
Result<std::vector<std::byte>> unpack(const CodeObject& object);

// `arch` as the runtime names it: "gfx90a:sramecc+:xnack-". The target itself, or the generic one of its
// family, which the runtime takes from ROCm 6.3 on. An error says what is lacking, "kernels for gfx906:
// ...", and what would work instead.
Result<std::string_view> choose_target(std::string_view arch, int runtime_version,
                                       std::span<const std::string_view> targets);

}  // namespace redline::hip
