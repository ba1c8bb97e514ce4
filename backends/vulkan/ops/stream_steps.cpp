// StreamProduct, StreamWeights and StreamBlend.
#include "steps.h"

namespace redline::vulkan {

namespace {

// A product of two streams is of one work-group, elements are each of one invocation.
Status record_product(Recorder& recorder, const View& view, const StreamProduct& op) {
    const args::StreamArgs push = {uint32_t(op.width(view.plan)),
                                   op.streams,
                                   rows_kind(view.plan, op.y),
                                   op.replaces || op.by_stream(view.plan),
                                   op.scale,
                                   op.offset,
                                   op.first,
                                   bool(op.weights)};
    const uint64_t elements = uint64_t(view.width(op.y)) * view.rows_of(op.y);
    return recorder.dispatch(
        {op.name(), 4, 1, {kThreads}},
        {view.slot(op.x), op.weights ? view.slot(op.weights) : view.step, view.slot(op.y), view.step}, push,
        op.kind == StreamKind::dot ? striding(elements) : element_groups(elements));
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
    if (const auto* o = std::get_if<StreamProduct>(&op))
        return simple([o = *o](Recorder& r, const View& v) { return record_product(r, v, o); });
    if (const auto* o = std::get_if<StreamWeights>(&op))
        return simple([o = *o](Recorder& r, const View& v) { return record_weights(r, v, o); });
    if (const auto* o = std::get_if<StreamBlend>(&op))
        return simple([o = *o](Recorder& r, const View& v) { return record_blend(r, v, o); });
    return nullptr;
}

}  // namespace redline::vulkan
