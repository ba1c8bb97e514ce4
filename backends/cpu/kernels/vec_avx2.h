// Eight floats in an AVX register, with FMA and half conversion; operations as described in vec_portable.h.
#pragma once

#include <immintrin.h>

#include <cstddef>
#include <cstdint>

namespace redline::cpu {
namespace {

struct Vec {
    static constexpr int kLanes = 8;
    static constexpr int kQueries = 6;
    static constexpr int kDirectQueries = 12;
    static constexpr int kAccumulators = 12;

    __m256 v;

    static Vec set1(float x) { return {_mm256_set1_ps(x)}; }
    static Vec lane_index() { return {_mm256_setr_ps(0, 1, 2, 3, 4, 5, 6, 7)}; }
    static Vec load(const float* p) { return {_mm256_loadu_ps(p)}; }
    static Vec load_half(const uint16_t* p) { return {_mm256_cvtph_ps(_mm_loadu_si128((const __m128i*)p))}; }
    static Vec load_bfloat(const uint16_t* p) {
        const __m256i words = _mm256_cvtepu16_epi32(_mm_loadu_si128((const __m128i*)p));
        return {_mm256_castsi256_ps(_mm256_slli_epi32(words, 16))};
    }
    static Vec load_int8(const int8_t* p) {
        return {_mm256_cvtepi32_ps(_mm256_cvtepi8_epi32(_mm_loadl_epi64((const __m128i*)p)))};
    }
    void store(float* p) const { _mm256_storeu_ps(p, v); }
    void store_half(uint16_t* p) const {
        _mm_storeu_si128((__m128i*)p, _mm256_cvtps_ph(v, _MM_FROUND_TO_NEAREST_INT | _MM_FROUND_NO_EXC));
    }

    friend Vec operator+(Vec a, Vec b) { return {_mm256_add_ps(a.v, b.v)}; }
    friend Vec operator-(Vec a, Vec b) { return {_mm256_sub_ps(a.v, b.v)}; }
    friend Vec operator*(Vec a, Vec b) { return {_mm256_mul_ps(a.v, b.v)}; }
    friend Vec operator/(Vec a, Vec b) { return {_mm256_div_ps(a.v, b.v)}; }
    static Vec fma(Vec a, Vec b, Vec c) { return {_mm256_fmadd_ps(a.v, b.v, c.v)}; }
    static Vec max(Vec a, Vec b) { return {_mm256_max_ps(a.v, b.v)}; }
    static Vec min(Vec a, Vec b) { return {_mm256_min_ps(a.v, b.v)}; }
    static Vec abs(Vec a) { return {_mm256_andnot_ps(_mm256_set1_ps(-0.0f), a.v)}; }
    static Vec where_less(Vec a, Vec b, Vec yes, Vec no) {
        return {_mm256_blendv_ps(no.v, yes.v, _mm256_cmp_ps(a.v, b.v, _CMP_LT_OQ))};
    }
    // Twice half the power: 2^n itself may have no float.
    static Vec scale_by_power(Vec x, Vec n) {
        const __m256i power = _mm256_cvtps_epi32(n.v);
        const __m256i half = _mm256_srai_epi32(power, 1);
        return {_mm256_mul_ps(_mm256_mul_ps(x.v, power_of_two(half)),
                              power_of_two(_mm256_sub_epi32(power, half)))};
    }

    float first() const { return _mm256_cvtss_f32(v); }
    float sum() const {
        __m128 four = _mm_add_ps(_mm256_castps256_ps128(v), _mm256_extractf128_ps(v, 1));
        four = _mm_add_ps(four, _mm_movehl_ps(four, four));
        return _mm_cvtss_f32(_mm_add_ss(four, _mm_movehdup_ps(four)));
    }
    float largest() const {
        __m128 four = _mm_max_ps(_mm256_castps256_ps128(v), _mm256_extractf128_ps(v, 1));
        four = _mm_max_ps(four, _mm_movehl_ps(four, four));
        return _mm_cvtss_f32(_mm_max_ss(four, _mm_movehdup_ps(four)));
    }

    static void load_pairs(const float* p, Vec& even, Vec& odd) {
        const __m256 a = _mm256_loadu_ps(p);
        const __m256 b = _mm256_loadu_ps(p + kLanes);
        even.v = in_order(_mm256_shuffle_ps(a, b, 0x88));
        odd.v = in_order(_mm256_shuffle_ps(a, b, 0xDD));
    }
    static void store_pairs(float* p, Vec even, Vec odd) {
        const __m256 low = _mm256_unpacklo_ps(even.v, odd.v);
        const __m256 high = _mm256_unpackhi_ps(even.v, odd.v);
        _mm256_storeu_ps(p, _mm256_permute2f128_ps(low, high, 0x20));
        _mm256_storeu_ps(p + kLanes, _mm256_permute2f128_ps(low, high, 0x31));
    }

private:
    static __m256 power_of_two(__m256i n) {
        return _mm256_castsi256_ps(_mm256_add_epi32(_mm256_slli_epi32(n, 23), _mm256_set1_epi32(0x3F800000)));
    }
    // A shuffle works within halves of the register: swaps the middle quarters back.
    static __m256 in_order(__m256 x) {
        return _mm256_castpd_ps(_mm256_permute4x64_pd(_mm256_castps_pd(x), 0xD8));
    }
};

}  // namespace
}  // namespace redline::cpu
