// Ops that work on rows as a whole, or move them.
#pragma once

#include "plan/ops/each.h"

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

struct Lookup {  // y = StepParams::lookups: rows of tables that stay in the file
    static constexpr std::string_view kName = "lookup";
    Slot y;  // Plan::lookup

    Access access() const { return {{}, {y}}; }
    void visit_indices(auto&& visit) { visit(y); }
    void list(OpFacts& f) const;
};

struct RmsNorm {  // norms each `width` consecutive elements of a row separately: the whole row, or a head
    static constexpr std::string_view kName = "rms_norm";
    Slot x;
    Norm norm;
    uint32_t width = 0;
    Slot y;          // may be x
    Slot gate = {};  // fused, as wide as x: y = act(gate) * norm(x)
    Act act = Act::silu;
    float scale = 1.0f;    // fused, like `adds`, and not together with a gate: y = scale * norm(x)
    bool adds = false;     // y += scale * norm(x)
    bool gates_x = false;  // fused: y = norm(act(gate) * x)

    Access access() const;
    // True when the gain is as wide as the row, so that each group of `width` has a separate part of it;
    // fused.
    bool gain_of_row(const Plan& plan) const;
    void visit_indices(auto&& visit) { visit(x, norm.gain, y, gate); }
    void list(OpFacts& f) const;
    bool decompose(PlanBuilder& out) const;
};

// y = scale * (y + norm(first_norm(first) + second_norm(second))): adds the results of a dense FFN and of
// experts beside it to the residual. None of the three may be y.
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

// y = x minus the mean of each `width` consecutive elements of a row; y may be x. Followed by an RmsNorm it
// is a layer norm (arXiv 1607.06450) of x.
struct Center {
    static constexpr std::string_view kName = "center";
    Slot x;
    uint32_t width = 0;
    Slot y;

    Access access() const { return {{x}, {y}}; }
    void visit_indices(auto&& visit) { visit(x, y); }
    void list(OpFacts& f) const {
        f.slot("y", y, f.width(x));
        f.that(width > 0 && f.width(x) % width == 0,
               "the row is not a multiple of the width that is centred");
        f.note(fmt::format(" {}", width));
    }
};

// y = x times a Walsh-Hadamard matrix, for each `width` consecutive elements of a row: H[i][j] is 1 or -1, by
// whether the number of bits in i & j is even, divided by sqrt(width). It is orthogonal, and its inverse. The
// width is a power of two; y may be x.
struct Hadamard {
    static constexpr std::string_view kName = "hadamard";
    Slot x;
    uint32_t width = 0;
    Slot y;

    Access access() const { return {{x}, {y}}; }
    void visit_indices(auto&& visit) { visit(x, y); }
    void list(OpFacts& f) const;
};
constexpr uint32_t kMostHadamard = 512;  // as kernels have it

// y = max(y - mean - deviations * standard deviation, 0), with mean and deviation of the row; the variance is
// divided by the number of elements. Few elements stay above zero.
struct Sparsify {
    static constexpr std::string_view kName = "sparsify";
    Slot y;
    float deviations = 0.0f;

    Access access() const { return {{y}, {y}}; }
    void visit_indices(auto&& visit) { visit(y); }
    void list(OpFacts& f) const {
        f.that(f.width(y) > 0 && deviations >= 0.0f, "the row is empty, or its threshold below the mean");
        f.note(fmt::format(" {}", f.width(y)));
    }
};

// y[t] += the table's row at the token's position. Positions beyond the table are clamped to its last row,
// for safety: model files keep contexts within the table.
struct AddPosition {
    static constexpr std::string_view kName = "add_position";
    Slot y;
    Weight table;  // (positions, width of y), one after another

    Access access() const { return {{y}, {y}}; }
    void visit_indices(auto&& visit) { visit(y, table); }
    void list(OpFacts& f) const;
};

// Copies parts of a row, all of one width: part i of y, at y_first + i * y_stride, becomes part i of x. With
// an x_stride of 0 all parts are the same.
struct CopyParts {
    static constexpr std::string_view kName = "copy_parts";
    Slot x;
    Slot y;
    uint32_t parts = 0;
    uint32_t width = 0;
    uint32_t x_first = 0, x_stride = 0;
    uint32_t y_first = 0, y_stride = 0;

    // Elements between the parts keep their values, so that y is read, too.
    Access access() const { return {{x, y}, {y}}; }
    void visit_indices(auto&& visit) { visit(x, y); }
    void list(OpFacts& f) const;
};

// The function applied to a gate before it multiplies.
enum class GateOf : uint8_t { sigmoid, softplus, itself };

// The places of a head's gates: element i of head h uses x[h * stride + first + i * step].
struct GateLayout {
    uint32_t stride, first, step;
};

// y *= act(gate), for each head. By its width x has a gate for each head, one for each element, or one for
// each element in the second half of each head, whose first half is no gate.
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

#define RL_ROW_OPS(CORE, FUSED) \
    CORE(Embed)                 \
    CORE(Input)                 \
    CORE(Lookup)                \
    CORE(RmsNorm)               \
    CORE(Center)                \
    CORE(Hadamard)              \
    CORE(Sparsify)              \
    CORE(AddPosition)           \
    CORE(CopyParts)             \
    CORE(OutputGate)            \
    CORE(SelectRows)            \
    FUSED(NormedSum)

}  // namespace redline
