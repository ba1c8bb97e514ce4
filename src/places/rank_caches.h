// The caches of a plan that is divided over ranks, read and written as those of the whole plan.
#pragma once

#include "plan/passes/shard.h"

#include "plan/far_backend.h"

namespace redline {

class RankCaches : public CacheStore, public FarCaches {
public:
    struct Rank {
        std::unique_ptr<CacheStore> store;
        std::vector<Cache> caches;       // of the whole plan: those that the store has, in its order
        std::vector<CacheSlice> slices;  // for each cache of the whole plan
    };
    RankCaches(std::vector<CacheInfo> infos, std::vector<Rank> ranks)
        : infos_(std::move(infos)), ranks_(std::move(ranks)) {}

    uint64_t bytes() const override;
    Status read(Cache cache, uint64_t first, uint64_t count, std::span<std::byte> out) override;
    Status write(Cache cache, uint64_t first, uint64_t count, std::span<const std::byte> in) override;
    // Rows that are at other processes stay there.
    Result<bool> copy(Cache cache, uint64_t from, uint64_t to, uint64_t count) override;

private:
    struct Home {
        CacheStore* store = nullptr;  // null: the rank has none of the cache
        Cache cache;
        const CacheSlice* slice = nullptr;
    };
    Home home_of(const Rank& rank, Cache cache) const;

    std::vector<CacheInfo> infos_;
    std::vector<Rank> ranks_;
};

}  // namespace redline
