// Products of rows with matrices.
#pragma once

#include "plan/ops/facts.h"

#include <array>
#include <span>

namespace redline {

// The rows that a matrix of a product multiplies.
enum class By : uint8_t {
    row,     // each of x
    head,    // part h of each, for matrix h of the weight
    expert,  // those that it is chosen for, among the matrices of the weight
};

struct HeadStrides {  // from a head to the next; at least the matrix's cols and rows
    uint32_t x = 0, y = 0;
};

struct ChosenExperts {
    Slot ids = {};  // (rows, used)
    uint32_t used = 0;
    bool per_expert = false;  // x has a row for each of them, side by side
    // (rows, used), given: y += the sum over experts of scale * (w[e] * x + bias[e]); absent: y has the
    // experts' results side by side.
    Slot scales = {};
};

// y (+)= w * norm(x) + bias, or y = function(w * norm(x) + bias); gated, y = act(gate * norm(x)) * (up *
// norm(x)).
struct Product {
    static constexpr std::string_view kName = "product";
    struct Part {
        Weight w;          // (y's width, x's width), any format; by head or expert: a matrix for each
        Weight bias = {};  // fused: for each matrix, one of y's width
        Slot y = {};
    };
    Slot x;
    std::array<Part, 4> parts;  // of one x; gated: the gate, then up, which has no slot
    uint32_t count = 1;
    Norm norm = {};                         // fused
    std::optional<Act> act = {};            // fused: gated
    bool accumulate = false;                // fused: add into y; by expert, where there are scales
    std::optional<Function> function = {};  // fused, without accumulate
    HeadStrides strides = {};
    ChosenExperts experts = {};

    Weight w(size_t part = 0) const { return parts[part].w; }
    Weight bias(size_t part = 0) const { return parts[part].bias; }
    Slot y() const { return parts[0].y; }
    std::span<const Part> all() const { return std::span(parts).first(count); }
    Slot target(const Part& part) const { return act ? y() : part.y; }
    By by() const { return experts.used > 0 ? By::expert : strides.x > 0 ? By::head : By::row; }
    // Rows of matrices that stand side by side in one of x, and of y.
    uint32_t x_rows() const { return experts.per_expert ? experts.used : 1; }
    uint32_t y_rows() const { return experts.used > 0 && !experts.scales ? experts.used : 1; }

    std::string_view name() const;
    Access access() const;
    std::optional<Operand> operand() const;
    void visit_indices(auto&& visit) {
        visit(x, norm.gain, experts.ids, experts.scales);
        for (Part& part : parts) visit(part.w, part.bias, part.y);
    }
    void list(OpFacts& f) const;
    Cost cost(const Plan& plan, const StepShape& shape) const;
    bool decompose(PlanBuilder& out) const;
};

namespace products {

Product linear(Slot x, Weight w, Slot y, Norm norm = {}, Weight bias = {}, bool accumulate = false,
               std::optional<Function> function = {});
Product group(Slot x, std::span<const Product::Part> parts, Norm norm = {});
Product gated(Slot x, Weight gate, Weight up, Slot y, Act act = Act::silu, Norm norm = {});
Product by_head(Slot x, Weight w, Slot y, HeadStrides strides);
Product by_expert(Slot x, Weight w, Slot y, ChosenExperts experts, Weight bias = {},
                  std::optional<Function> function = {});
Product gated_by_expert(Slot x, Weight gate, Weight up, Slot y, ChosenExperts experts, Act act = Act::silu,
                        Weight gate_bias = {}, Weight up_bias = {});

}  // namespace products

#define RL_PRODUCT_OPS(CORE, FUSED) CORE(Product)

}  // namespace redline
