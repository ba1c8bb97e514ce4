// Products and experts whose crossovers between ways lie elsewhere than by default: values that a kernel does
// not offer on a device are ignored there.
#pragma once

#include "cases/kernel_cases.h"

namespace redline {

// Prefixes under which a block of experts has the choices of its parts, with Vulkan.
inline void set_crossover(OpCase& c, const std::string& name, uint32_t value) {
    for (const char* prefix : {"", "gated_", "sum_", "shared_gated_", "shared_sum_"})
        c.variant[prefix + name] = value;
    c.name += fmt::format(", {} {}", name, value);
}

inline void add_product_crossovers(std::vector<OpCase>& cases, const Format& format) {
    struct Moved {
        uint32_t rows;
        const char* name;
        uint32_t value;
    };
    constexpr Moved kMoved[] = {
        {2, "vector_rows", 2}, {2, "vector_rows", 1}, {3, "vector_rows", 4},     {6, "vector_rows", 8},
        {6, "vector_rows", 4}, {16, "few_rows", 8},   {40, "few_rows", 32},      {20, "few_rows", 32},
        {20, "dot_rows", 32},  {16, "dot_rows", 8},   {40, "fragment_rows", 16}, {130, "unpack", 0},
        {130, "unpack", 1},
    };
    for (const Moved& moved : kMoved) {
        std::vector<OpCase> all = {linear_case(format, moved.rows, 70, 512, {true, true, true}),
                                   gated_case(format, Act::silu, true, moved.rows, 70, 512),
                                   group_case(format, format, moved.rows)};
        for (OpCase& c : all) {
            set_crossover(c, moved.name, moved.value);
            cases.push_back(std::move(c));
        }
    }
}

inline void add_expert_crossovers(std::vector<OpCase>& cases, const Format& format) {
    for (const uint32_t value : {8u, 16u, 32u}) {
        std::vector<OpCase> all = {long_expert_case(format, 20, 512, true),
                                   long_expert_case(format, 20, 512, false), long_sum_case(format, 20, 512)};
        for (OpCase& c : all) {
            set_crossover(c, "unsorted_rows", value);
            cases.push_back(std::move(c));
        }
    }
    for (const uint32_t value : {8u, 16u, 64u}) {
        cases.push_back(experts_layer_case(format, {10, 8, 256, 256}, 20));
        set_crossover(cases.back(), "alone_rows", value);
        // With floats two experts of a row of that case are as good as equal.
        if (value == 64 && format.name == "Q4_K") continue;
        cases.push_back(shared_expert_case(format, {9, 2, 256, 256}, {768, format.name, true}, 50));
        set_crossover(cases.back(), "alone_rows", value);
        set_crossover(cases.back(), "unsorted_rows", 64);
    }
}

// Tiles of each number of places, in halfs and in int8, where they are full, partly filled, and empty: of
// experts with all places, one that each row has beside others, and none.
inline void add_expert_tiles(std::vector<OpCase>& cases, const Format& format) {
    for (const uint32_t places : {32u, 64u})
        for (const uint32_t int8 : {0u, 1u}) {
            std::vector<OpCase> all = {many_rows_case(format, {16, 1, 256, 512, 5}, 100),
                                       many_rows_case(format, {40, 2, 256, 256, 5}, 100),
                                       many_rows_case(format, {8, 2, 256, 256, 7}, 70),
                                       many_rows_case(format, {9, 3, 256, 256}, 33),
                                       biased_experts_case(format, {7, 3, 256, 256}, 40)};
            for (OpCase& c : all) {
                c.alike = true;  // what is rounded of hidden values, by the CPU always
                set_crossover(c, "tile_tokens", places);
                set_crossover(c, "int8", int8);
                cases.push_back(std::move(c));
            }
        }
}

inline std::vector<OpCase> crossover_cases() {
    std::vector<OpCase> cases;
    for (const char* name : {"Q4_K", "Q8_0", "F16"}) {
        add_product_crossovers(cases, *find_format(name));
        add_expert_crossovers(cases, *find_format(name));
        add_expert_tiles(cases, *find_format(name));
    }
    return cases;
}

}  // namespace redline
