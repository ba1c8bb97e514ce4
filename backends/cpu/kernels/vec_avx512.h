// Sixteen floats in an AVX-512 register; operations as described in vec_portable.h.
#pragma once

// GCC 12 takes the undefined operands inside its own AVX-512 intrinsics for ours.
#if defined(__GNUC__) && !defined(__clang__)
#pragma GCC diagnostic ignored "-Wuninitialized"
#pragma GCC diagnostic ignored "-Wmaybe-uninitialized"
#endif
#include <immintrin.h>

#include <cstddef>
#include <cstdint>

namespace redline::cpu {
namespace {

struct Vec {
    static constexpr int kLanes = 16;
    static constexpr int kQueries = 8;
    static constexpr int kDirectQueries = 16;
    static constexpr int kAccumulators = 16;

    __m512 v;

    static Vec set1(float x) { return {_mm512_set1_ps(x)}; }
    static Vec lane_index() { return {_mm512_setr_ps(0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15)}; }
    static Vec load(const float* p) { return {_mm512_loadu_ps(p)}; }
    static Vec load_half(const uint16_t* p) {
        return {_mm512_cvtph_ps(_mm256_loadu_si256((const __m256i*)p))};
    }
    static Vec load_bfloat(const uint16_t* p) {
        const __m512i words = _mm512_cvtepu16_epi32(_mm256_loadu_si256((const __m256i*)p));
        return {_mm512_castsi512_ps(_mm512_slli_epi32(words, 16))};
    }
    static Vec load_int8(const int8_t* p) {
        return {_mm512_cvtepi32_ps(_mm512_cvtepi8_epi32(_mm_loadu_si128((const __m128i*)p)))};
    }
    void store(float* p) const { _mm512_storeu_ps(p, v); }
    void store_half(uint16_t* p) const {
        _mm256_storeu_si256((__m256i*)p, _mm512_cvtps_ph(v, _MM_FROUND_TO_NEAREST_INT | _MM_FROUND_NO_EXC));
    }

    friend Vec operator+(Vec a, Vec b) { return {_mm512_add_ps(a.v, b.v)}; }
    friend Vec operator-(Vec a, Vec b) { return {_mm512_sub_ps(a.v, b.v)}; }
    friend Vec operator*(Vec a, Vec b) { return {_mm512_mul_ps(a.v, b.v)}; }
    friend Vec operator/(Vec a, Vec b) { return {_mm512_div_ps(a.v, b.v)}; }
    static Vec fma(Vec a, Vec b, Vec c) { return {_mm512_fmadd_ps(a.v, b.v, c.v)}; }
    static Vec max(Vec a, Vec b) { return {_mm512_max_ps(a.v, b.v)}; }
    static Vec min(Vec a, Vec b) { return {_mm512_min_ps(a.v, b.v)}; }
    static Vec abs(Vec a) { return {_mm512_abs_ps(a.v)}; }
    static Vec where_less(Vec a, Vec b, Vec yes, Vec no) {
        return {_mm512_mask_blend_ps(_mm512_cmp_ps_mask(a.v, b.v, _CMP_LT_OQ), no.v, yes.v)};
    }
    static Vec scale_by_power(Vec x, Vec n) { return {_mm512_scalef_ps(x.v, n.v)}; }

    float first() const { return _mm512_cvtss_f32(v); }
    float sum() const { return _mm512_reduce_add_ps(v); }
    float largest() const { return _mm512_reduce_max_ps(v); }

    static void load_pairs(const float* p, Vec& even, Vec& odd) {
        const __m512 a = _mm512_loadu_ps(p);
        const __m512 b = _mm512_loadu_ps(p + kLanes);
        const __m512i from = _mm512_setr_epi32(0, 2, 4, 6, 8, 10, 12, 14, 16, 18, 20, 22, 24, 26, 28, 30);
        even.v = _mm512_permutex2var_ps(a, from, b);
        odd.v = _mm512_permutex2var_ps(a, _mm512_add_epi32(from, _mm512_set1_epi32(1)), b);
    }
    static void store_pairs(float* p, Vec even, Vec odd) {
        const __m512i low = _mm512_setr_epi32(0, 16, 1, 17, 2, 18, 3, 19, 4, 20, 5, 21, 6, 22, 7, 23);
        const __m512i high = _mm512_add_epi32(low, _mm512_set1_epi32(8));
        _mm512_storeu_ps(p, _mm512_permutex2var_ps(even.v, low, odd.v));
        _mm512_storeu_ps(p + kLanes, _mm512_permutex2var_ps(even.v, high, odd.v));
    }
};

}  // namespace
}  // namespace redline::cpu
