// The quantized formats as the matrix kernels read them: one descriptor each, for every level. V is the
// level's vector family (linear_avx512.h and its siblings): Bytes are 64 bytes, (16 rows, 4 columns); Floats
// are 16 rows.
//
// A descriptor says, for one panel block (kBlock columns of 16 rows, kBytes long, see PanelField):
//   Scales                what read() unpacks once per block; scale<g>() and, if kMins, minimum<g>() are
//   those of group g of
//                         kGroup columns over the 16 rows, to be multiplied by factor<kFactor(g)>() and by
//                         the last factor, which are common to the block; without factors (kFactors 0) they
//                         are complete;
//   codes<s>(b, use)      calls use(k, j, v) for columns s * kSection + 32 k + 4 j .. + 3, k and j being
//   Index.
// A weight is scale * code, with signed codes if kSigned, or scale * (code - bias) if kOffset, the bias being
// 128 >> kBiasShift; plus a minimum if kMins. Families that like biased bytes (V::kBiased) get offset codes
// shifted to the top, so that they and signed codes are all 128 + value; the scale takes the shift back.
// kInOrder: codes() gives columns in their order, so that a group is done with its last. A family without
// shifts to spare (V::kInPlace) gets plain fields where they lie in the byte, and factors that take that
// back. kFewRows: up to so many activation rows are multiplied as multiply_few() does it. kFewInTurn: few
// rows may be multiplied by multiply_few_in_turn(); for formats that people use, since each takes seconds to
// compile. kSectionBytes: if not 0, sections are alike but for lying so many bytes apart.
#pragma once

#include "backends/cpu/kernels/linear_common.h"

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
    static constexpr bool kInOrder = false;
    static constexpr size_t kFewRows = 0;
    static constexpr bool kFewInTurn = false;
    static constexpr int kSectionBytes = 0;
    static constexpr int kFactor(int) { return 0; }
};

template <class V, int kCodeBits>
struct OffsetCodes {
    static constexpr int kBits = kCodeBits;
    static constexpr bool kOffset = true, kSigned = false, kMins = false;
    static constexpr int kShift = V::kBiased ? 8 - kCodeBits : 0;
    static constexpr int kBiasShift = 8 - kCodeBits - kShift;
    static constexpr float kUnit = 1.0f / float(1 << kShift);
};

template <int kCodeBits>
struct PlainCodes {
    static constexpr int kBits = kCodeBits;
    static constexpr bool kOffset = false, kSigned = false, kMins = true;
};

struct SignedCodes {
    static constexpr int kBits = 8, kBiasShift = 0;
    static constexpr bool kOffset = false, kSigned = true, kMins = false;
};

// Scales that need no unpacking: one half per row, and perhaps a second one as the minimum.
template <class V, int kUnitShift = 0>
struct HalfScales {
    static constexpr int kFactors = 0;
    const uint8_t* b;

    RL_ALWAYS_INLINE void read(const uint8_t* block) { b = block; }
    template <int>
    RL_ALWAYS_INLINE typename V::Floats scale() const {
        if constexpr (kUnitShift == 0)
            return V::halfs(b);
        else
            return V::mul(V::halfs(b), V::splat(1.0f / float(1 << kUnitShift)));
    }
    template <int>
    RL_ALWAYS_INLINE typename V::Floats minimum() const {
        return V::halfs(b + 32);
    }
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
    static constexpr int kTo = OffsetCodes<V, 4>::kShift;
    static constexpr size_t kFewRows = 16;
    static constexpr bool kFewInTurn = true;
    using Scales = HalfScales<V, kTo>;
    template <int, class Use>
    RL_ALWAYS_INLINE static void codes(const uint8_t* b, Use&& use) {
        nibbles32<V, kTo>(b + 32, [&](auto j, auto v) RL_ALWAYS_INLINE { use(Index<0>{}, j, v); });
    }
};

template <class V>
struct Q4_1 : Shaped<3, 32, 20, 32, 32>, PlainCodes<4> {
    using Scales = HalfScales<V>;
    template <int, class Use>
    RL_ALWAYS_INLINE static void codes(const uint8_t* b, Use&& use) {
        nibbles32<V, 0>(b + 64, [&](auto j, auto v) RL_ALWAYS_INLINE { use(Index<0>{}, j, v); });
    }
};

