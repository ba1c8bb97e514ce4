#include "objects.h"

#include <fmt/ranges.h>
#include <zstd.h>
#include <algorithm>

namespace redline::hip {

namespace {

constexpr int kGenericSince = 60300000;  // code objects of version 6

struct Family {
    std::string_view target;
    std::string_view generic;
};
// Those that the compiler documents as covered by the generic target.
constexpr Family kFamilies[] = {
    {"gfx942", "gfx9-4-generic"},   {"gfx950", "gfx9-4-generic"},   {"gfx1030", "gfx10-3-generic"},
    {"gfx1031", "gfx10-3-generic"}, {"gfx1032", "gfx10-3-generic"}, {"gfx1033", "gfx10-3-generic"},
    {"gfx1034", "gfx10-3-generic"}, {"gfx1035", "gfx10-3-generic"}, {"gfx1036", "gfx10-3-generic"},
    {"gfx1100", "gfx11-generic"},   {"gfx1101", "gfx11-generic"},   {"gfx1102", "gfx11-generic"},
    {"gfx1103", "gfx11-generic"},   {"gfx1150", "gfx11-generic"},   {"gfx1151", "gfx11-generic"},
    {"gfx1152", "gfx11-generic"},   {"gfx1153", "gfx11-generic"},   {"gfx1200", "gfx12-generic"},
    {"gfx1201", "gfx12-generic"},
};

}  // namespace

std::vector<std::string_view> built_targets() {
    std::vector<std::string_view> targets;
    for (const CodeObject& object : all_objects())
        if (std::find(targets.begin(), targets.end(), object.target) == targets.end())
            targets.push_back(object.target);
    return targets;
}

const CodeObject* find_object(std::string_view target, std::string_view name) {
    for (const CodeObject& object : all_objects())
        if (object.target == target && object.name == name) return &object;
    return nullptr;
}

Result<std::vector<std::byte>> unpack(const CodeObject& object) {
    constexpr uint64_t kMost = uint64_t(1) << 28;  // far above the largest
    const auto damaged = [&](std::string_view how) {
        return error("the kernels {} for {} are damaged in this program: {}", object.name, object.target,
                     how);
    };
    const uint64_t bytes = ZSTD_getFrameContentSize(object.packed.data(), object.packed.size());
    if (bytes == ZSTD_CONTENTSIZE_ERROR) return damaged("they are not compressed by zstd");
    if (bytes == ZSTD_CONTENTSIZE_UNKNOWN || bytes == 0 || bytes > kMost)
        return damaged("they do not say how large they are");
    std::vector<std::byte> out(bytes);
    const size_t got = ZSTD_decompress(out.data(), out.size(), object.packed.data(), object.packed.size());
    if (ZSTD_isError(got)) return damaged(ZSTD_getErrorName(got));
    if (got != bytes) return damaged(fmt::format("{} bytes of {}", got, bytes));
    return out;
}

Result<std::string_view> choose_target(std::string_view arch, int runtime_version,
                                       std::span<const std::string_view> targets) {
    const std::string_view name = arch.substr(0, arch.find(':'));
    if (const auto exact = std::find(targets.begin(), targets.end(), name); exact != targets.end())
        return *exact;
    for (const Family& family : kFamilies) {
        if (family.target != name) continue;
        const auto generic = std::find(targets.begin(), targets.end(), family.generic);
        if (generic == targets.end()) break;
        if (runtime_version < kGenericSince)
            return error("kernels for {} of its own: those of {} want ROCm 6.3 or newer; try --device vulkan",
                         name, family.generic);
        return *generic;
    }
    return error("kernels for {}: this build has {}; try --device vulkan", name, fmt::join(targets, " "));
}

}  // namespace redline::hip
