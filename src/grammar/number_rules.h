// Numbers between bounds and on steps as rules of GBNF, digit by digit.
#pragma once

#include "grammar/decimal.h"
#include "grammar/json_rules.h"

#include <vector>

namespace redline {

struct NumberRange {
    struct Bound {
        Decimal value;
        bool open = false;  // the value itself lies outside
    };
    std::optional<Bound> low;
    std::optional<Bound> high;

    bool empty() const;
};

// The range's whole numbers that are multiples of `step`, in decimal without needless zeros; towards an open
// side up to 16 digits, or as many as the bound has. Empty: there are none.
std::string integer_rule(JsonRules& rules, const NumberRange& range, uint64_t step = 1);
// The range's numbers, without exponents. Towards an open side up to 15 digits in all: so many can be told
// apart as doubles. `places`: the most digits behind the point, where they are limited.
// `fractions`: the only ones that may stand there, where they are limited; "" for none.
std::string number_rule(JsonRules& rules, const NumberRange& range, std::optional<size_t> places = {},
                        std::vector<std::string> fractions = {});

// The range's multiples of a step above 0, where they are some thousand rules at most. An empty text: there
// are none.
std::optional<std::string> multiples_rule(JsonRules& rules, const NumberRange& range, const Decimal& step,
                                          bool whole);

}  // namespace redline
