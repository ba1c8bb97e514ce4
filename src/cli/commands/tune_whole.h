// Whole steps of a model with its tuned kernels beside such with the defaults: what is faster by itself is
// not always faster between its neighbours, whose beginning and end it overlaps.
#pragma once

#include "cli/options/options.h"
#include "run/session.h"
#include "run/tune.h"

namespace redline::cli {

// Speeds with the tuned kernels over those with the defaults, medians of runs in turn; of prompts the worse.
struct WholeGains {
    double prompt = 1.0, generation = 1.0;
};
// What is read: a short prompt, so many tokens behind it one by one, and a prompt of two batches where a
// short one takes no second.
constexpr uint64_t kWholePrompt = 512, kWholeTokens = 64;
uint64_t whole_context(uint32_t batch);
// Of a model that is placed on the backend, which uses the tuned kernels, as it does afterwards. `tokens`: as
// many as whole_context() says.
Result<WholeGains> whole_gains(const Model& model, Backend& backend, const SessionOptions& settings,
                               std::span<const Token> tokens, const std::atomic<bool>* cancel);

// Gives up the variants of the classes of rows that whole steps are slower with, in the list and on the
// backend. Those classes.
std::vector<RowClass> give_up_slower(const WholeGains& gains, Tuning& tuning, Backend& backend);

}  // namespace redline::cli
