// BlockMean, BlockScores, ChooseBlocks and BlockAttention.
#include "executable.h"
#include "read_key.h"

#include <algorithm>
#include <bit>

namespace redline::cpu {

namespace {

// Units are elements of a sequence, which go over its rows.
class BlockMeanKernel : public CpuKernel {
public:
    explicit BlockMeanKernel(const BlockMean& op) : op_(op) {}
    void run(const RunView& view, const Worker& worker, uint32_t) const override {
        const uint64_t width = view.width(op_.x);
        const float part = 1.0f / float(op_.ratio);
        const auto mine = worker.share(width * view.segments.size());
        for (uint64_t at = mine.begin; at < mine.end; ++at) {
            const Segment& segment = view.segments[at / width];
            const uint64_t i = at % width;
            const auto [from, to] = view.states(op_.state, segment.first);
            float sum = from ? from[i] : 0.0f;
            for (uint64_t row = segment.first; row < segment.first + segment.rows; ++row) {
                const float x = view.floats(op_.x)[row * width + i];
                sum = view.params.rows[row].position % op_.ratio == 0 ? x : sum + x;
                view.floats(op_.y)[row * width + i] = sum * part;
            }
            to[i] = sum;
        }
    }

private:
    BlockMean op_;
};

// Eight sums, which the compiler makes vectors of.
float dot(const float* a, const float* b, uint64_t n) {
    float sums[8] = {};
    uint64_t i = 0;
    for (; i + 8 <= n; i += 8)
        for (uint64_t k = 0; k < 8; ++k) sums[k] += a[i + k] * b[i + k];
    for (; i < n; ++i) sums[i % 8] += a[i] * b[i];
    return (sums[0] + sums[4]) + (sums[1] + sums[5]) + ((sums[2] + sums[6]) + (sums[3] + sums[7]));
}

// Units are stretches of the blocks that a sequence's last row sees, for all of its rows.
class BlockScoresKernel : public CpuKernel {
public:
    explicit BlockScoresKernel(const BlockScores& op) : op_(op) {}

    uint64_t thread_scratch(const Plan& plan) const override {
        return plan.cache(op_.cache).head_dim * (sizeof(float) + sizeof(uint16_t));
    }
    void run(const RunView& view, const Worker& worker, uint32_t step) const override {
        const uint64_t stretches = (view.width(op_.y) + kBlocks - 1) / kBlocks;
        Claims claims(view, worker, step, stretches * view.segments.size());
        for (uint64_t i; claims.next(i);)
            score(view, view.segments[i / stretches], i % stretches * kBlocks,
                  reinterpret_cast<float*>(view.scratch(worker)));
    }

private:
    static constexpr uint64_t kBlocks = 64;

    void score(const RunView& view, const Segment& segment, uint64_t first, float* key) const {
        const CacheInfo& info = view.plan.cache(op_.cache);
        const uint64_t width = view.width(op_.y), dims = info.head_dim;
        const uint32_t last = segment.first + segment.rows;
        const std::span<const uint32_t> pages = view.params.pages_of(segment.first);
        const KvHead head = view.caches.head(op_.cache, 0, pages);
        const uint64_t seen = (uint64_t(view.params.rows[last - 1].position) + 1) / op_.ratio;
        for (uint64_t block = first; block < std::min(first + kBlocks, width); ++block) {
            const uint64_t token = block * op_.ratio + op_.ratio - 1;
            if (block < seen)
                read_key(head, info.row_of(token, pages), key, reinterpret_cast<uint16_t*>(key + dims));
            for (uint32_t row = segment.first; row < last; ++row) {
                if (view.params.rows[row].position < token) {
                    view.floats(op_.y)[row * width + block] = 0.0f;
                    continue;
                }
                const float* q = view.floats(op_.q) + row * op_.heads * dims;
                const float* weights = op_.weights ? view.floats(op_.weights) + row * op_.heads : nullptr;
                float sum = 0.0f;
                for (uint32_t h = 0; h < op_.heads; ++h) {
                    const float one = dot(q + h * dims, key, dims), raised = one < 0.0f ? 0.0f : one;
                    sum += weights ? weights[h] * raised : raised;  // lets NaN through
                }
                view.floats(op_.y)[row * width + block] = sum;
            }
        }
    }

    BlockScores op_;
};

// Scores are compared by their bits; NaN counts as the largest.
class ChooseBlocksKernel : public CpuKernel {
public:
    explicit ChooseBlocksKernel(const ChooseBlocks& op) : op_(op) {}

