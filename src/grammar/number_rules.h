// Rules of GBNF for numbers between bounds and on steps, digit by digit.
#pragma once

#include "grammar/decimal.h"
#include "grammar/json_rules.h"

#include <vector>

namespace redline {

struct NumberRange {
    struct Bound {
        Decimal value;
        bool open = false;  // excludes the value itself
    };
    std::optional<Bound> low;
    std::optional<Bound> high;

    bool empty() const;
};

// The range's whole numbers that are multiples of `step`, in decimal without leading zeros; without a bound
// on a side up to 16 digits, or as many as the other bound has. Empty: there are none.
std::string integer_rule(JsonRules& rules, const NumberRange& range, uint64_t step = 1);
// The range's numbers, without exponents. Without a bound on a side they have up to 15 digits in all, which
// doubles can tell apart. `places` limits the digits behind the point. `fractions` lists the allowed
// fractions, where they are limited; "" for none.
std::string number_rule(JsonRules& rules, const NumberRange& range, std::optional<size_t> places = {},
                        std::vector<std::string> fractions = {});

// The range's multiples of a step above 0, where these take at most some thousand rules. An empty text: there
// are none.
std::optional<std::string> multiples_rule(JsonRules& rules, const NumberRange& range, const Decimal& step,
                                          bool whole);

}  // namespace redline
