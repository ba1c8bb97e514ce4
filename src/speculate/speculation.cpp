#include "speculate/speculation.h"

#include <algorithm>
#include <chrono>
#include <cmath>

namespace redline {

namespace {

using Clock = std::chrono::steady_clock;

// The part that a new measurement has in an average.
constexpr double kNew = 0.25;

void average(double& into, double value) {
    into = into == 0.0 ? value : into + kNew * (value - into);
}

}  // namespace

void StepTimes::measured(uint64_t rows, double seconds) {
    // The first step of a number of rows may have recorded its kernels, and one now and then waits for
    // another program: neither must keep a text from guesses for long.
    const uint64_t bit = uint64_t(1) << std::min<uint64_t>(rows, 63);
    const bool first = (seen_ & bit) == 0;
    seen_ |= bit;
    if (rows == 1 && seconds < one_ / 2)
        one_ = seconds;
    else if (rows == 1)
        average(one_, seconds);
    else if (one_ == 0.0)
        one_ = seconds / cost(rows);
    else if (!first)
        each_ += kNew *
                 (std::min(std::max(seconds / one_ - 1.0, 0.0) / double(rows - 1), 2 * each_ + 0.1) - each_);
}

DraftLength best_draft_length(double accepted, double each, uint64_t most, const StepTimes& times) {
    DraftLength best;
    double tokens = 1.0, right = 1.0;
    for (uint64_t n = 1; n <= most; ++n) {
        right *= accepted;
        tokens += right;
        const double gain = tokens / (times.cost(n + 1) + double(n) * each);
        if (n == 1 || gain > best.gain) best = {n, gain};
    }
    return best;
}

Speculation::Speculation(std::vector<std::unique_ptr<Proposer>> proposers, Limits limits)
    : limits_(std::move(limits)) {
    if (limits_.assumed) times_ = StepTimes(limits_.assumed->steps);
    for (std::unique_ptr<Proposer>& proposer : proposers) {
        methods_.emplace_back();
        methods_.back().result.name = proposer->name();
        methods_.back().proposer = std::move(proposer);
    }
}

double Speculation::cost_of_guess(const Method& method) const {
    if (!limits_.assumed) return method.each / times_.one();
    return method.proposer->computes() ? limits_.assumed->guess : 0.0;
}

Result<std::vector<Token>> Speculation::propose(std::span<const Token> read, Token last, size_t most,
                                                const std::atomic<bool>* cancel) {
    std::vector<Token> guess;
    last_ = nullptr;
    // The first step tells what one of one row takes.
    if (!limits_.assumed && times_.one() == 0.0) return guess;
    most = std::min<size_t>(most, limits_.most);
    for (Method& method : methods_) {
        if (method.pause > 0) continue;
        const DraftLength length =
            best_draft_length(method.right.value(), cost_of_guess(method), most, times_);
        if (length.gain < kLeastGain && !limits_.always && method.trials == 0) {
            method.pause = kPause;
            method.trials = kTrials;
            method.right.believe(std::max(method.right.value(), 0.5));  // for the next try
            continue;
        }
        const auto start = Clock::now();
        guess = RL_TRY(method.proposer->propose({read, last}, limits_.always ? most : length.tokens, cancel));
        if (guess.empty()) continue;
        // The first guess may have read a whole prompt.
        const bool first = method.result.rounds == 0;
        guessing_ = first ? 0.0 : std::chrono::duration<double>(Clock::now() - start).count();
        if (!first) average(method.each, guessing_ / double(guess.size()));
        method.trials -= std::min<uint64_t>(method.trials, 1);
        last_ = &method;
        return guess;
    }
    return guess;
}

void Speculation::tell(const DraftRound& round) {
    times_.measured(round.proposed + 1, round.seconds);
    for (Method& method : methods_) method.pause -= std::min(method.pause, round.accepted + 1);
    if (round.proposed == 0 || !last_) return;
    // Behind the first wrong token nothing is learnt of those that follow.
    last_->right.tell(round.accepted, std::min(round.accepted + 1, round.proposed));
    last_->result.rounds++;
    last_->result.proposed += round.proposed;
    last_->result.accepted += round.accepted;
    last_->result.seconds += guessing_ + round.seconds;
}

std::vector<Speculation::MethodResult> Speculation::results() const {
    std::vector<MethodResult> all;
    for (const Method& method : methods_) {
        all.push_back(method.result);
        MethodResult& result = all.back();
        result.paused = method.pause > 0;
        if (result.seconds > 0.0)
            result.gain = double(result.accepted + result.rounds) * times_.one() / result.seconds;
    }
    return all;
}

}  // namespace redline
