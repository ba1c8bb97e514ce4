#include "host/wide_keys.h"

#include <fmt/format.h>

#include <algorithm>

namespace redline {

std::string wide_keys_note(const Model& model, CacheTypes cache) {
    if (cache_code(cache.keys).bits >= 8) return {};
    const Result<Plan> plan = model.plan(1, 1, {.context = kPageRows, .types = cache});
    if (!plan) return {};  // opening it says why
    const auto wide = std::ranges::count_if(plan.value().caches, &CacheInfo::keys_widened);
    if (wide == 0) return {};
    return fmt::format(
        "{} of {} layers add{} so much to {} keys that {} keeps too little of them: there they are cached as "
        "q8_0; -ctk q8_0 -ctv {} loses less in all layers",
        wide, model.config().layers, wide == 1 ? "s" : "", wide == 1 ? "its" : "their",
        cache_type_name(cache.keys), cache_type_name(cache.values));
}

}  // namespace redline
