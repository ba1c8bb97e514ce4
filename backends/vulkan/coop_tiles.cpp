// How products on matrix units are cut into tiles: one work-group each, shared out to its subgroups.
#include "steps.h"

#include <algorithm>

namespace redline::vulkan {

namespace {

constexpr uint32_t kMostThreads = 256;

struct Cut {
    uint32_t rows, tokens, depth;
};

uint32_t subgroups_of(const Device& device, const Cut& cut, const MatrixShape& shape) {
    return std::min(kMostThreads / device.subgroup(), cut.rows / shape.m * (cut.tokens / shape.n));
}

// Both tiles in halfs, a result of each subgroup, and what expert_coop keeps of each token.
uint64_t shared_bytes(const Device& device, const Cut& cut, const MatrixShape& shape) {
    return uint64_t(cut.rows + cut.tokens) * (cut.depth / 8 + 1) * 16 +
           uint64_t(subgroups_of(device, cut, shape)) * shape.m * shape.n * 4 + uint64_t(cut.tokens) * 8;
}

}  // namespace

const MatrixShape* matrix_shape(const DeviceReport& report) {
    const MatrixShape* best = nullptr;
    for (const MatrixShape& s : report.matrices) {
        const bool halves = s.a == VK_COMPONENT_TYPE_FLOAT16_KHR && s.b == VK_COMPONENT_TYPE_FLOAT16_KHR &&
                            s.c == VK_COMPONENT_TYPE_FLOAT32_KHR && s.result == VK_COMPONENT_TYPE_FLOAT32_KHR;
        // Tiles are cut in multiples of 16 or 8.
        const bool fits = (s.m == 8 || s.m == 16) && (s.n == 8 || s.n == 16) && (s.k == 8 || s.k == 16);
        if (halves && fits && (!best || s.m * s.n * s.k > best->m * best->n * best->k)) best = &s;
    }
    return best;
}

// Large tiles where shared memory holds them. On an H100 (Llama-3.1-8B Q4_K_M, a step of 512 rows, ms of all
// ops): 8 subgroups on 128 x 128 of depth 64 61, 128 x 64 76, 64 x 64 126; before the tile that comes next
// was read without branches a depth of 32 77, 4 subgroups 84.
Tiles coop_tiles(const Device& device, std::string shader, uint32_t most_tokens) {
    const MatrixShape& shape = *matrix_shape(device.report());
    Cut cut = {128, most_tokens, 64};
    if (kMostThreads / device.subgroup() > 8 ||
        shared_bytes(device, cut, shape) > device.report().limits.maxComputeSharedMemorySize)
        cut = {64, std::min(64u, most_tokens), 32};
    const uint32_t subgroups = subgroups_of(device, cut, shape);
    // Subgroups stand side by side so that each loads the fewest matrices for its products.
    uint32_t best = 1, fewest = ~0u;
    for (uint32_t across = 1; across <= subgroups; across *= 2) {
        const uint32_t down = subgroups / across;
        const uint32_t high = cut.rows / (across * shape.m), wide = cut.tokens / (down * shape.n);
        if (high == 0 || wide == 0 || high + wide >= fewest) continue;
        best = across;
        fewest = high + wide;
    }
    return {std::move(shader),
            {subgroups * device.subgroup(), cut.rows, cut.tokens, cut.depth, shape.m, shape.n, shape.k, best,
             subgroups / best, device.subgroup()},
            cut.rows,
            cut.tokens};
}

}  // namespace redline::vulkan
