// Products of 16 x 16 tiles of int8 over 32 columns with sums in int32, as the machine's matrix units do
// them: which elements are a lane's is as matrix.h has it of halfs.
//   RDNA 3, 4: WMMA; CDNA: MFMA; NVIDIA: mma with tensor cores; RDNA 2 has dot products of four alone; on the
//   host one lane holds all.
#pragma once

#include "kernels/matrix.h"

namespace redline::hip {

// Rows of 64 bytes in shared memory are so far apart that rows which lanes read together are in different
// banks.
#if defined(__GFX9__)
constexpr uint32_t kByteStride = 88;
#else
constexpr uint32_t kByteStride = 80;
#endif

#if defined(__HIP__)
using Ints2 = int __attribute__((ext_vector_type(2)));
using Ints4 = int __attribute__((ext_vector_type(4)));
using Ints8 = int __attribute__((ext_vector_type(8)));
#endif

// A lane's words of a tile, and its sums.
#if defined(__GFX9__)
constexpr uint32_t kByteWords = 2;
struct ByteSums {
    Ints4 d;
};
#elif defined(__GFX11__) || defined(__GFX12__)
#if defined(__GFX11__)
constexpr uint32_t kByteWords = 8;
#else
constexpr uint32_t kByteWords = 4;
#endif
struct ByteSums {
    Ints8 d;
};
#elif defined(__HIP__)
constexpr uint32_t kByteWords = 8;
struct ByteSums {
    int32_t d[8];
};
#elif defined(__CUDACC__)
constexpr uint32_t kByteWords = 4;
struct ByteSums {
    int32_t d[8];
};
#else
constexpr uint32_t kByteWords = 128;
struct ByteSums {
    int32_t d[256];
};
#endif
struct ByteTile {
    uint32_t d[kByteWords];
};

// sums(row, column) += the row of a . the row of b.
#if !defined(__GFX10__)
RL_DEVICE void multiply_add_bytes(const ByteTile& a, const ByteTile& b, ByteSums& sums) {
#if defined(__gfx90a__)
    RL_UNROLL
    for (uint32_t i = 0; i < 2; ++i)
        sums.d = __builtin_amdgcn_mfma_i32_16x16x16i8(int(a.d[i]), int(b.d[i]), sums.d, 0, 0, 0);
#elif defined(__GFX9__)
    const auto pair = [](const ByteTile& t) { return long(uint64_t(t.d[1]) << 32 | t.d[0]); };
    sums.d = __builtin_amdgcn_mfma_i32_16x16x32_i8(pair(a), pair(b), sums.d, 0, 0, 0);
#elif defined(__GFX11__)
    RL_UNROLL
    for (uint32_t i = 0; i < 8; i += 4) {
        const Ints4 x = {int(a.d[i]), int(a.d[i + 1]), int(a.d[i + 2]), int(a.d[i + 3])};
        const Ints4 y = {int(b.d[i]), int(b.d[i + 1]), int(b.d[i + 2]), int(b.d[i + 3])};
        sums.d = __builtin_amdgcn_wmma_i32_16x16x16_iu8_w32(true, x, true, y, sums.d, false);
    }
#elif defined(__GFX12__)
    RL_UNROLL
    for (uint32_t i = 0; i < 4; i += 2) {
        const Ints2 x = {int(a.d[i]), int(a.d[i + 1])}, y = {int(b.d[i]), int(b.d[i + 1])};
        sums.d = __builtin_amdgcn_wmma_i32_16x16x16_iu8_w32_gfx12(true, x, true, y, sums.d, false);
    }
#elif defined(__CUDACC__)
    RL_UNROLL
    for (uint32_t n = 0; n < 2; ++n) {
        int* s = sums.d + n * 4;
        asm("mma.sync.aligned.m16n8k32.row.col.s32.s8.s8.s32 {%0, %1, %2, %3}, {%4, %5, %6, %7}, {%8, %9}, "
            "{%0, %1, %2, %3};"
            : "+r"(s[0]), "+r"(s[1]), "+r"(s[2]), "+r"(s[3])
            : "r"(a.d[0]), "r"(a.d[1]), "r"(a.d[2]), "r"(a.d[3]), "r"(b.d[n]), "r"(b.d[n + 2]));
    }
#else
    for (uint32_t row = 0; row < 16; ++row)
        for (uint32_t column = 0; column < 16; ++column)
            for (uint32_t k = 0; k < 8; ++k)
                sums.d[row * 16 + column] =
                    dot4(a.d[row * 8 + k], b.d[column * 8 + k], sums.d[row * 16 + column]);
#endif
}
#endif

// A tile of 16 rows of shared memory that are kByteStride apart.
RL_DEVICE ByteTile load_bytes(const uint8_t* tile) {
    ByteTile out;
#if defined(__GFX9__)
    // The two halves of the columns are any halves: factors have the same.
    const auto words =
        *reinterpret_cast<const Words2*>(tile + lane_index() % 16 * kByteStride + lane_index() / 16 * 8);
    out.d[0] = words.d[0];
    out.d[1] = words.d[1];
#elif defined(__GFX12__)
    const auto words =
        *reinterpret_cast<const Words4*>(tile + lane_index() % 16 * kByteStride + lane_index() / 16 * 16);
    RL_UNROLL
    for (uint32_t i = 0; i < 4; ++i) out.d[i] = words.d[i];
#elif defined(__HIP__)
    const auto* row = reinterpret_cast<const Words4*>(tile + lane_index() % 16 * kByteStride);
    const Words4 low = row[0], high = row[1];
    RL_UNROLL
    for (uint32_t i = 0; i < 4; ++i) {
        out.d[i] = low.d[i];
        out.d[i + 4] = high.d[i];
    }
#elif defined(__CUDACC__)
    const uint32_t lane = lane_index();
    const auto address = uint32_t(__cvta_generic_to_shared(tile + lane % 16 * kByteStride + lane / 16 * 16));
    asm volatile("ldmatrix.sync.aligned.m8n8.x4.shared.b16 {%0, %1, %2, %3}, [%4];"
                 : "=r"(out.d[0]), "=r"(out.d[1]), "=r"(out.d[2]), "=r"(out.d[3])
                 : "r"(address)
                 : "memory");
#else
    for (uint32_t i = 0; i < 128; ++i) out.d[i] = load<uint32_t>(tile + i / 8 * kByteStride, i % 8);
#endif
    return out;
}

// Sums of 32 products begin in the mantissa of 1.5 * 2^23, where they are floats already: no instruction
// converts them. What a product with a scale has too much is exact if the scale has 22 bits: short_scale().
constexpr int32_t kByteStart = 0x4B400000;
constexpr float kByteStartValue = 12582912.0f;
RL_DEVICE ByteSums begin_byte_sums() {
    ByteSums sums;
    RL_UNROLL
    for (uint32_t i = 0; i < kSumsPerLane; ++i) sums.d[i] = kByteStart;
    return sums;
}

#if defined(__GFX10__)
// The products of a tile in shared memory with several that were loaded. Each row of the first is read once
// for all of the second ones: all of a wave's half read the same.
template <uint32_t kCount>
RL_DEVICE void multiply_bytes_all(const uint8_t* tile, const ByteTile (&b)[kCount],
                                  ByteSums (&sums)[kCount]) {
    const uint8_t* rows = tile + lane_index() / 16 * 8 * kByteStride;
    RL_UNROLL
    for (uint32_t i = 0; i < 8; ++i) {
        const auto* row = reinterpret_cast<const Words4*>(rows + i * kByteStride);
        const Words4 low = row[0], high = row[1];
        RL_UNROLL
        for (uint32_t n = 0; n < kCount; ++n) {
            int32_t sum = kByteStart;
            RL_UNROLL
            for (uint32_t k = 0; k < 4; ++k) sum = dot4(low.d[k], b[n].d[k], sum);
            RL_UNROLL
            for (uint32_t k = 0; k < 4; ++k) sum = dot4(high.d[k], b[n].d[k + 4], sum);
            sums[n].d[i] = sum;
        }
        // Or the compiler reads all rows before the first product.
        RL_UNROLL
        for (uint32_t n = 0; n < kCount; ++n)
            if (i % 2 == 1) asm volatile("" : "+v"(sums[n].d[i - 1]), "+v"(sums[n].d[i])::"memory");
    }
}
#endif

}  // namespace redline::hip
