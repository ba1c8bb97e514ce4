#include "plan/ops/rows.h"

#include "plan/plan.h"

#include <algorithm>
#include <bit>

namespace redline {

static std::string width_note(const OpFacts& f, Slot s) {
    return fmt::format(" {}", f.width(s));
}

Cost Embed::cost(const Plan& plan, const StepShape& shape) const {
    return {plan.weight(table).tensor.row_bytes() * shape.rows, 0, 0};
}

void Input::list(OpFacts& f) const {
    f.that(y && y == f.plan.input && !f.plan.slot(y).of_outputs, "y must be the plan's input, of all rows");
    f.note(width_note(f, y));
}

void Lookup::list(OpFacts& f) const {
    f.that(y && y == f.plan.lookup && !f.plan.slot(y).of_outputs, "y must be the plan's lookup, of all rows");
    f.note(width_note(f, y));
}

Access RmsNorm::access() const {
    if (adds) return {{x, y}, {y}};
    return gate ? Access{{x, gate}, {y}} : Access{{x}, {y}};
}

// decompose() writes the norm to y before it reads the gate.
void RmsNorm::list(OpFacts& f) const {
    f.slot("y", y, f.width(x));
    f.that(width > 0 && f.width(x) % width == 0, "the row is not a multiple of the norm's width");
    const bool of_row = norm.gain && f.width(x) > width && f.shape(norm.gain).elements() == f.width(x);
    f.vector("gain", norm.gain, of_row ? f.width(x) : width);
    f.note(fmt::format(" {}", width));
    if (of_row) f.note(" gain of the row");
    if (scale != 1.0f) f.note(" scaled");
    if (adds) f.note(" +add");
    f.that(gate || !gates_x, "the gate is missing");
    if (!gate) return;
    f.that(!adds && scale == 1.0f, "with a gate nothing is scaled or added");
    f.slot("gate", gate, f.width(x));
    f.that(gate != y, "the gate must not be y");
    f.note(gates_x ? " +gate before" : " +gate");
}

bool RmsNorm::gain_of_row(const Plan& plan) const {
    return norm.gain && plan.weight(norm.gain).tensor.shape.elements() > width;
}

bool RmsNorm::decompose(PlanBuilder& out) const {
    const SlotInfo info = out.plan().slot(x);
    if (gate && gates_x) {
        out.append(each::act_times(y, gate, x, act));
        out.append(RmsNorm{y, norm, width, y});
        return true;
    }
    if (!gate && !adds && scale == 1.0f) {
        if (!gain_of_row(out.plan())) return false;
        out.append(RmsNorm{x, {{}, norm.eps}, width, y});
        out.append(each::multiply(y, norm.gain));
        return true;
    }
    const Slot normed = adds ? out.slot(info.width, info.of_outputs) : y;
    out.append(RmsNorm{x, norm, width, normed});
    if (gate)
        out.append(each::act_times(y, gate, y, act));
    else if (adds)
        out.append(each::add(y, normed, scale));
    else
        out.append(each::scale(y, scale));
    return true;
}

void NormedSum::list(OpFacts& f) const {
    const uint64_t width = f.width(y);
    f.slot("first", first, width);
    f.slot("second", second, width);
    f.that(first != y && second != y, "y must be a separate slot");
    f.that(first_norm && second_norm && norm, "a norm is missing");
    for (const Norm& one : {first_norm, second_norm, norm}) f.vector("gain", one.gain, width);
    f.note(fmt::format(" {}", width));
    if (scale != 1.0f) f.note(" scaled");
}

bool NormedSum::decompose(PlanBuilder& out) const {
    const SlotInfo info = out.plan().slot(y);
    const Slot sum = out.slot(info.width, info.of_outputs);
    out.append(RmsNorm{first, first_norm, info.width, sum});
    out.add(sum, second, 1.0f, second_norm);
    out.add(y, sum, 1.0f, norm);
    if (scale != 1.0f) out.append(each::scale(y, scale));
    return true;
}

void Hadamard::list(OpFacts& f) const {
    f.slot("y", y, f.width(x));
    f.that(width >= 2 && width <= kMostHadamard && std::has_single_bit(width) && f.width(x) % width == 0,
           "the row has no whole powers of two to rotate");
    f.note(fmt::format(" {}", width));
}

void AddPosition::list(OpFacts& f) const {
    const uint64_t elements = f.shape(table).elements();
    f.vector("table", table, elements);
    f.that(elements > 0 && elements % std::max(1u, uint32_t(f.width(y))) == 0, "the table has other rows");
    f.that(y && !f.plan.slot(y).of_outputs, "y must have a row for each token");
    f.note(width_note(f, y));
}

std::string_view function_name(Function function) {
    switch (function) {
        case Function::silu:
            return "silu";
        case Function::squared_relu:
            return "squared relu";
        case Function::gelu_tanh:
            return "gelu";
        case Function::sigmoid:
            return "sigmoid";
        case Function::signed_root:
            return "signed root";
    }
    return "";
}

void CopyParts::list(OpFacts& f) const {
    const auto end = [this](uint64_t first, uint64_t stride) {
        return first + uint64_t(parts - 1) * stride + width;
    };
    f.that(parts > 0 && width > 0, "there are no parts");
    f.that(x != y && (x_stride == 0 || x_stride >= width) && y_stride >= width, "parts overlap");
    f.that(end(x_first, x_stride) <= f.width(x) && end(y_first, y_stride) <= f.width(y),
           "parts lie outside a row");
    f.note(fmt::format(" {} of {}", parts, width));
}

void OutputGate::list(OpFacts& f) const {
    f.that(head_dim > 0 && f.width(y) % head_dim == 0, "the row is not a multiple of a head's width");
    const uint64_t of_heads = f.width(y) / std::max(1u, head_dim), of_elements = f.width(y);
    const uint64_t given = f.width(x);
    f.that(given == of_heads || given == of_elements || given == 2 * of_elements,
           "x has neither a gate for each head nor for each element");
    f.note(width_note(f, y));
    if (act != GateOf::sigmoid) f.note(act == GateOf::softplus ? " softplus" : " as it is");
    if (given == of_heads) f.note(" by heads");
    if (given == of_elements) f.note(" by elements");
}

void SelectRows::list(OpFacts& f) const {
    f.slot("y", y, f.width(x));
    f.that(y && f.plan.slot(y).of_outputs, "y must be a slot of outputs");
    f.note(width_note(f, y));
}

}  // namespace redline
