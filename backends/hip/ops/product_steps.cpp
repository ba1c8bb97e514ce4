// Products of whole rows.
#include "any_product.h"

#include <array>

namespace redline::hip {

namespace {

constexpr uint32_t kRowsPerWave = 2;  // share each load of the activations; as kernels/ has it
constexpr uint32_t kTile = 64;        // of linear_tile, both ways
// Rows of whole groups of units can be left as halfs, on every device.
constexpr uint32_t kHandedColumns = 128;

// Formats that one kernel knows both of, by the names of their kernels; written by the build, behind an empty
// one.
struct Pair {
    std::string_view first;
    std::string_view other;
};
constexpr Pair kPairs[] = {{}, RL_HIP_PAIRS};

// A kernel of products in int8 of prepared rows, and how many rows of each matrix a wave of it owns.
struct DotKernel {
    const char* name;
    const char* floats;    // its like for floats
    const char* streamed;  // its like in kernels/stream.h
    uint32_t rows_per_wave;
    uint32_t matrices;  // that each row is of
};
constexpr DotKernel kLinearDot = {"linear_dot", "linear", "linear_stream", 2, 1},
                    kGatedDot = {"gated_dot", "gated", "gated_stream", 1, 2};

using Part = Product::Part;

std::string module_of(const View& view, Weight w) {
    return view.weights[w].layout->name;
}

args::LinearArgs linear_args(const View& view, const Part& part, const float* x, bool accumulate) {
    const Shape& shape = view.plan.weight(part.w).tensor.shape;
    args::LinearArgs args = {};
    args.step = view.step;
    args.w = view.weights[part.w].matrix();
    args.x = x;
    args.y = view.slot(part.y);
    args.bias = view.vector(part.bias);
    args.rows = uint32_t(shape.rows);
    args.cols = uint32_t(shape.cols);
    args.of_outputs = view.of_outputs(part.y);
    args.accumulate = accumulate;
    return args;
}

Status launch_vector(Launcher& launcher, const std::string& module, const args::LinearArgs& args,
                     uint32_t tokens) {
    return launcher.launch(module, fmt::format("linear_{}_{}", tokens, module),
                           striding(row_blocks(args.rows, kRowsPerWave, launcher.device())), args);
}

Status launch_tiles(Launcher& launcher, const std::string& module, args::LinearArgs args, uint32_t rows) {
    const double per_row = 2.0 * double(args.rows) * double(args.cols);
    return in_slices(
        launcher, rows, per_row, kTile,
        [&](uint32_t first, uint32_t count) {
            args.first_token = first;
            return launcher.launch(
                module, "linear_tile_" + module,
                {(args.rows + kTile - 1) / kTile, (count + kTile - 1) / kTile, 1, kTileThreads}, args,
                per_row * count);
        },
        kMostHighTiles);
}

// Fills parts, begin, of_outputs and cols of DotArgs or TileArgs; begin counts in units of `tile` rows.
// Returns how many of those there are.
template <typename Args>
uint32_t set_parts(const View& view, std::span<const Part> parts, uint32_t tile, Args& args) {
    constexpr uint32_t kNever = 0xFFFFFFFFu;
    uint32_t tiles = 0;
    for (size_t i = 0; i < std::size(args.parts); ++i) {
        args.begin[i] = kNever;
        if (i >= parts.size()) continue;
        const args::LinearArgs linear = linear_args(view, parts[i], nullptr, false);
        args.begin[i] = tiles;
        args.parts[i] = {linear.w, linear.y, linear.bias, linear.rows};
        args.cols = linear.cols;
        args.of_outputs = linear.of_outputs;
        tiles += (linear.rows + tile - 1) / tile;
    }
    return tiles;
}

struct Tiled {
    std::span<const Part> parts;
    bool gated = false;  // the second part is `up`
    Act act = Act::silu;
    bool accumulate = false;
    float* partials = nullptr;      // share_bytes()
    uint32_t rows = 0, tokens = 0;  // of a tile: 128 or 64, the latter with rows of 64; 0: as they fit
    uint32_t shares = 0;            // blocks that share a tile's columns at most; 0: as they fit
    bool bytes = false;             // by kernels/byte_tile.h
    uint32_t few_rows = 0;          // up to so many rows no blocks share columns
};

// Blocks of kernels/tile.h that a device runs at a time.
uint32_t tile_slots(const DeviceReport& report) {
    return 2 * report.multiprocessors;
}
// Bytes that blocks leave sums in which share a tile's columns, in steps of more than `few_rows`.
uint64_t share_bytes(const Plan& plan, const DeviceReport& report, uint32_t few_rows) {
    return plan.max_rows > few_rows ? uint64_t(tile_slots(report)) * 128 * 128 * 4 : 0;
}

// How products of many tokens are cut into blocks.
struct MatrixLaunch {
    std::string kernel;
    uint32_t high, tokens;  // rows and tokens of a tile
    uint32_t tiles;         // of rows
    uint32_t share;         // columns of a block
    uint32_t shares;
};

// Tiles of 128 rows x 128 tokens. Where those would leave multiprocessors without work, and a block cannot
// keep one busy, tiles are smaller. Where there are still too few, blocks share the columns of a tile.
MatrixLaunch matrix_launch(const View& view, const Tiled& p, uint32_t rows, const DeviceReport& report,
                           args::TileArgs& args) {
    constexpr uint32_t kLeastShare = 256;  // columns
    MatrixLaunch how = {"128_", 128, 128, 0, 0, 1};
    const bool groups = report.wave_groups() && !p.bytes;
    const auto blocks = [&] { return uint64_t(how.tiles) * blocks_for(rows, how.tokens); };
    how.tiles = set_parts(view, p.parts.first(p.gated ? 1 : p.parts.size()), p.gated ? 64 : how.high, args);
    if (p.gated) {
        how.kernel = "";
    } else if (p.rows == 64 || (p.rows == 0 && !groups && blocks() < tile_slots(report))) {
        how.kernel = "wide_";
        how.tiles = set_parts(view, p.parts, how.high = 64, args);
        if (p.tokens == 64 || (p.tokens == 0 && !groups && blocks() < report.multiprocessors)) {
            how.kernel = "64_";
            how.tokens = 64;
        }
    }
    how.kernel =
        fmt::format("{}_{}_{}", p.gated ? "gated" : "linear", p.bytes ? "bytes" : "matrix", how.kernel);
    const uint32_t most = std::max<uint32_t>(1, args.cols / kLeastShare);
    const uint64_t fit =
        std::clamp<uint64_t>(tile_slots(report) / blocks(), 1, p.shares > 0 ? p.shares : most);
    const auto wanted = uint32_t(rows > p.few_rows ? std::min<uint64_t>(fit, most) : 1);
    constexpr uint32_t kDepth = 64;  // as kernels/tile.h has it
    how.share = (args.cols / wanted + kDepth - 1) / kDepth * kDepth;
    how.shares = blocks_for(args.cols, how.share);
    return how;
}

Status launch_matrices(Launcher& launcher, const View& view, const Tiled& p, const Activations& x,
                       uint32_t rows) {
    const DeviceReport& report = launcher.device().report();
    const std::string module = module_of(view, p.parts[0].w);
    args::TileArgs args = {};
    args.step = view.step;
    args.halves = reinterpret_cast<const uint16_t*>(x.prepared());
    args.row_scales = x.scales();
    args.accumulate = p.accumulate;
    args.act = uint32_t(p.act);
    const MatrixLaunch how = matrix_launch(view, p, rows, report, args);
    if (p.gated) {
        const args::LinearArgs up = linear_args(view, p.parts[1], nullptr, false);
        args.parts[1] = {up.w, up.y, up.bias, up.rows};
    }
    args.share = how.share;
    args.shares = how.shares;
    args.partials = p.partials;
    args.counters = view.caches.counters();
    double per_row = 0.0;
    for (const Part& part : p.parts)
        per_row += 2.0 * double(view.plan.weight(part.w).tensor.shape.elements());
    const uint32_t shared = p.bytes ? 0 : report.tile_shared(how.high, how.tokens);
    return in_slices(
        launcher, rows, per_row, how.tokens,
        [&](uint32_t first, uint32_t count) {
            args.first_token = first;
            args.token_tiles = blocks_for(count, how.tokens);
            return launcher.launch(module, how.kernel + module,
                                   {args.token_tiles, how.tiles, how.shares, kTileThreads, shared}, args,
                                   per_row * count);
        },
        kMostHighTiles);
}

// Bytes of a format's planes per eight units.
args::Planes planes_of(const View& view, Weight w) {
    args::Planes planes = {};
    const uint32_t blocks = 256 / view.plan.weight(w).tensor.format->block;
    for (uint32_t p = 0; p < 4; ++p) planes.bytes[p] = view.weights[w].layout->bytes[p] * blocks;
    return planes;
}

// Blocks of kernels/few.h that a multiprocessor runs at a time.
uint32_t few_blocks(uint32_t rows, const DeviceReport& report) {
    return report.target.starts_with("gfx") ? 4
                                            : args::few_dense(few_tokens(rows, report), report.dot_threads());
}

// How a product of few tokens is launched.
struct FewLaunch {
    uint32_t tokens, threads;
    uint32_t across;  // rows of a block's tile
    uint32_t shared;  // bytes
    bool copied;      // by kernels that copy tiles ahead
};

// Kernels that copy are taken if the device does and rows are whole stages of quantized weights.
FewLaunch few_launch(const View& view, const Tiled& p, uint32_t rows, const DeviceReport& report) {
    const Weight w = p.parts[0].w;
    FewLaunch how = {few_tokens(rows, report), 0, 0, 0, false};
    how.threads = args::few_threads(how.tokens, report.dot_threads());
    how.across = 16 * args::few_row_tiles(how.tokens, p.gated) / (p.gated ? 2 : 1);
    const uint32_t wave = report.wave(), waves = how.threads / wave, usual = report.dot_threads() / wave;
    how.shared = args::few_sum_bytes(how.tokens, p.gated, waves, usual);
    how.copied = report.copies_ahead() && view.weights[w].layout->quantized() &&
                 view.plan.weight(w).tensor.shape.cols % 256 == 0 && args::few_copies(planes_of(view, w));
    if (how.copied) {
        const uint32_t each = args::few_own(how.tokens, p.gated, waves, usual);
        how.shared += waves * args::few_shape(planes_of(view, w), each, how.tokens).bytes();
    }
    return how;
}

// Blocks of such a launch, which go on to further tiles: one with all of a multiprocessor's threads that find
// registers.
uint32_t few_grid(uint32_t tiles, uint32_t rows, const DeviceReport& report) {
    return std::min(tiles, report.multiprocessors * few_blocks(rows, report));
}

Status launch_few(Launcher& launcher, const View& view, const Tiled& p, const Activations& x, uint32_t rows) {
    const DeviceReport& report = launcher.device().report();
    const std::string module = module_of(view, p.parts[0].w);
    const FewLaunch how = few_launch(view, p, rows, report);
    args::FewArgs args = {};
    args.left = view.few_left;
    args.left.tokens = how.tokens;
    args.step = view.step;
    args.halves = reinterpret_cast<const uint16_t*>(x.prepared());
    args.row_scales = x.scales();
    if (view.halfs_taken) {
        args.taken = view.few_taken;
        args.taken.x = x.raw();
        args.halves = view.halfs_taken;
    }
    args.accumulate = p.accumulate;
    args.act = uint32_t(p.act);
    args.tiles = set_parts(view, p.parts.first(p.gated ? 1 : p.parts.size()), how.across, args);
    if (p.gated) {
        const args::LinearArgs up = linear_args(view, p.parts[1], nullptr, false);
        args.parts[1] = {up.w, up.y, up.bias, up.rows};
    }
    return launcher.launch(module,
                           fmt::format("{}_{}_{}_{}", p.gated ? "gated" : "linear",
                                       how.copied ? "copied" : "few", how.tokens, module),
                           striding(few_grid(args.tiles, rows, report), how.threads, how.shared), args);
}

args::DotArgs dot_args(const View& view, std::span<const Part> parts, const Activations& x, Path path,
                       bool accumulate) {
    args::DotArgs args = {};
    args.rows = set_parts(view, parts, 1, args);
    args.step = view.step;
    args.x = x.raw();
    args.prepared = x.prepared();
    if (path == Path::dot_own) args.prepared = view.taken;
    args.hand = view.left;
    args.gain = view.vector(x.norm().gain);
    args.eps = x.norm().eps;
    args.accumulate = accumulate;
    return args;
}

std::vector<Weight> weights_of(std::span<const Part> parts) {
    std::vector<Weight> weights;
    for (const Part& part : parts) weights.push_back(part.w);
    return weights;
}

// `other`: "_q6_k" where some matrices are of that format. All rows of a step of few in one launch.
Status launch_dots(Launcher& launcher, const View& view, const DotKernel& kernel, std::span<const Part> parts,
                   const args::DotArgs& args, uint32_t rows, Path path, const OwnLaunch& how,
                   const std::string& other = "") {
    const std::string module = module_of(view, parts.front().w);
    if (path == Path::dot_own || path == Path::floats_own)
        if (const auto shape =
                stream_launch(view, weights_of(parts), kernel.matrices, args,
                              path == Path::dot_own ? args.cols : 0, launcher.device().report(), how))
            return launcher.launch(module, fmt::format("{}_{}{}", kernel.streamed, module, other), *shape,
                                   args);
    const Device& device = launcher.device();
    const bool own = path == Path::dot_own || path == Path::floats_own;
    const uint32_t threads = device.report().dot_threads();
    const Launch shape =
        striding(own ? own_blocks(args.rows, how.blocks)
                     : blocks_for(args.rows, kernel.rows_per_wave * (threads / device.report().wave())),
                 threads, path == Path::dot_own ? own_bytes(args.cols) : 0);
    const std::string tokens = own ? "own" : std::to_string(std::max(2u, power_of_two(rows)));
    const char* name = path == Path::floats_own ? kernel.floats : kernel.name;
    return launcher.launch(module, fmt::format("{}_{}_{}{}", name, tokens, module, other), shape, args);
}

class ProductKernel : public AnyProduct {
public:
    ProductKernel(const Product& op, const Plan& plan, const Device& device)
        : AnyProduct(device), op_(op), alike_(plan.alike(kFewRows)), tensors_(tensors_of(op, plan)) {}

