// The vector family of AVX2 with FMA and F16C: 16 rows are two registers, rows 0..7 and 8..15.
#pragma once

#include "linear_common.h"

#include <immintrin.h>

namespace redline::cpu {
namespace {

alignas(32) constexpr int16_t kOnes[16] = {1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1};

struct Avx2 {
    struct Bytes {
        __m256i v[2];
    };
    struct Floats {
        __m256 v[2];
    };
    using Quad = __m256i;  // 4 activations, repeated
    static constexpr bool kBiased = false, kInPlace = false, kAlone = false, kLooksUpTrits = false;
    static constexpr int kBitsInPlace = 4;
    static constexpr size_t kStreams = 4, kTilePanels = 1, kTileRows = 4, kFloatTileRows = 4;
    static constexpr bool kFew = true, kFewInTurn = false;  // see linear_few.h

    RL_ALWAYS_INLINE static Bytes load(const void* p) {
        const auto* at = static_cast<const __m256i*>(p);
        return {{_mm256_loadu_si256(at), _mm256_loadu_si256(at + 1)}};
    }
    RL_ALWAYS_INLINE static void store(uint8_t* p, const Bytes& v) {
        auto* at = reinterpret_cast<__m256i*>(p);
        _mm256_storeu_si256(at, v.v[0]);
        _mm256_storeu_si256(at + 1, v.v[1]);
    }
    // Stays in its place beside `with`: GCC puts all prefetches of a block in front of it, and such a burst
    // keeps the loads waiting (Zen 3, one row of Q6_K: 19 instead of 37 GB/s).
    RL_ALWAYS_INLINE static void prefetch(const uint8_t* p, Bytes& with) {
        asm("prefetcht0 %1" : "+x"(with.v[0]) : "m"(*p));
    }
    RL_ALWAYS_INLINE static void prefetch(const uint8_t* p) {
        _mm_prefetch(reinterpret_cast<const char*>(p), _MM_HINT_T0);
    }

    // Moves a field of every byte from bit kFrom to bit kTo and clears the rest; insert ors it into `base`.
    template <int kFrom, int kTo, int kWidth>
    RL_ALWAYS_INLINE static __m256i placed(__m256i v) {
        if constexpr (kTo > kFrom) v = _mm256_slli_epi16(v, kTo - kFrom);
        if constexpr (kTo < kFrom) v = _mm256_srli_epi16(v, kFrom - kTo);
        return _mm256_and_si256(v, _mm256_set1_epi8(char(((1 << kWidth) - 1) << kTo)));
    }
    template <int kFrom, int kTo, int kWidth>
    RL_ALWAYS_INLINE static Bytes place(const Bytes& v) {
        return {{placed<kFrom, kTo, kWidth>(v.v[0]), placed<kFrom, kTo, kWidth>(v.v[1])}};
    }
    template <int kFrom, int kTo, int kWidth>
    RL_ALWAYS_INLINE static Bytes insert(const Bytes& base, const Bytes& v) {
        const Bytes field = place<kFrom, kTo, kWidth>(v);
        return {{_mm256_or_si256(base.v[0], field.v[0]), _mm256_or_si256(base.v[1], field.v[1])}};
    }
    RL_ALWAYS_INLINE static Bytes signs(const Bytes& v) { return v; }
    RL_ALWAYS_INLINE static __m256i table(const int8_t* values) {
        return _mm256_broadcastsi128_si256(_mm_load_si128(reinterpret_cast<const __m128i*>(values)));
    }
    RL_ALWAYS_INLINE static Bytes lookup(__m256i table, const Bytes& nibbles) {
        return {{_mm256_shuffle_epi8(table, nibbles.v[0]), _mm256_shuffle_epi8(table, nibbles.v[1])}};
    }

