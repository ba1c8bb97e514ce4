#include "places/rank_caches.h"

#include <algorithm>
#include <cstring>

namespace redline {

namespace {

// Pieces of the rows of a whole cache that a rank has, in the order in which it has them:
// visit(offset among all bytes, offset among the rank's, bytes).
template <typename Visit>
void for_pieces(const CacheInfo& info, const CacheSlice& slice, uint64_t count, const Visit& visit) {
    uint64_t at = 0;
    const auto add = [&](uint64_t offset, uint64_t bytes) {
        visit(offset, at, bytes);
        at += bytes;
    };
    // A head has its rows side by side; a state has its floats so.
    if (!info.is_state()) {
        const uint64_t head = count * info.row_bytes();
        for (const Run& run : slice.parts) add(run.first * head, run.count * head);
        return;
    }
    for (uint64_t row = 0; row < count; ++row)
        for (const Run& run : slice.parts)
            add((row * info.state_floats + run.first) * sizeof(float), run.count * sizeof(float));
}

uint64_t slice_bytes(const CacheInfo& info, const CacheSlice& slice, uint64_t count) {
    uint64_t sum = 0;
    for_pieces(info, slice, count, [&](uint64_t, uint64_t, uint64_t bytes) { sum += bytes; });
    return sum;
}

}  // namespace

RankCaches::Home RankCaches::home_of(const Rank& rank, Cache cache) const {
    const auto found = std::ranges::find(rank.caches, cache);
    if (found == rank.caches.end()) return {};
    return {rank.store.get(), {int32_t(found - rank.caches.begin())}, &rank.slices[size_t(cache.index)]};
}

uint64_t RankCaches::bytes() const {
    uint64_t sum = 0;
    for (const Rank& rank : ranks_) sum += rank.store->bytes();
    return sum;
}

// Where all ranks have the same, the first one's is read.
Status RankCaches::read(Cache cache, uint64_t first, uint64_t count, std::span<std::byte> out) {
    const CacheInfo& info = infos_[size_t(cache.index)];
    std::vector<std::byte> part;
    for (const Rank& rank : ranks_) {
        const Home home = home_of(rank, cache);
        if (!home.store) continue;
        if (home.slice->is_whole) return home.store->read(home.cache, first, count, out);
        part.resize(slice_bytes(info, *home.slice, count));
        RL_TRY(home.store->read(home.cache, first, count, part));
        for_pieces(info, *home.slice, count, [&](uint64_t whole, uint64_t at, uint64_t bytes) {
            std::memcpy(out.data() + whole, part.data() + at, bytes);
        });
    }
    return {};
}

Status RankCaches::write(Cache cache, uint64_t first, uint64_t count, std::span<const std::byte> in) {
    const CacheInfo& info = infos_[size_t(cache.index)];
    std::vector<std::byte> part;
    for (const Rank& rank : ranks_) {
        const Home home = home_of(rank, cache);
        if (!home.store) continue;
        if (home.slice->is_whole) {
            RL_TRY(home.store->write(home.cache, first, count, in));
            continue;
        }
        part.resize(slice_bytes(info, *home.slice, count));
        for_pieces(info, *home.slice, count, [&](uint64_t whole, uint64_t at, uint64_t bytes) {
            std::memcpy(part.data() + at, in.data() + whole, bytes);
        });
        RL_TRY(home.store->write(home.cache, first, count, part));
    }
    return {};
}

Result<bool> RankCaches::copy(Cache cache, uint64_t from, uint64_t to, uint64_t count) {
    const auto far = [](const Rank& rank) { return dynamic_cast<FarCaches*>(rank.store.get()); };
    if (std::ranges::none_of(ranks_, far)) return false;
    const CacheInfo& info = infos_[size_t(cache.index)];
    std::vector<std::byte> rows;
    for (const Rank& rank : ranks_) {
        const Home home = home_of(rank, cache);
        if (!home.store) continue;
        if (FarCaches* const there = far(rank); there && RL_TRY(there->copy(home.cache, from, to, count)))
            continue;
        rows.resize(home.slice->is_whole ? count * info.row_bytes() * info.kv_heads
                                         : slice_bytes(info, *home.slice, count));
        RL_TRY(home.store->read(home.cache, from, count, rows));
        RL_TRY(home.store->write(home.cache, to, count, rows));
    }
    return true;
}

}  // namespace redline
