// BlockMean, BlockScores, ChooseBlocks, and attention to blocks.
#include "backends/cpu/kernels/block_keys.h"
#include "backends/cpu/kernels/read_key.h"
#include "backends/cpu/runtime/executable.h"

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
                if (float* behind = view.states_behind(op_.state, row)) behind[i] = sum;
            }
            to[i] = sum;
        }
    }

private:
    BlockMean op_;
};

// Units are stretches of the blocks that a sequence's last row sees, for all of its rows.
class BlockScoresKernel : public CpuKernel {
public:
    BlockScoresKernel(const BlockScores& op, Isa isa) : op_(op), kernels_(block_key_kernels(isa)) {}

    uint64_t thread_scratch(const Plan& plan) const override {
        const uint64_t dims = plan.cache(op_.cache).head_dim;
        return dims * ((kScoredKeys + 1) * sizeof(float) + sizeof(uint16_t));
    }
    void run(const RunView& view, const Worker& worker, uint32_t step) const override {
        const uint64_t stretches = (view.width(op_.y) + kBlocks - 1) / kBlocks;
        Claims claims(view, worker, step, stretches * view.segments.size());
        for (uint64_t i; claims.next(i);) {
            const uint64_t first = i % stretches * kBlocks,
                           end = std::min(first + kBlocks, uint64_t(view.width(op_.y)));
            for (uint64_t block = first; block < end; block += kScoredKeys)
                score(view, view.segments[i / stretches], block, std::min(block + kScoredKeys, end),
                      reinterpret_cast<float*>(view.scratch(worker)));
        }
    }

private:
    static constexpr uint64_t kBlocks = 4 * kScoredKeys;

    uint64_t token_of(uint64_t block) const { return block * op_.ratio + op_.ratio - 1; }

    void score(const RunView& view, const Segment& segment, uint64_t first, uint64_t end, float* keys) const {
        const uint64_t width = view.width(op_.y), dims = view.plan.cache(op_.cache).head_dim;
        const uint32_t last = segment.first + segment.rows;
        const uint64_t seen = (uint64_t(view.params.rows[last - 1].position) + 1) / op_.ratio;
        if (first < seen) read_keys(view, segment, first, std::min(end, seen), keys);
        for (uint32_t row = segment.first; row < last; ++row) {
            float scores[kScoredKeys] = {};
            const uint64_t position = view.params.rows[row].position;
            if (position >= token_of(first)) {
                const float* weights = op_.weights ? view.floats(op_.weights) + row * op_.heads : nullptr;
                kernels_.score(
                    {keys, view.floats(op_.q) + row * op_.heads * dims, weights, op_.heads, dims, scores});
            }
            for (uint64_t block = first; block < end; ++block)
                view.floats(op_.y)[row * width + block] =
                    position < token_of(block) ? 0.0f : scores[block - first];
        }
    }

    // Of blocks [first, end), side by side: as a cache has those of blocks that follow each other.
    void read_keys(const RunView& view, const Segment& segment, uint64_t first, uint64_t end,
                   float* keys) const {
        const CacheInfo& info = view.plan.cache(op_.cache);
        const uint64_t dims = info.head_dim;
        const std::span<const uint32_t> pages = view.params.pages_of(segment.first);
        const KvHead head = view.caches.head(op_.cache, 0, pages);
        const uint64_t row = info.row_of(token_of(first), pages);
        if (head.format.keys == CacheType::f16 && end - first == kScoredKeys && row % kKeyBlock == 0 &&
            info.row_of(token_of(end - 1), pages) == row + kScoredKeys - 1) {
            const KvLayout layout(head);
            kernels_.widen(layout.half_keys() + layout.key_index(row, 0), kScoredKeys * dims, keys);
            return;
        }
        float* const key = keys + kScoredKeys * dims;
        std::fill_n(keys, kScoredKeys * dims, 0.0f);
        for (uint64_t block = first; block < end; ++block) {
            read_key(head, info.row_of(token_of(block), pages), key, reinterpret_cast<uint16_t*>(key + dims));
            for (uint64_t i = 0; i < dims; ++i) keys[i * kScoredKeys + block - first] = key[i];
        }
    }

    static_assert(kScoredKeys == kKeyBlock);
    BlockScores op_;
    const BlockKeyKernels& kernels_;
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
    BlockAttentionKernel(const Attention& op, const Plan& plan, Isa isa)
        : op_(op),
          isa_(isa),
          group_(op.shape.heads / op.shape.kv_heads),
          dense_(make_attention_kernel(Attention{op.q, op.y, op.cache, op.shape, op.scale}, plan, isa)) {}

    Precision precision(uint64_t rows) const override {
        return loosest(dense().precision(rows), dense().precision(std::max<uint64_t>(rows, group_)));
    }
    // How the work is divided depends on all rows.
    bool alike_rows(const Plan&) const override { return false; }
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
            return (uint64_t(row.position) + 1) / op_.keys.ratio <= view.width(op_.keys.chosen);
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
    uint64_t runs(const Plan& plan) const { return uint64_t(plan.slot(op_.keys.chosen).width) + 1; }
    uint64_t part_floats() const { return uint64_t(group_) * (op_.shape.head_dim + 2); }
    uint64_t part_bytes() const { return part_floats() * sizeof(float); }

    // Calls each(index, first token, one behind the last) of a row's runs; returns how many there are.
    template <typename Each>
    uint64_t each_run(const RunView& view, uint64_t row, Each each) const {
        const uint64_t position = view.params.rows[row].position, most = view.width(op_.keys.chosen);
        const uint64_t complete = (position + 1) / op_.keys.ratio;
        const float* chosen = view.floats(op_.keys.chosen) + row * most;
        uint64_t count = 0, begin = 0, end = 0;
        const auto add = [&](uint64_t from, uint64_t to) {
            if (from != end && end > begin) each(count++, begin, end);
            if (from != end) begin = from;
            end = to;
        };
        for (uint64_t i = 0; i < most && chosen[i] >= 0.0f && chosen[i] < float(complete); ++i) {
            const auto block = uint64_t(chosen[i]);
            add(block * op_.keys.ratio, (block + 1) * op_.keys.ratio);
        }
        if (complete * op_.keys.ratio <= position) add(complete * op_.keys.ratio, position + 1);
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

    Attention op_;
    Isa isa_;
    uint32_t group_;  // query heads of a kv head
    std::unique_ptr<Kernel> dense_;
};

}  // namespace

std::unique_ptr<Kernel> make_block_kernel(const Op& op, const Plan& plan, Isa isa) {
    if (const auto* o = std::get_if<BlockMean>(&op)) return std::make_unique<BlockMeanKernel>(*o);
    if (const auto* o = std::get_if<BlockScores>(&op)) return std::make_unique<BlockScoresKernel>(*o, isa);
    if (const auto* o = std::get_if<ChooseBlocks>(&op)) return std::make_unique<ChooseBlocksKernel>(*o);
    if (const auto* o = attention_to(Keys::blocks, op))
        return std::make_unique<BlockAttentionKernel>(*o, plan, isa);
    return nullptr;
}

}  // namespace redline::cpu
