// Products of one x with one or several matrices.
#pragma once

#include "plan/ops/facts.h"

#include <array>

namespace redline {

struct Linear {  // y (+)= w * norm(x) + bias, or y = function(w * norm(x) + bias)
    static constexpr std::string_view kName = "linear";
    Slot x;                                 // (rows, w.cols)
    Weight w;                               // (w.rows, w.cols), any format
    Slot y;                                 // (rows, w.rows)
    Norm norm = {};                         // fused
    Weight bias = {};                       // fused: (w.rows)
    bool accumulate = false;                // fused: add into y, for the residual
    std::optional<Function> function = {};  // fused, without accumulate

    Access access() const;
    Operand operand() const { return {x, norm}; }
    void visit_indices(auto&& visit) { visit(x, w, y, norm.gain, bias); }
    void list(OpFacts& f) const;
    bool decompose(PlanBuilder& out) const;
};

struct LinearGroup {  // up to four Linear of one x
    static constexpr std::string_view kName = "linear_group";
    struct Part {
        Weight w;
        Weight bias;
        Slot y;
    };
    Slot x;
    std::array<Part, 4> parts;
    uint32_t count = 0;
    Norm norm = {};

    Access access() const;
    Operand operand() const { return {x, norm}; }
    void visit_indices(auto&& visit) {
        visit(x, norm.gain);
        for (Part& part : parts) visit(part.w, part.bias, part.y);
    }
    void list(OpFacts& f) const;
    bool decompose(PlanBuilder& out) const;
};

struct Gated {  // y = act(gate * norm(x)) * (up * norm(x))
    static constexpr std::string_view kName = "gated";
    Slot x;
    Weight gate;
    Weight up;
    Slot y;
    Act act = Act::silu;
    Norm norm = {};

    Access access() const { return {{x}, {y}}; }
    Operand operand() const { return {x, norm}; }
    void visit_indices(auto&& visit) { visit(x, gate, up, y, norm.gain); }
    void list(OpFacts& f) const;
    bool decompose(PlanBuilder& out) const;
};

}  // namespace redline
