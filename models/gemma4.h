// What the models with an input for each layer share: Gemma 3n and Gemma 4.
#pragma once

#include "arch/arch.h"

namespace redline::archs {

// The first of the layers that see the keys and values of earlier ones.
uint32_t first_sharing(const Config& c);
// The last layer of the same kind that has keys and values of its own.
uint32_t layer_of_cache(const Config& c, uint32_t layer);
// Every layer has one whose keys and values it sees, and an FFN.
Status check_shared_caches(const ModelFile& file, const Config& c);
// Converters may keep what such layers do not use.
void ignore_keys_and_values(uint32_t layer, WeightList& w);

void layer_input_weights(const Config& c, WeightList& w);
// What all layers get of their tokens, side by side: of a table, and of the embedding.
Slot layer_inputs(const Config& c, const WeightSet& w, Slot x, PlanBuilder& p);
// What a layer makes of x and of what it gets, before its norm.
Slot of_layer_input(const Config& c, const LayerWeights& l, uint32_t layer, Slot x, Slot inputs,
                    PlanBuilder& p);

}  // namespace redline::archs
