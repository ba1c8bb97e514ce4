// Convolve, DeltaNet and StateScan, and what stands around them: CopyParts, OutputGate.
#include "steps.h"

#include <algorithm>

namespace redline::vulkan {

namespace {

constexpr uint32_t kDeltaLanes = 8;       // invocations that share columns of a state
constexpr uint32_t kMostDeltaKeys = 256;  // an invocation keeps half as many floats in registers
constexpr uint32_t kScanLanes = 8;        // invocations that share rows of a state
constexpr uint32_t kMostScanStates = 256;
constexpr uint32_t kMostScanFloats = 80;  // of a state, that an invocation keeps in registers

Groups element_groups(uint64_t elements) {
    return striding((elements + kThreads - 1) / kThreads);
}

Status record_copy_parts(Recorder& recorder, const View& view, const CopyParts& op) {
    const args::CopyPartsArgs push = {op.parts,   op.width,    view.width(op.x),
                                      op.x_first, op.x_stride, view.width(op.y),
                                      op.y_first, op.y_stride, rows_kind(view.plan, op.y)};
    return recorder.dispatch({"copy_parts", 3, 1, {kThreads}}, {view.slot(op.x), view.slot(op.y), view.step},
                             push, element_groups(uint64_t(op.parts) * op.width * view.rows_of(op.y)));
}

Status record_output_gate(Recorder& recorder, const View& view, const OutputGate& op) {
    const GateLayout gates = op.layout(view.width(op.x), view.width(op.y));
    const args::OutputGateArgs push = {
        view.width(op.y),          op.head_dim, gates.stride, gates.first, gates.step, uint32_t(op.act),
        rows_kind(view.plan, op.y)};
    return recorder.dispatch({"output_gate", 3, 1, {kThreads}}, {view.slot(op.x), view.slot(op.y), view.step},
                             push, element_groups(uint64_t(view.width(op.y)) * view.rows_of(op.y)));
}

Status record_convolve(Recorder& recorder, const View& view, const Convolve& op) {
    const uint32_t width = view.width(op.x);
    const args::ConvolveArgs push = {width, op.silu, bool(op.before), bool(op.behind)};
    const auto factor = [&](Slot s) { return s ? view.slot(s) : view.step; };
    const uint64_t stretches = (width + kThreads - 1) / kThreads,
                   pieces = (view.rows + RL_CONVOLVED_ROWS - 1) / RL_CONVOLVED_ROWS;
    return recorder.dispatch({"convolve", 7, 1, {kThreads, op.taps}},
                             {view.slot(op.x), view.slot(op.y), view.vector(op.w, view.step),
                              view.caches[op.state].keys, factor(op.before), factor(op.behind), view.step},
                             push, striding(stretches * pieces * view.segments()));
}

Status record_convolve_apart(Recorder& recorder, const View& view, const Convolve& op) {
    const uint32_t width = view.width(op.x);
    const args::ConvolveApartArgs push = {width, op.apart, op.silu, bool(op.before), bool(op.behind)};
    const auto factor = [&](Slot s) { return s ? view.slot(s) : view.step; };
    return recorder.dispatch({"convolve_apart", 7, 1, {kThreads, op.taps}},
                             {view.slot(op.x), view.slot(op.y), view.vector(op.w, view.step),
                              view.caches[op.state].keys, factor(op.before), factor(op.behind), view.step},
                             push, striding((width + kThreads - 1) / kThreads * view.segments()));
}

Status record_delta_net(Recorder& recorder, const View& view, const DeltaNet& op) {
    const DeltaShape& s = op.shape;
    const Device& device = recorder.device();
    const uint32_t lanes = std::min(kDeltaLanes, device.subgroup()),
                   columns = kThreads / lanes * RL_DELTA_COLUMNS;
    const uint64_t units = uint64_t(s.heads) * ((s.value_dim + columns - 1) / columns);
    const double flops_per_row = 7.0 * double(s.state_floats());
    const double fit = std::max(1.0, recorder.flops_per_segment() / flops_per_row);
    const uint32_t rows = uint32_t(std::min(fit, double(view.rows)));
    for (uint32_t row = 0; row < view.rows; row += rows) {
        if (row > 0) recorder.barrier();
        const uint32_t end = std::min(row + rows, view.rows);
        const args::DeltaArgs push = {s.heads, s.key_heads, s.in_turns, row, end};
        RL_TRY(recorder.dispatch(
            {device.use_clustered() ? "delta_net_clustered" : "delta_net",
             8,
             1,
             {kThreads, s.key_dim, s.value_dim, lanes}},
            {view.slot(op.qkv), view.slot(op.beta), view.slot(op.alpha), view.vector(op.a, view.step),
             view.vector(op.dt, view.step), view.slot(op.y), view.caches[op.state].keys, view.step},
            push, striding(units * view.segments()), flops_per_row * (end - row)));
    }
    return {};
}

Status record_state_scan(Recorder& recorder, const View& view, const StateScan& op) {
    const ScanShape& s = op.shape;
    const Device& device = recorder.device();
    const uint32_t lanes = std::min(kScanLanes, device.subgroup()), apart = kThreads / lanes,
                   each = (s.state_dim + 4 * lanes - 1) / (4 * lanes) * 4;
    // As few blocks as registers allow, and as few rows of each as then do.
    const uint32_t most = std::clamp(kMostScanFloats / each, 1u, 5u),
                   blocks = (s.head_dim + apart * most - 1) / (apart * most),
                   rows_each = (s.head_dim + apart * blocks - 1) / (apart * blocks);
    const double flops_per_row = 5.0 * double(s.state_floats());
    const double fit = std::max(1.0, recorder.flops_per_segment() / flops_per_row);
    const uint32_t rows = uint32_t(std::min(fit, double(view.rows)));
    for (uint32_t row = 0; row < view.rows; row += rows) {
        if (row > 0) recorder.barrier();
        const uint32_t end = std::min(row + rows, view.rows);
        const args::ScanArgs push = {s.heads, s.groups, row, end};
        RL_TRY(recorder.dispatch({device.use_clustered() ? "state_scan_clustered" : "state_scan",
                                  8,
                                  1,
                                  {kThreads, s.head_dim, s.state_dim, lanes, rows_each}},
                                 {view.slot(op.x), view.slot(op.step), view.vector(op.a, view.step),
                                  view.vector(op.step_bias, view.step), view.vector(op.through, view.step),
                                  view.slot(op.y), view.caches[op.state].keys, view.step},
                                 push, striding(uint64_t(s.heads) * blocks * view.segments()),
                                 flops_per_row * (end - row)));
    }
    return {};
}

}  // namespace

std::unique_ptr<Kernel> make_recurrent_kernel(const Op& op, const Plan&, const Device&) {
    if (const auto* o = std::get_if<CopyParts>(&op))
        return simple([o = *o](Recorder& r, const View& v) { return record_copy_parts(r, v, o); });
    if (const auto* o = std::get_if<OutputGate>(&op))
        return simple([o = *o](Recorder& r, const View& v) { return record_output_gate(r, v, o); });
    if (const auto* o = std::get_if<Convolve>(&op))
        return simple([o = *o](Recorder& r, const View& v) {
            return o.apart == 1 ? record_convolve(r, v, o) : record_convolve_apart(r, v, o);
        });
    if (const auto* o = std::get_if<StateScan>(&op)) {
        if (o->shape.state_dim > kMostScanStates) return nullptr;
        return simple([o = *o](Recorder& r, const View& v) { return record_state_scan(r, v, o); });
    }
    const auto* o = std::get_if<DeltaNet>(&op);
    if (!o || o->shape.key_dim > kMostDeltaKeys) return nullptr;
    return simple([o = *o](Recorder& r, const View& v) { return record_delta_net(r, v, o); });
}

}  // namespace redline::vulkan
