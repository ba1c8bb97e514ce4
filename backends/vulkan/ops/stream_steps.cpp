// StreamMix, StreamAdd, StreamDot, StreamTurn, StreamWeights and StreamBlend.
#include "steps.h"

namespace redline::vulkan {

namespace {

Status record_mix(Recorder& recorder, const View& view, const StreamMix& op) {
    const uint32_t width = view.width(op.y);
    const bool one_each = view.width(op.weights) == op.streams && width > 1;
    const args::StreamArgs push = {width, op.streams, rows_kind(view.plan, op.y), one_each, op.scale, 0.0f,
                                   0,     1};
    return recorder.dispatch({"stream_mix", 4, 1, {kThreads}},
                             {view.slot(op.x), view.slot(op.weights), view.slot(op.y), view.step}, push,
                             element_groups(uint64_t(width) * view.rows_of(op.y)));
}

Status record_add(Recorder& recorder, const View& view, const StreamAdd& op) {
    const args::StreamArgs push = {view.width(op.x), op.streams,      rows_kind(view.plan, op.y),
                                   op.replaces,      op.scale,        op.offset,
                                   op.first,         bool(op.weights)};
    const Binding weights = op.weights ? view.slot(op.weights) : view.step;
    return recorder.dispatch({"stream_add", 4, 1, {kThreads}},
                             {view.slot(op.x), weights, view.slot(op.y), view.step}, push,
                             element_groups(uint64_t(view.width(op.y)) * view.rows_of(op.y)));
}

Status record_dot(Recorder& recorder, const View& view, const StreamDot& op) {
    const uint32_t streams = view.width(op.y);
    const args::StreamArgs push = {
        view.width(op.a) / streams, streams, rows_kind(view.plan, op.y), 0, op.scale, 0.0f, 0, 1};
    return recorder.dispatch({"stream_dot", 4, 1, {kThreads}},
                             {view.slot(op.a), view.slot(op.b), view.slot(op.y), view.step}, push,
                             striding(uint64_t(streams) * view.rows_of(op.y)));
}

Status record_turn(Recorder& recorder, const View& view, const StreamTurn& op) {
    const uint32_t width = view.width(op.y);
    const args::StreamArgs push = {
        width / op.streams, op.streams, rows_kind(view.plan, op.y), 0, 1.0f, 0.0f, 0, 1};
    return recorder.dispatch({"stream_turn", 4, 1, {kThreads}},
                             {view.slot(op.x), view.slot(op.weights), view.slot(op.y), view.step}, push,
                             element_groups(uint64_t(width) * view.rows_of(op.y)));
}

Status record_weights(Recorder& recorder, const View& view, const StreamWeights& op) {
    const args::StreamWeightsArgs push = {view.width(op.read), view.width(op.x),
                                          rows_kind(view.plan, op.read), op.add ? op.rounds : 0, op.eps};
    return recorder.dispatch(
        {"stream_weights", 7, 1, {kThreads}},
        {view.slot(op.x), view.vector(op.scale, view.step), view.vector(op.base, view.step),
         view.slot(op.read), view.slot(op.add ? op.add : op.read), view.slot(op.mix ? op.mix : op.read),
         view.step},
        push, striding(view.rows_of(op.read)));
}

Status record_blend(Recorder& recorder, const View& view, const StreamBlend& op) {
    const args::StreamBlendArgs push = {view.width(op.x), op.streams, rows_kind(view.plan, op.y)};
    return recorder.dispatch({"stream_blend", 6, 1, {kThreads}},
                             {view.slot(op.x), view.slot(op.weights), view.slot(op.mix), view.slot(op.from),
                              view.slot(op.y), view.step},
                             push, element_groups(uint64_t(view.width(op.y)) * view.rows_of(op.y)));
}

}  // namespace

std::unique_ptr<Kernel> make_stream_kernel(const Op& op, const Plan&, const Device&) {
    if (const auto* o = std::get_if<StreamMix>(&op))
        return simple([o = *o](Recorder& r, const View& v) { return record_mix(r, v, o); });
    if (const auto* o = std::get_if<StreamAdd>(&op))
        return simple([o = *o](Recorder& r, const View& v) { return record_add(r, v, o); });
    if (const auto* o = std::get_if<StreamTurn>(&op))
        return simple([o = *o](Recorder& r, const View& v) { return record_turn(r, v, o); });
    if (const auto* o = std::get_if<StreamDot>(&op))
        return simple([o = *o](Recorder& r, const View& v) { return record_dot(r, v, o); });
    if (const auto* o = std::get_if<StreamWeights>(&op))
        return simple([o = *o](Recorder& r, const View& v) { return record_weights(r, v, o); });
    if (const auto* o = std::get_if<StreamBlend>(&op))
        return simple([o = *o](Recorder& r, const View& v) { return record_blend(r, v, o); });
    return nullptr;
}

}  // namespace redline::vulkan
