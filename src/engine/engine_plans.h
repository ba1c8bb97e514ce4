// Plans of an engine, and the memory that they take: before anything is loaded.
#pragma once

#include "engine/engine.h"

namespace redline {

// The options with what follows from them filled in, or what is wrong with them. The others take such.
Result<EngineOptions> checked(EngineOptions options);
// The sizes of caches that the options ask for.
CacheSizing sizing(const EngineOptions& options);
// True when steps of one row have a plan of their kind.
bool has_single(const EngineOptions& options);
// The model whose MTP head guesses for another; null: there is none.
const Model* head_of(const Model& model, const EngineOptions& options);
// The number of its heads that guess: the last one reads a row more than the first, and so on.
size_t head_count(const Model& head, const EngineOptions& options);
// The plan for steps of at most so many rows; plans that share caches have the same cache sizes.
Result<Plan> plan_of(const Model& model, const EngineOptions& options, uint32_t rows);
// Likewise that of one of its MTP heads.
Result<Plan> head_plan_of(const Model& model, const EngineOptions& options, size_t which, uint32_t rows);
// The heads of a plan with placements.
HeadsBeside heads_beside(const Model& model, const EngineOptions& options);
// An error that names the largest context that fits, where this does not.
Status check_fits(const MemoryNeed& need, const Model& model, const DeviceInfo& device, uint64_t context);

}  // namespace redline
