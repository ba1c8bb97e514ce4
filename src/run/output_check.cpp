#include "run/output_check.h"

#include <algorithm>
#include <bit>
#include <cmath>

namespace redline {

static std::string likely_cause(const DeviceInfo& device) {
    if (device.threads > 0)
        return "the model file is damaged, or was converted wrongly; take another copy of it";
    return fmt::format(
        "{} or its driver does not compute, or the file is damaged; --device cpu tells which, a newer driver "
        "may help",
        device.name);
}

// Without branches, since each token's logits go through here.
static bool plausible(std::span<const float> logits) {
    constexpr uint32_t kMagnitude = 0x7fffffff, kInfinity = 0x7f800000;
    uint32_t most = 0, differing = logits.size() > 1 ? 0 : 1;
    for (const float logit : logits) {
        most = std::max(most, std::bit_cast<uint32_t>(logit) & kMagnitude);
        differing |= uint32_t(logit != logits[0]);
    }
    return most < kInfinity && differing != 0;
}

Status check_logits(std::span<const float> logits, const DeviceInfo& device) {
    if (plausible(logits)) return {};
    for (size_t i = 0; i < logits.size(); ++i)
        if (!std::isfinite(logits[i])) return error("logit {} is {}: {}", i, logits[i], likely_cause(device));
    return error("all {} logits are {}: {}", logits.size(), logits[0], likely_cause(device));
}

// By how much the best logit of so many is above all others when these have less than 2^-32 of the
// probability together.
static float certain_lead(size_t vocabulary) {
    return float(std::log(double(vocabulary)) + 32 * std::log(2.0));
}

Status OutputWatch::see(Token read, std::span<const float> logits, const DeviceInfo& device) {
    RL_TRY(check_logits(logits, device));
    const auto top = std::max_element(logits.begin(), logits.end());
    const float bound = *top - certain_lead(logits.size());
    uint32_t near = 0;
    for (const float logit : logits) near += uint32_t(logit >= bound);
    return count(read, Token(top - logits.begin()), near == 1, device);
}

Status OutputWatch::see(Token read, std::span<const Scored> best, size_t vocabulary,
                        const DeviceInfo& device) {
    for (const Scored& one : best)
        if (!std::isfinite(one.logit))
            return error("logit {} is {}: {}", one.id, one.logit, likely_cause(device));
    const bool certain = best.size() > 1 && best[0].logit - best[1].logit > certain_lead(vocabulary);
    return count(read, best[0].id, certain, device);
}

Status OutputWatch::count(Token read, Token top, bool certain, const DeviceInfo& device) {
    if (std::find(ends_.begin(), ends_.end(), top) != ends_.end()) certain = false;
    if (certain && top == top_) {
        ++certain_;
    } else {
        certain_ = certain && top != read ? 1 : 0;
        top_ = certain_ > 0 ? top : kNoToken;
    }
    if (certain_ < kMostCertain) return {};
    return error("the model is certain of token {} for {} tokens in a row, which no text makes it: {}", top,
                 certain_, likely_cause(device));
}

}  // namespace redline