    Choices choices(RowClass rows) const override {
        uint64_t results = 0;
        bool all_own = true, all_matrices = true, all_bytes = true;
        for (const Tensor& tensor : tensors_) {
            const Path one = path_of(*tensor.format, tensor.shape.cols, 1, report()),
                       many = path_of(*tensor.format, tensor.shape.cols, kMostFew + 1, report());
            results += tensor.shape.rows;
            all_own &= one == Path::dot_own || one == Path::floats_own;
            all_matrices &= many == Path::matrices;
            all_bytes &= has_byte_kernels(*tensor.format);
        }
        if (rows == RowClass::one && all_own) return own_choices(results);
        Choices all = crossover_choices(rows, tensors_, alike_);
        if ((rows != RowClass::some && rows != RowClass::many) || !all_matrices) return all;
        const auto add = [&](const char* name, std::vector<uint32_t> others) {
            all.push_back(gpu::by_shape(name, product_default(name, report()), std::move(others)));
        };
        add("tile_rows", {128, 64});
        add("tile_tokens", {128, 64});
        add("shares", {1, 2, 4, 8});
        // Before the others: where tiles end, and the best of them, depend on it.
        if (all_bytes) all.insert(all.begin(), int8_choice());
        return all;
    }

    Precision precision(uint64_t rows) const override {
        Precision all;
        for (const Tensor& tensor : tensors_)
            all = loosest(all, precision_of(path_in(tensor, rows), *tensor.format));
        return all;
    }

