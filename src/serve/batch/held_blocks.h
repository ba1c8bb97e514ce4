// The beginnings of texts that the caches of a scheduler hold, in blocks of tokens: what the choice between
// replicas goes by, and what routers are told of.
#pragma once

#include "text/tokens/vocabulary.h"

#include <cstdint>
#include <functional>
#include <mutex>
#include <optional>
#include <span>
#include <unordered_map>
#include <vector>

namespace redline::serve {

class HeldBlocks {
public:
    static constexpr uint32_t kTokens = 16;  // of a block

    // The hash of each full block, which depends on all tokens before it, too. Below 2^63, as some readers of
    // events have signed numbers.
    static std::vector<uint64_t> hashes(std::span<const Token> text);

    // Blocks that came one behind the other, or that went.
    struct Change {
        enum class Kind : uint8_t { stored, removed, cleared };
        Kind kind = Kind::stored;
        std::vector<uint64_t> blocks = {};
        std::optional<uint64_t> parent = {};  // of the first one stored; none: it begins a text
        std::vector<Token> tokens = {};       // of those stored
    };
    // Is told of changes in their order, by the thread that calls flush(); may be missing.
    using Tell = std::function<void(std::vector<Change>)>;
    explicit HeldBlocks(Tell tell = {}) : tell_(std::move(tell)) {}

    // The caches hold this text from here on. Each hold() has its release().
    void hold(std::span<const Token> text);
    void release(std::span<const Token> text);
    void clear();
    // Tells of all changes since the last call.
    void flush();

    // A text with these blocks is on its way to the caches, until it is forgotten. From any thread, as the
    // next.
    void expect(std::span<const uint64_t> blocks);
    void forget(std::span<const uint64_t> blocks);
    // How many of the first blocks are held or expected.
    size_t longest(std::span<const uint64_t> blocks) const;

private:
    struct Count {
        uint32_t held = 0, expected = 0;
    };
    void drop(std::span<const uint64_t> blocks, uint32_t Count::*of);

    const Tell tell_;
    mutable std::mutex mutex_;
    std::unordered_map<uint64_t, Count> counts_;
    std::vector<Change> changes_;  // where somebody is told
};

}  // namespace redline::serve
