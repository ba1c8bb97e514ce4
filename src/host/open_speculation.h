// Speculation as users ask for it: the methods, and a second model that guesses for the first.
#pragma once

#include "host/host_options.h"
#include "host/loaded_model.h"
#include "speculate/speculation.h"

namespace redline {

enum class SpeculationType : uint8_t {
    none,
    automatic,     // what is there: the draft model, and looking up
    ngram_simple,  // looking up alone
    draft_simple   // the draft model alone
};

struct SpeculationOptions {
    SpeculationType type = SpeculationType::none;
    std::string draft_model;  // a path or a name, as HostOptions has them
    uint32_t most = 8;        // tokens of a guess

    // Rows of logits that a step has to return.
    uint32_t outputs() const { return type == SpeculationType::none ? 1 : most + 1; }
};
constexpr uint32_t kMostDrafted = 15;

// Refuses what contradicts itself; a draft model alone means automatic.
Status settle(SpeculationOptions& options);

struct OpenSpeculation {
    std::unique_ptr<LoadedModel> draft;
    std::unique_ptr<Speculation> speculation;  // null: none
};
// The session's engine returns options.outputs() rows. Where what a model read cannot be taken back there is
// no speculation, which a note says.
Result<OpenSpeculation> open_speculation(const SpeculationOptions& options, const HostOptions& host,
                                         const Session& session);

}  // namespace redline
