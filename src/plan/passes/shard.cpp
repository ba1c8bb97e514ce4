#include "plan/passes/shard.h"

#include <algorithm>

namespace redline {

static uint64_t count_of(const Runs& runs, uint64_t whole) {
    return runs.empty() ? whole : length_of(runs);
}

Shape WeightSlice::shape(const Shape& whole) const {
    return {count_of(matrices, whole.count), count_of(rows, whole.rows), count_of(cols, whole.cols)};
}

namespace {

// Writes the plan of a rank, step by step.
class RankWriter {
public:
    RankWriter(const Plan& whole, const Axes& axes, size_t rank) : whole_(whole), axes_(axes), rank_(rank) {
        Plan& plan = out_.plan;
        plan = whole;
        plan.steps.clear();
        plan.weights.clear();
        out_.caches.resize(whole.caches.size());
        for (size_t i = 0; i < plan.slots.size(); ++i)
            plan.slots[i].width = uint32_t(axes.width_of(whole, {int32_t(i)}, rank));
        const uint64_t outputs = whole.slot(whole.output).width;
        out_.outputs = {0, outputs};
        if (!axes.cuts(whole.output)) return;
        const Runs mine = axes.runs_of(whole.output, rank);
        out_.outputs = mine.empty() ? Run{} : mine[0];
    }

    RankPlan write() && {
        for (const Step& step : whole_.steps) {
            layer_ = step.layer;
            std::visit([this](const auto& op) { add(op); }, step.op);
        }
        return std::move(out_);
    }

private:
    bool cuts(Slot slot) const { return slot && axes_.cuts(slot); }
    bool has(Slot slot) const { return out_.plan.slot(slot).width > 0; }
    Runs runs(Slot slot) const { return axes_.runs_of(slot, rank_); }
    uint64_t width(Slot slot) const { return out_.plan.slot(slot).width; }
    // How many of `all` things that the units of an axis have together are this rank's.
    uint32_t part(uint32_t all, Slot of) const {
        const Axis& axis = axes_.axis_of(of);
        return uint32_t(all / axis.units * axis.of(rank_).count);
    }
    bool is_pending(Slot slot) const { return std::ranges::count(pending_, slot) > 0; }

    void push(Op op) { out_.plan.steps.push_back({std::move(op), layer_}); }

    // ---- Weights and caches.
    Weight slice(WeightSlice wanted) {
        const auto found = std::ranges::find(out_.weights, wanted);
        const Weight index{int32_t(found - out_.weights.begin())};
        if (found != out_.weights.end()) return index;
        WeightInfo info = whole_.weight(wanted.of);
        info.tensor.shape = wanted.shape(info.tensor.shape);
        out_.plan.weights.push_back(std::move(info));
        out_.weights.push_back(std::move(wanted));
        return index;
    }
    Weight all(Weight w) { return w ? slice({w}) : w; }
    // A run of everything is none, so that a rank that has everything has the whole weight.
    static Runs normal(Runs runs, uint64_t whole) {
        return runs.size() == 1 && runs[0] == Run{0, whole} ? Runs() : runs;
    }
    Weight rows_of(Weight w, Runs rows) {
        return slice({w, {}, normal(std::move(rows), whole_.weight(w).tensor.shape.rows), {}});
    }
    Weight cols_of(Weight w, Runs cols) {
        const Tensor& whole = whole_.weight(w).tensor;
        for (const Run& run : cols)
            RL_CHECK(run.first % whole.format->block == 0 && run.count % whole.format->block == 0,
                     "columns {} to {} of {} are no whole blocks", run.first, run.first + run.count,
                     whole.name);
        return slice({w, {}, {}, normal(std::move(cols), whole.shape.cols)});
    }
    Weight elements_of(Weight w, Runs elements) {
        return w ? slice({w, {}, {}, normal(std::move(elements), whole_.weight(w).tensor.shape.elements())})
                 : w;
    }
    // Elements of a vector that has `each` for each element of a slot's rows.
    Weight elements_of(Weight w, Slot like, uint64_t each) {
        Runs elements = runs(like);
        for (Run& run : elements) run = {run.first * each, run.count * each};
        return elements_of(w, std::move(elements));
    }
    void cut_cache(Cache cache, uint64_t heads, Runs parts) {
        CacheInfo& info = out_.plan.caches[size_t(cache.index)];
        if (info.is_state())
            info.state_floats = length_of(parts);
        else
            info.kv_heads = uint32_t(heads);
        out_.caches[size_t(cache.index)] = {false, std::move(parts)};
    }

