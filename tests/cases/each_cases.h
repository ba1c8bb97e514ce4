// The op cases of element-wise ops: each row of plan/ops/each.def, with values that hold for it.
#pragma once

#include "measure/op_case.h"

namespace redline {

struct EachCase {
    EachRow row;
    std::array<float, kMostEachValues> values;
    Slot Each::*over = &Each::y;  // of a pair: the slot that y is, too
};

// `size` scales what is read, so that both sides of limits are met.
inline OpCase each_case(const EachCase& of, uint32_t width, uint32_t rows, float size) {
    const EachFacts& facts = each_facts(of.row);
    OpCase c;
    c.name = fmt::format("{} {} values {} over {} rows {} size {}", facts.name, width,
                         fmt::join(std::span(of.values).first(facts.values), ","),
                         of.over == &Each::x   ? "x"
                         : of.over == &Each::z ? "z"
                                               : "y",
                         rows, size);
    c.rows = rows;
    c.declare = [=](Fixture& f) -> OpCase::Build {
        const EachFacts& row = each_facts(of.row);
        const bool pair = row.operands == Operands::pair;
        const Weight y = f.input(width), x = f.input(width), column = f.vector(width);
        return [=](PlanBuilder& p) {
            Each op{of.row};
            if (pair || row.operands == Operands::rows) op.x = p.embed(x, size);
            if (pair) op.z = p.embed(y, size);
            op.y = !pair ? p.embed(y, size) : of.over == &Each::y ? p.slot(width) : op.*of.over;
            if (row.operands == Operands::column) op.column = column;
            std::copy_n(of.values.begin(), row.values, op.values.begin());
            p.append(op);
            return op.y;
        };
    };
    return c;
}

inline void add_each_cases(std::vector<OpCase>& cases) {
    const std::array<float, kMostEachValues> tried[] = {
        {1.0f, 5.0f, 0.5f, -1e-6f}, {-1.5f, 0.75f, 0.5f, -0.5f}, {0.8f, 1.3f, 0.5f, 0.0f}};
    for (size_t i = 0; i < each_rows().size(); ++i) {
        const EachRow row = EachRow(i);
        const EachFacts& facts = each_facts(row);
        size_t held = 0;
        for (const auto& values : tried) {
            if (!facts.holds(values.data()) || (held > 0 && facts.values == 0)) continue;
            ++held;
            cases.push_back(each_case({row, values}, 77, 1, 0.3f));
            cases.push_back(each_case({row, values}, 300, 17, 4.0f));
        }
        RL_CHECK(held > 0, "no values of add_each_cases() hold for {}", facts.name);
        if (facts.operands != Operands::pair) continue;
        for (Slot Each::*over : {&Each::x, &Each::z})
            cases.push_back(each_case({row, {}, over}, 77, 3, 1.0f));
    }
}

}  // namespace redline
