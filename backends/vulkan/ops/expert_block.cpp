// A layer's mixture of experts: a norm, a router, the experts that it chooses, and beside them one that every
// row goes to.
#include "backends/gpu/shared_expert.h"
#include "expert_kernels.h"

#include <algorithm>

namespace redline::vulkan {

namespace {

std::unique_ptr<VulkanKernel> make_part(const Op& op, const Plan& plan, const Device& device) {
    std::unique_ptr<Kernel> kernel = make_product_kernel(op, plan, device);
    if (!kernel) kernel = make_expert_kernel(op, plan, device);
    return std::unique_ptr<VulkanKernel>(static_cast<VulkanKernel*>(kernel.release()));
}

// Whether one row is multiplied by a single dispatch, that norms it or brings it to int8 itself.
bool in_one_dispatch(const Device& device, const Tensor& w) {
    const Path path = product_path(device, *w.format, w.shape.cols, 1, nullptr, usual_ways(device));
    return path == Path::dot_own || path == Path::floats_own;
}

// The expert that every row goes to. Several rows take the ops that the block falls apart into. One row is
// normed by each of its first dispatches, and what it gives is left in norm.y, to be added by those who sum
// the others.
class SharedKernels {
public:
    SharedKernels(const ExpertBlock& op, const Plan& plan, const Device& device) : op_(op) {
        const std::vector<Op> parts = gpu::shared_parts(op);
        if (parts.empty()) return;
        const SharedExpert& s = op.shared;
        if (s.router) route_.emplace(std::get<Route>(parts.front()), plan);
        one_ = {
            make_part(products::gated(op.norm.x, s.gate, s.up, s.hidden, s.act, op.norm.norm), plan, device),
            make_part(products::linear(s.hidden, s.down, op.norm.y), plan, device)};
        several_ = {make_part(parts[parts.size() - 2], plan, device), make_part(parts.back(), plan, device)};
        if (!one_.gated || !one_.sum || !several_.gated || !several_.sum) return;
        possible_ = (!route_ || route_->norms()) && in_one_dispatch(device, plan.weight(s.gate).tensor) &&
                    in_one_dispatch(device, plan.weight(s.down).tensor);
        hands_int8_ = one_.gated->leaves_int8() && one_.sum->takes_int8();
    }

    bool possible() const { return possible_; }
    const RouteKernel* route() const { return route_ ? &*route_ : nullptr; }
    VulkanKernel& gated(RowClass rows) const { return *of(rows).gated; }
    VulkanKernel& sum(RowClass rows) const { return *of(rows).sum; }
    // What one row's first product hands to the second.
    uint64_t between(const Plan& plan) const {
        return hands_int8_ ? plan.slot(op_.shared.hidden).width / 32 * kLeftUnitBytes : 0;
    }

private:
    struct Products {
        std::unique_ptr<VulkanKernel> gated, sum;
    };
    const Products& of(RowClass rows) const { return rows == RowClass::one ? one_ : several_; }

    ExpertBlock op_;
    std::optional<RouteKernel> route_;
    Products one_, several_;
    bool possible_ = false, hands_int8_ = false;
};

// Each of some rows is computed as if it were alone: it is normed by its router and by its experts' first
// products, each by itself. More rows are normed by a dispatch before them.
class ExpertBlockKernel : public VulkanKernel {
public:
    ExpertBlockKernel(const ExpertBlock& op, const Plan& plan, const Device& device)
        : op_(op),
          device_(device),
          route_(op.route, plan),
          gated_(op.gated, plan, device, true),
          linear_(op.linear, plan, device, true),
          shared_(op, plan, device),
          late_(gated_.can_choose(op.route, plan)),
          usual_apart_(usual_apart(plan)) {}

    bool possible() const {
        return route_.norms() && gated_.norms() &&
               (!op_.shared || (shared_.possible() && linear_.adds_beside()));
    }
    bool wanted() const override {
        return chosen(RowClass::one, "fused", expert_default("fused").value) != 0;
    }

