// Embed, Input, Lookup, RmsNorm, NormedSum, Center, Sparsify, AddPosition, Each, SelectRows: work per row or
// per element; and the best outputs.
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

Status launch_copy(Launcher& launcher, const View& view, const char* kernel, const float* x, Slot y) {
    const args::CopyArgs args = {view.step, x, view.slot(y), view.width(y), view.of_outputs(y)};
    return launcher.launch("vector", kernel,
                           striding(blocks_for(uint64_t(args.width) * view.rows_of(y), kThreads)), args);
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
    if (const auto* o = std::get_if<Embed>(&op)) {
        if (!weight_layout(*plan.weight(o->table).tensor.format)) return nullptr;
        return simple([o = *o](Launcher& l, const View& v) { return launch_embed(l, v, o); });
    }
    if (const auto* o = std::get_if<Input>(&op))
        return simple(
            [o = *o](Launcher& l, const View& v) { return launch_copy(l, v, "copy_rows", v.input, o.y); });
    if (const auto* o = std::get_if<Lookup>(&op))
        return simple(
            [o = *o](Launcher& l, const View& v) { return launch_copy(l, v, "copy_rows", v.lookups, o.y); });
    if (const auto* o = std::get_if<RmsNorm>(&op))
        return simple([o = *o](Launcher& l, const View& v) { return launch_norm(l, v, o, v.slot(o.y)); });
    if (const auto* o = std::get_if<NormedSum>(&op))
        return simple([o = *o](Launcher& l, const View& v) {
            const args::NormedSumArgs args = {v.step,
                                              v.slot(o.first),
                                              v.slot(o.second),
                                              v.vector(o.first_norm.gain),
                                              v.vector(o.second_norm.gain),
                                              v.vector(o.norm.gain),
                                              v.slot(o.y),
                                              v.width(o.y),
                                              v.of_outputs(o.y),
                                              o.first_norm.eps,
                                              o.second_norm.eps,
                                              o.norm.eps,
                                              o.scale};
            return l.launch("vector", "normed_sum", striding(v.rows_of(o.y), kTileThreads), args);
        });
    if (const auto* o = std::get_if<Center>(&op))
        return simple([o = *o](Launcher& l, const View& v) {
            const uint32_t groups = v.width(o.x) / o.width;
            const args::NormArgs args = {v.step,  v.slot(o.x), v.slot(o.y),       nullptr,
                                         o.width, groups,      v.of_outputs(o.x), 0.0f};
            return l.launch("vector", "center", striding(blocks_for(uint64_t(groups) * v.rows_of(o.x), 1)),
                            args);
        });
    if (const auto* o = std::get_if<Hadamard>(&op))
        return simple([o = *o](Launcher& l, const View& v) {
            const uint32_t groups = v.width(o.x) / o.width;
            const args::NormArgs args = {v.step,  v.slot(o.x), v.slot(o.y),       nullptr,
                                         o.width, groups,      v.of_outputs(o.x), 0.0f};
            return l.launch("vector", "hadamard", striding(blocks_for(uint64_t(groups) * v.rows_of(o.x), 1)),
                            args);
        });
    if (const auto* o = std::get_if<Sparsify>(&op))
        return simple([o = *o](Launcher& l, const View& v) {
            const args::SparsifyArgs args = {v.step, v.slot(o.y), v.width(o.y), v.of_outputs(o.y),
                                             o.deviations};
            return l.launch("vector", "sparsify", striding(blocks_for(v.rows_of(o.y), 1)), args);
        });
    if (const auto* o = std::get_if<SelectRows>(&op))
        return simple([o = *o](Launcher& l, const View& v) {
            return launch_copy(l, v, "select_rows", v.slot(o.x), o.y);
        });
    if (const auto* o = std::get_if<AddPosition>(&op))
        return simple([o = *o](Launcher& l, const View& v) {
            const uint64_t elements = v.plan.weight(o.table).tensor.shape.elements();
            const args::PositionArgs args = {
                v.step,      v.places,     v.vector(o.table),
                v.slot(o.y), v.width(o.y), uint32_t(elements / v.width(o.y) - 1)};
            return l.launch("vector", "add_position",
                            striding(blocks_for(uint64_t(args.width) * v.rows, kThreads)), args);
        });
    if (const auto* o = std::get_if<Each>(&op))
        return simple([o = *o](Launcher& l, const View& v) {
            const float* x = o.column ? v.vector(o.column) : o.x ? v.slot(o.x) : nullptr;
            return launch_each(l, v, o.row, x, o.z ? v.slot(o.z) : nullptr, o.y, o.values);
        });
    return nullptr;
}

}  // namespace redline::hip
