// Matrix kernels of the AMX level; very few activation rows are left to the AVX-512 level.
#include "linear_amx_int8.h"

#include "linear_table.h"

namespace redline::cpu {

namespace {

// The ways of a product, by its activation rows: AVX-512 for the fewest, int8 tiles, bfloat16 tiles for more.
// Cycles for 16 rows by 32 columns of weights that come from memory, 2048 columns, two threads of a Sapphire
// Rapids at 2.6 GHz, 2026-11-30 (tools/bench/sapphire-rapids-vm-2/2026-11-30-cpu-rows.md):
//                           rows   5    6    7    8    9   16   32   48
//   Q4_K  AVX-512                 65   72   78   83   94  136  231  330
//         int8 tiles              71   71   72   71   84   98  191  280
//         bfloat16 tiles                                     215  246
//   Q6_K  AVX-512                 78   81   89   95  137  177  289  404
//         int8 tiles             112  102  107  103  119  140  245  369
//         bfloat16 tiles                                     260  302
//   Q8_0  AVX-512                 83   82   88   97  147  165  249  360
//         int8 tiles             103  102  107  100       121  195  282
//         bfloat16 tiles                                     280  322
struct WaysByRows {
    uint32_t gguf_id;
    size_t fewest_int8, most_int8;
};
constexpr WaysByRows kWaysByRows[] = {
    {Q5_K<Avx512>::kId, 8, 32},
    {Q6_K<Avx512>::kId, 9, 32},
    {Q8_0<Avx512>::kId, 9, 48},
};
constexpr WaysByRows kUsualWays = {0, 6, 32};

consteval bool are_sound(std::span<const WaysByRows> all) {
    for (const WaysByRows& ways : all)
        if (ways.fewest_int8 < size_t(kRowQuad) || ways.most_int8 > kMostTiles * kTile) return false;
    return true;
}
static_assert(are_sound(kWaysByRows) && are_sound({&kUsualWays, 1}));

const WaysByRows& ways_by_rows(uint32_t gguf_id) {
    for (const WaysByRows& ways : kWaysByRows)
        if (ways.gguf_id == gguf_id) return ways;
    return kUsualWays;
}

template <template <class, class> class Entry>
const LinearKernel* find_amx(uint32_t gguf_id) {
    for (const auto find :
         {find_plain<Avx512, Entry>, find_low_k<Avx512, Entry>, find_high_k<Avx512, Entry>,
          find_nonlinear<Avx512, Entry>, find_code_books<Avx512, Entry>, find_ternary<Avx512, Entry>})
        if (const LinearKernel* kernel = find(gguf_id)) return kernel;
    return nullptr;
}

}  // namespace

const LinearKernel* linear_kernel_amx(uint32_t gguf_id, size_t x_rows) {
    const WaysByRows& ways = ways_by_rows(gguf_id);
    if (x_rows < ways.fewest_int8) return nullptr;
    if (x_rows <= ways.most_int8) return find_amx<AmxInt8Product>(gguf_id);
    return find_amx<AmxProduct>(gguf_id);
}

}  // namespace redline::cpu
