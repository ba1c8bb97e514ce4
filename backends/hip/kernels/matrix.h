// Products of 16 x 16 halfs with sums in f32, as the machine's matrix units do them; besides wave.h and
// peak.cpp the only file with intrinsics. A wave holds a tile together: which elements are a lane's is the
// machine's affair. Both factors lie in shared memory along the dimension that is summed over, rows `stride`
// halfs apart and aligned to 16 bytes.
//   RDNA 3, 4: WMMA; CDNA: MFMA; NVIDIA: mma with tensor cores; RDNA 2 has pairwise dot products alone; on
//   the host one lane holds all.
#pragma once

#include "kernels/wave.h"

namespace redline::hip {

constexpr uint32_t kMatrixSize = 16;

// Where an eight of halfs lies in rows of 64 that are not padded, so that eights below each other are in
// different banks. Of the eights of a row from a multiple of 2^n on, another 2^n - 1 are found by the
// exclusive or.
RL_DEVICE uint32_t swizzled_eight(uint32_t row, uint32_t eight) {
    return row * 8 + (eight ^ row % 8);
}

#if defined(__HIP__)

using Halfs2 = _Float16 __attribute__((ext_vector_type(2)));
using Halfs4 = _Float16 __attribute__((ext_vector_type(4)));
using Halfs8 = _Float16 __attribute__((ext_vector_type(8)));
using Halfs16 = _Float16 __attribute__((ext_vector_type(16)));
using Floats4 = float __attribute__((ext_vector_type(4)));
using Floats8 = float __attribute__((ext_vector_type(8)));

// The low halfs of two words, or the high ones, are one pair: rounded to nearest.
RL_DEVICE uint32_t half_pair(float low, float high) {
    const Halfs2 pair = {_Float16(low), _Float16(high)};
    return __builtin_bit_cast(uint32_t, pair);
}

// Arithmetic of both halfs of a pair.
RL_DEVICE uint32_t pair_minus(uint32_t a, uint32_t b) {
    return __builtin_bit_cast(uint32_t, __builtin_bit_cast(Halfs2, a) - __builtin_bit_cast(Halfs2, b));
}
RL_DEVICE uint32_t pair_times(uint32_t a, uint32_t b) {
    return __builtin_bit_cast(uint32_t, __builtin_bit_cast(Halfs2, a) * __builtin_bit_cast(Halfs2, b));
}
RL_DEVICE uint32_t pair_fused(uint32_t a, uint32_t b, uint32_t c) {
    return __builtin_bit_cast(
        uint32_t, __builtin_elementwise_fma(__builtin_bit_cast(Halfs2, a), __builtin_bit_cast(Halfs2, b),
                                            __builtin_bit_cast(Halfs2, c)));
}

#if defined(__GFX9__)

constexpr uint32_t kSumsPerLane = 4;
struct MatrixTile {
    Halfs4 d;
};
struct MatrixSums {
    Floats4 d;
};
RL_DEVICE MatrixTile load_tile(const uint16_t* tile, uint32_t stride) {
    const uint32_t lane = lane_index();
    return {*reinterpret_cast<const Halfs4*>(tile + lane % 16 * stride + lane / 16 * 4)};
}
// Eights of halfs lie as swizzled_eight() has them.
#define RL_SWIZZLES
RL_DEVICE MatrixTile load_swizzled(const uint16_t* tile, uint32_t eight) {
    const uint32_t lane = lane_index(), row = lane % 16;
    const uint32_t at = swizzled_eight(row, lane / 32) ^ eight;
    return {*reinterpret_cast<const Halfs4*>(tile + at * 8 + lane / 16 % 2 * 4)};
}
RL_DEVICE void multiply_add(const MatrixTile& a, const MatrixTile& b, MatrixSums& sums) {
    sums.d = __builtin_amdgcn_mfma_f32_16x16x16f16(a.d, b.d, sums.d, 0, 0, 0);
}
RL_DEVICE uint32_t sum_row(uint32_t i) {
    return lane_index() / 16 * 4 + i;
}
RL_DEVICE MatrixTile tile_of_sums(const MatrixSums& s, uint16_t*) {
    return {Halfs4{_Float16(s.d[0]), _Float16(s.d[1]), _Float16(s.d[2]), _Float16(s.d[3])}};
}
#define RL_FACTORS
constexpr uint32_t kFactorRows = 1, kFactorUnits = 4, kFactorFours = 1;

#elif defined(__GFX12__)

constexpr uint32_t kSumsPerLane = 8;
struct MatrixTile {
    Halfs8 d;
};
struct MatrixSums {
    Floats8 d;
};
RL_DEVICE MatrixTile load_tile(const uint16_t* tile, uint32_t stride) {
    const uint32_t lane = lane_index();
    return {*reinterpret_cast<const Halfs8*>(tile + lane % 16 * stride + lane / 16 * 8)};
}
RL_DEVICE void multiply_add(const MatrixTile& a, const MatrixTile& b, MatrixSums& sums) {
    sums.d = __builtin_amdgcn_wmma_f32_16x16x16_f16_w32_gfx12(a.d, b.d, sums.d);
}
RL_DEVICE uint32_t sum_row(uint32_t i) {
    return lane_index() / 16 * 8 + i;
}
RL_DEVICE MatrixTile tile_of_sums(const MatrixSums& s, uint16_t*) {
    return {__builtin_convertvector(s.d, Halfs8)};
}
#define RL_FACTORS
constexpr uint32_t kFactorRows = 1, kFactorUnits = 2, kFactorFours = 2;

#elif defined(__GFX11__)

constexpr uint32_t kSumsPerLane = 8;
// Lanes 16 .. 31 hold what lanes 0 .. 15 do.
struct MatrixTile {
    Halfs16 d;
};
struct MatrixSums {
    Floats8 d;
};
RL_DEVICE MatrixTile load_tile(const uint16_t* tile, uint32_t stride) {
    const auto* row = reinterpret_cast<const Halfs8*>(tile + lane_index() % 16 * stride);
    const Halfs8 low = row[0], high = row[1];
    return {__builtin_shufflevector(low, high, 0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15)};
}
RL_DEVICE void multiply_add(const MatrixTile& a, const MatrixTile& b, MatrixSums& sums) {
    sums.d = __builtin_amdgcn_wmma_f32_16x16x16_f16_w32(a.d, b.d, sums.d);
}
RL_DEVICE uint32_t sum_row(uint32_t i) {
    return i * 2 + lane_index() / 16;
}
// The other half of the wave has every second row.
RL_DEVICE MatrixTile tile_of_sums(const MatrixSums& s, uint16_t*) {
    const bool odd = lane_index() / 16 != 0;
    uint32_t words[8];
    RL_UNROLL
    for (uint32_t i = 0; i < 4; ++i) {
        const uint32_t own = half_pair(s.d[i * 2], s.d[i * 2 + 1]), other = across_rows(own);
        const uint32_t even_rows = odd ? other : own, odd_rows = odd ? own : other;
        words[i * 2] = pick_bytes(0x05040100u, even_rows, odd_rows);
        words[i * 2 + 1] = pick_bytes(0x07060302u, even_rows, odd_rows);
    }
    return __builtin_bit_cast(MatrixTile, words);
}
#define RL_FACTORS
constexpr uint32_t kFactorRows = 1, kFactorUnits = 1, kFactorFours = 4;

#else

constexpr uint32_t kSumsPerLane = 8;
// A lane's row of the tile as the second factor. Of the first it needs eight rows, which are read from shared
// memory as they are used: all of a wave's half read the same.
struct MatrixTile {
    const uint16_t* rows;
    uint32_t stride;
    Words4 low, high;
};
struct MatrixSums {
    float d[8];
};
RL_DEVICE MatrixTile load_tile(const uint16_t* tile, uint32_t stride) {
    const auto* row = reinterpret_cast<const Words4*>(tile + lane_index() % 16 * stride);
    return {tile + lane_index() / 16 * 8 * stride, stride, row[0], row[1]};
}
RL_DEVICE float pair_dot(uint32_t x, uint32_t y, float sum) {
    return __builtin_amdgcn_fdot2(__builtin_bit_cast(Halfs2, x), __builtin_bit_cast(Halfs2, y), sum, false);
}
RL_DEVICE void multiply_add(const MatrixTile& a, const MatrixTile& b, MatrixSums& sums) {
    RL_UNROLL
    for (uint32_t i = 0; i < 8; ++i) {
        const auto* row = reinterpret_cast<const Words4*>(a.rows + i * a.stride);
        const Words4 low = row[0], high = row[1];
        RL_UNROLL
        for (uint32_t k = 0; k < 4; ++k) sums.d[i] = pair_dot(low.d[k], b.low.d[k], sums.d[i]);
        RL_UNROLL
        for (uint32_t k = 0; k < 4; ++k) sums.d[i] = pair_dot(high.d[k], b.high.d[k], sums.d[i]);
        // Or the compiler reads the rows of all products before the first.
        if (i % 2 == 1) asm volatile("" : "+v"(sums.d[i - 1]), "+v"(sums.d[i])::"memory");
    }
}
// Each row of the first factor is read once for all of the second ones: reading it for each takes twice the
// time of the products.
#define RL_READS_FIRST_FACTOR
template <uint32_t kCount>
RL_DEVICE void multiply_add_all(const MatrixTile& a, const MatrixTile (&b)[kCount],
                                MatrixSums (&sums)[kCount]) {
    RL_UNROLL
    for (uint32_t i = 0; i < 8; ++i) {
        const auto* row = reinterpret_cast<const Words4*>(a.rows + i * a.stride);
        const Words4 low = row[0], high = row[1];
        RL_UNROLL
        for (uint32_t n = 0; n < kCount; ++n) {
            RL_UNROLL
            for (uint32_t k = 0; k < 4; ++k) sums[n].d[i] = pair_dot(low.d[k], b[n].low.d[k], sums[n].d[i]);
            RL_UNROLL
            for (uint32_t k = 0; k < 4; ++k) sums[n].d[i] = pair_dot(high.d[k], b[n].high.d[k], sums[n].d[i]);
        }
        RL_UNROLL
        for (uint32_t n = 0; n < kCount; ++n)
            if (i % 2 == 1) asm volatile("" : "+v"(sums[n].d[i - 1]), "+v"(sums[n].d[i])::"memory");
    }
}
RL_DEVICE uint32_t sum_row(uint32_t i) {
    return lane_index() / 16 * 8 + i;
}
// As a second factor only.
RL_DEVICE MatrixTile tile_of_sums(const MatrixSums& s, uint16_t*) {
    const bool upper = lane_index() / 16 != 0;
    MatrixTile out = {};
    RL_UNROLL
    for (uint32_t i = 0; i < 4; ++i) {
        const uint32_t own = half_pair(s.d[i * 2], s.d[i * 2 + 1]), other = across_rows(own);
        out.low.d[i] = upper ? other : own;
        out.high.d[i] = upper ? own : other;
    }
    return out;
}

#endif

RL_DEVICE uint32_t sum_column(uint32_t) {
    return lane_index() % 16;
}

// The sums are made here, and nothing is read early for what follows: there are few registers.
RL_DEVICE void settle([[maybe_unused]] MatrixSums& sums) {
#if defined(__GFX11__) || defined(__GFX12__)
    asm volatile("" : "+v"(sums.d)::"memory");
#endif
}

constexpr bool kLinesAreRows = false, kLoadsAcross = false, kTilesInPlace = false;
constexpr uint32_t kLines = 1;
RL_DEVICE uint32_t line_of(uint32_t) {
    return 0;
}
RL_DEVICE uint32_t line_number(uint32_t) {
    return lane_index() % 16;
}
template <typename Fold>
RL_DEVICE float fold_line(float value, Fold fold) {
    value = fold(value, from_lane_across<16>(value));
    if constexpr (kWave == 64) value = fold(value, from_lane_across<32>(value));
    return value;
}
RL_DEVICE MatrixTile load_tile_across(const uint16_t* tile, uint32_t stride);

#ifdef RL_FACTORS
RL_DEVICE uint32_t factor_row(uint32_t) {
    return lane_index() % 16;
}
RL_DEVICE uint32_t factor_unit() {
    return kFactorUnits == 1 ? 0 : lane_index() / 16;
}
constexpr uint32_t kFactorRoom = 1;
RL_DEVICE MatrixTile factor_of(const Words2 (&fours)[kFactorRows][kFactorFours], uint16_t*) {
    return __builtin_bit_cast(MatrixTile, fours);
}
#endif

#elif defined(__CUDACC__)

constexpr uint32_t kSumsPerLane = 8;
struct MatrixTile {
    uint32_t d[4];
};
struct MatrixSums {
    float d[8];
};
RL_DEVICE uint32_t half_pair(float low, float high) {
    uint32_t pair;
    asm("cvt.rn.f16x2.f32 %0, %1, %2;" : "=r"(pair) : "f"(high), "f"(low));
    return pair;
}
RL_DEVICE uint32_t pair_minus(uint32_t a, uint32_t b) {
    uint32_t pair;
    asm("sub.rn.f16x2 %0, %1, %2;" : "=r"(pair) : "r"(a), "r"(b));
    return pair;
}
RL_DEVICE uint32_t pair_times(uint32_t a, uint32_t b) {
    uint32_t pair;
    asm("mul.rn.f16x2 %0, %1, %2;" : "=r"(pair) : "r"(a), "r"(b));
    return pair;
}
RL_DEVICE uint32_t pair_fused(uint32_t a, uint32_t b, uint32_t c) {
    uint32_t pair;
    asm("fma.rn.f16x2 %0, %1, %2, %3;" : "=r"(pair) : "r"(a), "r"(b), "r"(c));
    return pair;
}
RL_DEVICE MatrixTile load_tile(const uint16_t* tile, uint32_t stride) {
    const uint32_t lane = lane_index();
    const auto address = uint32_t(__cvta_generic_to_shared(tile + lane % 16 * stride + lane / 16 * 8));
    MatrixTile out;
    asm volatile("ldmatrix.sync.aligned.m8n8.x4.shared.b16 {%0, %1, %2, %3}, [%4];"
                 : "=r"(out.d[0]), "=r"(out.d[1]), "=r"(out.d[2]), "=r"(out.d[3])
                 : "r"(address)
                 : "memory");
    return out;
}
RL_DEVICE void multiply_add(const MatrixTile& a, const MatrixTile& b, MatrixSums& sums) {
    RL_UNROLL
    for (uint32_t n = 0; n < 2; ++n) {
        float* s = sums.d + n * 4;
        asm("mma.sync.aligned.m16n8k16.row.col.f32.f16.f16.f32 {%0, %1, %2, %3}, {%4, %5, %6, %7}, {%8, %9}, "
            "{%0, %1, %2, %3};"
            : "+f"(s[0]), "+f"(s[1]), "+f"(s[2]), "+f"(s[3])
            : "r"(a.d[0]), "r"(a.d[1]), "r"(a.d[2]), "r"(a.d[3]), "r"(b.d[n]), "r"(b.d[n + 2]));
    }
}
RL_DEVICE uint32_t sum_row(uint32_t i) {
    return lane_index() / 4 + (i & 2u) * 4;
}
RL_DEVICE uint32_t sum_column(uint32_t i) {
    return lane_index() % 4 * 2 + (i & 1u) + (i & 4u) * 2;
}
RL_DEVICE MatrixTile tile_of_sums(const MatrixSums& s, uint16_t*) {
    return {half_pair(s.d[0], s.d[1]), half_pair(s.d[2], s.d[3]), half_pair(s.d[4], s.d[5]),
            half_pair(s.d[6], s.d[7])};
}

#define RL_FACTORS
constexpr uint32_t kFactorRows = 2, kFactorUnits = 4, kFactorFours = 1, kFactorRoom = 1;
RL_DEVICE uint32_t factor_row(uint32_t i) {
    return lane_index() / 4 + i * 8;
}
RL_DEVICE uint32_t factor_unit() {
    return lane_index() % 4;
}
RL_DEVICE MatrixTile factor_of(const Words2 (&fours)[kFactorRows][kFactorFours], uint16_t*) {
    return {{fours[0][0].d[0], fours[1][0].d[0], fours[0][0].d[1], fours[1][0].d[1]}};
}
#define RL_EIGHT_TOKENS
constexpr uint32_t kEightSums = 4;
RL_DEVICE void multiply_add_eight(const MatrixTile& a, const MatrixTile& b, MatrixSums& sums) {
    float* s = sums.d;
    asm("mma.sync.aligned.m16n8k16.row.col.f32.f16.f16.f32 {%0, %1, %2, %3}, {%4, %5, %6, %7}, {%8, %9}, "
        "{%0, %1, %2, %3};"
        : "+f"(s[0]), "+f"(s[1]), "+f"(s[2]), "+f"(s[3])
        : "r"(a.d[0]), "r"(a.d[1]), "r"(a.d[2]), "r"(a.d[3]), "r"(b.d[0]), "r"(b.d[2]));
}

RL_DEVICE void settle(MatrixSums&) {}

constexpr bool kLinesAreRows = true, kLoadsAcross = true, kTilesInPlace = false;
constexpr uint32_t kLines = 2;
RL_DEVICE uint32_t line_of(uint32_t i) {
    return i / 2 % 2;
}
RL_DEVICE uint32_t line_number(uint32_t line) {
    return lane_index() / 4 + line * 8;
}
template <typename Fold>
RL_DEVICE float fold_line(float value, Fold fold) {
    value = fold(value, from_lane_across<1>(value));
    return fold(value, from_lane_across<2>(value));
}
// Four blocks of 8 x 8, each turned round: those of a row's first columns are d[0] and d[2].
RL_DEVICE MatrixTile load_tile_across(const uint16_t* tile, uint32_t stride) {
    const uint32_t lane = lane_index(), row = lane % 8 + lane / 16 * 8, column = lane / 8 % 2 * 8;
    const auto address = uint32_t(__cvta_generic_to_shared(tile + row * stride + column));
    MatrixTile out;
    asm volatile("ldmatrix.sync.aligned.m8n8.x4.trans.shared.b16 {%0, %1, %2, %3}, [%4];"
                 : "=r"(out.d[0]), "=r"(out.d[1]), "=r"(out.d[2]), "=r"(out.d[3])
                 : "r"(address)
                 : "memory");
    return out;
}

#if defined(__CUDA_ARCH_FEAT_SM90_ALL)
#define RL_WAVE_GROUPS  // as DeviceReport::wave_groups() has it
// From compute capability 9.0 on four waves multiply together, on their own: 64 rows of x in shared memory by
// 16 rows of w for each of kTiles sums that a lane holds. The factors lie as bricks of 8 rows x 8 halfs,
// which are kBrick bytes apart along a row and kBricks from eight rows to the next: a bit more than they
// need, so that neighbours are in different banks.
constexpr uint32_t kBrick = 144, kBricks = 8 * kBrick;
RL_DEVICE uint64_t group_factor(const void* first) {
    const auto address = uint32_t(__cvta_generic_to_shared(first));
    return uint64_t(address >> 4) | uint64_t(kBrick >> 4) << 16 | uint64_t(kBricks >> 4) << 32;
}
// By 16 halfs along the rows.
constexpr uint64_t kNextFactor = 2 * kBrick >> 4;
template <uint32_t kTiles>
RL_DEVICE void multiply_add_group(uint64_t x, uint64_t w, MatrixSums* sums);
#define RL_SUMS(s)                                                                                    \
    "+f"(s.d[0]), "+f"(s.d[1]), "+f"(s.d[2]), "+f"(s.d[3]), "+f"(s.d[4]), "+f"(s.d[5]), "+f"(s.d[6]), \
        "+f"(s.d[7])
template <>
RL_DEVICE void multiply_add_group<2>(uint64_t x, uint64_t w, MatrixSums* s) {
    asm volatile(
        "{ .reg .pred p; setp.eq.u32 p, 0, 0; wgmma.mma_async.sync.aligned.m64n32k16.f32.f16.f16 {"
        "%0, %1, %2, %3, %4, %5, %6, %7, %8, %9, %10, %11, %12, %13, %14, %15"
        "}, %16, %17, p, 1, 1, 0, 0; }"
        : RL_SUMS(s[0]), RL_SUMS(s[1])
        : "l"(x), "l"(w));
}
template <>
RL_DEVICE void multiply_add_group<4>(uint64_t x, uint64_t w, MatrixSums* s) {
    asm volatile(
        "{ .reg .pred p; setp.eq.u32 p, 0, 0; wgmma.mma_async.sync.aligned.m64n64k16.f32.f16.f16 {"
        "%0, %1, %2, %3, %4, %5, %6, %7, %8, %9, %10, %11, %12, %13, %14, %15, "
        "%16, %17, %18, %19, %20, %21, %22, %23, %24, %25, %26, %27, %28, %29, %30, %31"
        "}, %32, %33, p, 1, 1, 0, 0; }"
        : RL_SUMS(s[0]), RL_SUMS(s[1]), RL_SUMS(s[2]), RL_SUMS(s[3])
        : "l"(x), "l"(w));
}
template <>
RL_DEVICE void multiply_add_group<8>(uint64_t x, uint64_t w, MatrixSums* s) {
    asm volatile(
        "{ .reg .pred p; setp.eq.u32 p, 0, 0; wgmma.mma_async.sync.aligned.m64n128k16.f32.f16.f16 {"
        "%0, %1, %2, %3, %4, %5, %6, %7, %8, %9, %10, %11, %12, %13, %14, %15, "
        "%16, %17, %18, %19, %20, %21, %22, %23, %24, %25, %26, %27, %28, %29, %30, %31, "
        "%32, %33, %34, %35, %36, %37, %38, %39, %40, %41, %42, %43, %44, %45, %46, %47, "
        "%48, %49, %50, %51, %52, %53, %54, %55, %56, %57, %58, %59, %60, %61, %62, %63"
        "}, %64, %65, p, 1, 1, 0, 0; }"
        : RL_SUMS(s[0]), RL_SUMS(s[1]), RL_SUMS(s[2]), RL_SUMS(s[3]), RL_SUMS(s[4]), RL_SUMS(s[5]),
          RL_SUMS(s[6]), RL_SUMS(s[7])
        : "l"(x), "l"(w));
}
#undef RL_SUMS
// What lanes have written to shared memory is seen by products once the block is synchronized.
RL_DEVICE void show_factors() {
    asm volatile("fence.proxy.async.shared::cta;" ::: "memory");
}
// Around products that are given together.
RL_DEVICE void begin_products() {
    asm volatile("wgmma.fence.sync.aligned;" ::: "memory");
}
RL_DEVICE void end_products() {
    asm volatile("wgmma.commit_group.sync.aligned;" ::: "memory");
}
// Until those of this wave are done.
RL_DEVICE void wait_for_products() {
    asm volatile("wgmma.wait_group.sync.aligned 0;" ::: "memory");
}
#endif

#else

constexpr uint32_t kSumsPerLane = 256;
struct MatrixTile {
    const uint16_t* tile;
    uint32_t stride;
};
struct MatrixSums {
    float d[256];
};
RL_DEVICE uint32_t half_pair(float low, float high) {
    return uint32_t(half_bits(low)) | uint32_t(half_bits(high)) << 16;
}
RL_DEVICE float low_half(uint32_t pair) {
    return half_value(uint16_t(pair));
}
RL_DEVICE float high_half(uint32_t pair) {
    return half_value(uint16_t(pair >> 16));
}
RL_DEVICE uint32_t pair_minus(uint32_t a, uint32_t b) {
    return half_pair(low_half(a) - low_half(b), high_half(a) - high_half(b));
}
RL_DEVICE uint32_t pair_times(uint32_t a, uint32_t b) {
    return half_pair(low_half(a) * low_half(b), high_half(a) * high_half(b));
}
RL_DEVICE uint32_t pair_fused(uint32_t a, uint32_t b, uint32_t c) {
    return half_pair(fused(low_half(a), low_half(b), low_half(c)),
                     fused(high_half(a), high_half(b), high_half(c)));
}
RL_DEVICE MatrixTile load_tile(const uint16_t* tile, uint32_t stride) {
    return {tile, stride};
}
RL_DEVICE void multiply_add(const MatrixTile& a, const MatrixTile& b, MatrixSums& sums) {
    float rows[16][16], columns[16][16];
    for (uint32_t i = 0; i < 16; ++i)
        for (uint32_t k = 0; k < 16; ++k) {
            rows[i][k] = half_value(a.tile[i * a.stride + k]);
            columns[k][i] = half_value(b.tile[i * b.stride + k]);
        }
    for (uint32_t row = 0; row < 16; ++row)
        for (uint32_t k = 0; k < 16; ++k)
            for (uint32_t column = 0; column < 16; ++column)
                sums.d[row * 16 + column] += rows[row][k] * columns[k][column];
}
RL_DEVICE uint32_t sum_row(uint32_t i) {
    return i / 16;
}
RL_DEVICE uint32_t sum_column(uint32_t i) {
    return i % 16;
}
RL_DEVICE MatrixTile tile_of_sums(const MatrixSums& s, uint16_t* room) {
    for (uint32_t i = 0; i < 256; ++i) room[i % 16 * 16 + i / 16] = half_bits(s.d[i]);
    return {room, 16};
}

#define RL_FACTORS
#define RL_EIGHT_TOKENS
constexpr uint32_t kFactorRows = 16, kFactorUnits = 1, kFactorFours = 4, kFactorRoom = 256, kEightSums = 256;
RL_DEVICE void multiply_add_eight(const MatrixTile& a, const MatrixTile& b, MatrixSums& sums) {
    multiply_add(a, b, sums);
}
RL_DEVICE uint32_t factor_row(uint32_t i) {
    return i;
}
RL_DEVICE uint32_t factor_unit() {
    return 0;
}
RL_DEVICE MatrixTile factor_of(const Words2 (&fours)[kFactorRows][kFactorFours], uint16_t* room) {
    for (uint32_t row = 0; row < 16; ++row)
        for (uint32_t i = 0; i < 16; ++i)
            room[row * 16 + i] = uint16_t(fours[row][i / 4].d[i / 2 % 2] >> (i % 2 * 16));
    return {room, 16};
}

RL_DEVICE void settle(MatrixSums&) {}

constexpr bool kLinesAreRows = false, kLoadsAcross = false, kTilesInPlace = true;
constexpr uint32_t kLines = 16;
RL_DEVICE uint32_t line_of(uint32_t i) {
    return i % 16;
}
RL_DEVICE uint32_t line_number(uint32_t line) {
    return line;
}
template <typename Fold>
RL_DEVICE float fold_line(float value, Fold) {
    return value;
}
RL_DEVICE MatrixTile load_tile_across(const uint16_t* tile, uint32_t stride);

#endif

// sums(row, column) += the row of a . the row of b: load_tile() of both, multiply_add(); element i of a lane
// is that of sum_row(i) and sum_column(i).
//
// A lane's sums lie in kLines lines, rows or columns: element i in line_of(i), whose number is line_number().
// fold_line() folds a value over the lanes that share a line. Sums become a factor without memory where lanes
// hold them: tile_of_sums() is the first factor where lines are rows, else the second, and sums are over what
// goes along the line. (On the host they take room for 256 halfs.)
//
// Where kLoadsAcross, load_tile_across() makes a second factor of a tile that lies with the dimension that is
// summed over across its rows. Where kTilesInPlace, tiles are not read before they are used.
RL_DEVICE uint32_t place_in_line(uint32_t i) {
    return kLinesAreRows ? sum_column(i) : sum_row(i);
}

// Where shared memory is so small that padded rows would leave room for one block: load_swizzled() makes a
// factor of 16 rows of 64 halfs, of those from an even eight of halfs on.
#ifdef RL_SWIZZLES
constexpr bool kSwizzles = true;
#else
constexpr bool kSwizzles = false;
RL_DEVICE MatrixTile load_swizzled(const uint16_t* tile, uint32_t eight);
#endif

// Factors that lanes make from what they have read, without shared memory (RL_FACTORS): sums may go along the
// columns in any order in which both factors have them. A lane has kFactorRows rows, factor_row(i), of unit
// factor_unit() of kFactorUnits units of 32 columns beside each other. factor_of() makes a factor of
// kFactorFours fours of halfs of each row; the unit has kUnitFactors of them.
// multiply_add_eight() makes, of a second factor that has eight rows, the first kEightSums sums of a lane,
// where that takes less time (RL_EIGHT_TOKENS).
#ifdef RL_FACTORS
constexpr uint32_t kUnitFactors = 8 / kFactorFours;
#ifndef RL_EIGHT_TOKENS
constexpr uint32_t kEightSums = kSumsPerLane;
RL_DEVICE void multiply_add_eight(const MatrixTile& a, const MatrixTile& b, MatrixSums& sums);
#endif
#endif

// multiply_add() of one first factor with several second ones.
#ifdef RL_READS_FIRST_FACTOR
constexpr bool kReadsFirstFactor = true;
#else
constexpr bool kReadsFirstFactor = false;
template <uint32_t kCount>
RL_DEVICE void multiply_add_all(const MatrixTile& a, const MatrixTile (&b)[kCount],
                                MatrixSums (&sums)[kCount]) {
    RL_UNROLL
    for (uint32_t n = 0; n < kCount; ++n) multiply_add(a, b[n], sums[n]);
}
#endif

}  // namespace redline::hip
