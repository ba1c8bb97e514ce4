// DRY ("don't repeat yourself"): penalises tokens that would continue a repetition of the recent text, more
// the longer it already is. Repetitions do not reach across sequence breakers.
#pragma once

#include "base/result.h"
#include "sample/history.h"

#include <cstdint>
#include <functional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace redline {

// The tokens that spell a breaker: `head`, then `tail`. One token is enough when the tail is empty.
struct DryBreaker {
    int32_t head;
    std::vector<int32_t> tail;
    bool operator==(const DryBreaker&) const = default;
    auto operator<=>(const DryBreaker&) const = default;
};

// Every way in which the vocabulary's tokens spell one of the breaker strings, sorted: a token that contains
// the string, or a token that ends with its beginning, followed by the tokens of the rest (at most 20). An
// empty string, or one above 40 bytes, is an error. Costs a pass over the vocabulary: keep the answer.
Result<std::vector<DryBreaker>> make_dry_breakers(
    std::span<const std::string> strings, int32_t vocabulary_size,
    const std::function<std::string(int32_t)>& token_text,
    const std::function<std::vector<int32_t>(std::string_view)>& encode);

// A token that would continue a repetition of `length` tokens.
struct DryMatch {
    int32_t token;
    int32_t length;
    bool operator==(const DryMatch&) const = default;
};

class DryHistory {
public:
    DryHistory() = default;
    // Takes all its memory now (std::bad_alloc). `breakers` must be sorted.
    DryHistory(size_t window, std::vector<DryBreaker> breakers);

    void push(int32_t token) { ring_.push(token); }
    void clear() { ring_.clear(); }
    // The longest match per token, from `shortest` on, sorted by token, without single-token breakers and
    // negative ids. O(window).
    std::span<const DryMatch> matches(int32_t shortest);

private:
    std::span<const DryBreaker> starting_with(int32_t head) const;
    size_t tokens_since_breaker() const;

    TokenRing ring_;
    std::vector<DryBreaker> breakers_;
    std::vector<int32_t> recent_;   // newest first
    std::vector<size_t> repeated_;  // by position in recent_: tokens from there that repeat the newest ones
    std::vector<DryMatch> matches_;
};

}  // namespace redline
