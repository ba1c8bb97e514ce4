// Whether a model computes the same whatever the number of tokens it reads in a step: a prompt longer than a
// step, read in steps of several sizes. What a step leaves for the next one in caches, states and shared
// memory is only seen so.
#pragma once

#include "measure/agreement.h"

#include <chrono>

namespace redline {

// Read in steps of a batch size up to the last kEnd tokens, which are read in one step.
struct LongPrompt {
    static constexpr size_t kEnd = 64;
    std::vector<Token> tokens;
    std::vector<uint32_t> batches;  // the sizes to read it in, the smallest first

    size_t body() const { return tokens.size() - kEnd; }
};
// The texts again and again: a bit more than 2048 tokens, or as many as the context has. Empty where it has
// not room for a step of 64 tokens and another.
LongPrompt long_prompt(const Model& model, std::span<const CheckText> texts);

// For a session that reads it in steps of a size.
SessionOptions long_session(const LongPrompt& prompt, uint32_t batch, SessionOptions options);

// Logits of the last token of each step of the body, and of all tokens of the end.
struct LongRead {
    std::vector<size_t> positions;           // of tokens
    std::vector<std::vector<float>> logits;  // usable ones, of each
    size_t read = 0;                         // tokens
};
// The model is placed. Behind the deadline no other step is begun: what was read until then is the result.
using Deadline = std::chrono::steady_clock::time_point;
Result<LongRead> read_long(const Model& model, const LongPrompt& prompt, const SessionOptions& options,
                           Deadline deadline, const Progress& progress = {},
                           const std::atomic<bool>* cancel = nullptr);

// Of the tokens that both have logits of; worst_token is a position.
Agreement compare_reads(const LongRead& reference, const LongRead& other, double bound, bool has_experts);

// Which of several reads agree with fewer others than the rest does, by their numbers: those that are wrong,
// or all where that cannot be told. Empty: all agree.
std::vector<size_t> odd_reads(size_t count, const std::function<bool(size_t a, size_t b)>& agree);

}  // namespace redline
