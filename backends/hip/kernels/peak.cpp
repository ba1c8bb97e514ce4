// What the machine's matrix units do when nothing has to be fetched: products of tiles that stay in
// registers, by the instruction of matrix.h (MFMA, WMMA, mma.sync) and, in int8, by the one beside it.
#include "kernels/args.h"
#include "kernels/matrix.h"

#if !defined(__HIP__) || defined(__GFX9__) || defined(__GFX11__) || defined(__GFX12__)

namespace redline::hip {

using args::PeakArgs;

// Four rows of tiles with two columns: so many sums at a time hide an instruction's latency.
constexpr uint32_t kPeakRows = 4, kPeakColumns = 2;
constexpr uint32_t kPeakSums = kPeakRows * kPeakColumns;

// A lane's words of tiles of 16 x 32 bytes, and of 16 x 16 sums.
#if defined(__GFX9__)
constexpr uint32_t kByteWords = 2;
using ByteSums = int __attribute__((ext_vector_type(4)));
#elif defined(__HIP__)
#if defined(__GFX11__)
constexpr uint32_t kByteWords = 8;
#else
constexpr uint32_t kByteWords = 4;
#endif
using ByteSums = int __attribute__((ext_vector_type(8)));
#elif defined(__CUDACC__)
constexpr uint32_t kByteWords = 4;
struct ByteSums {
    int d[8];
    RL_DEVICE int operator[](uint32_t i) const { return d[i]; }
};
#else
constexpr uint32_t kByteWords = 128;
struct ByteSums {
    int d[256];
    int operator[](uint32_t i) const { return d[i]; }
};
#endif
struct ByteTile {
    uint32_t d[kByteWords];
};

RL_DEVICE void multiply_add_bytes(const ByteTile& a, const ByteTile& b, ByteSums& sums) {
#if defined(__gfx90a__)
    for (uint32_t i = 0; i < 2; ++i)
        sums = __builtin_amdgcn_mfma_i32_16x16x16i8(int(a.d[i]), int(b.d[i]), sums, 0, 0, 0);
#elif defined(__GFX9__)
    const auto pair = [](const ByteTile& t) { return long(uint64_t(t.d[1]) << 32 | t.d[0]); };
    sums = __builtin_amdgcn_mfma_i32_16x16x32_i8(pair(a), pair(b), sums, 0, 0, 0);
#elif defined(__GFX11__)
    using Int4 = int __attribute__((ext_vector_type(4)));
    RL_UNROLL
    for (uint32_t i = 0; i < 8; i += 4) {
        const Int4 x = {int(a.d[i]), int(a.d[i + 1]), int(a.d[i + 2]), int(a.d[i + 3])};
        const Int4 y = {int(b.d[i]), int(b.d[i + 1]), int(b.d[i + 2]), int(b.d[i + 3])};
        sums = __builtin_amdgcn_wmma_i32_16x16x16_iu8_w32(true, x, true, y, sums, false);
    }
#elif defined(__GFX12__)
    using Int2 = int __attribute__((ext_vector_type(2)));
    RL_UNROLL
    for (uint32_t i = 0; i < 4; i += 2) {
        const Int2 x = {int(a.d[i]), int(a.d[i + 1])}, y = {int(b.d[i]), int(b.d[i + 1])};
        sums = __builtin_amdgcn_wmma_i32_16x16x16_iu8_w32_gfx12(true, x, true, y, sums, false);
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

// Ones, or numbers as good as random: what they are costs power, and so speed.
RL_DEVICE uint32_t bits_of(const PeakArgs& args, uint32_t i) {
    return (i * 2654435761u ^ thread_index() * 2246822519u) * 3266489917u * args.varied;
}
// Halfs of magnitude 1 to 2, of either sign.
RL_DEVICE uint16_t half_of(const PeakArgs& args, uint32_t i) {
    return uint16_t(0x3C00u | (bits_of(args, i) >> 16 & 0x83FFu));
}
RL_DEVICE uint32_t bytes_of(const PeakArgs& args, uint32_t i) {
    return 0x01010101u ^ bits_of(args, i);
}

// The sums of all elements of a thread, by their number: of ones it is what an element should be.
template <typename Sums>
RL_DEVICE void write_sums(const PeakArgs& args, const Sums (&sums)[kPeakSums], uint32_t elements) {
    float all = 0.0f;
    for (uint32_t n = 0; n < kPeakSums; ++n)
        for (uint32_t i = 0; i < elements; ++i) {
            if constexpr (requires { float(sums[n][i]); })
                all += float(sums[n][i]);
            else
                all += sums[n].d[i];
        }
    args.out[size_t(block_index().x) * kTileThreads + thread_index()] = all / float(kPeakSums * elements);
}

RL_DENSE_KERNEL(kTileThreads, 2, peak_halfs, PeakArgs) {
    RL_SHARED uint16_t tiles[(kPeakRows + kPeakColumns) * 256];
    for (uint32_t i = thread_index(); i < (kPeakRows + kPeakColumns) * 256; i += kTileThreads)
        tiles[i] = half_of(args, i);
    sync_block();
    MatrixTile a[kPeakRows], b[kPeakColumns];
    RL_UNROLL
    for (uint32_t i = 0; i < kPeakRows; ++i) a[i] = load_tile(tiles + i * 256, 16);
    RL_UNROLL
    for (uint32_t i = 0; i < kPeakColumns; ++i) b[i] = load_tile(tiles + (kPeakRows + i) * 256, 16);
    MatrixSums sums[kPeakSums] = {};
    for (uint32_t round = 0; round < args.rounds; ++round) {
        RL_UNROLL
        for (uint32_t n = 0; n < kPeakSums; ++n)
            multiply_add(a[n / kPeakColumns], b[n % kPeakColumns], sums[n]);
    }
    write_sums(args, sums, kSumsPerLane);
}

RL_DENSE_KERNEL(kTileThreads, 2, peak_bytes, PeakArgs) {
    ByteTile a[kPeakRows], b[kPeakColumns];
    for (uint32_t i = 0; i < kPeakRows; ++i) RL_UNROLL
    for (uint32_t k = 0; k < kByteWords; ++k) a[i].d[k] = bytes_of(args, i * kByteWords + k);
    for (uint32_t i = 0; i < kPeakColumns; ++i) RL_UNROLL
    for (uint32_t k = 0; k < kByteWords; ++k) b[i].d[k] = bytes_of(args, (kPeakRows + i) * kByteWords + k);
    ByteSums sums[kPeakSums] = {};
    for (uint32_t round = 0; round < args.rounds; ++round) {
        RL_UNROLL
        for (uint32_t n = 0; n < kPeakSums; ++n)
            multiply_add_bytes(a[n / kPeakColumns], b[n % kPeakColumns], sums[n]);
    }
    write_sums(args, sums, kSumsPerLane);
}

}  // namespace redline::hip

#endif
