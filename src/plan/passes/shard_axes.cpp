#include "plan/passes/shard_axes.h"

#include <algorithm>
#include <cmath>
#include <map>
#include <numeric>

namespace redline {

uint64_t length_of(const Runs& runs) {
    uint64_t sum = 0;
    for (const Run& run : runs) sum += run.count;
    return sum;
}

Runs Axes::runs_of(const Axis& axis, const Stripes& stripes, size_t rank) {
    const Run units = axis.of(rank);
    Runs runs;
    for (const Stripe& stripe : stripes) {
        if (units.count == 0) break;
        const Run run{stripe.first + units.first * stripe.each, units.count * stripe.each};
        if (!runs.empty() && runs.back().first + runs.back().count == run.first)
            runs.back().count += run.count;
        else
            runs.push_back(run);
    }
    return runs;
}

Stripes stripes_of_part(const Stripes& whole, uint64_t width, uint64_t parts) {
    Stripes one;
    for (const Stripe& stripe : whole)
        if (stripe.first < width) one.push_back(stripe);
    if (one.empty() || one.size() * parts != whole.size()) return {};
    for (size_t i = 0; i < whole.size(); ++i) {
        const Stripe& first = one[i % one.size()];
        if (whole[i] != Stripe{first.first + i / one.size() * width, first.each}) return {};
    }
    return one;
}

// Ops of these kinds are the heart of a layer: where one cannot be divided, the model is not.
template <typename T>
constexpr bool kNeverCut = std::is_same_v<T, BlockMean> || std::is_same_v<T, BlockPool> ||
                           std::is_same_v<T, BlockScores> || std::is_same_v<T, ChooseBlocks>;

// First come the slots of ops that say how they are divided; from these the division goes on to all ops that
// work element by element. What a product reads or writes beyond that may be whole.
class AxisFinder {
public:
    explicit AxisFinder(const Plan& plan) : plan_(plan), users_(plan.slots.size()) {
        found_.slots_.resize(plan.slots.size());
        for (size_t i = 0; i < plan.steps.size(); ++i) {
            const Access used = access(plan.steps[i].op);
            for (const auto* list : {&used.reads, &used.writes, &used.scratch})
                for (const Slot slot : *list)
                    if (users_[size_t(slot.index)].empty() || users_[size_t(slot.index)].back() != i)
                        users_[size_t(slot.index)].push_back(i);
        }
    }

    Result<Axes> find(std::span<const double> shares) {
        for (step_ = 0; step_ < plan_.steps.size(); ++step_) {
            std::visit([this](const auto& op) { seed(op); }, plan_.steps[step_].op);
            spread();
        }
        for (size_t i = 0; i < plan_.steps.size() && !problem_; ++i) admit(i);
        for (size_t i = 0; i < plan_.steps.size() && !problem_; ++i) try_hidden(i);
        if (problem_) return *problem_;
        for (Axis& axis : found_.axes_) share_out(axis, shares);
        return std::move(found_);
    }

private:
    using Set = std::pair<Slot, Stripes>;
    static constexpr std::string_view kNoParts = "attention to chosen blocks has no parts for ranks";

    int32_t new_axis(uint64_t units, bool of_heads = false) {
        found_.axes_.push_back({uint32_t(units), 1, 1, plan_.steps[step_].layer, of_heads});
        return int32_t(found_.axes_.size() - 1);
    }
    int32_t axis_of_cache(Cache cache, uint64_t units) {
        const auto [known, added] = of_cache_.try_emplace(cache.index, 0);
        if (added) known->second = new_axis(units, true);
        return known->second;
    }
    void fail(std::string_view why) {
        if (problem_) return;
        const Step& step = plan_.steps[step_];
        problem_ = error("layer {}: {}{} cannot be divided over devices: {}", step.layer, op_name(step.op),
                         op_matrix(step.op, plan_), why);
    }

