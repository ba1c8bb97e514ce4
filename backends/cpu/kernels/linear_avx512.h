// The vector family of AVX-512 with VNNI: 16 rows are one register.
#pragma once

#include "linear_common.h"

#include <immintrin.h>

// GCC 12 sees its own _mm512_undefined_ps() as a variable read before it is set.
#ifndef __clang__
#pragma GCC diagnostic ignored "-Wuninitialized"
#pragma GCC diagnostic ignored "-Wmaybe-uninitialized"
#endif

namespace redline::cpu {
namespace {

struct Avx512 {
    using Bytes = __m512i;
    using Floats = __m512;
    using Quad = __m512i;  // 4 activations, repeated
    static constexpr bool kBiased = true, kInPlace = true;
    static constexpr bool kAlone = true;  // one row's products of digits to the base 3 go a way of their own
    static constexpr int kBitsInPlace = 8;    // of a byte, that dot products can take
    using Ints = __m512i;                     // of 16 rows
    static constexpr size_t kStreams = 4;     // panels read side by side: see multiply_vec
    static constexpr size_t kTilePanels = 4;  // of weights, and rows of activations, in registers at once:
    static constexpr size_t kTileRows = 4, kFloatTileRows = 4;
    static constexpr bool kFew = false, kFewInTurn = true;  // see linear_few.h

    // Stays in its place beside `with`: left alone, the compiler would gather prefetches in bursts.
    RL_ALWAYS_INLINE static void prefetch(const uint8_t* p, Bytes& with) {
        asm("prefetcht0 %1" : "+v"(with) : "m"(*p));
    }
    RL_ALWAYS_INLINE static Bytes load(const void* p) { return _mm512_loadu_si512(p); }
    RL_ALWAYS_INLINE static void store(uint8_t* p, Bytes v) { _mm512_storeu_si512(p, v); }
    RL_ALWAYS_INLINE static void prefetch(const uint8_t* p) {
        _mm_prefetch(reinterpret_cast<const char*>(p), _MM_HINT_T0);
    }

    template <int kBy>
    RL_ALWAYS_INLINE static Bytes shift_left(Bytes v) {
        if constexpr (kBy > 0)
            return _mm512_slli_epi16(v, kBy);
        else if constexpr (kBy < 0)
            return _mm512_srli_epi16(v, -kBy);
        else
            return v;
    }
    template <int kTo, int kWidth>
    RL_ALWAYS_INLINE static Bytes mask() {
        return _mm512_set1_epi8(char(((1 << kWidth) - 1) << kTo));
    }
    // Moves a field of every byte from bit kFrom to bit kTo and clears the rest; insert ors it into `base`.
    template <int kFrom, int kTo, int kWidth>
    RL_ALWAYS_INLINE static Bytes place(Bytes v) {
        return _mm512_and_si512(shift_left<kTo - kFrom>(v), mask<kTo, kWidth>());
    }
    template <int kFrom, int kTo, int kWidth>
    RL_ALWAYS_INLINE static Bytes insert(Bytes base, Bytes v) {
        constexpr int kOrAnd = 0xF8;  // a | (b & c)
        const Bytes field = mask<kTo, kWidth>();
        return _mm512_ternarylogic_epi32(base, shift_left<kTo - kFrom>(v), field, kOrAnd);
    }
    RL_ALWAYS_INLINE static Bytes signs(Bytes v) { return _mm512_xor_si512(v, _mm512_set1_epi8(-128)); }
    RL_ALWAYS_INLINE static Bytes table(const int8_t* values) {
        return signs(_mm512_broadcast_i32x4(_mm_load_si128(reinterpret_cast<const __m128i*>(values))));
    }
    RL_ALWAYS_INLINE static Bytes lookup(Bytes table, Bytes nibbles) {
        return _mm512_shuffle_epi8(table, nibbles);
    }

    // Digits to the base 3, as a fraction of 256: bits 6..7 are 1 more than the first, the others junk; and
    // what is left without it.
    RL_ALWAYS_INLINE static Bytes trit(Bytes v) {
        return _mm512_avg_epu8(_mm512_avg_epu8(v, _mm512_set1_epi8(char(253))), v);
    }
    RL_ALWAYS_INLINE static Bytes next_trit(Bytes v) { return _mm512_add_epi8(_mm512_add_epi8(v, v), v); }
#ifdef __AVX512VBMI__
    // Of bytes with a code in bits 0..4 and three signs above: what they are in values.of[kSign] under sign
    // kSign. The second and the third sign are the last of seven bits that two registers take.
    template <int kSign, class Values>
    RL_ALWAYS_INLINE static Bytes third(const Values& values, Bytes v) {
        if constexpr (kSign == 0) return _mm512_permutexvar_epi8(v, signs(_mm512_load_si512(values.of[0])));
        const auto& of = kSign == 1 ? values.second : values.third;
        return _mm512_permutex2var_epi8(signs(_mm512_load_si512(of[0])), shift_left<1 - kSign>(v),
                                        signs(_mm512_load_si512(of[1])));
    }

