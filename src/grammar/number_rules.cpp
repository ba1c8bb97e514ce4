#include "grammar/number_rules.h"

#include <algorithm>
#include <numeric>

namespace redline {
namespace {

constexpr size_t kMostDigits = 16;
constexpr size_t kDoubleDigits = 15;
constexpr uint64_t kMostStep = 5000;  // each remainder is a rule

void add(std::string& list, const std::string& part) {
    if (part.empty()) return;
    list += (list.empty() ? "" : " | ") + part;
}

std::string grouped(const std::string& text) {
    return text.find_first_of(" |") == std::string::npos ? text : "(" + text + ")";
}

// Whole numbers divisible by the step, digit by digit, given the remainder of the digits so far.
class Digits {
public:
    Digits(JsonRules& rules, uint64_t step) : rules_(rules), step_(step) {}

    // Numbers from `low` on; without `high` up to 16 digits, or as many as `low` has.
    std::string from(const std::string& low, const std::optional<std::string>& high) {
        const size_t most = high ? high->size() : std::max(kMostDigits, low.size());
        std::string out;
        for (size_t digits = low.size(); digits <= most; ++digits) add(out, of_length(digits, low, high));
        return out;
    }
    // The numbers with this number of digits.
    std::string of_length(size_t digits, const std::string& low, const std::optional<std::string>& high) {
        std::string first = digits == 1 ? "0" : "1" + std::string(digits - 1, '0'), last(digits, '9');
        if (low.size() == digits) first = low;
        if (high && high->size() == digits) last = *high;
        return low.size() > digits || (high && high->size() < digits) || first > last ? ""
                                                                                      : range(first, last, 0);
    }

private:
    uint64_t next(uint64_t remainder, char digit) const {
        return (remainder * 10 + uint64_t(digit - '0')) % step_;
    }

    // Texts of digits from low to high, which have the same length.
    std::string range(const std::string& low, const std::string& high, uint64_t remainder) {
        if (low.empty()) return remainder == 0 ? "\"\"" : "";
        const std::string low_rest = low.substr(1), high_rest = high.substr(1);
        const std::string zeros(low_rest.size(), '0'), nines(low_rest.size(), '9');
        if (low[0] == high[0]) return edge(low[0], low_rest, high_rest, remainder);
        std::string out;
        char first = low[0], last = high[0];
        if (low_rest != zeros) add(out, edge(first++, low_rest, nines, remainder));
        const bool partial = high_rest != nines;
        if (partial) --last;
        add(out, free(first, last, low_rest.size(), remainder));
        if (partial) add(out, edge(char(last + 1), zeros, high_rest, remainder));
        return out;
    }

    std::string edge(char digit, const std::string& low, const std::string& high, uint64_t remainder) {
        const std::string rest = range(low, high, next(remainder, digit));
        if (rest.empty()) return "";
        return gbnf_quoted(std::string(1, digit)) + (low.empty() ? "" : " " + grouped(rest));
    }

    // A digit from first to last, then any `count` digits.
    std::string free(char first, char last, size_t count, uint64_t remainder) {
        if (first > last) return "";
        if (step_ == 1)
            return fmt::format("[{}-{}]", first, last) +
                   (count > 0 ? fmt::format(" [0-9]{{{}}}", count) : "");
        std::string out;
        for (char digit = first; digit <= last; ++digit) {
            const uint64_t after = next(remainder, digit);
            if (!reaches_zero(after, count)) continue;
            const std::string more =
                count > 0 ? fmt::format(" @{}{{{},{}}}", remainder_rule(after), count, count) : "";
            add(out, gbnf_quoted(std::string(1, digit)) + more);
        }
        return out;
    }

    // True when `count` more digits can make a multiple.
    bool reaches_zero(uint64_t remainder, size_t count) const {
        uint64_t power = 1;
        for (; count > 0; --count) {
            remainder = remainder * 10 % step_;
            power = std::min(power * 10, step_);
        }
        return (step_ - remainder) % step_ < power;
    }

