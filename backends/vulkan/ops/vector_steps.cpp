// Embed, RmsNorm, NormedSum, Each, and all of plain_ops.h: work per row or per element.
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

static Status record_norm_of(Recorder& recorder, const View& view, const RmsNorm& op) {
    return record_norm(recorder, view, op, view.slot(op.y));
}

// The bindings are those of what the row reads, of y and of the step.
static Status record_each(Recorder& recorder, const View& view, const Each& op,
                          std::initializer_list<Binding> bindings) {
    args::EachArgs push = {view.width(op.y), rows_kind(view.plan, op.y)};
    static_assert(sizeof push.values == sizeof op.values);
    std::ranges::copy(op.values, push.values);
    return recorder.dispatch({std::string(op.name()), uint32_t(bindings.size()), 1, {kThreads}}, bindings,
                             push, element_groups(uint64_t(view.width(op.y)) * view.rows_of(op.y)));
}

static Status record_each_of(Recorder& recorder, const View& view, const Each& op) {
    switch (each_facts(op.row).operands) {
        case Operands::alone:
            return record_each(recorder, view, op, {view.slot(op.y), view.step});
        case Operands::rows:
            return record_each(recorder, view, op, {view.slot(op.x), view.slot(op.y), view.step});
        case Operands::pair:
            return record_each(recorder, view, op,
                               {view.slot(op.x), view.slot(op.z), view.slot(op.y), view.step});
        case Operands::column:
            break;
    }
    return record_each(recorder, view, op, {view.vector(op.column, view.step), view.slot(op.y), view.step});
}

Status record_apply(Recorder& recorder, const View& view, const Applied& op) {
    return record_each_of(recorder, view, each::apply(op.y, op.function));
}

Status record_act_mul(Recorder& recorder, const View& view, Act act, Binding gate, Binding up, Slot y) {
    return record_each(recorder, view, {each::row_of(act), y}, {gate, up, view.slot(y), view.step});
}

std::unique_ptr<Kernel> make_vector_kernel(const Op& op, const Plan& plan, const Device&) {
    if (const auto* o = std::get_if<Embed>(&op))
        if (!weight_layout(*plan.weight(o->table).tensor.format)) return nullptr;
#define RL_PLAIN(OP, ARGS) plain<args::ARGS, OP>,
    return gpu::first_of<Gpu>(op, RL_PLAIN_OPS(RL_PLAIN) record_embed, record_norm_of, record_normed_sum,
                              record_each_of);
#undef RL_PLAIN
}

}  // namespace redline::vulkan
