#include "speculate/draft_model.h"

#include <algorithm>

namespace redline {

namespace {

constexpr size_t kFirstCompared = 5, kMostDifference = 128;  // as llama.cpp has them

}  // namespace

Status check_draft_vocabulary(const Model& model, const Model& draft) {
    const Tokenizer &a = model.tokenizer(), &b = draft.tokenizer();
    const size_t sizes[] = {a.size(), b.size()};
    const size_t least = std::min(sizes[0], sizes[1]), most = std::max(sizes[0], sizes[1]);
    if (most - least > kMostDifference)
        return error("it has {} tokens and the model {}: choose one of the same family", sizes[1], sizes[0]);
    if (a.bos() != b.bos() || a.eos() != b.eos())
        return error(
            "its texts begin with token {} and end with {}, and with {} and {} those of "
            "the model",
            b.bos(), b.eos(), a.bos(), a.eos());
    for (size_t id = kFirstCompared; id < least; ++id)
        if (a.raw_text(Token(id)) != b.raw_text(Token(id)))
            return error(
                "its token {} is \"{}\" and \"{}\" for the model: choose one of the "
                "same family",
                id, b.raw_text(Token(id)), a.raw_text(Token(id)));
    return {};
}

Token DraftModelProposer::likeliest() const {
    if (!session_.best().empty()) return session_.best().front().id;
    const auto logits = session_.logits().first(session_.model().usable_vocab());
    return Token(std::max_element(logits.begin(), logits.end()) - logits.begin());
}

Result<std::vector<Token>> DraftModelProposer::propose(const DraftText& text, size_t most,
                                                       const std::atomic<bool>* cancel) {
    std::vector<Token> guess;
    if (text.size() + most > session_.context() || most == 0) return guess;
    const std::vector<Token>& held = session_.tokens();
    size_t same = 0;
    while (same < held.size() && same + 1 < text.size() && held[same] == text[same]) ++same;
    same = session_.rewind(same);
    std::vector<Token> rest;
    for (size_t i = same; i < text.size(); ++i) rest.push_back(text[i]);
    if (rest.size() == 1)
        RL_TRY(session_.feed_for_best(rest.front(), 1, cancel));
    else
        RL_TRY(session_.feed(rest, cancel));
    for (;;) {
        guess.push_back(likeliest());
        const bool ends = session_.model().tokenizer().is_end_of_generation(guess.back());
        if (ends || guess.size() == most) return guess;
        RL_TRY(session_.feed_for_best(guess.back(), 1, cancel));
    }
}

}  // namespace redline
