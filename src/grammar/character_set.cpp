#include "grammar/character_set.h"

#include <algorithm>

namespace redline {
namespace {

constexpr char32_t kLast = 0x10FFFF;
constexpr CodeRange kSurrogates = {0xD800, 0xDFFF};

std::vector<CodeRange> joined(std::vector<CodeRange> ranges) {
    std::sort(ranges.begin(), ranges.end(),
              [](const CodeRange& a, const CodeRange& b) { return a.first < b.first; });
    std::vector<CodeRange> out;
    for (const CodeRange& range : ranges) {
        if (!out.empty() && range.first <= out.back().last + 1)
            out.back().last = std::max(out.back().last, range.last);
        else
            out.push_back(range);
    }
    return out;
}

std::vector<CodeRange> complement(const std::vector<CodeRange>& ranges) {
    std::vector<CodeRange> out;
    char32_t next = 0;
    for (const CodeRange& range : ranges) {
        if (range.first > next) out.push_back({next, range.first - 1});
        next = range.last + 1;
    }
    if (next <= kLast) out.push_back({next, kLast});
    return out;
}

}  // namespace

CharacterSet::CharacterSet(std::vector<CodeRange> ranges, bool negated) {
    // The complement, without surrogates, of the complement and the surrogates.
    std::vector<CodeRange> outside = joined(std::move(ranges));
    if (!negated) outside = complement(outside);
    outside.push_back(kSurrogates);
    ranges_ = complement(joined(std::move(outside)));
    for (const CodeRange& range : ranges_)
        for (char32_t code = range.first; code <= range.last && code < 128; ++code)
            low_[code / 64] |= uint64_t(1) << (code % 64);
}

// The first range that does not end before `first`.
std::vector<CodeRange>::const_iterator CharacterSet::reaching(char32_t first) const {
    return std::lower_bound(ranges_.begin(), ranges_.end(), first,
                            [](const CodeRange& range, char32_t code) { return range.last < code; });
}

bool CharacterSet::overlaps(char32_t first, char32_t last) const {
    const auto range = reaching(first);
    return range != ranges_.end() && range->first <= last;
}

bool CharacterSet::covers(char32_t first, char32_t last) const {
    const auto range = reaching(first);
    return range != ranges_.end() && range->first <= first && last <= range->last;
}

}  // namespace redline
