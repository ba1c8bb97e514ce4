// The quantized formats as the matrix kernels read them: one descriptor each, for every level. V is the
// level's vector family (linear_avx512.h and its siblings): Bytes are 64 bytes, (16 rows, 4 columns); Floats
// are 16 rows.
//
// A descriptor says, for one panel block (kBlock columns of 16 rows, kBytes long, see PanelField):
//   scales(b, w, m)       the scale, and if kMins the addend, of each group of kGroup columns, over the 16
//   rows; codes<s>(b, use)      calls use(k, j, v) for columns s * kSection + 32 k + 4 j .. + 3, k and j
//   being Index.
// A weight is w * code + m, or w * (code - 2^(kBits - 1)) if kOffset, or w * code with signed codes if
// kSigned. Families that like biased bytes (V::kBiased) get offset codes shifted to the top, so that they and
// signed codes are all 128 + value; the scale takes the shift back.
#pragma once

#include "linear_common.h"

namespace redline::cpu {
namespace {

template <uint32_t kGgufId, int kBlockCols, int kBlockBytes, int kSectionCols, int kGroupCols>
struct Shaped {
    static constexpr uint32_t kId = kGgufId;
    static constexpr int kBlock = kBlockCols;
    static constexpr int kBytes = kBlockBytes * int(kPanelRows);
    static constexpr int kSection = kSectionCols;
    static constexpr int kGroup = kGroupCols;
    static constexpr int kGroups = kBlockCols / kGroupCols;
};

template <class V, int kCodeBits>
struct OffsetCodes {
    static constexpr int kBits = kCodeBits;
    static constexpr bool kOffset = true, kSigned = false, kMins = false;
    static constexpr int kShift = V::kBiased ? 8 - kCodeBits : 0;
    static constexpr float kUnit = 1.0f / float(1 << kShift);
};

template <int kCodeBits>
struct PlainCodes {
    static constexpr int kBits = kCodeBits;
    static constexpr bool kOffset = false, kSigned = false, kMins = true;
};

struct SignedCodes {
    static constexpr int kBits = 8;
    static constexpr bool kOffset = false, kSigned = true, kMins = false;
};

// Four vectors of nibbles: the low ones are columns 0..15 of 32, the high ones columns 16..31.
template <class V, int kTo, class Use>
RL_ALWAYS_INLINE inline void nibbles32(const uint8_t* q, Use&& use) {
    unroll<0, 4>([&](auto j) RL_ALWAYS_INLINE {
        const auto v = V::load(q + 64 * j);
        use(Index<j>{}, V::template place<0, kTo, 4>(v));
        use(Index<j + 4>{}, V::template place<4, kTo, 4>(v));
    });
}

template <class V>
struct Q4_0 : Shaped<2, 32, 18, 32, 32>, OffsetCodes<V, 4> {
    using Me = OffsetCodes<V, 4>;
    RL_ALWAYS_INLINE static void scales(const uint8_t* b, typename V::Floats* w, typename V::Floats*) {
        w[0] = V::mul(V::halfs(b), V::splat(Me::kUnit));
    }
    template <int, class Use>
    RL_ALWAYS_INLINE static void codes(const uint8_t* b, Use&& use) {
        nibbles32<V, Me::kShift>(b + 32, [&](auto j, auto v) RL_ALWAYS_INLINE { use(Index<0>{}, j, v); });
    }
};

template <class V>
struct Q4_1 : Shaped<3, 32, 20, 32, 32>, PlainCodes<4> {
    RL_ALWAYS_INLINE static void scales(const uint8_t* b, typename V::Floats* w, typename V::Floats* m) {
        w[0] = V::halfs(b);
        m[0] = V::halfs(b + 32);
    }
    template <int, class Use>
    RL_ALWAYS_INLINE static void codes(const uint8_t* b, Use&& use) {
        nibbles32<V, 0>(b + 64, [&](auto j, auto v) RL_ALWAYS_INLINE { use(Index<0>{}, j, v); });
    }
};

template <class V>
struct Q5_0 : Shaped<6, 32, 22, 32, 32>, OffsetCodes<V, 5> {
    using Me = OffsetCodes<V, 5>;
    RL_ALWAYS_INLINE static void scales(const uint8_t* b, typename V::Floats* w, typename V::Floats*) {
        w[0] = V::mul(V::halfs(b), V::splat(Me::kUnit));
    }
    template <int, class Use>
    RL_ALWAYS_INLINE static void codes(const uint8_t* b, Use&& use) {
        const auto high = V::load(b + 32);
        nibbles32<V, Me::kShift>(b + 96, [&](auto j, auto v) RL_ALWAYS_INLINE {
            use(Index<0>{}, j, V::template insert<j, Me::kShift + 4, 1>(v, high));
        });
    }
};

template <class V>
struct Q5_1 : Shaped<7, 32, 24, 32, 32>, PlainCodes<5> {
    RL_ALWAYS_INLINE static void scales(const uint8_t* b, typename V::Floats* w, typename V::Floats* m) {
        w[0] = V::halfs(b);
        m[0] = V::halfs(b + 32);
    }
    template <int, class Use>
    RL_ALWAYS_INLINE static void codes(const uint8_t* b, Use&& use) {
        const auto high = V::load(b + 64);
        nibbles32<V, 0>(b + 128, [&](auto j, auto v) RL_ALWAYS_INLINE {
            use(Index<0>{}, j, V::template insert<j, 4, 1>(v, high));
        });
    }
};

template <class V>
struct Q8_0 : Shaped<8, 32, 34, 32, 32>, SignedCodes {
    RL_ALWAYS_INLINE static void scales(const uint8_t* b, typename V::Floats* w, typename V::Floats*) {
        w[0] = V::halfs(b);
    }
    template <int, class Use>
    RL_ALWAYS_INLINE static void codes(const uint8_t* b, Use&& use) {
        unroll<0, 8>([&](auto j)
                         RL_ALWAYS_INLINE { use(Index<0>{}, j, V::signs(V::load(b + 32 + 64 * j))); });
    }
};

alignas(16) constexpr int8_t kIq4Values[16] = {-127, -104, -83, -65, -49, -35, -22, -10,
                                               1,    13,   25,  38,  53,  69,  89,  113};
// Twice the E2M1 numbers.
alignas(16) constexpr int8_t kMx4Values[16] = {0, 1, 2, 3, 4, 6, 8, 12, 0, -1, -2, -3, -4, -6, -8, -12};

template <class V>
struct IQ4_NL : Shaped<20, 32, 18, 32, 32>, SignedCodes {
    RL_ALWAYS_INLINE static void scales(const uint8_t* b, typename V::Floats* w, typename V::Floats*) {
        w[0] = V::halfs(b);
    }
    template <int, class Use>
    RL_ALWAYS_INLINE static void codes(const uint8_t* b, Use&& use) {
        const auto table = V::table(kIq4Values);
        nibbles32<V, 0>(b + 32,
                        [&](auto j, auto v) RL_ALWAYS_INLINE { use(Index<0>{}, j, V::lookup(table, v)); });
    }
};

template <class V>
struct MXFP4 : Shaped<39, 32, 17, 32, 32>, SignedCodes {
    RL_ALWAYS_INLINE static void scales(const uint8_t* b, typename V::Floats* w, typename V::Floats*) {
        w[0] = V::half_powers(b);
    }
    template <int, class Use>
    RL_ALWAYS_INLINE static void codes(const uint8_t* b, Use&& use) {
        const auto table = V::table(kMx4Values);
        nibbles32<V, 0>(b + 16,
                        [&](auto j, auto v) RL_ALWAYS_INLINE { use(Index<0>{}, j, V::lookup(table, v)); });
    }
};

template <class V>
struct IQ4_XS : Shaped<23, 256, 136, 32, 32>, SignedCodes {
    // Six-bit scales less 32: low nibbles two to a byte in 4 bytes, then high pairs four to a byte in 2.
    RL_ALWAYS_INLINE static void scales(const uint8_t* b, typename V::Floats* w, typename V::Floats*) {
        const auto d = V::halfs(b);
        const auto minus32d = V::mul(d, V::splat(-32.0f));
        const auto low = V::load(b + 64);
        alignas(64) uint8_t nibble[2][4][16];  // of scales 2i and 2i + 1
        V::store(nibble[0][0], V::template place<0, 0, 4>(low));
        V::store(nibble[1][0], V::template place<4, 0, 4>(low));
        unroll<0, 8>([&](auto i) RL_ALWAYS_INLINE {
            const auto pair = V::template u8_field<2 * (i % 4), 4, 2>(b + 32 + 16 * (i / 4));
            w[i] = V::fma(V::add(V::u8s(nibble[i % 2][i / 2]), pair), d, minus32d);
        });
    }
    template <int s, class Use>
    RL_ALWAYS_INLINE static void codes(const uint8_t* b, Use&& use) {
        const auto table = V::table(kIq4Values);
        nibbles32<V, 0>(b + 128 + 256 * s,
                        [&](auto j, auto v) RL_ALWAYS_INLINE { use(Index<0>{}, j, V::lookup(table, v)); });
    }
};

// The six-bit scales and minima of Q4_K and Q5_K, 12 bytes of each row at b + 64; d at b, dmin at b + 32.
template <class V>
RL_ALWAYS_INLINE inline void k_scales(const uint8_t* b, typename V::Floats* w, typename V::Floats* m) {
    const auto first = V::load(b + 64), second = V::load(b + 128), third = V::load(b + 192);
    alignas(64) uint8_t scale[8][16], minimum[8][16];
    V::store(scale[0], V::template place<0, 0, 6>(first));
    V::store(minimum[0], V::template place<0, 0, 6>(second));
    V::store(scale[4], V::template insert<6, 4, 2>(V::template place<0, 0, 4>(third), first));
    V::store(minimum[4], V::template insert<6, 4, 2>(V::template place<4, 0, 4>(third), second));
    const auto d = V::halfs(b), minus_dmin = V::mul(V::halfs(b + 32), V::splat(-1.0f));
    unroll<0, 8>([&](auto i) RL_ALWAYS_INLINE {
        w[i] = V::mul(d, V::u8s(scale[i]));
        m[i] = V::mul(minus_dmin, V::u8s(minimum[i]));
    });
}

template <class V>
struct Q4_K : Shaped<12, 256, 144, 64, 32>, PlainCodes<4> {
    RL_ALWAYS_INLINE static void scales(const uint8_t* b, typename V::Floats* w, typename V::Floats* m) {
        k_scales<V>(b, w, m);
    }
    template <int s, class Use>
    RL_ALWAYS_INLINE static void codes(const uint8_t* b, Use&& use) {
        unroll<0, 8>([&](auto j) RL_ALWAYS_INLINE {
            const auto v = V::load(b + 256 + 512 * s + 64 * j);
            use(Index<0>{}, j, V::template place<0, 0, 4>(v));
            use(Index<1>{}, j, V::template place<4, 0, 4>(v));
        });
    }
};

template <class V>
struct Q5_K : Shaped<13, 256, 176, 64, 32>, PlainCodes<5> {
    RL_ALWAYS_INLINE static void scales(const uint8_t* b, typename V::Floats* w, typename V::Floats* m) {
        k_scales<V>(b, w, m);
    }
    template <int s, class Use>
    RL_ALWAYS_INLINE static void codes(const uint8_t* b, Use&& use) {
        unroll<0, 8>([&](auto j) RL_ALWAYS_INLINE {
            const auto high = V::load(b + 256 + 64 * j);
            const auto v = V::load(b + 768 + 512 * s + 64 * j);
            use(Index<0>{}, j, V::template insert<2 * s, 4, 1>(V::template place<0, 0, 4>(v), high));
            use(Index<1>{}, j, V::template insert<2 * s + 1, 4, 1>(V::template place<4, 0, 4>(v), high));
        });
    }
};

template <class V>
struct Q6_K : Shaped<14, 256, 210, 128, 16>, OffsetCodes<V, 6> {
    using Me = OffsetCodes<V, 6>;
    RL_ALWAYS_INLINE static void scales(const uint8_t* b, typename V::Floats* w, typename V::Floats*) {
        const auto d = V::mul(V::halfs(b + 3328), V::splat(Me::kUnit));
        unroll<0, 16>([&](auto i) RL_ALWAYS_INLINE { w[i] = V::mul(d, V::i8s(b + 3072 + 16 * i)); });
    }
    template <int s, class Use>
    RL_ALWAYS_INLINE static void codes(const uint8_t* b, Use&& use) {
        constexpr int kTo = Me::kShift;
        unroll<0, 8>([&](auto j) RL_ALWAYS_INLINE {
            const auto first = V::load(b + 1024 * s + 64 * j), second = V::load(b + 1024 * s + 512 + 64 * j);
            const auto high = V::load(b + 2048 + 512 * s + 64 * j);
            use(Index<0>{}, j, V::template insert<0, kTo + 4, 2>(V::template place<0, kTo, 4>(first), high));
            use(Index<1>{}, j, V::template insert<2, kTo + 4, 2>(V::template place<0, kTo, 4>(second), high));
            use(Index<2>{}, j, V::template insert<4, kTo + 4, 2>(V::template place<4, kTo, 4>(first), high));
            use(Index<3>{}, j, V::template insert<6, kTo + 4, 2>(V::template place<4, kTo, 4>(second), high));
        });
    }
};

template <class V>
struct Q2_K : Shaped<10, 256, 84, 128, 16>, PlainCodes<2> {
    RL_ALWAYS_INLINE static void scales(const uint8_t* b, typename V::Floats* w, typename V::Floats* m) {
        const auto d = V::halfs(b), minus_dmin = V::mul(V::halfs(b + 32), V::splat(-1.0f));
        unroll<0, 16>([&](auto i) RL_ALWAYS_INLINE {
            w[i] = V::mul(d, V::template u8_field<0, 0, 4>(b + 64 + 16 * i));
            m[i] = V::mul(minus_dmin, V::template u8_field<4, 0, 4>(b + 64 + 16 * i));
        });
    }
    template <int s, class Use>
    RL_ALWAYS_INLINE static void codes(const uint8_t* b, Use&& use) {
        unroll<0, 8>([&](auto j) RL_ALWAYS_INLINE {
            const auto v = V::load(b + 320 + 512 * s + 64 * j);
            unroll<0, 4>([&](auto k) RL_ALWAYS_INLINE { use(k, j, V::template place<2 * k, 0, 2>(v)); });
        });
    }
};

template <class V>
struct Q3_K : Shaped<11, 256, 110, 128, 16>, OffsetCodes<V, 3> {
    using Me = OffsetCodes<V, 3>;
    // Sixteen six-bit scales less 32: low nibbles two to a byte in 8 bytes, then high pairs four to a byte
    // in 4.
    RL_ALWAYS_INLINE static void scales(const uint8_t* b, typename V::Floats* w, typename V::Floats*) {
        const auto first = V::load(b + 32), second = V::load(b + 96), third = V::load(b + 160);
        alignas(64) uint8_t scale[16][16];
        V::store(scale[0], V::template insert<0, 4, 2>(V::template place<0, 0, 4>(first), third));
        V::store(scale[4], V::template insert<2, 4, 2>(V::template place<0, 0, 4>(second), third));
        V::store(scale[8], V::template insert<4, 4, 2>(V::template place<4, 0, 4>(first), third));
        V::store(scale[12], V::template insert<6, 4, 2>(V::template place<4, 0, 4>(second), third));
        const auto d = V::mul(V::halfs(b), V::splat(Me::kUnit));
        const auto minus32d = V::mul(d, V::splat(-32.0f));
        unroll<0, 16>([&](auto i) RL_ALWAYS_INLINE { w[i] = V::fma(V::u8s(scale[i]), d, minus32d); });
    }
    template <int s, class Use>
    RL_ALWAYS_INLINE static void codes(const uint8_t* b, Use&& use) {
        constexpr int kTo = Me::kShift;
        unroll<0, 8>([&](auto j) RL_ALWAYS_INLINE {
            const auto high = V::load(b + 224 + 64 * j);
            const auto low = V::load(b + 736 + 512 * s + 64 * j);
            unroll<0, 4>([&](auto k) RL_ALWAYS_INLINE {
                use(k, j,
                    V::template insert<4 * s + k, kTo + 2, 1>(V::template place<2 * k, kTo, 2>(low), high));
            });
        });
    }
};

}  // namespace
}  // namespace redline::cpu