    void set(Slot slot, int32_t axis, Stripes stripes) {
        Axes::Cutting& cutting = found_.slots_[size_t(slot.index)];
        if (cutting.axis < 0) {
            cutting = {axis, std::move(stripes)};
            fresh_.push_back(slot);
        } else if (cutting.axis != axis || cutting.stripes != stripes) {
            fail("two ops want its rows divided in two ways");
        }
    }

    // ---- Ops that say how they are divided.
    void seed(const auto& op) {
        if constexpr (kNeverCut<std::decay_t<decltype(op)>>) fail(kNoParts);
    }
    void seed(const Attention& op) {
        if (op.keys.kind == Keys::blocks || op.keys.kind == Keys::entries) return fail(kNoParts);
        if (op.keys.kind == Keys::latents) {
            const int32_t axis = new_axis(op.shape.heads, true);
            set(op.q, axis, {{0, op.shape.head_dim}});
            return set(op.y, axis, {{0, op.value_dim(plan_)}});
        }
        const int32_t axis = axis_of_cache(op.cache, op.shape.kv_heads);
        const uint64_t group = op.shape.heads / op.shape.kv_heads;
        for (const Slot slot : {op.q, op.y}) set(slot, axis, {{0, group * op.shape.head_dim}});
    }
    void seed(const KvStore& op) {
        const int32_t axis = axis_of_cache(op.cache, op.shape.kv_heads);
        for (const Slot slot : {op.k, op.v}) set(slot, axis, {{0, op.shape.head_dim}});
    }
    void seed(const RopeStore& op) {
        seed(KvStore{op.k, op.v, op.cache, op.shape});
        const uint64_t group = op.shape.heads / op.shape.kv_heads;
        set(op.q, axis_of_cache(op.cache, op.shape.kv_heads), {{0, group * op.shape.head_dim}});
    }
    void seed(const Attend& op) {
        seed(op.store);
        seed(op.attention);
    }
    // Heads of keys with the heads of values that they serve.
    void seed(const DeltaNet& op) {
        const DeltaShape& s = op.shape;
        const int32_t axis = axis_of_cache(op.state, s.key_heads);
        const uint64_t served = s.heads / s.key_heads;
        const auto of_values = [&](uint64_t first, uint64_t width) {
            Stripes all;
            if (!s.in_turns) all.push_back({first, served * width});
            for (uint64_t i = 0; s.in_turns && i < served; ++i)
                all.push_back({first + i * s.key_heads * width, width});
            return all;
        };
        Stripes qkv = {{0, s.key_dim}, {s.keys(), s.key_dim}};
        for (const Stripe& stripe : of_values(2 * uint64_t(s.keys()), s.value_dim)) qkv.push_back(stripe);
        set(op.qkv, axis, std::move(qkv));
        set(op.beta, axis, of_values(0, 1));
        set(op.alpha, axis, of_values(0, 1));
        set(op.y, axis, of_values(0, s.value_dim));
    }
    // Groups of heads with the vectors that they share.
    void seed(const StateScan& op) {
        const ScanShape& s = op.shape;
        const int32_t axis = axis_of_cache(op.state, s.groups);
        const uint64_t heads = s.heads / s.groups;
        set(op.x, axis,
            {{0, heads * s.head_dim},
             {s.inner(), s.state_dim},
             {s.inner() + uint64_t(s.groups) * s.state_dim, s.state_dim}});
        set(op.step, axis, {{0, heads}});
        set(op.y, axis, {{0, heads * s.head_dim}});
    }
    // Hidden rows of gated FFNs, and logits.
    void seed(const Product& op) {
        const Slot y = op.y();
        if (found_.cuts(y)) return;
        if (op.act)
            hidden(y, plan_.slot(y).width / op.y_rows(), op.y_rows());
        else if (op.by() == By::row && y == plan_.output && plan_.slot(y).of_outputs)
            hidden(y, plan_.slot(y).width, 1);
    }
    void seed(const ExpertBlock& op) {
        for (const Op& part : block_parts(op)) std::visit([this](const auto& o) { seed(o); }, part);
    }
    void hidden(Slot y, uint64_t units, uint64_t parts) {
        const int32_t axis = new_axis(units);
        found_.axes_[size_t(axis)].soft_grain = kKernelRows;
        Stripes stripes;
        for (uint64_t i = 0; i < parts; ++i) stripes.push_back({i * units, 1});
        set(y, axis, std::move(stripes));
    }