template <class V>
struct Q5_0 : Shaped<6, 32, 22, 32, 32>, OffsetCodes<V, 5> {
    static constexpr int kTo = OffsetCodes<V, 5>::kShift;
    using Scales = HalfScales<V, kTo>;
    template <int, class Use>
    RL_ALWAYS_INLINE static void codes(const uint8_t* b, Use&& use) {
        const auto high = V::load(b + 32);
        nibbles32<V, kTo>(b + 96, [&](auto j, auto v) RL_ALWAYS_INLINE {
            use(Index<0>{}, j, V::template insert<j, kTo + 4, 1>(v, high));
        });
    }
};

template <class V>
struct Q5_1 : Shaped<7, 32, 24, 32, 32>, PlainCodes<5> {
    using Scales = HalfScales<V>;
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
    static constexpr size_t kFewRows = 16;
    static constexpr bool kFewInTurn = true;
    using Scales = HalfScales<V>;
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
    using Scales = HalfScales<V>;
    template <int, class Use>
    RL_ALWAYS_INLINE static void codes(const uint8_t* b, Use&& use) {
        const auto table = V::table(kIq4Values);
        nibbles32<V, 0>(b + 32,
                        [&](auto j, auto v) RL_ALWAYS_INLINE { use(Index<0>{}, j, V::lookup(table, v)); });
    }
};

template <class V>
struct MXFP4 : Shaped<39, 32, 17, 32, 32>, SignedCodes {
    static constexpr bool kFewInTurn = true;
    struct Scales {
        static constexpr int kFactors = 0;
        const uint8_t* b;

        RL_ALWAYS_INLINE void read(const uint8_t* block) { b = block; }
        template <int>
        RL_ALWAYS_INLINE typename V::Floats scale() const {
            return V::half_powers(b);
        }
    };
    template <int, class Use>
    RL_ALWAYS_INLINE static void codes(const uint8_t* b, Use&& use) {
        const auto table = V::table(kMx4Values);
        nibbles32<V, 0>(b + 16,
                        [&](auto j, auto v) RL_ALWAYS_INLINE { use(Index<0>{}, j, V::lookup(table, v)); });
    }
};

// Columns 16 s + 4 h .. of the block's 64 are low nibbles of vector 2 s + h, those eight further high ones.
template <class V>
struct NVFP4 : Shaped<40, 64, 36, 64, 16>, SignedCodes {
    struct Scales {
        static constexpr int kFactors = 0;
        const uint8_t* b;

        RL_ALWAYS_INLINE void read(const uint8_t* block) { b = block; }
        template <int g>
        RL_ALWAYS_INLINE typename V::Floats scale() const {
            return V::mul(V::small_e4m3s(b + 16 * g), V::splat(128.0f));
        }
    };
    template <int, class Use>
    RL_ALWAYS_INLINE static void codes(const uint8_t* b, Use&& use) {
        const auto table = V::table(kMx4Values);
        unroll<0, 8>([&](auto i) RL_ALWAYS_INLINE {
            const auto v = V::load(b + 64 + 64 * i);
            constexpr int j = i / 2 % 2 * 4 + i % 2;
            use(Index<i / 4>{}, Index<j>{}, V::lookup(table, V::template place<0, 0, 4>(v)));
            use(Index<i / 4>{}, Index<j + 2>{}, V::lookup(table, V::template place<4, 0, 4>(v)));
        });
    }
};

template <class V>
struct IQ4_XS : Shaped<23, 256, 136, 32, 32>, SignedCodes {
    static constexpr bool kFewInTurn = true;
    // Six-bit scales less 32: low nibbles two to a byte in 4 bytes, then high pairs four to a byte in 2.
    struct Scales {
        static constexpr int kFactors = 1;
        const uint8_t* b;
        alignas(64) uint8_t nibble[2][4][16];  // of scales 2i and 2i + 1

        RL_ALWAYS_INLINE void read(const uint8_t* block) {
            b = block;
            const auto low = V::load(b + 64);
            V::store(nibble[0][0], V::template place<0, 0, 4>(low));
            V::store(nibble[1][0], V::template place<4, 0, 4>(low));
        }
        template <int g>
        RL_ALWAYS_INLINE typename V::Floats scale() const {
            const auto pair = V::template u8_field<2 * (g % 4), 4, 2>(b + 32 + 16 * (g / 4));
            return V::add(V::add(V::u8s(nibble[g % 2][g / 2]), pair), V::splat(-32.0f));
        }
        template <int>
        RL_ALWAYS_INLINE typename V::Floats factor() const {
            return V::halfs(b);
        }
    };
    template <int s, class Use>
    RL_ALWAYS_INLINE static void codes(const uint8_t* b, Use&& use) {
        const auto table = V::table(kIq4Values);
        nibbles32<V, 0>(b + 128 + 256 * s,
                        [&](auto j, auto v) RL_ALWAYS_INLINE { use(Index<0>{}, j, V::lookup(table, v)); });
    }
};

