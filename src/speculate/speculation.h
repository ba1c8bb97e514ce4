// Decides which method guesses next, and how many tokens, by what guesses and steps of several tokens turned
// out to be worth.
#pragma once

#include "engine/drafter.h"
#include "speculate/proposer.h"
#include "speculate/right_share.h"

#include <algorithm>
#include <memory>
#include <optional>
#include <string>

namespace redline {

// The time that steps and guesses are assumed to take, in steps of one row.
struct AssumedCosts {
    std::vector<double> steps = {};  // of one row, of two, ...: as many as a guess has tokens, and one more
    double guess = 0.0;              // of a token, by a method that computes
};

// Measured times of steps, and what those of other lengths should take by them. With assumed costs it is
// those that decide.
class StepTimes {
public:
    StepTimes() = default;
    explicit StepTimes(std::vector<double> assumed) : assumed_(std::move(assumed)) {}
    // A step of several rows alone tells little of one of one row: that is estimated by it.
    void measured(uint64_t rows, double seconds);
    double one() const { return one_; }
    // The time of a step of so many rows, in steps of one.
    double cost(uint64_t rows) const {
        return assumed_.empty() ? 1.0 + each_ * double(rows - 1)
                                : assumed_[std::min<size_t>(rows, assumed_.size()) - 1];
    }

private:
    double one_ = 0.0;    // seconds of a step of one row; 0: none was measured
    double each_ = 0.15;  // what a further row takes, in steps of one
    uint64_t seen_ = 0;   // numbers of rows that were measured, as bits
    std::vector<double> assumed_;
};

// How long the guesses of a method should be, from 1 to `most`, where a guess of a token takes `each` steps
// of one row and is right with this probability, and how much faster that is than without. The tokens of a
// round are (1 - a^(n + 1)) / (1 - a): Leviathan et al., "Fast Inference from Transformers via Speculative
// Decoding".
struct DraftLength {
    uint64_t tokens = 0;
    double gain = 1.0;
};
DraftLength best_draft_length(double accepted, double each, uint64_t most, const StepTimes& times);

class Speculation : public Drafter {
public:
    struct Limits {
        uint64_t most = 8;    // tokens of a guess
        bool always = false;  // guesses although they do not pay
        // Where set, nothing that was timed decides about guesses, so that a text is the same each time even
        // where steps of other numbers of rows round differently.
        std::optional<AssumedCosts> assumed = {};
    };
    // Methods are asked in this order.
    Speculation(std::vector<std::unique_ptr<Proposer>> proposers, Limits limits);

    Result<std::vector<Token>> propose(std::span<const Token> read, Token last, size_t most,
                                       const std::atomic<bool>* cancel) override;
    void tell(const DraftRound& round) override;

    // The guesses of a method so far.
    struct MethodResult {
        std::string_view name;
        uint64_t rounds = 0, proposed = 0, accepted = 0;
        double seconds = 0.0;  // that the guesses and their steps took
        double gain = 0.0;     // by how much faster the tokens of its rounds came than one by one; 0: unknown
        bool paused = false;   // since it did not pay
    };
    std::vector<MethodResult> results() const;

private:
    struct Method {
        std::unique_ptr<Proposer> proposer;
        RightShare right;
        double each = 0.0;    // measured seconds of a guess of a token
        uint64_t pause = 0;   // tokens until it is tried again
        uint64_t trials = 0;  // further guesses that are made in any case, to see what they are worth now
        MethodResult result;
    };
    // The time of a guess of a token, in steps of one row.
    double cost_of_guess(const Method& method) const;
    static constexpr double kLeastGain = 1.05;
    static constexpr uint64_t kPause = 256, kTrials = 3;

    std::vector<Method> methods_;
    Limits limits_;
    StepTimes times_;
    Method* last_ = nullptr;  // whose guess is being verified
    double guessing_ = 0.0;   // seconds that it took
};

}  // namespace redline