    // The activations, then sums of blocks that share columns.
    uint64_t scratch(const Plan& plan) const override {
        return Activations::scratch(plan, op_.x) + share_bytes(plan, report(), crossovers().few_rows);
    }

    bool takes_int8() const override {
        return std::all_of(tensors_.begin(), tensors_.end(), [this](const Tensor& tensor) {
            return path_of(*tensor.format, tensor.shape.cols, 1, report()) == Path::dot_own;
        });
    }
    bool leaves_int8() const override { return tensors_.size() == 1 && takes_int8(); }
    bool takes_few() const override {
        return std::all_of(tensors_.begin(), tensors_.end(), [this](const Tensor& tensor) {
            return tensor.shape.cols % kHandedColumns == 0 &&
                   path_of(*tensor.format, tensor.shape.cols, 2, report()) == Path::few;
        });
    }
    bool leaves_few() const override {
        return tensors_.size() == 1 &&
               path_of(*tensors_[0].format, tensors_[0].shape.cols, 2, report()) == Path::few;
    }
    bool takes_halfs(const View& view) const override { return hands(view, tensors_, op_.x); }
    uint32_t parts_left(const View& view) const override {
        return hands(view, tensors_, op_.x) ? uint32_t(tensors_[0].shape.rows / kHandedPart) : 0;
    }

