#include "expert_row.h"

namespace redline::vulkan {

namespace {

// Where experts begin, and what they count, takes shared memory beside the row; a choice some for each
// expert.
bool has_room(const Device& device, const Tensor& w, uint64_t activations, uint64_t more) {
    const WeightLayout& layout = *weight_layout(*w.format);
    return device.use_dot() && layout.quantized() && fits_shared(device, layout, activations, more) &&
           in_one_part(device, w);
}

}  // namespace

bool has_expert_row(const Device& device, const Tensor& w, uint32_t used, uint64_t activations) {
    return has_room(device, w, activations, used * 8);
}
// Where invocations have many experts those, and groups, have two words each, as many for each invocation.
bool has_choosing_row(const Device& device, const Tensor& w, const Route& route) {
    constexpr uint64_t kMostSubgroup = 128;
    const uint64_t words = 2 * (w.shape.count + route.groups.count + 2 * kMostSubgroup);
    return !route.table && has_room(device, w, w.shape.cols, route.used * 8 + words * 4);
}

Status record_expert_row(Recorder& recorder, const View& view, const ExpertRow& row) {
    const PlacedWeight& w = view.weight(row.w);
    const WeightPart& part = w.parts.front();
    const Shape& shape = view.plan.weight(row.w).tensor.shape;
    const bool takes = view.taken.bytes != 0, leaves = view.left.bytes != 0;
    const OwnCut cut = own_cut(recorder.device(), row.cut, 1, bool(row.up));
    const uint64_t places = row.up ? row.used : 1, results = places * shape.rows;
    args::ExpertRowArgs push = {};
    push.units = w.units(part);
    push.experts = uint32_t(shape.count);
    push.act = uint32_t(row.act);
    push.has_bias = row.bias ? 1 : 0;
    push.has_norm = row.norm ? 1 : 0;
    push.eps = row.norm.eps;
    push.hand_units = view.left_units();
    push.hand_normed = view.left_norm ? 1 : 0;
    std::vector<uint32_t> constants = {
        cut.threads,  row.used,  cut.group,           takes, uint32_t(shape.cols) * (row.up ? 1 : row.used),
        cut.subgroup, cut.ahead, uint32_t(shape.rows)};
    const std::string shader = fmt::format("expert_{}own.{}", row.up ? "gated_" : "", w.layout->name);
    const Binding from = takes ? view.taken : row.x, to = leaves ? view.left : row.y;
    const Binding gain = view.vector(row.norm.gain, view.step),
                  next_gain = view.vector(view.left_norm.gain, view.step),
                  bias = view.vector(row.bias, view.step), ids = view.slot(row.ids);
    const Groups groups = own_groups(view, cut, results);
    const double flops =
        2.0 * (row.up ? 2 : 1) * row.used * double(shape.rows) * double(shape.cols) * view.rows;
    if (!row.up) {
        const auto slot = [&](Slot s) { return s ? view.slot(s) : view.step; };
        constants.insert(constants.end(), {!row.beside ? 0u : row.beside_scale ? 2u : 1u, view.apart});
        return recorder.dispatch({shader, 12, 1, constants, row.cut.subgroup},
                                 {part.buffer, from, row.y, gain, to, next_gain, ids, bias,
                                  view.slot(row.scales), slot(row.beside), slot(row.beside_scale), view.step},
                                 push, groups, flops);
    }
    if (const Route* const route = row.route) {
        push.normalise = route->normalise;
        push.scale = route->scale;
        constants.insert(constants.end(), {1, push.experts, route->groups.count, route->groups.used,
                                           route->groups.by_two, uint32_t(route->gating), bias_kind(*route)});
    } else {
        constants.insert(constants.end(), {0, 1, 1, 1, 0, 0, 0});  // a choice of one, which is not made
    }
    constants.push_back(view.apart);
    return recorder.dispatch(
        {shader, 13, 2, constants, row.cut.subgroup},
        {part.buffer, view.weight(row.up).parts.front().buffer, from, row.y, gain, to, next_gain, ids, bias,
         view.vector(row.up_bias, view.step), row.route ? row.logits : view.step,
         row.route ? view.slot(row.route->scales) : view.step,
         row.route ? view.vector(row.route->bias, view.step) : view.step, view.step},
        push, groups, flops);
}

}  // namespace redline::vulkan
