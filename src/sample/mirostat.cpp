#include "sample/mirostat.h"

#include <algorithm>
#include <cmath>

namespace redline {
namespace {

constexpr size_t kFitted = 100;  // the best tokens from which the Zipf exponent is estimated

// k = ((s-1) 2^mu / (1 - V^-(s-1)))^(1/s), with s = sum(t b) / sum(t^2), t_i = ln((i+2)/(i+1)), b_i =
// ln(p_i/p_{i+1}).
size_t zipf_top_k(Candidates& candidates, size_t vocabulary, double mu) {
    candidates.sort_first(kFitted);
    const auto& list = candidates.list();
    double products = 0;
    double squares = 0;
    for (size_t i = 0; i + 1 < std::min(kFitted, list.size()); ++i) {
        const double t = std::log(double(i + 2) / double(i + 1));
        products += t * (list[i].logit - list[i + 1].logit);
        squares += t * t;
    }
    const double s = squares > 0 ? products / squares : 0;
    const double epsilon = s - 1;
    const double size = double(vocabulary);
    // The limit for s -> 1 is 1 / ln V.
    const double slope =
        std::abs(epsilon) < 1e-6 ? 1 / std::log(size) : epsilon / (1 - std::pow(size, -epsilon));
    const double k = std::pow(slope * std::exp2(mu), 1 / s);
    if (!(k < double(list.size()))) return list.size();
    return std::max<size_t>(size_t(k), 1);
}

}  // namespace

Candidates::Drawn Mirostat::choose(Candidates& candidates, size_t vocabulary, double u) const {
    if (version == 1) {
        candidates.keep_top_k(zipf_top_k(candidates, vocabulary, mu));
    } else {
        candidates.keep_surprise_below(mu);
    }
    return candidates.draw(u);
}

void Mirostat::learn(double probability) {
    mu -= eta * (-std::log2(probability) - tau);
}

}  // namespace redline
