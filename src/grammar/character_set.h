// Sets of characters as sorted ranges of code points. Surrogates are no characters and in no set.
#pragma once

#include <cstdint>
#include <vector>

namespace redline {

struct CodeRange {
    char32_t first;
    char32_t last;
    bool operator==(const CodeRange&) const = default;
};

class CharacterSet {
public:
    CharacterSet() = default;
    // Ranges in any order, overlapping or not; `negated`: all characters but these.
    explicit CharacterSet(std::vector<CodeRange> ranges, bool negated = false);

    bool contains(char32_t code) const {
        if (code < 128) return (low_[code / 64] >> (code % 64) & 1) != 0;
        return overlaps(code, code);
    }
    bool overlaps(char32_t first, char32_t last) const;
    bool covers(char32_t first, char32_t last) const;  // all of first .. last
    bool empty() const { return ranges_.empty(); }
    const std::vector<CodeRange>& ranges() const { return ranges_; }  // ascending, with gaps between them
    bool operator==(const CharacterSet& other) const { return ranges_ == other.ranges_; }

private:
    std::vector<CodeRange>::const_iterator reaching(char32_t first) const;

    std::vector<CodeRange> ranges_;
    uint64_t low_[2] = {};  // a bit for each of the first 128 characters
};

}  // namespace redline