// The six-bit scales and minima of Q4_K and Q5_K, 12 bytes of each row at b + 64; d at b, dmin at b + 32.
// Groups of factor 1 have codes of 16 times their worth.
template <class V, int kFactorCount>
struct SixBitScales {
    static constexpr int kFactors = kFactorCount;
    const uint8_t* b;
    alignas(64) uint8_t scales[8][16];
    alignas(64) uint8_t minima[8][16];

    RL_ALWAYS_INLINE void read(const uint8_t* block) {
        b = block;
        const auto first = V::load(b + 64), second = V::load(b + 128), third = V::load(b + 192);
        V::store(scales[0], V::template place<0, 0, 6>(first));
        V::store(minima[0], V::template place<0, 0, 6>(second));
        V::store(scales[4], V::template insert<6, 4, 2>(V::template place<0, 0, 4>(third), first));
        V::store(minima[4], V::template insert<6, 4, 2>(V::template place<4, 0, 4>(third), second));
    }
    template <int g>
    RL_ALWAYS_INLINE typename V::Floats scale() const {
        return V::u8s(opaque(scales[g]));
    }
    template <int g>
    RL_ALWAYS_INLINE typename V::Floats minimum() const {
        return V::u8s(opaque(minima[g]));
    }
    template <int i>
    RL_ALWAYS_INLINE typename V::Floats factor() const {
        if constexpr (i + 1 == kFactors)
            return V::mul(V::halfs(b + 32), V::splat(-1.0f));
        else if constexpr (i == 1)
            return V::mul(V::halfs(b), V::splat(1.0f / 16.0f));
        else
            return V::halfs(b);
    }
};

template <class V>
struct Q4_K : Shaped<12, 256, 144, 64, 32>, PlainCodes<V::kInPlace ? 8 : 4> {
    static constexpr size_t kFewRows = 16;
    static constexpr bool kFewInTurn = true;
    static constexpr int kSectionBytes = 512;
    using Scales = SixBitScales<V, V::kInPlace ? 3 : 2>;
    static constexpr int kFactor(int g) { return V::kInPlace ? g % 2 : 0; }
    template <int s, class Use>
    RL_ALWAYS_INLINE static void codes(const uint8_t* b, Use&& use) {
        unroll<0, 8>([&](auto j) RL_ALWAYS_INLINE {
            const auto v = V::load(b + 256 + 512 * s + 64 * j);
            use(Index<0>{}, j, V::template place<0, 0, 4>(v));
            use(Index<1>{}, j, V::template place < 4, V::kInPlace ? 4 : 0, 4 > (v));
        });
    }
};

template <class V>
struct Q5_K : Shaped<13, 256, 176, 64, 32>, PlainCodes<5> {
    static constexpr bool kFewInTurn = true;
    using Scales = SixBitScales<V, 2>;
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

// Sections of 128 columns: three bytes hold the codes of columns l, l + 32, l + 64 above bits 0..1, where the
// code of column l + 96 lies in pairs of bits (see regroup_q6 in pack.cpp).
template <class V>
struct Q6_K : Shaped<14, 256, 210, 128, 16>, OffsetCodes<V, 6> {
    static constexpr int kTo = OffsetCodes<V, 6>::kShift;
    static constexpr size_t kFewRows = 16;
    static constexpr bool kFewInTurn = true;
    static constexpr int kSectionBytes = 1536;
    struct Scales {
        static constexpr int kFactors = 1;
        const uint8_t* b;

