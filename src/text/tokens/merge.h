// The loop that SPM and BPE share: it merges the best pair of neighbours until none can be merged. The best
// pair has the smallest key, and of equal ones is the leftmost. O(n log n) in the number of symbols.
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <map>
#include <optional>
#include <vector>

namespace redline {

constexpr uint32_t kNoSymbol = UINT32_MAX;

// A run of bytes of the piece being merged, in a doubly linked list through a vector. Indices have 32 bits,
// so a piece has less than 2^32 bytes.
struct MergeSymbol {
    uint32_t begin = 0;
    uint32_t bytes = 0;  // 0: merged into the symbol on its left
    uint32_t previous = kNoSymbol;
    uint32_t next = kNoSymbol;
    int32_t id = -1;
};

template <typename Key>
struct Merge {
    Key key;
    int32_t id;  // the merged symbol
};

// Two neighbours that can be merged, as they were when they were found.
template <typename Key>
struct MergeCandidate {
    Key key;
    uint32_t left;
    uint32_t left_bytes;
    uint32_t bytes;  // of both together
    int32_t id;

    static bool later(const MergeCandidate& a, const MergeCandidate& b) {
        return a.key != b.key ? a.key > b.key : a.left > b.left;
    }
};

// A queue for words: one heap.
template <typename Key>
class HeapQueue {
public:
    using Candidate = MergeCandidate<Key>;

    bool empty() const { return heap_.empty(); }
    void push(const Candidate& candidate) {
        heap_.push_back(candidate);
        std::push_heap(heap_.begin(), heap_.end(), Candidate::later);
    }
    Candidate pop() {
        std::pop_heap(heap_.begin(), heap_.end(), Candidate::later);
        const Candidate first = heap_.back();
        heap_.pop_back();
        return first;
    }

private:
    std::vector<Candidate> heap_;
};

// A queue for megabytes without a break: a list per key. Candidates of a key mostly come from left to right,
// so a plain list is sorted; when one does not, its list becomes a heap.
template <typename Key>
class ListQueue {
public:
    using Candidate = MergeCandidate<Key>;

    bool empty() const { return lists_.empty(); }
    void push(const Candidate& candidate) {
        List& list = lists_[candidate.key];
        if (!list.is_heap && !list.items.empty() && candidate.left < list.items.back().left) {
            list.items.erase(list.items.begin(), list.items.begin() + std::ptrdiff_t(list.taken));
            list.taken = 0;
            list.is_heap = true;
            std::make_heap(list.items.begin(), list.items.end(), Candidate::later);
        }
        list.items.push_back(candidate);
        if (list.is_heap) std::push_heap(list.items.begin(), list.items.end(), Candidate::later);
    }
    Candidate pop() {
        const auto place = lists_.begin();
        List& list = place->second;
        if (list.is_heap) std::pop_heap(list.items.begin(), list.items.end(), Candidate::later);
        const Candidate first = list.is_heap ? list.items.back() : list.items[list.taken++];
        if (list.is_heap) list.items.pop_back();
        if (list.taken == list.items.size()) lists_.erase(place);
        return first;
    }

private:
    struct List {
        std::vector<Candidate> items;
        size_t taken = 0;
        bool is_heap = false;
    };

    std::map<Key, List> lists_;
};

// The buffers of a run, reused from piece to piece.
template <typename Key>
class Merger {
public:
    void clear() { symbols_.clear(); }
    void add(size_t begin, size_t bytes, int32_t id) {
        const auto index = uint32_t(symbols_.size());
        if (index > 0) symbols_.back().next = index;
        symbols_.push_back(
            {uint32_t(begin), uint32_t(bytes), index > 0 ? index - 1 : kNoSymbol, kNoSymbol, id});
    }

    // `pair(left, right)` returns the merge of two neighbouring symbols, if there is one.
    template <typename Pair>
    void run(const Pair& pair) {
        constexpr size_t kLong = 4096;  // symbols
        if (symbols_.size() < kLong) return run_with(heap_, pair);
        ListQueue<Key> lists;
        run_with(lists, pair);
    }

    // Calls `visit` for the remaining symbols, from left to right.
    template <typename Visit>
    void each(const Visit& visit) const {
        for (uint32_t i = symbols_.empty() ? kNoSymbol : 0; i != kNoSymbol; i = symbols_[i].next)
            visit(symbols_[i]);
    }

private:
    template <typename Queue, typename Pair>
    void run_with(Queue& queue, const Pair& pair) {
        for (uint32_t i = 1; i < symbols_.size(); ++i) propose(queue, i - 1, i, pair);
        while (!queue.empty()) {
            const MergeCandidate<Key> best = queue.pop();
            MergeSymbol& left = symbols_[best.left];
            // A symbol only ever grows to the right, so the pair still exists if both have kept their length.
            if (left.bytes != best.left_bytes || left.next == kNoSymbol) continue;
            MergeSymbol& right = symbols_[left.next];
            if (best.left_bytes + right.bytes != best.bytes) continue;
            left.bytes = best.bytes;
            left.id = best.id;
            left.next = right.next;
            right.bytes = 0;
            if (left.next != kNoSymbol) symbols_[left.next].previous = best.left;
            if (left.previous != kNoSymbol) propose(queue, left.previous, best.left, pair);
            if (left.next != kNoSymbol) propose(queue, best.left, left.next, pair);
        }
    }

    template <typename Queue, typename Pair>
    void propose(Queue& queue, uint32_t left, uint32_t right, const Pair& pair) {
        const std::optional<Merge<Key>> merge = pair(symbols_[left], symbols_[right]);
        if (!merge) return;
        const uint32_t bytes = symbols_[left].bytes;
        queue.push({merge->key, left, bytes, bytes + symbols_[right].bytes, merge->id});
    }

    std::vector<MergeSymbol> symbols_;
    HeapQueue<Key> heap_;
};

}  // namespace redline
