// What Qwen3.5 shares with the models that grew from it.
#pragma once

#include "arch/arch.h"

namespace redline::archs {

Result<Config> qwen35_config(const ModelFile& file);
void delta_weights(const Config& c, WeightList& w);
void qwen35_ffn_weights(const Config& c, WeightList& w);

// What the gated delta rule makes of norm(x), the norm that its heads want, and what gates them then.
struct DeltaOutput {
    Slot y, gate;
    Norm norm;
};
DeltaOutput delta_rule(const Config& c, const LayerWeights& l, Slot x, Norm norm, PlanBuilder& p);

}  // namespace redline::archs
