// Convolve, DeltaNet and StateScan.
#include "steps.h"

#include <algorithm>

namespace redline::vulkan {

namespace {

constexpr uint32_t kDeltaLanes = 8;       // invocations that share columns of a state, or twice as many
constexpr uint32_t kMostDeltaKeys = 256;  // an invocation keeps half as many floats in registers
constexpr uint32_t kScanLanes = 8;        // invocations that share rows of a state
constexpr uint32_t kMostScanStates = 256;
constexpr uint32_t kMostScanFloats = 80;  // of a state, that an invocation keeps in registers

Status record_convolve_apart(Recorder& recorder, const View& view, const Convolve& op) {
    const uint32_t width = view.width(op.x);
    const args::ConvolveApartArgs push = {width, op.apart, op.silu, bool(op.before), bool(op.behind)};
    const auto factor = [&](Slot s) { return s ? view.slot(s) : view.step; };
    return recorder.dispatch({"convolve_apart", 7, 1, {kThreads, op.taps}},
                             {view.slot(op.x), view.slot(op.y), view.vector(op.w, view.step),
                              view.caches[op.state].keys, factor(op.before), factor(op.behind), view.step},
                             push, striding((width + kThreads - 1) / kThreads * view.segments()));
}

Status record_convolve(Recorder& recorder, const View& view, const Convolve& op) {
    if (op.apart > 1) return record_convolve_apart(recorder, view, op);
    const uint32_t width = view.width(op.x);
    const args::ConvolveArgs push = {width, op.silu, bool(op.before), bool(op.behind), bool(op.bias)};
    const auto factor = [&](Slot s) { return s ? view.slot(s) : view.step; };
    const uint64_t stretches = (width + kThreads - 1) / kThreads,
                   pieces = (view.rows + RL_CONVOLVED_ROWS - 1) / RL_CONVOLVED_ROWS;
    return recorder.dispatch(
        {"convolve", 8, 1, {kThreads, op.taps}},
        {view.slot(op.x), view.slot(op.y), view.vector(op.w, view.step), view.caches[op.state].keys,
         factor(op.before), factor(op.behind), view.vector(op.bias, view.step), view.step},
        push, striding(stretches * pieces * view.segments()));
}

// Threads of a work-group.
Choice thread_choice(const Device& device) {
    const Default usual = gpu::default_of(gpu::kRecurrentDefaults, "threads", class_of(device));
    std::vector<uint32_t> threads;
    for (uint32_t n = std::max(kThreads / 2, device.subgroup()); n <= own_threads(device); n *= 2)
        threads.push_back(n);
    return choice("threads", usual, std::move(threads));
}

uint64_t delta_units(const DeltaShape& s, uint32_t columns) {
    return uint64_t(s.heads) * ((s.value_dim + columns - 1) / columns);
}

Choice lane_choice(const DeltaShape& s, const Device& device) {
    const bool twice = device.use_clustered() && device.subgroup() >= 2 * kDeltaLanes;
    const uint32_t once = device.use_clustered() ? kDeltaLanes : std::min(kDeltaLanes, device.subgroup());
    const gpu::Work work = {.groups = delta_units(s, kThreads / kDeltaLanes * RL_DELTA_COLUMNS),
                            .dims = s.key_dim,
                            .most = twice ? 2 * kDeltaLanes : once};
    return choice("lanes", gpu::default_of(gpu::kRecurrentDefaults, "lanes", class_of(device), work),
                  twice ? std::vector{kDeltaLanes, 2 * kDeltaLanes} : std::vector<uint32_t>());
}

class DeltaNetKernel : public VulkanKernel {
public:
    DeltaNetKernel(const DeltaNet& op, const Device& device)
        : op_(op), threads_(thread_choice(device)), lanes_(lane_choice(op.shape, device)) {}

    Choices choices(RowClass) const override { return {threads_, lanes_}; }

    uint64_t scratch(const Plan& plan) const override {
        return uint64_t(plan.max_rows) / RL_DELTA_ROWS * op_.shape.heads * RL_DELTA_PAIRS * 16;
    }

