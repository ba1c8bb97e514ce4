// A softmax over logits by their largest and the logarithm of their sum.
#pragma once

#include "text/tokens/vocabulary.h"

#include <algorithm>
#include <cmath>
#include <span>

namespace redline {

struct LogSoftmax {
    Token best = 0;        // the first of those with the largest logit
    float most = 0.0f;     // its logit
    double log_sum = 0.0;  // ln of the sum of exp(logit - most)

    explicit LogSoftmax(std::span<const float> logits) {
        const auto largest = std::max_element(logits.begin(), logits.end());
        best = Token(largest - logits.begin());
        most = *largest;
        double sum = 0.0;
        for (const float logit : logits) sum += double(std::exp(logit - most));
        log_sum = std::log(sum);
    }
    // -ln of the probability of a token with this logit.
    double negative_log(float logit) const { return log_sum - double(logit - most); }
};

}  // namespace redline
