// Timing of a piece of work, and a source of zeros as weights to time it with.
#pragma once

#include "base/result.h"
#include "formats/tensor.h"

#include <algorithm>
#include <chrono>
#include <functional>
#include <vector>

namespace redline {

struct ZeroSource : ByteSource {
    Status read(size_t, uint64_t, std::span<std::byte> out) override {
        std::ranges::fill(out, std::byte(0));
        return {};
    }
};

inline Result<double> seconds_of(const std::function<Status()>& work) {
    const auto begin = std::chrono::steady_clock::now();
    RL_TRY(work());
    return std::chrono::duration<double>(std::chrono::steady_clock::now() - begin).count();
}

// The median of some timings. A minimum would show what a machine reaches while other programs leave it alone
// for a moment; a mean is distorted by the few runs that were interrupted.
inline double median(std::vector<double> tries) {
    const auto found = tries.begin() + ptrdiff_t(tries.size() / 2);
    std::nth_element(tries.begin(), found, tries.end());
    return *found;
}

inline Result<double> median_seconds(const std::function<Status()>& work) {
    constexpr size_t kLeastTries = 5, kMostTries = 500;
    constexpr double kEnoughSeconds = 0.2;
    std::vector<double> all;
    const auto begin = std::chrono::steady_clock::now();
    for (double total = 0.0; all.size() < kLeastTries || (all.size() < kMostTries && total < kEnoughSeconds);
         total = std::chrono::duration<double>(std::chrono::steady_clock::now() - begin).count())
        all.push_back(RL_TRY(seconds_of(work)));
    return median(std::move(all));
}

}  // namespace redline