    std::string remainder_rule(uint64_t remainder) {
        const auto name = [&](uint64_t of) { return fmt::format("multiple-{}-{}", step_, of); };
        std::vector<uint64_t> waiting;
        const auto reserve = [&](uint64_t of) {
            if (rules_.reserve_exact(name(of))) waiting.push_back(of);
        };
        reserve(remainder);
        while (!waiting.empty()) {
            const uint64_t each = waiting.back();
            waiting.pop_back();
            std::string text = each == 0 ? "\"\"" : "";
            for (char digit = '0'; digit <= '9'; ++digit) {
                reserve(next(each, digit));
                add(text, fmt::format("\"{}\" @{}", digit, name(next(each, digit))));
            }
            rules_.define(name(each), text);
        }
        return name(remainder);
    }

    JsonRules& rules_;
    const uint64_t step_;
};

// The bounds of a fraction, while the digits so far equal those of the bounds.
struct Edges {
    std::optional<std::string> low;
    bool low_open = false;
    std::optional<std::string> high;
    bool high_open = false;
};

// The digits that may follow: none, where the number may end here, and `more`.
struct Tail {
    bool ends = false;
    std::string more;

    bool none() const { return !ends && more.empty(); }
    std::string text() const {
        if (more.empty()) return "";
        return ends ? "(" + more + ")?" : grouped(more);
    }
};

Tail fraction(Edges edges, size_t places) {
    if (edges.low && edges.low->empty() && !edges.low_open) edges.low.reset();
    if (edges.high && edges.high->empty() && edges.high_open) return {};
    Tail out;
    out.ends = (!edges.low || (edges.low->empty() && !edges.low_open)) &&
               (!edges.high || !edges.high->empty() || !edges.high_open);
    if (places == 0) return out;
    if (!edges.low && !edges.high) return {true, fmt::format("[0-9]{{1,{}}}", places)};
    const auto digit_of = [](const std::optional<std::string>& bound, char open) {
        return !bound ? open : bound->empty() ? '0' : (*bound)[0];
    };
    const char low = digit_of(edges.low, '0'), high = digit_of(edges.high, '9');
    for (char digit = low; digit <= high;) {
        Edges rest = edges;
        const auto pass = [digit](std::optional<std::string>& bound, char edge) {
            if (!bound) return;
            if (digit != edge)
                bound.reset();
            else if (!bound->empty())
                bound->erase(0, 1);
        };
        pass(rest.low, low);
        pass(rest.high, high);
        char last = digit;
        if (!rest.low && !rest.high) last = edges.high ? char(high - 1) : '9';
        const Tail tail = fraction(rest, places - 1);
        const std::string set =
            digit == last ? fmt::format("\"{}\"", digit) : fmt::format("[{}-{}]", digit, last);
        if (!tail.none()) add(out.more, set + (tail.text().empty() ? "" : " " + tail.text()));
        digit = char(last + 1);
    }
    return out;
}

// Numbers from 0 on.
class Magnitudes {
public:
    using Bound = NumberRange::Bound;

    Magnitudes(JsonRules& rules, std::optional<size_t> places, std::vector<std::string> fractions)
        : digits_(rules, 1), places_(places), fractions_(std::move(fractions)) {}

    std::string run(const Bound& low, const std::optional<Bound>& high) {
        std::string out;
        const std::string& from = low.value.whole;
        if (high && from == high->value.whole) {
            add(out, whole(from, {low.value.fraction, low.open, high->value.fraction, high->open}));
            return out;
        }
        add(out, whole(from, {low.value.fraction, low.open, {}, false}));
        const std::string first = plus_one(from);
        const size_t most = high ? high->value.whole.size() : std::max(kDoubleDigits, first.size());
        std::optional<std::string> last;
        if (high) last = minus_one(high->value.whole);
        for (size_t length = first.size(); length <= most; ++length) {
            const std::string between = digits_.of_length(length, first, last);
            const Tail tail = tail_of({}, places(length, 0));
            if (!between.empty())
                add(out, grouped(between) + (tail.more.empty() ? "" : " (\".\" " + tail.more + ")?"));
        }
        if (high) add(out, whole(high->value.whole, {{}, false, high->value.fraction, high->open}));
        return out;
    }

private:
    // A bound may have more digits than numbers get elsewhere.
    size_t places(size_t digits, size_t of_bound) const {
        if (places_) return *places_;
        const size_t usual = digits > kDoubleDigits ? 0 : std::max<size_t>(1, kDoubleDigits - digits);
        return std::max(usual, of_bound);
    }
    std::string whole(const std::string& digits, const Edges& edges) const {
        const size_t of_bound = std::max(edges.low ? edges.low->size() + (edges.low_open ? 1 : 0) : 0,
                                         edges.high ? edges.high->size() : 0);
        const Tail tail = tail_of(edges, places(digits.size(), of_bound));
        if (tail.none()) return "";
        if (tail.more.empty()) return gbnf_quoted(digits);
        return gbnf_quoted(digits) + " (\".\" (" + tail.more + "))" + (tail.ends ? "?" : "");
    }

