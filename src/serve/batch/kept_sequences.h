// Sequences of requests that have ended, or of parts of prompts, kept for requests that begin alike. Their
// pages are given up when they are needed, those used least recently first.
#pragma once

#include "engine/engine.h"
#include "serve/batch/held_blocks.h"

#include <list>

namespace redline::serve {

inline uint64_t pages_for(uint64_t tokens) {
    return (tokens + kPageRows - 1) / kPageRows;
}

// How many tokens of a prompt a sequence can serve, when it is forked and the fork rewound: at least one is
// left to be read, for its logits.
uint64_t served_by(const Sequence& sequence, std::span<const Token> prompt);
// The length of the common beginning.
uint64_t common_beginning(std::span<const Token> a, std::span<const Token> b);

// Prompts are compared with every sequence kept: that takes microseconds, as most differ early, and unlike a
// table of hashes of pages it finds common beginnings to the token.
class KeptSequences {
public:
    // `rewinds`: a sequence serves all beginnings of its tokens, so that one of several alike is enough.
    // `leaving` is told of a sequence before its pages are given up.
    using Leaving = std::function<void(const Sequence&)>;
    // `held`, which may be null, knows of the sequences that are kept.
    KeptSequences(size_t most, bool rewinds, Leaving leaving = {}, HeldBlocks* held = nullptr)
        : most_(most), rewinds_(rewinds), leaving_(std::move(leaving)), held_(held) {}

    struct Match {
        std::list<Sequence>::iterator sequence;
        uint64_t tokens = 0;  // of the prompt; 0: no sequence serves it
    };
    Match find(std::span<const Token> prompt);
    // A sequence that begins with the match's tokens: a fork, or the sequence itself where nothing is lost.
    Result<Sequence> take(const Match& match);
    // Counts the shortest sequence that the text begins with as used, too: where sequences cannot be rewound,
    // a conversation goes on from later ones, and a new one begins there.
    void touch_first(std::span<const Token> text);

    void add(Sequence sequence);
    // Adds a fork; where it cannot be made, nothing.
    void add_copy(const Sequence& sequence);
    // Gives up pages of the sequence used least recently; false: none is kept.
    bool give_up();
    // Makes room for one more sequence.
    void make_room();
    // The one used least recently first.
    const std::list<Sequence>& all() const { return sequences_; }
    void clear();
    size_t size() const { return sequences_.size(); }

private:
    bool covered(const Sequence& shorter, const Sequence& longer) const;
    void release(const Sequence& sequence) const {
        if (held_) held_->release(sequence.tokens());
    }

    void leaves(const Sequence& sequence) const {
        if (leaving_) leaving_(sequence);
    }

    size_t most_;
    bool rewinds_;
    Leaving leaving_;
    HeldBlocks* held_;
    std::list<Sequence> sequences_;  // the one used least recently first
};

}  // namespace redline::serve
