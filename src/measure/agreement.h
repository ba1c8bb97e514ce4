// Checks whether a model computes the same on one device as on another: compares the logits of fixed texts,
// and finds where two traces of a step diverge.
#pragma once

#include "engine/session.h"

namespace redline {

// A text whose first `chunk` tokens are read in one step, the others one by one.
struct CheckText {
    std::vector<Token> tokens;
    size_t chunk = 0;
};
// Prose, source code, and numbers with letters of other scripts, as many as the context has room for.
std::vector<CheckText> check_texts(const Model& model);

// The options of sessions that read these texts.
SessionOptions check_session(std::span<const CheckText> texts, SessionOptions options);

// The logits, (tokens, usable vocabulary), for each text. The model must be placed. Logits that
// check_logits() would refuse are returned, too: they show how a device is wrong.
Result<std::vector<std::vector<float>>> check_logits_of(const Model& model, std::span<const CheckText> texts,
                                                        const SessionOptions& options,
                                                        const std::atomic<bool>* cancel = nullptr);

// The roundings of the kernels that a model gets on its backend, operand by operand, each relative to the
// operand.
Result<std::vector<double>> roundings(const Model& model, const SessionOptions& options);

// The difference to expect between logits of two devices, relative to their spread, because both round. To
// first order errors add up, so the sum of their bounds is one limit, which over hundreds of ops is far too
// wide. But roundings are independent, so their squares add up, and four standard deviations are not exceeded
// by chance in some hundred tokens. The smaller of the two limits.
double rounding_bound(std::span<const double> one, std::span<const double> other);

struct Agreement {
    uint64_t tokens = 0;
    uint64_t same = 0;       // the likeliest token is the same
    uint64_t near_ties = 0;  // another token, whose logit in the reference is within the bound of the best
    double mean_kl = 0.0, worst_kl = 0.0;  // KL divergence of the reference from the device, in nats
    // A token's error: the root mean square of the differences of its logits, relative to the reference's
    // spread.
    double median_error = 0.0, worst_error = 0.0;
    size_t worst_text = 0, worst_token = 0;
    double bound = 0.0;
    bool agrees = false;
};
// Tokens disagree whose likeliest one differs without being a near tie, or whose error is beyond the bound.
// In models with experts, rounding an activation may change the choice of experts, which moves that token's
// logits by more than any rounding: there the median error is judged, and one likeliest token in ten may
// differ.
Agreement compare_logits(std::span<const std::vector<float>> reference,
                         std::span<const std::vector<float>> device, size_t vocab, double bound,
                         bool has_experts);

// One token's row that a step wrote to a slot; traces list those of slots that every backend has, in order of
// writing.
struct TracedWrite {
    uint32_t layer = 0;
    int32_t slot = -1;
    std::string op;       // "linear Q4_K 2048 x 5632"
    std::string tensors;  // the names of tensors read; may be empty
    std::vector<float> row;
};
Result<std::vector<TracedWrite>> trace_token(const Model& model, const CheckText& text, size_t token,
                                             const SessionOptions& options);

struct Parting {
    uint32_t layer = 0;
    std::string op, tensors;
    double error = 0.0;   // root mean square of the difference, relative to that of the reference
    bool beyond = false;  // the error is beyond the bound; false: it is the largest in the traces
};
// The first write that differs by more than the bound, or the one that differs most. Empty: the traces have
// nothing in common.
std::optional<Parting> first_parting(std::span<const TracedWrite> reference,
                                     std::span<const TracedWrite> device, double bound);

}  // namespace redline
