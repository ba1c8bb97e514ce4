// Parts that Gemma 3n and Gemma 4 share: inputs for each layer, and layers that see the keys of earlier ones.
#pragma once

#include "arch/arch.h"
#include "arch/blocks.h"

namespace redline::archs {

// The first of the layers that see the keys and values of earlier ones.
uint32_t first_sharing(const Config& c);
// The last layer of the same kind that stores keys and values.
uint32_t layer_of_cache(const Config& c, uint32_t layer);
// Every layer has keys and values to see, which it stores or which an earlier layer has, and an FFN.
Status check_shared_caches(const ModelFile& file, const Config& c);
// Converters may keep keys and values that such layers do not use.
void ignore_keys_and_values(uint32_t layer, WeightList& w);

void layer_input_weights(const Config& c, WeightList& w);
// The inputs of all layers for each token, side by side: a row of a table, and a product of the embedding.
Slot layer_inputs(const Config& c, const WeightSet& w, Slot x, PlanBuilder& p);
// The sum that a layer adds to x for its input, before the norm.
Slot of_layer_input(const Config& c, const LayerWeights& l, uint32_t layer, Slot x, Slot inputs,
                    PlanBuilder& p);

}  // namespace redline::archs
