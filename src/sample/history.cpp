#include "sample/history.h"

#include <algorithm>

namespace redline {

TokenRing::TokenRing(size_t capacity) : capacity_(capacity) {
    tokens_.reserve(capacity);
}

void TokenRing::push(int32_t token) {
    if (!full()) {
        tokens_.push_back(token);
        return;
    }
    if (capacity_ == 0) return;
    tokens_[next_] = token;
    next_ = next_ + 1 == capacity_ ? 0 : next_ + 1;
}

void TokenRing::clear() {
    tokens_.clear();
    next_ = 0;
}

void TokenRing::copy_newest_first(std::vector<int32_t>& out) const {
    out.clear();
    const auto split = tokens_.rend() - std::ptrdiff_t(next_);
    out.insert(out.end(), split, tokens_.rend());
    out.insert(out.end(), tokens_.rbegin(), split);
}

TokenCounts::TokenCounts(size_t window, size_t vocabulary)
    : ring_(window), counts_(vocabulary), places_(vocabulary), window_(window) {
    distinct_.reserve(std::min(window, vocabulary));
}

void TokenCounts::push(int32_t token) {
    if (window_ == 0) return;
    if (ring_.full() && ring_.oldest() >= 0) {
        const size_t leaving = size_t(ring_.oldest());
        counts_[leaving] -= 1;
        if (counts_[leaving] == 0) {
            const int32_t moved = distinct_.back();
            distinct_[size_t(places_[leaving])] = moved;
            places_[size_t(moved)] = places_[leaving];
            distinct_.pop_back();
        }
    }
    ring_.push(token);
    if (token < 0) return;
    if (counts_[size_t(token)]++ == 0) {
        places_[size_t(token)] = int32_t(distinct_.size());
        distinct_.push_back(token);
    }
}

void TokenCounts::clear() {
    for (const int32_t token : distinct_) counts_[size_t(token)] = 0;
    distinct_.clear();
    ring_.clear();
}

}  // namespace redline
