// Rope, KvStore, RopeStore, LatentStore, and attention to all keys or latents.
#include "backends/cpu/runtime/executable.h"

#include <algorithm>
#include <cmath>

namespace redline::cpu {

namespace {

void rotate_head(const RunView& view, float* head, uint32_t rope, uint64_t row) {
    const RopeSpec& spec = view.plan.ropes[rope];
    const size_t pairs = spec.inverse_frequency.size();
    const float* table = view.rope_row(rope, uint32_t(row));
    vector_kernels(view.isa).rope(head, table, table + pairs, pairs, spec.half_split);
}

class RopeKernel : public CpuKernel {
public:
    explicit RopeKernel(const Rope& op) : op_(op) {}
    void run(const RunView& view, const Worker& worker, uint32_t) const override {
        const auto mine = worker.share(uint64_t(view.rows()) * op_.heads);
        for (uint64_t i = mine.begin; i < mine.end; ++i)
            rotate_head(view, view.floats(op_.x) + i * op_.head_dim + op_.first, op_.rope, i / op_.heads);
    }

private:
    Rope op_;
};

class KvStoreKernel : public CpuKernel {
public:
    explicit KvStoreKernel(const KvStore& op) : op_(op) {}
    void run(const RunView& view, const Worker& worker, uint32_t) const override {
        const auto mine = worker.share(uint64_t(view.rows()) * op_.shape.kv_heads);
        for (uint64_t i = mine.begin; i < mine.end; ++i) {
            const uint64_t row = i / op_.shape.kv_heads;
            attention_kernels(view.isa).kv_store(
                view.caches.head(op_.cache, uint32_t(i % op_.shape.kv_heads)), view.cache_row(op_.cache, row),
                view.floats(op_.k) + i * op_.shape.head_dim, view.floats(op_.v) + i * op_.shape.head_dim);
        }
    }

private:
    KvStore op_;
};

class RopeStoreKernel : public CpuKernel {
public:
    explicit RopeStoreKernel(const RopeStore& op) : op_(op) {}

    // Units are the heads of all rows: first those of q, then those of k with their v.
    void run(const RunView& view, const Worker& worker, uint32_t) const override {
        const HeadShape& s = op_.shape;
        const uint64_t queries = uint64_t(view.rows()) * s.heads;
        const auto mine = worker.share(queries + uint64_t(view.rows()) * s.kv_heads);
        for (uint64_t i = mine.begin; i < mine.end; ++i) {
            if (i < queries)
                turn(view, view.floats(op_.q) + i * s.head_dim, op_.q_norm, i / s.heads);
            else
                store(view, i - queries);
        }
    }

private:
    void turn(const RunView& view, float* head, const Norm& norm, uint64_t row) const {
        if (norm)
            vector_kernels(view.isa).rms_norm(head, view.vector(norm.gain), norm.eps, op_.shape.head_dim,
                                              head);
        rotate_head(view, head, op_.rope, row);
    }

    void store(const RunView& view, uint64_t i) const {
        const HeadShape& s = op_.shape;
        const uint64_t row = i / s.kv_heads;
        float* key = view.floats(op_.k) + i * s.head_dim;
        turn(view, key, op_.k_norm, row);
        attention_kernels(view.isa).kv_store(view.caches.head(op_.cache, uint32_t(i % s.kv_heads)),
                                             view.cache_row(op_.cache, row), key,
                                             view.floats(op_.v) + i * s.head_dim);
    }

    RopeStore op_;
};

class LatentStoreKernel : public CpuKernel {
public:
    explicit LatentStoreKernel(const LatentStore& op) : op_(op) {}

    uint64_t thread_scratch(const Plan& plan) const override {
        return plan.cache(op_.cache).head_dim * sizeof(float);
    }
    void run(const RunView& view, const Worker& worker, uint32_t) const override {
        const KvHead head = view.caches.head(op_.cache, 0);
        const uint32_t rest = head.head_dim - head.rank;
        auto* whole = reinterpret_cast<float*>(view.scratch(worker));
        const auto mine = worker.share(view.rows());
        const uint32_t ratio = view.plan.cache(op_.cache).ratio;
        for (uint64_t row = mine.begin; row < mine.end; ++row) {
            if ((view.params.rows[row].position + 1) % ratio != 0) continue;
            std::copy_n(view.floats(op_.latent) + row * head.rank, head.rank, whole);
            if (rest > 0) std::copy_n(view.floats(op_.key) + row * rest, rest, whole + head.rank);
            attention_kernels(view.isa).kv_store(head, view.cache_row(op_.cache, row), whole, nullptr);
        }
    }

private:
    LatentStore op_;
};

class AttentionKernel : public CpuKernel {
public:
    AttentionKernel(const Attention& op, const Plan& plan, Isa isa)
        : op_(op),
          isa_(isa),
          group_(op.shape.heads / op.shape.kv_heads),
          latent_(op.keys.kind == Keys::latents),
          value_dim_(op.value_dim(plan)) {}

