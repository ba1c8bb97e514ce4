// Linear, LinearGroup and Gated: products of one set of activations with one to three matrices.
#include "steps.h"

#include <algorithm>

namespace redline::vulkan {

namespace {

// Rows of the matrix that a subgroup owns: two share each load of the activations.
constexpr uint32_t kRowsPerSubgroup = 2;
constexpr uint32_t kTile = 64;  // of linear_mat, both ways

uint32_t power_of_two(uint32_t n) {
    uint32_t p = 1;
    while (p < n) p *= 2;
    return p;
}

uint64_t groups_for(uint64_t rows, uint32_t per_subgroup, const Device& device) {
    const uint64_t per_group = uint64_t(per_subgroup) * std::max(1u, kThreads / device.subgroup());
    return (rows + per_group - 1) / per_group;
}

args::LinearArgs linear_args(const PlacedWeight& w, const WeightPart& part, const Product& p) {
    args::LinearArgs push = {};
    push.rows = uint32_t(part.rows);
    push.cols = uint32_t(w.cols);
    push.units = w.units(part);
    push.first_row = uint32_t(part.first);
    push.stride = p.stride;
    push.rows_of = p.rows_kind;
    push.has_bias = p.bias ? 1 : 0;
    push.accumulate = p.accumulate ? 1 : 0;
    return push;
}

Status record_vec(Recorder& recorder, const View& view, const Product& p, const PlacedWeight& w,
                  const WeightPart& part) {
    const uint32_t tokens = power_of_two(p.rows);
    return recorder.dispatch(
        {fmt::format("linear_vec.{}", w.layout->name), 5, 1, {kThreads, kRowsPerSubgroup, tokens}},
        {part.buffer, p.x, p.y, view.step, view.vector(p.bias, view.step)}, linear_args(w, part, p),
        {groups_for(part.rows, kRowsPerSubgroup, recorder.device()), (p.rows + tokens - 1) / tokens});
}

// Rows are cut so that no dispatch alone fills a submission.
Status record_mat(Recorder& recorder, const View& view, const Product& p, const PlacedWeight& w,
                  const WeightPart& part) {
    const double per_row = 2.0 * double(part.rows) * double(w.cols);
    const double fit = std::max(1.0, recorder.flops_per_segment() / per_row / kTile);
    const uint32_t step = uint32_t(std::min(fit, 1e6)) * kTile;
    for (uint32_t first = 0; first < p.rows; first += step) {
        const uint32_t rows = std::min(step, p.rows - first);
        args::LinearArgs push = linear_args(w, part, p);
        push.first_token = first;
        RL_TRY(recorder.dispatch({fmt::format("linear_mat.{}", w.layout->name), 5, 1, {}},
                                 {part.buffer, p.x, p.y, view.step, view.vector(p.bias, view.step)}, push,
                                 {(part.rows + kTile - 1) / kTile, (rows + kTile - 1) / kTile},
                                 per_row * rows));
    }
    return {};
}

class ProductKernel : public VulkanKernel {
public:
    struct Part {
        Weight w;
        Weight bias;
        Slot y;
    };
    ProductKernel(Slot x, Norm norm, std::vector<Part> parts, bool accumulate)
        : x_(x), norm_(norm), parts_(std::move(parts)), accumulate_(accumulate) {}

    uint64_t scratch(const Plan& plan) const override { return norm_ ? aligned(plan.slot_bytes(x_)) : 0; }

    Status record(Recorder& recorder, const View& view) const override {
        Binding x = view.slot(x_);
        if (norm_) {
            recorder.claim_scratch();
            x = view.scratch_at(0, x.bytes);
            RL_TRY(record_norm(recorder, view, x_, norm_, view.width(x_), x));
            recorder.barrier();
        }
        for (const Part& part : parts_) {
            Product product{part.w, x, view.slot(part.y), view.rows_of(part.y)};
            product.rows_kind = rows_kind(view.plan, part.y);
            product.stride = view.width(part.y);
            product.bias = part.bias;
            product.accumulate = accumulate_;
            RL_TRY(record_product(recorder, view, product));
        }
        return {};
    }

private:
    Slot x_;
    Norm norm_;
    std::vector<Part> parts_;
    bool accumulate_;
};

class GatedKernel : public VulkanKernel {
public:
    explicit GatedKernel(const Gated& op) : op_(op) {}

