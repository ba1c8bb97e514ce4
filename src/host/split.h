// A model's layers, or the experts of some, between a device and the CPU, where the device's memory is too
// small for all of them.
#pragma once

#include "engine/engine.h"
#include "measure/rates.h"

namespace redline {

// Places the tensors whose names match the pattern, a regular expression of std::regex.
struct TensorRule {
    std::string pattern;
    bool on_cpu = false;
};

// The wish of a user for where layers, experts and tensors are. Only whole blocks of the plan move (see
// blocks()), and the steps of a layer's experts. Where these are one step with their norm and router
// (ExpertBlock), the two go along.
struct SplitWish {
    // On the device: the last ones, and what follows them; the nearest number where layers share caches.
    uint32_t layers = UINT32_MAX;
    uint32_t experts = 0;                // of so many first layers, on the CPU
    std::vector<TensorRule> rules = {};  // before both; the first that fits a tensor holds
};

// Layers that the device has a part of: how many there are, of how many the experts are on the CPU, and of
// how many another part.
struct SplitCounts {
    uint32_t layers = 0, experts = 0, parts = 0;
};

struct Split {
    SplitCounts counts;
    std::vector<Placement> placements;  // all steps, in order
    std::vector<Backend*> backends;     // of those, each once
    std::vector<MemoryNeed> needs;      // of each of these
    std::vector<std::string> unused;    // patterns that no tensor has in its name
    // Layers [first, last) that share caches, where the wish would have had them apart; else none.
    uint32_t together_first = 0, together_last = 0;
    // Layers of which rules would have parted an attention from the cache of an earlier layer that it reads:
    // it went where that is.
    std::vector<uint32_t> followed;
};

// An error where the model cannot be cut so, with what would work.
Result<Split> split_model(const Model& model, const EngineOptions& options, Backend& cpu, Backend& device,
                          const SplitWish& wish);
// True where all parts fit. Memory of the host that two devices share is counted once.
bool fits(const Split& split);

// The order in which parts go to the CPU until the rest fits on the device.
enum class Yield : uint8_t {
    layers,         // whole ones, the first first
    experts,        // those of the first layers first
    experts_first,  // experts, and then whole layers
};
// The split nearest to `from`, which may have more on the CPU than that, that fits. An error with the numbers
// when none does.
Result<Split> fitting_split(const Model& model, const EngineOptions& options, Backend& cpu, Backend& device,
                            const SplitWish& from, Yield yield);

// The most tokens of context, up to those of the options, with which there is one, or with which the wish
// itself fits where nothing may yield; multiples of 256 below that. 0: with none.
Result<uint64_t> fitting_context(const Model& model, const EngineOptions& options, Backend& cpu,
                                 Backend& device, const SplitWish& from, std::optional<Yield> yield);

// Bytes that a step of one token reads on a backend's device, `position` tokens into the context: weights and
// cache.
Result<uint64_t> step_bytes(const Model& model, const EngineOptions& options,
                            std::span<const Placement> placements, const Backend& backend, uint64_t position);
// Bytes per second that a backend's device reads; 0: not known.
using Bandwidth = std::function<double(const Backend&)>;
// Tokens per second that the bandwidths of the parts' devices allow, `position` tokens into the context. 0
// where one is not known.
Result<double> most_tokens_per_second(const Model& model, const EngineOptions& options,
                                      std::span<const Placement> placements, const Bandwidth& bandwidth,
                                      uint64_t position);
// Looks up the pace of a backend's device; its bytes_per_second is 0 where it is not known.
using PaceOf = std::function<DecodePace(const Backend&)>;
// Tokens per second to expect of these parts, likewise: each has its run, its steps and what they read, and
// no two run at a time; each time that the next one is at another place, that of the next token, too, takes
// `crossing` seconds more. 0 where a pace is not known.
Result<double> expected_tokens_per_second(const Model& model, const EngineOptions& options,
                                          std::span<const Placement> placements, const PaceOf& pace,
                                          double crossing, uint64_t position);

}  // namespace redline
