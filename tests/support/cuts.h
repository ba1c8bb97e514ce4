// The steps before which the plans of the tiny models can be cut, for the tests of cuts and of pipelines.
#pragma once

#include "places/model.h"
#include "plan/passes/cut.h"
#include "support/models.h"

#include <algorithm>
#include <set>

namespace redline::test {

inline constexpr CacheSizing kSizing{64, 16, CacheType::f32};
inline constexpr uint32_t kBatch = 16;

inline Model tiny(const std::string& name) {
    return must(Model::inspect(golden("models/" + name + ".gguf"), kSizing.context));
}

// Cuts that one slot crosses: behind the embedding and between layers.
inline std::vector<size_t> layer_ends(const Plan& plan) {
    std::vector<size_t> ends = {1};
    for (size_t i = 2; i < plan.steps.size(); ++i)
        if (plan.steps[i].layer != plan.steps[i - 1].layer) ends.push_back(i);
    return ends;
}

// True when a cache is used both before the step and behind it.
inline bool shares_caches(const Plan& plan, size_t at) {
    std::set<int32_t> before, behind;
    for (size_t i = 0; i < plan.steps.size(); ++i)
        for (const Cache cache : caches_of(plan.steps[i].op)) (i < at ? before : behind).insert(cache.index);
    return std::ranges::any_of(before, [&](int32_t cache) { return behind.contains(cache); });
}

}  // namespace redline::test
