// Attention with a running softmax, over the Vec of the including level: tile by tile of keys, scores,
// exponentials and weighted sums of values in f32, never more than kTile scores per query at once. Queries
// are taken in blocks that share the conversion of the cache to floats; a few queries (decoding) read a half
// cache directly.
#pragma once

#include "attention_tiles.h"

namespace redline::cpu {
namespace {

// Bounds the queries of a block: their floats should stay in the second-level cache.
constexpr size_t kBlockQueries = 256;
constexpr size_t kBlockFloats = kBlockQueries * 3 * 128;

struct KeyRange {
    uint64_t begin;
    uint64_t end;
};

// The keys that a row sees; none when begin >= end. Both ends grow with the row.
inline KeyRange visible_keys(const Attend& work, uint32_t row) {
    const uint64_t position = work.first_position + row;
    KeyRange range{work.key_begin, position < work.key_end ? position + 1 : work.key_end};
    if (work.window == 0 || position < work.window) return range;
    range.begin =
        std::max(range.begin, work.chunks ? position - position % work.window : position - work.window + 1);
    return range;
}

// A stretch of a tile, counted from its first key; empty when lo >= hi.
struct Span {
    size_t lo;
    size_t hi;
    bool operator==(const Span&) const = default;
};

struct Tile {
    uint64_t first;  // key, a multiple of 16
    uint64_t row;    // of the cache, that it lies in
    size_t keys;
    Span seen;     // by any query
    bool uniform;  // every query sees just these
    bool last;

    Span clip(KeyRange range) const {
        const uint64_t lo = range.begin > first ? range.begin - first : 0;
        const uint64_t hi = range.end > first ? range.end - first : 0;
        return {static_cast<size_t>(lo < keys ? lo : keys), static_cast<size_t>(hi < keys ? hi : keys)};
    }
};

// Rows whose queries are worked on together: at least one, however many heads it has.
inline uint32_t block_rows(uint32_t rows, uint32_t group, uint32_t dims) {
    const size_t queries = smaller(kBlockQueries, kBlockFloats / (kTile + 2 * size_t{dims}));
    const size_t most = group < queries ? queries / group : 1;
    return rows < most ? rows : static_cast<uint32_t>(most);
}

// One block's working memory, in floats.
struct Scratch {
    float* q;         // chunks of queries, each [dim][query], scaled
    float* scores;    // (queries, kTile)
    float* sums;      // (queries, width)
    float* rescale;   // (queries)
    Softmax* states;  // (queries)
    float* panel;     // a piece of the cache as floats: [piece][step][16]

    static size_t floats(size_t queries, size_t dims) {
        const size_t panel = dims > kTile ? dims : kTile;
        return queries * (dims + kTile + round_up(dims, kPiece) + 3) + kPanelKeys * round_up(panel, kPiece);
    }
    Scratch(std::byte* memory, size_t queries, size_t dims) {
        panel = reinterpret_cast<float*>((reinterpret_cast<uintptr_t>(memory) + 63) / 64 * 64);
        const size_t panel_dims = dims > kTile ? dims : kTile;
        scores = panel + kPanelKeys * round_up(panel_dims, kPiece);
        sums = scores + queries * kTile;
        q = sums + queries * round_up(dims, kPiece);
        rescale = q + queries * dims;
        states = reinterpret_cast<Softmax*>(rescale + queries);
    }
};

class Block {
public:
    Block(const Attend& work, uint32_t first_row, uint32_t rows);
    void run();

protected:
    uint32_t row_of(size_t query) const { return first_row_ + static_cast<uint32_t>(query / work_.group); }
    size_t chunk_queries(size_t begin) const { return smaller(chunk_, queries_ - begin); }
    Span seen_by(const Tile& tile, size_t query) const {
        return tile.uniform ? tile.seen : tile.clip(visible_keys(work_, row_of(query)));
    }
    // Calls work(Tile) for all keys that any query sees, at most so many at a time: up to a multiple of
    // `grid` keys, from one such multiple on.
    template <typename Work>
    void for_each_tile(size_t tile_keys, size_t grid, Work work) const;
    void finish(size_t query) const;

private:
    // What any query of a chunk sees.
    Span seen_by_chunk(const Tile& tile, size_t begin) const {
        return {seen_by(tile, begin).lo, seen_by(tile, begin + chunk_queries(begin) - 1).hi};
    }
    // Few queries read the cache as it is, in types that a load converts. A tile that they see differently
    // goes through the panel, where values that some must not see can be checked.
    bool direct(const Tile& tile, CacheType type) const {
        return cache_code(type).bits >= 8 && queries_ <= Vec::kDirectQueries && tile.uniform &&
               dims_ % kPiece == 0 && cache_.rank == 0;
    }
    // The next tile's keys, which are fetched while values are summed; after the last there is nothing to
    // fetch, and these are cached.
    const std::byte* next_keys(const Tile& tile) const {
        const uint64_t row = tile.last ? tile.row : tile.row + tile.keys;
        return cache_.key_codes() + row * dims_ * cache_.key_code.bits / 8;
    }
    Sums sums(size_t query) const {
        return {scratch_.sums + query * width_, width_, scratch_.rescale + query};
    }

