#include "plan/ops/each.h"

#include "plan/plan.h"

namespace redline {

#define EACH_VALUE(i) given[i]
#define VALUES_0
#define VALUES_1(a) [[maybe_unused]] const float a = given[0];
#define VALUES_2(a, b) VALUES_1(a) [[maybe_unused]] const float b = given[1];
#define VALUES_4(a, b, c, d) VALUES_2(a, b) [[maybe_unused]] const float c = given[2], d = given[3];
#define EACH(name, operands, values, holds, statements)      \
    static bool values_hold_for_##name(const float* given) { \
        (void)given;                                         \
        values return holds;                                 \
    }
#include "plan/ops/each.def"

#define VALUES_0 0
#define VALUES_1(a) 1
#define VALUES_2(a, b) 2
#define VALUES_4(a, b, c, d) 4
#define EACH(name, operands, values, holds, statements) \
    {#name, Operands::operands, values, values_hold_for_##name, #holds},
static constexpr EachFacts kRows[] = {
#include "plan/ops/each.def"
};

std::span<const EachFacts> each_rows() {
    return kRows;
}

Access Each::access() const {
    switch (each_facts(row).operands) {
        case Operands::rows:
            return {{x, y}, {y}};
        case Operands::pair:
            return {{x, z}, {y}};
        case Operands::alone:
        case Operands::column:
            break;
    }
    return {{y}, {y}};
}

void Each::list(OpFacts& f) const {
    const EachFacts& facts = each_facts(row);
    const bool pair = facts.operands == Operands::pair, rows = pair || facts.operands == Operands::rows;
    if (rows) f.slot("x", x, f.width(y));
    if (pair) f.slot("z", z, f.width(y));
    f.that(bool(column) == (facts.operands == Operands::column), "a vector is missing, or is too many");
    f.that((rows || !x) && (pair || !z), "a slot is too many");
    f.vector("column", column, f.width(y));
    f.that(facts.holds(values.data()), fmt::format("its values must have {}", facts.condition));
    f.note(fmt::format(" {}", f.width(y)));
}

EachRow each::row_of(Function function) {
    switch (function) {
        case Function::silu:
            return EachRow::silu;
        case Function::squared_relu:
            return EachRow::squared_relu;
        case Function::gelu_tanh:
            return EachRow::gelu;
        case Function::sigmoid:
            return EachRow::sigmoid;
        case Function::signed_root:
            return EachRow::signed_root;
    }
    RL_CHECK(false, "function {} has no row", int(function));
}

EachRow each::row_of(Act act) {
    switch (act) {
        case Act::silu:
            return EachRow::silu_times;
        case Act::gelu_tanh:
            return EachRow::gelu_times;
        case Act::swiglu_clamped:
            return EachRow::swiglu_clamped;
    }
    RL_CHECK(false, "activation {} has no row", int(act));
}

}  // namespace redline
