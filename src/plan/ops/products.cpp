#include "plan/ops/products.h"

#include "plan/plan.h"

#include <algorithm>
#include <cmath>

namespace redline {

std::string_view Product::name() const {
    if (by() == By::head) return "head_linear";
    if (by() == By::expert) return act ? "expert_gated" : "expert_linear";
    return act ? "gated" : count > 1 ? "linear_group" : "linear";
}

// Elements between the parts of heads keep their values, so that y is read, too.
Access Product::access() const {
    Access used{{x}, {}};
    for (const Slot slot : {experts.ids, experts.scales})
        if (slot) used.reads.push_back(slot);
    if (accumulate || by() == By::head) used.reads.push_back(y());
    for (const Part& part : all())
        if (part.y) used.writes.push_back(part.y);
    return used;
}

std::optional<Operand> Product::operand() const {
    if (by() == By::head) return {};
    return Operand{x, norm};
}

static void list_matrices(OpFacts& f, const Product& op) {
    const Shape first = f.shape(op.w());
    for (const Product::Part& part : op.all()) {
        const char* const name = !op.act ? "w" : &part == &op.parts[0] ? "gate" : "up";
        if (op.by() == By::row)
            f.matrix(name, part.w, f.width(op.target(part)), f.width(op.x));
        else
            f.matrix(name, part.w, first.rows, first.cols, first.count);
    }
    if (op.by() == By::expert) {
        f.slot("x", op.x, first.cols * op.x_rows());
        f.slot("y", op.y(), first.rows * op.y_rows());
        f.slot("ids", op.experts.ids, op.experts.used);
        if (op.experts.scales) f.slot("scales", op.experts.scales, op.experts.used);
        f.note(fmt::format(" of {} experts", op.experts.used));
    }
    if (op.by() == By::head) {
        f.that(op.strides.x >= first.cols && op.strides.y >= first.rows, "the parts of heads overlap");
        f.slot("x", op.x, first.count * op.strides.x);
        f.slot("y", op.y(), first.count * op.strides.y);
        f.that(op.x != op.y(), "y must be a separate slot");
        f.note(fmt::format(" of {} heads", first.count));
    }
}

void Product::list(OpFacts& f) const {
    const bool by_row = by() == By::row, by_head = by() == By::head, by_expert = by() == By::expert;
    const bool can_be_listed = count >= 1 && count <= parts.size();
    f.that(can_be_listed, "a product has 1 to 4 matrices");
    if (!can_be_listed) return;
    list_matrices(f, *this);
    const bool has_bias = std::ranges::any_of(all(), [](const Part& part) { return bool(part.bias); });
    f.vector("gain", norm.gain, f.width(x), " +norm");
    for (const Part& part : all()) {
        const Shape shape = f.shape(part.w);
        f.vector("bias", part.bias, shape.rows * shape.count, " +bias");
    }
    if (accumulate) f.note(" +add");
    if (function) f.note(fmt::format(" +{}", function_name(*function)));
    f.that(!function || !accumulate, "a function cannot be combined with accumulation");
    f.that(count == 1 || (!function && !accumulate),
           "several matrices have neither a function nor add into y");
    f.that(!act || (count == 2 && !parts[1].y), "a gated product has two matrices and one slot");
    f.that(!act || by_expert || !has_bias, "such a gated product has no biases");
    f.that(by_row || !norm, "only whole rows are normed");
    f.that(!by_head || (count == 1 && !act && !has_bias && !accumulate && !function),
           "products with heads have nothing fused");
    f.that(!by_expert || (count == (act ? 2 : 1) && accumulate == bool(experts.scales)),
           "products with experts are of one matrix, or gated, and add into y by scales");
    f.that(!act || !experts.per_expert, "a gated product reads one row for all experts");
    f.that(by_expert || (!experts.ids && !experts.scales && !experts.per_expert),
           "there are no experts to choose from");
}

static Cost expert_cost(const Tensor& w, uint64_t used, uint64_t rows) {
    // Experts that at least one row picks, when each picks `used` of all evenly.
    const double count = double(w.shape.count);
    const double touched = count * (1.0 - std::pow(1.0 - double(used) / count, double(rows)));
    return {uint64_t(double(w.bytes() / w.shape.count) * touched), 0,
            2 * rows * used * w.shape.rows * w.shape.cols};
}

Cost Product::cost(const Plan& plan, const StepShape& shape) const {
    const uint64_t rows = plan.slot(y()).of_outputs ? shape.outputs : shape.rows;
    Cost sum;
    for (const Part& part : all()) {
        const Tensor& tensor = plan.weight(part.w).tensor;
        sum = sum + (by() == By::expert ? expert_cost(tensor, experts.used, rows)
                                        : Cost{tensor.bytes(), 0, 2 * rows * tensor.shape.elements()});
    }
    return sum;
}

Op bias_of(const Product& op) {
    const ChosenExperts& e = op.experts;
    return e.used > 0 ? Op(AddExpertBias{op.y(), op.bias(), e.ids, e.scales, e.used})
                      : Op(each::add_bias(op.y(), op.bias()));
}

// Each matrix by itself.
static void append_apart(const Product& op, PlanBuilder& out) {
    std::vector<Slot> slots;
    for (const Product::Part& part : op.all()) {
        Product one = op;
        one.act = {};
        one.parts = {part};
        one.count = 1;
        if (op.act) {
            const SlotInfo info = out.plan().slot(op.y());
            one.parts[0].y = out.slot(info.width, info.of_outputs);
        }
        slots.push_back(one.y());
        out.append(one);
    }
    if (op.act) out.append(each::act_times(op.y(), slots[0], slots[1], *op.act));
}

bool Product::decompose(PlanBuilder& out) const {
    Product rest = *this;
    if (function) {
        rest.function = {};
        out.append(rest);
        out.append(each::apply(y(), *function));
    } else if (norm) {
        rest.x = out.rms_norm(x, norm);
        rest.norm = {};
        out.append(rest);
    } else if (count > 1) {
        append_apart(*this, out);
    } else if (accumulate && by() == By::row) {
        const SlotInfo info = out.plan().slot(y());
        rest.parts[0].y = out.slot(info.width, info.of_outputs);
        rest.accumulate = false;
        out.append(rest);
        out.append(each::add(y(), rest.y(), 1.0f));
    } else if (bias()) {
        rest.parts[0].bias = {};
        out.append(rest);
        out.append(bias_of(*this));
    } else {
        return false;
    }
    return true;
}

namespace products {

Product linear(Slot x, Weight w, Slot y, Norm norm, Weight bias, bool accumulate,
               std::optional<Function> function) {
    return {.x = x, .parts = {{{w, bias, y}}}, .norm = norm, .accumulate = accumulate, .function = function};
}

Product group(Slot x, std::span<const Product::Part> parts, Norm norm) {
    Product op{.x = x, .parts = {}, .count = uint32_t(parts.size()), .norm = norm};
    std::ranges::copy(parts.first(std::min(parts.size(), op.parts.size())), op.parts.begin());
    return op;
}

Product gated(Slot x, Weight gate, Weight up, Slot y, Act act, Norm norm) {
    return {.x = x, .parts = {{{gate, {}, y}, {up}}}, .count = 2, .norm = norm, .act = act};
}

Product by_head(Slot x, Weight w, Slot y, HeadStrides strides) {
    return {.x = x, .parts = {{{w, {}, y}}}, .strides = strides};
}

Product by_expert(Slot x, Weight w, Slot y, ChosenExperts experts, Weight bias,
                  std::optional<Function> function) {
    return {.x = x,
            .parts = {{{w, bias, y}}},
            .accumulate = bool(experts.scales),
            .function = function,
            .experts = experts};
}

Product gated_by_expert(Slot x, Weight gate, Weight up, Slot y, ChosenExperts experts, Act act,
                        Weight gate_bias, Weight up_bias) {
    return {
        .x = x, .parts = {{{gate, gate_bias, y}, {up, up_bias}}}, .count = 2, .act = act, .experts = experts};
}

}  // namespace products

}  // namespace redline
