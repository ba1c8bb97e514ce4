#include "plan/ops/recurrent.h"

#include "plan/plan.h"

namespace redline {

static void list_state(OpFacts& f, Cache index, uint64_t floats) {
    const CacheInfo* state = f.cache(index);
    f.that(!state || state->state_floats == floats, "the cache holds no states of this size");
}

Access Convolve::access() const {
    Access used{{x}, {y}, true, true};
    for (const Slot factor : {before, behind})
        if (factor) used.reads.push_back(factor);
    return used;
}

void Convolve::list(OpFacts& f) const {
    const uint64_t width = f.width(x);
    f.that(taps >= 2 && taps <= kMostTaps, "the taps must be 2 to 4");
    f.slot("y", y, width);
    f.that(x != y && behind != y && before != y, "y must be a separate slot");
    if (before) f.slot("before", before, width);
    if (behind) f.slot("behind", behind, width);
    f.vector("taps", w, width * taps);
    f.that(apart > 0, "the taps must be apart");
    list_state(f, state, width * kept());
    f.note(fmt::format(" {} of {}{}{}{}", width, taps, silu ? " silu" : "", before ? " +before" : "",
                       behind ? " +behind" : ""));
    f.vector("bias", bias, width, " +bias");
    f.that(!bias || !behind, "with a bias nothing is multiplied behind");
    if (apart > 1) f.note(fmt::format(" {} apart", apart));
}

bool Convolve::decompose(PlanBuilder& out) const {
    if (!bias) return false;
    Convolve core = *this;
    core.bias = {};
    core.silu = false;
    out.append(core);
    out.append(each::add_bias(y, bias));
    if (silu) out.append(each::silu(y));
    return true;
}

// The state is both read and written.
Cost Convolve::cost(const Plan& plan, const StepShape& shape) const {
    const uint64_t width = plan.slot(x).width;
    return {width * taps * 4, 2 * plan.cache(state).row_bytes(), 2 * shape.rows * width * taps};
}

void StateScan::list(OpFacts& f) const {
    const ScanShape& s = shape;
    f.that(s.heads > 0 && s.groups > 0 && s.head_dim > 0 && s.state_dim > 0,
           "sizes of heads must not be zero");
    f.that(s.groups == 0 || s.heads % s.groups == 0, "heads must be a multiple of their groups");
    f.slot("x", x, s.width());
    f.slot("step", step, s.heads);
    f.slot("y", y, s.inner());
    f.that(x != y, "y must be a separate slot");
    f.vector("a", a, s.heads);
    f.vector("step bias", step_bias, s.heads);
    f.vector("through", through, s.heads);
    f.that(bool(a) && bool(step_bias) && bool(through), "a vector is missing");
    list_state(f, state, s.state_floats());
    f.note(fmt::format(" {} heads of {}, states of {}", s.heads, s.head_dim, s.state_dim));
}

Cost StateScan::cost(const Plan& plan, const StepShape& step_shape) const {
    return {0, 2 * plan.cache(state).row_bytes(), 5 * step_shape.rows * shape.state_floats()};
}

void DeltaNet::list(OpFacts& f) const {
    const DeltaShape& s = shape;
    f.that(s.heads > 0 && s.key_heads > 0 && s.key_dim > 0 && s.value_dim > 0,
           "head counts must not be zero");
    f.that(s.key_heads == 0 || s.heads % s.key_heads == 0, "heads must be a multiple of key heads");
    f.slot("qkv", qkv, s.width());
    f.slot("beta", beta, s.heads);
    f.slot("alpha", alpha, s.heads);
    f.slot("y", y, s.values());
    f.vector("a", a, s.heads);
    f.vector("dt", dt, s.heads);
    list_state(f, state, s.state_floats());
    f.note(fmt::format(" {} heads of {}, {} keys of {}{}", s.heads, s.value_dim, s.key_heads, s.key_dim,
                       s.in_turns ? " in turns" : ""));
}

Cost DeltaNet::cost(const Plan& plan, const StepShape& step) const {
    return {0, 2 * plan.cache(state).row_bytes(), 7 * step.rows * shape.state_floats()};
}

}  // namespace redline
