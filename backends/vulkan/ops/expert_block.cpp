// A layer's mixture of experts: a norm, a router, and the experts that it chooses.
#include "expert_kernels.h"

#include <algorithm>

namespace redline::vulkan {

namespace {

// One row is normed by its router and by its experts' first products, each by itself; several are normed by a
// dispatch before them.
class ExpertBlockKernel : public VulkanKernel {
public:
    ExpertBlockKernel(const ExpertBlock& op, const Plan& plan, const Device& device)
        : op_(op),
          route_(op.route, plan),
          gated_(op.gated, plan, device, true),
          linear_(op.linear, plan, device, true),
          late_(gated_.can_choose(op.route, plan)) {}

    bool possible() const { return route_.norms() && gated_.norms(); }
    bool wanted() const override { return chosen(RowClass::one, "fused", 1) != 0; }

    // Those of its parts, whether it is computed whole, and whether then experts are chosen by the products.
    Choices choices(RowClass rows) const override {
        Choices all;
        add_named(all, gated_.choices(rows), kGated);
        add_named(all, linear_.choices(rows), kSum);
        if (rows != RowClass::one) return all;
        all.push_back(choice("fused", 1, {0}));
        if (late_) all.push_back(choice("chosen_late", 1, {0}));
        return all;
    }
    void take(RowClass rows, const Variant& variant) override {
        Kernel::take(rows, variant);
        gated_.take(rows, part_of(variant, kGated));
        linear_.take(rows, part_of(variant, kSum));
    }

    Precision precision(uint64_t rows) const override {
        return loosest(gated_.precision(rows), linear_.precision(rows));
    }
    bool takes_int8() const override { return gated_.takes_int8(); }
    bool leaves_int8() const override { return linear_.leaves_int8(); }

    // Of one row: the router's, then what the experts' first products leave for their second.
    uint64_t scratch(const Plan& plan) const override {
        const uint64_t row = between(plan) + plan.slot(op_.gated.y).width / 32 * kLeftUnitBytes;
        return std::max({row, route_.scratch(plan), gated_.scratch(plan), linear_.scratch(plan)});
    }

    Status record(Recorder& recorder, const View& view) const override {
        if (view.rows == 1) return record_row(recorder, view);
        const RmsNorm& norm = op_.norm;
        RL_TRY(record_norm(recorder, view, norm.x, norm.norm, norm.width, view.slot(norm.y)));
        recorder.barrier();
        RL_TRY(route_.record(recorder, view));
        recorder.barrier();
        RL_TRY(gated_.record(recorder, view));
        recorder.barrier();
        return linear_.record(recorder, view);
    }

private:
    static constexpr std::string_view kGated = "gated_", kSum = "sum_";

    uint64_t between(const Plan& plan) const {
        return aligned(plan.weight(op_.route.w).tensor.shape.rows * 4);
    }

    Status record_row(Recorder& recorder, const View& view) const {
        View first = view, second = view;
        first.left = second.taken = {};
        first.left_norm = {};
        if (gated_.leaves_int8() && linear_.takes_int8())
            first.left = second.taken =
                view.scratch_at(between(view.plan), view.width(op_.gated.y) / 32 * kLeftUnitBytes);
        const bool late = chosen(RowClass::one, "chosen_late", late_ ? 1 : 0) != 0;
        RL_TRY(route_.record_of(recorder, view, op_.norm.x, op_.norm.norm, !late));
        recorder.barrier();
        RL_TRY(gated_.record_few(recorder, first, op_.norm.x, op_.norm.norm, late ? &op_.route : nullptr,
                                 route_.logits(view)));
        recorder.barrier();
        return linear_.record(recorder, second);
    }

    static void add_named(Choices& all, Choices more, std::string_view prefix) {
        for (Choice& one : more) {
            one.name.insert(0, prefix);
            all.push_back(std::move(one));
        }
    }

    ExpertBlock op_;
    RouteKernel route_;
    ExpertGatedKernel gated_;
    ExpertLinearKernel linear_;
    bool late_;  // experts of one row can be chosen by those who multiply with them
};

}  // namespace

std::unique_ptr<Kernel> make_expert_block(const ExpertBlock& op, const Plan& plan, const Device& device) {
    auto block = std::make_unique<ExpertBlockKernel>(op, plan, device);
    return block->possible() ? std::move(block) : nullptr;
}

}  // namespace redline::vulkan
