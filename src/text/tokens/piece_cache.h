// Remembers the tokens of short pieces within a text, since most words recur.
#pragma once

#include "text/tokens/vocabulary.h"

#include <string_view>
#include <unordered_map>
#include <utility>
#include <vector>

namespace redline {

class PieceCache {
public:
    // Appends the tokens of `piece` to `out`; calls `encode` when the piece is new. Pieces must outlive the
    // cache, and `out` must be the same vector, and only grow, in all calls.
    template <typename Encode>
    void append(std::string_view piece, std::vector<Token>& out, const Encode& encode) {
        if (piece.size() > kLongest) return encode(piece);
        if (const auto known = places_.find(piece); known != places_.end()) {
            const auto [first, count] = known->second;
            for (size_t i = 0; i < count; ++i) out.push_back(out[first + i]);
            return;
        }
        const size_t first = out.size();
        encode(piece);
        if (places_.size() < kEntries) places_.emplace(piece, std::pair(first, out.size() - first));
    }

private:
    static constexpr size_t kLongest = 64;  // bytes
    static constexpr size_t kEntries = 1 << 16;

    std::unordered_map<std::string_view, std::pair<size_t, size_t>>
        places_;  // first index and count in `out`
};

}  // namespace redline
