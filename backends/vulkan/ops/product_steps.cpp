// Products of whole rows.
#include "steps.h"

#include <algorithm>
#include <numeric>

namespace redline::vulkan {

namespace {

// Rows of the matrix that a subgroup owns: two share each load of the activations. Plain floats need no
// decoding and come faster with more subgroups (H100, half of Llama-3.1-8B in F16: 257 tok/s with one row,
// 241 with two).
uint32_t rows_per_subgroup(const PlacedWeight& w) {
    return w.layout->quantized() ? 2 : 1;
}
// With activations in int8 that are prepared, which are more bytes than the weights: two rows of a matrix
// share each, or four, as long as each processor has some subgroups. On an H200 (Llama-3.1-8B Q4_K_M, ms of a
// step of 2, 4 and 8 rows) two take 3.2, 4.2 and 7.0, four 3.7, 4.7 and 6.5; with eight rows of Q8_0 and
// IQ4_XS four take 1.13 and 1.07 of what a kernel with two took. `matrices`: 2 where a product is gated.
uint32_t dot_rows(const Device& device, const WeightLayout& layout, uint64_t rows, uint32_t tokens,
                  uint32_t matrices) {
    constexpr uint64_t kSubgroups = 4;
    const bool four = tokens == kFewRows && std::string_view(layout.name).ends_with("_k");
    uint32_t each = (four ? 4 : 2) / matrices;
    while (each > 1 && rows / each < kSubgroups * processors(device)) each /= 2;
    return each;
}
constexpr uint32_t kTile = 64;  // of linear_tile, both ways
// Of products by vector that take prepared activations, or floats.
uint32_t vector_threads(const Device& device, const ProductCut& cut) {
    return cut.threads > 0 ? cut.threads : product_default(device, "threads").value;
}

// In f32.
Status record_tiles(Recorder& recorder, const View& view, const MatrixProduct& p, const PlacedWeight& w,
                    const WeightPart& part, const Activations& x) {
    const double per_row = 2.0 * double(part.rows) * double(w.cols);
    const Binding bias = view.vector(p.bias, view.step);
    return in_slices(recorder, p.rows, per_row, kTile, [&](uint32_t first, uint32_t rows) {
        args::LinearArgs push = linear_args(w, part, p, {});
        push.first_token = first;
        return recorder.dispatch({fmt::format("linear_tile.{}", w.layout->name), 5, 1, {}},
                                 {part.buffer, x.floats(), p.y, view.step, bias}, push,
                                 {(part.rows + kTile - 1) / kTile, (rows + kTile - 1) / kTile},
                                 per_row * rows);
    });
}

// One row by int8, or several that are apart: linear_dot_own or, with `up`, gated_dot_own.
Status record_own(Recorder& recorder, const View& view, std::string_view kernel, const MatrixProduct& p,
                  const PlacedWeight& w, const WeightPart& part, const WeightPart* up, const Activations& x) {
    const bool takes = view.taken.bytes != 0, leaves = view.left.bytes != 0;
    const OwnCut cut = own_cut(recorder.device(), p.cut, up ? 1 : 0, up != nullptr);
    args::LinearArgs push = linear_args(w, part, p, x.norm());
    push.act = uint32_t(p.act);
    push.function = function_arg(p.function);
    push.hand_units = view.left_units();
    push.hand_normed = view.left_norm ? 1 : 0;
    const std::string shader = fmt::format("{}.{}", kernel, w.layout->name);
    const std::vector<uint32_t> constants = {cut.threads,
                                             cut.rows,
                                             cut.group,
                                             takes,
                                             uint32_t(w.cols),
                                             cut.subgroup,
                                             std::max(1u, cut.ahead / cut.rows),
                                             view.apart};
    const Binding from = takes ? view.taken : x.raw(), to = leaves ? view.left : p.y;
    const Binding gain = view.vector(x.norm().gain, view.step),
                  next_gain = view.vector(view.left_norm.gain, view.step);
    const Groups groups = own_groups(view, cut, part.rows);
    if (up)
        return recorder.dispatch({shader, 7, 2, constants, p.cut.subgroup},
                                 {part.buffer, up->buffer, from, p.y, gain, to, next_gain, view.step}, push,
                                 groups);
    return recorder.dispatch(
        {shader, 8, 1, constants, p.cut.subgroup},
        {part.buffer, from, p.y, gain, to, next_gain, view.vector(p.bias, view.step), view.step}, push,
        groups);
}

Status record_part(Recorder& recorder, const View& view, const MatrixProduct& p, const PlacedWeight& w,
                   const WeightPart& part, const Activations& x, Path path) {
    if (path == Path::tiles) return record_tiles(recorder, view, p, w, part, x);
    if (in_coop_tiles(path))
        return record_matrices(
            recorder, view,
            coop_tiles(recorder.device(), path, "linear_coop", *w.layout, kMostTileTokens, false, p.cut),
            part.buffer, nullptr, linear_args(w, part, p, {}), p, x, part.rows);
    if (path == Path::dot_own) return record_own(recorder, view, "linear_dot_own", p, w, part, nullptr, x);
    const bool dot = path == Path::dot_prepared;
    const uint32_t tokens = std::min(kFewRows, power_of_two(p.rows)),
                   subgroup = p.cut.subgroup > 0 ? p.cut.subgroup : recorder.device().subgroup(),
                   per_subgroup = p.cut.rows > 0 ? p.cut.rows
                                  : dot ? dot_rows(recorder.device(), *w.layout, part.rows, tokens, 1)
                                        : rows_per_subgroup(w),
                   threads = vector_threads(recorder.device(), p.cut);
    const Binding bias = view.vector(p.bias, view.step);
    const Groups groups =
        striding(vector_groups(part.rows, per_subgroup, recorder.device(), threads, p.cut.subgroup),
                 (p.rows + tokens - 1) / tokens);
    if (dot)
        return recorder.dispatch({fmt::format("linear_dot.{}", w.layout->name),
                                  5,
                                  1,
                                  {threads, per_subgroup, tokens, uint32_t(w.cols), subgroup},
                                  p.cut.subgroup},
                                 {part.buffer, x.prepared(), p.y, view.step, bias},
                                 linear_args(w, part, p, {}), groups);
    const bool own = path == Path::floats_own;
    const Binding gain = view.vector(x.norm().gain, view.step);
    return recorder.dispatch({fmt::format("linear_vec.{}", w.layout->name),
                              6,
                              1,
                              {threads, per_subgroup, tokens, own && x.norm()},
                              p.cut.subgroup},
                             {part.buffer, own ? x.raw() : x.floats(), p.y, view.step, bias, gain},
                             linear_args(w, part, p, own ? x.norm() : Norm{}), groups);
}

// True where matrices could be filled by their elements in steps of this class: a choice.
bool can_fill(const Device& device, std::span<const Tensor> tensors, RowClass rows) {
    const bool few = rows == RowClass::few || rows == RowClass::some;
    return few && device.fragments && std::all_of(tensors.begin(), tensors.end(), [&](const Tensor& w) {
               return FewProducts::wanted(device, *w.format, w.shape.cols, rows_in(rows), &*device.fragments,
                                          {});
           });
}

// True where a product with such a weight can leave the rows of few as halfs: whole parts of them, by four.
bool can_leave_halfs(const Device& device, const Tensor& tensor) {
    return device.fragments && tensor.shape.rows % (4 * kHandedPart) == 0 && in_one_part(device, tensor);
}

class ProductKernel : public AnyProduct {
public:
    ProductKernel(const Product& op, const Plan& plan, const Device& device)
        : op_(op), device_(device), alike_(plan.alike(kFewRows)), tensors_(tensors_of(op, plan)) {}