    Status launch(Launcher& launcher, const View& view) const override {
        const uint32_t rows = view.rows_of(op_.x);
        std::vector<Path> paths;
        for (const Tensor& tensor : tensors_) paths.push_back(path_in(tensor, rows));
        Activations x(op_.x, op_.norm);
        RL_TRY(x.prepare(launcher, view, paths));
        if (paired(rows, paths)) return launch_pair(launcher, view, x);
        for (size_t i = 0; i < op_.count;) {
            // Matrices of one format share a launch, but for those in f32.
            const bool alone = paths[i] == Path::floats || paths[i] == Path::tiles;
            size_t end = i + 1;
            while (!alone && end < op_.count && tensors_[end].format == tensors_[i].format) ++end;
            RL_TRY(launch_parts(launcher, view, x, op_.all().subspan(i, end - i), paths[i], rows));
            i = end;
        }
        return {};
    }

private:
    // The last part's format differs, and a kernel knows both.
    bool paired(uint32_t rows, std::span<const Path> paths) const {
        if (rows != 1 || tensors_.size() < 2) return false;
        for (size_t i = 0; i < tensors_.size(); ++i)
            if (paths[i] != Path::dot_own || tensors_[i].shape.rows % kGroup != 0) return false;
        for (size_t i = 0; i + 1 < tensors_.size(); ++i)
            if (tensors_[i].format != tensors_.front().format) return false;
        const std::string_view first = weight_layout(*tensors_.front().format)->name,
                               last = weight_layout(*tensors_.back().format)->name;
        return std::any_of(std::begin(kPairs), std::end(kPairs),
                           [&](const Pair& pair) { return pair.first == first && pair.other == last; });
    }
    Status launch_pair(Launcher& launcher, const View& view, const Activations& x) const {
        args::DotArgs args = dot_args(view, op_.all(), x, Path::dot_own, op_.accumulate);
        args.second = args.begin[op_.count - 1];
        return launch_dots(launcher, view, kLinearDot, op_.all(), args, 1, Path::dot_own, own_launch(),
                           "_" + module_of(view, op_.all().back().w));
    }
    Status launch_parts(Launcher& launcher, const View& view, const Activations& x,
                        std::span<const Part> parts, Path path, uint32_t rows) const {
        const std::string module = module_of(view, parts[0].w);
        const RowClass size = row_class_of(rows);
        if (path == Path::matrices || path == Path::int8_matrices)
            return launch_matrices(
                launcher, view,
                {parts, false, Act::silu, op_.accumulate,
                 view.scratch_at(Activations::scratch(view.plan, op_.x)), chosen(size, "tile_rows", 0),
                 chosen(size, "tile_tokens", 0), chosen(size, "shares", 0), path == Path::int8_matrices,
                 crossovers().few_rows},
                x, rows);
        if (path == Path::few)
            return launch_few(launcher, view, {parts, false, Act::silu, op_.accumulate}, x, rows);
        if (path == Path::floats || path == Path::tiles) {
            const args::LinearArgs args = linear_args(view, parts[0], x.floats(), op_.accumulate);
            return path == Path::tiles ? launch_tiles(launcher, module, args, rows)
                                       : launch_vector(launcher, module, args, power_of_two(rows));
        }
        return launch_dots(launcher, view, kLinearDot, parts, dot_args(view, parts, x, path, op_.accumulate),
                           rows, path, own_launch());
    }

