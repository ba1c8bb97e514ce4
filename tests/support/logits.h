// Logits for the tests of samplers.
#pragma once

#include <cmath>
#include <limits>
#include <vector>

namespace redline::test {

constexpr float kInf = std::numeric_limits<float>::infinity();

// Logits whose softmax is these probabilities.
inline std::vector<float> logs(const std::vector<double>& probabilities) {
    std::vector<float> logits;
    for (const double p : probabilities) logits.push_back(float(std::log(p)));
    return logits;
}

}  // namespace redline::test
