// Whole steps of a model with its tuned kernels beside such with the defaults: what is faster by itself is
// not always faster between its neighbours, whose beginning and end it overlaps.
#pragma once

#include "cli/options/options.h"
#include "engine/session.h"
#include "measure/tune.h"

#include <array>

namespace redline::cli {

// Speeds with the tuned kernels over those with the defaults, medians of runs in turn, by the class of a
// step's rows; of prompts the worse.
struct WholeGains {
    double& of(RowClass rows) { return by_class[size_t(rows)]; }
    double of(RowClass rows) const { return by_class[size_t(rows)]; }

    std::array<double, std::size(kRowClassList)> by_class = {1.0, 1.0, 1.0, 1.0};
};
// How many tokens are read: a short prompt, tokens behind it one by one, then a few at a time, then some, and
// a prompt of two batches where the short one takes little time.
uint64_t whole_context(uint32_t batch);
// Measures a model that is placed on the backend, which uses the tuned kernels, as it does afterwards.
// `tokens`: as many as whole_context() says. Takes `seconds` or a little longer, but at least three turns.
Result<WholeGains> whole_gains(const Model& model, Backend& backend, const SessionOptions& settings,
                               std::span<const Token> tokens, double seconds, TuneClock& clock,
                               const std::atomic<bool>* cancel);

// Gives up the variants of the classes of rows that whole steps are slower with, in the list and on the
// backend. Those classes.
std::vector<RowClass> give_up_slower(const WholeGains& gains, Tuning& tuning, Backend& backend);

}  // namespace redline::cli
