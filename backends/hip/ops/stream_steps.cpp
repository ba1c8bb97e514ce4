// StreamMix, StreamAdd, StreamDot, StreamTurn, StreamWeights and StreamBlend.
#include "backends/hip/kernels/block_args.h"
#include "steps.h"

namespace redline::hip {

namespace {

Status launch_mix(Launcher& launcher, const View& view, const StreamMix& op) {
    const uint32_t width = view.width(op.y);
    const bool one_each = view.width(op.weights) == op.streams && width > 1;
    const args::StreamArgs args = {view.step,
                                   view.slot(op.x),
                                   view.slot(op.weights),
                                   view.slot(op.y),
                                   width,
                                   op.streams,
                                   view.of_outputs(op.y),
                                   one_each,
                                   op.scale,
                                   0.0f,
                                   0};
    return launcher.launch("vector", "stream_mix",
                           striding(blocks_for(uint64_t(width) * view.rows_of(op.y), kThreads)), args);
}

Status launch_add(Launcher& launcher, const View& view, const StreamAdd& op) {
    const float* const weights = op.weights ? view.slot(op.weights) : nullptr;
    const args::StreamArgs args = {
        view.step,  view.slot(op.x),       weights,     view.slot(op.y), view.width(op.x),
        op.streams, view.of_outputs(op.y), op.replaces, op.scale,        op.offset,
        op.first};
    const uint64_t elements = uint64_t(view.width(op.y)) * view.rows_of(op.y);
    return launcher.launch("vector", "stream_add", striding(blocks_for(elements, kThreads)), args);
}

Status launch_dot(Launcher& launcher, const View& view, const StreamDot& op) {
    const uint32_t streams = view.width(op.y);
    const args::StreamArgs args = {view.step,
                                   view.slot(op.a),
                                   view.slot(op.b),
                                   view.slot(op.y),
                                   view.width(op.a) / streams,
                                   streams,
                                   view.of_outputs(op.y),
                                   0,
                                   op.scale,
                                   0.0f,
                                   0};
    return launcher.launch("vector", "stream_dot",
                           striding(blocks_for(uint64_t(streams) * view.rows_of(op.y), 1)), args);
}

Status launch_turn(Launcher& launcher, const View& view, const StreamTurn& op) {
    const uint32_t width = view.width(op.y);
    const args::StreamArgs args = {view.step,
                                   view.slot(op.x),
                                   view.slot(op.weights),
                                   view.slot(op.y),
                                   width / op.streams,
                                   op.streams,
                                   view.of_outputs(op.y),
                                   0,
                                   1.0f,
                                   0.0f,
                                   0};
    return launcher.launch("vector", "stream_turn",
                           striding(blocks_for(uint64_t(width) * view.rows_of(op.y), kThreads)), args);
}

Status launch_weights(Launcher& launcher, const View& view, const StreamWeights& op) {
    const args::StreamWeightsArgs args = {view.step,
                                          view.slot(op.x),
                                          view.vector(op.scale),
                                          view.vector(op.base),
                                          view.slot(op.read),
                                          op.add ? view.slot(op.add) : nullptr,
                                          op.mix ? view.slot(op.mix) : nullptr,
                                          view.width(op.read),
                                          view.width(op.x),
                                          view.of_outputs(op.read),
                                          op.rounds,
                                          op.eps};
    return launcher.launch("vector", "stream_weights", striding(view.rows_of(op.read)), args);
}

Status launch_blend(Launcher& launcher, const View& view, const StreamBlend& op) {
    const args::StreamBlendArgs args = {view.step,         view.slot(op.x),    view.slot(op.weights),
                                        view.slot(op.mix), view.slot(op.from), view.slot(op.y),
                                        view.width(op.x),  op.streams,         view.of_outputs(op.y)};
    const uint64_t elements = uint64_t(view.width(op.y)) * view.rows_of(op.y);
    return launcher.launch("vector", "stream_blend", striding(blocks_for(elements, kThreads)), args);
}

}  // namespace

std::unique_ptr<Kernel> make_stream_kernel(const Op& op, const Plan&, const Device&) {
    if (const auto* o = std::get_if<StreamMix>(&op))
        return simple([o = *o](Launcher& l, const View& v) { return launch_mix(l, v, o); });
    if (const auto* o = std::get_if<StreamAdd>(&op))
        return simple([o = *o](Launcher& l, const View& v) { return launch_add(l, v, o); });
    if (const auto* o = std::get_if<StreamTurn>(&op))
        return simple([o = *o](Launcher& l, const View& v) { return launch_turn(l, v, o); });
    if (const auto* o = std::get_if<StreamDot>(&op))
        return simple([o = *o](Launcher& l, const View& v) { return launch_dot(l, v, o); });
    if (const auto* o = std::get_if<StreamWeights>(&op))
        return simple([o = *o](Launcher& l, const View& v) { return launch_weights(l, v, o); });
    if (const auto* o = std::get_if<StreamBlend>(&op))
        return simple([o = *o](Launcher& l, const View& v) { return launch_blend(l, v, o); });
    return nullptr;
}

}  // namespace redline::hip