    // Digits to the base 3, as a fraction of 256: bits 6..7 are 1 more than the first, the others junk; and
    // what is left without it.
    RL_ALWAYS_INLINE static Bytes trit(const Bytes& v) {
        Bytes out;
        for (int i = 0; i < 2; ++i)
            out.v[i] = _mm256_avg_epu8(_mm256_avg_epu8(v.v[i], _mm256_set1_epi8(char(253))), v.v[i]);
        return out;
    }
    RL_ALWAYS_INLINE static Bytes next_trit(const Bytes& v) {
        Bytes out;
        for (int i = 0; i < 2; ++i) out.v[i] = _mm256_add_epi8(_mm256_add_epi8(v.v[i], v.v[i]), v.v[i]);
        return out;
    }
    // Of bytes with a code in bits 0..4 and three signs above: what they are in values.of[kSign] under sign
    // kSign.
    template <int kSign, class Values>
    RL_ALWAYS_INLINE static Bytes third(const Values& values, const Bytes& v) {
        const __m256i low = table(values.of[kSign]), high = table(values.of[kSign] + 16);
        Bytes out;
        for (int i = 0; i < 2; ++i) {
            const __m256i at = _mm256_and_si256(v.v[i], _mm256_set1_epi8(15));
            const __m256i level = _mm256_blendv_epi8(
                _mm256_shuffle_epi8(low, at), _mm256_shuffle_epi8(high, at), _mm256_slli_epi16(v.v[i], 3));
            const __m256i sign = _mm256_slli_epi16(v.v[i], 2 - kSign);
            out.v[i] = _mm256_sign_epi8(level, _mm256_or_si256(sign, _mm256_set1_epi8(1)));
        }
        return out;
    }
    // Bit kBit of each row's 32, in all bits of its four bytes.
    template <int kBit>
    RL_ALWAYS_INLINE static Bytes spread(const Bytes& v) {
        Bytes out;
        for (int i = 0; i < 2; ++i) out.v[i] = _mm256_srai_epi32(_mm256_slli_epi32(v.v[i], 31 - kBit), 31);
        return out;
    }

    RL_ALWAYS_INLINE static Floats zero() { return splat(0.0f); }
    RL_ALWAYS_INLINE static Floats splat(float v) { return {{_mm256_set1_ps(v), _mm256_set1_ps(v)}}; }
    RL_ALWAYS_INLINE static Floats add(const Floats& a, const Floats& b) {
        return {{_mm256_add_ps(a.v[0], b.v[0]), _mm256_add_ps(a.v[1], b.v[1])}};
    }
    RL_ALWAYS_INLINE static Floats sub(const Floats& a, const Floats& b) {
        return {{_mm256_sub_ps(a.v[0], b.v[0]), _mm256_sub_ps(a.v[1], b.v[1])}};
    }
    RL_ALWAYS_INLINE static Floats mul(const Floats& a, const Floats& b) {
        return {{_mm256_mul_ps(a.v[0], b.v[0]), _mm256_mul_ps(a.v[1], b.v[1])}};
    }
    RL_ALWAYS_INLINE static Floats fma(const Floats& a, const Floats& b, const Floats& c) {
        return {{_mm256_fmadd_ps(a.v[0], b.v[0], c.v[0]), _mm256_fmadd_ps(a.v[1], b.v[1], c.v[1])}};
    }
    RL_ALWAYS_INLINE static Floats floats(const float* p) {
        return {{_mm256_loadu_ps(p), _mm256_loadu_ps(p + 8)}};
    }