    Status record(Recorder& recorder, const View& view) const override {
        const DeltaShape& s = op_.shape;
        const Device& device = recorder.device();
        const RowClass rows_class = row_class_of(view.rows);
        const uint32_t threads = chosen(rows_class, "threads", threads_.values[0]),
                       shared_by = chosen(rows_class, "lanes", lanes_.values[0]),
                       columns = threads / shared_by * RL_DELTA_COLUMNS;
        const bool clustered = device.use_clustered(),
                   at_once = clustered && s.key_dim <= 16 * shared_by;  // AT_ONCE of delta_rows.glsl
        const uint64_t units = delta_units(s, columns);
        const double flops_per_row = 7.0 * double(s.state_floats());
        const Binding a = view.vector(op_.a, view.step), dt = view.vector(op_.dt, view.step);
        return in_slices(recorder, view.rows, flops_per_row, 1, [&](uint32_t row, uint32_t rows) -> Status {
            if (row > 0) recorder.barrier();
            const args::DeltaArgs push = {s.heads, s.key_heads, s.in_turns, row, row + rows};
            Binding pairs = view.step;
            const uint64_t groups = rows / RL_DELTA_ROWS;
            if (at_once && groups > 0) {
                recorder.claim_scratch();
                pairs = view.scratch_at(0, scratch(view.plan));
                RL_TRY(recorder.dispatch(
                    {"delta_pairs", 7, 1, {kThreads, s.key_dim, s.value_dim}},
                    {view.slot(op_.qkv), view.slot(op_.beta), view.slot(op_.alpha), a, dt, pairs, view.step},
                    push, striding(groups * s.key_heads * view.segments()),
                    4.0 * RL_DELTA_ROWS * s.key_dim * s.key_heads * rows));
                recorder.barrier();
            }
            return recorder.dispatch({clustered ? "delta_net_clustered" : "delta_net",
                                      9,
                                      1,
                                      {threads, s.key_dim, s.value_dim, shared_by}},
                                     {view.slot(op_.qkv), view.slot(op_.beta), view.slot(op_.alpha), a, dt,
                                      view.slot(op_.y), view.caches[op_.state].keys, view.step, pairs},
                                     push, striding(units * view.segments()), flops_per_row * rows);
        });
    }

private:
    DeltaNet op_;
    Choice threads_, lanes_;
};

class StateScanKernel : public VulkanKernel {
public:
    StateScanKernel(const StateScan& op, const Device& device) : op_(op), threads_(thread_choice(device)) {}

    Choices choices(RowClass) const override { return {threads_}; }

    Status record(Recorder& recorder, const View& view) const override {
        const ScanShape& s = op_.shape;
        const Device& device = recorder.device();
        const uint32_t threads = chosen(row_class_of(view.rows), "threads", threads_.values[0]),
                       lanes = std::min(kScanLanes, device.subgroup()), apart = threads / lanes,
                       each = (s.state_dim + 4 * lanes - 1) / (4 * lanes) * 4;
        // As few blocks as registers allow, and as few rows of each as then do.
        const uint32_t most = std::clamp(kMostScanFloats / each, 1u, 5u),
                       blocks = (s.head_dim + apart * most - 1) / (apart * most),
                       rows_each = (s.head_dim + apart * blocks - 1) / (apart * blocks);
        const double flops_per_row = 5.0 * double(s.state_floats());
        return in_slices(recorder, view.rows, flops_per_row, 1, [&](uint32_t row, uint32_t rows) {
            if (row > 0) recorder.barrier();
            const args::ScanArgs push = {s.heads, s.groups, row, row + rows};
            return recorder.dispatch(
                {device.use_clustered() ? "state_scan_clustered" : "state_scan",
                 8,
                 1,
                 {threads, s.head_dim, s.state_dim, lanes, rows_each}},
                {view.slot(op_.x), view.slot(op_.step), view.vector(op_.a, view.step),
                 view.vector(op_.step_bias, view.step), view.vector(op_.through, view.step), view.slot(op_.y),
                 view.caches[op_.state].keys, view.step},
                push, striding(uint64_t(s.heads) * blocks * view.segments()), flops_per_row * rows);
        });
    }

private:
    StateScan op_;
    Choice threads_;
};

}  // namespace

std::unique_ptr<Kernel> make_recurrent_kernel(const Op& op, const Plan&, const Device& device) {
    if (const auto* o = std::get_if<Convolve>(&op); o && o->apart > 1 && o->bias) return nullptr;
    if (auto kernel = gpu::first_of<Gpu>(op, record_convolve)) return kernel;
    if (const auto* o = std::get_if<StateScan>(&op)) {
        if (o->shape.state_dim > kMostScanStates) return nullptr;
        return std::make_unique<StateScanKernel>(*o, device);
    }
    const auto* o = std::get_if<DeltaNet>(&op);
    if (!o || o->shape.key_dim > kMostDeltaKeys) return nullptr;
    return std::make_unique<DeltaNetKernel>(*o, device);
}

}  // namespace redline::vulkan