        RL_ALWAYS_INLINE void read(const uint8_t* block) { b = block; }
        template <int g>
        RL_ALWAYS_INLINE typename V::Floats scale() const {
            return V::i8s(b + 32 + 16 * g);
        }
        template <int>
        RL_ALWAYS_INLINE typename V::Floats factor() const {
            return V::mul(V::halfs(b), V::splat(OffsetCodes<V, 6>::kUnit));
        }
    };
    template <int s, class Use>
    RL_ALWAYS_INLINE static void codes(const uint8_t* b, Use&& use) {
        unroll<0, 8>([&](auto j) RL_ALWAYS_INLINE {
            const uint8_t* q = b + 288 + 1536 * s + 64 * j;
            const auto first = V::load(q), second = V::load(q + 512), third = V::load(q + 1024);
            use(Index<0>{}, j, V::template place<2, kTo, 6>(first));
            use(Index<1>{}, j, V::template place<2, kTo, 6>(second));
            use(Index<2>{}, j, V::template place<2, kTo, 6>(third));
            auto fourth = V::template place<0, kTo, 2>(first);
            fourth = V::template insert<0, kTo + 2, 2>(fourth, second);
            use(Index<3>{}, j, V::template insert<0, kTo + 4, 2>(fourth, third));
        });
    }
};

template <class V>
struct Q2_K : Shaped<10, 256, 84, 128, 16>, PlainCodes<V::kInPlace ? 8 : 2> {
    struct Scales {
        static constexpr int kFactors = V::kInPlace ? 5 : 2;
        const uint8_t* b;
        alignas(64) uint8_t scales[16][16];
        alignas(64) uint8_t minima[16][16];

        RL_ALWAYS_INLINE void read(const uint8_t* block) {
            b = block;
            unroll<0, 4>([&](auto i) RL_ALWAYS_INLINE {
                const auto both = V::load(b + 64 + 64 * i);
                V::store(scales[4 * i], V::template place<0, 0, 4>(both));
                V::store(minima[4 * i], V::template place<4, 0, 4>(both));
            });
        }
        template <int g>
        RL_ALWAYS_INLINE typename V::Floats scale() const {
            return V::u8s(opaque(scales[g]));
        }
        template <int g>
        RL_ALWAYS_INLINE typename V::Floats minimum() const {
            return V::u8s(opaque(minima[g]));
        }
        template <int i>
        RL_ALWAYS_INLINE typename V::Floats factor() const {
            if constexpr (i + 1 == kFactors)
                return V::mul(V::halfs(b + 32), V::splat(-1.0f));
            else
                return V::mul(V::halfs(b), V::splat(1.0f / float(1 << 2 * i)));
        }
    };
    static constexpr int kFactor(int g) { return V::kInPlace ? g / 2 % 4 : 0; }
    template <int s, class Use>
    RL_ALWAYS_INLINE static void codes(const uint8_t* b, Use&& use) {
        unroll<0, 8>([&](auto j) RL_ALWAYS_INLINE {
            const auto v = V::load(b + 320 + 512 * s + 64 * j);
            unroll<0, 4>([&](auto k) RL_ALWAYS_INLINE {
                use(k, j, V::template place < 2 * k, V::kInPlace ? 2 * k : 0, 2 > (v));
            });
        });
    }
};

template <class V>
struct Q3_K : Shaped<11, 256, 110, 128, 16>, OffsetCodes<V, 3> {
    static constexpr int kTo = OffsetCodes<V, 3>::kShift;
    // Sixteen six-bit scales less 32: low nibbles two to a byte in 8 bytes, then high pairs four to a byte
    // in 4.
    struct Scales {
        static constexpr int kFactors = 1;
        const uint8_t* b;
        alignas(64) uint8_t scales[16][16];

        RL_ALWAYS_INLINE void read(const uint8_t* block) {
            b = block;
            const auto first = V::load(b + 32), second = V::load(b + 96), third = V::load(b + 160);
            V::store(scales[0], V::template insert<0, 4, 2>(V::template place<0, 0, 4>(first), third));
            V::store(scales[4], V::template insert<2, 4, 2>(V::template place<0, 0, 4>(second), third));
            V::store(scales[8], V::template insert<4, 4, 2>(V::template place<4, 0, 4>(first), third));
            V::store(scales[12], V::template insert<6, 4, 2>(V::template place<4, 0, 4>(second), third));
        }
        template <int g>
        RL_ALWAYS_INLINE typename V::Floats scale() const {
            return V::add(V::u8s(opaque(scales[g])), V::splat(-32.0f));
        }
        template <int>
        RL_ALWAYS_INLINE typename V::Floats factor() const {
            return V::mul(V::halfs(b), V::splat(OffsetCodes<V, 3>::kUnit));
        }
    };
    template <int s, class Use>
    RL_ALWAYS_INLINE static void codes(const uint8_t* b, Use&& use) {
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
