// Ops with weights that have scales: they are decomposed as far as possible, and then their results are
// multiplied.
#include "plan/plan.h"

#include <type_traits>

namespace redline {

static bool has_scale(const Op& op, const Plan& plan) {
    bool found = false;
    Op copy = op;
    std::visit(
        [&](auto& one) {
            one.visit_indices([&](auto&... indices) {
                const auto look = [&](const auto& index) {
                    if constexpr (std::is_same_v<std::decay_t<decltype(index)>, Weight>)
                        if (index && size_t(index.index) < plan.weights.size())
                            found |= plan.weight(index).scale != 1.0f || plan.weight(index).scales;
                };
                (look(indices), ...);
            });
        },
        copy);
    return found;
}

void PlanBuilder::append(Op op) {
    if (append_rotated(op)) return;
    if (!has_scale(op, plan_)) return push(std::move(op));
    if (auto* o = std::get_if<Embed>(&op)) {
        o->scale *= plan_.weight(o->table).scale;
        return push(*o);
    }
    if (decompose(op, *this)) return;
    if (const auto* o = std::get_if<Product>(&op)) return append_scaled(*o);
    if (const auto* o = std::get_if<Route>(&op)) return append_scaled(*o);
    RL_CHECK(false, "{} has a weight with a scale", op_name(op));
}

// In weighted sums the experts' weights are scaled; other products with experts are multiplied with gates
// that hold the scale.
void PlanBuilder::append_scaled(const Product& op) {
    const WeightInfo& w = plan_.weight(op.w());
    const Shape shape = w.tensor.shape;
    const uint32_t rows = uint32_t(shape.rows), used = op.experts.used;
    const float scale = w.scale;
    const Weight scales = w.scales;
    if (op.by() == By::head) {
        // Elements of y between the parts keep their values, so the parts are scaled in a separate slot
        // first.
        const uint32_t heads = uint32_t(shape.count);
        const Slot alone = slot(heads * rows, plan_.slot(op.y()).of_outputs);
        push(products::by_head(op.x, op.w(), alone, {op.strides.x, rows}));
        push(each::scale(alone, scale));
        return push(CopyParts{alone, op.y(), heads, rows, 0, rows, 0, op.strides.y});
    }
    if (op.experts.scales) {
        Product scaled = op;
        scaled.experts.scales = parts_of(op.experts.scales, 1, used, 0, used);
        push(scales ? Op(ScaleByExpert{scaled.experts.scales, op.experts.ids, scales})
                    : Op(each::scale(scaled.experts.scales, scale)));
        return push(scaled);
    }
    push(op);
    if (!scales) return push(each::scale(op.y(), scale));
    const Slot gates = parts_of(op.x, used, 1, 0, 0);
    push(each::clamp(gates, 1.0f, 1.0f));
    push(ScaleByExpert{gates, op.experts.ids, scales});
    push(OutputGate{gates, op.y(), rows, GateOf::itself});
}

// Scaling the router's input scales its logits.
void PlanBuilder::append_scaled(const Route& op) {
    const uint32_t width = plan_.slot(op.x).width;
    Route scaled = op;
    scaled.x = parts_of(op.x, 1, width, 0, width);
    push(each::scale(scaled.x, plan_.weight(op.w).scale));
    push(scaled);
}

}  // namespace redline