    Precision precision(uint64_t rows) const override {
        const uint64_t queries = std::min<uint64_t>(rows, block_rows()) * group_;
        const auto how = attention_kernels(isa_).activations;
        if (latent_ || rows <= kFewRows || how(queries, op_.shape.head_dim) == Activations::f32) return {};
        // Queries and keys are two bfloat16 numbers each. The product of both lower ones, 2^-16 of the whole,
        // is left out, which counts as the keys'.
        return {.weights = kToBfloat, .activations = {0x1p-16}, .keys = {0x1p-15}, .values = kToBfloat};
    }

    // Values of q8_0 are scaled before or after they are weighted, by how many queries there are.
    bool alike_rows(const Plan& plan) const override {
        return plan.cache(op_.cache).types.values != CacheType::q8_0;
    }
    uint64_t shared_scratch(const Plan&, uint32_t) const override {
        return uint64_t(kSplitRows) * op_.shape.kv_heads * kMaxParts * partial_bytes(1);
    }
    uint64_t thread_scratch(const Plan& plan) const override {
        return attend_bytes(plan) + 2 * partial_bytes(std::min(plan.max_rows, kFewRows));
    }

    void run(const RunView& view, const Worker& worker, uint32_t step) const override {
        const bool splits = view.rows() <= kSplitRows && view.segments.size() == 1;
        if (splits && part_keys(view, 0) == part_keys(view, view.rows() - 1))
            run_split(view, worker, step);
        else
            run_blocks(view, worker, step);
    }

private:
    // Up to so many rows of a sequence are computed as each of them would be alone: over parts of the keys
    // that depend on a row's position, whatever rows are beside it.
    static constexpr uint32_t kFewRows = kAlikeRows;
    static constexpr uint32_t kSplitRows = 4;       // up to this many rows the parts are shared out, too
    static constexpr uint32_t kBlockQueries = 128;  // of a unit of work, which converts its keys but once
    static constexpr uint32_t kMaxParts = 64;
    static constexpr uint64_t kPartKeys = 256;  // keys worth a part of their own

    // Rows of a unit of work.
    uint32_t block_rows() const { return std::max(32u, kBlockQueries / group_); }
    // Partial results of one kv head.
    uint64_t partial_bytes(uint32_t rows) const {
        return uint64_t(rows) * group_ * (value_dim_ + 2) * sizeof(float);
    }
    uint64_t attend_bytes(const Plan& plan) const {
        const uint64_t bytes =
            attend_scratch_bytes(std::min(plan.max_rows, block_rows()), group_, op_.shape.head_dim);
        return (bytes + 63) / 64 * 64;
    }

    // Keys of a part, at a multiple of which it begins: kMaxParts of them are enough for all that the row
    // sees.
    uint64_t part_keys(const RunView& view, uint64_t row) const {
        const uint64_t before = view.params.rows[row].position;
        const uint64_t seen = op_.window > 0 ? std::min<uint64_t>(before, op_.window) : before;
        uint64_t keys = kPartKeys;
        while (seen / keys + 2 > kMaxParts) keys *= 2;
        return keys;
    }

    // The work of one kv head for rows [row, row + rows), all of one sequence.
    Attend attend(const RunView& view, const Worker& worker, uint32_t kv_head, uint32_t row,
                  uint32_t rows) const {
        const size_t stride = size_t(op_.shape.heads) * op_.shape.head_dim;
        const size_t out_stride = size_t(op_.shape.heads) * value_dim_;
        const size_t first = size_t(kv_head) * group_;
        Attend work;
        work.q = view.floats(op_.q) + row * stride + first * op_.shape.head_dim;
        work.q_stride = stride;
        work.rows = rows;
        work.group = group_;
        work.kv = view.caches.head(op_.cache, kv_head, view.params.pages_of(row));
        work.first_position = view.params.rows[row].position;
        work.key_end = work.first_position + rows;
        work.key_begin = first_seen(work.first_position, op_.window, op_.chunks);
        work.scale = op_.scale;
        work.softcap = op_.softcap;
        work.window = op_.window;
        work.chunks = op_.chunks;
        if (op_.sinks) work.sinks = view.vector(op_.sinks) + first;
        work.out = view.floats(op_.y) + row * out_stride + first * value_dim_;
        work.out_stride = out_stride;
        work.scratch = view.scratch(worker);
        return work;
    }

    // Rows of one sequence each: at most block_rows(), or few with parts of equal size.
    std::vector<Segment> blocks(const RunView& view) const {
        std::vector<Segment> blocks;
        for (const Segment& segment : view.segments) {
            const bool few = segment.rows <= kFewRows;
            uint32_t rows = 0;
            for (uint32_t row = 0; row < segment.rows; row += rows) {
                rows = std::min(block_rows(), segment.rows - row);
                const uint32_t first = segment.first + row;
                while (few && part_keys(view, first) != part_keys(view, first + rows - 1)) --rows;
                blocks.push_back({first, rows});
            }
        }
        return blocks;
    }

