// Defaults of the choices of kernels, by class of device and by work: a table for each family of kernels.
// Devices are told apart by their properties. Where nobody has measured, redline tune does.
#pragma once

#include "plan/variants.h"

#include <algorithm>

namespace redline::gpu {

struct DeviceClass {
    bool hip = false;
    uint32_t wave = 32;            // lanes
    bool matrix_units = false;     // that kernels use
    bool fragments = false;        // Vulkan: matrices are filled element by element
    bool fragments_apart = false;  // Vulkan: no two invocations of a subgroup hold the same elements
    bool group_matrices = false;   // Vulkan: a work-group can hold a matrix
    bool overlaps = false;         // HIP: a launch starts while the one before it ends
    bool hardware = true;          // false: Vulkan on the CPU
    uint32_t units = 0;            // multiprocessors, compute units
    uint32_t dot_threads = 256;    // HIP: of a block that brings a row to int8 itself
    bool held_twice = false;       // HIP: two lanes of a wave hold the same elements of a matrix
    bool one_wide = false;         // HIP: a multiprocessor has room for one block of 32 queries of latents
};

// The facts of an op, beside the device, that a default follows from. Each kernel fills in those that its
// rows ask for.
struct Work {
    std::string_view format = {};  // of weights
    RowClass rows = RowClass::one;
    uint64_t results = 0;  // of a row of activations
    uint64_t groups = 0;   // work-groups that the op would have with the least of a choice's values
    uint32_t dims = 0;     // of a key or a state
    uint32_t most = 0;     // the most that there is room for
    uint32_t tokens = 0;   // of a tile; entries of an expert
    bool by_row = false;   // products that bring one row to int8 themselves
    bool gated = false;
    bool beside = false;    // a shared expert is in the same launch
    bool matrices = false;  // on matrix units
    bool few = false;       // attention of few rows
};

// A row holds for the devices and the work that it fits and no row above it does. With a rule the value
// follows from these; usual.value is 0 then.
struct DefaultRow {
    std::string_view choice;
    bool (*fits)(const DeviceClass& device, const Work& work);
    Default usual;
    uint32_t (*rule)(const DeviceClass& device, const Work& work) = nullptr;
};

constexpr auto kAnyDevice = [](const DeviceClass&, const Work&) { return true; };
constexpr auto kHip = [](const DeviceClass& d, const Work&) { return d.hip; };
constexpr auto kVulkan = [](const DeviceClass& d, const Work&) { return !d.hip; };
constexpr auto kVulkanRow = [](const DeviceClass& d, const Work& w) { return !d.hip && w.by_row; };
constexpr auto kVulkanCpu = [](const DeviceClass& d, const Work&) { return !d.hip && !d.hardware; };
constexpr auto kMostRoom = [](const DeviceClass&, const Work& w) { return w.most; };

constexpr DefaultRow kProductDefaults[] = {
    // Vulkan by fragments takes as long for 2 rows as for 16. Without them (Llama-3.1-8B, of one row's time)
    // 3 to 8 rows of F16 take 2.1 to 3.0 by vector and 1.5 by tiles of 16 tokens; 8 rows of Q8_0 2.8 and 2.5.
    {"vector_rows",
     [](const DeviceClass& d, const Work&) { return d.hip && d.matrix_units; },
     {1, "HIP, matrix units", "measured on an H200", "2026-11-29"}},
    {"vector_rows",
     kHip,
     {8, "HIP, no matrix units", "counted: as many as one pass over the weights takes", "2026-11-21"}},
    {"vector_rows",
     [](const DeviceClass& d, const Work&) { return d.fragments; },
     {1, "Vulkan, matrices filled by element", "measured on an H200", "2026-11-30"}},
    {"vector_rows",
     [](const DeviceClass&, const Work& w) { return w.format == "F16"; },
     {2, "Vulkan, weights in F16", "measured on an H200", "2026-11-29"}},
    {"vector_rows",
     [](const DeviceClass&, const Work& w) { return w.format == "Q8_0"; },
     {4, "Vulkan, weights in Q8_0", "measured on an H200", "2026-11-29"}},
    {"vector_rows", kAnyDevice, {8, "Vulkan", "measured on an H200", "2026-11-29"}},
    // A multiprocessor of an MI300X has one of few.h's blocks at most, four waves whose loads of more tokens
    // wait for each other, where tiles have their columns shared out to blocks.
    {"few_rows",
     [](const DeviceClass& d, const Work&) { return d.hip && d.wave == 64; },
     {16, "HIP, waves of 64", "counted for an MI300X", "2026-11-30"}},
    {"few_rows", kHip, {64, "HIP, waves of 32", "measured on an H200", "2026-11-29"}},
    {"few_rows", kAnyDevice, {64, "Vulkan, matrix units", "measured on an H200", "2026-11-29"}},
    // Llama-3.1-8B, of one row's time: 64 rows of F16 take 2.64 so and 2.33 by tiles.
    {"fragment_rows",
     [](const DeviceClass&, const Work& w) { return w.format == "F16"; },
     {32, "Vulkan, weights in F16", "measured on an H200", "2026-11-30"}},
    {"fragment_rows", kAnyDevice, {64, "Vulkan, matrix units", "measured on an H200", "2026-11-30"}},
    // Two passes over the weights in int8 are less work than a tile of 64 rows in f32.
    {"dot_rows", kAnyDevice, {16, "Vulkan, dot products, no matrix units", "counted", "2026-11-29"}},
    // On RDNA 3 four invocations hold the same row. Predicted from RADV's machine code (tools/amd/amd-speed
    // widths, Llama-3.1-8B Q4_K_M, of one row's time at 16, 32 and 64 rows): a 9070 XT 1.05, 1.11 and 1.26 so
    // and 1.10, 1.40 and 1.81 by tiles; a 7900 XTX 1.93, 3.06 and 3.80 so and 1.17, 1.86 and 2.76 by tiles.
    {"fragments",
     [](const DeviceClass& d, const Work&) { return d.fragments_apart; },
     {1, "Vulkan, elements of matrices apart", "counted for a 9070 XT, measured on an H200", "2026-11-30"}},
    {"fragments", kAnyDevice, {0, "Vulkan, elements held twice", "counted for a 7900 XTX", "2026-11-30"}},
    // 8B Q4_K_M, tok/s of prompts of 4096: 13050 so and 11850 by subgroups' matrices.
    {"unpack",
     [](const DeviceClass& d, const Work&) { return d.group_matrices; },
     {1, "Vulkan, matrices of work-groups", "measured on an H100", "2026-11-22"}},
    {"unpack",
     kAnyDevice,
     {0, "Vulkan, matrices of subgroups", "not measured: tiles decode each weight once", "2026-11-22"}},
    // Activations are rounded to 127 levels, which only a gain in time makes up for.
    {"int8", kAnyDevice, {0, "all", "not measured: taken where redline tune finds it faster", "2026-11-30"}},

    // HIP, one row: more threads than a multiprocessor holds would only take over the row more often. Without
    // copies ahead small cards get some blocks all the same.
    {"blocks",
     kHip,
     {0, "HIP: 1024 threads of a multiprocessor", "counted", "2026-11-21"},
     [](const DeviceClass& d, const Work&) {
         return std::max(d.overlaps ? 1u : 64u, d.units * 1024 / d.dot_threads);
     }},
    {"streamed", kHip, {1, "HIP, launches overlap", "measured on an H100", "2026-11-21"}},
    // Tiles of 128 rows and 128 tokens. Where those would leave multiprocessors without work, and a block
    // cannot keep one busy, they have 64 of either (matrix_launch()). A step of 65 to 128 rows of Llama 8B
    // Q4_K_M took 0.69 of the time with shares.
    {"tile_rows", kHip, {0, "HIP: 128, or 64 where tiles are few", "counted", "2026-11-21"}},
    {"tile_tokens", kHip, {0, "HIP: 128, or 64 where tiles are few", "counted", "2026-11-21"}},
    {"shares", kHip, {0, "HIP: two blocks a multiprocessor", "measured on an H200", "2026-11-29"}},

    // Vulkan, of work-groups that prepare one row by themselves: small ones would only prepare it more often.
    // On an H100 (Llama-3.1-8B Q4_K_M, tok/s) 512 give 319, 256 297, 1024 288.
    {"threads", kVulkanRow, {512, "Vulkan, one row to int8", "measured on an H100", "2026-11-21"}},
    {"threads", kVulkan, {128, "Vulkan", "not measured: as kernels without a reason for more", "2026-11-21"}},
    // On an H100 (Llama-3.1-8B Q4_K_M, tok/s) 264 give 367.7, 512 366.0, 1024 362.6.
    {"groups", kVulkanCpu, {4, "Vulkan on the CPU", "not measured", "2026-11-21"}},
    {"groups", kVulkan, {264, "Vulkan, cards", "measured on an H100", "2026-11-21"}},
    // Units of a lane, of each matrix, that are read before one is multiplied: 1, 2, 4 or 7 are within 0.4 %.
    {"ahead",
     [](const DeviceClass& d, const Work& w) { return !d.hip && w.gated; },
     {2, "Vulkan, gated products", "measured on an H100", "2026-11-21"}},
    {"ahead", kVulkan, {4, "Vulkan", "measured on an H100", "2026-11-21"}},
    {"subgroup",
     kVulkan,
     {0, "Vulkan: as the device has them", "not measured", "2026-11-25"},
     [](const DeviceClass& d, const Work&) { return d.wave; }},
    // Of a subgroup, as many as share activations, as long as there are subgroups for all (dot_rows(),
    // rows_per_subgroup(), own_cut()). On an H100 with half of Llama-3.1-8B in F16 one gives 257 tok/s, two
    // 241; on an H200 2, 4 and 8 rows of Q4_K_M take 3.2, 4.2 and 7.0 ms with two, 3.7, 4.7 and 6.5 with
    // four.
    {"rows",
     [](const DeviceClass& d, const Work& w) { return !d.hip && !w.by_row; },
     {0, "Vulkan: 1 of floats, 2 or 4 of codes", "measured on an H100 and an H200", "2026-11-29"}},
    {"rows", kVulkan, {0, "Vulkan, one row: as make half a unit", "measured on an H100", "2026-11-21"}},
    // Tiles of 128 x 128 and a depth of 64 after twelve others were tried; those that leave more than half of
    // the processors idle are cut (filling_cut(), coop_tiles()).
    {"tile_rows",
     kVulkan,
     {0, "Vulkan: 128, or 64 where tiles are few", "measured on an H100", "2026-11-25"}},
    {"tile_tokens",
     kVulkan,
     {0, "Vulkan: 128, down to 32 where tiles are few", "measured on an H100", "2026-11-25"}},
    {"depth", kVulkan, {0, "Vulkan: 64, or 32 without room", "measured on an H100", "2026-11-21"}},
    // Subgroups of a work-group, which share columns: so that a processor has 16 of them.
    {"deep",
     kVulkan,
     {0, "Vulkan: 8, or 16 where a processor has few", "not measured", "2026-11-30"},
     [](const DeviceClass& d, const Work& w) { return w.groups * 8 < 16 * uint64_t(d.units) ? 16u : 8u; }},
    {"high",
     kVulkan,
     {0, "Vulkan: 1, or 2 of gated products or over 16 tokens", "not measured", "2026-11-30"},
     [](const DeviceClass&, const Work& w) { return !w.gated && w.tokens > 16 ? 2u : 1u; }},
};

// The value of "unsorted_rows" is the least places that each expert has on average where they are sorted.
// Places one by one of experts with one each read 1.6 times the bytes; with two, 24 rows of Qwen3-30B-A3B
// took 14.2 ms, and 32 rows, which were sorted, 11.3. "alone_rows": 32 rows of Qwen3.5-35B-A3B take 12.9 ms
// alone, and 23.7 sorted (HIP).
constexpr DefaultRow kExpertDefaults[] = {
    {"unsorted_rows", kHip, {0, "HIP", "counted: as soon as rows do not go by vector", "2026-11-30"}},
    {"unsorted_rows", kAnyDevice, {1, "Vulkan", "measured on an H200", "2026-11-30"}},
    {"alone_rows", kAnyDevice, {32, "all", "measured on an H200", "2026-11-30"}},
    {"int8", kAnyDevice, {0, "all", "not measured: taken where redline tune finds it faster", "2026-11-30"}},
    // A token of Qwen3-30B-A3B takes 48 dispatches of some 336 less.
    {"fused", kAnyDevice, {1, "all", "counted", "2026-11-25"}},
    {"chosen_late", kAnyDevice, {1, "Vulkan", "counted", "2026-11-26"}},
    {"spread", kHip, {4, "HIP", "measured on an H100", "2026-11-27"}},
    // Few rows leave a wave none to copy ahead for: with 6144 on an H100 the kernel that does takes 7 to 10 %
    // longer, with 14336 of a dense model less.
    {"streamed",
     [](const DeviceClass& d, const Work& w) { return d.hip && w.results >= 8192 && !w.beside; },
     {1, "HIP, launches overlap", "measured on an H100", "2026-11-25"}},
    {"streamed",
     kHip,
     {0, "HIP, few results, or a shared expert beside", "measured on an H100", "2026-11-25"}},
    // An expert's entries should mostly fit one tile, since each tile decodes the weights anew, but room that
    // is left over is multiplied as well. Entries spread unevenly. With 32 entries on average tiles of 32
    // take 0.76 of the time of tiles of 64 (an H100, Q4_K and Q6_K, 768 x 2048). By the times of dense tiles
    // (coop_tiles.cpp) the largest pay from 128 entries on; not measured with experts.
    {"tile_tokens",
     kVulkan,
     {0, "Vulkan: 32, 64 or 128, as an expert has entries", "measured on an H100", "2026-11-25"},
     [](const DeviceClass&, const Work& w) { return w.tokens <= 32   ? 32u
                                                    : w.tokens < 128 ? 64u
                                                                     : 128u; }},
    // HIP: the most places that each expert has on average where tiles have 32; they decode weights anew for
    // every 32 places, and tiles of 64 multiply more that are empty. By instructions (tools/amd/amd-speed,
    // Q4_K, places fall as chance has it) 32 take, of the time of 64, with 16, 24 and 32 places on average: a
    // 9070 XT 0.83, 0.97 and 1.06; a 7900 XTX 0.79, 0.95 and 0.98; an MI300X 0.66, 0.69 and 0.96, with
    // 40 1.24. On an H200 32 give 1.19 of the speed of 64 with Qwen3.5-35B-A3B, and 0.96 with Qwen3-30B-A3B
    // and gpt-oss-20b (prompts of 512).
    {"tile_tokens",
     [](const DeviceClass& d, const Work&) { return d.hip && d.overlaps; },
     {0, "HIP, launches overlap", "measured on an H200: models differ", "2026-12-01"}},
    // Without matrix units tiles of 64 leave out 16 empty places at a time, too.
    {"tile_tokens",
     [](const DeviceClass& d, const Work&) { return d.hip && !d.matrix_units; },
     {0, "HIP, no matrix units", "counted for a Steam Deck", "2026-11-30"}},
    {"tile_tokens",
     [](const DeviceClass& d, const Work&) { return d.hip && d.wave == 64; },
     {32, "HIP, waves of 64", "counted for an MI300X", "2026-11-30"}},
    {"tile_tokens", kHip, {28, "HIP, waves of 32", "counted for a 9070 XT", "2026-11-30"}},
};

constexpr DefaultRow kAttentionDefaults[] = {
    // The launch saved is shorter there than rope in each block: Llama-3.1-8B generates 437 to 439 tok/s so
    // instead of 440, Qwen3-30B-A3B 300 instead of 313.
    {"fused",
     [](const DeviceClass& d, const Work&) { return d.overlaps; },
     {0, "HIP, launches overlap", "measured on an H100", "2026-11-21"}},
    {"fused", kAnyDevice, {1, "launches one by one", "counted: a launch fewer", "2026-11-22"}},
    // That fit into a multiprocessor at a time.
    {"per_unit", kHip, {2, "HIP", "counted: registers and shared memory of a multiprocessor", "2026-11-21"}},

    // HIP, one row: half of the queries that share a kv head. What one block reads of it the other's finds in
    // the device's cache, and with half the code and registers both begin sooner. Qwen3-30B-A3B (groups of 8)
    // behind 4096 tokens on an H100: 323 tok/s with 8, 389 with 4, 386 with 2.
    {"queries",
     [](const DeviceClass& d, const Work& w) { return d.hip && w.rows == RowClass::one; },
     {0, "HIP, one row: half of those of a kv head", "measured on an H100", "2026-11-26"},
     [](const DeviceClass&, const Work& w) { return std::max(1u, w.most / 2); }},
    {"queries", kHip, {0, "HIP: as many as registers hold", "counted", "2026-11-21"}, kMostRoom},
    // Behind many keys what the other block reads again is worth more than an early start: Llama 3.1 8B on an
    // H200, with 2 and with 4 queries, behind 512 tokens 519 and 506 tok/s, 8192: 427 and 436, 32768: 297 and
    // 331. More than 4 leave a multiprocessor one block.
    {"deep_queries",
     kHip,
     {0, "HIP, one row behind many keys", "measured on an H200", "2026-11-30"},
     [](const DeviceClass&, const Work& w) { return std::min(4u, w.most); }},
    // Vulkan: work-groups that keys are split over, where there are keys for them. On an H100 behind 8192
    // tokens 256 give 293 tok/s, 512 277.
    {"groups", kVulkanCpu, {8, "Vulkan on the CPU", "not measured", "2026-11-22"}},
    {"groups", kVulkan, {256, "Vulkan, cards", "measured on an H100", "2026-11-21"}},
    // Twice as many queries share what is read of the cache, where work-groups are many anyway. On an H100
    // (Llama-3.1-8B, 1024 rows) they take 0.93 of the time, behind 3072 tokens 0.77; 512 rows would
    // take 1.43.
    {"queries",
     [](const DeviceClass& d, const Work& w) { return !d.hip && w.matrices; },
     {0, "Vulkan, matrix units: 64, or 128 of many rows", "measured on an H100", "2026-11-22"}},
    // Of one row four: where more share a kv head, what one work-group reads of it the next finds in the
    // device's cache, and it begins sooner with less to prepare. Qwen3-30B-A3B (groups of 8) behind 4096
    // tokens on an H100: 245 tok/s with 8, 282 with 4, 251 with 2.
    {"queries",
     [](const DeviceClass& d, const Work& w) { return !d.hip && w.few && w.rows == RowClass::one; },
     {4, "Vulkan, one row", "measured on an H100", "2026-11-26"}},
    {"queries", kVulkan, {0, "Vulkan: as many as there is room for", "counted", "2026-11-21"}, kMostRoom},
    {"threads",
     kVulkan,
     {0, "Vulkan: 256, or as many as there can be", "measured on an H100", "2026-11-21"},
     [](const DeviceClass&, const Work& w) { return std::min(256u, w.most); }},
};

// Attention to latents, and to entries of blocks, which are as wide.
constexpr DefaultRow kLatentDefaults[] = {
    // HIP, on matrix units: where lanes hold elements twice there are registers for 16 queries of a block;
    // where a multiprocessor has room for two blocks of 16, but for one of 32, 16 are better unless there are
    // many rows.
    {"queries",
     [](const DeviceClass& d, const Work& w) { return d.hip && w.matrices && d.held_twice; },
     {16, "HIP, elements of matrices held twice", "counted: registers of RDNA 3", "2026-11-27"}},
    {"queries",
     [](const DeviceClass& d, const Work& w) {
         return d.hip && w.matrices && d.one_wide && w.rows != RowClass::many;
     },
     {16, "HIP, room for one block of 32", "measured on an H100", "2026-11-27"}},
    {"queries",
     [](const DeviceClass& d, const Work& w) { return d.hip && w.matrices; },
     {32, "HIP, matrix units", "measured on an H100, of many rows", "2026-11-27"}},
    {"queries", kHip, {0, "HIP: as many as fit, but none in vain", "counted", "2026-11-24"}},
    // Vulkan, on matrix units: tiles of the most keys first, since each costs the same few barriers. Each
    // work-group has more queries, whose sums it writes for the merge, so that fewer are enough.
    {"queries",
     [](const DeviceClass& d, const Work& w) { return !d.hip && w.matrices; },
     {0, "Vulkan, matrix units: as registers hold with the most keys", "measured on an H100", "2026-11-27"},
     kMostRoom},
    {"queries", kVulkan, {0, "Vulkan: as many as there is room for", "counted", "2026-11-23"}, kMostRoom},
    {"keys",
     kVulkan,
     {0, "Vulkan, matrix units: as many as registers hold", "measured on an H100", "2026-11-27"},
     kMostRoom},
    {"groups",
     kVulkan,
     {0, "Vulkan, matrix units: half as many", "not measured", "2026-11-27"},
     [](const DeviceClass&, const Work& w) { return (w.most + 1) / 2; }},
};

constexpr DefaultRow kRecurrentDefaults[] = {
    // With 16 a lane has half as much to do, and work-groups are twice as many: where there are fewer than
    // can run at once, or keys are too long for eight. A prompt's delta rule of Qwen3.5-35B-A3B takes 1690
    // us a layer by eight and 1073 by sixteen (HIP), 1114 and 592 (Vulkan).
    {"lanes",
     [](const DeviceClass& d, const Work& w) {
         return w.most >= 16 && (w.dims > 128 || d.units > w.groups || (!d.hip && d.units == 0));
     },
     {16, "fewer work-groups by 8 than units, or long keys", "measured on an H100", "2026-11-26"}},
    {"lanes",
     kAnyDevice,
     {0, "all", "measured on an H100", "2026-11-26"},
     [](const DeviceClass&, const Work& w) { return std::min(8u, w.most); }},
    // Rows of a head's state that a block has: 80 where that makes fewer blocks than 64.
    {"block",
     [](const DeviceClass& d, const Work& w) { return d.hip && (w.dims + 79) / 80 < (w.dims + 63) / 64; },
     {80, "HIP, fewer blocks than by 64", "counted", "2026-11-25"}},
    {"block", kHip, {64, "HIP", "counted", "2026-11-25"}},
    // Half as many have half of a state's block, so that work-groups are more.
    {"threads", kVulkan, {128, "Vulkan", "not measured: as kernels without a reason for more", "2026-11-25"}},
};

// Every choice of a table has a row that fits any device that offers it.
constexpr Default default_of(std::span<const DefaultRow> table, std::string_view choice,
                             const DeviceClass& device, const Work& work = {}) {
    const auto row = std::ranges::find_if(
        table, [&](const DefaultRow& one) { return one.choice == choice && one.fits(device, work); });
    Default usual = row->usual;
    if (row->rule) usual.value = row->rule(device, work);
    return usual;
}

// A choice whose first value, 0, stands for the default of the work at hand.
inline Choice by_shape(std::string name, const Default& usual, std::vector<uint32_t> others) {
    Choice one = choice(std::move(name), Default{}, std::move(others));
    one.usual = usual;
    return one;
}

}  // namespace redline::gpu
