#include "engine/output_check.h"

#include "base/floats.h"

#include <algorithm>
#include <cmath>

namespace redline {

using namespace floats;

static std::string likely_cause(const DeviceInfo& device) {
    if (device.threads > 0)
        return "the model file is damaged, or was converted wrongly; take another copy of it";
    return fmt::format(
        "{} or its driver does not compute, or the file is damaged; --device cpu tells which, a newer driver "
        "may help",
        device.name);
}

struct Range {
    float least, most;
    bool finite;
};

// Kept fast, since it scans every token's logits.
static Range range_of(std::span<const float> logits) {
    Range all = {logits[0], logits[0], true};
    const Floats first = Floats{} + logits[0];
    Floats least[4] = {first, first, first, first}, most[4] = {first, first, first, first};
    Mask finite[4] = {~Mask{}, ~Mask{}, ~Mask{}, ~Mask{}};
    size_t i = 0;
    for (; i + kBlock <= logits.size(); i += kBlock)
        for (size_t j = 0; j < 4; ++j) {
            const Floats x = load(&logits[i + j * kLanes]);
            least[j] = x < least[j] ? x : least[j];
            most[j] = x > most[j] ? x : most[j];
            finite[j] &= x - x == 0.0f;
        }
    for (size_t j = 0; j < kBlock; ++j) {
        all.least = std::min(all.least, least[j / kLanes][j % kLanes]);
        all.most = std::max(all.most, most[j / kLanes][j % kLanes]);
    }
    all.finite = !any(~(finite[0] & finite[1] & finite[2] & finite[3]));
    for (; i < logits.size(); ++i) {
        all.least = std::min(all.least, logits[i]);
        all.most = std::max(all.most, logits[i]);
        all.finite = all.finite && std::isfinite(logits[i]);
    }
    return all;
}

static Result<Range> checked_range(std::span<const float> logits, const DeviceInfo& device) {
    if (logits.empty()) return error("there are no logits");
    const Range range = range_of(logits);
    if (range.finite && (range.least != range.most || logits.size() == 1)) return range;
    for (size_t i = 0; i < logits.size(); ++i)
        if (!std::isfinite(logits[i])) return error("logit {} is {}: {}", i, logits[i], likely_cause(device));
    return error("all {} logits are {}: {}", logits.size(), logits[0], likely_cause(device));
}

Status check_logits(std::span<const float> logits, const DeviceInfo& device) {
    RL_TRY(checked_range(logits, device));
    return {};
}

// The lead of the best logit over all others, of so many, at which these have less than 2^-32 of the
// probability together.
static float certain_lead(size_t vocabulary) {
    return float(std::log(double(vocabulary)) + 32 * std::log(2.0));
}

// The only logit of at least `bound`; -1 when there are several, which is noticed early.
static Token only_one(std::span<const float> logits, float bound) {
    Token found = kNoToken;
    for (size_t i = 0; i < logits.size(); i += kBlock) {
        const auto large = [bound](Floats x) { return Mask(x >= bound); };
        if (i + kBlock <= logits.size() && !any_of_block(&logits[i], large)) continue;
        for (size_t j = i; j < std::min(i + kBlock, logits.size()); ++j) {
            if (logits[j] < bound) continue;
            if (found != kNoToken) return kNoToken;
            found = Token(j);
        }
    }
    return found;
}

Status OutputWatch::see(Token read, std::span<const float> logits, const DeviceInfo& device) {
    const Range range = RL_TRY(checked_range(logits, device));
    const Token top = only_one(logits, range.most - certain_lead(logits.size()));
    return count(read, top, top != kNoToken, device);
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
    return error("the model is certain of token {} for {} tokens in a row, which no text causes: {}", top,
                 certain_, likely_cause(device));
}

}  // namespace redline