    // 16 small numbers of one kind, as two halves.
    RL_ALWAYS_INLINE static __m128i bytes16(const uint8_t* p) {
        return _mm_loadu_si128(reinterpret_cast<const __m128i*>(p));
    }
    RL_ALWAYS_INLINE static __m128i bytes8(const uint8_t* p) {
        return _mm_loadl_epi64(reinterpret_cast<const __m128i*>(p));
    }
    RL_ALWAYS_INLINE static Floats halfs(const uint8_t* p) {
        return {{_mm256_cvtph_ps(bytes16(p)), _mm256_cvtph_ps(bytes16(p + 16))}};
    }
    RL_ALWAYS_INLINE static Floats bfloats(const uint8_t* p) {
        Floats out;
        for (int i = 0; i < 2; ++i)
            out.v[i] = _mm256_castsi256_ps(_mm256_slli_epi32(_mm256_cvtepu16_epi32(bytes16(p + 16 * i)), 16));
        return out;
    }
    RL_ALWAYS_INLINE static Floats u8s(const uint8_t* p) {
        Floats out;
        for (int i = 0; i < 2; ++i) out.v[i] = _mm256_cvtepi32_ps(_mm256_cvtepu8_epi32(bytes8(p + 8 * i)));
        return out;
    }
    RL_ALWAYS_INLINE static Floats i8s(const uint8_t* p) {
        Floats out;
        for (int i = 0; i < 2; ++i) out.v[i] = _mm256_cvtepi32_ps(_mm256_cvtepi8_epi32(bytes8(p + 8 * i)));
        return out;
    }
    template <int kFrom, int kTo, int kWidth>
    RL_ALWAYS_INLINE static Floats u8_field(const uint8_t* p) {
        Floats out;
        for (int i = 0; i < 2; ++i) {
            const __m256i wide = _mm256_srli_epi32(_mm256_cvtepu8_epi32(bytes8(p + 8 * i)), kFrom);
            const __m256i field = _mm256_and_si256(wide, _mm256_set1_epi32((1 << kWidth) - 1));
            out.v[i] = _mm256_cvtepi32_ps(_mm256_slli_epi32(field, kTo));
        }
        return out;
    }
    // A field of each row's 32 bits.
    template <int kFrom, int kWidth>
    RL_ALWAYS_INLINE static Floats u32_field(const uint8_t* p) {
        const Bytes words = load(p);
        Floats out;
        for (int i = 0; i < 2; ++i) {
            const __m256i field =
                _mm256_and_si256(_mm256_srli_epi32(words.v[i], kFrom), _mm256_set1_epi32((1 << kWidth) - 1));
            out.v[i] = _mm256_cvtepi32_ps(field);
        }
        return out;
    }
    // Numbers in E4M3 without a sign, times 2^-8: with three more bits of exponent they are halves.
    RL_ALWAYS_INLINE static Floats small_e4m3s(const uint8_t* p) {
        Floats out;
        for (int i = 0; i < 2; ++i)
            out.v[i] = _mm256_cvtph_ps(_mm_slli_epi16(_mm_cvtepu8_epi16(bytes8(p + 8 * i)), 7));
        return out;
    }
    // 2^(e - 128), subnormal for e of 0 and 1.
    RL_ALWAYS_INLINE static Floats half_powers(const uint8_t* p) {
        Floats out;
        const __m256i one = _mm256_set1_epi32(1);
        for (int i = 0; i < 2; ++i) {
            const __m256i e = _mm256_cvtepu8_epi32(bytes8(p + 8 * i));
            const __m256i normal = _mm256_slli_epi32(_mm256_sub_epi32(e, one), 23);
            const __m256i subnormal = _mm256_sllv_epi32(_mm256_set1_epi32(0x00200000), e);
            out.v[i] = _mm256_castsi256_ps(_mm256_blendv_epi8(subnormal, normal, _mm256_cmpgt_epi32(e, one)));
        }
        return out;
    }

    // All ones in the lanes below `count` of the 8 from `first` on.
    RL_ALWAYS_INLINE static __m256i lanes_below(unsigned count, int first) {
        const __m256i lane =
            _mm256_add_epi32(_mm256_setr_epi32(0, 1, 2, 3, 4, 5, 6, 7), _mm256_set1_epi32(first));
        return _mm256_cmpgt_epi32(_mm256_set1_epi32(int(count)), lane);
    }
    RL_ALWAYS_INLINE static Floats load_rows(const float* p, unsigned count) {
        return {
            {_mm256_maskload_ps(p, lanes_below(count, 0)), _mm256_maskload_ps(p + 8, lanes_below(count, 8))}};
    }
    RL_ALWAYS_INLINE static void store_rows(float* p, unsigned count, const Floats& v) {
        _mm256_maskstore_ps(p, lanes_below(count, 0), v.v[0]);
        _mm256_maskstore_ps(p + 8, lanes_below(count, 8), v.v[1]);
    }

    // Keeps `v` in registers: GCC would load it again for each of its uses.
    RL_ALWAYS_INLINE static void keep(Bytes& v) { asm("" : "+x"(v.v[0]), "+x"(v.v[1])); }
    RL_ALWAYS_INLINE static Quad quad(const int8_t* p) {
        int32_t four;
        __builtin_memcpy(&four, p, 4);
        return _mm256_set1_epi32(four);
    }