    // ---- From slots to slots.
    // A slot of an op whose rows are cut like those of the others, and how many elements of it go with one
    // of theirs.
    struct Alike {
        Slot slot;
        uint64_t elements = 1;
    };
    std::vector<Alike> alike(const Op& op) const {
        if (const auto* o = std::get_if<RmsNorm>(&op))
            return o->gate ? std::vector<Alike>{{o->x}, {o->y}, {o->gate}}
                           : std::vector<Alike>{{o->x}, {o->y}};
        if (const auto* o = std::get_if<Each>(&op))
            return o->z   ? std::vector<Alike>{{o->x}, {o->z}, {o->y}}
                   : o->x ? std::vector<Alike>{{o->x}, {o->y}}
                          : std::vector<Alike>();
        if (const auto* o = std::get_if<Center>(&op)) return {{o->x}, {o->y}};
        if (const auto* o = std::get_if<Hadamard>(&op)) return {{o->x}, {o->y}};
        if (const auto* o = product_by(By::head, op)) return {{o->x, o->strides.x}, {o->y(), o->strides.y}};
        if (const auto* o = std::get_if<OutputGate>(&op))
            return {{o->x, plan_.slot(o->x).width}, {o->y, plan_.slot(o->y).width}};
        if (const auto* o = std::get_if<Convolve>(&op)) {
            std::vector<Alike> all = {{o->x}, {o->y}};
            for (const Slot factor : {o->before, o->behind})
                if (factor) all.push_back({factor});
            return all;
        }
        if (const auto* o = std::get_if<CopyParts>(&op)) {
            const uint64_t x = plan_.slot(o->x).width, y = plan_.slot(o->y).width;
            if (o->parts == 1 && x == o->width && y == o->width) return {{o->x}, {o->y}};
            const bool all_of_both = o->x_stride > 0 && x == uint64_t(o->parts) * o->x_stride &&
                                     y == uint64_t(o->parts) * o->y_stride;
            if (o->parts > 1 && all_of_both) return {{o->x, o->x_stride}, {o->y, o->y_stride}};
        }
        return {};
    }

    // Copies of parts to one of the stripes of y: x has the parts of each unit side by side.
    void spread_to_source(const CopyParts& op) {
        if (!found_.cuts(op.y) || op.parts < 2) return;
        const uint64_t units = found_.axis_of(op.y).units, each = op.parts / units;
        if (op.parts % units != 0 || plan_.slot(op.x).width != uint64_t(op.parts) * op.x_stride) return;
        for (const Stripe& stripe : found_.stripes_of(op.y))
            if (stripe == Stripe{op.y_first, each * op.y_stride})
                set(op.x, found_.slots_[size_t(op.y.index)].axis, {{0, each * op.x_stride}});
    }

    void spread() {
        while (!fresh_.empty() && !problem_) {
            const Slot from = fresh_.back();
            fresh_.pop_back();
            const size_t before = step_;
            for (const size_t user : users_[size_t(from.index)]) {
                step_ = user;
                spread(plan_.steps[user].op, from);
            }
            step_ = before;
        }
    }
    void spread(const Op& op, Slot from) {
        const std::vector<Alike> all = alike(op);
        const auto source = std::ranges::find(all, from, &Alike::slot);
        if (const auto* copy = std::get_if<CopyParts>(&op); copy && all.empty()) spread_to_source(*copy);
        if (source == all.end()) return;
        const Axes::Cutting cutting = found_.slots_[size_t(from.index)];
        for (const Alike& other : all) {
            if (other.slot == from) continue;
            Stripes stripes;
            for (const Stripe& stripe : cutting.stripes) {
                const uint64_t first = stripe.first * other.elements, each = stripe.each * other.elements;
                if (first % source->elements != 0 || each % source->elements != 0)
                    return fail("a part of a head is in its rows");
                stripes.push_back({first / source->elements, each / source->elements});
            }
            set(other.slot, cutting.axis, std::move(stripes));
            set_.push_back(other.slot);
        }
    }

