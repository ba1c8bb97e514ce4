// BlockPool, and attention to entries.
#include "backends/cpu/kernels/read_key.h"
#include "backends/cpu/runtime/executable.h"

#include <algorithm>
#include <cmath>

namespace redline::cpu {

namespace {

// The mean of elements weighted by exponentials, as far as it has come: three numbers of a state. All zeros:
// of nothing.
struct Pool {
    float top = 0.0f, total = 0.0f, sum = 0.0f;

    void add(float exponent, float x) {
        if (total == 0.0f) {
            *this = {exponent, 1.0f, x};
        } else if (exponent > top) {
            const float down = std::exp(top - exponent);
            *this = {exponent, total * down + 1.0f, sum * down + x};
        } else {
            const float own = std::exp(exponent - top);
            total += own;
            sum += own * x;
        }
    }
    float mean() const { return sum / total; }
    // Of both together; of this one there is something.
    float mean_with(const Pool& other) const {
        if (other.total == 0.0f) return mean();
        const float most = std::max(top, other.top), own = std::exp(top - most),
                    others = std::exp(other.top - most);
        return (own * sum + others * other.sum) / (own * total + others * other.total);
    }
};

// Units are elements of a sequence, which go over its rows.
class BlockPoolKernel : public CpuKernel {
public:
    explicit BlockPoolKernel(const BlockPool& op) : op_(op) {}
    void run(const RunView& view, const Worker& worker, uint32_t) const override {
        const uint64_t width = view.width(op_.y);
        const auto mine = worker.share(width * view.segments.size());
        for (uint64_t at = mine.begin; at < mine.end; ++at)
            go_over(view, view.segments[at / width], at % width);
    }

private:
    void go_over(const RunView& view, const Segment& segment, uint64_t i) const {
        const uint64_t width = view.width(op_.y), wide = view.width(op_.x);
        const uint32_t parts = op_.overlaps ? 3 : 1;
        const auto [from, to] = view.states(op_.state, segment.first);
        Pool pools[3];  // first parts of this block, those of the one before, second parts; or this block's
        for (uint32_t p = 0; from && p < parts; ++p) {
            const float* const own = from + p * 3 * width + i;
            pools[p] = {own[0], own[width], own[2 * width]};
        }
        for (uint64_t row = segment.first; row < segment.first + segment.rows; ++row) {
            const uint64_t place = view.params.rows[row].position % op_.ratio;
            const float *x = view.floats(op_.x) + row * wide, *gate = view.floats(op_.gate) + row * wide,
                        *bias = view.vector(op_.bias) + place * wide;
            if (place == 0 && op_.overlaps) pools[1] = pools[0];
            if (place == 0) pools[0] = pools[2] = {};
            pools[0].add(gate[i] + bias[i], x[i]);
            if (op_.overlaps) pools[2].add(gate[width + i] + bias[width + i], x[width + i]);
            view.floats(op_.y)[row * width + i] =
                op_.overlaps ? pools[2].mean_with(pools[1]) : pools[0].mean();
            if (float* behind = view.states_behind(op_.state, row)) put(pools, parts, width, behind + i);
        }
        put(pools, parts, width, to + i);
    }

    static void put(const Pool* pools, uint32_t parts, uint64_t width, float* to) {
        for (uint32_t p = 0; p < parts; ++p, to += 3 * width) {
            to[0] = pools[p].top;
            to[width] = pools[p].total;
            to[2 * width] = pools[p].sum;
        }
    }

    BlockPool op_;
};

// What a row sees is gathered, and attended to as if it were a cache of its own. Units are rows, or parts of
// what few rows see.
class EntryAttentionKernel : public CpuKernel {
public:
    EntryAttentionKernel(const Attention& op, const Plan& plan, Isa isa)
        : op_(op),
          isa_(isa),
          dims_(plan.cache(op.cache).head_dim),
          ratio_(op.keys.entries ? plan.cache(op.keys.entries).ratio : 1) {}

    // How the work is divided depends on all rows.
    bool alike_rows(const Plan&) const override { return false; }
    uint64_t shared_scratch(const Plan&, uint32_t) const override {
        return uint64_t(kFewRows) * kMostParts * part_floats() * sizeof(float);
    }
    uint64_t thread_scratch(const Plan& plan) const override {
        return kv_bytes(plan) + aligned(dims_ * (sizeof(float) + sizeof(uint16_t))) +
               attend_scratch_bytes(1, op_.shape.heads, dims_) + 64;
    }

    void run(const RunView& view, const Worker& worker, uint32_t step) const override {
        const bool few = view.rows() <= kFewRows;
        Claims claims(view, worker, step, uint64_t(view.rows()) * (few ? kMostParts : 1));
        for (uint64_t i; claims.next(i);) {
            const uint64_t row = few ? i / kMostParts : i;
            const Seen seen = seen_by(view, row);
            const uint64_t parts = few ? parts_of(seen.count) : 1, part = few ? i % kMostParts : 0;
            if (part >= parts) continue;
            const uint64_t begin = seen.count * part / parts, end = seen.count * (part + 1) / parts;
            Attend work = gathered(view, worker, row, seen, begin, end);
            if (parts > 1) {
                work.partial = partials(view, row, part);
                work.out = nullptr;
                work.sinks = nullptr;  // counted once, when the parts are merged
            }
            attention_kernels(isa_).attend(work);
        }
        if (!few) return;
        worker.barrier();
        const auto mine = worker.share(uint64_t(view.rows()) * op_.shape.heads);
        for (uint64_t i = mine.begin; i < mine.end;) {
            const uint64_t row = i / op_.shape.heads, head = i % op_.shape.heads,
                           heads = std::min(op_.shape.heads - head, mine.end - i);
            merge(view, row, uint32_t(head), uint32_t(heads));
            i += heads;
        }
    }

private:
    static constexpr uint32_t kFewRows = 4;     // up to this many rows what a row sees is divided
    static constexpr uint32_t kMostParts = 16;  // into so many parts
    static constexpr uint64_t kPartKeys = 64;   // of so many keys at least

