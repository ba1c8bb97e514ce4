// Ops that work on rows element by element, or move them.
#pragma once

#include "plan/ops/facts.h"

namespace redline {

struct Embed {  // y[t] = scale * table[token[t]]
    static constexpr std::string_view kName = "embed";
    Weight table;
    Slot y;
    float scale = 1.0f;

    Access access() const { return {{}, {y}}; }
    void visit_indices(auto&& visit) { visit(table, y); }
    void list(OpFacts& f) const { f.slot("y", y, f.matrix("table", table).cols); }
    Cost cost(const Plan& plan, const StepShape& shape) const;
};

struct Input {  // y = StepParams::input, the rows that the host gives with the step
    static constexpr std::string_view kName = "input";
    Slot y;  // Plan::input

    Access access() const { return {{}, {y}}; }
    void visit_indices(auto&& visit) { visit(y); }
    void list(OpFacts& f) const;
};

struct Lookup {  // y = StepParams::lookups, of tables that stay in the file
    static constexpr std::string_view kName = "lookup";
    Slot y;  // Plan::lookup

    Access access() const { return {{}, {y}}; }
    void visit_indices(auto&& visit) { visit(y); }
    void list(OpFacts& f) const;
};

struct RmsNorm {  // each `width` consecutive elements of a row on their own: the row, or a head
    static constexpr std::string_view kName = "rms_norm";
    Slot x;
    Norm norm;
    uint32_t width = 0;
    Slot y;          // may be x
    Slot gate = {};  // fused, as wide as x: y = act(gate) * norm(x)
    Act act = Act::silu;
    float scale = 1.0f;    // fused, as `adds`, and not with a gate: y = scale * norm(x)
    bool adds = false;     // y += scale * norm(x)
    bool gates_x = false;  // fused: y = norm(act(gate) * x)

    Access access() const;
    // Whether the gain is of the row, each group having its own part of it; fused.
    bool gain_of_row(const Plan& plan) const;
    void visit_indices(auto&& visit) { visit(x, norm.gain, y, gate); }
    void list(OpFacts& f) const;
    bool decompose(PlanBuilder& out) const;
};

// y = scale * (y + norm(first_norm(first) + second_norm(second))): what a dense FFN and experts beside it add
// to the residual together. None of the three may be y.
struct NormedSum {
    static constexpr std::string_view kName = "normed_sum";
    Slot first, second;
    Norm first_norm, second_norm, norm;
    Slot y;
    float scale = 1.0f;

    Access access() const { return {{first, second, y}, {y}}; }
    void visit_indices(auto&& visit) {
        visit(first, second, first_norm.gain, second_norm.gain, norm.gain, y);
    }
    void list(OpFacts& f) const;
    bool decompose(PlanBuilder& out) const;
};

// y = x less its mean, each `width` consecutive elements of a row on their own; y may be x. An RmsNorm of it
// is a layer norm (arXiv 1607.06450) of x.
struct Center {
    static constexpr std::string_view kName = "center";
    Slot x;
    uint32_t width = 0;
    Slot y;

    Access access() const { return {{x}, {y}}; }
    void visit_indices(auto&& visit) { visit(x, y); }
    void list(OpFacts& f) const;
};

// y = max(y - mean - deviations * standard deviation, 0), of a row's elements, whose number is the divisor
// of the variance: few of a row's elements stay above zero.
struct Sparsify {
    static constexpr std::string_view kName = "sparsify";
    Slot y;
    float deviations = 0.0f;

    Access access() const { return {{y}, {y}}; }
    void visit_indices(auto&& visit) { visit(y); }
    void list(OpFacts& f) const;
};

// y[t] += the table's row at the token's position; behind the last one that row, so that nothing else is
// read: model files keep contexts within the table.
struct AddPosition {
    static constexpr std::string_view kName = "add_position";
    Slot y;
    Weight table;  // (positions, width of y), one after another

    Access access() const { return {{y}, {y}}; }
    void visit_indices(auto&& visit) { visit(y, table); }
    void list(OpFacts& f) const;
};

struct AddBias {  // y[t] += bias
    static constexpr std::string_view kName = "add_bias";
    Slot y;
    Weight bias;

    Access access() const { return {{y}, {y}}; }
    void visit_indices(auto&& visit) { visit(y, bias); }
    void list(OpFacts& f) const;
};

struct Multiply {  // y[t] *= factor, element by element
    static constexpr std::string_view kName = "multiply";
    Slot y;
    Weight factor;

