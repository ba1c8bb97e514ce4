// Convolve, DeltaNet and StateScan.
#include "backends/hip/kernels/delta_args.h"
#include "steps.h"

#include <algorithm>

namespace redline::hip {

namespace {

constexpr uint32_t kMostDeltaKeys = 256;
constexpr uint32_t kMostScanStates = 256;

static_assert(args::kGateSigmoid == uint32_t(GateOf::sigmoid) &&
              args::kGateSoftplus == uint32_t(GateOf::softplus));

Status launch_convolve(Launcher& launcher, const View& view, const Convolve& op) {
    const auto factor = [&](Slot s) { return s ? view.slot(s) : nullptr; };
    const uint32_t width = view.width(op.x);
    const args::ConvolveArgs args = {view.step,
                                     view.states,
                                     view.slot(op.x),
                                     view.slot(op.y),
                                     view.vector(op.w),
                                     view.state(op.state),
                                     factor(op.before),
                                     factor(op.behind),
                                     view.vector(op.bias),
                                     width,
                                     op.silu};
    if (op.apart > 1)
        return launcher.launch("recurrent", "convolve_apart",
                               striding(blocks_for(uint64_t(width) * view.segments(), kThreads)),
                               args::ConvolveApartArgs{args, op.taps, op.apart});
    const uint64_t pieces = (view.rows + args::kConvolvedRows - 1) / args::kConvolvedRows;
    return launcher.launch("recurrent", fmt::format("convolve_{}", op.taps),
                           striding(blocks_for(width * pieces * view.segments(), kThreads)), args);
}

class DeltaNetKernel : public HipKernel {
public:
    DeltaNetKernel(const DeltaNet& op, const Device& device)
        : op_(op), lanes_(usual_lanes(op.shape, class_of(device.report()))) {}

    // Lanes that share columns of a state.
    Choices choices(RowClass) const override {
        if (op_.shape.key_dim > 128) return {};
        return {choice("lanes", lanes_, {8, 16})};
    }

    uint64_t scratch(const Plan& plan) const override {
        return uint64_t(plan.max_rows) / args::kDeltaRows * op_.shape.heads * sizeof(args::DeltaPairs);
    }

    Status launch(Launcher& launcher, const View& view) const override {
        const DeltaShape& s = op_.shape;
        args::DeltaArgs args = {};
        args.step = view.step;
        args.states = view.states;
        args.pairs = static_cast<args::DeltaPairs*>(static_cast<void*>(view.scratch_at(0)));
        args.qkv = view.slot(op_.qkv);
        args.beta = view.slot(op_.beta);
        args.alpha = view.slot(op_.alpha);
        args.a = view.vector(op_.a);
        args.dt = view.vector(op_.dt);
        args.y = view.slot(op_.y);
        args.state = view.state(op_.state);
        args.heads = s.heads;
        args.key_heads = s.key_heads;
        args.key_dim = s.key_dim;
        args.value_dim = s.value_dim;
        args.in_turns = s.in_turns;
        args.eps = DeltaNet::kEps;
        const uint32_t lanes = chosen(row_class_of(view.rows), "lanes", lanes_.value);
        const uint32_t keys = s.key_dim > 128 ? 256 : 128;
        const double flops_per_row = 7.0 * double(s.state_floats());
        return in_slices(launcher, view.rows, flops_per_row, 1, [&](uint32_t row, uint32_t rows) -> Status {
            args.first_row = row;
            args.end_row = row + rows;
            if (const uint64_t pairs = uint64_t(rows) / args::kDeltaRows * s.key_heads)
                RL_TRY(launcher.launch("recurrent", fmt::format("delta_pairs_{}", keys),
                                       striding(blocks_for(pairs * view.segments(), 1)), args,
                                       2.0 * args::kDeltaRows * 2 * s.key_dim * s.key_heads * rows));
            return launcher.launch("recurrent", fmt::format("delta_net_{}_{}", keys, lanes),
                                   striding(blocks_for(blocks(s, lanes) * view.segments(), 1)), args,
                                   flops_per_row * rows);
        });
    }

private:
    static uint64_t blocks(const DeltaShape& s, uint32_t lanes) {
        return uint64_t(s.heads) * blocks_for(s.value_dim, kThreads / lanes * 4);
    }
    static Default usual_lanes(const DeltaShape& s, const gpu::DeviceClass& device) {
        return gpu::default_of(gpu::kRecurrentDefaults, "lanes", device,
                               {.groups = blocks(s, 8), .dims = s.key_dim, .most = 16});
    }

    DeltaNet op_;
    Default lanes_;
};

class StateScanKernel : public HipKernel {
public:
    explicit StateScanKernel(const StateScan& op) : op_(op) {}

    // Rows of a head's state that a block has.
    Choices choices(RowClass) const override {
        if (op_.shape.state_dim > 128) return {};
        return {choice("block", usual_block(), {64, 80})};
    }

    Status launch(Launcher& launcher, const View& view) const override {
        const ScanShape& s = op_.shape;
        args::ScanArgs args = {};
        args.step = view.step;
        args.states = view.states;
        args.x = view.slot(op_.x);
        args.steps = view.slot(op_.step);
        args.a = view.vector(op_.a);
        args.step_bias = view.vector(op_.step_bias);
        args.through = view.vector(op_.through);
        args.y = view.slot(op_.y);
        args.state = view.state(op_.state);
        args.heads = s.heads;
        args.groups = s.groups;
        args.head_dim = s.head_dim;
        args.state_dim = s.state_dim;
        const uint32_t block = chosen(row_class_of(view.rows), "block", usual_block().value);
        const uint64_t units = uint64_t(s.heads) * blocks_for(s.head_dim, block) * view.segments();
        const std::string kernel = fmt::format("state_scan_{}_{}", s.state_dim > 128 ? 256 : 128, block);
        const double flops_per_row = 5.0 * double(s.state_floats());
        return in_slices(launcher, view.rows, flops_per_row, 1, [&](uint32_t row, uint32_t rows) {
            args.first_row = row;
            args.end_row = row + rows;
            return launcher.launch("recurrent", kernel, striding(blocks_for(units, 1)), args,
                                   flops_per_row * rows);
        });
    }

private:
    // Kernels of longer states have 32.
    Default usual_block() const {
        if (op_.shape.state_dim > 128) return {32};
        return gpu::default_of(gpu::kRecurrentDefaults, "block", {.hip = true}, {.dims = op_.shape.head_dim});
    }

    StateScan op_;
};

}  // namespace

std::unique_ptr<Kernel> make_recurrent_kernel(const Op& op, const Plan&, const Device& device) {
    if (const auto* o = std::get_if<Convolve>(&op); o && o->apart > 1 && o->bias) return nullptr;
    if (auto kernel = gpu::first_of<Gpu>(op, launch_convolve)) return kernel;
    if (const auto* o = std::get_if<StateScan>(&op)) {
        if (o->shape.state_dim > kMostScanStates) return nullptr;
        return std::make_unique<StateScanKernel>(*o);
    }
    const auto* o = std::get_if<DeltaNet>(&op);
    if (!o || o->shape.key_dim > kMostDeltaKeys) return nullptr;
    return std::make_unique<DeltaNetKernel>(*o, device);
}

}  // namespace redline::hip
