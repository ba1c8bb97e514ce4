// The MTP heads of a model: what they read beside the text, and their guesses.
//
// A row of the first head is the hidden row of a token beside the token behind it. A further head has the
// rows that the head before it leaves, each beside a token one further on. A single head guesses all tokens
// in turn, from the rows that it leaves itself; of several each guesses one.
#include "engine/engine.h"

#include <algorithm>

namespace redline {

namespace {

// Hidden rows that a sequence keeps, so that after a rewind the head goes on where the text does. When there
// are twice as many, the head reads them.
constexpr uint64_t kKept = 64;

// Rows that the first head reads with a guess, at most; more are read before. Further heads read one more
// each.
constexpr uint64_t kWithGuess = 8;

}  // namespace

// The rows of a step of a head: hidden rows of sequences, beside the tokens behind them. Their positions are
// counted from the first row that its caches have.
struct Engine::HeadRows {
    HeadRows(size_t which, uint64_t hidden_width) : head(which), width(hidden_width) {}

    size_t head;
    uint64_t width;
    std::vector<Token> tokens = {};
    std::vector<float> hidden = {};
    std::vector<Row> rows = {};
    std::vector<uint32_t> outputs = {};  // the last row of each sequence
    std::vector<Sequence*> sequences = {};
    std::vector<std::span<const uint32_t>> pages = {};
    std::vector<std::vector<Token>> ahead = {};  // of each: tokens behind those that it has

    void begin(Sequence& sequence) {
        sequences.push_back(&sequence);
        pages.push_back(sequence.pages_);
    }
    void add(uint64_t token, Token beside, std::span<const float> row) {
        rows.push_back(
            {uint32_t(sequences.size() - 1), uint32_t(token - sequences.back()->heads_[head].begin)});
        tokens.push_back(beside);
        hidden.insert(hidden.end(), row.begin(), row.end());
        if (row.empty()) hidden.resize(hidden.size() + width);
    }
    void end() { outputs.push_back(uint32_t(rows.size() - 1)); }

