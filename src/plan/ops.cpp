#include "plan/ops.h"

#include "plan/plan.h"

namespace redline {

void OpFacts::slot(const char* what, Slot s, uint64_t expected) {
    if (found(what, s.index, plan.slots.size()) && width(s) != expected)
        fail("{} is {} wide, {} expected", what, width(s), expected);
}

Shape OpFacts::matrix(const char* what, Weight w) {
    if (!found(what, w.index, plan.weights.size())) return {0, 0, 0};
    matrices.push_back(w);
    return shape(w);
}

void OpFacts::matrix(const char* what, Weight w, uint64_t rows, uint64_t cols, uint64_t count) {
    const Shape have = matrix(what, w), want{count, rows, cols};
    if (!mismatch && have != want)
        fail("{} {} is ({}, {}, {}), ({}, {}, {}) expected", what, plan.weight(w).tensor.name, have.count,
             have.rows, have.cols, want.count, want.rows, want.cols);
}

void OpFacts::vector(const char* what, Weight w, uint64_t expected, std::string_view text) {
    if (!w) return;
    vectors.push_back(w);
    if (!notes.ends_with(text)) note(text);
    const WeightInfo& info = plan.weight(w);
    if (info.role != WeightRole::vector) fail("{} {} is not a vector", what, info.tensor.name);
    if (info.tensor.shape.elements() != expected)
        fail("{} {} has {} elements, {} expected", what, info.tensor.name, info.tensor.shape.elements(),
             expected);
}

const CacheInfo* OpFacts::cache(Cache c) {
    return found("cache", c.index, plan.caches.size()) ? &plan.cache(c) : nullptr;
}

uint64_t OpFacts::width(Slot s) const {
    return s ? plan.slot(s).width : 0;
}

Shape OpFacts::shape(Weight w) const {
    return w ? plan.weight(w).tensor.shape : Shape{0, 0, 0};
}

bool OpFacts::found(const char* what, int32_t index, size_t count) {
    if (index >= 0 && size_t(index) < count) return true;
    fail("{} is missing", what);
    return false;
}

static OpFacts facts(const auto& op, const Plan& plan) {
    OpFacts all(plan);
    op.list(all);
    return all;
}
static OpFacts facts(const Op& op, const Plan& plan) {
    return std::visit([&](const auto& o) { return facts(o, plan); }, op);
}

std::string_view op_name(const Op& op) {
    const auto of = [](const auto& o) {
        if constexpr (requires { o.name(); })
            return o.name();
        else
            return o.kName;
    };
    return std::visit(of, op);
}

Access access(const Op& op) {
    return std::visit([](const auto& o) { return o.access(); }, op);
}

std::optional<Operand> operand(const Op& op) {
    const auto of = [](const auto& o) -> std::optional<Operand> {
        if constexpr (requires { o.operand(); })
            return o.operand();
        else
            return {};
    };
    return std::visit(of, op);
}

const Product* product_by(By by, const Op& op) {
    const auto* product = std::get_if<Product>(&op);
    return product && product->by() == by ? product : nullptr;
}

const Attention* attention_to(Keys keys, const Op& op) {
    const auto* attention = std::get_if<Attention>(&op);
    return attention && attention->keys.kind == keys ? attention : nullptr;
}

Status check(const Op& op, const Plan& plan) {
    const OpFacts all = facts(op, plan);
    return all.mismatch ? error("{}: {}", op_name(op), all.mismatch->message) : Status();
}

// The cost of an op that multiplies each row that it writes with each of its matrices.
static Cost products_cost(const auto& op, const Plan& plan, const StepShape& shape) {
    Cost sum;
    for (const Weight w : facts(op, plan).matrices) {
        const Tensor& tensor = plan.weight(w).tensor;
        const uint64_t rows = plan.slot(op.access().writes[0]).of_outputs ? shape.outputs : shape.rows;
        sum = sum + Cost{tensor.bytes(), 0, 2 * rows * tensor.shape.rows * tensor.shape.cols};
    }
    return sum;
}

Cost cost(const Op& op, const Plan& plan, const StepShape& shape) {
    const auto of = [&](const auto& o) {
        if constexpr (requires { o.cost(plan, shape); })
            return o.cost(plan, shape);
        else
            return products_cost(o, plan, shape);
    };
    return std::visit(of, op);
}

bool decompose(const Op& op, PlanBuilder& out) {
    const auto of = [&](const auto& o) {
        if constexpr (requires { o.decompose(out); })
            return o.decompose(out);
        else
            return false;
    };
    return std::visit(of, op);
}

std::string op_text(const Op& op, const Plan& plan) {
    const OpFacts all = facts(op, plan);
    std::string text(op_name(op));
    for (size_t i = 0; i < all.matrices.size(); ++i) {
        const Tensor& tensor = plan.weight(all.matrices[i]).tensor;
        text += fmt::format("{} {} {} x {}", i > 0 ? "," : "", tensor.format->name, tensor.shape.rows,
                            tensor.shape.cols);
    }
    return text + all.notes;
}

std::string op_tensors(const Op& op, const Plan& plan) {
    const OpFacts all = facts(op, plan);
    std::string names;
    for (const auto* list : {&all.matrices, &all.vectors})
        for (const Weight w : *list) names += (names.empty() ? "" : ", ") + plan.weight(w).tensor.name;
    return names;
}

std::string op_matrix(const Op& op, const Plan& plan) {
    const OpFacts all = facts(op, plan);
    if (all.matrices.empty()) return {};
    const Tensor& tensor = plan.weight(all.matrices[0]).tensor;
    return fmt::format(" of {} ({}, {} x {})", tensor.name, tensor.format->name, tensor.shape.rows,
                       tensor.shape.cols);
}

}  // namespace redline
