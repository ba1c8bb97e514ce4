#include "plan/ops/experts.h"

#include "plan/plan.h"

namespace redline {

void Route::list(OpFacts& f) const {
    const uint64_t experts = f.shape(w).rows;
    f.matrix("w", w, experts, f.width(x));
    f.that(used > 0 && used <= experts, "experts used must be between 1 and the experts there are");
    f.slot("ids", ids, used);
    f.slot("scales", scales, used);
    f.vector("bias", bias, experts, " +bias");
    f.note(fmt::format(" best {}", used));
    const ExpertGroups& g = groups;
    f.that(g.used > 0 && g.used <= g.count && experts % g.count == 0 && used <= experts / g.count * g.used &&
               (!g.by_two || experts / g.count > 1),
           "the experts cannot be chosen from such groups");
    if (g.count > 1) f.note(fmt::format(" of the best {} of {} groups", g.used, g.count));
    f.that(!table || g.count == 1, "experts of a table do not stand in groups");
    f.that(!table || f.shape(table).elements() % std::max(used, 1u) == 0, "the table has other rows");
    f.vector("table", table, f.shape(table).elements(), " by token");
    f.vector("norm", norm.gain, f.width(x), " +norm");
    f.that(norm || x_scale == 1.0f, "only a normed input can be scaled");
}

bool Route::decompose(PlanBuilder& out) const {
    if (!norm) return false;
    const uint32_t width = out.plan().slot(x).width;
    Route core = *this;
    core.x = out.slot(width);
    core.norm = {};
    core.x_scale = 1.0f;
    out.append(RmsNorm{x, norm, width, core.x, {}, Act::silu, x_scale});
    out.append(core);
    return true;
}

void ScaleByExpert::list(OpFacts& f) const {
    f.slot("ids", ids, f.width(scales));
    f.that(bool(factor), "the factors are missing");
    f.vector("factor", factor, f.shape(factor).elements());
}

Access AddExpertBias::access() const {
    return scales ? Access{{ids, scales, y}, {y}} : Access{{ids, y}, {y}};
}

void AddExpertBias::list(OpFacts& f) const {
    f.that(used > 0 && f.width(y) % (scales ? 1 : used) == 0, "the row is not a multiple of the experts");
    const uint64_t width = f.width(y) / (scales || used == 0 ? 1 : used);
    const uint64_t elements = f.shape(bias).elements();
    f.that(bool(bias) && width > 0 && elements % width == 0, "the bias is not one of experts");
    f.vector("bias", bias, elements);
    f.slot("ids", ids, used);
    if (scales) f.slot("scales", scales, used);
    f.note(fmt::format(" {} of {} experts{}", width, used, scales ? " weighted" : ""));
}

std::vector<Op> block_parts(const ExpertBlock& block) {
    std::vector<Op> parts = {block.norm, block.route, block.gated, block.linear};
    const SharedExpert& s = block.shared;
    const Slot x = block.norm.y, into = block.norm.x;
    if (s.router)
        parts.insert(parts.end(), {Route{x, s.router, s.ids, s.scale, 1, Gating::sigmoid, false},
                                   products::gated_by_expert(x, s.gate, s.up, s.hidden, {s.ids, 1}, s.act),
                                   products::by_expert(s.hidden, s.down, into, {s.ids, 1, true, s.scale})});
    else if (s)
        parts.insert(parts.end(), {products::gated(x, s.gate, s.up, s.hidden, s.act),
                                   products::linear(s.hidden, s.down, into, {}, {}, true)});
    return parts;
}

Access ExpertBlock::access() const {
    Access used{{norm.x}, {norm.x}, false, false, {norm.y, route.ids, route.scales, gated.y()}};
    for (const Slot s : {shared.ids, shared.scale, shared.hidden})
        if (s) used.scratch.push_back(s);
    return used;
}

void ExpertBlock::list(OpFacts& f) const {
    for (const Op& part : block_parts(*this)) std::visit([&](const auto& op) { op.list(f); }, part);
    f.that(route.x == norm.y && gated.x == norm.y && !route.norm,
           "router and experts must read the normed row");
    f.that(gated.by() == By::expert && gated.act && linear.by() == By::expert,
           "the products of a block are with experts");
    f.that(linear.x == gated.y() && linear.y() == norm.x && linear.experts.scales == route.scales,
           "the experts' results must be weighted by the router and added to x");
    f.notes = fmt::format(" best {}{} +norm +add", route.used,
                          !shared         ? ""
                          : shared.router ? " and a weighted one for all"
                                          : " and one for all");
}

Cost ExpertBlock::cost(const Plan& plan, const StepShape& shape) const {
    Cost sum;
    for (const Op& part : block_parts(*this)) sum = sum + redline::cost(part, plan, shape);
    return sum;
}

bool ExpertBlock::decompose(PlanBuilder& out) const {
    for (const Op& part : block_parts(*this)) out.append(part);
    return true;
}

}  // namespace redline
