// Embed, Input, Lookup, RmsNorm, NormedSum, Center, Sparsify, AddBias, AddPosition, Multiply, Apply, Xielu,
// Add, Scale, Clamp, ActMul, SelectRows: work per row or per element; and the best outputs.
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

struct Element {
    const float* x;
    const float* z;
    Slot y;
    Act act = Act::silu;
    float scale = 1.0f;
    float softcap = 0.0f;
};

Status launch_element(Launcher& launcher, const View& view, const char* kernel, const Element& e) {
    const args::ElementArgs args = {
        view.step,       e.x,     e.z,      view.slot(e.y), view.width(e.y), view.of_outputs(e.y),
        uint32_t(e.act), e.scale, e.softcap};
    return launcher.launch("vector", kernel,
                           striding(blocks_for(uint64_t(args.width) * view.rows_of(e.y), kThreads)), args);
}

const char* kernel_of(redline::Function function) {
    switch (function) {
        case redline::Function::silu:
            return "silu";
        case redline::Function::squared_relu:
            return "squared_relu";
        case redline::Function::gelu_tanh:
            return "gelu";
        case redline::Function::sigmoid:
            return "sigmoid";
        case redline::Function::signed_root:
            return "signed_root";
    }
    return "";
}

}  // namespace

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
        return simple([o = *o](Launcher& l, const View& v) {
            return launch_element(l, v, "copy_rows", {v.input, nullptr, o.y});
        });
    if (const auto* o = std::get_if<Lookup>(&op))
        return simple([o = *o](Launcher& l, const View& v) {
            return launch_element(l, v, "copy_rows", {v.lookups, nullptr, o.y});
        });
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
    if (const auto* o = std::get_if<Sparsify>(&op))
        return simple([o = *o](Launcher& l, const View& v) {
            const args::SparsifyArgs args = {v.step, v.slot(o.y), v.width(o.y), v.of_outputs(o.y),
                                             o.deviations};
            return l.launch("vector", "sparsify", striding(blocks_for(v.rows_of(o.y), 1)), args);
        });
    if (const auto* o = std::get_if<SelectRows>(&op))
        return simple([o = *o](Launcher& l, const View& v) {
            return launch_element(l, v, "select_rows", {v.slot(o.x), nullptr, o.y});
        });
    if (const auto* o = std::get_if<AddBias>(&op))
        return simple([o = *o](Launcher& l, const View& v) {
            return launch_element(l, v, "add_bias", {v.vector(o.bias), nullptr, o.y});
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
    if (const auto* o = std::get_if<Xielu>(&op))
        return simple([o = *o](Launcher& l, const View& v) {
            const args::XieluArgs args = {v.step,     v.slot(o.y), v.width(o.y), v.of_outputs(o.y),
                                          o.positive, o.negative,  o.linear,     o.limit};
            return l.launch("vector", "xielu",
                            striding(blocks_for(uint64_t(args.width) * v.rows_of(o.y), kThreads)), args);
        });
    if (const auto* o = std::get_if<Multiply>(&op))
        return simple([o = *o](Launcher& l, const View& v) {
            return launch_element(l, v, "multiply", {v.vector(o.factor), nullptr, o.y});
        });
    if (const auto* o = std::get_if<Apply>(&op))
        return simple([o = *o](Launcher& l, const View& v) {
            return launch_element(l, v, kernel_of(o.function), {nullptr, nullptr, o.y});
        });
    if (const auto* o = std::get_if<Add>(&op))
        return simple([o = *o](Launcher& l, const View& v) {
            return launch_element(l, v, "add", {v.slot(o.x), nullptr, o.y, {}, o.scale});
        });
    if (const auto* o = std::get_if<Scale>(&op))
        return simple([o = *o](Launcher& l, const View& v) {
            return launch_element(l, v, "scale", {nullptr, nullptr, o.y, {}, o.scale, o.softcap});
        });
    if (const auto* o = std::get_if<Clamp>(&op))
        return simple([o = *o](Launcher& l, const View& v) {
            return launch_element(l, v, "clamp", {nullptr, nullptr, o.y, {}, o.low, o.high});
        });
    if (const auto* o = std::get_if<ActMul>(&op))
        return simple([o = *o](Launcher& l, const View& v) {
            return launch_element(l, v, "act_mul", {v.slot(o.gate), v.slot(o.up), o.y, o.act});
        });
    return nullptr;
}

}  // namespace redline::hip
