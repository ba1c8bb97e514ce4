// Perplexity of a text in chunks, as llama-perplexity defines it, so that values can be compared.
#pragma once

#include "engine/session.h"
#include "measure/log_softmax.h"

namespace redline::cli {

// Every chunk of `chunk` tokens starts with an empty cache; its first token is replaced by BOS when the model
// adds one. Positions chunk/2 to chunk-2 are scored by the probability that they give to the token after
// them.
struct Perplexity {
    uint64_t scored = 0;  // tokens
    double nll = 0.0;     // sum over them of -ln p
    double nll_squares = 0.0;
    std::vector<double> running;  // after each chunk
    bool cancelled = false;

    double value() const;
    double uncertainty() const;  // standard error of value(), as llama-perplexity gives it
};

constexpr uint64_t kLeastChunk = 4;
// Positions of a chunk that are scored.
constexpr uint64_t scored_of_chunk(uint64_t chunk) {
    return chunk - 1 - chunk / 2;
}
// Chunks that are too short to score, or a text of fewer than two, are an error.
Status check_chunks(std::span<const Token> tokens, uint64_t chunk);

// Called after each chunk with its number, from 1; false ends it.
using ChunkDone = std::function<bool(uint64_t chunk, double running)>;

// Called for each scored position in order, with the token that comes after it; an error ends the run.
using PositionScored =
    std::function<Status(std::span<const float> logits, Token right, const LogSoftmax& softmax)>;

// For what check_chunks() accepts; a logit that is not finite is an error.
Result<Perplexity> measure_perplexity(Session& session, std::span<const Token> tokens, uint64_t chunk,
                                      const ChunkDone& done, const std::atomic<bool>* cancel,
                                      const PositionScored& position = {});

}  // namespace redline::cli