    Choices choices(RowClass rows) const override {
        const std::vector<Path> ways = usual_paths(rows_in(rows));
        if (std::any_of(ways.begin(), ways.end(), [&](Path way) { return way != ways.front(); })) return {};
        Choices all = product_choices(device_, ways.front(), results(), false);
        if (can_fill(device_, tensors_, rows)) add_fragments(all, device_);
        add_ways(all, device_, tensors_, rows);
        if (can_go_int8(device_, kTiled, tensors_, rows)) add_int8(all, device_, ways.front());
        return all;
    }

    Precision precision(uint64_t rows) const override {
        Precision all;
        const std::vector<Path> ways = paths(rows);
        for (size_t i = 0; i < ways.size(); ++i)
            all = loosest(all, precision_of(ways[i], *tensors_[i].format));
        return all;
    }
    uint64_t scratch(const Plan& plan) const override {
        const std::vector<Path> ways = usual_paths(plan.max_rows);
        uint64_t unpacked = 0;  // rows
        for (size_t i = 0; i < ways.size(); ++i)
            if (ways[i] == Path::unpacked) unpacked += tensors_[i].shape.rows;
        const uint64_t cols = tensors_.front().shape.cols,
                       few = FewProducts::scratch(device_, tensors_, false, plan.max_rows);
        return Activations::scratch(plan, op_.x) +
               (unpacked > 0 ? std::max(few, unpacked_scratch(device_, unpacked, cols, plan.max_rows)) : few);
    }

