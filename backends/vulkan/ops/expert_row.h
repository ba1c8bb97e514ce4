// Products of one row with the experts that it goes to, in int8: it is taken as the kernel before left it,
// and results are left so for the next (shaders/include/own_row.glsl).
#pragma once

#include "steps.h"

namespace redline::vulkan {

struct ExpertRow {
    Weight w;
    Weight up = {};  // given: act(w[e] * x) * (up[e] * x), place after place
    Slot ids;
    uint32_t used = 0;
    Binding x, y;
    Norm norm = {};    // of x
    Slot scales = {};  // not with `up`: y += the places' sum, x has a row for each
    Weight bias = {}, up_bias = {};
    Act act = Act::silu;
    ProductCut cut = {};
};
// Whether a row of so many activations can go to experts of such weights this way.
bool has_expert_row(const Device& device, const Tensor& w, uint32_t used, uint64_t activations);
Status record_expert_row(Recorder& recorder, const View& view, const ExpertRow& row);

}  // namespace redline::vulkan
