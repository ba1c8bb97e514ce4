// The tokens still in the running, and the sampling chain's operations on them. Until something is removed
// they are the vocabulary's array of logits itself, so that top_k of 150k logits never builds a list of 150k
// elements. Formulas are llama.cpp's, computed in double. p is always softmax over the current candidates.
#pragma once

#include "base/result.h"
#include "base/scored.h"

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <limits>
#include <span>
#include <vector>

namespace redline {

struct Candidate {
    double logit;  // finite
    int32_t id;
};

// Higher logit first, then lower id. A total order: sorted results do not depend on the sorting algorithm.
inline bool better(const Candidate& a, const Candidate& b) {
    return a.logit != b.logit ? a.logit > b.logit : a.id < b.id;
}

class Candidates {
public:
    // Takes all the memory that a vocabulary of this size can ever need.
    Status reserve(size_t vocabulary);

    // Begins a token; `logits` is borrowed until the next begin. NaN and +inf are an error (how many, which
    // first); -inf is a forbidden token.
    Status begin(std::span<const float> logits);
    // The same with the best only, in the order of comes_first(): all others count as removed.
    Status begin(std::span<const Scored> best);

    // The best token of all, the lowest id among equals; -1 when every token is forbidden.
    int32_t best();

    // True while nothing has been removed: then editable() is a private copy of the logits, by token id.
    bool whole() const { return whole_; }
    std::span<float> editable();

    // Forbids the tokens whose bit, in words of 64, is not set. Before all else; `allowed` is borrowed until
    // the next begin.
    void mask(std::span<const uint64_t> allowed);

    // logit = change(id, logit) for the token of each item; for all others `change` must give back the same
    // logit.
    template <typename Items, typename IdOf, typename Change>
    void change(const Items& items, IdOf id_of, Change change);

    // The candidates as a list, without the forbidden ones; in order of id unless sorted since.
    const std::vector<Candidate>& list();
    void sort();
    // Sorts so that the first `count` are the best ones in order; the rest is in no particular order.
    void sort_first(size_t count);

    // Truncations. All keep at least `min_keep` (and at least one) of those there are.
    void keep_top_k(size_t k);
    void keep_top_n_sigma(double n, size_t min_keep);  // logit >= max - n * population std
    void keep_typical(double p, size_t min_keep);      // smallest | -ln p - entropy | first, until mass > p
    void keep_top_p(double p, size_t min_keep);        // smallest prefix with mass >= p
    void keep_min_p(double p, size_t min_keep);        // p_i >= p * p_max
    // XTC: of those with p_i >= threshold, removes all but the least likely; nothing if too few would stay.
    void drop_top_choices(double threshold, size_t min_keep);
    void keep_surprise_below(double bits);  // -log2 p_i <= bits

    void scale(double temperature);  // logits /= temperature > 0
    double entropy();                // -sum p ln p

    struct Drawn {
        int32_t id;
        double probability;
    };
    // The first candidate with cumulative p above u in [0, 1). The list must not be empty.
    Drawn draw(double u);

private:
    void apply_mask();
    double largest();
    double weigh();  // fills weights_ with exp(logit - max), in the list's order; returns their sum
    double weighed_entropy(double total);
    void keep_at_least(double floor, size_t min_keep);
    struct Part {
        size_t count = 0;
        double mass = 0;
    };
    template <typename Key, typename Enough>
    Part narrow(Key key, Enough enough, size_t min_keep);
    template <typename Key, typename Enough>
    void keep_prefix(Key key, Enough enough, size_t min_keep);
    void select(size_t k);

    std::span<const float> logits_;      // whole: the array in force, the caller's or edited_
    std::span<const uint64_t> allowed_;  // not applied to logits_ yet; empty: all
    std::vector<float> edited_;
    std::vector<Candidate> list_;
    std::vector<double> weights_;
    std::vector<Candidate> boundary_;
    bool whole_ = true;
    bool sorted_ = false;
};

template <typename Items, typename IdOf, typename Change>
void Candidates::change(const Items& items, IdOf id_of, Change change) {
    // Overflow stays finite; -inf (forbidden) is left alone.
    constexpr double kMost = std::numeric_limits<float>::max();
    if (whole_) {
        const std::span<float> logits = editable();
        for (const auto& item : items) {
            const int32_t id = std::invoke(id_of, item);
            float& logit = logits[size_t(id)];
            if (logit == -std::numeric_limits<float>::infinity()) continue;
            logit = float(std::clamp(change(id, double(logit)), -kMost, kMost));
        }
        return;
    }
    for (Candidate& c : list_) c.logit = std::clamp(change(c.id, c.logit), -1e300, 1e300);
    sorted_ = false;
}

}  // namespace redline
