// Products of one row with the experts that it goes to, in int8: it is taken as the kernel before left it,
// and results are left so for the next (shaders/include/own_row.glsl). Several rows can be so beside each
// other (View::apart).
#pragma once

#include "steps.h"

namespace redline::vulkan {

// As shaders/include/route.glsl has it.
inline uint32_t bias_kind(const Route& route) {
    return !route.bias ? 0 : route.bias_of == BiasOf::choice ? 1 : 2;
}

struct ExpertRow {
    Weight w;
    Weight up = {};  // given: act(w[e] * x) * (up[e] * x), place after place
    Slot ids;
    uint32_t used = 0;
    Binding x, y;
    Norm norm = {};    // of x
    Slot scales = {};  // not with `up`: y += the places' sum, x has a row for each
    Weight bias = {}, up_bias = {};
    Slot beside = {};  // not with `up`: y += beside, too, times the scale if there is one
    Slot beside_scale = {};
    Act act = Act::silu;
    ProductCut cut = {};
    // With `up`: the choice is made by its logits, and left in ids and its scales.
    const Route* route = nullptr;
    Binding logits = {};
};
// Whether a row of so many activations can go to experts of such weights this way, and whether that can make
// the choice, too.
bool has_expert_row(const Device& device, const Tensor& w, uint32_t used, uint64_t activations);
bool has_choosing_row(const Device& device, const Tensor& w, const Route& route);
Status record_expert_row(Recorder& recorder, const View& view, const ExpertRow& row);

}  // namespace redline::vulkan
