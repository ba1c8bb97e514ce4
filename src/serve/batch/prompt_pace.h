// Decides how many tokens of prompts are read between the tokens of those that generate, and whose.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

namespace redline::serve {

// Measures how long steps take, and gives prompts their share of the time.
class PromptPace {
public:
    static constexpr uint32_t kFewest = 16;      // rows that are read in any case
    static constexpr uint32_t kUnmeasured = 64;  // rows while nothing is known

    explicit PromptPace(double share) : share_(share) {}

    // A step took so long in which so many sequences generated, and so many rows of prompts were read.
    void measured(double seconds, uint32_t generating, uint32_t prompt_rows);
    // Rows of prompts for now, while so many generate.
    uint32_t rows(uint32_t generating, uint32_t most) const;
    // True when the next step should have no prompts, so that its time tells what generating takes now.
    bool wants_measure(uint32_t generating) const;

private:
    double share_;
    double generating_seconds_ = 0.0;  // of a step without prompts; 0: not known
    uint32_t generating_ = 0;          // how many generated in that step
    uint32_t since_ = 0;               // steps since then
    double row_seconds_ = 0.0;         // of a row of a prompt; 0: not known
};

// The same for devices on which a step of few rows takes as long as one of several hundred: prompts are read
// in bursts, and between two of them those that generate get their time.
class PromptBursts {
public:
    static constexpr uint32_t kFewest = 64, kUnmeasured = 512;  // rows of a burst
    static constexpr uint32_t kTile = 128;                      // larger bursts have whole ones
    // A burst holds up those that generate for so long: seconds, or so many of their steps if these take
    // longer. The latter where as many prompts are read as others generate: larger bursts read faster.
    static constexpr double kLeastShare = 0.75;  // of the time, since a burst is fast
    static constexpr double kHold = 0.01, kHoldSteps = 3.0, kLongHold = 0.03, kLongHoldSteps = 8.0;
    static constexpr double kHoldTogether = 0.02;  // of a step that generates as well, in place of kHold

    explicit PromptBursts(double share) : share_(share > kLeastShare ? share : kLeastShare) {}

    // Those that generate have rows in the steps that read: nothing is owed to them.
    void go_together() { together_ = true; }

    void measured(double seconds, uint32_t generating, uint32_t prompt_rows);
    // Rows of prompts for now, while so many generate and so many prompts are read. 0 while time is owed to
    // those that generate. Where more prompts wait than others generate, prompts get more than their share.
    uint32_t rows(uint32_t generating, size_t reading, uint32_t most);

private:
    double share_, share_now_ = 0.5;
    bool together_ = false;
    double generating_seconds_ = 0.0;  // of a step without prompts; 0: not known
    double row_seconds_ = 0.0;         // of a row of a burst; 0: not known
    double owed_ = 0.0;                // seconds; below zero: what those that generate had beforehand
};

// A prompt that is being read.
struct PromptState {
    uint64_t left = 0;         // tokens to read
    uint64_t passed_over = 0;  // tokens of other prompts that were read since it came
};

// The order in which prompts are read: the one with the fewest tokens left first, where a token counts less
// for each that was read of another in the meantime. So a long one waits for short ones, but not for ever.
std::vector<size_t> prompt_order(std::span<const PromptState> prompts);

}  // namespace redline::serve