    // ---- Sums.
    // Adds the parts of those slots that an op reads, in front of it.
    void settle(const Access& used, Slot but = {}) {
        std::vector<Slot> slots;
        for (const Slot slot : used.reads)
            if (slot != but && is_pending(slot) && std::ranges::count(slots, slot) == 0)
                slots.push_back(slot);
        sum(std::move(slots));
        // A slot that is overwritten needs no sum.
        for (const Slot slot : used.writes)
            if (slot != but) std::erase(pending_, slot);
    }
    void sum(std::vector<Slot> slots) {
        if (slots.empty()) return;
        for (const Slot slot : slots) std::erase(pending_, slot);
        // Between two sums is a step, since plans are cut there.
        const size_t last = out_.sums.empty() ? 0 : out_.sums.back().before;
        if (out_.plan.steps.size() == last) push(each::scale(slots[0], 1.0f));
        out_.sums.push_back({out_.plan.steps.size(), std::move(slots)});
    }
    void zero(Slot y, bool is_defined) {
        if (!is_defined) {
            const Slot any = access(whole_.steps.front().op).writes.at(0);
            const uint32_t elements = uint32_t(width(y));
            push(CopyParts{any, y, elements, 1, 0, 0, 0, 1});
        }
        push(each::clamp(y, 0.0f, 0.0f));
    }
    // Begins a part of a sum in y; true: what the op computes is added to what y has. Of the ranks the first
    // keeps what y had before.
    bool begin_sum(Slot y, bool accumulate) {
        const bool first = !is_pending(y) || !accumulate;
        if (!is_pending(y)) pending_.push_back(y);
        return accumulate && (!first || rank_ == 0);
    }

    // ---- Ops that are whole, or whose slots are divided element by element.
    void add(const auto& op) { add_alike(op); }
    void add_alike(const auto& op) {
        settle(op.access());
        bool is_cut = false, is_there = true;
        const Access used = op.access();
        for (const auto* list : {&used.reads, &used.writes})
            for (const Slot slot : *list)
                if (cuts(slot)) is_cut = true, is_there &= has(slot);
        auto mine = op;
        if (!is_cut) {
            mine.visit_indices([&](auto&... index) { (take_whole(index), ...); });
            push(std::move(mine));
            return;
        }
        divide_cache(op);
        if (!is_there) return;
        divide(mine, op);
        push(std::move(mine));
    }
    void take_whole(Weight& w) { w = all(w); }
    void take_whole(auto&) {}

    void divide_cache(const auto&) {}
    void divide_cache(const KvStore& op) {
        const Run heads = axes_.axis_of(op.k).of(rank_);
        cut_cache(op.cache, heads.count, {heads});
    }
    void divide_cache(const RopeStore& op) { divide_cache(KvStore{op.k, op.v, op.cache, op.shape}); }
    void divide_cache(const Attend& op) { divide_cache(op.store); }
    void divide_cache(const Convolve& op) {
        Runs all;
        const uint64_t whole = whole_.slot(op.x).width;
        for (uint64_t tap = 0; tap < op.kept(); ++tap)
            for (const Run& run : runs(op.x)) all.push_back({tap * whole + run.first, run.count});
        cut_cache(op.state, 0, std::move(all));
    }
    void divide_cache(const DeltaNet& op) {
        const uint64_t each = uint64_t(op.shape.key_dim) * op.shape.value_dim;
        Runs floats = runs(op.beta);
        for (Run& run : floats) run = {run.first * each, run.count * each};
        cut_cache(op.state, 0, std::move(floats));
    }
    void divide_cache(const StateScan& op) {
        const uint64_t each = uint64_t(op.shape.head_dim) * op.shape.state_dim;
        Runs floats = runs(op.step);
        for (Run& run : floats) run = {run.first * each, run.count * each};
        cut_cache(op.state, 0, std::move(floats));
    }

