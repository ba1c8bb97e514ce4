// Speculation as users ask for it: the methods, and a second file that guesses for the first.
#pragma once

#include "host/host_options.h"
#include "host/loaded_model.h"
#include "speculate/shared_speculation.h"
#include "speculate/speculation.h"

namespace redline {

enum class SpeculationType : uint8_t {
    none,
    automatic,     // what is there: looking up, the draft model, the MTP head
    ngram_simple,  // looking up alone
    draft_simple,  // the draft model alone
    draft_mtp      // the MTP head alone
};

constexpr uint32_t kMostDrafted = 15;

struct SpeculationOptions {
    SpeculationType type = SpeculationType::none;
    bool asked = false;  // the type was chosen by the user
    // It was not, and stays automatic where texts are those without speculation, bit for bit, and on a GPU
    // for a model with a head.
    bool by_default = false;
    bool assumes = false;     // by default on a GPU: see Speculation::Limits::assumed
    std::string draft_model;  // a path or a name, as HostOptions has them: a model, or an MTP head alone
    uint32_t most = 0;        // tokens of a guess; 0: 8, or 4 where layers keep states
    uint32_t most_alike = kMostDrafted;  // likewise, where rows are to be as they would be alone

    // The tokens of a guess for this model: as many states are kept in a round.
    uint32_t drafts(const Model& model) const;
    // Rows of logits that a step has to return.
    uint32_t outputs(const Model& model) const { return drafts(model) + 1; }
    // Says whether the head of the model's file is read.
    ReadHead head() const;
};

// Refuses what contradicts itself; a draft model alone means automatic. Where nothing was asked for,
// automatic is the default.
Status settle(SpeculationOptions& options);

struct OpenSpeculation {
    std::unique_ptr<LoadedModel> draft;        // a smaller model
    std::unique_ptr<LoadedModel> head;         // an MTP head alone, whose Model the session uses
    std::unique_ptr<Speculation> speculation;  // null: none
};

// Decides whether there is speculation by default, and reads the second file, before the model is placed: an
// MTP head goes with it. `host` are the model's options, which get what its session needs for speculation.
Result<OpenSpeculation> inspect_speculation(SpeculationOptions& options, HostOptions& host,
                                            LoadedModel& loaded);
// Opens what was read. The session's engine returns options.outputs() rows. Where there is no speculation, a
// note says why.
Status open_speculation(OpenSpeculation& open, const SpeculationOptions& options, const HostOptions& host,
                        Session& session);
// The same for an engine whose steps read texts of several users. Null: there is no speculation.
Result<std::unique_ptr<SharedSpeculation>> open_shared_speculation(OpenSpeculation& open,
                                                                   const SpeculationOptions& options,
                                                                   const HostOptions& host, Engine& engine);

}  // namespace redline
