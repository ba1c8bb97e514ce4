// Embed, RmsNorm, NormedSum, Each, and all of plain_ops.h: work per row or per element; and the best outputs.
#include "backends/hip/kernels/block_args.h"
#include "steps.h"

namespace redline::hip {

namespace {

Status launch_embed(Launcher& launcher, const View& view, const Embed& op) {
    const Shape& shape = view.plan.weight(op.table).tensor.shape;
    const std::string module = view.weights[op.table].layout->name;
    const args::EmbedArgs args = {view.step,
                                  view.weights[op.table].matrix(),
                                  view.slot(op.y),
                                  uint32_t(shape.rows),
                                  uint32_t(shape.cols),
                                  op.scale};
    return launcher.launch(module, "embed_" + module, {view.rows, 1, 1, kThreads}, args);
}

Status launch_normed_sum(Launcher& launcher, const View& view, const NormedSum& op) {
    const args::NormedSumArgs args = {view.step,
                                      view.slot(op.first),
                                      view.slot(op.second),
                                      view.vector(op.first_norm.gain),
                                      view.vector(op.second_norm.gain),
                                      view.vector(op.norm.gain),
                                      view.slot(op.y),
                                      view.width(op.y),
                                      view.of_outputs(op.y),
                                      op.first_norm.eps,
                                      op.second_norm.eps,
                                      op.norm.eps,
                                      op.scale};
    return launcher.launch("vector", "normed_sum", striding(view.rows_of(op.y), kTileThreads), args);
}

Status launch_each_of(Launcher& launcher, const View& view, const Each& op) {
    const float* x = op.column ? view.vector(op.column) : op.x ? view.slot(op.x) : nullptr;
    return launch_each(launcher, view, op.row, x, op.z ? view.slot(op.z) : nullptr, op.y, op.values);
}

Status launch_norm_of(Launcher& launcher, const View& view, const RmsNorm& op) {
    return launch_norm(launcher, view, op, view.slot(op.y));
}

}  // namespace

Status launch_each(Launcher& launcher, const View& view, EachRow row, const float* x, const float* z, Slot y,
                   const std::array<float, kMostEachValues>& values) {
    args::EachArgs args = {view.step, x, z, view.slot(y), view.width(y), view.of_outputs(y)};
    static_assert(sizeof args.values == sizeof values);
    std::ranges::copy(values, args.values);
    return launcher.launch("each", std::string(each_facts(row).name),
                           striding(blocks_for(uint64_t(args.width) * view.rows_of(y), kThreads)), args);
}

Status launch_norm(Launcher& launcher, const View& view, const RmsNorm& op, float* y) {
    const uint32_t groups = view.width(op.x) / op.width;
    const args::NormArgs args = {view.step,
                                 view.slot(op.x),
                                 y,
                                 view.vector(op.norm.gain),
                                 op.width,
                                 groups,
                                 view.of_outputs(op.x),
                                 op.norm.eps,
                                 op.scale,
                                 uint32_t(op.act),
                                 op.gate ? view.slot(op.gate) : nullptr,
                                 op.gain_of_row(view.plan) ? groups : 1};
    const char* kernel = op.gates_x ? "rms_norm_of_gated"
                         : op.gate  ? "rms_norm_gated"
                         : op.adds  ? "rms_norm_add"
                                    : "rms_norm";
    return launcher.launch("vector", kernel, striding(blocks_for(uint64_t(groups) * view.rows_of(op.x), 1)),
                           args);
}

// What is picked comes first in scratch, row after row, and behind it what the first turn picks.
Status launch_best(Launcher& launcher, const View& view) {
    static_assert(args::kBestSlice == kBestSlice);
    const uint32_t slices = best_slices(view.plan);
    float *const picked = view.scratch_at(0), *const between = view.scratch_at(best_bytes(view.plan));
    const uint32_t width = view.width(view.plan.output);
    const args::BestArgs first = {view.step, view.slot(view.plan.output), between, kMostBest, 0, width},
                         second = {view.step, between, picked, kMostBest, 1, best_between(view.plan)};
    RL_TRY(launcher.launch("vector", "best", {slices, view.outputs, 1, kTileThreads}, first));
    return launcher.launch("vector", "best", {1, view.outputs, 1, kTileThreads}, second);
}

std::unique_ptr<Kernel> make_vector_kernel(const Op& op, const Plan& plan, const Device&) {
    if (const auto* o = std::get_if<Embed>(&op))
        if (!weight_layout(*plan.weight(o->table).tensor.format)) return nullptr;
#define RL_PLAIN(OP, ARGS) plain<args::ARGS, OP>,
    return gpu::first_of<Gpu>(op, RL_PLAIN_OPS(RL_PLAIN) launch_embed, launch_norm_of, launch_normed_sum,
                              launch_each_of);
#undef RL_PLAIN
}

}  // namespace redline::hip
