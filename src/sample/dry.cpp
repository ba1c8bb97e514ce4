#include "sample/dry.h"

#include <algorithm>

namespace redline {
namespace {

constexpr size_t kLongestBreaker = 40;  // bytes
constexpr size_t kLongestTail = 20;     // tokens

}  // namespace

Result<std::vector<DryBreaker>> make_dry_breakers(
    std::span<const std::string> strings, int32_t vocabulary_size,
    const std::function<std::string(int32_t)>& token_text,
    const std::function<std::vector<int32_t>(std::string_view)>& encode) {
    // tails[s][n]: tokens of string s without its first n bytes; n = 0 is not needed
    std::vector<std::vector<std::vector<int32_t>>> tails;
    for (const std::string& string : strings) {
        if (string.empty()) return error("a dry sequence breaker is empty");
        if (string.size() > kLongestBreaker)
            return error("the dry sequence breaker \"{}\" has {} bytes; {} are allowed", string,
                         string.size(), kLongestBreaker);
        auto& of_string = tails.emplace_back(string.size());
        for (size_t n = 1; n < string.size(); ++n) {
            of_string[n] = encode(std::string_view(string).substr(n));
            if (of_string[n].size() > kLongestTail) of_string[n].resize(kLongestTail);
        }
    }
    std::vector<DryBreaker> breakers;
    for (int32_t id = 0; id < vocabulary_size; ++id) {
        const std::string text = token_text(id);
        for (size_t s = 0; s < strings.size(); ++s) {
            const std::string_view string = strings[s];
            if (text.find(string) != std::string::npos) {
                breakers.push_back({id, {}});
                continue;
            }
            for (size_t n = 1; n < std::min(string.size(), text.size() + 1); ++n)
                if (!tails[s][n].empty() && text.ends_with(string.substr(0, n)))
                    breakers.push_back({id, tails[s][n]});
        }
    }
    std::sort(breakers.begin(), breakers.end());
    breakers.erase(std::unique(breakers.begin(), breakers.end()), breakers.end());
    return breakers;
}

DryHistory::DryHistory(size_t window, std::vector<DryBreaker> breakers)
    : ring_(window), breakers_(std::move(breakers)) {
    recent_.reserve(window);
    repeated_.reserve(window);
    matches_.reserve(window);
}

std::span<const DryBreaker> DryHistory::starting_with(int32_t head) const {
    const auto before = [](const DryBreaker& b, int32_t id) { return b.head < id; };
    const auto from = std::lower_bound(breakers_.begin(), breakers_.end(), head, before);
    auto to = from;
    while (to != breakers_.end() && to->head == head) ++to;
    return {from, to};
}

// How many of the newest tokens follow the most recent complete breaker.
size_t DryHistory::tokens_since_breaker() const {
    for (size_t i = 0; i < recent_.size(); ++i) {
        bool found = false;
        size_t longest = 0;
        for (const DryBreaker& breaker : starting_with(recent_[i])) {
            const size_t length = breaker.tail.size();
            if (length > i ||
                !std::equal(breaker.tail.begin(), breaker.tail.end(), recent_.rend() - std::ptrdiff_t(i)))
                continue;
            found = true;
            longest = std::max(longest, length);
        }
        if (found) return i - longest;
    }
    return recent_.size();
}

std::span<const DryMatch> DryHistory::matches(int32_t shortest) {
    matches_.clear();
    ring_.copy_newest_first(recent_);
    const size_t limit = tokens_since_breaker();
    if (int64_t(limit) < shortest) return matches_;

    // Z algorithm: the stretch [left, right) is the rightmost one known to equal the beginning.
    const size_t count = recent_.size();
    repeated_.assign(count, 0);
    size_t left = 0;
    size_t right = 0;
    for (size_t i = 1; i < count; ++i) {
        size_t length = i < right ? std::min(right - i, repeated_[i - left]) : 0;
        while (i + length < count && recent_[length] == recent_[i + length]) ++length;
        repeated_[i] = length;
        if (i + length > right) {
            left = i;
            right = i + length;
        }
        const int32_t next = recent_[i - 1];
        const int32_t capped = int32_t(std::min(length, limit));
        if (capped >= shortest && next >= 0) matches_.push_back({next, capped});
    }
    std::sort(matches_.begin(), matches_.end(), [](const DryMatch& a, const DryMatch& b) {
        return a.token != b.token ? a.token < b.token : a.length > b.length;
    });
    const auto same = [](const DryMatch& a, const DryMatch& b) { return a.token == b.token; };
    matches_.erase(std::unique(matches_.begin(), matches_.end(), same), matches_.end());
    std::erase_if(matches_, [&](const DryMatch& match) {
        const auto breakers = starting_with(match.token);
        return !breakers.empty() && breakers.front().tail.empty();
    });
    return matches_;
}

}  // namespace redline