    bool takes_int8() const override {
        return std::all_of(tensors_.begin(), tensors_.end(), [&](const Tensor& tensor) {
            return path_of(device_, *tensor.format, tensor.shape.cols, 1) == Path::dot_own;
        });
    }
    // A part of a tensor may end within half a unit.
    bool leaves_int8() const override {
        return tensors_.size() == 1 && takes_int8() && in_one_part(device_, tensors_[0]);
    }
    bool takes_few() const override { return can_take_halfs(device_, tensors_); }
    bool leaves_few() const override {
        return tensors_.size() == 1 && !op_.function && can_leave_halfs(device_, tensors_[0]);
    }
    bool takes_halfs(const View& view) const override { return by_fragments(view); }
    bool leaves_scales() const override { return true; }
    uint32_t parts_left(const View& view) const override {
        return by_fragments(view) ? uint32_t(tensors_[0].shape.rows / kHandedPart) : 0;
    }

    Status record(Recorder& recorder, const View& view) const override {
        RL_TRY(record_products(recorder, view));
        if (!op_.function || paths(path_rows(view)).front() == Path::dot_own) return {};
        recorder.barrier();
        return record_apply(recorder, view, {op_.y(), *op_.function});
    }

private:
    uint32_t path_rows(const View& view) const { return view.apart ? 1 : view.rows_of(op_.x); }
    bool by_fragments(const View& view) const {
        return paths(path_rows(view)).front() == Path::few &&
               fragments_of(device_, tensors_, as_few(path_rows(view)));
    }
    uint64_t as_few(uint64_t rows) const { return alike_ && rows > 1 && rows < kFewRows ? kFewRows : rows; }

    Status record_products(Recorder& recorder, const View& view) const {
        const std::vector<Path> ways = paths(path_rows(view));
        Activations x(op_.x, op_.norm);
        const Fragments* fragments = fragments_of(device_, tensors_, as_few(path_rows(view)));
        RL_TRY(x.prepare(recorder, view, ways, fragments));
        std::vector<UnpackedProduct> unpacked;
        FewProducts few(recorder, view, x, Activations::scratch(view.plan, op_.x), results(), fragments);
        for (size_t i = 0; i < op_.count; ++i) {
            const auto& [w, bias, y] = op_.parts[i];
            MatrixProduct product{w, view.slot(y), view.rows_of(y)};
            product.rows_kind = rows_kind(view.plan, y);
            product.stride = view.width(y);
            product.bias = bias;
            product.accumulate = op_.accumulate;
            product.function = op_.function;
            product.cut = cut(path_rows(view));
            if (ways[i] == Path::few) {
                RL_TRY(few.record(product, view.weight(w), nullptr));
                continue;
            }
            if (ways[i] == Path::unpacked) {
                unpacked.push_back({&view.weight(w), nullptr, product});
                continue;
            }
            product.cut = filling_cut(processors(device_), product.cut, results(), view.rows_of(op_.x));
            RL_TRY(record_product(recorder, view, product, x, ways[i]));
        }
        if (unpacked.empty()) return {};
        return record_unpacked(recorder, view, unpacked, x, Activations::scratch(view.plan, op_.x));
    }

