// The last tokens of a conversation: a ring of them, and one that also counts how often each occurs.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

namespace redline {

// The last `capacity` tokens. All memory is taken when it is made (std::bad_alloc).
class TokenRing {
public:
    TokenRing() = default;
    explicit TokenRing(size_t capacity);

    bool full() const { return tokens_.size() == capacity_; }
    size_t size() const { return tokens_.size(); }
    int32_t oldest() const { return tokens_[full() ? next_ : 0]; }
    void push(int32_t token);
    void clear();
    void copy_newest_first(std::vector<int32_t>& out) const;

private:
    std::vector<int32_t> tokens_;
    size_t capacity_ = 0;
    size_t next_ = 0;  // where the next token goes once the ring is full
};

// The tokens of a window and how often each occurs in it; push costs the same for any window.
class TokenCounts {
public:
    TokenCounts() = default;
    TokenCounts(size_t window, size_t vocabulary);

    // Token -1 (not of the vocabulary, an image placeholder say) takes its place in the window and is not
    // counted.
    void push(int32_t token);
    void clear();
    int32_t count(int32_t token) const { return counts_[size_t(token)]; }
    std::span<const int32_t> distinct() const { return distinct_; }  // in no particular order

private:
    TokenRing ring_;
    std::vector<int32_t> counts_;    // by token id
    std::vector<int32_t> places_;    // by token id: index in distinct_, where counted
    std::vector<int32_t> distinct_;  // tokens with a count
    size_t window_ = 0;
};

}  // namespace redline