    // Any fraction between the bounds, or the listed ones.
    Tail tail_of(const Edges& edges, size_t places) const {
        if (fractions_.empty()) return fraction(edges, places);
        Tail out;
        for (const std::string& each : fractions_) {
            if (edges.low && (each < *edges.low || (edges.low_open && each == *edges.low))) continue;
            if (edges.high && (each > *edges.high || (edges.high_open && each == *edges.high))) continue;
            if (each.empty()) out.ends = true;
            if (!each.empty()) add(out.more, gbnf_quoted(each));
        }
        if (out.more.find('|') != out.more.npos) out.more = "(" + out.more + ")";
        return out;
    }

    Digits digits_;
    const std::optional<size_t> places_;
    const std::vector<std::string> fractions_;  // empty: all are allowed
};

std::optional<NumberRange::Bound> negated(const std::optional<NumberRange::Bound>& bound) {
    if (!bound) return bound;
    NumberRange::Bound out = *bound;
    out.value.negative = !out.value.negative && !out.value.is_zero();
    return out;
}

NumberRange::Bound from_zero(const std::optional<NumberRange::Bound>& bound) {
    return bound && !bound->value.negative ? *bound : NumberRange::Bound{};
}

}  // namespace

bool NumberRange::empty() const {
    if (!low || !high) return false;
    const int order = compare(low->value, high->value);
    return order > 0 || (order == 0 && (low->open || high->open));
}

std::string integer_rule(JsonRules& rules, const NumberRange& range, uint64_t step) {
    std::optional<Decimal> low, high;
    if (range.low) low = next_whole(range.low->value, 1, range.low->open);
    if (range.high) high = next_whole(range.high->value, -1, range.high->open);
    if (low && high && compare(*low, *high) > 0) return "";
    Digits digits(rules, step);
    std::string out;
    if (!low || low->negative) {
        const std::string nearest = high && high->negative ? high->whole : "1";
        const std::string magnitudes = digits.from(nearest, low ? std::optional(low->whole) : std::nullopt);
        if (!magnitudes.empty()) out = "\"-\" " + grouped(magnitudes);
    }
    if (!high || !high->negative)
        add(out, digits.from(low && !low->negative ? low->whole : "0",
                             high ? std::optional(high->whole) : std::nullopt));
    return out;
}

std::string number_rule(JsonRules& rules, const NumberRange& range, std::optional<size_t> places,
                        std::vector<std::string> fractions) {
    Magnitudes magnitudes(rules, places, std::move(fractions));
    std::string out;
    if (!range.low || range.low->value.negative) {
        const std::string below = magnitudes.run(from_zero(negated(range.high)), negated(range.low));
        if (!below.empty()) out = "\"-\" (" + below + ")";
    }
    if (!range.high || !range.high->value.negative)
        add(out, magnitudes.run(from_zero(range.low), range.high));
    return out;
}

namespace {

constexpr uint64_t kMostValues = 2000;  // listed one by one

// The value times ten to the power of `places`.
Decimal shifted(Decimal value, int places) {
    for (; places > 0; --places) {
        value.whole += value.fraction.empty() ? '0' : value.fraction[0];
        value.fraction.erase(0, 1);
    }
    for (; places < 0; ++places) {
        value.fraction.insert(0, 1, value.whole.back());
        value.whole.pop_back();
        if (value.whole.empty()) value.whole = "0";
    }
    value.whole.erase(0, std::min(value.whole.find_first_not_of('0'), value.whole.size() - 1));
    value.fraction.erase(value.fraction.find_last_not_of('0') + 1);
    return value;
}

NumberRange shifted(NumberRange range, int places) {
    for (auto* bound : {&range.low, &range.high})
        if (*bound) (*bound)->value = shifted((*bound)->value, places);
    return range;
}

NumberRange narrowed(NumberRange range, const std::optional<Decimal>& low,
                     const std::optional<Decimal>& high) {
    if (low && (!range.low || compare(range.low->value, *low) < 0)) range.low = {*low, false};
    if (high && (!range.high || compare(range.high->value, *high) > 0)) range.high = {*high, false};
    return range;
}

std::optional<int64_t> small_whole(const Decimal& value) {
    if (value.whole.size() > 17) return {};
    const int64_t magnitude = std::stoll(value.whole);
    return value.negative ? -magnitude : magnitude;
}

// The list of all multiples of step / 10^places, where they are few.
std::optional<std::string> listed_multiples(const NumberRange& range, uint64_t step, size_t places) {
    if (!range.low || !range.high || step > uint64_t(1e17)) return {};
    const NumberRange scaled = shifted(range, int(places));
    const auto low = small_whole(next_whole(scaled.low->value, 1, scaled.low->open));
    const auto high = small_whole(next_whole(scaled.high->value, -1, scaled.high->open));
    if (!low || !high) return {};
    const auto signed_step = int64_t(step);
    int64_t first = *low / signed_step * signed_step;
    if (first < *low) first += signed_step;
    if (first > *high) return "";
    if (uint64_t(*high - first) / step >= kMostValues) return {};
    std::string out;
    for (int64_t value = first; value <= *high; value += signed_step) {
        Decimal each{value < 0, fmt::to_string(value < 0 ? -value : value), ""};
        add(out, gbnf_quoted(shifted(each, -int(places)).text()));
    }
    return out;
}

// For a step with trailing zeros: the multiples of its other digits, followed by these zeros.
std::optional<std::string> whole_multiples(JsonRules& rules, const NumberRange& range, uint64_t step) {
    if (std::optional<std::string> listed = listed_multiples(range, step, 0)) return listed;
    if (step <= kMostStep) return integer_rule(rules, range, step);
    int zeros = 0;
    for (; step % 10 == 0; step /= 10) ++zeros;
    if (zeros == 0 || step > kMostStep) return {};
    const Decimal farthest{false, std::string(kMostDigits, '9'), ""}, one{false, "1", ""}, zero;
    Decimal lowest = farthest, minus_one = one;
    lowest.negative = minus_one.negative = true;
    const NumberRange closed = narrowed(range, range.low ? std::nullopt : std::optional(lowest),
                                        range.high ? std::nullopt : std::optional(farthest));
    std::string out;
    if (!narrowed(closed, zero, zero).empty()) out = "\"0\"";
    const NumberRange shorter = shifted(closed, -zeros);
    for (const NumberRange& part : {narrowed(shorter, {}, minus_one), narrowed(shorter, one, {})}) {
        const std::string first = part.empty() ? "" : integer_rule(rules, part, step);
        if (!first.empty()) add(out, fmt::format("({}) \"{}\"", first, std::string(size_t(zeros), '0')));
    }
    return out;
}

}  // namespace

std::optional<std::string> multiples_rule(JsonRules& rules, const NumberRange& range, const Decimal& step,
                                          bool whole) {
    const size_t places = step.fraction.size();
    const std::string digits = shifted(step, int(places)).whole;
    if (digits.size() > 17 || places > 17) return {};
    const auto scaled = uint64_t(std::stoll(digits));
    uint64_t power = 1;
    for (size_t i = 0; i < places; ++i) power *= 10;
    if (whole || places == 0) return whole_multiples(rules, range, scaled / std::gcd(scaled, power));
    if (scaled == 1) return number_rule(rules, range, places);
    if (power % scaled != 0 || power / scaled > kMostValues) return listed_multiples(range, scaled, places);
    std::vector<std::string> fractions;
    for (uint64_t value = 0; value < power; value += scaled)
        fractions.push_back(shifted(Decimal{false, fmt::to_string(value), ""}, -int(places)).fraction);
    return number_rule(rules, range, places, fractions);
}

}  // namespace redline
