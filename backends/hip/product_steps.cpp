// Linear, LinearGroup and Gated: products of one set of activations with one to three matrices.
#include "steps.h"

namespace redline::hip {

namespace {

constexpr uint32_t kRowsPerWave =
    2;                          // two share each load of the activations; as kernels/format_kernels.h has it
constexpr uint32_t kTile = 64;  // of linear_tile, both ways
constexpr uint32_t kTileThreads = 256;

Status launch_few(Launcher& launcher, const View& view, const Product& p) {
    const args::LinearArgs args = linear_args(view, p);
    const std::string module = view.weights[p.w].layout->name;
    const uint32_t tokens = power_of_two(p.rows);
    return launcher.launch(module, fmt::format("linear_{}_{}", tokens, module),
                           {row_blocks(args.rows, kRowsPerWave, launcher.device()), 1, 1, kThreads}, args);
}

// Rows are cut so that no launch takes long.
Status launch_many(Launcher& launcher, const View& view, const Product& p) {
    args::LinearArgs args = linear_args(view, p);
    const std::string module = view.weights[p.w].layout->name;
    const double per_row = 2.0 * double(args.rows) * double(args.cols);
    const double fit = std::clamp(Launcher::kFlopsPerLaunch / per_row / kTile, 1.0, 1000.0);
    const uint32_t step = uint32_t(fit) * kTile;
    for (uint32_t first = 0; first < p.rows; first += step) {
        const uint32_t rows = std::min(step, p.rows - first);
        args.first_token = first;
        RL_TRY(launcher.launch(module, "linear_tile_" + module,
                               {(args.rows + kTile - 1) / kTile, (rows + kTile - 1) / kTile, 1, kTileThreads},
                               args, per_row * rows));
    }
    return {};
}

class ProductKernel : public HipKernel {
public:
    struct Part {
        Weight w;
        Weight bias;
        Slot y;
    };
    ProductKernel(Slot x, Norm norm, std::vector<Part> parts, bool accumulate)
        : x_(x), norm_(norm), parts_(std::move(parts)), accumulate_(accumulate) {}

    uint64_t scratch(const Plan& plan) const override { return norm_ ? aligned(plan.slot_bytes(x_)) : 0; }

    Status launch(Launcher& launcher, const View& view) const override {
        const float* x = view.slot(x_);
        if (norm_) {
            x = view.scratch_at(0);
            RL_TRY(launch_norm(launcher, view, x_, norm_, view.width(x_), view.scratch_at(0)));
        }
        for (const Part& part : parts_)
            RL_TRY(launch_product(launcher, view,
                                  {part.w, x, view.slot(part.y), view.rows_of(part.y),
                                   view.of_outputs(part.y), part.bias, accumulate_}));
        return {};
    }

private:
    Slot x_;
    Norm norm_;
    std::vector<Part> parts_;
    bool accumulate_;
};

class GatedKernel : public HipKernel {
public:
    explicit GatedKernel(const Gated& op) : op_(op) {}

    // The normed activations, then the product with `up`.
    uint64_t scratch(const Plan& plan) const override {
        return aligned(plan.slot_bytes(op_.x)) + aligned(plan.slot_bytes(op_.y));
    }

    Status launch(Launcher& launcher, const View& view) const override {
        const float* x = view.slot(op_.x);
        if (op_.norm) {
            x = view.scratch_at(0);
            RL_TRY(launch_norm(launcher, view, op_.x, op_.norm, view.width(op_.x), view.scratch_at(0)));
        }
        const Product gate{op_.gate, x, view.slot(op_.y), view.rows_of(op_.y), view.of_outputs(op_.y)};
        return gate.rows <= kFewRows ? launch_both(launcher, view, gate) : launch_apart(launcher, view, gate);
    }

private:
    Status launch_both(Launcher& launcher, const View& view, const Product& gate) const {
        args::LinearArgs args = linear_args(view, gate);
        args.up = view.weights[op_.up].matrix();
        args.act = uint32_t(op_.act);
        const std::string module = view.weights[op_.gate].layout->name;
        return launcher.launch(module, fmt::format("gated_{}_{}", power_of_two(gate.rows), module),
                               {row_blocks(args.rows, 1, launcher.device()), 1, 1, kThreads}, args);
    }

    Status launch_apart(Launcher& launcher, const View& view, const Product& gate) const {
        float* raised = view.scratch_at(aligned(view.plan.slot_bytes(op_.x)));
        Product up = gate;
        up.w = op_.up;
        up.y = raised;
        RL_TRY(launch_product(launcher, view, gate));
        RL_TRY(launch_product(launcher, view, up));
        const args::ElementArgs args = {view.step,         gate.y,          raised,           gate.y,
                                        view.width(op_.y), gate.of_outputs, uint32_t(op_.act)};
        return launcher.launch("vector", "act_mul",
                               {blocks_for(uint64_t(args.width) * gate.rows, kThreads), 1, 1, kThreads},
                               args);
    }

    Gated op_;
};

bool has_layout(const Plan& plan, Weight w) {
    return weight_layout(*plan.weight(w).tensor.format) != nullptr;
}

}  // namespace

args::LinearArgs linear_args(const View& view, const Product& p) {
    const Shape& shape = view.plan.weight(p.w).tensor.shape;
    args::LinearArgs args = {};
    args.step = view.step;
    args.w = view.weights[p.w].matrix();
    args.x = p.x;
    args.y = p.y;
    args.bias = view.vector(p.bias);
    args.rows = uint32_t(shape.rows);
    args.cols = uint32_t(shape.cols);
    args.of_outputs = p.of_outputs;
    args.accumulate = p.accumulate;
    return args;
}

Status launch_product(Launcher& launcher, const View& view, const Product& product) {
    return product.rows <= kFewRows ? launch_few(launcher, view, product)
                                    : launch_many(launcher, view, product);
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

}  // namespace redline::hip
