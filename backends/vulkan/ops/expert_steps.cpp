// Mixture of experts: Route picks experts per row, and ScaleByExpert weighs them; products by expert
// run the picked ones, row by row, or, where rows are many, sorted by expert.
#include "expert_kernels.h"

#include <algorithm>

namespace redline::vulkan {

namespace {

constexpr uint32_t kRouterRows = 4;  // of a subgroup at a time, for many tokens

args::ExpertArgs expert_args(const PlacedWeight& w, const WeightPart& part, const Shape& shape,
                             uint32_t used) {
    args::ExpertArgs push = {};
    push.rows = uint32_t(shape.rows);
    push.cols = uint32_t(shape.cols);
    push.units = w.units(part);
    push.experts = uint32_t(shape.count);
    push.used = used;
    push.first_flat = uint32_t(part.first);
    push.flat_rows = uint32_t(part.rows);
    return push;
}

// How many tokens may be along y, where work-groups stand over entries (token, place), or over tokens.
double most_tokens(Recorder& recorder, uint32_t places) {
    return recorder.device().report().limits.maxComputeWorkGroupCount[1] / places;
}

// y += bias of the entries' experts, or, with scales, their weighted sum.
Status record_expert_bias(Recorder& recorder, const View& view, Weight bias, uint32_t width, Binding y,
                          Slot ids, uint32_t used, Slot scales) {
    const uint64_t experts = view.plan.weight(bias).tensor.shape.elements() / width;
    const args::ExpertBiasArgs push = {width, uint32_t(experts), used, scales ? 1u : 0u};
    const uint64_t elements = uint64_t(width) * (scales ? 1 : used) * view.rows;
    return recorder.dispatch(
        {"add_expert_bias", 5, 1, {kThreads}},
        {view.vector(bias, view.step), y, view.step, view.slot(ids), scales ? view.slot(scales) : view.step},
        push, striding((elements + kThreads - 1) / kThreads));
}

Status record_factors(Recorder& recorder, const View& view, const ScaleByExpert& op) {
    const uint32_t used = view.width(op.scales);
    const args::ExpertFactorArgs push = {uint32_t(view.plan.weight(op.factor).tensor.shape.elements()), used};
    return recorder.dispatch(
        {"scale_by_expert", 4, 1, {kThreads}},
        {view.vector(op.factor, view.step), view.slot(op.ids), view.slot(op.scales), view.step}, push,
        striding((uint64_t(used) * view.rows + kThreads - 1) / kThreads));
}

// Products of entries that wait to be summed take no more scratch than this, unless those of one tile of rows
// do: about what a large cache keeps until they are read.
constexpr uint64_t kPartialBytes = uint64_t(32) << 20;
constexpr uint64_t kTileRows = 128;

class AddExpertBiasKernel : public VulkanKernel {
public:
    explicit AddExpertBiasKernel(const AddExpertBias& op) : op_(op) {}
    Status record(Recorder& recorder, const View& view) const override {
        const uint32_t width = view.width(op_.y) / (op_.scales ? 1 : op_.used);
        return record_expert_bias(recorder, view, op_.bias, width, view.slot(op_.y), op_.ids, op_.used,
                                  op_.scales);
    }

private:
    AddExpertBias op_;
};

}  // namespace

RouteKernel::RouteKernel(const Route& op, const Plan& plan)
    : op_(op),
      experts_(uint32_t(plan.weight(op.w).tensor.shape.rows)),
      cols_(uint32_t(plan.weight(op.w).tensor.shape.cols)),
      floats_(!weight_layout(*plan.weight(op.w).tensor.format)->quantized()) {}

// Logits, and behind them the normed rows of steps of several.
uint64_t RouteKernel::scratch(const Plan& plan) const {
    return aligned(uint64_t(experts_) * 4 * plan.max_rows) +
           (op_.norm ? uint64_t(cols_) * 4 * plan.max_rows : 0);
}

Status RouteKernel::record(Recorder& recorder, const View& view) const {
    recorder.claim_scratch();
    if (view.rows == 1 || !op_.norm) return record_of(recorder, view, view.slot(op_.x), op_.norm, true);
    const Binding normed =
        view.scratch_at(aligned(uint64_t(experts_) * 4 * view.rows), uint64_t(cols_) * 4 * view.rows);
    RL_TRY(record_norm(recorder, view, {op_.x, op_.norm, cols_, op_.x, {}, Act::silu, op_.x_scale}, normed));
    recorder.barrier();
    return record_of(recorder, view, normed, {}, true);
}

Status RouteKernel::record_of(Recorder& recorder, const View& view, Binding x, const Norm& norm,
                              bool chooses) const {
    // The choice must not depend on how many rows are routed together: always the same kernel, in f32.
    // But what is normed here rounds otherwise than what was normed before.
    const uint32_t tokens = view.apart ? 1 : std::min(kFewRows, power_of_two(view.rows));
    return in_slices(view.rows, tokens * VulkanCaches::kCounters, [&](uint32_t first, uint32_t rows) {
        if (first > 0) recorder.barrier();  // counters are used again
        return record_rows(recorder, view, x, norm, chooses, first, rows, tokens);
    });
}

Status RouteKernel::record_rows(Recorder& recorder, const View& view, Binding x, const Norm& norm,
                                bool chooses, uint32_t first, uint32_t rows, uint32_t tokens) const {
    const PlacedWeight& w = view.weight(op_.w);
    const Device& device = recorder.device();
    // With many rows those of the router are read once for several of them, and the other way round.
    // Units of quantized ones take so many registers that RDNA would spill.
    const uint32_t per_subgroup = !view.apart && view.rows > kFewRows && floats_ ? kRouterRows : 1;
    args::RouteArgs push = {experts_, op_.used, op_.normalise, op_.scale};
    push.cols = uint32_t(w.cols);
    push.first_token = first;
    push.eps = norm.eps;
    push.factor = norm ? op_.x_scale : 1.0f;
    // A logit is little work: all of a work-group make it, so that a row's weights are under way at once.
    const uint32_t shares = norm ? std::max(1u, kThreads / device.subgroup()) : 1;
    const auto groups_of = [&](const WeightPart& part) {
        return vector_groups(part.rows * shares, per_subgroup, device);
    };
    for (const WeightPart& part : w.parts) push.groups += uint32_t(groups_of(part));
    for (const WeightPart& part : w.parts) {
        push.rows = uint32_t(part.rows);
        push.units = w.units(part);
        push.first_row = uint32_t(part.first);
        RL_TRY(recorder.dispatch(
            {fmt::format("route.{}", w.layout->name),
             10,
             1,
             {kThreads, tokens, experts_, op_.used, device.subgroup(), per_subgroup, op_.groups.count,
              op_.groups.used, op_.groups.by_two, uint32_t(op_.gating), bias_kind(op_), bool(op_.table),
              bool(norm), chooses, shares}},
            {part.buffer, x, logits(view), view.step, view.slot(op_.ids), view.slot(op_.scales),
             view.vector(op_.bias, view.step), view.caches.counters(), view.vector(op_.table, view.step),
             view.vector(norm.gain, view.step)},
            push, {groups_of(part), (rows + tokens - 1) / tokens}));
    }
    return {};
}

// Dot products in int8 for every number of rows, when experts' rows come one by one.
bool AnyExperts::by_dots() const {
    return device_.use_dot() && weight_layout(*tensor_.format)->quantized() &&
           fits_shared(device_, *weight_layout(*tensor_.format), tensor_.shape.cols);
}

// Vector products read a weight per entry, matrices one per expert and tile.
bool AnyExperts::sorts(uint64_t rows) const {
    const uint64_t experts = tensor_.shape.count;
    const gpu::DeviceClass device = class_of(device_);
    const uint32_t unsorted = row_class_of(rows) == RowClass::some
                                  ? chosen(RowClass::some, "unsorted_rows",
                                           gpu::some_unsorted_rows(device, experts, op_.experts.used).value)
                                  : gpu::unsorted_rows(device, experts, op_.experts.used).value;
    return rows > unsorted &&
           (goes_int8(rows) || on_matrices(path_of(device_, *tensor_.format, tensor_.shape.cols, rows)));
}

Precision AnyExperts::precision(uint64_t rows) const {
    const bool sorted = sorts(rows);
    const Path path = sorted && goes_int8(rows) ? Path::int8_matrices
                      : sorted                  ? Path::matrices
                      : by_dots()               ? Path::dot_own
                                                : Path::floats;
    return precision_of(path, *tensor_.format);
}

Choices AnyExperts::choices(RowClass rows) const {
    if (rows == RowClass::many || rows == RowClass::some) {
        // Without matrix units places are sorted for dot products in int8 alone.
        const bool sorted =
            on_matrices(path_of(device_, *tensor_.format, tensor_.shape.cols, kFewTileRows + 1));
        const bool int8 = can_go_int8(device_, ExpertProduct::kTiled, std::span(&tensor_, 1), rows);
        Choices all;
        if (!sorted && !int8) return all;
        if (rows == RowClass::some)
            all.push_back(
                crossover("unsorted_rows",
                          gpu::some_unsorted_rows(class_of(device_), tensor_.shape.count, op_.experts.used),
                          {kFewRows, 16, 32, 64}));
        for (Choice& one : ExpertProduct::choices()) all.push_back(std::move(one));
        if (int8) add_int8(all, device_, Path::matrices);
        return all;
    }
    if (rows == RowClass::one && by_row()) return product_choices(device_, Path::dot_own, results(), true);
    std::vector<uint32_t> threads;
    for (uint32_t n = std::max(64u, device_.subgroup()); n <= own_threads(device_); n *= 2)
        threads.push_back(n);
    return {choice("threads", usual_threads(), std::move(threads))};
}

Default AnyExperts::usual_threads() const {
    Default usual = product_default(device_, "threads", {.by_row = by_dots()});
    if (by_dots()) usual.value = own_threads(device_);
    return usual;
}

uint32_t AnyExperts::threads(uint64_t rows) const {
    return chosen(row_class_of(rows), "threads", usual_threads().value);
}

ExpertProduct AnyExperts::sorted(uint64_t rows) const {
    ExpertProduct product(op_, tensor_);
    product.room = chosen(row_class_of(rows), "tile_tokens", 0);
    product.int8 = goes_int8(rows);
    return product;
}

uint64_t ExpertLinearKernel::scratch(const Plan& plan) const {
    if (!sorts(plan.max_rows)) return 0;
    return sorted(plan.max_rows).scratch(plan.max_rows) +
           (op_.experts.scales ? partial_bytes(plan.max_rows) : 0);
}

Status ExpertLinearKernel::record(Recorder& recorder, const View& view) const {
    const bool many = !view.apart && sorts(view.rows);
    RL_TRY(many ? record_many(recorder, view) : record_few(recorder, view));
    if (!op_.function || (!many && by_dots())) return {};
    recorder.barrier();
    return record_apply(recorder, view, {op_.y(), *op_.function});
}

Status ExpertLinearKernel::record_few(Recorder& recorder, const View& view) const {
    if (view.by_row() && by_row()) return record_row(recorder, view, {}, {});
    const bool dots = by_dots();
    const PlacedWeight& w = view.weight(op_.w());
    const Shape& shape = tensor_.shape;
    const uint32_t threads = this->threads(view.rows), places = places_at_once();
    const uint32_t rows_of_x = op_.experts.per_expert ? places : 1;
    const std::vector<uint32_t> constants = {threads, uint32_t(shape.cols) * rows_of_x, places,
                                             uint32_t(shape.cols / 32), device_.subgroup()};
    for (size_t i = 0; i < w.parts.size(); ++i) {
        if (i > 0 && op_.experts.scales) recorder.barrier();  // each part adds to the same sums
        args::ExpertArgs push = expert_args(w, w.parts[i], shape, op_.experts.used);
        push.per_expert = op_.experts.per_expert;
        push.weighted = op_.experts.scales ? 1 : 0;
        push.has_bias = op_.bias() ? 1 : 0;
        push.function = function_arg(op_.function);
        const uint32_t entries = op_.experts.scales ? 1 : op_.experts.used;  // of a token, along y
        const double per_token = 2.0 * op_.experts.used * double(shape.rows) * double(shape.cols);
        const auto record_some = [&](uint32_t first, uint32_t tokens) {
            push.first_token = first;
            return recorder.dispatch(
                {fmt::format("expert_{}.{}", dots ? "dot" : "vec", w.layout->name), 7, 1, constants},
                {w.parts[i].buffer, view.slot(op_.x), view.slot(op_.y()), view.step,
                 view.slot(op_.experts.ids), op_.experts.scales ? view.slot(op_.experts.scales) : view.step,
                 view.vector(op_.bias(), view.step)},
                push, striding(vector_groups(shape.rows, 1, device_, threads), uint64_t(tokens) * entries),
                per_token * tokens);
        };
        RL_TRY(in_slices(recorder, view.rows, per_token, 1, record_some, most_tokens(recorder, entries)));
    }
    return {};
}

bool ExpertLinearKernel::has_row_kernel() const {
    return op_.experts.scales && op_.experts.per_expert &&
           has_expert_row(device_, tensor_, op_.experts.used, tensor_.shape.cols * op_.experts.used);
}

Status ExpertLinearKernel::record_row(Recorder& recorder, const View& view, Slot beside,
                                      Slot beside_scale) const {
    ExpertRow row{.w = op_.w(), .ids = op_.experts.ids, .used = op_.experts.used};
    row.x = view.slot(op_.x);
    row.y = view.slot(op_.y());
    row.scales = op_.experts.scales;
    row.beside = beside;
    row.beside_scale = beside_scale;
    row.bias = op_.bias();
    row.cut = cut(1);
    return record_expert_row(recorder, view, row);
}

uint32_t ExpertLinearKernel::places_at_once() const {
    uint32_t places = op_.experts.scales ? op_.experts.used : 1;
    while (places > 1 && (op_.experts.used % places != 0 ||
                          (op_.experts.per_expert && !fits_shared(device_, *weight_layout(*tensor_.format),
                                                                  tensor_.shape.cols * places))))
        --places;
    return places;
}

uint32_t ExpertLinearKernel::partial_rows(uint64_t rows) const {
    const uint64_t fit = kPartialBytes / (rows * op_.experts.used * 4) / kTileRows * kTileRows;
    return uint32_t(std::min(std::max(fit, kTileRows), tensor_.shape.rows));
}

uint64_t ExpertLinearKernel::partial_bytes(uint64_t rows) const {
    const uint64_t column = rows * op_.experts.used * 4;
    return aligned(std::min(column * tensor_.shape.rows, std::max(kPartialBytes, column * kTileRows)));
}

Status ExpertLinearKernel::record_many(Recorder& recorder, const View& view) const {
    ExpertProduct entries = sorted(view.rows);
    RL_TRY(entries.prepare(recorder, view));
    const uint32_t rows = uint32_t(tensor_.shape.rows), step = partial_rows(view.rows);
    if (!op_.experts.scales) {
        RL_TRY(entries.record(recorder, view, op_.w(), view.slot(op_.y()), 0, rows));
        return record_bias(recorder, view);
    }
    const Binding partials =
        view.scratch_at(entries.scratch(view.rows), uint64_t(view.rows) * op_.experts.used * step * 4);
    const auto record_some = [&](uint32_t first, uint32_t count) -> Status {
        if (first > 0) recorder.barrier();
        RL_TRY(entries.record(recorder, view, op_.w(), partials, first, first + count));
        recorder.barrier();
        const args::ExpertSumArgs push = {count, first, rows};
        return recorder.dispatch({"expert_sum", 4, 1, {kThreads, op_.experts.used}},
                                 {partials, view.slot(op_.experts.scales), view.slot(op_.y()), view.step},
                                 push, {(count + kThreads - 1) / kThreads, view.rows});
    };
    RL_TRY(in_slices(rows, step, record_some));
    return record_bias(recorder, view);
}

Status ExpertLinearKernel::record_bias(Recorder& recorder, const View& view) const {
    if (!op_.bias()) return {};
    recorder.barrier();
    return record_expert_bias(recorder, view, op_.bias(), uint32_t(tensor_.shape.rows), view.slot(op_.y()),
                              op_.experts.ids, op_.experts.used, op_.experts.scales);
}

uint64_t ExpertGatedKernel::scratch(const Plan& plan) const {
    if (!sorts(plan.max_rows)) return 0;
    return sorted(plan.max_rows).scratch(plan.max_rows) + aligned(plan.slot_bytes(op_.y()));
}

Status ExpertGatedKernel::record(Recorder& recorder, const View& view) const {
    if (sorts(view.rows)) return record_many(recorder, view);
    return record_few(recorder, view, op_.x, {}, nullptr, {});
}

bool ExpertGatedKernel::can_choose(const Route& route, const Plan& plan) const {
    return plan.weight(route.w).tensor.shape.rows == tensor_.shape.count &&
           has_choosing_row(device_, tensor_, route);
}

Status ExpertGatedKernel::record_few(Recorder& recorder, const View& view, Slot x, const Norm& norm,
                                     const Route* route, Binding logits) const {
    if (view.by_row() && by_row()) return record_row(recorder, view, x, norm, route, logits);
    const bool dots = by_dots();
    const PlacedWeight &gate = view.weight(op_.w(0)), &up = view.weight(op_.w(1));
    const Shape& shape = tensor_.shape;
    const uint32_t threads = this->threads(view.rows);
    const std::vector<uint32_t> constants = {threads, uint32_t(shape.cols), device_.subgroup()};
    for (size_t i = 0; i < gate.parts.size(); ++i) {
        args::ExpertArgs push = expert_args(gate, gate.parts[i], shape, op_.experts.used);
        push.act = uint32_t(*op_.act);
        push.has_bias = op_.bias(0) ? 1 : 0;
        push.has_norm = norm ? 1 : 0;
        push.eps = norm.eps;
        const double per_token = 4.0 * op_.experts.used * double(shape.rows) * double(shape.cols);
        const auto record_some = [&](uint32_t first, uint32_t tokens) {
            push.first_token = first;
            return recorder.dispatch(
                {fmt::format("expert_gated_{}.{}", dots ? "dot" : "vec", gate.layout->name), 8, 2, constants},
                {gate.parts[i].buffer, up.parts[i].buffer, view.slot(x), view.slot(op_.y()), view.step,
                 view.slot(op_.experts.ids), view.vector(op_.bias(0), view.step),
                 view.vector(op_.bias(1), view.step), view.vector(norm.gain, view.step)},
                push,
                striding(vector_groups(shape.rows, 1, device_, threads), uint64_t(tokens) * op_.experts.used),
                per_token * tokens);
        };
        RL_TRY(in_slices(recorder, view.rows, per_token, 1, record_some,
                         most_tokens(recorder, op_.experts.used)));
    }
    return {};
}

bool ExpertGatedKernel::has_row_kernel() const {
    return has_expert_row(device_, tensor_, op_.experts.used, tensor_.shape.cols);
}

Status ExpertGatedKernel::record_row(Recorder& recorder, const View& view, Slot x, const Norm& norm,
                                     const Route* route, Binding logits) const {
    ExpertRow row{.w = op_.w(0), .up = op_.w(1), .ids = op_.experts.ids, .used = op_.experts.used};
    row.x = view.slot(x);
    row.y = view.slot(op_.y());
    row.norm = norm;
    row.bias = op_.bias(0);
    row.up_bias = op_.bias(1);
    row.act = *op_.act;
    row.cut = cut(1);
    row.route = route;
    row.logits = logits;
    return record_expert_row(recorder, view, row);
}

Status ExpertGatedKernel::record_many(Recorder& recorder, const View& view) const {
    ExpertProduct entries = sorted(view.rows);
    RL_TRY(entries.prepare(recorder, view));
    const uint32_t rows = uint32_t(tensor_.shape.rows);
    const Binding y = view.slot(op_.y());
    const Binding raised = view.scratch_at(entries.scratch(view.rows), y.bytes);
    RL_TRY(entries.record(recorder, view, op_.w(0), y, 0, rows));
    RL_TRY(entries.record(recorder, view, op_.w(1), raised, 0, rows));
    recorder.barrier();
    if (op_.bias(0)) {
        RL_TRY(
            record_expert_bias(recorder, view, op_.bias(0), rows, y, op_.experts.ids, op_.experts.used, {}));
        RL_TRY(record_expert_bias(recorder, view, op_.bias(1), rows, raised, op_.experts.ids,
                                  op_.experts.used, {}));
        recorder.barrier();
    }
    return record_act_mul(recorder, view, *op_.act, y, raised, op_.y());
}

static bool has_kernel(const Route& op, const Plan& plan) {
    return has_layout(plan, op.w) && (!op.norm || RouteKernel(op, plan).norms());
}
static bool has_kernel(const Product& op, const Plan& plan) {
    if (!op.act) return has_layout(plan, op.w());
    return has_layout(plan, op.w(0), op.w(1)) && bool(op.bias(0)) == bool(op.bias(1));
}
static bool has_kernel(const SharedExpert& op, const Plan& plan) {
    if (!op) return true;
    return (!op.router || has_layout(plan, op.router)) && has_layout(plan, op.gate, op.up) &&
           has_layout(plan, op.down);
}

std::unique_ptr<Kernel> make_expert_kernel(const Op& op, const Plan& plan, const Device& device) {
    if (const auto* o = std::get_if<Route>(&op))
        return has_kernel(*o, plan) ? std::make_unique<RouteKernel>(*o, plan) : nullptr;
    if (const auto* o = std::get_if<ScaleByExpert>(&op))
        return simple([o = *o](Recorder& r, const View& v) { return record_factors(r, v, o); });
    if (const auto* o = std::get_if<AddExpertBias>(&op)) return std::make_unique<AddExpertBiasKernel>(*o);
    if (const Product* o = product_by(By::expert, op)) {
        if (!has_kernel(*o, plan)) return nullptr;
        if (o->act) return std::make_unique<ExpertGatedKernel>(*o, plan, device);
        return std::make_unique<ExpertLinearKernel>(*o, plan, device);
    }
    if (const auto* o = std::get_if<ExpertBlock>(&op)) {
        if (!has_kernel(o->route, plan) || !has_kernel(o->gated, plan) || !has_kernel(o->linear, plan) ||
            !has_kernel(o->shared, plan))
            return nullptr;
        return make_expert_block(*o, plan, device);
    }
    return nullptr;
}

}  // namespace redline::vulkan
