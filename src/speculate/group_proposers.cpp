#include "speculate/group_proposers.h"

#include <algorithm>

namespace redline {

namespace {

Token best_of(std::span<const float> logits) {
    return Token(std::max_element(logits.begin(), logits.end()) - logits.begin());
}

}  // namespace

Status GroupMtp::propose(std::span<TextDraft* const> drafts, const std::atomic<bool>* cancel) {
    std::vector<Guess> guesses;
    for (const TextDraft* one : drafts) guesses.push_back({one->sequence, one->last, one->most});
    RL_TRY(engine_.guess(guesses, cancel));
    for (size_t i = 0; i < drafts.size(); ++i) drafts[i]->tokens = std::move(guesses[i].tokens);
    return {};
}

Token GroupDraftModel::likeliest(size_t row, size_t rows) const {
    const std::span<const Scored> best = engine_->best();
    if (!best.empty()) return best[row * (best.size() / rows)].id;
    const Model& model = engine_->model();
    return best_of(engine_->output().subspan(row * model.config().vocab, model.usable_vocab()));
}

// Afterwards each guess has its first token.
Status GroupDraftModel::catch_up(std::span<TextDraft* const> drafts, const std::atomic<bool>* cancel) {
    std::vector<std::vector<Token>> unread(drafts.size());
    std::vector<Feed> feeds;
    for (size_t i = 0; i < drafts.size(); ++i) {
        const DraftText text = {drafts[i]->sequence->tokens(), drafts[i]->last};
        std::optional<Sequence>& reader = drafts[i]->text->reader;
        if (!reader) reader = RL_TRY(engine_->open_sequence());
        const std::vector<Token>& held = reader->tokens();
        size_t same = 0;
        while (same < held.size() && same + 1 < text.size() && held[same] == text[same]) ++same;
        for (size_t at = reader->rewind(same); at < text.size(); ++at) unread[i].push_back(text[at]);
        feeds.push_back({&*reader, unread[i]});
    }
    const size_t usable = engine_->model().usable_vocab();
    const auto take = [&](size_t i, std::span<const float> logits) {
        drafts[i]->tokens = {best_of(logits.first(usable))};
    };
    return engine_->feed(feeds, take, cancel);
}

Status GroupDraftModel::propose(std::span<TextDraft* const> drafts, const std::atomic<bool>* cancel) {
    std::vector<TextDraft*> going;
    for (TextDraft* one : drafts)
        if (one->sequence->position() + 1 + one->most <= engine_->options().context) going.push_back(one);
    if (going.empty()) return {};
    RL_TRY(catch_up(going, cancel));
    for (;;) {
        std::erase_if(going, [&](const TextDraft* one) {
            return one->tokens.size() == one->most ||
                   engine_->model().tokenizer().is_end_of_generation(one->tokens.back());
        });
        if (going.empty()) return {};
        std::vector<Feed> feeds;
        for (TextDraft* one : going) feeds.push_back({&*one->text->reader, std::span(one->tokens).last(1)});
        RL_TRY(engine_->step(feeds, {.best = 1, .cancel = cancel}));
        for (size_t i = 0; i < going.size(); ++i) going[i]->tokens.push_back(likeliest(i, going.size()));
    }
}

}  // namespace redline
