// Speculation for the texts of several users, which one step reads together: who guesses, by which method,
// and how much, so that the guesses of one do not hold up the others.
#pragma once

#include "engine/engine.h"
#include "speculate/ngram.h"
#include "speculate/speculation.h"

#include <array>
#include <optional>

namespace redline {

// How the guesses for one text have done so far. It belongs to one SharedSpeculation.
class TextGuesses {
public:
    std::optional<Sequence> reader;  // for the proposer: the text as a second model has read it

private:
    friend class SharedSpeculation;
    struct Method {
        RightShare right;
        uint64_t pause = 0;   // tokens until it is tried again
        uint64_t trials = 0;  // further guesses that are made in any case
        uint64_t rounds = 0;
    };
    explicit TextGuesses(uint32_t match) : looking_up_(match) {}

    NgramProposer looking_up_;
    std::array<Method, 2> methods_;
    std::optional<size_t> guessed_by_;
};

// A text that generates in the next step.
struct TextDraft {
    TextGuesses* text = nullptr;
    Sequence* sequence = nullptr;
    Token last = kNoToken;           // behind those that the sequence has read
    size_t most = 0;                 // tokens that a guess may have
    std::vector<Token> tokens = {};  // the guess
};

// A method that guesses for several texts at a time.
class GroupProposer {
public:
    virtual ~GroupProposer() = default;
    // "draft-mtp", as llama.cpp's --spec-type has it.
    virtual std::string_view name() const = 0;
    // At most `most` tokens for each; none where it has no guess.
    virtual Status propose(std::span<TextDraft* const> drafts, const std::atomic<bool>* cancel) = 0;
};

class SharedSpeculation {
public:
    // Rows that a step may have with guesses when several texts share it: up to here a step of one row and
    // one of several hardly differ, where weights are what it waits for.
    static constexpr uint64_t kCheapRows = 8;

    struct Limits {
        uint64_t most = 8;    // tokens of all guesses of a step
        bool always = false;  // guesses although they do not pay
    };
    // `match`: tokens that looking up wants to be the same; 0: it is left out. `model`: may be null.
    SharedSpeculation(uint32_t match, std::unique_ptr<GroupProposer> model, Limits limits)
        : match_(match), model_(std::move(model)), limits_(limits) {}

    // For a new text. It starts with what others have shown.
    TextGuesses open();
    // Guesses for some of the texts, which are all that generate: of so many tokens together at most. A
    // method that fails rests, and returns why.
    Status propose(std::span<TextDraft> texts, uint64_t room, const std::atomic<bool>* cancel);
    // A step took so long that read nothing but the last tokens of texts, and guesses.
    void measured(uint64_t rows, double seconds) { times_.measured(rows, seconds); }
    // So many tokens of the last guess for this text were chosen, too. Called after each of its steps.
    void tell(TextGuesses& text, uint64_t proposed, uint64_t accepted);

    // "ngram-simple,draft-mtp"
    std::string methods() const;
    uint64_t most() const { return limits_.most; }

private:
    enum : size_t { kLookingUp, kModel };
    bool pays(TextGuesses& text, size_t method) const;
    Status look_up(TextDraft& one, size_t most, const std::atomic<bool>* cancel);
    void share_rows(std::span<TextDraft> texts, uint64_t most) const;
    Status ask_model(std::span<TextDraft> texts, const std::atomic<bool>* cancel);

    uint32_t match_;
    std::unique_ptr<GroupProposer> model_;
    Limits limits_;
    StepTimes times_;
    double each_ = 0.0;  // what the model takes for a token of all texts, in seconds
    std::array<RightShare, 2> lately_ = {RightShare(128.0), RightShare(128.0)};
    uint64_t opened_ = 0;
};

}  // namespace redline
