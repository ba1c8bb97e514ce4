// Lists of pages as an engine might give them to sequences after running for a long time.
#pragma once

#include "plan/plan.h"

#include <algorithm>
#include <numeric>
#include <random>

namespace redline {

// A list for each of so many sequences, no page twice.
inline std::vector<std::vector<uint32_t>> scattered_pages(std::span<const CacheInfo> caches,
                                                          uint32_t sequences) {
    std::vector<std::vector<uint32_t>> lists(sequences, std::vector<uint32_t>(page_entries(caches)));
    std::mt19937 random(3);
    for (const CacheInfo& cache : caches) {
        std::vector<uint32_t> pages(cache.tokens() / kPageRows);
        std::iota(pages.begin(), pages.end(), 0u);
        std::shuffle(pages.begin(), pages.end(), random);
        for (uint32_t i = 0; i < sequences * cache.pages(); ++i)
            lists[i % sequences][cache.first_page + i / sequences] = pages[i];
    }
    return lists;
}

}  // namespace redline