    // ---- Whether ops can be divided so.
    bool cuts(Slot slot) const { return slot && found_.cuts(slot); }
    Axis& axis_of(Slot slot) { return found_.axes_[size_t(found_.slots_[size_t(slot.index)].axis)]; }

    void admit(size_t step) {
        step_ = step;
        std::visit([this](const auto& op) { admit(op); }, plan_.steps[step].op);
    }
    void admit(const auto& op) {
        const Access used = op.access();
        for (const auto* list : {&used.reads, &used.writes})
            for (const Slot slot : *list)
                if (cuts(slot)) return admit_cut(op);
    }
    // The hidden rows are within the op.
    void admit(const ExpertBlock& op) {
        for (const Op& part : block_parts(op)) std::visit([this](const auto& o) { admit(o); }, part);
    }
    void admit_cut(const auto&) { fail("it needs whole rows"); }
    void admit_cut(const Each& op) {
        if (op.x) admit_all(op);
        if (op.column) admit_vector(op.column);
    }
    void admit_cut(const Attention& op) { admit_vector(op.sinks); }
    void admit_cut(const KvStore&) {}
    void admit_cut(const RopeStore&) {}
    void admit_cut(const Attend& op) { admit_vector(op.attention.sinks); }
    void admit_cut(const StateScan&) {}
    void admit_cut(const DeltaNet&) {}
    void admit_cut(const Convolve& op) {
        admit_all(op);
        for (const Weight w : {op.w, op.bias}) admit_vector(w);
    }
    void admit_cut(const RmsNorm& op) {
        admit_all(op);
        whole_groups(op.x, op.width, "a norm of whole rows needs those of all ranks");
        if (op.gain_of_row(plan_)) admit_vector(op.norm.gain);
    }
    void admit_cut(const Center& op) {
        admit_all(op);
        whole_groups(op.x, op.width, "a mean of whole rows needs those of all ranks");
    }
    void admit_cut(const Hadamard& op) {
        admit_all(op);
        whole_groups(op.x, op.width, "a rotation would be divided");
    }
    void admit_cut(const Rope& op) { whole_groups(op.x, op.head_dim, "a head would be divided"); }
    void admit_cut(const OutputGate& op) {
        admit_all(op);
        whole_groups(op.y, op.head_dim, "a head would be divided");
    }
    void admit_cut(const CopyParts& op) {
        if (op.parts == 1 && alike(op).size() == 2) return admit_all(op);
        if (!cuts(op.x) || !cuts(op.y)) return fail("it copies between whole rows and parts of them");
        if (op.parts % axis_of(op.y).units != 0 || found_.stripes_of(op.x).size() != 1)
            fail("the parts that it copies are no whole units");
    }
    void admit_cut(const Product& op) {
        if (op.by() == By::head) return admit_all(op);
        if (!cuts(op.x)) return admit_results(op);
        const uint64_t cols = plan_.weight(op.w()).tensor.shape.cols;
        const Stripes stripes = stripes_of_part(found_.stripes_of(op.x), cols, op.x_rows());
        if (op.count > 1 || op.norm || cuts(op.y()) || stripes.empty()) return fail("its input is divided");
        admit_columns(op.w(), axis_of(op.x), stripes);
    }
    void admit_results(const Product& op) {
        for (const Product::Part& part : op.all()) {
            const Slot y = op.target(part);
            if (!cuts(y)) continue;
            admit_vector(part.bias);
            const uint64_t rows = plan_.weight(part.w).tensor.shape.rows;
            if (op.experts.scales || stripes_of_part(found_.stripes_of(y), rows, op.y_rows()).empty())
                fail("its experts would be divided in different ways");
        }
    }
    // All slots of an op that works element by element have to be cut.
    void admit_all(const auto& op) {
        for (const Alike& one : alike(Op(op)))
            if (!cuts(one.slot)) return fail("a part of its slots is divided");
    }
    void admit_vector(Weight w) {
        if (w && plan_.weight(w).tensor.format->block != 1) fail("its vector is in blocks");
    }
    void whole_groups(Slot slot, uint64_t width, std::string_view why) {
        for (const Stripe& stripe : found_.stripes_of(slot))
            if (stripe.each % width != 0 || stripe.first % width != 0) return fail(why);
    }
    // Columns are cut between blocks of the format.
    void admit_columns(Weight w, Axis& axis, const Stripes& stripes) {
        const uint64_t block = plan_.weight(w).tensor.format->block;
        for (const Stripe& stripe : stripes) {
            if (stripe.first % block != 0 || (stripe.first + axis.units * stripe.each) % block != 0)
                return fail("a block of its weights lies over the end of a part");
            axis.grain = std::lcm(axis.grain, block / std::gcd(block, stripe.each));
        }
    }

