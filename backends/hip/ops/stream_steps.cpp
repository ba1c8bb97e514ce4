// StreamProduct, StreamWeights and StreamBlend.
#include "backends/hip/kernels/block_args.h"
#include "steps.h"

namespace redline::hip {

namespace {

// A product of two streams is of one block, elements are each of one thread.
Status launch_product(Launcher& launcher, const View& view, const StreamProduct& op) {
    const args::StreamArgs args = {view.step,
                                   view.slot(op.x),
                                   op.weights ? view.slot(op.weights) : nullptr,
                                   view.slot(op.y),
                                   uint32_t(op.width(view.plan)),
                                   op.streams,
                                   view.of_outputs(op.y),
                                   op.replaces || op.by_stream(view.plan),
                                   op.scale,
                                   op.offset,
                                   op.first};
    const uint64_t elements = uint64_t(view.width(op.y)) * view.rows_of(op.y);
    return launcher.launch("vector", std::string(op.name()),
                           striding(blocks_for(elements, op.kind == StreamKind::dot ? 1 : kThreads)), args);
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
    if (const auto* o = std::get_if<StreamProduct>(&op))
        return simple([o = *o](Launcher& l, const View& v) { return launch_product(l, v, o); });
    if (const auto* o = std::get_if<StreamWeights>(&op))
        return simple([o = *o](Launcher& l, const View& v) { return launch_weights(l, v, o); });
    if (const auto* o = std::get_if<StreamBlend>(&op))
        return simple([o = *o](Launcher& l, const View& v) { return launch_blend(l, v, o); });
    return nullptr;
}

}  // namespace redline::hip