    Product op_;
    bool alike_;  // steps of 2 to kFewRows rows are to compute each row alike
    std::vector<Tensor> tensors_;
};

class GatedKernel : public AnyProduct {
public:
    GatedKernel(const Product& op, const Plan& plan, const Device& device)
        : AnyProduct(device), op_(op), tensor_(plan.weight(op.w()).tensor), alike_(plan.alike(kFewRows)) {}

    Choices choices(RowClass rows) const override {
        const Path one = path(1);
        const bool own = one == Path::dot_own || one == Path::floats_own;
        if (rows == RowClass::one && own) return own_choices(tensor_.shape.rows);
        Choices all = crossover_choices(rows, std::span(&tensor_, 1), alike_);
        if ((rows == RowClass::some || rows == RowClass::many) && has_byte_kernels(*tensor_.format) &&
            path_of(*tensor_.format, tensor_.shape.cols, kMostFew + 1, report()) == Path::matrices)
            all.insert(all.begin(), int8_choice());
        return all;
    }

    Precision precision(uint64_t rows) const override { return precision_of(path(rows), *tensor_.format); }

    // The activations, then, in f32, the product with `up`, or sums of blocks that share columns.
    uint64_t scratch(const Plan& plan) const override {
        return Activations::scratch(plan, op_.x) +
               std::max(aligned(plan.slot_bytes(op_.y())),
                        share_bytes(plan, report(), crossovers().few_rows));
    }

