// What runs where, and what it takes, decided and said before a byte of weights is read.
#pragma once

#include "cli/options/model_options.h"

namespace redline::cli {

// Tokens per second; 0: not known.
struct Speed {
    double expected = 0.0;  // by what was measured of kernels, see expected_tokens_per_second()
    double most = 0.0;      // by the bandwidth alone

    // "about 12.3 tok/s expected, at most 20.1 by the measured bandwidth"; empty: not known.
    std::string text() const;
};
// What a split costs: "the CPU reads 1.2 GiB per token, about 12.3 tok/s expected, ...".
struct SplitCost {
    uint64_t cpu_bytes = 0;  // per token
    Speed speed = {};

    bool operator<(const SplitCost& other) const;
    std::string text() const;
};

// How prompts of a split are computed: see EngineOptions::stream_rows.
struct StreamChoice {
    uint32_t rows = 0;            // 0: each layer where it is
    uint64_t staging = 0;         // bytes on the device, which its need has
    double cpu_seconds = 0.0;     // predicted for the CPU's layers in a step of the whole batch, there,
    double stream_seconds = 0.0;  // and on the device; 0: not known
    std::string why_not = {};     // where it was asked for and cannot be
    std::string text() const;     // for the plan line
};

struct LoadDecision {
    MemoryNeed whole;            // of all on the device
    std::optional<Split> split;  // none: all is on the device
    SplitCost cost;              // of the split; without one only the speed is known
    StreamChoice stream = {};
};
// What is to be said to the user beside: where it is not what the options ask for.
using Notes = std::vector<std::string>;
// What a session like this one gets on the device that is open; nothing is said or loaded. `loaded` gets the
// CPU and the bandwidths where they count. An error has the numbers and the nearest setting that would fit.
Result<LoadDecision> decide_load(LoadedModel& loaded, const ModelOptions& options,
                                 const SessionOptions& session, Notes& notes);

// Decides so, says what it is, and keeps the split (LoadedModel::placements), if there is one.
Status plan_load(LoadedModel& loaded, const ModelOptions& options, const SessionOptions& session);

// The most context, up to `most` tokens, with which the split that the options ask for fits. Where they ask
// for none: the usual context, or what is left of it, with which a split fits that comes about by itself. 0:
// none.
Result<uint64_t> split_context(LoadedModel& loaded, const ModelOptions& options, uint64_t most);

// Whether options ask for parts of the model on the CPU beside the device.
bool asks_split(const ModelOptions& options, const Model& model);
// For commands that do not split a model: says so where options ask for it.
void note_unsplit(const ModelOptions& options, const Model& model, const std::string& device);

// "plan: 12/32 layers on vulkan (...), 20 and the experts of 12 on cpu (...), KV cache f16 4096 tokens
// 512.0 MiB"; `cache` in bytes; `more` stands at its end.
std::string plan_line(const LoadedModel& loaded, uint64_t context, uint64_t cache,
                      const std::string& more = "");

}  // namespace redline::cli
