#include "cli/terminal/progress.h"

#include <fmt/format.h>

#include <algorithm>

namespace redline::cli {

namespace {

struct Unit {
    double bytes;
    int digits;
    const char* name;
};

// A size of some bytes is a part of a kB, which is not 0.
Unit unit_of(double bytes) {
    if (bytes >= 1e9) return {1e9, 2, "GB"};
    if (bytes >= 1e6) return {1e6, 1, "MB"};
    return {1e3, bytes < 100.0 ? 2 : 1, "kB"};
}

std::string in_unit(double bytes, const Unit& unit) {
    return fmt::format("{:.{}f}", bytes / unit.bytes, unit.digits);
}

}  // namespace

std::string decimal_size(uint64_t bytes) {
    const Unit unit = unit_of(double(bytes));
    return fmt::format("{} {}", in_unit(double(bytes), unit), unit.name);
}

std::string progress_text(uint64_t done, uint64_t total, std::chrono::duration<double> time,
                          Counted counted) {
    const Unit unit = unit_of(double(total));
    const double rate = double(done) / std::max(time.count(), 1e-3);
    const uint64_t percent = total > 0 ? uint64_t(100.0 * double(done) / double(total)) : 100;
    if (counted == Counted::tokens)
        return fmt::format("{} %  {} of {} tokens  {:.0f} tok/s", percent, done, total, rate);
    return fmt::format("{} %  {} of {} {}  {} {}/s", percent, in_unit(double(done), unit),
                       in_unit(double(total), unit), unit.name, in_unit(rate, unit_of(rate)),
                       unit_of(rate).name);
}

}  // namespace redline::cli