    void divide(auto&, const auto& op) { RL_CHECK(false, "{} is divided over ranks", op.kName); }
    void divide(Each& mine, const Each& op) {
        if (op.column) mine.column = elements_of(op.column, op.y, 1);
    }
    void divide(Center&, const Center&) {}
    void divide(Hadamard&, const Hadamard&) {}
    void divide(OutputGate&, const OutputGate&) {}
    void divide(RmsNorm& mine, const RmsNorm& op) {
        mine.norm.gain = op.gain_of_row(whole_) ? elements_of(op.norm.gain, op.y, 1) : all(op.norm.gain);
    }
    void divide(Rope& mine, const Rope& op) { mine.heads = uint32_t(width(op.x) / op.head_dim); }
    void divide(KvStore& mine, const KvStore& op) { divide_heads(mine.shape, op.k); }
    void divide_heads(HeadShape& shape, Slot of) const {
        shape.heads = part(shape.heads, of);
        shape.kv_heads = part(shape.kv_heads, of);
    }
    void divide(RopeStore& mine, const RopeStore& op) {
        divide_heads(mine.shape, op.k);
        mine.q_norm.gain = all(op.q_norm.gain);
        mine.k_norm.gain = all(op.k_norm.gain);
    }
    void divide(Attention& mine, const Attention& op) {
        if (op.keys.kind == Keys::latents) {
            mine.shape.heads = part(op.shape.heads, op.q);
            return;
        }
        divide_heads(mine.shape, op.q);
        const uint64_t group = op.shape.heads / op.shape.kv_heads;
        const Run heads = axes_.axis_of(op.q).of(rank_);
        mine.sinks = elements_of(op.sinks, Runs{{heads.first * group, heads.count * group}});
    }
    void divide(Attend& mine, const Attend& op) {
        divide(mine.store, op.store);
        divide(mine.attention, op.attention);
    }
    // A product with a matrix for each head.
    void divide(Product& mine, const Product& op) {
        const Run units = axes_.axis_of(op.x).of(rank_);
        const uint64_t heads = whole_.weight(op.w()).tensor.shape.count,
                       each = heads / axes_.axis_of(op.x).units;
        mine.parts[0].w = slice({op.w(), normal({{units.first * each, units.count * each}}, heads), {}, {}});
    }
    void divide(Convolve& mine, const Convolve& op) {
        mine.w = elements_of(op.w, op.x, op.taps);
        mine.bias = elements_of(op.bias, op.x, 1);
    }
    void divide(DeltaNet& mine, const DeltaNet& op) {
        mine.shape.key_heads = part(op.shape.key_heads, op.y);
        mine.shape.heads = part(op.shape.heads, op.y);
        mine.a = elements_of(op.a, op.beta, 1);
        mine.dt = elements_of(op.dt, op.beta, 1);
    }
    void divide(StateScan& mine, const StateScan& op) {
        mine.shape.groups = part(op.shape.groups, op.y);
        mine.shape.heads = part(op.shape.heads, op.y);
        for (Weight StateScan::*vector : {&StateScan::a, &StateScan::step_bias, &StateScan::through})
            mine.*vector = elements_of(op.*vector, op.step, 1);
    }
    // The stripe that the parts are copied to, or from, may be behind others of this rank.
    void divide(CopyParts& mine, const CopyParts& op) {
        if (op.parts == 1 && op.width == whole_.slot(op.y).width) {
            mine.width = mine.x_stride = mine.y_stride = uint32_t(width(op.x));
            return;
        }
        mine.parts = part(op.parts, op.y);
        const uint64_t each = uint64_t(op.parts) / axes_.axis_of(op.y).units * op.y_stride;
        uint64_t at = 0;
        for (const Stripe& stripe : axes_.stripes_of(op.y)) {
            if (stripe.each == each && op.y_first >= stripe.first && op.y_first < stripe.first + each) {
                mine.y_first = uint32_t(at + op.y_first - stripe.first);
                return;
            }
            at += axes_.axis_of(op.y).of(rank_).count * stripe.each;
        }
    }