    uint64_t results() const {
        return std::accumulate(tensors_.begin(), tensors_.end(), uint64_t(0),
                               [](uint64_t sum, const Tensor& tensor) { return sum + tensor.shape.rows; });
    }

    // In int8 all go, or none.
    std::vector<Path> paths(uint64_t rows) const {
        if (goes_int8(device_, kTiled, tensors_, rows))
            return std::vector<Path>(tensors_.size(), Path::int8_matrices);
        return usual_paths(rows);
    }
    // Activations are prepared for matrix units once: in a group of formats, halfs that are reordered serve
    // all.
    std::vector<Path> usual_paths(uint64_t rows) const {
        rows = as_few(rows);
        const Fragments* fragments = fragments_of(device_, tensors_, rows);
        std::vector<Path> out;
        for (const Tensor& tensor : tensors_)
            out.push_back(
                product_path(device_, *tensor.format, tensor.shape.cols, rows, fragments, ways(device_)));
        const auto has = [&](Path path) { return std::find(out.begin(), out.end(), path) != out.end(); };
        if (has(Path::few)) {
            // Those of all or of none.
            const bool all = std::all_of(out.begin(), out.end(), [](Path path) { return path == Path::few; });
            for (size_t i = 0; i < out.size() && !all; ++i)
                out[i] = wide_path(device_, *tensors_[i].format, tensors_[i].shape.cols, rows, ways(device_));
        }
        const bool halves = has(Path::halves) || has(Path::unpacked);
        if (has(Path::matrices) || (has(Path::bfloats) && halves))
            std::replace_if(out.begin(), out.end(), on_matrices, Path::matrices);
        return out;
    }

    static constexpr std::string_view kTiled = "linear_coop";

    Product op_;
    const Device& device_;
    bool alike_;  // steps of 2 to kFewRows rows go the same way
    std::vector<Tensor> tensors_;
};

class GatedKernel : public AnyProduct {
public:
    GatedKernel(const Product& op, const Plan& plan, const Device& device)
        : op_(op), tensor_(plan.weight(op.w()).tensor), device_(device), alike_(plan.alike(kFewRows)) {}

    Choices choices(RowClass rows) const override {
        const Path way = usual_path(rows_in(rows));
        Choices all = product_choices(device_, way, tensor_.shape.rows, true);
        if (can_fill(device_, std::span(&tensor_, 1), rows)) add_fragments(all, device_);
        add_ways(all, device_, std::span(&tensor_, 1), rows);
        if (can_go_int8(device_, kTiled, std::span(&tensor_, 1), rows)) add_int8(all, device_, way);
        return all;
    }

    Precision precision(uint64_t rows) const override { return precision_of(path(rows), *tensor_.format); }

    // The activations, then the product with `up` where it is made apart.
    uint64_t scratch(const Plan& plan) const override {
        const Path way = usual_path(plan.max_rows);
        const uint64_t own = way == Path::tiles      ? aligned(plan.slot_bytes(op_.y()))
                             : way == Path::unpacked ? unpacked_scratch(device_, 2 * tensor_.shape.rows,
                                                                        tensor_.shape.cols, plan.max_rows)
                                                     : 0;
        const uint64_t few = FewProducts::scratch(device_, std::span(&tensor_, 1), true, plan.max_rows);
        return Activations::scratch(plan, op_.x) + std::max(own, few);
    }

    bool takes_int8() const override { return path(1) == Path::dot_own; }
    bool leaves_int8() const override { return takes_int8() && in_one_part(device_, tensor_); }
    bool takes_few() const override { return can_take_halfs(device_, std::span(&tensor_, 1)); }
    bool leaves_few() const override { return can_leave_halfs(device_, tensor_); }
    bool takes_halfs(const View& view) const override { return by_fragments(view); }
    bool leaves_scales() const override { return true; }
    uint32_t parts_left(const View& view) const override {
        return by_fragments(view) ? uint32_t(tensor_.shape.rows / kHandedPart) : 0;
    }

