// A row of activations in int8, quantized per 16 elements to 127 levels either way: made by each block that
// needs it, or left by the launch that computed it.
#pragma once

#include "kernels/args.h"
#include "kernels/reduce.h"

namespace redline::hip {

// 32 activations, 16 by 16: element i of a half is scale * code.
struct UnitMeta {
    float scale[2];
    float sum[2];  // of each half's elements as the codes have them
};
RL_DEVICE UnitMeta unit_meta_of(const Float4& four) {
    return {{four.d[0], four.d[1]}, {four.d[2], four.d[3]}};
}
constexpr uint32_t kHalfUnit = 16;

// The largest of |v| of kShare lanes, or NaN when one is not finite: it must not vanish in the codes.
template <uint32_t kCount>
RL_DEVICE float share_most(const float (&v)[kCount]) {
    float most = 0.0f, trouble = 0.0f;
    RL_UNROLL
    for (uint32_t i = 0; i < kCount; ++i) {
        most = larger(__builtin_fabsf(v[i]), most);
        trouble += v[i] - v[i];
    }
    most = share_fold(most, [](float a, float b) { return larger(a, b); });
    return most + share_fold(trouble, [](float a, float b) { return a + b; });
}

// The codes of four values, by the inverse of their scale.
RL_DEVICE uint32_t four_codes(const float* v, float inverse) {
    uint32_t word = 0;
    RL_UNROLL
    for (uint32_t e = 0; e < 4; ++e) {
        const float code = round_of(v[e] * inverse);
        word |= uint32_t(uint8_t(int32_t(code > 127.0f    ? 127.0f
                                         : code < -127.0f ? -127.0f
                                                          : code)))
                << (8 * e);
    }
    return word;
}
// Without its last two bits a scale's product with an integer of two bits and 22 zeros is exact.
RL_DEVICE float short_scale(float scale) {
    return bits_float(float_bits(scale) & 0xFFFFFFFCu);
}
RL_DEVICE float inverse_of_step(float step) {
    return step > 1e-30f ? fast_inverse(step) : 0.0f;
}

// Quantizes `halves` halves of units, from number `first` of those in low, high and meta on, of x * scale *
// gain: kShare lanes share one. `apart` of their elements lie from one unit to the next.
template <uint32_t kBlockThreads>
RL_DEVICE void quantize_halves(const float* x, const float* gain, float scale, uint32_t first,
                               uint32_t halves, Words4* low, Words4* high, Float4* meta, uint32_t apart) {
    constexpr uint32_t kEach = kHalfUnit / kShare;
    const uint32_t part = thread_index() % kShare;
    RL_UNROLL_BY(2)
    for (uint32_t base = 0; base < halves; base += kBlockThreads / kShare) {
        const uint32_t real = base + thread_index() / kShare, h = lesser(real, halves - 1);
        const uint32_t side = (first + h) % 2, unit = (first + h) / 2 * apart;
        float v[kEach];
        RL_UNROLL
        for (uint32_t i = 0; i < kEach / 4; ++i) {
            const uint32_t at = (h * kHalfUnit + part * kEach) / 4 + i;
            const auto four = load<Float4>(x, at);
            const Float4 by = gain ? load<Float4>(gain, at) : Float4{{1.0f, 1.0f, 1.0f, 1.0f}};
            RL_UNROLL
            for (uint32_t e = 0; e < 4; ++e) v[i * 4 + e] = four.d[e] * scale * by.d[e];
        }
        const float step = share_most(v) * (1.0f / 127.0f), inverse = inverse_of_step(step);
        int32_t sum = 0;
        RL_UNROLL
        for (uint32_t i = 0; i < kEach / 4; ++i) {
            const uint32_t word = four_codes(v + i * 4, inverse);
            sum = dot4(word, 0x01010101u, sum);
            if (real < halves) (side == 0 ? low : high)[unit].d[part * (kEach / 4) + i] = word;
        }
        sum = share_fold(sum, [](int32_t a, int32_t b) { return a + b; });
        if (part != 0 || real >= halves) continue;
        meta[unit].d[side] = step;
        meta[unit].d[2 + side] = step * small_float(sum);
    }
}

// Quantizes a row of `units` units for kernels/byte_tile.h, each with one scale: codes in the row's order,
// and of each unit its scale and the sum of its elements as the codes have them.
template <uint32_t kBlockThreads>
RL_DEVICE void quantize_units(const float* x, const float* gain, float scale, uint32_t units, uint32_t* codes,
                              Words2* metas) {
    constexpr uint32_t kFours = 8 / kShare;  // of a lane
    const uint32_t part = thread_index() % kShare;
    RL_UNROLL_BY(2)
    for (uint32_t base = 0; base < units; base += kBlockThreads / kShare) {
        const uint32_t real = base + thread_index() / kShare, unit = lesser(real, units - 1);
        float v[kFours * 4];
        RL_UNROLL
        for (uint32_t i = 0; i < kFours; ++i) {
            const uint32_t at = unit * 8 + part * kFours + i;
            const auto four = load<Float4>(x, at);
            const Float4 by = gain ? load<Float4>(gain, at) : Float4{{1.0f, 1.0f, 1.0f, 1.0f}};
            RL_UNROLL
            for (uint32_t e = 0; e < 4; ++e) v[i * 4 + e] = four.d[e] * scale * by.d[e];
        }
        const float step = short_scale(share_most(v) * (1.0f / 127.0f)), inverse = inverse_of_step(step);
        int32_t sum = 0;
        RL_UNROLL
        for (uint32_t i = 0; i < kFours; ++i) {
            const uint32_t word = four_codes(v + i * 4, inverse);
            sum = dot4(word, 0x01010101u, sum);
            if (real < units) codes[unit * 8 + part * kFours + i] = word;
        }
        sum = share_fold(sum, [](int32_t a, int32_t b) { return a + b; });
        if (part == 0 && real < units)
            metas[unit] = {{float_bits(step), float_bits(step * small_float(sum))}};
    }
}

// One row that the block itself quantized into shared memory, planes side by side.
struct OwnRow {
    const Words4* low;
    const Words4* high;
    const Float4* meta;
    RL_DEVICE Words4 low_codes(uint32_t, uint32_t u) const { return low[u]; }
    RL_DEVICE Words4 high_codes(uint32_t, uint32_t u) const { return high[u]; }
    RL_DEVICE UnitMeta unit_meta(uint32_t, uint32_t u) const { return unit_meta_of(meta[u]); }
};
// Bytes of RL_SHARED_POOL per unit, and of a unit that was prepared beforehand: low, high, meta.
static_assert(args::kDotUnitBytes == 3 * sizeof(Words4));

// What a norm over `units` units of x multiplies by.
template <uint32_t kBlockThreads>
RL_DEVICE float norm_scale(const float* x, uint32_t units, float eps, float* parts) {
    float squares = 0.0f;
    RL_UNROLL_BY(4)
    for (uint32_t i = thread_index(); i < units * 8; i += kBlockThreads) {
        const auto v = load<Float4>(x, i);
        RL_UNROLL
        for (uint32_t e = 0; e < 4; ++e) squares = fused(v.d[e], v.d[e], squares);
    }
    return 1.0f / root_of(block_sum<kBlockThreads>(squares, parts) / float(units * 32) + eps);
}

// The whole block makes `units` units of x, normed where there is a gain.
template <uint32_t kBlockThreads>
RL_DEVICE OwnRow own_row(const float* x, const float* gain, float eps, uint32_t units, Words4* pool,
                         float* parts) {
    const float scale = gain ? norm_scale<kBlockThreads>(x, units, eps, parts) : 1.0f;
    auto* meta = reinterpret_cast<Float4*>(pool + 2 * units);
    quantize_halves<kBlockThreads>(x, gain, scale, 0, 2 * units, pool, pool + units, meta, 1);
    sync_block();
    return {pool, pool + units, meta};
}

// `halves` halves of units of a row's values, from number `first` on, are left for the launch that takes the
// row: its planes, then, where it norms, the squares' sum of each half. kNorms: that launch may norm.
template <uint32_t kBlockThreads, bool kNorms = true>
RL_DEVICE void leave_halves(const args::HandOver& to, const float* values, uint32_t first, uint32_t halves) {
    auto* low = static_cast<Words4*>(to.row);
    auto *high = low + to.units, *meta = high + to.units;
    const float* gain = kNorms && to.gain ? to.gain + size_t(first) * kHalfUnit : nullptr;
    quantize_halves<kBlockThreads>(values, gain, 1.0f, first, halves, low, high,
                                   reinterpret_cast<Float4*>(meta), 1);
    if (!gain) return;
    auto* squares = reinterpret_cast<float*>(meta + to.units) + first;
    constexpr uint32_t kEach = kHalfUnit / kShare;
    for (uint32_t base = 0; base < halves; base += kBlockThreads / kShare) {
        const uint32_t real = base + thread_index() / kShare, h = lesser(real, halves - 1);
        float sum = 0.0f;
        RL_UNROLL
        for (uint32_t i = 0; i < kEach; ++i) {
            const float v = values[h * kHalfUnit + thread_index() % kShare * kEach + i];
            sum = fused(v, v, sum);
        }
        sum = share_fold(sum, [](float a, float b) { return a + b; });
        if (thread_index() % kShare == 0 && real < halves) squares[h] = sum;
    }
}

// The whole block takes a row that was left; `scale` becomes what the norm multiplies by. kEarly: this may be
// before wait_for_inputs(), as load_early() wants it.
template <uint32_t kBlockThreads, bool kEarly = false>
RL_DEVICE OwnRow take_row(const void* left, bool norm, float eps, uint32_t units, Words4* pool, float* parts,
                          float& scale) {
    const auto* from = static_cast<const Words4*>(left);
    RL_UNROLL_BY(2)  // 4096 elements are 384 words, two turns of a block
    for (uint32_t i = thread_index(); i < 3 * units; i += kBlockThreads)
        pool[i] = kEarly ? load_early(from + i) : from[i];
    if (norm) {
        const auto* left_squares = reinterpret_cast<const float*>(from + 3 * units);
        float squares = 0.0f;
        RL_FEW_TURNS
        for (uint32_t h = thread_index(); h < 2 * units; h += kBlockThreads)
            squares += kEarly ? load_early(left_squares + h) : left_squares[h];
        squares = block_sum<kBlockThreads>(squares, parts);  // all threads have written by then
        scale = 1.0f / root_of(squares / float(units * 32) + eps);
    } else {
        sync_block();
    }
    return {pool, pool + units, reinterpret_cast<const Float4*>(pool + 2 * units)};
}

}  // namespace redline::hip