    Access access() const { return {{y}, {y}}; }
    void visit_indices(auto&& visit) { visit(y, factor); }
    void list(OpFacts& f) const { f.vector("factor", factor, f.width(y)); }
};

struct Apply {  // y = function(y), element by element
    static constexpr std::string_view kName = "apply";
    Slot y;
    Function function = Function::silu;

    Access access() const { return {{y}, {y}}; }
    void visit_indices(auto&& visit) { visit(y); }
    void list(OpFacts& f) const { f.note(fmt::format(" {}", function_name(function))); }
};

// y = positive * y^2 + linear * y above 0, negative * (e^min(y, limit) - 1 - y) + linear * y elsewhere
// (xIELU, arXiv 2411.13010).
struct Xielu {
    static constexpr std::string_view kName = "xielu";
    Slot y;
    float positive = 0.0f, negative = 0.0f, linear = 0.0f;
    float limit = 0.0f;  // not above 0

    Access access() const { return {{y}, {y}}; }
    void visit_indices(auto&& visit) { visit(y); }
    void list(OpFacts& f) const;
};

struct Add {  // y += scale * x
    static constexpr std::string_view kName = "add";
    Slot x;
    Slot y;
    float scale = 1.0f;

    Access access() const { return {{x, y}, {y}}; }
    void visit_indices(auto&& visit) { visit(x, y); }
    void list(OpFacts& f) const;
};

struct Scale {  // y = scale * y, then with a softcap c > 0: c * tanh(y / c)
    static constexpr std::string_view kName = "scale";
    Slot y;
    float scale = 1.0f;
    float softcap = 0.0f;

    Access access() const { return {{y}, {y}}; }
    void visit_indices(auto&& visit) { visit(y); }
    void list(OpFacts& f) const;
};

struct ActMul {  // y = act(gate) * up
    static constexpr std::string_view kName = "act_mul";
    Slot gate;
    Slot up;
    Slot y;
    Act act = Act::silu;

    Access access() const { return {{gate, up}, {y}}; }
    void visit_indices(auto&& visit) { visit(gate, up, y); }
    void list(OpFacts& f) const;
};

// Parts of a row, all of one width: part i of y, y_stride apart from y_first on, is part i of x. With an
// x_stride of 0 they are all the same.
struct CopyParts {
    static constexpr std::string_view kName = "copy_parts";
    Slot x;
    Slot y;
    uint32_t parts = 0;
    uint32_t width = 0;
    uint32_t x_first = 0, x_stride = 0;
    uint32_t y_first = 0, y_stride = 0;

    // What it does not write stays.
    Access access() const { return {{x, y}, {y}}; }
    void visit_indices(auto&& visit) { visit(x, y); }
    void list(OpFacts& f) const;
};

struct Clamp {  // y = y, but at least `low` and at most `high`
    static constexpr std::string_view kName = "clamp";
    Slot y;
    float low = 0.0f, high = 0.0f;

    Access access() const { return {{y}, {y}}; }
    void visit_indices(auto&& visit) { visit(y); }
    void list(OpFacts& f) const;
};

// What a gate is before it multiplies.
enum class GateOf : uint8_t { sigmoid, softplus, itself };

// Where the gates of a head lie: element i of head h has x[h * stride + first + i * step].
struct GateLayout {
    uint32_t stride, first, step;
};

// y *= act(gate), for each head. By its width x has a gate for each head, one for each element, or, behind
// what is not a gate, in the second half of each head.
struct OutputGate {
    static constexpr std::string_view kName = "output_gate";
    Slot x;  // (rows, heads), (rows, heads * head_dim) or (rows, heads * 2 * head_dim)
    Slot y;  // (rows, heads * head_dim)
    uint32_t head_dim = 0;
    GateOf act = GateOf::sigmoid;

    GateLayout layout(uint32_t x_width, uint32_t y_width) const {
        const uint32_t stride = x_width / (y_width / head_dim);
        return {stride, stride == 2 * head_dim ? head_dim : 0, stride == 1 ? 0u : 1u};
    }
    Access access() const { return {{x, y}, {y}}; }
    void visit_indices(auto&& visit) { visit(x, y); }
    void list(OpFacts& f) const;
};

struct SelectRows {  // the rows whose output is wanted, in order
    static constexpr std::string_view kName = "select_rows";
    Slot x;
    Slot y;

    Access access() const { return {{x}, {y}}; }
    void visit_indices(auto&& visit) { visit(x, y); }
    void list(OpFacts& f) const;
};

}  // namespace redline
