// From a path and wishes to a session: the model is inspected, its device opened, its context chosen, its
// weights placed.
#pragma once

#include "engine/session.h"
#include "host/host_options.h"
#include "host/loaded_model.h"

namespace redline {

// Finds the file, chooses the device and reads all of the model but its weights, so that what is wrong with a
// prompt or an option is known before gigabytes are loaded.
Result<LoadedModel> inspect_model(const HostOptions& options);
// Opens the devices that inspect_model() chose or, where none was asked for, one that opens.
Status open_for(LoadedModel& loaded, const HostOptions& options);
// Opens one of its devices anew, without the kernels that its check has refused.
Result<std::unique_ptr<Backend>> open_again(const LoadedModel& loaded, const OpenDevice& device,
                                            const HostOptions& options);
// The tokens of context that the options ask for. Notes say when they are more than the model was trained
// for, or fewer because no more fit. The device is opened where memory decides.
Result<uint64_t> choose_context(LoadedModel& loaded, const HostOptions& options);
// Opens the device if that is not done, checks and times its kernels, plans a session of so many tokens, and
// loads the weights, unless the plan splits them: open_session() then loads them. A context of 0 leaves out
// the checks and the plan. `outputs`: rows of logits that a step can return.
Status place_model(LoadedModel& loaded, const HostOptions& options, uint64_t context, uint32_t outputs = 1);
// Inspects and places a model, all of it on one device and without a plan.
Result<LoadedModel> load_model(const HostOptions& options);

// An engine for a placed model; of a split one it loads the weights. `loaded` and the sink of notes have to
// outlive it.
Result<std::unique_ptr<Engine>> open_engine(const LoadedModel& loaded, const HostOptions& options,
                                            uint64_t context, uint32_t outputs = 1);
// A session of a placed model; of a split one it loads the weights. `loaded` and the sink of notes have to
// outlive it.
Result<Session> open_session(const LoadedModel& loaded, const HostOptions& options, uint64_t context,
                             uint32_t outputs = 1);

}  // namespace redline
