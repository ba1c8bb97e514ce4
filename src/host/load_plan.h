// The plan of a model: what runs on the device and what on the CPU, decided and reported before a byte of
// weights is read.
#pragma once

#include "host/host_options.h"
#include "host/loaded_model.h"

namespace redline {

// The cost of a split: "the CPU reads 1.2 GiB per token, about 12.3 tok/s expected, ...".
struct SplitCost {
    uint64_t cpu_bytes = 0;  // per token
    Speed speed = {};

    bool operator<(const SplitCost& other) const;
    std::string text() const;
};

// The way in which prompts of a split model are computed, see EngineOptions::stream_rows.
struct StreamChoice {
    uint32_t rows = 0;            // fewest rows of a step that streams; 0: no step does
    uint64_t staging = 0;         // bytes of staging, which the device's memory need contains
    double cpu_seconds = 0.0;     // predicted for the CPU's layers and a whole batch, computed on the CPU
    double stream_seconds = 0.0;  // predicted for the same on the device; 0: not known
    std::string why_not = {};     // set where streaming was asked for and is not possible
    std::string text() const;     // for the end of the plan line
};

struct TensorSplit;  // see host/tensor_split.h

struct LoadDecision {
    MemoryNeed whole;            // of the whole model on the device
    std::optional<Split> split;  // empty: the whole model is on the device
    SplitCost cost;              // of the split; without one only its speed is set
    StreamChoice stream = {};
    std::shared_ptr<const TensorSplit> tensors = {};  // of a model whose layers are divided over devices
};
// Decides how a session like this one runs on the device that is open; nothing is loaded, and `notes` gets
// what differs from the options. `loaded` gets the CPU and the bandwidths where they count. An error has the
// numbers and the nearest setting that would fit.
Result<LoadDecision> decide_load(LoadedModel& loaded, const HostOptions& options,
                                 const SessionOptions& session, std::vector<std::string>& notes);

// Decides so, reports the plan, and keeps the split, if there is one, in LoadedModel::split.
Status plan_load(LoadedModel& loaded, const HostOptions& options, const SessionOptions& session);

// The memory that a session takes of the devices of a model, when these have all layers, and that they offer.
struct SessionNeed {
    MemoryNeed need;
    uint64_t budget = 0;
    bool fits = false;  // on each of them
};
Result<SessionNeed> session_need(const LoadedModel& loaded, const SessionOptions& session);

// The most context, up to `most` tokens, with which the split that the options ask for fits. Where they ask
// for none, it is the default context, or less, with which an automatic split fits. 0: no context fits.
Result<uint64_t> split_context(LoadedModel& loaded, const HostOptions& options, uint64_t most);

// True where the options ask for parts of the model on the CPU beside the device.
bool asks_split(const HostOptions& options, const Model& model);
// For callers that do not split a model: notes that they do not, where the options ask for a split.
void note_unsplit(const HostOptions& options, const Model& model, const std::string& device);

// "crossings of a token: 8 KiB from hip:0 to hip:1; about 30 us"; empty where there are none.
std::string crossings_text(const LoadedModel& loaded, const Split& split);

// "plan: 12/32 layers on vulkan (...), 20 and the experts of 12 on cpu (...), KV cache f16 4096 tokens
// 512.0 MiB"; `cache` in bytes; `more` stands at its end.
std::string plan_line(const LoadedModel& loaded, uint64_t context, uint64_t cache,
                      const std::string& more = "");

}  // namespace redline
