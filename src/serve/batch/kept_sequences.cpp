#include "serve/batch/kept_sequences.h"

#include <algorithm>

namespace redline::serve {

uint64_t common_beginning(std::span<const Token> a, std::span<const Token> b) {
    return uint64_t(std::mismatch(a.begin(), a.end(), b.begin(), b.end()).first - a.begin());
}

uint64_t served_by(const Sequence& sequence, std::span<const Token> prompt) {
    const uint64_t common = common_beginning(sequence.tokens(), prompt);
    const uint64_t served = sequence.rewound(std::min<uint64_t>(common, prompt.size() - 1));
    return served < prompt.size() ? served : 0;
}

KeptSequences::Match KeptSequences::find(std::span<const Token> prompt) {
    Match best = {sequences_.end(), 0};
    for (auto at = sequences_.begin(); at != sequences_.end(); ++at)
        if (const uint64_t tokens = served_by(*at, prompt); tokens > best.tokens) best = {at, tokens};
    return best;
}

Result<Sequence> KeptSequences::take(const Match& match) {
    sequences_.splice(sequences_.end(), sequences_, match.sequence);
    if (rewinds_ && match.tokens == match.sequence->position()) {
        release(*match.sequence);
        Sequence whole = std::move(*match.sequence);
        sequences_.erase(match.sequence);
        return whole;
    }
    Sequence fork = RL_TRY(match.sequence->fork());
    fork.rewind(match.tokens);
    return fork;
}

void KeptSequences::touch_first(std::span<const Token> text) {
    auto shortest = sequences_.end();
    for (auto at = sequences_.begin(); at != sequences_.end(); ++at)
        if (common_beginning(at->tokens(), text) == at->position())
            if (shortest == sequences_.end() || at->position() < shortest->position()) shortest = at;
    if (shortest != sequences_.end()) sequences_.splice(sequences_.end(), sequences_, shortest);
}

// True when nothing is lost without the shorter one.
bool KeptSequences::covered(const Sequence& shorter, const Sequence& longer) const {
    const uint64_t tokens = shorter.position();
    if (tokens > longer.position() || (!rewinds_ && tokens != longer.position())) return false;
    return common_beginning(shorter.tokens(), longer.tokens()) == tokens;
}

void KeptSequences::add(Sequence sequence) {
    if (most_ == 0 || sequence.position() == 0) return;
    const auto covers = [&](const Sequence& other) { return covered(sequence, other); };
    const auto same = std::find_if(sequences_.begin(), sequences_.end(), covers);
    if (same != sequences_.end()) return sequences_.splice(sequences_.end(), sequences_, same);
    if (held_) held_->hold(sequence.tokens());
    sequences_.remove_if([&](const Sequence& other) {
        const bool goes = covered(other, sequence);
        if (goes) release(other);
        return goes;
    });
    make_room();
    sequences_.push_back(std::move(sequence));
}

void KeptSequences::add_copy(const Sequence& sequence) {
    if (most_ == 0) return;
    make_room();
    if (Result<Sequence> fork = sequence.fork()) add(std::move(fork).value());
}

void KeptSequences::make_room() {
    if (sequences_.size() < most_) return;
    leaves(sequences_.front());
    release(sequences_.front());
    sequences_.pop_front();
}

// Where it can be rewound, the end of a sequence goes first: its beginning is what others share.
bool KeptSequences::give_up() {
    if (sequences_.empty()) return false;
    Sequence& oldest = sequences_.front();
    leaves(oldest);
    release(oldest);
    const uint64_t left = rewinds_ ? (oldest.position() - 1) / kPageRows * kPageRows : 0;
    if (left == 0 || oldest.rewind(left) == 0)
        sequences_.pop_front();
    else if (held_)
        held_->hold(oldest.tokens());
    return true;
}

void KeptSequences::clear() {
    sequences_.clear();
    if (held_) held_->clear();
}

}  // namespace redline::serve
