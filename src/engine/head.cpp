// The MTP head of a model: what it reads beside the text, and its guesses.
#include "engine/engine.h"

#include <algorithm>

namespace redline {

namespace {

// Hidden rows that a sequence keeps, so that after a rewind the head goes on where the text does. When there
// are twice as many, the head reads them.
constexpr uint64_t kKept = 64;

// Rows that the head reads with a guess, at most; more are read before.
constexpr uint64_t kWithGuess = 8;

}  // namespace

// The rows of a step of the head: hidden rows of sequences, beside the tokens behind them. Their positions
// are counted from the first row that its caches have.
struct Engine::HeadRows {
    explicit HeadRows(uint64_t hidden_width) : width(hidden_width) {}

    std::vector<Token> tokens;
    std::vector<float> hidden;
    std::vector<Row> rows;
    std::vector<uint32_t> outputs;  // the last row of each sequence
    std::vector<Sequence*> sequences;
    std::vector<std::span<const uint32_t>> pages;
    uint64_t width;

    void begin(Sequence& sequence) {
        sequences.push_back(&sequence);
        pages.push_back(sequence.pages_);
    }
    void add(uint64_t token, Token beside, std::span<const float> row) {
        rows.push_back({uint32_t(sequences.size() - 1), uint32_t(token - sequences.back()->head_.begin)});
        tokens.push_back(beside);
        hidden.insert(hidden.end(), row.begin(), row.end());
        if (row.empty()) hidden.resize(hidden.size() + width);
    }
    void end() { outputs.push_back(uint32_t(rows.size() - 1)); }