    uint64_t thread_scratch(const Plan& plan) const override {
        return uint64_t(plan.slot(op_.scores).width) * sizeof(uint32_t);
    }
    void run(const RunView& view, const Worker& worker, uint32_t) const override {
        const uint64_t width = view.width(op_.scores), most = view.width(op_.y);
        auto* bits = reinterpret_cast<uint32_t*>(view.scratch(worker));
        const auto mine = worker.share(view.rows());
        for (uint64_t row = mine.begin; row < mine.end; ++row) {
            const uint64_t complete = (uint64_t(view.params.rows[row].position) + 1) / op_.ratio;
            choose(view.floats(op_.scores) + row * width, std::min(complete, width), most, bits,
                   view.floats(op_.y) + row * most);
        }
    }

private:
    // In the order of scores, with one zero.
    static uint32_t bits_of(float score) {
        if (score != score) return UINT32_MAX;
        const auto bits = std::bit_cast<uint32_t>(score + 0.0f);
        return bits >> 31 ? ~bits : bits | 0x80000000u;
    }

    static void choose(const float* scores, uint64_t blocks, uint64_t most, uint32_t* bits, float* y) {
        uint32_t least = 0;
        uint64_t ties = blocks;  // of the least that are taken
        if (blocks > most) {
            for (uint64_t b = 0; b < blocks; ++b) bits[b] = bits_of(scores[b]);
            std::nth_element(bits, bits + most - 1, bits + blocks, std::greater<>());
            least = bits[most - 1];
            ties = most - uint64_t(std::count_if(bits, bits + blocks, [&](uint32_t b) { return b > least; }));
        }
        uint64_t taken = 0;
        for (uint64_t b = 0; b < blocks && taken < most; ++b) {
            const uint32_t score = bits_of(scores[b]);
            if (score < least || (score == least && ties == 0)) continue;
            if (score == least) --ties;
            y[taken++] = float(b);
        }
        std::fill(y + taken, y + most, -1.0f);
    }

    ChooseBlocks op_;
};

// What a row sees are runs of neighbouring tokens. Each is attended to apart, and the parts are merged. Where
// no row has more blocks than are chosen, it is attention to everything.
class BlockAttentionKernel : public CpuKernel {
public:
    BlockAttentionKernel(const BlockAttention& op, const Plan& plan, Isa isa)
        : op_(op),
          isa_(isa),
          group_(op.shape.heads / op.shape.kv_heads),
          dense_(make_attention_kernel(Attention{op.q, op.y, op.cache, op.shape, op.scale}, plan, isa)) {}

    Precision precision(uint64_t rows) const override {
        return loosest(dense().precision(rows), dense().precision(std::max<uint64_t>(rows, group_)));
    }
    uint64_t shared_scratch(const Plan& plan, uint32_t workers) const override {
        const uint64_t few = uint64_t(kFewRows) * op_.shape.kv_heads * runs(plan) * part_bytes();
        return std::max(dense().shared_scratch(plan, workers), few);
    }
    uint64_t thread_scratch(const Plan& plan) const override {
        const uint64_t own = attend_scratch_bytes(1, group_, op_.shape.head_dim);
        const uint64_t parts = plan.max_rows > kFewRows ? runs(plan) * part_bytes() : 0;
        return std::max(dense().thread_scratch(plan), parts + own);
    }

    void run(const RunView& view, const Worker& worker, uint32_t step) const override {
        const auto sees_all = [&](const Row& row) {
            return (uint64_t(row.position) + 1) / op_.ratio <= view.width(op_.chosen);
        };
        if (std::all_of(view.params.rows.begin(), view.params.rows.end(), sees_all))
            dense().run(view, worker, step);
        else if (view.rows() <= kFewRows)
            run_few(view, worker, step);
        else
            run_many(view, worker, step);
    }

private:
    static constexpr uint32_t kFewRows = 4;  // up to this many rows a row's runs are shared by workers
    static constexpr uint32_t kShares = 32;  // of a row's runs, each worth a claim

    const CpuKernel& dense() const { return static_cast<const CpuKernel&>(*dense_); }
    uint64_t runs(const Plan& plan) const { return uint64_t(plan.slot(op_.chosen).width) + 1; }
    uint64_t part_floats() const { return uint64_t(group_) * (op_.shape.head_dim + 2); }
    uint64_t part_bytes() const { return part_floats() * sizeof(float); }

    // Calls each(index, first token, one behind the last) of a row's runs; returns how many there are.
    template <typename Each>
    uint64_t each_run(const RunView& view, uint64_t row, Each each) const {
        const uint64_t position = view.params.rows[row].position, most = view.width(op_.chosen);
        const uint64_t complete = (position + 1) / op_.ratio;
        const float* chosen = view.floats(op_.chosen) + row * most;
        uint64_t count = 0, begin = 0, end = 0;
        const auto add = [&](uint64_t from, uint64_t to) {
            if (from != end && end > begin) each(count++, begin, end);
            if (from != end) begin = from;
            end = to;
        };
        for (uint64_t i = 0; i < most && chosen[i] >= 0.0f && chosen[i] < float(complete); ++i) {
            const auto block = uint64_t(chosen[i]);
            add(block * op_.ratio, (block + 1) * op_.ratio);
        }
        if (complete * op_.ratio <= position) add(complete * op_.ratio, position + 1);
        if (end > begin) each(count++, begin, end);
        return count;
    }

