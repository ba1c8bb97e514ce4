// Codes of 4 and 5 bits of a cache as floats, in AVX-512 registers; operations as described in
// codes_portable.h.
#pragma once

#include "kv_codes.h"
#include "vec_avx512.h"

namespace redline::cpu {
namespace {

constexpr size_t kCodeVectors = 1;

struct CodeElements {
    Vec low[kCodeVectors], high[kCodeVectors];
};

struct FifthBits {
    __mmask16 low, high;

    static FifthBits of_tokens(const std::byte* low, const std::byte* high, uint32_t bit) {
        const __m128i mask = _mm_set1_epi8(int8_t(1u << bit));
        return {_mm_test_epi8_mask(_mm_loadu_si128((const __m128i*)low), mask),
                _mm_test_epi8_mask(_mm_loadu_si128((const __m128i*)high), mask)};
    }
    static FifthBits of_group(const std::byte* highs) {
        __mmask16 half[2];
        std::memcpy(half, highs, sizeof half);
        return {half[0], half[1]};
    }
};

class CodeTable {
public:
    explicit CodeTable(CacheType type) {
        int8_t codes[16];
        for (int8_t i = 0; i < 16; ++i) codes[i] = i;
        signed_codes(type, codes, 16);
        levels_ = Vec::load_int8(codes).v;
    }

    // A permutation looks at the lower four bits of an index alone.
    CodeElements read(const std::byte* codes) const {
        const __m512i bytes = _mm512_cvtepu8_epi32(_mm_loadu_si128((const __m128i*)codes));
        return {{{_mm512_permutexvar_ps(bytes, levels_)}},
                {{_mm512_permutexvar_ps(_mm512_srli_epi32(bytes, 4), levels_)}}};
    }
    CodeElements read(const std::byte* codes, const FifthBits& bits) const {
        const __m512 above = _mm512_set1_ps(16.0f);
        CodeElements x = read(codes);
        x.low[0].v = _mm512_mask_add_ps(x.low[0].v, bits.low, x.low[0].v, above);
        x.high[0].v = _mm512_mask_add_ps(x.high[0].v, bits.high, x.high[0].v, above);
        return x;
    }

private:
    __m512 levels_;  // of a code whose fifth bit is 0
};

}  // namespace
}  // namespace redline::cpu
