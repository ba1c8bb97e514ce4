// The distance of a backend's results from the reference's.
#pragma once

#include "reference/reference.h"

#include <cmath>
#include <span>

namespace redline {

struct Comparison {
    double worst_fraction = 0.0;  // of the bound
    size_t worst = 0;
    double got = 0.0, want = 0.0, bound = 0.0;
    double nmse = 0.0;
    size_t outside = 0, count = 0;
    double loosest_bound = 0.0;  // as a share of the value's magnitude
    double spread = 0.0;         // the root mean square of errors, each relative to its likely size
    double farthest = 0.0;       // the largest error relative to its likely size
};

// A bound that is a larger share of its magnitude proves little: wrong results would pass.
constexpr double kLoosestBound = 0.1;
// Worst cases add up, but many roundings partly cancel: an error far beyond chance may still be within the
// bound. Single ops reach 1.4 and 3.0. With fewer values than kFewestErrors a mean says little.
constexpr double kMostSpread = 2.0, kFarthest = 4.5;
constexpr size_t kFewestErrors = 8;
// Errors are correlated where one op's error reaches all sums of the next and weights have a common part: 2.2
// and 8.2 were seen.
constexpr double kAlike = 2.0;

inline Comparison compare(std::span<const float> got, std::span<const Bounded> want) {
    Comparison c;
    c.count = want.size();
    double noise = 0.0, signal = 0.0, squares = 0.0;
    size_t known = 0;
    for (size_t i = 0; i < want.size(); ++i) {
        const double off = std::abs(double(got[i]) - want[i].value);
        // Rounding the result itself to binary32 is always allowed.
        const double bound = want[i].error + std::abs(want[i].value) * 0x1p-24;
        // A bound that is not finite says nothing, so nothing is within it.
        const double fraction = !std::isfinite(bound) ? INFINITY : off == 0.0 ? 0.0 : off / bound;
        if (bound > 1e-20) c.loosest_bound = std::max(c.loosest_bound, bound / want[i].magnitude);
        noise += off * off;
        if (want[i].spread > 0.0) {
            const double likely = want[i].spread + std::abs(want[i].value) * 0x1p-24;
            squares += off / likely * (off / likely);
            c.farthest = std::max(c.farthest, off / likely);
            ++known;
        }
        signal += want[i].value * want[i].value;
        if (!(fraction <= 1.0)) ++c.outside;
        if (fraction > c.worst_fraction || !std::isfinite(fraction)) {
            c.worst_fraction = std::isfinite(fraction) ? fraction : INFINITY;
            c.worst = i;
            c.got = got[i];
            c.want = want[i].value;
            c.bound = bound;
        }
    }
    c.nmse = signal > 0.0 ? noise / signal : noise;
    if (known >= kFewestErrors) c.spread = std::sqrt(squares / double(known));
    return c;
}

// True when errors are of the size that roundings have by chance, or `times` that.
inline bool by_chance(const Comparison& c, double times = 1.0) {
    return c.spread <= times * kMostSpread && c.farthest <= times * kFarthest;
}

}  // namespace redline
