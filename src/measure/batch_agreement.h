// Checks whether a model computes the same whatever the number of tokens it reads in a step: a prompt longer
// than a step is read in steps of several sizes. Only this shows errors in caches, states and scratch memory
// that pass from one step to the next.
#pragma once

#include "measure/agreement.h"

#include <chrono>

namespace redline {

// Read in steps of a batch size up to the last kEnd tokens, which are read in one step.
struct LongPrompt {
    static constexpr size_t kEnd = 64;
    std::vector<Token> tokens;
    std::vector<uint32_t> batches;  // the step sizes to read it in, the smallest first

    size_t body() const { return tokens.size() - kEnd; }
};
// The texts repeated: a bit more than 2048 tokens, or as many as the context has. Empty where there is no
// room for two steps of 64 tokens.
LongPrompt long_prompt(const Model& model, std::span<const CheckText> texts);

// The options of a session that reads it in steps of this size.
SessionOptions long_session(const LongPrompt& prompt, uint32_t batch, SessionOptions options);

// Logits of the last token of each step of the body, and of all tokens of the end.
struct LongRead {
    std::vector<size_t> positions;           // token positions
    std::vector<std::vector<float>> logits;  // usable logits, for each position
    size_t read = 0;                         // tokens read
};
// Reads the prompt with the placed model. No step begins after the deadline: the result then has the tokens
// read until it.
using Deadline = std::chrono::steady_clock::time_point;
Result<LongRead> read_long(const Model& model, const LongPrompt& prompt, const SessionOptions& options,
                           Deadline deadline, const Progress& progress = {},
                           const std::atomic<bool>* cancel = nullptr);

// Compares the tokens that both have logits of; worst_token is a position.
Agreement compare_reads(const LongRead& reference, const LongRead& other, double bound, bool has_experts);

// Returns the numbers of the reads that agree with fewer others than the rest: the wrong ones, or all where
// that cannot be told. Empty: all agree.
std::vector<size_t> odd_reads(size_t count, const std::function<bool(size_t a, size_t b)>& agree);

}  // namespace redline
