// A model's layers, or the experts of some, among devices and the CPU.
#pragma once

#include "engine/engine.h"
#include "measure/rates.h"

namespace redline {

// Where the steps of a plan can be.
struct SplitPlaces {
    Backend* cpu = nullptr;         // of what devices have no room for; null: none of it is there
    std::vector<Backend*> devices;  // in the order of their layers; at least one
};

// Places the tensors whose names match the pattern, a regular expression of std::regex.
struct TensorRule {
    std::string pattern;
    bool on_cpu = false;
    uint32_t device = 0;  // its number in SplitPlaces, where they are not on the CPU
};

// The wish of a user for where layers, experts and tensors are. Only whole blocks of the plan move (see
// blocks()), and the steps of a layer's experts. Where these are one step with their norm and router
// (ExpertBlock), the two go along.
struct SplitWish {
    // On the devices: the last ones, and what follows them; the nearest number where layers share caches.
    uint32_t layers = UINT32_MAX;
    uint32_t experts = 0;                // of so many first layers, on the CPU
    std::vector<TensorRule> rules = {};  // before both; the first that fits a tensor holds
    // The share of each device of these layers, in proportion, as far as it has room; empty: by their memory.
    std::vector<double> shares = {};
    bool exact = false;  // shares are of the number of layers, whatever there is room for
};

// Layers that the devices have a part of: how many there are, of how many the experts are on the CPU, and of
// how many another part.
struct SplitCounts {
    uint32_t layers = 0, experts = 0, parts = 0;
    std::vector<uint32_t> by_device = {};  // how many each device has a part of

    bool operator==(const SplitCounts&) const = default;
};

// The rows of activations that go from one backend to another.
struct PlaceCrossing {
    size_t from = 0, to = 0;  // numbers in Split::backends
    uint32_t count = 0;       // in a step
    uint64_t bytes = 0;       // of a token
};

struct Split {
    SplitCounts counts;
    std::vector<Placement> placements;  // all steps, in order
    std::vector<Backend*> backends;     // of those, each once
    std::vector<MemoryNeed> needs;      // of each of these
    std::vector<PlaceCrossing> crossings;
    std::vector<std::string> unused;  // patterns that no tensor has in its name
    // Layers [first, last) that share caches, where the wish would have had them apart; else none.
    uint32_t together_first = 0, together_last = 0;
    // Layers of which rules would have parted an attention from the cache of an earlier layer that it reads:
    // it went where that is.
    std::vector<uint32_t> followed;
};

// An error where the model cannot be cut so, with what would work.
Result<Split> split_model(const Model& model, const EngineOptions& options, const SplitPlaces& where,
                          const SplitWish& wish);
// True where all parts fit. Memory of the host that several devices share is counted once.
bool fits(const Split& split);

// The order in which parts go to the CPU until the rest fits on the devices.
enum class Yield : uint8_t {
    layers,         // whole ones, the first first
    experts,        // those of the first layers first
    experts_first,  // experts, and then whole layers
};
// The split nearest to `from`, which may have more on the CPU than that, that fits. An error with the numbers
// when none does.
Result<Split> fitting_split(const Model& model, const EngineOptions& options, const SplitPlaces& where,
                            const SplitWish& from, Yield yield);

// The most tokens of context, up to those of the options, with which there is one, or with which the wish
// itself fits where nothing may yield; multiples of 256 below that. 0: with none.
Result<uint64_t> fitting_context(const Model& model, const EngineOptions& options, const SplitPlaces& where,
                                 const SplitWish& from, std::optional<Yield> yield);

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
// Seconds that a step takes to go on at another place; 0: not known.
using CrossingOf = std::function<double(const Backend& from, const Backend& to)>;
// Layers of experts among the plan's steps [first, last).
size_t expert_layers(const Plan& plan, size_t first, size_t last);
// Tokens per second to expect of these parts, likewise: each has its run, its steps and what they read, and
// no two run at a time; to go on at another place, with the next token, too, takes the seconds of a crossing.
// 0 where a pace is not known.
Result<double> expected_tokens_per_second(const Model& model, const EngineOptions& options,
                                          std::span<const Placement> placements, const PaceOf& pace,
                                          const CrossingOf& crossing, uint64_t position);

}  // namespace redline