    // Those of its parts, whether it is computed whole, and whether then experts are chosen by the products.
    Choices choices(RowClass rows) const override {
        Choices all;
        add_named(all, gated_.choices(rows), kGated);
        add_named(all, linear_.choices(rows), kSum);
        if (op_.shared) {
            add_named(all, shared_.gated(rows).choices(rows), kSharedGated);
            add_named(all, shared_.sum(rows).choices(rows), kSharedSum);
        }
        const bool apart = usual_apart_.value > 1;
        if (rows == RowClass::few && apart) return {apart_groups()};  // the rest is as of one row
        if (rows == RowClass::some && apart)
            all.insert(all.begin(), crossover("alone_rows", usual_apart_, {kFewRows, 16, 32, 64}));
        if (rows != RowClass::one) return all;
        all.push_back(choice("fused", expert_default("fused"), {0}));
        if (late_) all.push_back(choice("chosen_late", expert_default("chosen_late"), {0}));
        return all;
    }
    void take(RowClass rows, const Variant& variant) override {
        Kernel::take(rows, variant);
        gated_.take(rows, part_of(variant, kGated));
        linear_.take(rows, part_of(variant, kSum));
        if (!op_.shared) return;
        shared_.gated(rows).take(rows, part_of(variant, kSharedGated));
        shared_.sum(rows).take(rows, part_of(variant, kSharedSum));
    }

    Precision precision(uint64_t rows) const override {
        if (rows <= most_apart()) rows = 1;
        const Precision chosen = loosest(gated_.precision(rows), linear_.precision(rows));
        if (!op_.shared) return chosen;
        const RowClass size = row_class_of(rows);
        return loosest(chosen,
                       loosest(shared_.gated(size).precision(rows), shared_.sum(size).precision(rows)));
    }
    bool takes_int8() const override {
        return gated_.takes_int8() && (!op_.shared || shared_.gated(RowClass::one).takes_int8());
    }
    bool leaves_int8() const override { return linear_.leaves_int8(); }

    uint64_t scratch(const Plan& plan) const override {
        uint64_t most =
            std::max({Room(*this, plan, std::min(most_apart(), plan.max_rows)).bytes,
                      Room(*this, plan, plan.max_rows).left, gated_.scratch(plan), linear_.scratch(plan)});
        if (op_.shared)
            most = std::max({most, shared_.gated(RowClass::many).scratch(plan),
                             shared_.sum(RowClass::many).scratch(plan)});
        return most;
    }

    Status record(Recorder& recorder, const View& view) const override {
        if (view.rows <= most_apart()) return record_apart(recorder, view);
        const RmsNorm& norm = op_.norm;
        RL_TRY(record_norm(recorder, view, norm, view.slot(norm.y)));
        recorder.barrier();
        RL_TRY(record_routes(recorder, view, view.slot(norm.y), {}, true));
        recorder.barrier();
        // What of them wants scratch waits for the others. The shared one first: of few rows it does, to
        // bring them to int8, and the others go to their experts beside its product.
        const RowClass size = row_class_of(view.rows);
        if (op_.shared) RL_TRY(shared_.gated(size).record(recorder, view));
        RL_TRY(gated_.record(recorder, view));
        recorder.barrier();
        RL_TRY(linear_.record(recorder, view));
        if (!op_.shared) return {};
        recorder.barrier();  // both add to x
        return shared_.sum(size).record(recorder, view);
    }

private:
    static constexpr std::string_view kGated = "gated_", kSum = "sum_", kSharedGated = "shared_gated_",
                                      kSharedSum = "shared_sum_", kApartGroups = "apart_groups";

    // Offsets in scratch: both routers' logits, then what first products of rows apart leave for the second
    // ones.
    struct Room {
        Room(const ExpertBlockKernel& block, const Plan& plan, uint64_t rows)
            : shared_logit(aligned(plan.weight(block.op_.route.w).tensor.shape.rows * 4 * rows)),
              left(shared_logit + (block.shared_.route() ? aligned(4 * rows) : 0)),
              left_bytes(plan.slot(block.op_.gated.y()).width / 32 * kLeftUnitBytes * rows),
              shared_left(left + aligned(left_bytes)),
              shared_left_bytes(block.shared_.between(plan) * rows),
              bytes(shared_left + aligned(shared_left_bytes)) {}