    // ---- Products.
    void add(const Product& op) {
        if (op.by() == By::head) return add_alike(op);
        if (cuts(op.x)) return add_part(op);
        settle(op.access());
        if (const Product mine = divided(op); mine.count > 0) push(mine);
    }
    // With the matrices that this rank has results of.
    Product divided(const Product& op) {
        Product mine = op;
        mine.parts = {};
        mine.count = 0;
        for (const Product::Part& part : op.all()) {
            const Slot y = op.target(part);
            if (!has(y)) continue;
            const uint64_t rows = whole_.weight(part.w).tensor.shape.rows;
            const Runs runs = cuts(y) ? part_runs(y, rows, op.y_rows()) : Runs();
            mine.parts[mine.count++] = {cuts(y) ? rows_of(part.w, runs) : all(part.w),
                                        cuts(y) ? bias_of(part.bias, runs, rows) : all(part.bias), part.y};
        }
        mine.norm.gain = all(op.norm.gain);
        return mine;
    }
    // The runs of one of the rows that stand side by side in a slot's.
    Runs part_runs(Slot slot, uint64_t width, uint32_t parts) const {
        return Axes::runs_of(axes_.axis_of(slot), stripes_of_part(axes_.stripes_of(slot), width, parts),
                             rank_);
    }
    // The same part of each matrix's bias.
    Weight bias_of(Weight bias, const Runs& one, uint64_t rows) {
        if (!bias) return bias;
        Runs elements;
        for (uint64_t at = 0; at < whole_.weight(bias).tensor.shape.elements(); at += rows)
            for (const Run& run : one) elements.push_back({at + run.first, run.count});
        return elements_of(bias, std::move(elements));
    }

    // The first rank adds the bias.
    Product part_of(const Product& op) {
        Product mine = op;
        const uint64_t cols = whole_.weight(op.w()).tensor.shape.cols;
        mine.parts[0].w = cols_of(op.w(), part_runs(op.x, cols, op.x_rows()));
        mine.parts[0].bias = rank_ == 0 ? all(op.bias()) : Weight{};
        mine.function = {};
        return mine;
    }
    // A function is of the whole sum, and weighted experts are always added to what y has.
    void add_part(const Product& op) {
        const Slot y = op.y();
        settle(op.access(), y);
        const bool onto = begin_sum(y, op.accumulate), weighted = bool(op.experts.scales);
        if (weighted ? !onto : !onto && !has(op.x)) zero(y, op.accumulate);
        if (has(op.x)) {
            Product mine = part_of(op);
            mine.accumulate = onto || weighted;
            push(mine);
        } else if (rank_ == 0 && op.bias()) {
            Product mine = op;
            mine.parts[0].bias = all(op.bias());
            push(redline::bias_of(mine));
        }
        if (!op.function) return;
        sum({y});
        push(each::apply(y, *op.function));
    }
    // The first rank has the whole block as one op; the others must not keep what they add to.
    void add(const ExpertBlock& op) {
        const SharedExpert& s = op.shared;
        if (rank_ > 0 || !has(op.gated.y()) || (s && !has(s.hidden))) {
            for (const Op& part : block_parts(op)) std::visit([this](const auto& o) { add(o); }, part);
            return;
        }
        settle(op.norm.access());
        ExpertBlock mine = op;
        mine.norm.norm.gain = all(op.norm.norm.gain);
        mine.route.visit_indices([this](auto&... index) { (take_whole(index), ...); });
        mine.gated = divided(op.gated);
        mine.linear = part_of(op.linear);
        if (s) {
            mine.shared.router = all(s.router);
            for (Weight SharedExpert::*w : {&SharedExpert::gate, &SharedExpert::up})
                mine.shared.*w = rows_of(s.*w, runs(s.hidden));
            mine.shared.down = cols_of(s.down, runs(s.hidden));
        }
        begin_sum(op.norm.x, true);
        push(mine);
    }

    const Plan& whole_;
    const Axes& axes_;
    size_t rank_;
    uint32_t layer_ = 0;
    RankPlan out_;
    std::vector<Slot> pending_;  // each rank has a part of their sums
};

}  // namespace

Result<std::vector<RankPlan>> shard(const Plan& plan, std::span<const double> shares) {
    RL_CHECK(!shares.empty(), "a plan is divided over no ranks");
    const Axes axes = RL_TRY(Axes::find(plan, shares));
    std::vector<RankPlan> ranks;
    for (size_t rank = 0; rank < shares.size(); ++rank) ranks.push_back(RankWriter(plan, axes, rank).write());
    for (const RankPlan& rank : ranks)
        for (const Step& step : rank.plan.steps)
            if (const Status fits = check(step.op, rank.plan); !fits)
                return error("layer {}: {} cannot be divided over devices: {}", step.layer, op_name(step.op),
                             fits.error().message);
    return ranks;
}

}  // namespace redline
