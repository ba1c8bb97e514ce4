#include "text/tokens/special_splitter.h"

#include <algorithm>
#include <numeric>
#include <utility>

namespace redline {
namespace {

bool is_space(char c) {
    return c == ' ' || (c >= '\t' && c <= '\r');
}

}  // namespace

SpecialSplitter::SpecialSplitter(const Vocabulary& vocabulary, const std::vector<Token>& swallows) {
    for (size_t i = 0; i < vocabulary.size(); ++i) {
        const auto token = Token(i);
        const TokenType type = vocabulary.type(token);
        if (type != TokenType::control && type != TokenType::user_defined && type != TokenType::unknown)
            continue;
        // The vocabulary finds only one of several tokens with the same text.
        if (vocabulary.find(vocabulary.text(token)) != token) continue;
        const bool swallow = std::binary_search(swallows.begin(), swallows.end(), token);
        specials_.push_back({vocabulary.text(token), token, type == TokenType::user_defined, swallow});
    }
    std::sort(specials_.begin(), specials_.end(),
              [](const Special& a, const Special& b) { return a.text < b.text; });
    for (const Special& special : specials_) ++first_[size_t(uint8_t(special.text[0])) + 1];
    std::partial_sum(first_.begin(), first_.end(), first_.begin());

    std::vector<uint32_t> order(specials_.size());
    std::iota(order.begin(), order.end(), 0u);
    std::sort(order.begin(), order.end(), [&](uint32_t a, uint32_t b) {
        const size_t length_a = specials_[a].text.size();
        const size_t length_b = specials_[b].text.size();
        return length_a != length_b ? length_a > length_b : specials_[a].token < specials_[b].token;
    });
    rank_.resize(specials_.size());
    for (size_t i = 0; i < order.size(); ++i) rank_[order[i]] = uint32_t(i);
}

// Splits one text. Occurrences that overlap form an island; islands cannot influence each other, so the rule
// "longest first over the whole text" is applied to each separately, with only the tokens that occur there.
class SpecialSplitter::Run {
public:
    Run(const SpecialSplitter& splitter, std::string_view text, std::span<const TextRange> trusted)
        : splitter_(splitter), text_(text), trusted_(trusted), seen_(splitter.specials_.size(), 0) {}

    std::vector<Fragment> split() {
        size_t raw = 0;
        for (size_t at = 0; at < text_.size();) {
            const auto byte = uint8_t(text_[at]);
            if (splitter_.first_[byte] == splitter_.first_[byte + 1u]) {
                ++at;
                continue;
            }
            const size_t end = island_end(at);
            if (end == at) {
                ++at;
                continue;
            }
            add_raw(raw, at);
            split_island({at, end, kNoToken});
            raw = at = end;
        }
        add_raw(raw, text_.size());
        return std::move(out_);
    }

private:
    bool is_trusted(size_t begin, size_t end) const {
        const auto after =
            std::upper_bound(trusted_.begin(), trusted_.end(), begin,
                             [](size_t place, const TextRange& range) { return place < range.begin; });
        return after != trusted_.begin() && end <= std::prev(after)->end;
    }

    size_t swallowed_end(size_t end) const {
        while (end < text_.size() && is_space(text_[end])) ++end;
        return end;
    }

    // Collects the specials that occur at `at` or overlap those collected; returns the end of the last one,
    // or `at` if there is none.
    size_t island_end(size_t at) {
        ++island_;
        found_.clear();
        size_t end = at;
        do end = std::max(end, collect(at));
        while (++at < end);
        return found_.empty() ? at - 1 : end;
    }

    // Walks the sorted texts like a trie, byte by byte. Returns the end of the longest found.
    size_t collect(size_t at) {
        const std::vector<Special>& specials = splitter_.specials_;
        const auto byte = uint8_t(text_[at]);
        auto low = specials.begin() + splitter_.first_[byte];
        auto high = specials.begin() + splitter_.first_[byte + 1u];
        size_t end = at;
        for (size_t length = 1; low != high; ++length) {
            if (low->text.size() == length) {
                if (low->anywhere || is_trusted(at, at + length)) {
                    const auto index = size_t(low - specials.begin());
                    if (std::exchange(seen_[index], island_) != island_) found_.push_back(uint32_t(index));
                    end = std::max(end, low->swallows ? swallowed_end(at + length) : at + length);
                }
                ++low;
            }
            if (at + length >= text_.size()) break;
            const auto next = uint8_t(text_[at + length]);
            low = std::partition_point(low, high,
                                       [&](const Special& s) { return uint8_t(s.text[length]) < next; });
            high = std::partition_point(low, high,
                                        [&](const Special& s) { return uint8_t(s.text[length]) == next; });
        }
        return end;
    }

    void split_island(Fragment island) {
        std::sort(found_.begin(), found_.end(),
                  [&](uint32_t a, uint32_t b) { return splitter_.rank_[a] < splitter_.rank_[b]; });
        std::vector<Fragment> now = {island};
        std::vector<Fragment> next;
        for (const uint32_t index : found_) {
            next.clear();
            for (const Fragment& fragment : now)
                if (fragment.token == kNoToken)
                    cut(fragment, splitter_.specials_[index], next);
                else
                    next.push_back(fragment);
            now.swap(next);
        }
        for (const Fragment& fragment : now)
            if (fragment.token == kNoToken)
                add_raw(fragment.begin, fragment.end);
            else
                out_.push_back(fragment);
    }

    void cut(Fragment raw, const Special& special, std::vector<Fragment>& out) const {
        const std::string_view text = text_.substr(0, raw.end);
        size_t from = raw.begin;
        for (size_t at = text.find(special.text, from); at != text.npos; at = text.find(special.text, from)) {
            size_t end = at + special.text.size();
            if (!special.anywhere && !is_trusted(at, end)) {
                from = at + 1;
                continue;
            }
            if (special.swallows) end = std::min(raw.end, swallowed_end(end));
            if (at > raw.begin) out.push_back({raw.begin, at, kNoToken});
            out.push_back({at, end, special.token});
            raw.begin = from = end;
        }
        if (raw.begin < raw.end) out.push_back(raw);
    }

    // Merges neighbouring raw fragments: bytes that an island does not use belong to the text around it.
    void add_raw(size_t begin, size_t end) {
        if (begin == end) return;
        if (!out_.empty() && out_.back().token == kNoToken && out_.back().end == begin)
            out_.back().end = end;
        else
            out_.push_back({begin, end, kNoToken});
    }

    const SpecialSplitter& splitter_;
    const std::string_view text_;
    const std::span<const TextRange> trusted_;
    std::vector<uint32_t> seen_;  // for each special: the last island that contains it
    std::vector<uint32_t> found_;
    uint32_t island_ = 0;
    std::vector<Fragment> out_;
};

std::vector<Fragment> SpecialSplitter::split(std::string_view text,
                                             std::span<const TextRange> trusted) const {
    if (text.empty()) return {};
    if (specials_.empty()) return {{0, text.size(), kNoToken}};
    return Run(*this, text, trusted).split();
}

}  // namespace redline