    // Many rows, or several sequences: units are (kv head, block of rows), of a head those with the most keys
    // first.
    void run_blocks(const RunView& view, const Worker& worker, uint32_t step) const {
        const std::vector<Segment> blocks = this->blocks(view);
        Claims claims(view, worker, step, blocks.size() * op_.shape.kv_heads);
        for (uint64_t i; claims.next(i);) {
            const Segment& block = blocks[blocks.size() - 1 - i % blocks.size()];
            const Attend work = attend(view, worker, uint32_t(i / blocks.size()), block.first, block.rows);
            if (block.rows <= kFewRows)
                attend_in_parts(view, worker, work, part_keys(view, block.first));
            else
                attention_kernels(view.isa).attend(work);
        }
    }

    // One part after the other.
    void attend_in_parts(const RunView& view, const Worker& worker, Attend work, uint64_t keys) const {
        const AttentionKernels& kernels = attention_kernels(view.isa);
        const Attend whole = work;
        const Parts parts(whole, keys);
        work.few = true;
        if (parts.count <= 1) return kernels.attend(work);
        auto* const sums = reinterpret_cast<float*>(view.scratch(worker) + attend_bytes(view.plan));
        const size_t queries = size_t(whole.rows) * group_, width = value_dim_ + 2;
        float* const part = sums + queries * width;
        std::fill_n(sums, queries * width, 0.0f);
        for (size_t i = 0; i < queries; ++i) sums[i * width + value_dim_] = -HUGE_VALF;
        for (uint32_t i = 0; i < parts.count; ++i) {
            parts.choose(i, part, work);
            kernels.attend(work);
            kernels.merge(part, sums, queries, value_dim_);
        }
        kernels.combine(sums, 1, queries * width, whole);
    }

    // The parts of the keys of some rows.
    struct Parts {
        Parts(const Attend& whole_work, uint64_t part_keys)
            : whole(whole_work),
              keys(part_keys),
              first(whole.key_begin / keys),
              count(uint32_t((whole.key_end + keys - 1) / keys - first)) {}
        // Sinks are counted once, when the parts are merged.
        void choose(uint32_t i, float* partial, Attend& work) const {
            work.key_begin = std::max(whole.key_begin, (first + i) * keys);
            work.key_end = std::min(whole.key_end, (first + i + 1) * keys);
            work.out = nullptr;
            work.sinks = nullptr;
            work.partial = partial;
        }
        const Attend& whole;
        uint64_t keys, first;
        uint32_t count;
    };

    // Few rows: units are (kv head, part of the keys); partial results are merged afterwards.
    void run_split(const RunView& view, const Worker& worker, uint32_t step) const {
        const uint32_t kv_heads = op_.shape.kv_heads;
        const Attend whole = attend(view, worker, 0, 0, view.rows());
        const Parts parts(whole, part_keys(view, 0));
        const size_t part_floats = size_t(whole.rows) * whole.group * (value_dim_ + 2);
        auto* partials = reinterpret_cast<float*>(view.shared_scratch);
        Claims claims(view, worker, step, uint64_t(parts.count) * kv_heads);
        for (uint64_t i; claims.next(i);) {
            Attend work = attend(view, worker, uint32_t(i / parts.count), 0, view.rows());
            work.few = true;
            if (parts.count > 1) parts.choose(uint32_t(i % parts.count), partials + i * part_floats, work);
            attention_kernels(view.isa).attend(work);
        }
        if (parts.count <= 1) return;
        worker.barrier();
        const auto mine = worker.share(kv_heads);
        for (uint64_t h = mine.begin; h < mine.end; ++h)
            attention_kernels(view.isa).combine(partials + h * parts.count * part_floats, parts.count,
                                                part_floats,
                                                attend(view, worker, uint32_t(h), 0, view.rows()));
    }

    Attention op_;
    Isa isa_;
    uint32_t group_;  // query heads of a kv head
    bool latent_;
    uint32_t value_dim_;
};

}  // namespace

std::unique_ptr<Kernel> make_attention_kernel(const Op& op, const Plan& plan, Isa isa) {
    if (const auto* o = std::get_if<Rope>(&op)) return std::make_unique<RopeKernel>(*o);
    if (const auto* o = std::get_if<KvStore>(&op)) return std::make_unique<KvStoreKernel>(*o);
    if (const auto* o = std::get_if<RopeStore>(&op)) return std::make_unique<RopeStoreKernel>(*o);
    if (const auto* o = std::get_if<LatentStore>(&op)) return std::make_unique<LatentStoreKernel>(*o);
    for (const Keys keys : {Keys::all, Keys::latents})
        if (const auto* o = attention_to(keys, op)) return std::make_unique<AttentionKernel>(*o, plan, isa);
    return nullptr;
}

}  // namespace redline::cpu
