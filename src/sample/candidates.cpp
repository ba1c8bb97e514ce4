#include "sample/candidates.h"

#include "base/floats.h"
#include "sample/arithmetic.h"

#include <algorithm>
#include <bit>
#include <cmath>
#include <cstring>
#include <new>

namespace redline {

using namespace floats;

namespace {

constexpr float kForbidden = -std::numeric_limits<float>::infinity();
struct Scan {
    float largest;
    bool sound;  // neither NaN nor +inf
};

Scan scan(std::span<const float> logits) {
    constexpr float kInf = std::numeric_limits<float>::infinity();
    Floats largest[4];
    Mask good[4];
    for (Floats& x : largest) x = Floats{} + kForbidden;
    for (Mask& m : good) m = ~Mask{};
    size_t i = 0;
    for (; i + kBlock <= logits.size(); i += kBlock) {
        for (size_t j = 0; j < 4; ++j) {
            const Floats x = load(&logits[i + j * kLanes]);
            largest[j] = x > largest[j] ? x : largest[j];
            good[j] &= x < kInf;
        }
    }
    Scan result = {kForbidden, !any(~(good[0] & good[1] & good[2] & good[3]))};
    for (const Floats& x : largest)
        for (size_t j = 0; j < kLanes; ++j) result.largest = std::max(result.largest, x[j]);
    for (; i < logits.size(); ++i) {
        result.largest = std::max(result.largest, logits[i]);
        result.sound = result.sound && logits[i] < kInf;
    }
    return result;
}

size_t find_first(std::span<const float> logits, float wanted) {
    size_t i = 0;
    const auto equal = [wanted](Floats x) { return Mask(x == wanted); };
    while (i + kBlock <= logits.size() && !any_of_block(&logits[i], equal)) i += kBlock;
    while (i < logits.size() && logits[i] != wanted) ++i;
    return i;
}

Error unsound(std::span<const float> logits) {
    size_t nans = 0;
    size_t infinities = 0;
    size_t first = logits.size();
    for (size_t i = 0; i < logits.size(); ++i) {
        if (logits[i] < std::numeric_limits<float>::infinity()) continue;
        first = std::min(first, i);
        (std::isnan(logits[i]) ? nans : infinities) += 1;
    }
    return error("of {} logits {} are NaN and {} are +inf, the first at token {}", logits.size(), nans,
                 infinities, first);
}

}  // namespace

Status Candidates::reserve(size_t vocabulary) {
    try {
        edited_.reserve(vocabulary);
        list_.reserve(vocabulary);
        weights_.reserve(vocabulary);
        boundary_.reserve(vocabulary);
    } catch (const std::bad_alloc&) {
        return error("not enough memory to sample from a vocabulary of {}", vocabulary);
    }
    return {};
}

Status Candidates::begin(std::span<const float> logits) {
    if (!scan(logits).sound) return unsound(logits);
    logits_ = logits;
    allowed_ = {};
    edited_.clear();
    list_.clear();
    whole_ = true;
    sorted_ = false;
    return {};
}

Status Candidates::begin(std::span<const Scored> best) {
    list_.clear();
    for (const Scored& each : best) {
        if (!(each.logit < std::numeric_limits<float>::infinity()))
            return error("the largest logits are not finite: that of token {} is {}", each.id, each.logit);
        if (each.logit != kForbidden) list_.push_back({double(each.logit), each.id});
    }
    logits_ = {};
    allowed_ = {};
    edited_.clear();
    whole_ = false;
    sorted_ = true;
    return {};
}

double Candidates::largest() {
    apply_mask();
    if (whole_) return double(scan(logits_).largest);
    if (sorted_ && !list_.empty()) return list_.front().logit;
    double largest = -std::numeric_limits<double>::infinity();
    for (const Candidate& c : list_) largest = std::max(largest, c.logit);
    return largest;
}

int32_t Candidates::best() {
    if (!allowed_.empty()) select(1);
    if (!whole_) {
        const auto found = std::min_element(list_.begin(), list_.end(), better);
        return found == list_.end() ? -1 : found->id;
    }
    const float largest = scan(logits_).largest;
    if (largest == kForbidden) return -1;
    return int32_t(find_first(logits_, largest));
}

std::span<float> Candidates::editable() {
    RL_CHECK(whole_, "the logits can only be edited before the first truncation");
    apply_mask();
    if (edited_.empty()) edited_.assign(logits_.begin(), logits_.end());
    logits_ = edited_;
    return edited_;
}

void Candidates::mask(std::span<const uint64_t> allowed) {
    RL_CHECK(whole_ && edited_.empty(), "the mask comes before all else");
    const size_t words = (logits_.size() + 63) / 64;
    RL_CHECK(allowed.size() == words, "a mask of {} words for {} logits", allowed.size(), logits_.size());
    allowed_ = allowed;
}

// Code that does not go through the words of the mask reads a copy of the logits.
void Candidates::apply_mask() {
    if (allowed_.empty()) return;
    const size_t count = logits_.size();
    edited_.resize(count);
    // The rarer bits of each word are gone through.
    for (size_t word = 0; word < allowed_.size(); ++word) {
        const size_t begin = word * 64, end = std::min(count, begin + 64);
        const uint64_t present = end - begin == 64 ? ~uint64_t(0) : (uint64_t(1) << (end - begin)) - 1;
        const uint64_t bits = allowed_[word] & present;
        const bool most = std::popcount(bits) > 32;
        if (most)
            std::copy(&logits_[begin], &logits_[begin] + (end - begin), &edited_[begin]);
        else
            std::fill(&edited_[begin], &edited_[begin] + (end - begin), kForbidden);
        for (uint64_t rest = most ? ~bits & present : bits; rest != 0; rest &= rest - 1) {
            const size_t i = begin + size_t(std::countr_zero(rest));
            edited_[i] = most ? kForbidden : logits_[i];
        }
    }
    logits_ = edited_;
    allowed_ = {};
}

const std::vector<Candidate>& Candidates::list() {
    if (!whole_) return list_;
    apply_mask();
    whole_ = false;
    list_.resize(logits_.size());
    Candidate* out = list_.data();
    for (size_t i = 0; i < logits_.size(); ++i) {
        *out = {double(logits_[i]), int32_t(i)};
        out += logits_[i] != kForbidden ? 1 : 0;
    }
    list_.resize(size_t(out - list_.data()));
    return list_;
}

void Candidates::sort_first(size_t count) {
    if (list().size() <= count) {
        if (!sorted_) std::sort(list_.begin(), list_.end(), better);
        sorted_ = true;
    } else if (!sorted_) {
        const auto end = list_.begin() + std::ptrdiff_t(count);
        std::nth_element(list_.begin(), end, list_.end(), better);
        std::sort(list_.begin(), end, better);
    }
}

void Candidates::sort() {
    sort_first(std::numeric_limits<size_t>::max());
}

// The k best of the whole array. Most blocks hold nothing above the k-th best so far and cost one vector
// test; survivors gather in list_ and are cut back to k when it overflows, so the cost is linear for any
// input order.
void Candidates::select(size_t k) {
    whole_ = false;
    const bool masked = !allowed_.empty();
    const size_t most = 2 * k + 512;
    float bar = kForbidden;
    const auto offer = [&](size_t i) {
        if (!(logits_[i] > bar)) return;
        if (masked && (allowed_[i / 64] >> (i % 64) & 1) == 0) return;
        list_.push_back({double(logits_[i]), int32_t(i)});
        if (list_.size() < most) return;
        const auto last = list_.begin() + std::ptrdiff_t(k) - 1;
        std::nth_element(list_.begin(), last, list_.end(), better);
        bar = float(last->logit);  // a later token with the same logit has a higher id and loses
        list_.resize(k);
    };
    size_t i = 0;
    for (; i + kBlock <= logits_.size(); i += kBlock) {
        if (masked && uint16_t(allowed_[i / 64] >> (i % 64)) == 0) continue;
        if (!any_of_block(&logits_[i], [bar](Floats x) { return Mask(x > bar); })) continue;
        for (size_t j = 0; j < kBlock; ++j) offer(i + j);
    }
    for (; i < logits_.size(); ++i) offer(i);
    allowed_ = {};
}

void Candidates::keep_top_k(size_t k) {
    k = std::max<size_t>(k, 1);
    if (whole_ && k < logits_.size() / 4) select(k);
    sort_first(k);
    if (list_.size() > k) list_.resize(k);
    sorted_ = true;
}

void Candidates::keep_at_least(double floor, size_t min_keep) {
    min_keep = std::max<size_t>(min_keep, 1);
    apply_mask();
    size_t passing = 0;
    if (whole_) {
        for (const float x : logits_) passing += double(x) >= floor && x != kForbidden ? 1 : 0;
    } else {
        for (const Candidate& c : list_) passing += c.logit >= floor ? 1 : 0;
    }
    if (passing < min_keep) return keep_top_k(min_keep);
    if (whole_) {
        whole_ = false;
        for (size_t i = 0; i < logits_.size(); ++i)
            if (double(logits_[i]) >= floor && logits_[i] != kForbidden)
                list_.push_back({double(logits_[i]), int32_t(i)});
        return;
    }
    std::erase_if(list_, [floor](const Candidate& c) { return c.logit < floor; });
}

void Candidates::keep_top_n_sigma(double n, size_t min_keep) {
    apply_mask();
    double sum[4] = {};
    size_t count = 0;
    const auto add = [&](size_t lane, double x) {
        sum[lane % 4] += x;
        count += 1;
    };
    const auto each = [&](const auto& visit) {
        if (!whole_) {
            for (size_t i = 0; i < list_.size(); ++i) visit(i, list_[i].logit);
            return;
        }
        for (size_t i = 0; i < logits_.size(); ++i)
            if (logits_[i] != kForbidden) visit(i, double(logits_[i]));
    };
    each(add);
    if (count < 2) return;
    const double mean = ((sum[0] + sum[1]) + (sum[2] + sum[3])) / double(count);
    double square[4] = {};
    each([&](size_t lane, double x) { square[lane % 4] += (x - mean) * (x - mean); });
    const double variance = ((square[0] + square[1]) + (square[2] + square[3])) / double(count);
    keep_at_least(largest() - n * std::sqrt(variance), min_keep);
}

double Candidates::weigh() {
    list();
    const double max = largest();
    const size_t count = list_.size();
    weights_.resize(count);
    const Candidate* candidates = list_.data();
    double* weights = weights_.data();
    for (size_t i = 0; i < count; ++i) weights[i] = exp_nonpositive(candidates[i].logit - max);
    double sum[4] = {};
    for (size_t i = 0; i < count; ++i) sum[i % 4] += weights[i];
    return (sum[0] + sum[1]) + (sum[2] + sum[3]);
}

// Sorts the candidates by the buckets that their keys fall into: keeps in place all before the bucket in
// which the mass becomes enough, then those of that bucket; drops the rest. Returns how much lies before it.
template <typename Key, typename Enough>
Candidates::Part Candidates::narrow(Key key, Enough enough, size_t min_keep) {
    constexpr size_t kBuckets = 2048;
    const auto bucket = [&](const Candidate& c) {
        return size_t(std::min(key(c) * 32, double(kBuckets - 1)));
    };
    Part parts[kBuckets] = {};
    for (size_t i = 0; i < list_.size(); ++i) {
        Part& part = parts[bucket(list_[i])];
        part.count += 1;
        part.mass += weights_[i];
    }
    Part before;
    size_t last = 0;
    for (; last + 1 < kBuckets; ++last) {
        const Part next = {before.count + parts[last].count, before.mass + parts[last].mass};
        if (enough(next.mass) && next.count >= min_keep) break;
        before = next;
    }
    boundary_.clear();
    for (const Candidate& c : list_)
        if (bucket(c) == last) boundary_.push_back(c);
    std::erase_if(list_, [&](const Candidate& c) { return bucket(c) >= last; });
    list_.insert(list_.end(), boundary_.begin(), boundary_.end());
    return before;
}

// Keeps the smallest prefix, by rising key >= 0 (equal keys: better first), whose mass is enough, and at
// least min_keep. Needs weights_. Only a short list is sorted whole.
template <typename Key, typename Enough>
void Candidates::keep_prefix(Key key, Enough enough, size_t min_keep) {
    constexpr size_t kShort = 512;
    const double max = largest();
    Part kept;
    if (list_.size() > kShort && !sorted_) kept = narrow(key, enough, min_keep);
    std::sort(list_.begin() + std::ptrdiff_t(kept.count), list_.end(), [&](const auto& a, const auto& b) {
        return key(a) != key(b) ? key(a) < key(b) : better(a, b);
    });
    sorted_ = false;
    while (kept.count < list_.size()) {
        kept.mass += exp_nonpositive(list_[kept.count].logit - max);
        kept.count += 1;
        if (enough(kept.mass) && kept.count >= min_keep) break;
    }
    list_.resize(kept.count);
}

void Candidates::keep_top_p(double p, size_t min_keep) {
    const double total = weigh();
    const double max = largest();
    const bool was_sorted = sorted_;
    const auto key = [max](const Candidate& c) { return max - c.logit; };
    // 0.4 + 0.3 must reach 0.7 although these logits were rounded to float: hence the 1e-7.
    const auto enough = [target = (p - 1e-7) * total](double mass) { return mass >= target; };
    keep_prefix(key, enough, min_keep);
    sorted_ = was_sorted;
}

void Candidates::keep_typical(double p, size_t min_keep) {
    const double total = weigh();
    const double max = largest();
    // -ln p - entropy = offset - logit
    const double offset = std::log(total) + max - weighed_entropy(total);
    const auto key = [offset](const Candidate& c) { return std::abs(offset - c.logit); };
    const auto enough = [target = p * total](double mass) { return mass > target; };
    const bool was_sorted = sorted_;
    keep_prefix(key, enough, min_keep);
    if (was_sorted) sort();
}

void Candidates::keep_min_p(double p, size_t min_keep) {
    keep_at_least(largest() + std::log(p), min_keep);
}

void Candidates::drop_top_choices(double threshold, size_t min_keep) {
    const double total = weigh();
    const Candidate* least = nullptr;
    size_t reaching = 0;
    for (size_t i = 0; i < list_.size(); ++i) {
        if (weights_[i] < threshold * total) continue;
        reaching += 1;
        if (least == nullptr || better(*least, list_[i])) least = &list_[i];
    }
    if (reaching < 2 || list_.size() - (reaching - 1) < min_keep) return;
    const Candidate kept = *least;
    std::erase_if(list_, [&kept](const Candidate& c) { return better(c, kept); });
}

void Candidates::keep_surprise_below(double bits) {
    const double total = weigh();
    keep_at_least(largest() + std::log(total) - bits * std::log(2.0), 1);
}

void Candidates::scale(double temperature) {
    list();
    for (Candidate& c : list_) c.logit /= temperature;
}

double Candidates::entropy() {
    return weighed_entropy(weigh());
}

double Candidates::weighed_entropy(double total) {
    const double max = largest();
    double sum = 0;
    for (size_t i = 0; i < list_.size(); ++i) sum += weights_[i] * (list_[i].logit - max);
    return list_.empty() ? 0.0 : std::log(total) - sum / total;
}

Candidates::Drawn Candidates::draw(double u) {
    const double total = weigh();
    RL_CHECK(!list_.empty(), "nothing to draw from");
    double mass = 0;
    for (size_t i = 0; i < list_.size(); ++i) {
        mass += weights_[i];
        if (mass > u * total) return {list_[i].id, weights_[i] / total};
    }
    return {list_.back().id, weights_.back() / total};
}

}  // namespace redline
