// Defaults of choices between ways, by class of device: a table for each family of kernels. Devices are told
// apart by their properties. Where nobody has measured, redline tune does.
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
};

// A row holds for the devices, and the formats of weights, that it fits and no row above it does.
struct DefaultRow {
    std::string_view choice;
    bool (*fits)(const DeviceClass& device, std::string_view format);
    Default usual;
};

constexpr auto kAnyDevice = [](const DeviceClass&, std::string_view) { return true; };
constexpr auto kHip = [](const DeviceClass& d, std::string_view) { return d.hip; };

constexpr DefaultRow kProductDefaults[] = {
    // Vulkan by fragments takes as long for 2 rows as for 16. Without them (Llama-3.1-8B, of one row's time)
    // 3 to 8 rows of F16 take 2.1 to 3.0 by vector and 1.5 by tiles of 16 tokens; 8 rows of Q8_0 2.8 and 2.5.
    {"vector_rows",
     [](const DeviceClass& d, std::string_view) { return d.hip && d.matrix_units; },
     {1, "HIP, matrix units", "measured on an H200", "2026-11-29"}},
    {"vector_rows", kHip, {8, "HIP, no matrix units", "as many as one pass over the weights takes", ""}},
    {"vector_rows",
     [](const DeviceClass& d, std::string_view) { return d.fragments; },
     {1, "Vulkan, matrices filled by element", "measured on an H200", "2026-11-30"}},
    {"vector_rows",
     [](const DeviceClass&, std::string_view format) { return format == "F16"; },
     {2, "Vulkan, weights in F16", "measured on an H200", "2026-11-29"}},
    {"vector_rows",
     [](const DeviceClass&, std::string_view format) { return format == "Q8_0"; },
     {4, "Vulkan, weights in Q8_0", "measured on an H200", "2026-11-29"}},
    {"vector_rows", kAnyDevice, {8, "Vulkan", "measured on an H200", "2026-11-29"}},
    // A multiprocessor of an MI300X has one of few.h's blocks at most, four waves whose loads of more tokens
    // wait for each other, where tiles have their columns shared out to blocks.
    {"few_rows",
     [](const DeviceClass& d, std::string_view) { return d.hip && d.wave == 64; },
     {16, "HIP, waves of 64", "counted for an MI300X", "2026-11-30"}},
    {"few_rows", kHip, {64, "HIP, waves of 32", "measured on an H200", "2026-11-29"}},
    {"few_rows", kAnyDevice, {64, "Vulkan, matrix units", "measured on an H200", "2026-11-29"}},
    // Llama-3.1-8B, of one row's time: 64 rows of F16 take 2.64 so and 2.33 by tiles.
    {"fragment_rows",
     [](const DeviceClass&, std::string_view format) { return format == "F16"; },
     {32, "Vulkan, weights in F16", "measured on an H200", "2026-11-30"}},
    {"fragment_rows", kAnyDevice, {64, "Vulkan, matrix units", "measured on an H200", "2026-11-30"}},
    // Two passes over the weights in int8 are less work than a tile of 64 rows in f32.
    {"dot_rows", kAnyDevice, {16, "Vulkan, dot products, no matrix units", "counted", "2026-11-29"}},
    // On RDNA 3 four invocations hold the same row. Predicted from RADV's machine code (tools/amd/amd-speed
    // widths, Llama-3.1-8B Q4_K_M, of one row's time at 16, 32 and 64 rows): a 9070 XT 1.05, 1.11 and 1.26 so
    // and 1.10, 1.40 and 1.81 by tiles; a 7900 XTX 1.93, 3.06 and 3.80 so and 1.17, 1.86 and 2.76 by tiles.
    {"fragments",
     [](const DeviceClass& d, std::string_view) { return d.fragments_apart; },
     {1, "Vulkan, elements of matrices apart", "counted for a 9070 XT, measured on an H200", "2026-11-30"}},
    {"fragments", kAnyDevice, {0, "Vulkan, elements held twice", "counted for a 7900 XTX", "2026-11-30"}},
    // 8B Q4_K_M, tok/s of prompts of 4096: 13050 so and 11850 by subgroups' matrices.
    {"unpack",
     [](const DeviceClass& d, std::string_view) { return d.group_matrices; },
     {1, "Vulkan, matrices of work-groups", "measured on an H100", "2026-11-22"}},
    {"unpack", kAnyDevice, {0, "Vulkan, matrices of subgroups", "not measured", ""}},
    // Activations are rounded to 127 levels, which only a gain in time makes up for.
    {"int8", kAnyDevice, {0, "all", "taken only where it was measured", ""}},
};

// The value of "unsorted_rows" is the least places that each expert has on average where they are sorted.
// Places one by one of experts with one each read 1.6 times the bytes; with two, 24 rows of Qwen3-30B-A3B
// took 14.2 ms, and 32 rows, which were sorted, 11.3. "alone_rows": 32 rows of Qwen3.5-35B-A3B take 12.9 ms
// alone, and 23.7 sorted (HIP).
constexpr DefaultRow kExpertDefaults[] = {
    {"unsorted_rows", kHip, {0, "HIP", "as soon as rows do not go by vector", ""}},
    {"unsorted_rows", kAnyDevice, {1, "Vulkan", "measured on an H200", "2026-11-30"}},
    {"alone_rows", kAnyDevice, {32, "all", "measured on an H200", "2026-11-30"}},
    {"int8", kAnyDevice, {0, "all", "taken only where it was measured", ""}},
    // A token of Qwen3-30B-A3B takes 48 dispatches of some 336 less.
    {"fused", kAnyDevice, {1, "all", "counted", "2026-11-25"}},
    {"chosen_late", kAnyDevice, {1, "Vulkan", "counted", "2026-11-26"}},
    {"spread", kHip, {4, "HIP", "measured on an H100", "2026-11-27"}},
};

constexpr DefaultRow kAttentionDefaults[] = {
    // The launch saved is shorter there than rope in each block: Llama-3.1-8B generates 437 to 439 tok/s so
    // instead of 440, Qwen3-30B-A3B 300 instead of 313.
    {"fused",
     [](const DeviceClass& d, std::string_view) { return d.overlaps; },
     {0, "HIP, launches overlap", "measured on an H100", "2026-11-21"}},
    {"fused", kAnyDevice, {1, "launches one by one", "counted: a launch fewer", ""}},
    // That fit into a multiprocessor at a time.
    {"per_unit", kHip, {2, "HIP", "counted", ""}},
};

// Every choice of a table has a row that fits any device that offers it.
constexpr const Default& default_of(std::span<const DefaultRow> table, std::string_view choice,
                                    const DeviceClass& device, std::string_view format = {}) {
    return std::ranges::find_if(
               table, [&](const DefaultRow& row) { return row.choice == choice && row.fits(device, format); })
        ->usual;
}

}  // namespace redline::gpu
