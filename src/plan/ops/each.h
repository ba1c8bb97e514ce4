// Ops that work element by element: rows of each.def.
#pragma once

#include "plan/ops/facts.h"

#include <array>
#include <span>

namespace redline {

enum class EachRow : uint8_t {
#define EACH(name, operands, values, holds, statements) name,
#include "plan/ops/each.def"
};

// The elements that a row reads: see each.def.
enum class Operands : uint8_t { alone, rows, pair, column };

constexpr size_t kMostEachValues = 4;

struct EachFacts {
    std::string_view name;
    Operands operands;
    uint32_t values;
    bool (*holds)(const float* values);
    std::string_view condition;  // the text of `holds`
};
// By EachRow.
std::span<const EachFacts> each_rows();
inline const EachFacts& each_facts(EachRow row) {
    return each_rows()[size_t(row)];
}

struct Each {
    static constexpr std::string_view kName = "each";
    EachRow row = EachRow::add;
    Slot y;
    Slot x = {}, z = {};
    Weight column = {};
    std::array<float, kMostEachValues> values = {};

    std::string_view name() const { return each_facts(row).name; }
    Access access() const;
    void visit_indices(auto&& visit) { visit(y, x, z, column); }
    void list(OpFacts& f) const;
};

// An op of each row, by its name: of y, the operands and the values.
namespace each {

template <EachRow kRow, uint32_t kNamed, typename... Values>
constexpr std::array<float, kMostEachValues> values_of(Values... values) {
    static_assert(sizeof...(values) == kNamed, "the row has another number of values");
    return {float(values)...};
}
#define VALUES_0 0
#define VALUES_1(a) 1
#define VALUES_2(a, b) 2
#define VALUES_4(a, b, c, d) 4
#define RL_EACH_alone Slot y
#define RL_EACH_rows Slot y, Slot x
#define RL_EACH_pair Slot y, Slot x, Slot z
#define RL_EACH_column Slot y, Weight column
#define RL_GIVEN_alone \
    y, {}, {}, {}
#define RL_GIVEN_rows \
    y, x, {}, {}
#define RL_GIVEN_pair \
    y, x, z, {}
#define RL_GIVEN_column y, {}, {}, column
#define EACH(name, operands, values, holds, statements)                                          \
    template <typename... Values>                                                                \
    Each name(RL_EACH_##operands, Values... given) {                                             \
        return {EachRow::name, RL_GIVEN_##operands, values_of<EachRow::name, values>(given...)}; \
    }
#include "plan/ops/each.def"
#undef RL_EACH_alone
#undef RL_EACH_rows
#undef RL_EACH_pair
#undef RL_EACH_column
#undef RL_GIVEN_alone
#undef RL_GIVEN_rows
#undef RL_GIVEN_pair
#undef RL_GIVEN_column

EachRow row_of(Function function);
EachRow row_of(Act act);
inline Each apply(Slot y, Function function) {
    return {row_of(function), y};
}
inline Each act_times(Slot y, Slot gate, Slot up, Act act) {  // y = act(gate) * up
    return {row_of(act), y, gate, up};
}

}  // namespace each
#define RL_EACH_OPS(CORE, FUSED) CORE(Each)

}  // namespace redline
