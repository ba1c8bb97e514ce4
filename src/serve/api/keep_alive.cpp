#include "serve/api/keep_alive.h"

#include <charconv>
#include <cmath>

namespace redline::serve {

namespace {

constexpr double kMostSeconds = 100.0 * 365 * 86400;

// Seconds of a unit; 0: there is none of this name.
double unit_seconds(std::string_view unit) {
    constexpr std::pair<std::string_view, double> kUnits[] = {{"h", 3600.0}, {"m", 60.0},  {"s", 1.0},
                                                              {"ms", 1e-3},  {"us", 1e-6}, {"ns", 1e-9}};
    for (const auto& [name, seconds] : kUnits)
        if (name == unit) return seconds;
    return 0.0;
}

// Seconds of a text such as "1h30m"; a number alone has them, too. Absent: it is neither.
std::optional<double> duration_seconds(std::string_view text) {
    constexpr std::string_view kDigits = "0123456789.";
    const bool negative = text.starts_with('-');
    if (negative || text.starts_with('+')) text.remove_prefix(1);
    double sum = 0.0;
    bool first = true;
    do {
        const size_t digits = std::min(text.find_first_not_of(kDigits), text.size());
        double number = 0.0;
        const auto [end, code] = std::from_chars(text.data(), text.data() + digits, number);
        if (digits == 0 || code != std::errc() || end != text.data() + digits) return {};
        const size_t next = std::min(text.find_first_of(kDigits, digits), text.size());
        const std::string_view unit = text.substr(digits, next - digits);
        const double seconds = unit.empty() && first && next == text.size() ? 1.0 : unit_seconds(unit);
        if (seconds == 0.0) return {};
        sum += number * seconds;
        text.remove_prefix(next);
        first = false;
    } while (!text.empty());
    return negative ? -sum : sum;
}

}  // namespace

Result<std::optional<std::chrono::milliseconds>> read_keep_alive(const Fields& fields) {
    using Keep = std::optional<std::chrono::milliseconds>;
    const Json* const value = fields.find("keep_alive");
    if (!value) return Keep();
    const std::optional<double> seconds = value->is_number()   ? std::optional(value->get<double>())
                                          : value->is_string() ? duration_seconds(value->get<std::string>())
                                                               : std::nullopt;
    if (!seconds || !std::isfinite(*seconds))
        return error("keep_alive is {}; it has to be seconds, or a text such as \"5m\"", excerpt(*value));
    if (*seconds < 0.0 || *seconds > kMostSeconds) return Keep(kForever);
    return Keep(std::chrono::milliseconds(std::llround(*seconds * 1000.0)));
}

}  // namespace redline::serve
