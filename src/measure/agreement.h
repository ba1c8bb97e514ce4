// Whether a model computes the same on one device as on another: the logits of fixed texts side by side, and
// where two traces of a step part.
#pragma once

#include "engine/session.h"

namespace redline {

// The first `chunk` tokens are read in one step, the others one by one.
struct CheckText {
    std::vector<Token> tokens;
    size_t chunk = 0;
};
// Prose, source code, and numbers with letters of other scripts, as far as the context goes.
std::vector<CheckText> check_texts(const Model& model);

// For sessions that read them.
SessionOptions check_session(std::span<const CheckText> texts, SessionOptions options);

// (tokens, usable vocabulary) for each text. The model is placed. Logits that cannot be a model's are none
// the less given: they show how a device is wrong.
Result<std::vector<std::vector<float>>> check_logits_of(const Model& model, std::span<const CheckText> texts,
                                                        const SessionOptions& options,
                                                        const std::atomic<bool>* cancel = nullptr);

// What the kernels that a model gets on the backend it is placed on round by, operand by operand, in relation
// to each.
Result<std::vector<double>> roundings(const Model& model, const SessionOptions& options);

// By how much logits of two devices may differ, in relation to their spread, because both round. To first
// order errors add up, and no sum of them is larger than that of their bounds. Over hundreds of ops that says
// nothing; but roundings are independent, so that their squares add up, and four standard deviations are not
// seen by chance in some hundred tokens. The smaller of the two.
double rounding_bound(std::span<const double> one, std::span<const double> other);

struct Agreement {
    uint64_t tokens = 0;
    uint64_t same = 0;       // the likeliest token is the same
    uint64_t near_ties = 0;  // another one, whose logit the reference has within the bound of its best
    double mean_kl = 0.0, worst_kl = 0.0;  // KL divergence of the reference from the device, in nats
    // Of a token's logits: the root mean square of the difference, in relation to the reference's spread.
    double median_error = 0.0, worst_error = 0.0;
    size_t worst_text = 0, worst_token = 0;
    double bound = 0.0;
    bool agrees = false;
};
// Tokens whose likeliest one is another, and no near tie, or whose error is beyond the bound, disagree. Where
// the model has experts, a rounded activation may turn the choice among them, which moves that token's logits
// by more than any rounding: there the median error is judged, and one likeliest token in ten may differ.
Agreement compare_logits(std::span<const std::vector<float>> reference,
                         std::span<const std::vector<float>> device, size_t vocab, double bound,
                         bool has_experts);

// What one step left of one token's row in the slots that every backend has, in order of writing.
struct TracedWrite {
    uint32_t layer = 0;
    int32_t slot = -1;
    std::string op;       // "linear Q4_K 2048 x 5632"
    std::string tensors;  // that it read; may be empty
    std::vector<float> row;
};
Result<std::vector<TracedWrite>> trace_token(const Model& model, const CheckText& text, size_t token,
                                             const SessionOptions& options);

struct Parting {
    uint32_t layer = 0;
    std::string op, tensors;
    double error = 0.0;   // root mean square, in relation to that of the reference
    bool beyond = false;  // the bound; else this is the largest there is
};
// The first write that differs by more than the bound. None: the traces have nothing in common.
std::optional<Parting> first_parting(std::span<const TracedWrite> reference,
                                     std::span<const TracedWrite> device, double bound);

}  // namespace redline
