#include "cache_store.h"

namespace redline::hip {

static_assert(uint8_t(args::CacheType::f32) == uint8_t(CacheType::f32) &&
              uint8_t(args::CacheType::q5_1) == uint8_t(CacheType::q5_1) &&
              uint8_t(args::CacheType::iq4_nl) == uint8_t(CacheType::iq4_nl));

Status Caching::clear(Device& device, const Buffer& counters, const Buffer& staging) {
    std::memset(staging.data(), 0, counters.size());
    RL_TRY(device.checked(
        device.call().copy_in(counters.data(), staging.data(), counters.size(), device.stream()),
        "clearing the counters"));
    return device.synchronize("clearing the counters");
}

args::Cache cache_args(const HipCaches& caches, Cache cache) {
    const CacheInfo& info = caches.info(cache);
    return {reinterpret_cast<uint8_t*>(caches[cache].keys.data()),
            reinterpret_cast<uint8_t*>(caches[cache].values.data()),
            info.capacity,
            info.kv_heads,
            info.head_dim,
            uint32_t(info.sequence_rows),
            args::CacheType(info.types.keys),
            args::CacheType(info.types.values),
            nullptr,
            nullptr};
}

Status Caching::copy(Device& device, const Sides& sides, std::span<const CacheRun> runs,
                     const Buffer& staging, bool in) {
    const std::string_view doing = in ? "writing the cache" : "reading the cache";
    const auto copy = in ? device.call().copy_in : device.call().copy_out;
    for (const CacheRun& run : runs) {
        std::byte *const there = sides.of(run).data() + run.device, *const here = staging.data() + run.staged;
        RL_TRY(device.checked(copy(in ? there : here, in ? here : there, run.bytes, device.stream()), doing));
    }
    return device.synchronize(doing);
}

}  // namespace redline::hip