    Attend attend(const RunView& view, uint64_t row, uint32_t kv_head, std::byte* scratch) const {
        const size_t stride = size_t(op_.shape.heads) * op_.shape.head_dim;
        const size_t at = row * stride + size_t(kv_head) * group_ * op_.shape.head_dim;
        Attend work;
        work.q = view.floats(op_.q) + at;
        work.q_stride = work.out_stride = stride;
        work.rows = 1;
        work.group = group_;
        work.kv = view.caches.head(op_.cache, kv_head, view.params.pages_of(row));
        work.first_position = view.params.rows[row].position;
        work.scale = op_.scale;
        work.scratch = scratch;
        return work;
    }

    void attend_run(Attend work, uint64_t begin, uint64_t end, float* part) const {
        work.key_begin = begin;
        work.key_end = end;
        work.partial = part;
        attention_kernels(isa_).attend(work);
    }

    void merge(Attend work, const RunView& view, uint64_t row, uint32_t kv_head, const float* parts,
               uint64_t count) const {
        work.out = view.floats(op_.y) + row * work.out_stride + size_t(kv_head) * group_ * op_.shape.head_dim;
        attention_kernels(isa_).combine(parts, count, part_floats(), work);
    }

    void run_few(const RunView& view, const Worker& worker, uint32_t step) const {
        const uint32_t kv_heads = op_.shape.kv_heads;
        auto* const shared = reinterpret_cast<float*>(view.shared_scratch);
        const auto parts_of = [&](uint64_t unit) { return shared + unit * runs(view.plan) * part_floats(); };
        Claims claims(view, worker, step, uint64_t(view.rows()) * kv_heads * kShares);
        for (uint64_t i; claims.next(i);) {
            const uint64_t unit = i / kShares, row = unit / kv_heads;
            const Attend work = attend(view, row, uint32_t(unit % kv_heads), view.scratch(worker));
            each_run(view, row, [&](uint64_t run, uint64_t begin, uint64_t end) {
                if (run % kShares == i % kShares)
                    attend_run(work, begin, end, parts_of(unit) + run * part_floats());
            });
        }
        worker.barrier();
        const auto mine = worker.share(uint64_t(view.rows()) * kv_heads);
        for (uint64_t unit = mine.begin; unit < mine.end; ++unit) {
            const uint64_t row = unit / kv_heads;
            const auto kv_head = uint32_t(unit % kv_heads);
            const uint64_t count = each_run(view, row, [](uint64_t, uint64_t, uint64_t) {});
            merge(attend(view, row, kv_head, view.scratch(worker)), view, row, kv_head, parts_of(unit),
                  count);
        }
    }

    void run_many(const RunView& view, const Worker& worker, uint32_t step) const {
        const uint32_t kv_heads = op_.shape.kv_heads;
        auto* const parts = reinterpret_cast<float*>(view.scratch(worker));
        std::byte* const scratch = view.scratch(worker) + runs(view.plan) * part_bytes();
        Claims claims(view, worker, step, uint64_t(view.rows()) * kv_heads);
        for (uint64_t unit; claims.next(unit);) {
            const uint64_t row = unit / kv_heads;
            const auto kv_head = uint32_t(unit % kv_heads);
            const Attend work = attend(view, row, kv_head, scratch);
            const uint64_t count = each_run(view, row, [&](uint64_t run, uint64_t begin, uint64_t end) {
                attend_run(work, begin, end, parts + run * part_floats());
            });
            merge(work, view, row, kv_head, parts, count);
        }
    }

    BlockAttention op_;
    Isa isa_;
    uint32_t group_;  // query heads of a kv head
    std::unique_ptr<Kernel> dense_;
};

}  // namespace

std::unique_ptr<Kernel> make_block_kernel(const Op& op, const Plan& plan, Isa isa) {
    if (const auto* o = std::get_if<BlockMean>(&op)) return std::make_unique<BlockMeanKernel>(*o);
    if (const auto* o = std::get_if<BlockScores>(&op)) return std::make_unique<BlockScoresKernel>(*o);
    if (const auto* o = std::get_if<ChooseBlocks>(&op)) return std::make_unique<ChooseBlocksKernel>(*o);
    if (const auto* o = std::get_if<BlockAttention>(&op))
        return std::make_unique<BlockAttentionKernel>(*o, plan, isa);
    return nullptr;
}

}  // namespace redline::cpu
