// Parts of Qwen3.5 that the models which grew from it share: layers that follow the gated delta rule.
#pragma once

#include "arch/arch.h"
#include "arch/blocks.h"

namespace redline::archs {

struct DeltaLayers {
    DeltaShape shape;
    uint32_t taps = 0;          // of the convolution
    bool in_one = false;        // the inputs are one matrix, grouped by heads of keys
    bool steps_in_one = false;  // step sizes and decays are one matrix, too
};

// The configuration of Qwen3.5, and its layers that follow the delta rule.
Result<Config> read_qwen35(const ModelFile& file, DeltaLayers& delta);
void delta_weights(const Config& c, const DeltaLayers& delta, WeightList& w);
void qwen35_ffn_weights(const Config& c, WeightList& w);

// The result of the gated delta rule on norm(x), the norm that its heads want, and the gate behind it.
struct DeltaOutput {
    Slot y, gate;
    Norm norm;
};
DeltaOutput delta_rule(const Config& c, const DeltaLayers& delta, const LayerWeights& l, Slot x, Norm norm,
                       PlanBuilder& p);

}  // namespace redline::archs
