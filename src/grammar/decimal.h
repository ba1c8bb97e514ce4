// Numbers of JSON schemas in decimal, as they are written, so that bounds and steps are exact.
#pragma once

#include "json/json.h"

#include <optional>
#include <string>

namespace redline {

struct Decimal {
    bool negative = false;
    std::string whole = "0";  // without needless zeros
    std::string fraction;     // without zeros at its end

    bool is_zero() const { return whole == "0" && fraction.empty(); }
    Decimal magnitude() const { return {false, whole, fraction}; }
    std::string text() const;
};

// Empty when the value is no number. A double is written with the fewest digits that identify it.
std::optional<Decimal> decimal_of(const Json& value);
int compare(const Decimal& a, const Decimal& b);  // -1, 0, 1

// These three take whole numbers without a sign; minus_one() needs at least 1.
int compare_digits(const std::string& a, const std::string& b);
std::string plus_one(std::string digits);
std::string minus_one(std::string digits);  // of 1 and more

// The next whole number from a value on, in the direction of `sign`; `open` excludes the value itself.
Decimal next_whole(const Decimal& value, int sign, bool open);

}  // namespace redline
