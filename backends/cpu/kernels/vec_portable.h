// Four floats in the compiler's own vector type: SSE2, NEON or plain code, whatever the target's baseline is.
// Each level has a `Vec` with these operations; the kernels over it are compiled once per level. All of it is
// in an unnamed namespace, so that no code built for one level can be linked into another.
#pragma once

#include "base/half.h"

#include <cstddef>
#include <cstdint>
#include <cstring>

namespace redline::cpu {
namespace {

struct Vec {
    using Floats = float __attribute__((vector_size(16)));
    using Ints = int32_t __attribute__((vector_size(16)));
    using Words = uint32_t __attribute__((vector_size(16)));
    using Halfs = uint16_t __attribute__((vector_size(8)));
    using Bytes = int8_t __attribute__((vector_size(4)));
    static constexpr int kLanes = 4;
    // Queries worked on at once, and vectors of sums that are kept in registers for them.
    static constexpr int kQueries = 4;
    static constexpr int kDirectQueries = 4;
    static constexpr int kAccumulators = 8;

    Floats v;

    static Vec set1(float x) { return {Floats{x, x, x, x}}; }
    static Vec lane_index() { return {Floats{0, 1, 2, 3}}; }
    static Vec load(const float* p) { return read<Floats>(p); }
    static Vec load_half(const uint16_t* p);
    static Vec load_bfloat(const uint16_t* p) {
        return {Floats(__builtin_convertvector(read_raw<Halfs>(p), Words) << 16)};
    }
    static Vec load_int8(const int8_t* p) { return {__builtin_convertvector(read_raw<Bytes>(p), Floats)}; }
    void store(float* p) const { std::memcpy(p, &v, sizeof v); }
    void store_half(uint16_t* p) const {
        for (int i = 0; i < kLanes; ++i) p[i] = float_to_half(v[i]);
    }

    friend Vec operator+(Vec a, Vec b) { return {a.v + b.v}; }
    friend Vec operator-(Vec a, Vec b) { return {a.v - b.v}; }
    friend Vec operator*(Vec a, Vec b) { return {a.v * b.v}; }
    friend Vec operator/(Vec a, Vec b) { return {a.v / b.v}; }
    // a * b + c; the higher levels round once.
    static Vec fma(Vec a, Vec b, Vec c) { return {a.v * b.v + c.v}; }
    // The second operand when either is NaN.
    static Vec max(Vec a, Vec b) { return select_bits(a.v > b.v, a, b); }
    static Vec min(Vec a, Vec b) { return select_bits(a.v < b.v, a, b); }
    static Vec abs(Vec a) { return {Floats(Words(a.v) & 0x7FFFFFFFu)}; }
    // Per lane: a < b ? yes : no.
    static Vec where_less(Vec a, Vec b, Vec yes, Vec no) { return select_bits(a.v < b.v, yes, no); }
    // x * 2^n for whole n in [-160, 160], right to the last subnormal. A NaN in x stays, whatever n is.
    static Vec scale_by_power(Vec x, Vec n);

    float first() const { return v[0]; }
    float sum() const { return (v[0] + v[2]) + (v[1] + v[3]); }
    float largest() const {
        float top = v[0];
        for (int i = 1; i < kLanes; ++i) top = v[i] > top ? v[i] : top;
        return top;
    }

    // Even and odd elements of 2 * kLanes floats, and back.
    static void load_pairs(const float* p, Vec& even, Vec& odd);
    static void store_pairs(float* p, Vec even, Vec odd);

private:
    template <typename T>
    static T read_raw(const void* p) {
        T value;
        std::memcpy(&value, p, sizeof value);
        return value;
    }
    template <typename T>
    static Vec read(const void* p) {
        return {read_raw<T>(p)};
    }
    static Vec select_bits(Ints mask, Vec a, Vec b) {
        return {Floats((Words(mask) & Words(a.v)) | (~Words(mask) & Words(b.v)))};
    }
};

inline Vec Vec::load_half(const uint16_t* p) {
    const Words half = __builtin_convertvector(read_raw<Halfs>(p), Words);
    const Words magnitude = half & 0x7FFFu;
    // Shifted into place the exponent is 112 too small; the product is exact, also for subnormal halves.
    const Words scaled = Words(Floats(magnitude << 13) * 0x1p112f);
    const Words special = Words(magnitude >= 0x7C00u) & 0x7F800000u;  // infinity and NaN
    return {Floats(scaled | special | (half & 0x8000u) << 16)};
}

inline Vec Vec::scale_by_power(Vec x, Vec n) {
    // Twice half the power: 2^n itself may have no float. Adding 1.5 * 2^23 leaves a whole number in the low
    // bits.
    const Floats magic = set1(0x1.8p23f).v;
    const Floats half = (n.v * 0.5f + magic) - magic;
    const Words first = Words(half + magic) << 23;
    const Words second = Words((n.v - half) + magic) << 23;
    const Words one = Words(set1(1.0f).v);
    return {x.v * Floats(first + one) * Floats(second + one)};
}

inline void Vec::load_pairs(const float* p, Vec& even, Vec& odd) {
    const Floats a = load(p).v;
    const Floats b = load(p + kLanes).v;
    even.v = Floats{a[0], a[2], b[0], b[2]};
    odd.v = Floats{a[1], a[3], b[1], b[3]};
}

inline void Vec::store_pairs(float* p, Vec even, Vec odd) {
    Vec{Floats{even.v[0], odd.v[0], even.v[1], odd.v[1]}}.store(p);
    Vec{Floats{even.v[2], odd.v[2], even.v[3], odd.v[3]}}.store(p + kLanes);
}

}  // namespace
}  // namespace redline::cpu