    // The normed activations, then the product with `up`.
    uint64_t scratch(const Plan& plan) const override {
        return aligned(plan.slot_bytes(op_.x)) + aligned(plan.slot_bytes(op_.y));
    }

    Status record(Recorder& recorder, const View& view) const override {
        Binding x = view.slot(op_.x);
        recorder.claim_scratch();
        if (op_.norm) {
            x = view.scratch_at(0, x.bytes);
            RL_TRY(record_norm(recorder, view, op_.x, op_.norm, view.width(op_.x), x));
            recorder.barrier();
        }
        return view.rows <= kFewRows ? record_few(recorder, view, x) : record_many(recorder, view, x);
    }

private:
    Status record_few(Recorder& recorder, const View& view, Binding x) const {
        const PlacedWeight &gate = view.weight(op_.gate), &up = view.weight(op_.up);
        const uint32_t tokens = power_of_two(view.rows);
        Product product{op_.gate, x, view.slot(op_.y), view.rows};
        product.stride = view.width(op_.y);
        for (size_t i = 0; i < gate.parts.size(); ++i) {
            args::LinearArgs push = linear_args(gate, gate.parts[i], product);
            push.act = uint32_t(op_.act);
            RL_TRY(recorder.dispatch(
                {fmt::format("gated_vec.{}", gate.layout->name), 4, 2, {kThreads, 1, tokens}},
                {gate.parts[i].buffer, up.parts[i].buffer, x, view.slot(op_.y), view.step}, push,
                {groups_for(gate.parts[i].rows, 1, recorder.device()), (view.rows + tokens - 1) / tokens}));
        }
        return {};
    }

    Status record_many(Recorder& recorder, const View& view, Binding x) const {
        const Binding y = view.slot(op_.y);
        const Binding raised = view.scratch_at(aligned(view.plan.slot_bytes(op_.x)), y.bytes);
        Product product{op_.gate, x, y, view.rows};
        product.stride = view.width(op_.y);
        RL_TRY(record_product(recorder, view, product));
        product.w = op_.up;
        product.y = raised;
        RL_TRY(record_product(recorder, view, product));
        recorder.barrier();
        const args::ElementArgs push = {view.width(op_.y), RL_ROWS_ALL, uint32_t(op_.act)};
        return recorder.dispatch({"act_mul", 4, 1, {kThreads}}, {y, raised, y, view.step}, push,
                                 {(uint64_t(view.width(op_.y)) * view.rows + kThreads - 1) / kThreads});
    }

    Gated op_;
};

bool has_layout(const Plan& plan, Weight w) {
    return weight_layout(*plan.weight(w).tensor.format) != nullptr;
}

}  // namespace

Status record_product(Recorder& recorder, const View& view, const Product& product) {
    const PlacedWeight& w = view.weight(product.w);
    for (const WeightPart& part : w.parts) {
        if (product.rows <= kFewRows)
            RL_TRY(record_vec(recorder, view, product, w, part));
        else
            RL_TRY(record_mat(recorder, view, product, w, part));
    }
    return {};
}

std::unique_ptr<Kernel> make_product_kernel(const Op& op, const Plan& plan, const Device&) {
    if (const auto* o = std::get_if<Linear>(&op)) {
        if (!has_layout(plan, o->w)) return nullptr;
        return std::make_unique<ProductKernel>(
            o->x, o->norm, std::vector<ProductKernel::Part>{{o->w, o->bias, o->y}}, o->accumulate);
    }
    if (const auto* o = std::get_if<LinearGroup>(&op)) {
        std::vector<ProductKernel::Part> parts;
        for (uint32_t i = 0; i < o->count; ++i) {
            if (!has_layout(plan, o->parts[i].w)) return nullptr;
            parts.push_back({o->parts[i].w, o->parts[i].bias, o->parts[i].y});
        }
        return std::make_unique<ProductKernel>(o->x, o->norm, std::move(parts), false);
    }
    if (const auto* o = std::get_if<Gated>(&op)) {
        // One kernel reads both, so they must be of one format; else they are decomposed.
        if (plan.weight(o->gate).tensor.format != plan.weight(o->up).tensor.format) return nullptr;
        if (!has_layout(plan, o->gate)) return nullptr;
        return std::make_unique<GatedKernel>(*o);
    }
    return nullptr;
}

}  // namespace redline::vulkan
