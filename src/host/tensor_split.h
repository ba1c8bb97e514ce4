// A model whose layers are divided over its devices, each of which computes a part of every layer: what is
// where, what is added over the devices, and what that takes.
#pragma once

#include "host/load_plan.h"

namespace redline {

struct TensorSplit {
    std::vector<RankPlace> ranks;   // in the order of the devices
    std::vector<MemoryNeed> needs;  // of each rank
    RankSharing sharing;
    double sum_seconds = 0.0;  // of one sum over the ranks; 0: not known
    Speed speed;
    double layers_speed = 0.0;  // tokens per second to expect of shared out layers; 0: not known
};

// The devices of the model with their shares of each layer: as asked, or equal where the devices are, or by
// how fast each reads.
std::vector<RankPlace> rank_places(const LoadedModel& loaded);
// Has each layer divided where the options leave that open, the devices are GPUs of one kind that add rows by
// themselves or the ranks of a job, and it should be faster than sharing whole layers out by more than a
// tenth. A note says so.
void choose_division(LoadedModel& loaded, const HostOptions& options);
// A session of such a model has its ranks.
SessionOptions with_ranks(SessionOptions session, const LoadedModel& loaded);
// An error where the model cannot be divided, or a part does not fit its device, with what would work.
Result<TensorSplit> divide_tensors(LoadedModel& loaded, const HostOptions& options,
                                   const SessionOptions& session);
// The most tokens of context, up to `most`, with which all parts fit; multiples of 256 below that. 0: with
// none.
Result<uint64_t> tensor_context(LoadedModel& loaded, const HostOptions& options, uint64_t most);
// The needs of all ranks of a session.
Result<SessionNeed> tensor_need(const LoadedModel& loaded, const SessionOptions& session);

// The tokens per second of a placed model, `position` tokens into the context.
Speed tensor_speed(const LoadedModel& loaded, uint64_t context, uint64_t position);

// "plan: each of 32 layers over hip:0 (...) 50 % and hip:1 (...) 50 %, KV cache f16 4096 tokens 512.0 MiB"
std::string tensor_plan_line(const LoadedModel& loaded, const TensorSplit& split, uint64_t context);
// "sums of a token: 65 of 16.0 KiB over 2 devices, by the host; about 2600 us"
std::string sums_text(const TensorSplit& split);
// Sentences about what is not evenly divided.
std::vector<std::string> tensor_notes(const LoadedModel& loaded, const TensorSplit& split);

}  // namespace redline
