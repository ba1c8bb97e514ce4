#include "speculate/shared_speculation.h"

#include <algorithm>
#include <chrono>

namespace redline {

namespace {

using Clock = std::chrono::steady_clock;

constexpr double kWorthIt = 1.05;
// The part that a new measurement has in an average of times.
constexpr double kNewTime = 0.25;
constexpr uint64_t kRest = 256;  // tokens
// Guesses after it that are made in any case, to see what they are worth now.
constexpr uint64_t kTrials = 3;
// One of so many texts tries a method that has not paid with others.
constexpr uint64_t kTried = 16;

void average_with(double& into, double value, double part) {
    into = into == 0.0 ? value : into + part * (value - into);
}

}  // namespace

TextGuesses SharedSpeculation::open() {
    TextGuesses text(std::max(match_, 1u));
    if (opened_++ % kTried > 0)
        for (size_t i = 0; i < lately_.size(); ++i) text.methods_[i].right.believe(lately_[i].value());
    return text;
}

std::string SharedSpeculation::methods() const {
    std::string names = match_ > 0 ? "ngram-simple" : "";
    if (model_) names += (names.empty() ? "" : ",") + std::string(model_->name());
    return names;
}

// By what a guess would be worth if the text had its step to itself: others come and go.
bool SharedSpeculation::pays(TextGuesses& text, size_t method) const {
    TextGuesses::Method& mine = text.methods_[method];
    if (mine.pause > 0) return false;
    if (limits_.always) return true;
    const double each = method == kModel ? each_ / times_.one() : 0.0;
    if (mine.trials > 0) return true;
    if (best_draft_length(mine.right.value(), each, limits_.most, times_).gain >= kWorthIt) return true;
    mine.pause = kRest;
    mine.trials = kTrials;
    mine.right.believe(std::max(mine.right.value(), 0.5));  // for the next try
    return false;
}

// Finds the guess of looking up, or decides that the model is to guess.
Status SharedSpeculation::look_up(TextDraft& one, size_t most, const std::atomic<bool>* cancel) {
    TextGuesses& text = *one.text;
    one.most = std::min(one.most, most);
    if (one.most == 0) return {};
    if (match_ > 0 && pays(text, kLookingUp))
        one.tokens = RL_TRY(text.looking_up_.propose({one.sequence->tokens(), one.last}, one.most, cancel));
    if (!one.tokens.empty()) {
        text.guessed_by_ = kLookingUp;
        one.most = one.tokens.size();
    } else if (model_ && pays(text, kModel)) {
        text.guessed_by_ = kModel;
    }
    return {};
}

// Gives the rows to the guesses that are the likeliest to be right, as long as a step with one more makes
// more tokens in its time than without it.
void SharedSpeculation::share_rows(std::span<TextDraft> texts, uint64_t most) const {
    std::vector<size_t> counts(texts.size());
    std::vector<double> right(texts.size());  // the probability of the next token of each guess
    for (size_t i = 0; i < texts.size(); ++i)
        if (const auto by = texts[i].text->guessed_by_) right[i] = texts[i].text->methods_[*by].right.value();
    double tokens = double(texts.size()), cost = times_.cost(texts.size());
    size_t deepest = 0;  // of the model's guesses
    for (uint64_t rows = texts.size(); rows < texts.size() + most; ++rows) {
        const size_t next = size_t(std::max_element(right.begin(), right.end()) - right.begin());
        if (right[next] == 0.0) break;
        const bool deeper = texts[next].text->guessed_by_ == kModel && counts[next] == deepest;
        const double more = times_.cost(rows + 1) - times_.cost(rows) + (deeper ? each_ / times_.one() : 0.0);
        const bool tried =
            counts[next] == 0 && texts[next].text->methods_[*texts[next].text->guessed_by_].trials > 0;
        if (!limits_.always && !tried && right[next] * cost < kWorthIt * more * tokens) break;
        tokens += right[next];
        cost += more;
        if (deeper) ++deepest;
        right[next] *= texts[next].text->methods_[*texts[next].text->guessed_by_].right.value();
        if (++counts[next] == texts[next].most) right[next] = 0.0;
    }
    for (size_t i = 0; i < texts.size(); ++i) {
        texts[i].most = counts[i];
        if (texts[i].tokens.size() > counts[i]) texts[i].tokens.resize(counts[i]);
    }
}

Status SharedSpeculation::ask_model(std::span<TextDraft> texts, const std::atomic<bool>* cancel) {
    std::vector<TextDraft*> asked;
    size_t longest = 0;
    bool first = false;  // a first guess may read a whole prompt
    for (TextDraft& one : texts) {
        if (one.most == 0 || one.text->guessed_by_ != kModel) continue;
        asked.push_back(&one);
        longest = std::max(longest, one.most);
        first = first || one.text->methods_[kModel].rounds == 0;
    }
    if (asked.empty()) return {};
    const auto start = Clock::now();
    const Status done = model_->propose(asked, cancel);
    if (!done) {
        for (TextDraft* one : asked) {
            one->tokens.clear();
            one->text->methods_[kModel].pause = kRest;
        }
        return done;
    }
    const double seconds = std::chrono::duration<double>(Clock::now() - start).count();
    if (!first) average_with(each_, seconds / double(longest), kNewTime);
    return {};
}

Status SharedSpeculation::propose(std::span<TextDraft> texts, uint64_t room,
                                  const std::atomic<bool>* cancel) {
    for (TextDraft& one : texts) {
        one.tokens.clear();
        one.text->guessed_by_.reset();
    }
    if (times_.one() == 0.0 || texts.empty()) return {};  // a first step tells what one without guesses takes
    const uint64_t cheap = kCheapRows - std::min<uint64_t>(kCheapRows, texts.size());
    const uint64_t most = std::min({limits_.most, room, texts.size() == 1 ? limits_.most : cheap});
    if (most == 0) return {};
    for (TextDraft& one : texts) RL_TRY(look_up(one, most, cancel));
    share_rows(texts, most);
    return ask_model(texts, cancel);
}

void SharedSpeculation::tell(TextGuesses& text, uint64_t proposed, uint64_t accepted) {
    for (TextGuesses::Method& method : text.methods_) method.pause -= std::min(method.pause, accepted + 1);
    if (proposed == 0 || !text.guessed_by_) return;
    // Behind the first wrong token nothing is learnt of those that follow.
    const uint64_t tried = std::min(accepted + 1, proposed);
    TextGuesses::Method& mine = text.methods_[*text.guessed_by_];
    mine.right.tell(accepted, tried);
    lately_[*text.guessed_by_].tell(accepted, tried);
    ++mine.rounds;
    mine.trials -= std::min<uint64_t>(mine.trials, 1);
}

}  // namespace redline
