#include "plan/passes/wide_keys.h"

namespace redline {

void widen_keys(Plan& plan, const std::function<bool(uint32_t layer)>& wide) {
    const auto widen = [&](auto index) {
        if constexpr (std::is_same_v<decltype(index), Cache>) {
            if (!index) return;
            CacheInfo& cache = plan.caches[size_t(index.index)];
            if (cache.is_state() || cache.rank > 0 || cache_code(cache.types.keys).bits >= 8) return;
            cache.types.keys = CacheType::q8_0;
            cache.keys_widened = true;
        }
    };
    for (Step& step : plan.steps)
        if (access(step).writes_cache && wide(step.layer))
            std::visit([&](auto& op) { op.visit_indices([&](auto&... index) { (widen(index), ...); }); },
                       step.op);
}

}  // namespace redline