    Status record(Recorder& recorder, const View& view) const override {
        const Path way = path(view.apart ? 1 : view.rows);
        Activations x(op_.x, op_.norm);
        if ((way == Path::tiles || in_coop_tiles(way)) && view.few_taken.bytes == 0) recorder.claim_scratch();
        const Fragments* fragments = fragments_for(view.apart ? 1 : view.rows);
        RL_TRY(x.prepare(recorder, view, std::span(&way, 1), fragments));
        if (way == Path::few) {
            FewProducts few(recorder, view, x, Activations::scratch(view.plan, op_.x), 2 * tensor_.shape.rows,
                            fragments);
            MatrixProduct product{op_.w(0), view.slot(op_.y()), view.rows};
            product.stride = view.width(op_.y());
            product.act = *op_.act;
            product.cut = cut(view.rows);
            return few.record(product, view.weight(op_.w(0)), &view.weight(op_.w(1)));
        }
        if (in_coop_tiles(way)) return record_gated_matrices(recorder, view, x, way);
        return way == Path::tiles ? record_many(recorder, view, x, way) : record_few(recorder, view, x, way);
    }

private:
    uint64_t as_few(uint64_t rows) const { return alike_ && rows > 1 && rows < kFewRows ? kFewRows : rows; }
    bool by_fragments(const View& view) const {
        return !view.apart && path(view.rows) == Path::few && fragments_for(view.rows);
    }
    const Fragments* fragments_for(uint64_t rows) const {
        return fragments_of(device_, std::span(&tensor_, 1), as_few(rows));
    }
    Path path(uint64_t rows) const {
        const bool int8 = goes_int8(device_, kTiled, std::span(&tensor_, 1), rows);
        return int8 ? Path::int8_matrices : usual_path(rows);
    }
    Path usual_path(uint64_t rows) const {
        return product_path(device_, *tensor_.format, tensor_.shape.cols, as_few(rows), fragments_for(rows),
                            ways(device_));
    }

    Status record_few(Recorder& recorder, const View& view, const Activations& x, Path way) const {
        const PlacedWeight &gate = view.weight(op_.w(0)), &up = view.weight(op_.w(1));
        const uint32_t tokens = std::min(kFewRows, power_of_two(view.rows));
        MatrixProduct product{op_.w(0), view.slot(op_.y()), view.rows};
        product.stride = view.width(op_.y());
        product.act = *op_.act;
        product.cut = cut(view.apart ? 1 : view.rows);
        const uint32_t threads = vector_threads(device_, product.cut),
                       subgroup = product.cut.subgroup > 0 ? product.cut.subgroup : device_.subgroup();
        const bool own = way == Path::floats_own;
        const Binding gain = view.vector(op_.norm.gain, view.step);
        for (size_t i = 0; i < gate.parts.size(); ++i) {
            const WeightPart& part = gate.parts[i];
            if (way == Path::dot_own) {
                RL_TRY(record_own(recorder, view, "gated_dot_own", product, gate, part, &up.parts[i], x));
                continue;
            }
            args::LinearArgs push = linear_args(gate, part, product, own ? x.norm() : Norm{});
            push.act = uint32_t(*op_.act);
            const uint32_t rows =
                way == Path::dot_prepared ? dot_rows(device_, *gate.layout, part.rows, tokens, 2) : 1;
            const Groups groups =
                striding(vector_groups(part.rows, rows, device_, threads, product.cut.subgroup),
                         (view.rows + tokens - 1) / tokens);
            if (way == Path::dot_prepared)
                RL_TRY(recorder.dispatch(
                    {fmt::format("gated_dot.{}", gate.layout->name),
                     4,
                     2,
                     {threads, rows, tokens, uint32_t(gate.cols), subgroup},
                     product.cut.subgroup},
                    {part.buffer, up.parts[i].buffer, x.prepared(), product.y, view.step}, push, groups));
            else
                RL_TRY(recorder.dispatch(
                    {fmt::format("gated_vec.{}", gate.layout->name),
                     5,
                     2,
                     {threads, 1, tokens, own && op_.norm},
                     product.cut.subgroup},
                    {part.buffer, up.parts[i].buffer, own ? x.raw() : x.floats(), product.y, view.step, gain},
                    push, groups));
        }
        return {};
    }