    // Products of pairs, summed in 16 bits.
    struct Ints {
        __m256i v[2];
    };
    RL_ALWAYS_INLINE static Ints no_ints() { return {{_mm256_setzero_si256(), _mm256_setzero_si256()}}; }
    RL_ALWAYS_INLINE static Ints twice(const Ints& sums) { return add(sums, sums); }
    RL_ALWAYS_INLINE static Ints add(const Ints& a, const Ints& b) {
        return {{_mm256_add_epi16(a.v[0], b.v[0]), _mm256_add_epi16(a.v[1], b.v[1])}};
    }
    RL_ALWAYS_INLINE static Ints dot(const Ints& sums, const Bytes& codes, const int8_t* x) {
        const Quad four = quad(x);
        return add(sums, {{_mm256_maddubs_epi16(codes.v[0], four), _mm256_maddubs_epi16(codes.v[1], four)}});
    }
    RL_ALWAYS_INLINE static Floats to_floats(const Ints& sums) {
        const __m256i one = _mm256_set1_epi16(1);
        return {{_mm256_cvtepi32_ps(_mm256_madd_epi16(sums.v[0], one)),
                 _mm256_cvtepi32_ps(_mm256_madd_epi16(sums.v[1], one))}};
    }
    // Where it is, or four bits lower.
    template <int kBit>
    RL_ALWAYS_INLINE static Bytes bit_in_place(const Bytes& v) {
        constexpr int kTo = kBit % kBitsInPlace;
        return place<kBit, kTo, 1>(v);
    }

    // The dot products of one group of columns. Products of pairs are summed in 16 bits for as many steps as
    // the codes' size allows (2 * 127 * largest code each, below 2^15 in all), then widened. Signed codes
    // lend their sign to the activation.
    template <class F>
    struct Sum {
        static constexpr int kMost = F::kSigned      ? 1
                                     : F::kBits <= 4 ? 8
                                     : F::kBits == 5 ? 4
                                     : F::kBits == 6 ? 2
                                                     : 1;
        static constexpr int kRun = kMost < F::kGroup / 4 ? kMost : F::kGroup / 4;
        static_assert(F::kSigned || F::kBits <= 6, "larger codes overflow a 16-bit pair");
        __m256i sum[2];
        __m256i pairs[F::kGroup / 4 / kRun][2];  // per run, since steps of two runs may come in turn

        RL_ALWAYS_INLINE void start(const int32_t& negative) {
            sum[0] = sum[1] = _mm256_setzero_si256();
            if constexpr (F::kOffset)
                sum[0] = sum[1] = _mm256_srai_epi32(_mm256_set1_epi32(negative), F::kBiasShift);
        }
        template <int j>
        RL_ALWAYS_INLINE void add(const Bytes& codes, Quad x) {
            for (int i = 0; i < 2; ++i) {
                const __m256i c = codes.v[i];
                const __m256i products =
                    F::kSigned ? _mm256_maddubs_epi16(_mm256_abs_epi8(c), _mm256_sign_epi8(x, c))
                               : _mm256_maddubs_epi16(c, x);
                pairs[j / kRun][i] =
                    in_order(j % kRun == 0 ? products : _mm256_add_epi16(pairs[j / kRun][i], products));
                if constexpr (j % kRun == kRun - 1) {
                    const auto* ones = reinterpret_cast<const __m256i*>(kOnes);
                    const __m256i wide = _mm256_madd_epi16(pairs[j / kRun][i], _mm256_load_si256(ones));
                    sum[i] = in_order(_mm256_add_epi32(sum[i], wide));
                }
            }
        }
        // GCC makes a tree of a chain of sums, whose many leaves it then keeps on the stack.
        RL_ALWAYS_INLINE static __m256i in_order(__m256i v) {
            asm("" : "+x"(v));
            return v;
        }
        RL_ALWAYS_INLINE Floats value() const {
            return {{_mm256_cvtepi32_ps(sum[0]), _mm256_cvtepi32_ps(sum[1])}};
        }
    };
};

}  // namespace
}  // namespace redline::cpu