    void load_queries();
    void add_tile(const Tile& tile);
    void score_tile(const Tile& tile);
    void sum_tile(const Tile& tile);
    template <typename Element>
    void score_direct(const Tile& tile, const typename Element::Type* all_keys);
    template <typename Element>
    void sum_direct(const Tile& tile, const typename Element::Type* all_values);
    void sum_direct_group(const Tile& tile, const ValueTile<CachedInt8>& values, size_t group);
    void sum_panel(const Tile& tile, size_t dim, size_t panel_dims);
    void write_out(size_t query, float scale, float* out) const;

protected:
    const Attend& work_;
    KvLayout cache_;
    uint32_t first_row_;
    size_t queries_;
    size_t chunk_;  // queries that go through the products together
    size_t dims_;
    size_t value_dims_;
    size_t width_;  // value_dims_ rounded up to whole pieces
    Scratch scratch_;
};

inline Block::Block(const Attend& work, uint32_t first_row, uint32_t rows)
    : work_(work),
      cache_(work.kv),
      first_row_(first_row),
      queries_(size_t{rows} * work.group),
      dims_(work.kv.head_dim),
      value_dims_(work.kv.value_dim()),
      width_(round_up(value_dims_, kPiece)),
      scratch_(work.scratch, queries_, dims_) {
    // Even chunks: 4 and 4 queries cost less than 6 and 2.
    const size_t chunks = (queries_ + Vec::kQueries - 1) / Vec::kQueries;
    chunk_ = (queries_ + chunks - 1) / chunks;
}

template <typename Work>
inline void Block::for_each_tile(size_t tile_keys, size_t grid, Work work) const {
    const uint32_t last_row = row_of(queries_ - 1);
    KeyRange seen{visible_keys(work_, first_row_).begin, visible_keys(work_, last_row).end};
    if (seen.begin >= seen.end) seen = {0, 0};
    const KvHead& kv = work_.kv;
    const uint64_t rows = kv.sequence_rows > 0 ? kv.sequence_rows : kv.capacity;
    for (uint64_t key = seen.begin / grid * grid; key < seen.end;) {
        const uint64_t left = seen.end - key, in_sequence = key % rows, in_page = in_sequence % kPageRows;
        // The end of a ring, and of a page, is the end of a tile.
        const size_t most = smaller(left, kv.pages ? kPageRows - in_page : rows - in_sequence);
        const size_t keys = smaller(most, tile_keys - key % grid);
        const uint64_t row = kv.pages ? kv.pages[in_sequence / kPageRows] * kPageRows + in_page : in_sequence;
        Tile tile{key, row, keys, {}, false, left <= keys};
        tile.seen = tile.clip(seen);
        tile.uniform = tile.clip(visible_keys(work_, first_row_)) == tile.clip(visible_keys(work_, last_row));
        work(tile);
        key += keys;
    }
}

inline void Block::run() {
    load_queries();
    for_each_tile(kTile, kTile, [this](const Tile& tile) { add_tile(tile); });
    for (size_t i = 0; i < queries_; ++i) finish(i);
}

inline void Block::load_queries() {
    for (size_t begin = 0; begin < queries_; begin += chunk_) {
        const size_t count = chunk_queries(begin);
        for (size_t m = 0; m < count; ++m) {
            const size_t query = begin + m;
            const float* q = work_.q + row_of(query) * work_.q_stride + query % work_.group * dims_;
            float* packed = scratch_.q + begin * dims_ + m;
            for (size_t i = 0; i < dims_; ++i) packed[i * count] = q[i] * work_.scale;
        }
    }
    for (size_t i = 0; i < queries_ * width_; ++i) scratch_.sums[i] = 0.0f;
    for (size_t i = 0; i < queries_; ++i) scratch_.states[i] = Softmax{};
}

inline void Block::add_tile(const Tile& tile) {
    score_tile(tile);
    for (size_t begin = 0; begin < queries_; begin += chunk_) {
        const Span seen = seen_by_chunk(tile, begin);
        if (seen.lo >= seen.hi) continue;
        for (size_t i = begin; i < begin + chunk_queries(begin); ++i) {
            const Span own = seen_by(tile, i);
            scratch_.rescale[i] = softmax_row(scratch_.scores + i * kTile, seen.lo, seen.hi, own.lo, own.hi,
                                              work_.softcap, scratch_.states[i]);
        }
    }
    sum_tile(tile);
}

template <typename Element>
inline void Block::score_direct(const Tile& tile, const typename Element::Type* all_keys) {
    const uint16_t* scales =
        Element::kScaled ? cache_.key_scales() + cache_.key_scale_index(tile.row, 0) : nullptr;
    const std::byte* const values = cache_.value_codes() + tile.row * dims_ * cache_.value_code.bits / 8;
    const KeyTile<Element> keys{all_keys + tile.row * dims_, scales, dims_, values};
    const size_t first = tile.seen.lo / kPiece * kPiece, end = round_up(tile.seen.hi, kPiece);
    for (size_t begin = 0; begin < queries_; begin += chunk_)
        with_count<Vec::kQueries>(chunk_queries(begin), [&]<int M>(Count<M>) {
            score_keys<Element, M>(scratch_.q + begin * dims_, keys, first, end,
                                   scratch_.scores + begin * kTile);
        });
}

inline void Block::score_tile(const Tile& tile) {
    if (direct(tile, cache_.keys)) {
        if (cache_.keys == CacheType::f32) return score_direct<CachedFloat>(tile, cache_.float_keys());
        if (cache_.keys == CacheType::f16) return score_direct<CachedHalf>(tile, cache_.half_keys());
        if (cache_.keys == CacheType::bf16) return score_direct<CachedBfloat>(tile, cache_.half_keys());
        return score_direct<ScaledInt8>(tile, cache_.int8_keys());
    }
    // The same tokens' values are fetched meanwhile; latents have none.
    const size_t value_bytes = cache_.rank > 0 ? 0 : dims_ * cache_.value_code.bits / 8;
    for (size_t key = 0; key < tile.keys; key += kPanelKeys) {
        if (tile.seen.lo >= key + kPanelKeys) continue;
        const size_t keys = smaller(kPanelKeys, round_up(tile.keys - key, kPiece));
        fetch(cache_.value_codes() + (tile.row + key) * value_bytes, keys * value_bytes);
        convert_keys(cache_, (tile.row + key) / kKeyBlock, keys / kPiece, scratch_.panel);
        const KeyTile<PanelFloat> panel{scratch_.panel, nullptr, dims_, nullptr};
        for (size_t begin = 0; begin < queries_; begin += chunk_) {
            const Span seen = seen_by_chunk(tile, begin);
            if (seen.lo >= seen.hi || seen.lo >= key + keys || seen.hi <= key) continue;
            with_count<Vec::kQueries>(chunk_queries(begin), [&]<int M>(Count<M>) {
                score_keys<PanelFloat, M>(scratch_.q + begin * dims_, panel, 0, keys,
                                          scratch_.scores + begin * kTile + key);
            });
        }
    }
}

template <typename Element>
inline void Block::sum_direct(const Tile& tile, const typename Element::Type* all_values) {
    const ValueTile<Element> values{all_values + (tile.row + tile.seen.lo) * dims_, kPiece, dims_,
                                    tile.seen.hi - tile.seen.lo, next_keys(tile)};
    if constexpr (sizeof(typename Element::Type) == 1) {
        for (size_t group = 0; group < cache_.groups; ++group) sum_direct_group(tile, values, group);
    } else {
        for (size_t begin = 0; begin < queries_; begin += chunk_)
            with_count<Vec::kQueries>(chunk_queries(begin), [&]<int M>(Count<M>) {
                sum_values<Element, M>(scratch_.scores + begin * kTile + tile.seen.lo, values, 0, dims_,
                                       sums(begin));
            });
    }
}

// One q8_0 group of dimensions: the scales of its values go into the probabilities.
inline void Block::sum_direct_group(const Tile& tile, const ValueTile<CachedInt8>& values, size_t group) {
    float scales[kTile];
    load_value_scales(cache_, tile.row, tile.keys, group, scales);
    for (size_t begin = 0; begin < queries_; begin += chunk_) {
        const size_t count = chunk_queries(begin);
        for (size_t m = 0; m < count; ++m)
            for (size_t i = 0; i < tile.keys; i += kLanes)
                (Vec::load(scratch_.scores + (begin + m) * kTile + i) * Vec::load(scales + i))
                    .store(scratch_.panel + m * kTile + i);
        with_count<Vec::kQueries>(count, [&]<int M>(Count<M>) {
            sum_values<CachedInt8, M>(scratch_.panel + tile.seen.lo, values, group * kGroup,
                                      (group + 1) * kGroup, sums(begin));
        });
    }
}

inline void Block::sum_tile(const Tile& tile) {
    if (direct(tile, cache_.values)) {
        if (cache_.values == CacheType::f32) return sum_direct<CachedFloat>(tile, cache_.float_values());
        if (cache_.values == CacheType::f16) return sum_direct<CachedHalf>(tile, cache_.half_values());
        if (cache_.values == CacheType::bf16) return sum_direct<CachedBfloat>(tile, cache_.half_values());
        return sum_direct<CachedInt8>(tile, cache_.int8_values());
    }
    const size_t key_bytes = tile.keys * kPanelDims * cache_.key_code.bits / 8;
    const std::byte* next = next_keys(tile);
    for (size_t dim = 0; dim < width_; dim += kPanelDims, next += key_bytes) {
        fetch(next, key_bytes);
        convert_values(cache_, tile.row + tile.seen.lo, tile.seen.hi - tile.seen.lo, dim, scratch_.panel);
        sum_panel(tile, dim, smaller(kPanelDims, width_ - dim));
    }
}

// A query's probability of a key that it does not see is 0, but 0 times a value that is not finite is NaN: if
// the panel holds one, each query is summed over just its own keys.
inline void Block::sum_panel(const Tile& tile, size_t dim, size_t panel_dims) {
    constexpr size_t kPieceFloats = kTile * kPiece;
    bool by_chunks = true;
    for (size_t piece = 0; !tile.uniform && piece < panel_dims / kPiece; ++piece)
        by_chunks = by_chunks &&
                    all_finite(scratch_.panel + piece * kPieceFloats, (tile.seen.hi - tile.seen.lo) * kPiece);
    for (size_t begin = 0; begin < queries_; begin += by_chunks ? chunk_ : 1) {
        const Span seen = by_chunks ? seen_by_chunk(tile, begin) : seen_by(tile, begin);
        if (seen.lo >= seen.hi) continue;
        const ValueTile<PanelFloat> panel{scratch_.panel + (seen.lo - tile.seen.lo) * kPiece, kPieceFloats,
                                          kPiece, seen.hi - seen.lo, nullptr};
        Sums to = sums(begin);
        to.rows += dim;
        with_count<Vec::kQueries>(by_chunks ? chunk_queries(begin) : 1, [&]<int M>(Count<M>) {
            sum_values<PanelFloat, M>(scratch_.scores + begin * kTile + seen.lo, panel, 0, panel_dims, to);
        });
    }
}

inline void Block::write_out(size_t query, float scale, float* out) const {
    const float* from = scratch_.sums + query * width_;
    for (size_t i = 0; i < value_dims_; ++i) out[i] = from[i] * scale;
}

// What the sums of one query are multiplied with at the end, when a sink joins: 0 where nothing was seen.
inline float final_scale(float maximum, float total, const float* sink) {
    const float top = sink != nullptr && *sink > maximum ? *sink : maximum;
    const float base = exponent_base(top);
    const float shrink = exp1(maximum - base);
    const float divisor = total * shrink + (sink != nullptr ? exp1(*sink - base) : 0.0f);
    return divisor == 0.0f ? 0.0f : shrink / divisor;
}

inline void Block::finish(size_t query) const {
    const Softmax& state = scratch_.states[query];
    const size_t row = row_of(query);
    const size_t head = query % work_.group;
    if (work_.partial != nullptr) {
        float* part = work_.partial + (row * work_.group + head) * (value_dims_ + 2);
        write_out(query, 1.0f, part);
        part[value_dims_] = state.maximum;
        part[value_dims_ + 1] = state.total;
    }
    if (work_.out != nullptr) {
        const float* sink = work_.sinks != nullptr ? work_.sinks + head : nullptr;
        write_out(query, final_scale(state.maximum, state.total, sink),
                  work_.out + row * work_.out_stride + head * value_dims_);
    }
}

inline Activations float_activations(size_t, uint32_t) {
    return Activations::f32;
}

inline void attend(const Attend& work) {
    if (work.rows == 0 || work.group == 0) return;
    const uint32_t step = block_rows(work.rows, work.group, work.kv.head_dim);
    for (uint32_t row = 0; row < work.rows; row += step)
        Block(work, row, work.rows - row < step ? work.rows - row : step).run();
}

// A partial result is added to that of earlier keys, `dims` weighted sums in `out` with their state. The
// first one stays what it is, bit for bit, and one that saw no key leaves the others so.
inline void add_part(const float* part, size_t dims, float* out, Softmax& state) {
    if (part[dims + 1] == 0.0f) return;
    const float maximum = part[dims] > state.maximum ? part[dims] : state.maximum;
    const float base = exponent_base(maximum);
    const float shrink = exp1(state.maximum - base), weight = exp1(part[dims] - base);
    state.maximum = maximum;
    state.total = state.total * shrink + weight * part[dims + 1];
    for (size_t i = 0; i < dims; ++i) out[i] = out[i] * shrink + weight * part[i];
}

inline void combine(const float* partials, size_t parts, size_t part_stride, const Attend& work) {
    const size_t dims = work.kv.value_dim();
    for (size_t row = 0; row < work.rows; ++row)
        for (size_t head = 0; head < work.group; ++head) {
            const float* part = partials + (row * work.group + head) * (dims + 2);
            float* out = work.out + row * work.out_stride + head * dims;
            Softmax state;
            for (size_t i = 0; i < dims; ++i) out[i] = 0.0f;
            for (size_t i = 0; i < parts; ++i) add_part(part + i * part_stride, dims, out, state);
            const float scale =
                final_scale(state.maximum, state.total, work.sinks != nullptr ? work.sinks + head : nullptr);
            for (size_t i = 0; i < dims; ++i) out[i] *= scale;
        }
}

inline void merge(const float* part, float* into, size_t queries, size_t dims) {
    for (size_t i = 0; i < queries; ++i, part += dims + 2, into += dims + 2) {
        Softmax state{into[dims], into[dims + 1]};
        add_part(part, dims, into, state);
        into[dims] = state.maximum;
        into[dims + 1] = state.total;
    }
}

}  // namespace
}  // namespace redline::cpu
