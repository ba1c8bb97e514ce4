// Counters of a scheduler, for metrics and for a list of what runs.
#pragma once

#include "engine/generate.h"

#include <array>
#include <cstdint>
#include <span>
#include <vector>

namespace redline::serve {

// Counts values up to each of some bounds, as Prometheus has histograms.
class Histogram {
public:
    // Seconds, or tokens of a step; the last counts all.
    static constexpr std::array<double, 20> kSeconds = {0.001, 0.0025, 0.005, 0.01, 0.02, 0.04, 0.06,
                                                        0.08,  0.1,    0.25,  0.5,  0.75, 1,    2.5,
                                                        5,     10,     20,    40,   80,   160};
    static constexpr std::array<double, 14> kTokens = {1,   2,   4,   8,    16,   32,   64,
                                                       128, 256, 512, 1024, 2048, 4096, 8192};

    explicit Histogram(std::span<const double> bounds) : bounds_(bounds), counts_(bounds.size() + 1) {}
    void add(double value);
    // Both have the same bounds.
    void add(const Histogram& other);
    std::span<const double> bounds() const { return bounds_; }
    // Values in each interval that ends with a bound; the last has those above all bounds.
    std::span<const uint64_t> counts() const { return counts_; }
    double sum() const { return sum_; }
    uint64_t count() const { return count_; }

private:
    std::span<const double> bounds_;
    std::vector<uint64_t> counts_;
    double sum_ = 0.0;
    uint64_t count_ = 0;
};

// One of the places that requests run in.
struct SlotState {
    enum class Doing : uint8_t { idle, reading, generating };
    Doing doing = Doing::idle;
    uint64_t request = 0;  // number of the request, from 1
    uint64_t prompt_tokens = 0;
    uint64_t read_tokens = 0;  // that its caches hold
    uint64_t generated_tokens = 0;
    uint64_t drafted = 0, accepted = 0;  // guessed tokens, and those of them that were right
};

struct Statistics {
    // Now.
    uint32_t waiting = 0;
    std::vector<SlotState> slots;  // as many as requests may run
    uint64_t pages = 0;            // of the caches
    uint64_t page_tokens = 0;      // tokens of a page
    uint64_t pages_free = 0;       // neither used nor kept
    uint64_t pages_kept = 0;  // kept for requests to come, that no running one uses: given up when needed
    uint32_t sequences_kept = 0;
    std::string draft_methods;  // "ngram-simple,draft-mtp"; empty: there is no speculation
    uint64_t most_drafted = 0;  // tokens of the guesses of a step

    // Since the start.
    uint64_t prompt_tokens = 0;  // of prompts that were read
    uint64_t cached_tokens = 0;  // of these, those that other requests had left
    uint64_t generated_tokens = 0;
    double prompt_seconds = 0.0;      // of steps that read prompts
    double generation_seconds = 0.0;  // of steps that read generated tokens
    uint64_t most_tokens = 0;         // of a request, prompt and answer
    uint64_t steps = 0;
    uint64_t rows = 0;                   // tokens of all steps
    uint64_t generating_rows = 0;        // generated tokens of all steps
    uint64_t generating_steps = 0;       // steps that had any
    uint64_t drafts = 0;                 // guesses that a step checked
    uint64_t drafted = 0, accepted = 0;  // tokens of these, and those of them that were right
    std::vector<uint64_t> accepted_at;   // of the first tokens of guesses, of the second ones, ...
    uint64_t preemptions = 0;
    uint64_t losses = 0;  // of the device
    uint64_t refused = 0;
    // Ends by reason: the answer was complete (stop strings included), limits, cancelled, errors.
    uint64_t ended_stop = 0, ended_length = 0, ended_cancelled = 0, ended_error = 0;

    Histogram first_token{Histogram::kSeconds};  // from submit() to the first token
    Histogram inter_token{Histogram::kSeconds};
    Histogram whole{Histogram::kSeconds};  // from submit() to the end
    Histogram queued{Histogram::kSeconds};
    Histogram prompt{Histogram::kSeconds};
    Histogram generation{Histogram::kSeconds};
    Histogram step_tokens{Histogram::kTokens};

    uint32_t running() const;
    void count_end(StopReason reason);
    void count_guess(uint64_t proposed, uint64_t right);
    // Adds those of another scheduler of the same model; its slots come behind the others.
    void add(const Statistics& other);
};

}  // namespace redline::serve