    bool takes_int8() const override { return path(1) == Path::dot_own; }
    bool leaves_int8() const override { return path(1) == Path::dot_own; }
    bool takes_few() const override { return tensor_.shape.cols % kHandedColumns == 0 && leaves_few(); }
    bool leaves_few() const override {
        return path_of(*tensor_.format, tensor_.shape.cols, 2, report()) == Path::few;
    }
    bool takes_halfs(const View& view) const override { return hands(view, std::span(&tensor_, 1), op_.x); }
    uint32_t parts_left(const View& view) const override {
        return hands(view, std::span(&tensor_, 1), op_.x) ? uint32_t(tensor_.shape.rows / kHandedPart) : 0;
    }

    Status launch(Launcher& launcher, const View& view) const override {
        const uint32_t rows = view.rows_of(op_.y());
        const Path way = path(rows);
        Activations x(op_.x, op_.norm);
        RL_TRY(x.prepare(launcher, view, std::span(&way, 1)));
        const std::array<Part, 2> parts = {{{op_.w(0), {}, op_.y()}, {op_.w(1), {}, op_.y()}}};
        if (way == Path::floats || way == Path::tiles) return launch_apart(launcher, view, x, parts, way);
        float* apart = view.scratch_at(Activations::scratch(view.plan, op_.x));
        if (way == Path::matrices || way == Path::int8_matrices)
            return launch_matrices(launcher, view,
                                   {parts, true, *op_.act, false, apart, 0, 0, 0, way == Path::int8_matrices,
                                    crossovers().few_rows},
                                   x, rows);
        if (way == Path::few) return launch_few(launcher, view, {parts, true, *op_.act}, x, rows);
        args::DotArgs args = dot_args(view, parts, x, way, false);
        args.rows = args.parts[0].rows;
        args.act = uint32_t(*op_.act);
        return launch_dots(launcher, view, kGatedDot, parts, args, rows, way, own_launch());
    }

private:
    Path path(uint64_t rows) const { return path_in(tensor_, rows); }

