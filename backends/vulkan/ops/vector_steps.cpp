// Embed, Input, Lookup, RmsNorm, NormedSum, Center, Sparsify, AddBias, AddPosition, Multiply, Apply, Xielu,
// Add, Scale, Clamp, ActMul, SelectRows: work per row or per element.
#include "backends/vulkan/runtime/executable.h"
#include "steps.h"

namespace redline::vulkan {

namespace {

Status record_embed(Recorder& recorder, const View& view, const Embed& op) {
    const PlacedWeight& table = view.weight(op.table);
    for (const WeightPart& part : table.parts) {
        const args::EmbedArgs push = {uint32_t(table.cols), table.units(part), uint32_t(part.first),
                                      uint32_t(part.rows), op.scale};
        RL_TRY(recorder.dispatch({fmt::format("embed.{}", table.layout->name), 3, 1, {kThreads}},
                                 {part.buffer, view.slot(op.y), view.step}, push, striding(view.rows)));
    }
    return {};
}

args::ElementArgs element_args(const View& view, Slot y, Act act = Act::silu, float scale = 1.0f,
                               float softcap = 0.0f) {
    return {view.width(y), rows_kind(view.plan, y), uint32_t(act), scale, softcap};
}

Groups element_groups(const View& view, Slot y) {
    return striding((uint64_t(view.width(y)) * view.rows_of(y) + kThreads - 1) / kThreads);
}

Status record_normed_sum(Recorder& recorder, const View& view, const NormedSum& op) {
    const args::NormedSumArgs push = {rows_kind(view.plan, op.y), op.first_norm.eps, op.second_norm.eps,
                                      op.norm.eps, op.scale};
    const uint32_t threads = own_threads(recorder.device());
    return recorder.dispatch(
        {"normed_sum", 7, 1, {threads, view.width(op.y), threads}},
        {view.slot(op.first), view.slot(op.second), view.vector(op.first_norm.gain, view.step),
         view.vector(op.second_norm.gain, view.step), view.vector(op.norm.gain, view.step), view.slot(op.y),
         view.step},
        push, striding(view.rows_of(op.y)));
}

}  // namespace

Status record_norm(Recorder& recorder, const View& view, const RmsNorm& op, Binding y) {
    const uint32_t groups = view.width(op.x) / op.width;
    const uint32_t gains = !op.norm                    ? 0
                           : op.gain_of_row(view.plan) ? groups
                                                       : 1,
                   gated = !op.gate     ? 0
                           : op.gates_x ? 1
                                        : 2;  // GATED of rms_norm.comp
    const args::NormArgs push = {op.width,         groups,  rows_kind(view.plan, op.x), gains, op.norm.eps,
                                 uint32_t(op.act), op.scale};
    // A single row is waited for: the more invocations read it, the sooner it is there.
    const uint32_t threads = op.width < 8 * kThreads ? kThreads : own_threads(recorder.device());
    return recorder.dispatch({"rms_norm", 5, 1, {threads, gated, op.adds ? 1u : 0u}},
                             {view.slot(op.x), y, view.vector(op.norm.gain, view.step),
                              op.gate ? view.slot(op.gate) : view.step, view.step},
                             push, striding(uint64_t(groups) * view.rows_of(op.x)));
}

Status record_apply(Recorder& recorder, const View& view, const Apply& op) {
    return recorder.dispatch({"apply", 2, 1, {kThreads, uint32_t(op.function)}}, {view.slot(op.y), view.step},
                             element_args(view, op.y), element_groups(view, op.y));
}

Status record_act_mul(Recorder& recorder, const View& view, Act act, Binding gate, Binding up, Slot y) {
    return recorder.dispatch({"act_mul", 4, 1, {kThreads}}, {gate, up, view.slot(y), view.step},
                             element_args(view, y, act), element_groups(view, y));
}

std::unique_ptr<Kernel> make_vector_kernel(const Op& op, const Plan& plan, const Device&) {
    if (const auto* o = std::get_if<Embed>(&op)) {
        if (!weight_layout(*plan.weight(o->table).tensor.format)) return nullptr;
        return simple([o = *o](Recorder& r, const View& v) { return record_embed(r, v, o); });
    }
    if (const auto* o = std::get_if<Input>(&op))
        return simple([o = *o](Recorder& r, const View& v) {
            return r.dispatch({"copy_rows", 3, 1, {kThreads}}, {v.input, v.slot(o.y), v.step},
                              element_args(v, o.y), element_groups(v, o.y));
        });
    if (const auto* o = std::get_if<Lookup>(&op))
        return simple([o = *o](Recorder& r, const View& v) {
            return r.dispatch({"copy_rows", 3, 1, {kThreads}}, {v.lookups, v.slot(o.y), v.step},
                              element_args(v, o.y), element_groups(v, o.y));
        });
    if (const auto* o = std::get_if<RmsNorm>(&op))
        return simple([o = *o](Recorder& r, const View& v) { return record_norm(r, v, o, v.slot(o.y)); });
    if (const auto* o = std::get_if<NormedSum>(&op))
        return simple([o = *o](Recorder& r, const View& v) { return record_normed_sum(r, v, o); });
    if (const auto* o = std::get_if<Center>(&op))
        return simple([o = *o](Recorder& r, const View& v) {
            const uint32_t groups = v.width(o.x) / o.width;
            const args::NormArgs push = {o.width, groups, rows_kind(v.plan, o.x), 0, 0.0f, 0};
            return r.dispatch({"center", 3, 1, {kThreads}}, {v.slot(o.x), v.slot(o.y), v.step}, push,
                              striding(uint64_t(groups) * v.rows_of(o.x)));
        });
    if (const auto* o = std::get_if<Sparsify>(&op))
        return simple([o = *o](Recorder& r, const View& v) {
            const args::SparsifyArgs push = {v.width(o.y), rows_kind(v.plan, o.y), o.deviations};
            return r.dispatch({"sparsify", 2, 1, {kThreads}}, {v.slot(o.y), v.step}, push,
                              striding(v.rows_of(o.y)));
        });
    if (const auto* o = std::get_if<SelectRows>(&op))
        return simple([o = *o](Recorder& r, const View& v) {
            return r.dispatch({"select_rows", 3, 1, {kThreads}}, {v.slot(o.x), v.slot(o.y), v.step},
                              element_args(v, o.y), element_groups(v, o.y));
        });
    if (const auto* o = std::get_if<AddBias>(&op))
        return simple([o = *o](Recorder& r, const View& v) {
            return r.dispatch({"add_bias", 3, 1, {kThreads}}, {v.vector(o.bias, v.step), v.slot(o.y), v.step},
                              element_args(v, o.y), element_groups(v, o.y));
        });
    if (const auto* o = std::get_if<AddPosition>(&op))
        return simple([o = *o](Recorder& r, const View& v) {
            const uint64_t elements = v.plan.weight(o.table).tensor.shape.elements();
            const args::PositionArgs push = {v.width(o.y), uint32_t(elements / v.width(o.y) - 1)};
            return r.dispatch({"add_position", 3, 1, {kThreads, uint32_t(v.kind)}},
                              {v.vector(o.table, v.step), v.slot(o.y), v.step}, push, element_groups(v, o.y));
        });
    if (const auto* o = std::get_if<Xielu>(&op))
        return simple([o = *o](Recorder& r, const View& v) {
            const args::XieluArgs push = {
                v.width(o.y), rows_kind(v.plan, o.y), o.positive, o.negative, o.linear, o.limit};
            return r.dispatch({"xielu", 2, 1, {kThreads}}, {v.slot(o.y), v.step}, push,
                              element_groups(v, o.y));
        });
    if (const auto* o = std::get_if<Multiply>(&op))
        return simple([o = *o](Recorder& r, const View& v) {
            return r.dispatch({"multiply", 3, 1, {kThreads}},
                              {v.vector(o.factor, v.step), v.slot(o.y), v.step}, element_args(v, o.y),
                              element_groups(v, o.y));
        });
    if (const auto* o = std::get_if<Apply>(&op))
        return simple([o = *o](Recorder& r, const View& v) { return record_apply(r, v, o); });
    if (const auto* o = std::get_if<Add>(&op))
        return simple([o = *o](Recorder& r, const View& v) {
            return r.dispatch({"add", 3, 1, {kThreads}}, {v.slot(o.x), v.slot(o.y), v.step},
                              element_args(v, o.y, {}, o.scale), element_groups(v, o.y));
        });
    if (const auto* o = std::get_if<Scale>(&op))
        return simple([o = *o](Recorder& r, const View& v) {
            return r.dispatch({"scale", 2, 1, {kThreads}}, {v.slot(o.y), v.step},
                              element_args(v, o.y, {}, o.scale, o.softcap), element_groups(v, o.y));
        });
    if (const auto* o = std::get_if<Clamp>(&op))
        return simple([o = *o](Recorder& r, const View& v) {
            return r.dispatch({"clamp", 2, 1, {kThreads}}, {v.slot(o.y), v.step},
                              element_args(v, o.y, {}, o.low, o.high), element_groups(v, o.y));
        });
    if (const auto* o = std::get_if<ActMul>(&op))
        return simple([o = *o](Recorder& r, const View& v) {
            return record_act_mul(r, v, o.act, v.slot(o.gate), v.slot(o.up), o.y);
        });
    return nullptr;
}

}  // namespace redline::vulkan