    Status record_gated_matrices(Recorder& recorder, const View& view, const Activations& x, Path way) const {
        const PlacedWeight &gate = view.weight(op_.w(0)), &up = view.weight(op_.w(1));
        MatrixProduct product{op_.w(0), view.slot(op_.y()), view.rows};
        product.stride = view.width(op_.y());
        product.act = *op_.act;
        product.cut = cut(view.rows);
        if (way == Path::unpacked) {
            const UnpackedProduct unpacked = {&gate, &up, product};
            return record_unpacked(recorder, view, std::span(&unpacked, 1), x,
                                   Activations::scratch(view.plan, op_.x));
        }
        const ProductCut filling =
            filling_cut(processors(device_), product.cut, 2 * tensor_.shape.rows, view.rows);
        const Tiles tiles = coop_tiles(device_, way, kTiled, *gate.layout, kMostTileTokens, true, filling);
        for (size_t i = 0; i < gate.parts.size(); ++i) {
            args::LinearArgs push = linear_args(gate, gate.parts[i], product, {});
            push.act = uint32_t(*op_.act);
            const Binding other = up.parts[i].buffer;
            RL_TRY(record_matrices(recorder, view, tiles, gate.parts[i].buffer, &other, push, product, x,
                                   gate.parts[i].rows));
        }
        return {};
    }

    Status record_many(Recorder& recorder, const View& view, const Activations& x, Path way) const {
        const Binding y = view.slot(op_.y());
        const Binding raised = view.scratch_at(Activations::scratch(view.plan, op_.x), y.bytes);
        MatrixProduct product{op_.w(0), y, view.rows};
        product.stride = view.width(op_.y());
        RL_TRY(record_product(recorder, view, product, x, way));
        product.w = op_.w(1);
        product.y = raised;
        RL_TRY(record_product(recorder, view, product, x, way));
        recorder.barrier();
        return record_act_mul(recorder, view, *op_.act, y, raised, op_.y());
    }

    static constexpr std::string_view kTiled = "gated_coop";

