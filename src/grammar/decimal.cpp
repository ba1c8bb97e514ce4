#include "grammar/decimal.h"

#include <fmt/format.h>

#include <algorithm>
#include <charconv>

namespace redline {
namespace {

void trim(Decimal& value) {
    value.whole.erase(0, std::min(value.whole.find_first_not_of('0'), value.whole.size()));
    if (value.whole.empty()) value.whole = "0";
    value.fraction.erase(value.fraction.find_last_not_of('0') + 1);
    if (value.is_zero()) value.negative = false;
}

}  // namespace

std::string Decimal::text() const {
    return (negative ? "-" : "") + whole + (fraction.empty() ? "" : "." + fraction);
}

std::optional<Decimal> decimal_of(const Json& value) {
    if (!value.is_number()) return {};
    std::string text = value.is_number_float() ? fmt::format("{}", value.get<double>()) : value.dump();
    Decimal out;
    out.negative = text[0] == '-';
    if (out.negative) text.erase(0, 1);
    if (text.find_first_not_of("0123456789.e+-") != text.npos) return {};
    int exponent = 0;
    if (const size_t e = text.find('e'); e != text.npos) {
        const char* const digits = text.data() + e + (text[e + 1] == '+' ? 2 : 1);
        std::from_chars(digits, text.data() + text.size(), exponent);
        text.erase(e);
    }
    const size_t point = std::min(text.find('.'), text.size());
    out.whole = text.substr(0, point);
    out.fraction = point < text.size() ? text.substr(point + 1) : "";
    for (; exponent > 0; --exponent) {
        out.whole += out.fraction.empty() ? '0' : out.fraction[0];
        if (!out.fraction.empty()) out.fraction.erase(0, 1);
    }
    for (; exponent < 0; ++exponent) {
        out.fraction.insert(0, 1, out.whole.empty() ? '0' : out.whole.back());
        if (!out.whole.empty()) out.whole.pop_back();
    }
    trim(out);
    return out;
}

int compare_digits(const std::string& a, const std::string& b) {
    if (a.size() != b.size()) return a.size() < b.size() ? -1 : 1;
    return a < b ? -1 : a > b ? 1 : 0;
}

int compare(const Decimal& a, const Decimal& b) {
    if (a.negative != b.negative) return a.negative ? -1 : 1;
    int order = compare_digits(a.whole, b.whole);
    if (order == 0) order = a.fraction < b.fraction ? -1 : a.fraction > b.fraction ? 1 : 0;
    return a.negative ? -order : order;
}

std::string plus_one(std::string digits) {
    size_t at = digits.size();
    while (at > 0 && digits[at - 1] == '9') digits[--at] = '0';
    if (at == 0) return "1" + digits;
    digits[at - 1] += 1;
    return digits;
}

std::string minus_one(std::string digits) {
    size_t at = digits.size();
    while (at > 1 && digits[at - 1] == '0') digits[--at] = '9';
    digits[at - 1] -= 1;
    if (digits.size() > 1 && digits[0] == '0') digits.erase(0, 1);
    return digits;
}

Decimal next_whole(const Decimal& value, int sign, bool open) {
    Decimal out{value.negative, value.whole, ""};
    const bool cut_away = !value.fraction.empty() && value.negative == (sign > 0);
    if ((value.fraction.empty() && !open) || cut_away) {
        out.negative = out.negative && out.whole != "0";
        return out;
    }
    if (out.negative == (sign < 0) || out.whole == "0") {
        out.whole = plus_one(out.whole);
        out.negative = sign < 0;
    } else {
        out.whole = minus_one(out.whole);
        out.negative = out.negative && out.whole != "0";
    }
    return out;
}

}  // namespace redline