    // The rows that the head has not read of the sequence's tokens up to `end`; behind the last of all tokens
    // is `last`.
    void add_unread(Sequence& sequence, uint64_t end, Token last) {
        Sequence::Head& head = sequence.head_;
        begin(sequence);
        for (uint64_t token = head.read; token < end; ++token) {
            const bool known = token >= head.first;
            const auto row =
                std::span(head.hidden).subspan(known ? (token - head.first) * width : 0, known ? width : 0);
            add(token, token + 1 < sequence.position() ? sequence.tokens_[token + 1] : last, row);
        }
        this->end();
    }
};

// Afterwards output_, best_ and hidden_ are the head's.
Status Engine::run_head(const HeadRows& rows, const std::atomic<bool>* cancel) {
    PageChanges changes(*pool_);
    for (size_t i = 0; i < rows.rows.size(); ++i)
        RL_TRY(changes.give(*rows.sequences[rows.rows[i].sequence], rows.rows[i].position, 1));
    RL_TRY(changes.copy_shared(
        [this](Cache cache, uint32_t from, uint32_t to) { return copy_page(cache, from, to); }));
    changes.keep();
    Executable* target = RL_TRY(head_executable(uint32_t(rows.rows.size())));
    StepParams params{rows.tokens, rows.rows, rows.outputs};
    if (options_.pages > 0) params.pages = rows.pages;
    params.cancel = cancel;
    params.input = rows.hidden;
    if (target->most_best() > 0) params.best = 1, params.best_among = uint32_t(model_->usable_vocab());
    RL_TRY(target->run(params));
    output_ = target->output();
    best_ = target->best();
    hidden_ = target->hidden();
    return {};
}

Token Engine::likeliest(size_t output, size_t outputs) const {
    if (!best_.empty()) return best_[output * (best_.size() / outputs)].id;
    const auto logits = output_.subspan(output * (output_.size() / outputs), model_->usable_vocab());
    return Token(std::max_element(logits.begin(), logits.end()) - logits.begin());
}

// Where hidden rows are missing, the head begins anew behind them: but for a single one, which reads as
// zeros.
static void skip_missing(Sequence::Head& head) {
    const bool one = head.read > head.begin && head.first == head.read + 1;
    if (head.read < head.first && !one) head.begin = head.read = head.first;
}

// Reads rows of a sequence, but for `leave` of those whose next token is known.
Status Engine::read_head(Sequence& sequence, uint64_t leave, const std::atomic<bool>* cancel) {
    Sequence::Head& head = sequence.head_;
    const uint64_t known = sequence.position() - std::min<uint64_t>(sequence.position(), 1 + leave);
    while (head.read < known) {
        HeadRows rows(sequence.head_width_);
        const uint64_t end = std::min(known, head.read + options_.batch);
        rows.add_unread(sequence, end, kNoToken);
        RL_TRY(run_head(rows, cancel));
        head.read = end;
        head.beside = rows.tokens.back();
    }
    return {};
}

// Keeps the hidden rows of a step. A row that was read beside a token that did not come is read again.
Status Engine::keep_hidden(std::span<const Feed> feeds, std::span<const float> rows,
                           const std::atomic<bool>* cancel) {
    const uint64_t width = head_->config().dim;
    for (const Feed& feed : feeds) {
        Sequence& sequence = *feed.sequence;
        Sequence::Head& head = sequence.head_;
        const uint64_t count = feed.tokens.size(), before = sequence.position() - count;
        if (head.read == before && before > 0 && head.beside != feed.tokens.front()) {
            --head.read;
            head.begin = std::min(head.begin, head.read);
        }
        if (head.hidden.size() != (before - std::min(before, head.first)) * width) head.hidden.clear();
        if (head.hidden.empty()) head.first = before;
        const auto added = rows.first(count * width);
        head.hidden.insert(head.hidden.end(), added.begin(), added.end());
        rows = rows.subspan(count * width);
    }
    // The rows that were given are those of an executable, which the head's steps leave alone.
    for (const Feed& feed : feeds) {
        Sequence::Head& head = feed.sequence->head_;
        if (head.hidden.size() < 2 * kKept * width) continue;
        skip_missing(head);
        RL_TRY(read_head(*feed.sequence, 0, cancel));
        const uint64_t surplus = head.hidden.size() / width - kKept;
        head.hidden.erase(head.hidden.begin(), head.hidden.begin() + ptrdiff_t(surplus * width));
        head.first += surplus;
    }
    return {};
}

// Guesses of sequences that have few rows to read, one token of each in a step.
Status Engine::guess_together(std::span<Guess* const> guesses, const std::atomic<bool>* cancel) {
    const Tokenizer& tokenizer = model_->tokenizer();
    HeadRows first(head_->config().dim);
    for (Guess* guess : guesses) first.add_unread(*guess->sequence, guess->sequence->position(), guess->last);
    RL_TRY(run_head(first, cancel));
    for (Guess* guess : guesses) {
        guess->sequence->head_.read = guess->sequence->position();
        guess->sequence->head_.beside = guess->last;
    }
    std::vector<Guess*> going(guesses.begin(), guesses.end());
    std::vector<uint32_t> ends = first.outputs;  // the rows behind which tokens are guessed
    for (;;) {
        HeadRows next(first.width);
        std::vector<Guess*> still;
        for (size_t i = 0; i < going.size(); ++i) {
            Guess& guess = *going[i];
            guess.tokens.push_back(likeliest(i, going.size()));
            const Token token = guess.tokens.back();
            if (guess.tokens.size() == guess.most || tokenizer.is_end_of_generation(token)) continue;
            still.push_back(&guess);
            next.begin(*guess.sequence);
            next.add(guess.sequence->position() + guess.tokens.size() - 1, token,
                     hidden_.subspan(ends[i] * next.width, next.width));
            next.end();
        }
        if (still.empty()) return {};
        RL_TRY(run_head(next, cancel));
        ends = next.outputs;
        going = std::move(still);
    }
}

// False where it knows too little.
Result<bool> Engine::prepare_guess(Sequence& sequence, const std::atomic<bool>* cancel) {
    Sequence::Head& head = sequence.head_;
    const uint64_t known = head.first + head.hidden.size() / sequence.head_width_;
    if (sequence.opened_ != opened_ || head.hidden.empty() || known != sequence.position()) return false;
    head.keep_before(sequence.position(), sequence.head_width_);  // after a guess the last row is read again
    skip_missing(head);
    RL_TRY(read_head(sequence, std::min<uint64_t>(kWithGuess, options_.batch) - 1, cancel));
    return true;
}

Status Engine::guess(std::span<Guess> guesses, const std::atomic<bool>* cancel) {
    const std::lock_guard turn(model_->turns());
    if (!head_ || !caches_) return {};
    const auto guess_all = [&]() -> Status {
        const size_t together = std::max<size_t>(1, options_.batch / kWithGuess);
        std::vector<Guess*> able;
        for (Guess& guess : guesses) {
            guess.tokens.clear();
            if (guess.most > 0 && RL_TRY(prepare_guess(*guess.sequence, cancel))) able.push_back(&guess);
        }
        for (std::span<Guess* const> rest = able; !rest.empty();) {
            const auto some = rest.first(std::min(rest.size(), together));
            RL_TRY(guess_together(some, cancel));
            rest = rest.subspan(some.size());
        }
        return {};
    };
    const Status done = guess_all();
    return done || !lost() ? done : Status();  // the next step is rescued
}

}  // namespace redline