    // What a row sees: tokens, then entries.
    struct Seen {
        uint64_t first, tokens, count;
    };
    Seen seen_by(const RunView& view, uint64_t row) const {
        const uint64_t position = view.params.rows[row].position;
        const uint64_t first = first_seen(position, op_.window, false);
        uint64_t entries = op_.keys.entries ? (position + 1) / ratio_ : 0;
        if (op_.keys.chosen) entries = std::min<uint64_t>(entries, view.width(op_.keys.chosen));
        return {first, position + 1 - first, position + 1 - first + entries};
    }
    static uint64_t parts_of(uint64_t keys) { return std::clamp<uint64_t>(keys / kPartKeys, 1, kMostParts); }

    uint64_t part_floats() const { return uint64_t(op_.shape.heads) * (dims_ + 2); }
    float* partials(const RunView& view, uint64_t row, uint64_t part) const {
        return reinterpret_cast<float*>(view.shared_scratch) + (row * kMostParts + part) * part_floats();
    }

    // Keys of few bits would lose some more if they were quantized again.
    static CacheType gathered_type(const CacheInfo& cache) {
        return cache_code(cache.types.keys).bits < 8 ? CacheType::f32 : cache.types.keys;
    }

    uint64_t kv_bytes(const Plan& plan) const {
        const uint64_t keys = op_.most_keys(plan, plan.sizing.context);
        return aligned(kv_head_bytes(gathered_type(plan.cache(op_.cache)), dims_, keys, dims_));
    }

    // Keys [begin, end) of what a row sees, in the scratch of a worker.
    Attend gathered(const RunView& view, const Worker& worker, uint64_t row, const Seen& seen, uint64_t begin,
                    uint64_t end) const {
        std::byte* const scratch = view.scratch(worker);
        auto* const key = reinterpret_cast<float*>(scratch + kv_bytes(view.plan));
        auto* const halves = reinterpret_cast<uint16_t*>(key + dims_);
        const std::span<const uint32_t> pages = view.params.pages_of(row);
        const CacheInfo& info = view.plan.cache(op_.cache);
        const KvHead tokens = view.caches.head(op_.cache, 0, pages);
        KvHead own{gathered_type(info), dims_, end - begin, scratch};
        own.rank = dims_;
        const AttentionKernels& kernels = attention_kernels(isa_);
        for (uint64_t i = begin; i < end; ++i) {
            if (i < seen.tokens) {
                read_key(tokens, info.row_of(seen.first + i, pages), key, halves);
            } else {
                const uint64_t block = block_of(view, row, i - seen.tokens);
                read_key(view.caches.head(op_.keys.entries, 0, pages),
                         view.plan.cache(op_.keys.entries).row_of(block * ratio_, pages), key, halves);
            }
            kernels.kv_store(own, i - begin, key, nullptr);
        }
        // What is beside the last key in its block of tokens is multiplied by zero.
        std::fill_n(key, dims_, 0.0f);
        for (uint64_t i = end - begin; i < padded_tokens(end - begin); ++i)
            kernels.kv_store(own, i, key, nullptr);
        Attend work = whole(view, row, 0, op_.shape.heads);
        work.kv = own;
        work.first_position = end - begin - 1;
        work.key_end = end - begin;
        work.scratch = reinterpret_cast<std::byte*>(halves + dims_);
        return work;
    }

    uint64_t block_of(const RunView& view, uint64_t row, uint64_t index) const {
        if (!op_.keys.chosen) return index;
        const uint64_t complete = (uint64_t(view.params.rows[row].position) + 1) / ratio_;
        const float chosen = view.floats(op_.keys.chosen)[row * view.width(op_.keys.chosen) + index];
        return std::min(uint64_t(std::max(chosen, 0.0f)), complete - 1);
    }

    // Of some heads of a row, without keys.
    Attend whole(const RunView& view, uint64_t row, uint32_t head, uint32_t heads) const {
        const size_t stride = size_t(op_.shape.heads) * dims_, first = row * stride + size_t(head) * dims_;
        Attend work;
        work.q = view.floats(op_.q) + first;
        work.q_stride = work.out_stride = stride;
        work.rows = 1;
        work.group = heads;
        work.scale = op_.scale;
        if (op_.sinks) work.sinks = view.vector(op_.sinks) + head;
        work.out = view.floats(op_.y) + first;
        work.kv.head_dim = work.kv.rank = dims_;
        return work;
    }

    void merge(const RunView& view, uint64_t row, uint32_t head, uint32_t heads) const {
        const uint64_t parts = parts_of(seen_by(view, row).count);
        if (parts <= 1) return;
        attention_kernels(isa_).combine(partials(view, row, 0) + size_t(head) * (dims_ + 2), parts,
                                        part_floats(), whole(view, row, head, heads));
    }

    Attention op_;
    Isa isa_;
    uint32_t dims_;
    uint64_t ratio_;
};

}  // namespace

std::unique_ptr<Kernel> make_entry_kernel(const Op& op, const Plan& plan, Isa isa) {
    if (const auto* o = std::get_if<BlockPool>(&op)) return std::make_unique<BlockPoolKernel>(*o);
    if (const auto* o = attention_to(Keys::entries, op))
        return std::make_unique<EntryAttentionKernel>(*o, plan, isa);
    return nullptr;
}

}  // namespace redline::cpu
