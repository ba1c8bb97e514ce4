// Codes of 4 and 5 bits of a cache as floats, in AVX registers; operations as described in codes_portable.h.
#pragma once

#include "kv_codes.h"
#include "vec_avx2.h"

namespace redline::cpu {
namespace {

constexpr size_t kCodeVectors = 2;

struct CodeElements {
    Vec low[kCodeVectors], high[kCodeVectors];
};

// 16 where a code's fifth bit is 1, in bytes: of the lower halves, then of the upper ones.
struct FifthBits {
    __m256i above;

    // Words are shifted, since there is no shift of bytes: nothing comes from a neighbour to where a fifth
    // bit is.
    static FifthBits of_tokens(const std::byte* low, const std::byte* high, uint32_t bit) {
        const __m256i bytes = _mm256_loadu2_m128i((const __m128i*)high, (const __m128i*)low);
        return {_mm256_and_si256(
            bit < 4 ? _mm256_slli_epi16(bytes, int(4 - bit)) : _mm256_srli_epi16(bytes, int(bit - 4)),
            _mm256_set1_epi8(16))};
    }
    static FifthBits of_group(const std::byte* highs) {
        int32_t bits;
        std::memcpy(&bits, highs, sizeof bits);
        const __m256i byte =
            _mm256_setr_epi64x(0, 0x0101010101010101, 0x0202020202020202, 0x0303030303030303);
        const __m256i mask = _mm256_set1_epi64x(int64_t(0x8040201008040201));
        const __m256i spread = _mm256_and_si256(_mm256_shuffle_epi8(_mm256_set1_epi32(bits), byte), mask);
        return {_mm256_and_si256(_mm256_cmpeq_epi8(spread, mask), _mm256_set1_epi8(16))};
    }
};

class CodeTable {
public:
    explicit CodeTable(CacheType type) {
        alignas(16) int8_t codes[16];
        for (int8_t i = 0; i < 16; ++i) codes[i] = i;
        signed_codes(type, codes, 16);
        levels_ = _mm256_broadcastsi128_si256(_mm_load_si128((const __m128i*)codes));
    }

    CodeElements read(const std::byte* codes) const { return widened(levels_of(codes)); }
    CodeElements read(const std::byte* codes, const FifthBits& bits) const {
        return widened(_mm256_add_epi8(levels_of(codes), bits.above));
    }

private:
    __m256i levels_of(const std::byte* codes) const {
        const __m256i bytes = _mm256_broadcastsi128_si256(_mm_loadu_si128((const __m128i*)codes));
        const __m256i halves = _mm256_srlv_epi64(bytes, _mm256_setr_epi64x(0, 0, 4, 4));
        return _mm256_shuffle_epi8(levels_, _mm256_and_si256(halves, _mm256_set1_epi8(15)));
    }
    static Vec widened(__m128i bytes) { return {_mm256_cvtepi32_ps(_mm256_cvtepi8_epi32(bytes))}; }
    static CodeElements widened(__m256i bytes) {
        const __m256i later = _mm256_srli_si256(bytes, 8);
        return {{widened(_mm256_castsi256_si128(bytes)), widened(_mm256_castsi256_si128(later))},
                {widened(_mm256_extracti128_si256(bytes, 1)), widened(_mm256_extracti128_si256(later, 1))}};
    }

    __m256i levels_;  // of a code whose fifth bit is 0, twice
};

}  // namespace
}  // namespace redline::cpu