    Product op_;
    Tensor tensor_;
    const Device& device_;
    bool alike_;  // as of ProductKernel
};

}  // namespace

args::LinearArgs linear_args(const PlacedWeight& w, const WeightPart& part, const MatrixProduct& p,
                             const Norm& norm) {
    args::LinearArgs push = {};
    push.rows = uint32_t(part.rows);
    push.cols = uint32_t(w.cols);
    push.units = w.units(part);
    push.first_row = uint32_t(part.first);
    push.stride = p.stride;
    push.rows_of = p.rows_kind;
    push.has_bias = p.bias ? 1 : 0;
    push.accumulate = p.accumulate ? 1 : 0;
    push.has_norm = norm ? 1 : 0;
    push.eps = norm.eps;
    return push;
}

// No more subgroups of a work-group than any device allows where their size is required.
uint32_t own_threads(const Device& device) {
    const VkPhysicalDeviceLimits& limits = device.report().limits;
    return std::min({product_default(device, "threads", {.by_row = true}).value, 32 * device.subgroup(),
                     limits.maxComputeWorkGroupInvocations, limits.maxComputeWorkGroupSize[0]});
}

OwnCut own_cut(const Device& device, const ProductCut& cut, uint32_t rows, bool gated) {
    OwnCut own = {};
    own.subgroup = cut.subgroup > 0 ? cut.subgroup : device.subgroup();
    own.threads = cut.threads > 0 ? cut.threads : own_threads(device);
    const uint32_t subgroups = std::max(1u, own.threads / own.subgroup);
    own.rows = rows > 0 ? rows : cut.rows > 0 ? cut.rows : subgroups < kHalfUnit ? 2 : 1;
    own.group = std::max(kHalfUnit, subgroups * own.rows);
    own.ahead = cut.ahead > 0 ? cut.ahead : product_default(device, "ahead", {.gated = gated}).value;
    own.groups = cut.groups > 0 ? cut.groups : most_owners(device).value;
    return own;
}

// Each work-group prepares one row; where there are several it has more results of it.
Groups own_groups(const View& view, const OwnCut& cut, uint64_t results) {
    const uint64_t most = view.apart ? std::max(1u, view.apart_groups / view.rows) : cut.groups;
    return striding(std::min((results + cut.group - 1) / cut.group, most), view.apart ? view.rows : 1);
}

std::vector<uint32_t> subgroup_sizes(const Device& device) {
    const DeviceReport& report = device.report();
    std::vector<uint32_t> sizes = {device.subgroup()};
    if (!report.subgroup_control || !report.full_subgroups) return sizes;
    for (uint32_t size = report.min_subgroup; size <= report.max_subgroup; size *= 2)
        if (size != sizes.front()) sizes.push_back(size);
    return sizes;
}

Choices product_choices(const Device& device, Path path, uint64_t results, bool gated) {
    if (path == Path::tiles || path == Path::few) return {};
    const gpu::Work work = {.by_row = path == Path::dot_own, .gated = gated};
    const auto by_shape = [&](const char* name, std::vector<uint32_t> others) {
        return gpu::by_shape(name, product_default(device, name, work), std::move(others));
    };
    if (in_coop_tiles(path))
        return {by_shape("tile_rows", {128, 64}), by_shape("tile_tokens", {128, 64, 32}),
                by_shape("depth", {32})};
    const std::vector<uint32_t> sizes = subgroup_sizes(device);
    const VkPhysicalDeviceLimits& limits = device.report().limits;
    const uint32_t most =
        std::min({32 * *std::min_element(sizes.begin(), sizes.end()), 1024u,
                  limits.maxComputeWorkGroupInvocations, limits.maxComputeWorkGroupSize[0]});
    std::vector<uint32_t> threads;
    for (uint32_t n = std::max(64u, device.subgroup()); n <= most; n *= 2) threads.push_back(n);
    Choices all = {by_shape("threads", std::move(threads))};
    if (!gated) all.push_back(by_shape("rows", {1, 2, 4}));
    if (sizes.size() > 1) all.push_back(by_shape("subgroup", {sizes.begin() + 1, sizes.end()}));
    if (path != Path::dot_own) return all;
    all.push_back(by_shape("ahead", {1, 2, 4, 8}));
    const uint64_t whole = std::min<uint64_t>((results + kHalfUnit - 1) / kHalfUnit, UINT32_MAX);
    std::vector<uint32_t> groups;
    for (const uint32_t n : {32u, 64u, 96u, 128u, 192u, 384u, 512u, 1024u})
        if (n < whole) groups.push_back(n);
    groups.push_back(uint32_t(whole));
    all.push_back(by_shape("groups", std::move(groups)));
    all.back().any = true;
    return all;
}

uint64_t vector_groups(uint64_t rows, uint32_t per_subgroup, const Device& device, uint32_t threads,
                       uint32_t subgroup) {
    const uint32_t lanes = subgroup > 0 ? subgroup : device.subgroup();
    const uint64_t per_group = uint64_t(per_subgroup) * std::max(1u, threads / lanes);
    return (rows + per_group - 1) / per_group;
}

Status record_product(Recorder& recorder, const View& view, const MatrixProduct& product,
                      const Activations& x, Path path) {
    const PlacedWeight& w = view.weight(product.w);
    for (const WeightPart& part : w.parts) RL_TRY(record_part(recorder, view, product, w, part, x, path));
    return {};
}

// Groups of units are whole, so that nothing lies behind them.
bool can_take_halfs(const Device& device, std::span<const Tensor> tensors) {
    return device.fragments && std::all_of(tensors.begin(), tensors.end(), [&](const Tensor& w) {
               return w.shape.cols % (32 * device.fragments->owners) == 0 &&
                      FewProducts::wanted(device, *w.format, w.shape.cols, kFewRows, &*device.fragments, {});
           });
}

std::unique_ptr<Kernel> make_product_kernel(const Op& op, const Plan& plan, const Device& device) {
    const Product* product = rows_product(op, plan);
    if (!product) return nullptr;
    if (product->act) return std::make_unique<GatedKernel>(*product, plan, device);
    return std::make_unique<ProductKernel>(*product, plan, device);
}

}  // namespace redline::vulkan