    // The rows that the head has not read of the sequence's tokens up to `last`.
    void add_unread(Sequence& sequence, uint64_t last, std::vector<Token> behind) {
        const Sequence::Head& known = sequence.heads_[head];
        begin(sequence);
        for (uint64_t token = known.read; token < last; ++token) {
            const uint64_t beside = token + 1 + head, position = sequence.position();
            const bool has_row = token >= known.first && token < known.end(width);
            add(token, beside < position ? sequence.tokens_[beside] : behind[beside - position],
                std::span(known.hidden)
                    .subspan(has_row ? (token - known.first) * width : 0, has_row ? width : 0));
        }
        end();
        ahead.push_back(std::move(behind));
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
    Executable* target = RL_TRY(head_executable(rows.head, uint32_t(rows.rows.size())));
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

// Where hidden rows are missing, a head begins anew behind them: but for a single one, which reads as zeros.
static void skip_missing(Sequence::Head& head) {
    const bool one = head.read > head.begin && head.first == head.read + 1;
    if (!head.hidden.empty() && head.read < head.first && !one) head.begin = head.read = head.first;
}

// Tells of the rows of a step: the head has read them, and the next head has what it left.
void Engine::took_rows(const HeadRows& rows) {
    size_t begin = 0;
    for (size_t i = 0; i < rows.sequences.size(); ++i) {
        Sequence& sequence = *rows.sequences[i];
        Sequence::Head& head = sequence.heads_[rows.head];
        const uint64_t from = head.read, count = rows.outputs[i] + 1 - begin;
        head.read += count;
        head.ahead = rows.ahead[i];
        if (rows.head + 1 < sequence.heads_.size()) {
            Sequence::Head& next = sequence.heads_[rows.head + 1];
            if (next.end(rows.width) != from) next.hidden.clear();
            if (next.hidden.empty()) next.first = from;
            const auto left = hidden_.subspan(begin * rows.width, count * rows.width);
            next.hidden.insert(next.hidden.end(), left.begin(), left.end());
        }
        begin = rows.outputs[i] + 1;
    }
}

// Reads rows of a sequence, but for `leave` of those whose next token is known.
Status Engine::read_head(Sequence& sequence, size_t which, uint64_t leave, const std::atomic<bool>* cancel) {
    Sequence::Head& head = sequence.heads_[which];
    if (head.hidden.empty()) return {};
    const uint64_t position = sequence.position(),
                   with_token = position - std::min<uint64_t>(position, 1 + which + leave),
                   known = std::min(with_token, head.end(head_width()));
    skip_missing(head);
    while (head.read < known) {
        HeadRows rows(which, head_width());
        rows.add_unread(sequence, std::min(known, head.read + options_.batch), {});
        RL_TRY(run_head(rows, cancel));
        took_rows(rows);
    }
    return {};
}

// Rows that were read beside tokens that did not come are read again.
void Engine::compare_ahead(Sequence& sequence, uint64_t before, std::span<const Token> came) {
    for (size_t which = 0; which < sequence.heads_.size(); ++which) {
        Sequence::Head& head = sequence.heads_[which];
        if (head.ahead.empty()) continue;
        const auto [differs, unused] = std::ranges::mismatch(head.ahead, came);
        if (differs != head.ahead.end())
            sequence.keep_head_before(which, before + uint64_t(differs - head.ahead.begin()));
        head.ahead.clear();
    }
}

// Keeps the hidden rows of a step.
Status Engine::keep_hidden(std::span<const Feed> feeds, std::span<const float> rows,
                           const std::atomic<bool>* cancel) {
    const uint64_t width = head_width();
    for (const Feed& feed : feeds) {
        Sequence& sequence = *feed.sequence;
        const uint64_t count = feed.tokens.size(), before = sequence.position() - count;
        compare_ahead(sequence, before, feed.tokens);
        Sequence::Head& head = sequence.heads_.front();
        if (head.end(width) != before) head.hidden.clear();
        if (head.hidden.empty()) head.first = before;
        const auto added = rows.first(count * width);
        head.hidden.insert(head.hidden.end(), added.begin(), added.end());
        rows = rows.subspan(count * width);
    }
    // The rows that were given are those of an executable, which the head's steps leave alone.
    for (const Feed& feed : feeds) {
        std::vector<Sequence::Head>& heads = feed.sequence->heads_;
        if (heads.front().hidden.size() < 2 * kKept * width) continue;
        for (size_t which = 0; which < heads.size(); ++which)
            RL_TRY(read_head(*feed.sequence, which, 0, cancel));
        for (Sequence::Head& head : heads) {
            const uint64_t all = head.hidden.size() / width, surplus = all - std::min(all, kKept);
            head.hidden.erase(head.hidden.begin(), head.hidden.begin() + ptrdiff_t(surplus * width));
            head.first += surplus;
        }
    }
    return {};
}

// Guesses of sequences that have few rows to read, one token of each in a step.
Status Engine::guess_together(std::span<Guess* const> guesses, const std::atomic<bool>* cancel) {
    const Tokenizer& tokenizer = model_->tokenizer();
    const bool in_turn = head_count_ > 1;
    std::vector<Guess*> going(guesses.begin(), guesses.end());
    const auto unread = [&](size_t which) {
        HeadRows rows(which, head_width());
        for (Guess* guess : going) {
            std::vector<Token> ahead = guess->tokens;
            ahead.insert(ahead.begin(), guess->last);
            skip_missing(guess->sequence->heads_[which]);
            rows.add_unread(*guess->sequence, guess->sequence->position(), ahead);
        }
        return rows;
    };
    HeadRows rows = unread(0);
    for (size_t step = 0;; ++step) {
        RL_TRY(run_head(rows, cancel));
        if (in_turn || step == 0) took_rows(rows);
        HeadRows next(0, rows.width);
        std::vector<Guess*> still;
        for (size_t i = 0; i < going.size(); ++i) {
            Guess& guess = *going[i];
            guess.tokens.push_back(likeliest(i, going.size()));
            const Token token = guess.tokens.back();
            if (guess.tokens.size() == guess.most || tokenizer.is_end_of_generation(token)) continue;
            still.push_back(&guess);
            if (in_turn) continue;
            next.begin(*guess.sequence);
            next.add(guess.sequence->position() + guess.tokens.size() - 1, token,
                     hidden_.subspan(rows.outputs[i] * next.width, next.width));
            next.end();
        }
        if (still.empty()) return {};
        going = std::move(still);
        rows = in_turn ? unread(step + 1) : std::move(next);
    }
}

// False where it knows too little.
Result<bool> Engine::prepare_guess(Sequence& sequence, const std::atomic<bool>* cancel) {
    if (sequence.opened_ != opened_) return false;
    const Sequence::Head& first = sequence.heads_.front();
    if (first.hidden.empty() || first.end(head_width()) != sequence.position()) return false;
    sequence.keep_heads_before(sequence.position());  // after a guess the last row is read again
    for (size_t which = 0; which < sequence.heads_.size(); ++which)
        RL_TRY(read_head(sequence, which, std::min<uint64_t>(kWithGuess, options_.batch) - 1, cancel));
    return true;
}

Status Engine::guess(std::span<Guess> guesses, const std::atomic<bool>* cancel) {
    const std::lock_guard turn(model_->turns());
    if (!head_ || !caches_) return {};
    const auto guess_all = [&]() -> Status {
        const uint64_t rows = kWithGuess + head_count_ - 1;
        const size_t together = std::max<size_t>(1, options_.batch / rows);
        std::vector<Guess*> able;
        for (Guess& guess : guesses) {
            guess.tokens.clear();
            if (head_count_ > 1) guess.most = std::min(guess.most, head_count_);
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