        uint64_t shared_logit, left, left_bytes, shared_left, shared_left_bytes, bytes;
    };

    // The choice of experts, or the logits alone, and beside them what the shared one counts.
    Status record_routes(Recorder& recorder, const View& view, Binding x, const Norm& norm,
                         bool chooses) const {
        recorder.claim_scratch();
        RL_TRY(route_.record_of(recorder, view, x, norm, chooses));
        if (!shared_.route()) return {};
        View shared = view;
        shared.scratch.offset += Room(*this, view.plan, view.rows).shared_logit;
        return shared_.route()->record_of(recorder, shared, x, norm, true);
    }

    Default expert_default(std::string_view name) const {
        return gpu::default_of(gpu::kExpertDefaults, name, class_of(device_));
    }
    uint32_t most_apart() const { return chosen(RowClass::some, "alone_rows", usual_apart_.value); }
    Default usual_apart(const Plan& plan) const {
        if (!gated_.takes_int8() || !linear_.takes_int8()) return {1};
        return gpu::rows_alone(class_of(device_), plan.weight(op_.route.w).tensor.shape.rows, op_.route.used);
    }

    // Work-groups of all rows of a dispatch, for the products with chosen experts and with the shared one.
    Choice apart_groups() const {
        const Default usual = most_owners(device_);
        const uint32_t most = usual.value;
        return choice(std::string(kApartGroups), usual, {most / 2, 2 * most, 4 * most});
    }

    // Dispatches between two barriers run side by side: those of the shared expert beside the chosen ones'.
    Status record_apart(Recorder& recorder, View view) const {
        view.apart = view.rows > 1;
        view.apart_groups = chosen(RowClass::few, kApartGroups, apart_groups().values.front());
        const Room room(*this, view.plan, view.rows);
        View first = view, second = view;
        first.left = second.taken = {};
        first.left_norm = {};
        if (gated_.leaves_int8() && linear_.takes_int8())
            first.left = second.taken = view.scratch_at(room.left, room.left_bytes);
        View shared_first = first, shared_second = first;
        shared_first.left = shared_second.left = shared_second.taken = {};
        if (room.shared_left_bytes > 0)
            shared_first.left = shared_second.taken =
                view.scratch_at(room.shared_left, room.shared_left_bytes);

        const bool late =
            late_ && chosen(RowClass::one, "chosen_late", expert_default("chosen_late").value) != 0;
        RL_TRY(record_routes(recorder, view, view.slot(op_.norm.x), op_.norm.norm, !late));
        if (op_.shared) RL_TRY(shared_.gated(RowClass::one).record(recorder, shared_first));
        recorder.barrier();
        RL_TRY(gated_.record_few(recorder, first, op_.norm.x, op_.norm.norm, late ? &op_.route : nullptr,
                                 route_.logits(view)));
        if (op_.shared) RL_TRY(shared_.sum(RowClass::one).record(recorder, shared_second));
        recorder.barrier();
        if (!op_.shared) return linear_.record(recorder, second);
        return linear_.record_row(recorder, second, op_.norm.y, op_.shared.scale);
    }

    static void add_named(Choices& all, Choices more, std::string_view prefix) {
        for (Choice& one : more) {
            one.name.insert(0, prefix);
            all.push_back(std::move(one));
        }
    }

    ExpertBlock op_;
    const Device& device_;
    RouteKernel route_;
    ExpertGatedKernel gated_;
    ExpertLinearKernel linear_;
    SharedKernels shared_;
    bool late_;  // experts of one row can be chosen by those who multiply with them
    Default usual_apart_;
};

}  // namespace

std::unique_ptr<Kernel> make_expert_block(const ExpertBlock& op, const Plan& plan, const Device& device) {
    auto block = std::make_unique<ExpertBlockKernel>(op, plan, device);
    return block->possible() ? std::move(block) : nullptr;
}

}  // namespace redline::vulkan