    static constexpr bool kLooksUpTrits = true;
    // table[256] by each byte.
    RL_ALWAYS_INLINE static Bytes look_up(const uint8_t* table, Bytes v) {
        const __m512i low =
            _mm512_permutex2var_epi8(_mm512_load_si512(table), v, _mm512_load_si512(table + 64));
        const __m512i high =
            _mm512_permutex2var_epi8(_mm512_load_si512(table + 128), v, _mm512_load_si512(table + 192));
        return _mm512_mask_mov_epi8(low, _mm512_movepi8_mask(v), high);
    }
    template <int kBy>
    RL_ALWAYS_INLINE static Ints shifted(Ints v) {
        return _mm512_slli_epi32(v, kBy);
    }
    // values[4], by the two bits of each row's 32 from kFrom on.
    template <int kFrom>
    RL_ALWAYS_INLINE static Floats pick4(const float* values, Bytes fields) {
        const __m512 table = _mm512_broadcast_f32x4(_mm_load_ps(values));
        return _mm512_permutevar_ps(table, _mm512_srli_epi32(fields, kFrom));
    }
#else
    static constexpr bool kLooksUpTrits = false;
#endif
    // Bit kBit of each row's 32, in all bits of its four bytes.
    template <int kBit>
    RL_ALWAYS_INLINE static Bytes spread(Bytes v) {
        return _mm512_srai_epi32(_mm512_slli_epi32(v, 31 - kBit), 31);
    }

    RL_ALWAYS_INLINE static Floats zero() {
        return _mm512_setzero_ps();
    }
    RL_ALWAYS_INLINE static Floats splat(float v) {
        return _mm512_set1_ps(v);
    }
    RL_ALWAYS_INLINE static Floats add(Floats a, Floats b) {
        return _mm512_add_ps(a, b);
    }
    RL_ALWAYS_INLINE static Floats sub(Floats a, Floats b) {
        return _mm512_sub_ps(a, b);
    }
    RL_ALWAYS_INLINE static Floats mul(Floats a, Floats b) {
        return _mm512_mul_ps(a, b);
    }
    RL_ALWAYS_INLINE static Floats fma(Floats a, Floats b, Floats c) {
        return _mm512_fmadd_ps(a, b, c);
    }
    RL_ALWAYS_INLINE static Floats floats(const float* p) {
        return _mm512_loadu_ps(p);
    }
    RL_ALWAYS_INLINE static Floats halfs(const uint8_t* p) {
        return _mm512_cvtph_ps(_mm256_loadu_si256(reinterpret_cast<const __m256i*>(p)));
    }
    RL_ALWAYS_INLINE static Floats bfloats(const uint8_t* p) {
        const __m256i words = _mm256_loadu_si256(reinterpret_cast<const __m256i*>(p));
        return _mm512_castsi512_ps(_mm512_slli_epi32(_mm512_cvtepu16_epi32(words), 16));
    }
    RL_ALWAYS_INLINE static __m128i bytes16(const uint8_t* p) {
        return _mm_loadu_si128(reinterpret_cast<const __m128i*>(p));
    }
    RL_ALWAYS_INLINE static Floats u8s(const uint8_t* p) {
        return _mm512_cvtepi32_ps(_mm512_cvtepu8_epi32(bytes16(p)));
    }
    RL_ALWAYS_INLINE static Floats i8s(const uint8_t* p) {
        return _mm512_cvtepi32_ps(_mm512_cvtepi8_epi32(bytes16(p)));
    }
    template <int kFrom, int kTo, int kWidth>
    RL_ALWAYS_INLINE static Floats u8_field(const uint8_t* p) {
        const __m512i field = _mm512_and_si512(_mm512_srli_epi32(_mm512_cvtepu8_epi32(bytes16(p)), kFrom),
                                               _mm512_set1_epi32((1 << kWidth) - 1));
        return _mm512_cvtepi32_ps(_mm512_slli_epi32(field, kTo));
    }
    // A field of each row's 32 bits.
    template <int kFrom, int kWidth>
    RL_ALWAYS_INLINE static Floats u32_field(const uint8_t* p) {
        const __m512i words = _mm512_srli_epi32(_mm512_loadu_si512(p), kFrom);
        return _mm512_cvtepi32_ps(_mm512_and_si512(words, _mm512_set1_epi32((1 << kWidth) - 1)));
    }
    // Numbers in E4M3 without a sign, times 2^-8: with three more bits of exponent they are halves.
    RL_ALWAYS_INLINE static Floats small_e4m3s(const uint8_t* p) {
        return _mm512_cvtph_ps(_mm256_slli_epi16(_mm256_cvtepu8_epi16(bytes16(p)), 7));
    }
    // 2^(e - 128), subnormal for e of 0 and 1.
    RL_ALWAYS_INLINE static Floats half_powers(const uint8_t* p) {
        const __m512i e = _mm512_cvtepu8_epi32(bytes16(p)), one = _mm512_set1_epi32(1);
        const __m512i normal = _mm512_slli_epi32(_mm512_sub_epi32(e, one), 23);
        const __m512i subnormal = _mm512_sllv_epi32(_mm512_set1_epi32(0x00200000), e);
        return _mm512_castsi512_ps(_mm512_mask_mov_epi32(normal, _mm512_cmple_epu32_mask(e, one), subnormal));
    }
    RL_ALWAYS_INLINE static Floats load_rows(const float* p, unsigned count) {
        return _mm512_maskz_loadu_ps(__mmask16((1u << count) - 1), p);
    }
    RL_ALWAYS_INLINE static void store_rows(float* p, unsigned count, Floats v) {
        _mm512_mask_storeu_ps(p, __mmask16((1u << count) - 1), v);
    }