    Status launch_apart(Launcher& launcher, const View& view, const Activations& x,
                        std::span<const Part> parts, Path way) const {
        const uint32_t rows = view.rows_of(op_.y());
        const std::string module = module_of(view, op_.w());
        float* raised = view.scratch_at(Activations::scratch(view.plan, op_.x));
        for (size_t i = 0; i < parts.size(); ++i) {
            args::LinearArgs args = linear_args(view, parts[i], x.floats(), false);
            if (i == 1) args.y = raised;
            RL_TRY(way == Path::tiles ? launch_tiles(launcher, module, args, rows)
                                      : launch_vector(launcher, module, args, power_of_two(rows)));
        }
        return launch_each(launcher, view, each::row_of(*op_.act), view.slot(op_.y()), raised, op_.y());
    }

    Product op_;
    Tensor tensor_;
    bool alike_;  // as of ProductKernel
};

}  // namespace

Choices own_choices(uint64_t rows, const DeviceReport& report, const std::string& prefix,
                    const Default& streamed) {
    const uint32_t all = blocks_for(rows, kGroup), units = report.multiprocessors;
    std::vector<uint32_t> others;
    for (const uint32_t per_unit : {1, 2, 3, 4, 6, 8, 16}) others.push_back(std::min(all, per_unit * units));
    others.push_back(all);
    Default blocks = product_default("blocks", report);
    blocks.value = own_blocks(rows, blocks.value);
    Choices choices = {choice(prefix + "blocks", blocks, others)};
    choices.front().any = true;
    if (report.copies_ahead()) choices.push_back(choice(prefix + "streamed", streamed, {1 - streamed.value}));
    return choices;
}

std::optional<Launch> stream_launch(const View& view, std::span<const Weight> weights, uint32_t matrices,
                                    const args::DotArgs& args, uint64_t own, const DeviceReport& report,
                                    const OwnLaunch& how) {
    if (!report.copies_ahead() || !how.streamed) return {};
    uint32_t most = 0;
    for (const Weight w : weights) {
        const args::Planes planes = planes_of(view, w);
        for (const uint32_t bytes : planes.bytes)
            if (args.cols % 256 != 0 || args.cols / 256 * bytes % 16 != 0) return {};
        most = std::max(most, planes.all());
    }
    const args::StreamShape ring = args::stream_shape(most, matrices);
    const uint32_t threads = report.dot_threads();
    return striding(own_blocks(args.rows, how.blocks), threads,
                    own_bytes(own) + threads / report.wave() * ring.stages * ring.stage_bytes +
                        (args.choice.logits ? args::kRouteBytes : 0));
}

Status launch_floats(Launcher& launcher, const View& view, Weight w, const float* x, float* y,
                     uint32_t rows) {
    const Shape& shape = view.plan.weight(w).tensor.shape;
    const std::string module = module_of(view, w);
    args::LinearArgs args = {};
    args.step = view.step;
    args.w = view.weights[w].matrix();
    args.x = x;
    args.y = y;
    args.rows = uint32_t(shape.rows);
    args.cols = uint32_t(shape.cols);
    const uint32_t tokens = rows == 1 ? 1 : kFewRows;
    Launch grid = striding(row_blocks(args.rows, kRowsPerWave, launcher.device()));
    grid.y = (rows + tokens - 1) / tokens;
    return launcher.launch(module, fmt::format("linear_{}_{}", tokens, module), grid, args,
                           2.0 * double(args.rows) * double(args.cols) * rows);
}

std::unique_ptr<Kernel> make_product_kernel(const Op& op, const Plan& plan, const Device& device) {
    const Product* product = rows_product(op, plan);
    if (!product || product->function) return nullptr;
    if (product->act) return std::make_unique<GatedKernel>(*product, plan, device);
    return std::make_unique<ProductKernel>(*product, plan, device);
}

}  // namespace redline::hip
