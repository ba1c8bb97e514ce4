// How long a piece of work takes, and weights to try it with.
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

// The fastest would be what a machine can do where other programs leave it alone for a moment, not what a
// text gets, and a mean is of few tries that were interrupted: half of the tries are below it.
inline double usual(std::vector<double> tries) {
    const auto found = tries.begin() + ptrdiff_t(tries.size() / 2);
    std::nth_element(tries.begin(), found, tries.end());
    return *found;
}

inline Result<double> usual_seconds(const std::function<Status()>& work) {
    constexpr size_t kLeastTries = 5, kMostTries = 500;
    constexpr double kEnoughSeconds = 0.2;
    std::vector<double> all;
    const auto begin = std::chrono::steady_clock::now();
    for (double total = 0.0; all.size() < kLeastTries || (all.size() < kMostTries && total < kEnoughSeconds);
         total = std::chrono::duration<double>(std::chrono::steady_clock::now() - begin).count())
        all.push_back(RL_TRY(seconds_of(work)));
    return usual(std::move(all));
}

}  // namespace redline
