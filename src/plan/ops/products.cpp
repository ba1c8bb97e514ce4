#include "plan/ops/products.h"

#include "plan/plan.h"

#include <algorithm>

namespace redline {

// The slot of norm(x); with a norm, it is a separate op.
static Slot normed(Slot x, Norm norm, PlanBuilder& out) {
    return norm ? out.rms_norm(x, norm) : x;
}

Access Linear::access() const {
    return accumulate ? Access{{x, y}, {y}} : Access{{x}, {y}};
}

void Linear::list(OpFacts& f) const {
    f.matrix("w", w, f.width(y), f.width(x));
    f.vector("gain", norm.gain, f.width(x), " +norm");
    f.vector("bias", bias, f.width(y), " +bias");
    if (accumulate) f.note(" +add");
    f.that(!function || !accumulate, "a function cannot be combined with accumulation");
    if (function) f.note(fmt::format(" +{}", function_name(*function)));
}

bool Linear::decompose(PlanBuilder& out) const {
    Linear rest = *this;
    if (function) {
        rest.function = {};
        out.append(rest);
        out.append(each::apply(y, *function));
    } else if (norm) {
        rest.x = normed(x, norm, out);
        rest.norm = {};
        out.append(rest);
    } else if (accumulate) {
        const SlotInfo info = out.plan().slot(y);
        rest.y = out.slot(info.width, info.of_outputs);
        rest.accumulate = false;
        out.append(rest);
        out.append(each::add(y, rest.y, 1.0f));
    } else if (bias) {
        rest.bias = {};
        out.append(rest);
        out.append(each::add_bias(y, bias));
    } else {
        return false;
    }
    return true;
}

Access LinearGroup::access() const {
    Access a{{x}, {}};
    for (uint32_t i = 0; i < count; ++i) a.writes.push_back(parts[i].y);
    return a;
}

void LinearGroup::list(OpFacts& f) const {
    f.that(count >= 1 && count <= parts.size(), "a group has 1 to 4 parts");
    const size_t there = std::min<size_t>(count, parts.size());
    for (size_t i = 0; i < there; ++i) f.matrix("w", parts[i].w, f.width(parts[i].y), f.width(x));
    f.vector("gain", norm.gain, f.width(x), " +norm");
    for (size_t i = 0; i < there; ++i) f.vector("bias", parts[i].bias, f.width(parts[i].y), " +bias");
}

bool LinearGroup::decompose(PlanBuilder& out) const {
    const Slot in = normed(x, norm, out);
    for (uint32_t i = 0; i < count; ++i)
        out.append(Linear{in, parts[i].w, parts[i].y, {}, parts[i].bias, false});
    return true;
}

void Gated::list(OpFacts& f) const {
    f.matrix("gate", gate, f.width(y), f.width(x));
    f.matrix("up", up, f.width(y), f.width(x));
    f.vector("gain", norm.gain, f.width(x), " +norm");
}

bool Gated::decompose(PlanBuilder& out) const {
    const Slot in = normed(x, norm, out);
    const Slot gate_out = out.linear(in, gate), up_out = out.linear(in, up);
    out.append(each::act_times(y, gate_out, up_out, act));
    return true;
}

}  // namespace redline
