#include "serve/batch/held_blocks.h"

#include "base/hash.h"

namespace redline::serve {

std::vector<uint64_t> HeldBlocks::hashes(std::span<const Token> text) {
    std::vector<uint64_t> all;
    all.reserve(text.size() / kTokens);
    uint64_t before = 0;
    for (size_t at = 0; at + kTokens <= text.size(); at += kTokens) {
        Hash64 hash;
        hash.add(before);
        hash.add(std::as_bytes(text.subspan(at, kTokens)));
        all.push_back(before = hash.value() >> 1);
    }
    return all;
}

void HeldBlocks::hold(std::span<const Token> text) {
    const std::vector<uint64_t> blocks = hashes(text);
    const std::lock_guard lock(mutex_);
    Change stored;
    for (size_t i = 0; i < blocks.size(); ++i) {
        if (counts_[blocks[i]].held++ > 0 || !tell_) continue;
        // Blocks behind one that is held are not always new.
        if (!stored.blocks.empty() && stored.blocks.back() != blocks[i - 1])
            changes_.push_back(std::exchange(stored, {}));
        if (stored.blocks.empty() && i > 0) stored.parent = blocks[i - 1];
        stored.blocks.push_back(blocks[i]);
        const auto tokens = text.subspan(i * kTokens, kTokens);
        stored.tokens.insert(stored.tokens.end(), tokens.begin(), tokens.end());
    }
    if (!stored.blocks.empty()) changes_.push_back(std::move(stored));
}

void HeldBlocks::release(std::span<const Token> text) {
    const std::vector<uint64_t> blocks = hashes(text);
    const std::lock_guard lock(mutex_);
    drop(blocks, &Count::held);
}

void HeldBlocks::clear() {
    const std::lock_guard lock(mutex_);
    for (auto at = counts_.begin(); at != counts_.end();) {
        at->second.held = 0;
        at = at->second.expected == 0 ? counts_.erase(at) : std::next(at);
    }
    changes_.clear();
    if (tell_) changes_.push_back({Change::Kind::cleared});
}

void HeldBlocks::flush() {
    if (!tell_) return;
    std::vector<Change> changes;
    {
        const std::lock_guard lock(mutex_);
        changes.swap(changes_);
    }
    if (!changes.empty()) tell_(std::move(changes));
}

void HeldBlocks::expect(std::span<const uint64_t> blocks) {
    const std::lock_guard lock(mutex_);
    for (const uint64_t block : blocks) ++counts_[block].expected;
}

void HeldBlocks::forget(std::span<const uint64_t> blocks) {
    const std::lock_guard lock(mutex_);
    drop(blocks, &Count::expected);
}

size_t HeldBlocks::longest(std::span<const uint64_t> blocks) const {
    const std::lock_guard lock(mutex_);
    size_t known = 0;
    while (known < blocks.size() && counts_.contains(blocks[known])) ++known;
    return known;
}

void HeldBlocks::drop(std::span<const uint64_t> blocks, uint32_t Count::*of) {
    Change removed{Change::Kind::removed};
    for (const uint64_t block : blocks) {
        const auto found = counts_.find(block);
        if (found == counts_.end() || found->second.*of == 0) continue;  // clear() came between
        Count& count = found->second;
        --(count.*of);
        if (of == &Count::held && count.held == 0) removed.blocks.push_back(block);
        if (count.held == 0 && count.expected == 0) counts_.erase(found);
    }
    if (tell_ && !removed.blocks.empty()) changes_.push_back(std::move(removed));
}

}  // namespace redline::serve
