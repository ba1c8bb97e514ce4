// How products on matrix units are cut into tiles: one work-group each, as one matrix or shared out to its
// subgroups.
#include "steps.h"

#include <algorithm>
#include <optional>

namespace redline::vulkan {

namespace {

constexpr uint32_t kTileDepth = 64;

struct Cut {
    uint32_t rows, tokens, depth;
    uint32_t threads;  // at most
};

uint32_t subgroups_of(const Device& device, const Cut& cut, const MatrixShape& shape) {
    return std::min(cut.threads / device.subgroup(), cut.rows / shape.m * (cut.tokens / shape.n));
}

// Both tiles in 16 bits, or a result of each subgroup in their place, and what expert_coop keeps of each
// token. In int8 scales are beside them, and offsets, at most of each half of a unit.
uint64_t shared_bytes(const Device& device, Path path, const Cut& cut, const MatrixShape& shape) {
    const bool int8 = path == Path::int8_matrices;
    const uint64_t lines = uint64_t(cut.rows) + cut.tokens,
                   tiles = lines * (cut.depth / (int8 ? std::min(shape.k, 16u) : 8) + 1) * 16,
                   scales = int8 ? lines * (cut.depth / kHalfUnit) * 8 : 0,
                   results = uint64_t(subgroups_of(device, cut, shape)) * shape.m * shape.n * 4;
    return std::max(tiles, results) + scales + uint64_t(cut.tokens) * 8;
}

// Null: products in int8 are by dot products.
const MatrixShape* int8_matrices(const Device& device) {
    return device.use_matrix() ? int8_shape(device.report()) : nullptr;
}

// By dot products each result is one of its invocation's, and codes are read 16 at a time.
constexpr MatrixShape kDots = {1, 1, 16};

const MatrixShape& shape_for(const Device& device, Path path) {
    if (path == Path::int8_matrices) return int8_matrices(device) ? *int8_matrices(device) : kDots;
    return *matrix_shape(device.report(), path == Path::bfloats ? kBfloat16 : VK_COMPONENT_TYPE_FLOAT16_KHR);
}

// How many subgroups stand over rows, so that each loads the fewest matrices for its products, and with pairs
// an even number of rows'; 0: it cannot be.
uint32_t subgroups_across(const Cut& cut, const MatrixShape& shape, uint32_t subgroups, bool paired) {
    uint32_t best = 0, fewest = ~0u;
    for (uint32_t across = 1; across <= subgroups; across *= 2) {
        const uint32_t down = subgroups / across;
        const uint32_t high = cut.rows / (across * shape.m), wide = cut.tokens / (down * shape.n);
        if (high == 0 || wide == 0 || high + wide >= fewest || (paired && high % 2 != 0)) continue;
        best = across;
        fewest = high + wide;
    }
    return best;
}

// Depth of what a work-group's matrix is multiplied by at a time.
constexpr uint32_t kGroupDepth = 32;

// Empty where the device has no such matrix, or none of plain numbers in order is multiplied.
std::optional<Tiles> group_tiles(const Device& device, Path path, std::string_view kernel,
                                 const WeightLayout& layout, uint32_t tokens, bool paired) {
    if (!device.use_group_matrices() || path == Path::matrices || path == Path::int8_matrices) return {};
    const bool bfloats = path == Path::bfloats;
    const Cut cut = {128, tokens, kTileDepth, 256};
    const VkComponentTypeKHR factors = bfloats ? kBfloat16 : VK_COMPONENT_TYPE_FLOAT16_KHR;
    const DeviceReport& report = device.report();
    const uint32_t high = paired ? cut.rows / 2 : cut.rows;
    const bool fits = std::any_of(
        report.group_matrices.begin(), report.group_matrices.end(), [&](const GroupMatrix& matrix) {
            return matrix.factors == factors && matrix.threads == cut.threads && high % matrix.m == 0 &&
                   cut.tokens % matrix.n == 0 && kGroupDepth % matrix.k == 0;
        });
    const uint64_t shared = shared_bytes(device, path, cut, {16, 16, 16}) + report.group_matrix_shared;
    std::string shader = fmt::format("{}2{}.{}", kernel, bfloats ? "_bfloat" : "", layout.name);
    if (!fits || shared > report.limits.maxComputeSharedMemorySize || !Pipelines::exists(shader)) return {};
    return Tiles{
        std::move(shader),
        {cut.threads, cut.rows, cut.tokens, cut.depth, 16, 16, kGroupDepth, 1, 1, device.subgroup(), 0, 1},
        high,
        cut.tokens,
        cut.depth};
}

// By dot products: 16 x 16 invocations, with up to 8 rows by 4 tokens each.
constexpr uint32_t kDotThreads = 256, kDotsAcross = 16, kMostDotTokens = 64;
Tiles dot_tiles(const Device& device, std::string_view kernel, const WeightLayout& layout,
                uint32_t most_tokens, bool paired, const ProductCut& wanted) {
    Cut cut = {128, std::min(kMostDotTokens, most_tokens), kTileDepth, kDotThreads};
    if (wanted.tile_rows > 0) cut.rows = std::min(cut.rows, wanted.tile_rows);
    if (wanted.depth > 0) cut.depth = std::min(cut.depth, wanted.depth);
    if (shared_bytes(device, Path::int8_matrices, cut, kDots) >
        device.report().limits.maxComputeSharedMemorySize)
        cut.depth = 32;
    return {int8_module(device, kernel, layout),
            {cut.threads, cut.rows, cut.tokens, cut.depth, kDots.m, kDots.n, kDots.k, kDotsAcross,
             cut.threads / kDotsAcross, device.subgroup(), 0, 1},
            paired ? cut.rows / 2 : cut.rows,
            cut.tokens,
            cut.depth};
}

}  // namespace

uint32_t processors(const Device& device) {
    constexpr uint32_t kMiddling = 64;  // of a card whose driver does not say
    const DeviceReport& report = device.report();
    return report.units > 0 ? report.units : report.hardware() ? kMiddling : 1;
}

std::string int8_module(const Device& device, std::string_view kernel, const WeightLayout& layout) {
    const MatrixShape* shape = int8_matrices(device);
    if (!shape && (!device.use_dot() || own_threads(device) < kDotThreads)) return {};
    const std::string_view how = shape ? "int8" : "dots";
    std::string module = fmt::format("{}_{}.{}", kernel, how, layout.name);
    if (Pipelines::exists(module)) return module;
    module = fmt::format("{}_{}_halves.{}", kernel, how, layout.name);
    return (!shape || shape->k <= kHalfUnit) && Pipelines::exists(module) ? module : std::string();
}

// Tiles that leave more than half of the processors idle are cut, as those of weights that are unpacked. On
// an H100 (132 processors, 64 rows times Q4_0, Q4_K, Q6_K and Q8_0) tiles of 128 x 128 took 1.13 to 1.88
// times as long as the best: 64 x 32 for 2048 and 4096 rows, with gated products 128 x 64 for 8192 and 14336
// rows, but 128 x 32 for 11008. Not sooner: smaller tiles decode each weight more often (see coop_tiles()).
ProductCut filling_cut(uint32_t processors, ProductCut cut, uint64_t rows, uint64_t tokens) {
    const uint32_t timed = tokens <= kFewTileRows ? 64 : 512;
    uint32_t high = 128, wide = std::min(kMostTileTokens, timed);
    const auto tiles = [&] { return (rows + high - 1) / high * ((timed + wide - 1) / wide); };
    while (wide > 32 && 2 * tiles() <= processors) wide /= 2;
    if (2 * tiles() <= processors) high = 64;
    if (cut.tile_rows == 0) cut.tile_rows = high;
    if (cut.tile_tokens == 0) cut.tile_tokens = wide;
    return cut;
}

// Large tiles where shared memory holds them. On an H100 (Llama-3.1-8B Q4_K_M, a step of 512 rows, ms of all
// ops): 8 subgroups on 128 x 128 of depth 64 61, 128 x 64 76, 64 x 64 126; before the tile that comes next
// was read without branches a depth of 32 77, 4 subgroups 84.
Tiles coop_tiles(const Device& device, Path path, std::string_view kernel, const WeightLayout& layout,
                 uint32_t most_tokens, bool paired, const ProductCut& wanted) {
    if (wanted.tile_tokens > 0) most_tokens = std::min(most_tokens, wanted.tile_tokens);
    if (std::optional<Tiles> tiles = group_tiles(device, path, kernel, layout, most_tokens, paired))
        return std::move(*tiles);
    if (path == Path::int8_matrices && !int8_matrices(device))
        return dot_tiles(device, kernel, layout, most_tokens, paired, wanted);
    const MatrixShape& shape = shape_for(device, path);
    Cut cut = {128, most_tokens, kTileDepth, 256};
    if (cut.threads / device.subgroup() > 8 ||
        shared_bytes(device, path, cut, shape) > device.report().limits.maxComputeSharedMemorySize)
        cut = {64, std::min(64u, most_tokens), 32, 256};
    if (wanted.tile_rows > 0 && wanted.tile_rows < cut.rows) cut.rows = wanted.tile_rows;
    if (wanted.depth > 0 && wanted.depth < cut.depth) cut.depth = wanted.depth;
    uint32_t subgroups = subgroups_of(device, cut, shape), across = 0;
    // Fewer where none would hold both matrices of a pair.
    while ((across = subgroups_across(cut, shape, subgroups, paired)) == 0) subgroups /= 2;
    const std::string_view bfloats = path == Path::bfloats ? "_bfloat" : "";
    return {path == Path::int8_matrices ? int8_module(device, kernel, layout)
                                        : fmt::format("{}{}.{}", kernel, bfloats, layout.name),
            {subgroups * device.subgroup(), cut.rows, cut.tokens, cut.depth, shape.m, shape.n, shape.k,
             across, subgroups / across, device.subgroup(), 0, path != Path::matrices},
            paired ? cut.rows / 2 : cut.rows,
            cut.tokens,
            cut.depth};
}

}  // namespace redline::vulkan
