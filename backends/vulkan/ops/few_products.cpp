// Products of some rows on matrix units at the pace at which the weights are read: see few_coop.glsl.
#include "steps.h"

#include <algorithm>
#include <bit>
#include <optional>

namespace redline::vulkan {

namespace {

struct FewTile {
    uint32_t rows, tokens, depth;
    uint32_t across, deep, threads;
};

// Empty where the device has no matrix units, or too little shared memory. On an H200 (Llama-3.1-8B Q4_K_M,
// ms of a step of 16, 32 and 64 rows) 64 rows of a depth of 128 take 6.8, 9.7 and 13.3, of 64 7.4, 9.1
// and 11.7; 128 rows of a depth of 128 7.9, 9.3 and 13.1.
std::optional<FewTile> few_tile(const Device& device, uint64_t rows) {
    constexpr uint32_t kMostSubgroups = 8, kThreads = 256, kMatricesHigh = 2;
    const MatrixShape* shape = device.use_matrix() ? matrix_shape(device.report()) : nullptr;
    if (!shape) return {};
    const VkPhysicalDeviceLimits& limits = device.report().limits;
    const uint32_t tokens = std::max(16u, uint32_t(std::bit_ceil(rows))), subgroup = device.subgroup();
    FewTile tile = {64, tokens, tokens <= 16 ? 128u : 64u, 0, 0, 0};
    // Both tiles in 16 bits, or sums of pairs of matrices of each subgroup in their place.
    const uint32_t results = 2 * kMostSubgroups * shape->m * shape->n * 4;
    const auto fits = [&] {
        const uint32_t tiles = (tile.rows + tile.tokens) * (tile.depth / 8 + 1) * 16;
        return std::max(tiles, results) + 16 <= limits.maxComputeSharedMemorySize;
    };
    if (!fits()) tile.depth = 32;
    tile.across = tile.rows / (kMatricesHigh * shape->m);
    const uint32_t subgroups =
        std::clamp(kThreads / subgroup, tile.across, std::max(tile.across, kMostSubgroups));
    tile.deep = std::min(tile.depth / shape->k, subgroups / tile.across);
    tile.threads = tile.across * tile.deep * subgroup;
    if (!fits() || tile.threads > limits.maxComputeWorkGroupInvocations) return {};
    return tile;
}

// How many work-groups share the columns of the same of `rows` rows: so many that each processor has a few,
// but a share is no less than a few tiles.
uint32_t few_shares(const Device& device, const FewTile& tile, uint64_t rows, uint64_t cols) {
    constexpr uint64_t kGroupsEach = 4, kFewestTiles = 4, kMostShares = 8;  // the last as in few_coop.glsl
    const uint64_t groups = (rows + tile.rows - 1) / tile.rows, tiles = (cols + tile.depth - 1) / tile.depth;
    const uint64_t wanted = (kGroupsEach * processors(device) + groups - 1) / groups;
    const uint64_t shares = std::clamp<uint64_t>(std::min(wanted, tiles / kFewestTiles), 1, kMostShares);
    const uint64_t each = (tiles + shares - 1) / shares;
    return uint32_t((tiles + each - 1) / each);
}

// Sums of all shares; `rows` of all matrices of a dispatch.
uint64_t partial_bytes(const FewTile& tile, uint64_t groups, uint32_t shares) {
    return shares > 1 ? aligned(groups * shares * tile.rows * tile.tokens * 4) : 0;
}

args::FewArgs few_args(const MatrixProduct& product, const PlacedWeight& w, const WeightPart& part) {
    args::FewArgs push = {};
    push.rows = uint32_t(part.rows);
    push.cols = uint32_t(w.cols);
    push.units = w.units(part);
    push.first_row = uint32_t(part.first);
    push.stride = product.stride;
    push.rows_of = product.rows_kind;
    push.has_bias = product.bias ? 1 : 0;
    push.accumulate = product.accumulate ? 1 : 0;
    push.act = uint32_t(product.act);
    return push;
}

// How a product over few_fragments.glsl is cut: a work-group has `high` matrices of weights, of both of a
// pair, which each of its `deep` subgroups multiplies in some of the columns. Sums of `held` matrices, or
// pairs, are added up at a time.
struct FragmentCut {
    uint32_t tokens, high, deep, held, threads;
};
// `results`: rows of all matrices that are multiplied side by side. Whole parts of a row are left. The order
// of sums must not depend on `rows`.
FragmentCut fragment_cut(const Device& device, const Fragments& fragments, bool paired, uint64_t results,
                         uint64_t cols, uint64_t rows, uint64_t book_bytes, bool leaves,
                         const ProductCut& wanted) {
    // So that each invocation of a work-group has all registers that it may have.
    constexpr uint32_t kShared = 32768, kMostThreads = 512;
    const VkPhysicalDeviceLimits& limits = device.report().limits;
    const MatrixShape& shape = fragments.shape;
    const uint32_t pair = paired ? 2 : 1, tokens = fragment_tokens(fragments, rows);
    const uint64_t tiles = (results + pair * shape.m - 1) / (pair * shape.m),
                   groups = (cols + 32 * fragments.owners - 1) / (32 * fragments.owners);
    gpu::DeviceClass with = class_of(device);
    with.units = processors(device);
    const auto usual = [&](std::string_view name) {
        const gpu::Work work = {.groups = tiles, .tokens = tokens, .gated = paired};
        return gpu::default_of(gpu::kProductDefaults, name, with, work).value;
    };
    FragmentCut cut = {tokens, pair * (wanted.high > 0 ? wanted.high : usual("high")),
                       wanted.deep > 0 ? wanted.deep : usual("deep"), 1, 0};
    if (leaves) cut.high = std::max(cut.high, pair * (kHandedPart / shape.m));
    const uint32_t most = std::min(limits.maxComputeWorkGroupInvocations, kMostThreads) / device.subgroup();
    while (cut.deep > 1 && (cut.deep > most || cut.deep * 2 > groups)) cut.deep /= 2;
    const uint32_t each = cut.deep * pair * shape.m * shape.n * 4,
                   puts = cut.high / pair * (tokens / shape.n);
    // A code book has twice its size at most.
    const uint32_t left = leaves ? tokens * (cut.high / pair * shape.m + 2) * 8 : 0,
                   room = limits.maxComputeSharedMemorySize - 2 * uint32_t(book_bytes) - left;
    cut.held = std::clamp(std::min(kShared, room) / each, 1u, puts);
    cut.threads = cut.deep * device.subgroup();
    return cut;
}

}  // namespace

uint32_t fragment_tokens(const Fragments& fragments, uint64_t rows) {
    return std::max(fragments.shape.n, uint32_t(std::bit_ceil(rows)));
}

bool FewProducts::wanted(const Device& device, const Format& format, uint64_t cols, uint64_t rows,
                         const Fragments* fragments, const Ways& ways) {
    if (rows < 2 || rows > ways.few_rows || path_of(device, format, cols, kFewRows + 1) != Path::matrices)
        return false;
    const std::string_view layout = weight_layout(format)->name;
    if (fragments) return Pipelines::exists(fmt::format("linear_fragments.{}", layout));
    const uint32_t vector_rows = ways.vector_rows > 0
                                     ? ways.vector_rows
                                     : product_default(device, "vector_rows", {.format = format.name}).value;
    return rows > vector_rows && Pipelines::exists(fmt::format("linear_few.{}", layout)) &&
           few_tile(device, rows);
}

uint64_t FewProducts::scratch(const Device& device, std::span<const Tensor> matrices, bool paired,
                              uint64_t most_rows) {
    const uint32_t pair = paired ? 2 : 1;
    const uint64_t cols = matrices.front().shape.cols;
    uint64_t most = 0, results = 0;
    for (const Tensor& matrix : matrices) results += pair * matrix.shape.rows;
    for (uint64_t rows = 2; rows <= std::min<uint64_t>(most_rows, kMostFew); rows = std::bit_ceil(rows) + 1) {
        const std::optional<FewTile> tile = few_tile(device, rows);
        if (!tile) return 0;
        uint64_t bytes = 0;
        for (const Tensor& matrix : matrices) {
            const uint64_t groups = (pair * matrix.shape.rows + tile->rows - 1) / tile->rows;
            bytes += partial_bytes(*tile, groups, few_shares(device, *tile, results, cols));
        }
        most = std::max(most, bytes);
    }
    return most;
}

Status FewProducts::record_part(const MatrixProduct& product, const PlacedWeight& w, const WeightPart& part,
                                const WeightPart* up) {
    if (fragments_) return record_fragments(product, w, part, up);
    const Device& device = recorder_.device();
    const FewTile tile = *few_tile(device, product.rows);
    const MatrixShape& shape = *matrix_shape(device.report());
    const uint64_t high = tile.rows / (up ? 2 : 1), groups = (part.rows + high - 1) / high;
    // A matrix in several parts has rows enough.
    const bool shared = w.parts.size() == 1 && counters_ + groups + 64 <= VulkanCaches::kCounters;
    const uint32_t shares = shared ? few_shares(device, tile, results_, w.cols) : 1;
    const args::FewArgs push = few_args(product, w, part);
    // Results stand in for what a dispatch without shares does not touch: it is bound, and counts as written.
    Binding partials = product.y, counters = product.y;
    if (shares > 1) {
        // Dispatches of a group run side by side, so each has a range of its counters, which begins where a
        // binding may.
        constexpr uint64_t kTogether = 64;
        const uint64_t bytes = partial_bytes(tile, groups, shares);
        partials = view_.scratch_at(at_, bytes);
        counters = view_.caches.counters();
        counters.offset += uint64_t(counters_) * 4;
        counters.bytes = (groups + kTogether - 1) / kTogether * kTogether * 4;
        counters_ += uint32_t((groups + kTogether - 1) / kTogether * kTogether);
        at_ += bytes;
    }
    const std::vector<uint32_t> constants = {tile.threads, tile.rows,        tile.tokens, tile.depth,
                                             shape.m,      shape.n,          shape.k,     tile.across,
                                             tile.deep,    device.subgroup()};
    const double flops = (up ? 4.0 : 2.0) * double(part.rows) * double(w.cols) * product.rows;
    if (up)
        return recorder_.dispatch(
            {fmt::format("gated_few.{}", w.layout->name), 7, 2, constants},
            {part.buffer, up->buffer, x_.prepared(), product.y, view_.step, x_.scales(), partials, counters},
            push, {groups, shares}, flops);
    return recorder_.dispatch({fmt::format("linear_few.{}", w.layout->name), 8, 1, constants},
                              {part.buffer, x_.prepared(), product.y, view_.step,
                               view_.vector(product.bias, view_.step), x_.scales(), partials, counters},
                              push, {groups, shares}, flops);
}

Status FewProducts::record_fragments(const MatrixProduct& product, const PlacedWeight& w,
                                     const WeightPart& part, const WeightPart* up) {
    const Fragments& f = *fragments_;
    const Device& device = recorder_.device();
    const bool leaves = view_.few_left.bytes != 0;
    const uint32_t takes = view_.few_taken.bytes == 0 ? 0 : view_.scales_taken ? 1 : 2;
    const FragmentCut cut = fragment_cut(device, f, up != nullptr, results_, w.cols, product.rows,
                                         w.layout->book.size_bytes(), leaves, product.cut);
    args::FewArgs push = few_args(product, w, part);
    push.taken_parts = view_.parts_taken;
    push.has_norm = x_.norm() ? 1 : 0;
    push.eps = x_.norm().eps;
    push.hand_normed = view_.left_norm ? 1 : 0;
    push.hand_eps = view_.left_norm.eps;
    push.hand_counter = view_.leave_counter;
    const std::vector<uint32_t> constants = {cut.threads,   cut.tokens,    f.shape.m,     f.shape.n,
                                             f.shape.k,     cut.high,      cut.deep,      device.subgroup(),
                                             cut.held,      f.owners,      f.owner_shift, f.place_shift,
                                             f.place_mask,  f.rows.each,   f.rows.step,   f.rows.bits,
                                             f.tokens.each, f.tokens.step, f.tokens.bits, takes,
                                             leaves};
    const Binding halves = takes ? view_.few_taken : x_.prepared(), scales = takes ? view_.step : x_.scales(),
                  x = takes ? x_.raw() : view_.step, gain = view_.vector(x_.norm().gain, view_.step),
                  left = leaves ? view_.few_left : product.y, again = takes == 2 ? view_.few_taken : left,
                  next_gain = view_.vector(view_.left_norm.gain, view_.step);
    const uint64_t high = uint64_t(cut.high) * f.shape.m / (up ? 2 : 1);
    const Groups groups = {(part.rows + high - 1) / high};
    const double flops = (up ? 4.0 : 2.0) * double(part.rows) * double(w.cols) * product.rows;
    if (up)
        return recorder_.dispatch({fmt::format("gated_fragments.{}", w.layout->name), 11, 2, constants},
                                  {part.buffer, up->buffer, halves, product.y, view_.step, scales, x, gain,
                                   left, next_gain, view_.caches.counters(), again},
                                  push, groups, flops);
    return recorder_.dispatch(
        {fmt::format("linear_fragments.{}", w.layout->name), 12, 1, constants},
        {part.buffer, halves, product.y, view_.step, view_.vector(product.bias, view_.step), scales, x, gain,
         left, next_gain, view_.caches.counters(), again},
        push, groups, flops);
}

Status FewProducts::record(const MatrixProduct& product, const PlacedWeight& w, const PlacedWeight* up) {
    for (size_t i = 0; i < w.parts.size(); ++i)
        RL_TRY(record_part(product, w, w.parts[i], up ? &up->parts[i] : nullptr));
    return {};
}

}  // namespace redline::vulkan