    RL_ALWAYS_INLINE static void keep(Bytes&) {}
    RL_ALWAYS_INLINE static Quad quad(const int8_t* p) {
        int32_t four;
        __builtin_memcpy(&four, p, 4);
        return _mm512_set1_epi32(four);
    }

    RL_ALWAYS_INLINE static Ints dot(Ints sum, Bytes codes, Quad x) {
        return _mm512_dpbusd_epi32(sum, codes, x);
    }
    // The same of activations that nothing else wants: GCC would load them by an instruction of their own, or
    // copy them to the stack if they were not named where they lie.
    RL_ALWAYS_INLINE static Ints dot(Ints sum, Bytes codes, const int8_t* x) {
        typedef int32_t Four __attribute__((may_alias, aligned(1)));
        asm("vpdpbusd %2%{1to16%}, %1, %0" : "+v"(sum) : "v"(codes), "m"(*reinterpret_cast<const Four*>(x)));
        return sum;
    }
    // The same of one code for all, in rows that have bit kBit of their 32 set.
    template <int kBit>
    RL_ALWAYS_INLINE static Ints dot_where(Ints sum, Bytes fields, int code, Quad x) {
        const __mmask16 rows = _mm512_test_epi32_mask(fields, _mm512_set1_epi32(int32_t(1u << kBit)));
        return _mm512_mask_dpbusd_epi32(sum, rows, _mm512_set1_epi8(char(code)), x);
    }
    RL_ALWAYS_INLINE static Ints no_ints() {
        return _mm512_setzero_si512();
    }
    RL_ALWAYS_INLINE static Ints twice(Ints v) {
        return _mm512_add_epi32(v, v);
    }
    RL_ALWAYS_INLINE static Ints add(Ints a, Ints b) {
        return _mm512_add_epi32(a, b);
    }
    RL_ALWAYS_INLINE static Ints thrice_less(Ints v, Ints other) {
        return _mm512_add_epi32(_mm512_add_epi32(v, v), _mm512_sub_epi32(v, other));
    }
    RL_ALWAYS_INLINE static Floats to_floats(Ints v) {
        return _mm512_cvtepi32_ps(v);
    }
    template <int kBit>
    RL_ALWAYS_INLINE static Bytes bit_in_place(Bytes v) {
        return _mm512_and_si512(v, _mm512_set1_epi8(char(1 << kBit)));
    }
    // values[16] by the four bits of each row's 32 from kFrom on.
    template <int kFrom>
    RL_ALWAYS_INLINE static Floats pick(const float* values, Bytes fields) {
        return _mm512_permutexvar_ps(_mm512_srli_epi32(fields, kFrom), _mm512_load_ps(values));
    }

    // The dot products of one group of columns. Biased codes start at minus the bias's share.
    template <class F>
    struct Sum {
        static constexpr int kRun = 1;
        __m512i sum;

        RL_ALWAYS_INLINE void start(const int32_t& negative) {
            if constexpr (F::kOffset || F::kSigned)
                sum = _mm512_set1_epi32(negative >> F::kBiasShift);
            else
                sum = _mm512_setzero_si512();
        }
        template <int>
        RL_ALWAYS_INLINE void add(Bytes codes, Quad x) {
            sum = _mm512_dpbusd_epi32(sum, codes, x);
        }
        RL_ALWAYS_INLINE Floats value() const { return _mm512_cvtepi32_ps(sum); }
    };
};

}  // namespace
}  // namespace redline::cpu