    // ---- Hidden rows of FFNs without gates, and channels of convolutions: products write them, ops element
    // by element follow, and another product reads them. Whatever does not fit stays whole.
    void try_hidden(size_t step) {
        step_ = step;
        const auto* op = std::get_if<Product>(&plan_.steps[step].op);
        if (!op || op->by() == By::head || op->act || op->accumulate) return;
        for (const Product::Part& part : op->all()) {
            const SlotInfo &x = plan_.slot(op->x), &y = plan_.slot(part.y);
            const bool wide = op->by() == By::expert || y.width >= x.width / 2;
            if (wide && !y.of_outputs && !cuts(op->x) && !cuts(part.y))
                try_hidden(part.y, y.width / op->y_rows(), op->y_rows());
        }
    }
    void try_hidden(Slot slot, uint64_t units, uint64_t parts) {
        const std::vector<Axis> axes = found_.axes_;
        set_ = {slot};
        hidden(slot, units, parts);
        spread();
        bool read = false;
        for (size_t i = 0; i < set_.size() && !problem_; ++i)
            for (const size_t user : users_[size_t(set_[i].index)]) {
                admit(user);
                const auto* op = std::get_if<Product>(&plan_.steps[user].op);
                read |= op && op->count == 1 && op->by() != By::head && op->x == set_[i];
            }
        if (!problem_ && read) return;
        problem_.reset();
        fresh_.clear();
        for (const Slot one : set_) found_.slots_[size_t(one.index)] = {};
        found_.axes_ = axes;
    }

    // Whole grains, as near to the shares as they come; each rank has one where there are enough.
    static void share_out(Axis& axis, std::span<const double> shares) {
        const uint64_t soft = std::lcm(axis.grain, axis.soft_grain), ranks = shares.size();
        if (axis.units / soft >= kEnough * ranks) axis.grain = soft;
        const uint64_t grains = (axis.units + axis.grain - 1) / axis.grain;
        const double sum = std::accumulate(shares.begin(), shares.end(), 0.0);
        double upto = 0.0;
        uint64_t taken = 0;
        for (size_t rank = 0; rank < ranks; ++rank) {
            upto += shares[rank];
            uint64_t end = uint64_t(std::llround(upto / sum * double(grains)));
            const uint64_t behind = ranks - 1 - rank;
            if (grains >= ranks) end = std::clamp(end, taken + 1, grains - behind);
            if (rank + 1 == ranks) end = grains;
            taken = end;
            axis.ends.push_back(uint32_t(std::min<uint64_t>(end * axis.grain, axis.units)));
        }
    }

    static constexpr uint64_t kKernelRows = 128, kEnough = 4;

    const Plan& plan_;
    std::vector<std::vector<size_t>> users_;  // of each slot: the steps
    Axes found_;
    std::map<int32_t, int32_t> of_cache_;
    std::vector<Slot> fresh_;  // whose users have not been looked at
    std::vector<Slot> set_;    // by spread(), since try_hidden() began
    std::optional<Error> problem_;
    size_t step_ = 0;
};

Result<Axes> Axes::find(const Plan& plan, std::span<const double> shares) {
    return AxisFinder(plan).find(shares);
}

}  // namespace redline
