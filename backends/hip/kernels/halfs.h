// Rows of activations as halfs, for the kernels that multiply them on matrix units.
#pragma once

#include "kernels/args.h"
#include "kernels/matrix.h"
#include "kernels/reduce.h"
#include "kernels/unit.h"

namespace redline::hip {

// Halfs of a row, normed where there is a gain, are its elements times `up`, a power of two that keeps
// the row in range. The largest goes to about 2^9, so that sums of small ones keep their bits as well.
struct HalfScale {
    float up;
    float down;  // what a result is to be multiplied by
};
// `norm`: what the norm multiplies by; `most`: the largest before that.
RL_DEVICE HalfScale scale_of_halfs(float norm, float most) {
    const uint32_t bits = float_bits(most * norm), biased = (bits >> 23) & 255u,
                   exponent = biased < 40u ? 40u : lesser(biased, 215u);
    return {bits_float((254u + 9u - exponent) << 23) * norm, bits_float((exponent - 9u) << 23)};
}
RL_DEVICE Float4 gained_four(const args::PrepareArgs& a, Float4 v, uint32_t i) {
    if (!a.gain) return v;
    const auto gain = load<Float4>(a.gain, i);
    RL_UNROLL
    for (uint32_t e = 0; e < 4; ++e) v.d[e] *= gain.d[e];
    return v;
}
template <uint32_t kBlockThreads>
RL_DEVICE HalfScale half_scale(const args::PrepareArgs& a, const float* x, float* parts) {
    float squares = 0.0f, most = 0.0f;
    RL_UNROLL_BY(4)
    for (uint32_t i = thread_index(); i < a.cols / 4; i += kBlockThreads) {
        const auto v = load<Float4>(x, i), gained = gained_four(a, v, i);
        RL_UNROLL
        for (uint32_t e = 0; e < 4; ++e) {
            squares = fused(v.d[e], v.d[e], squares);
            most = larger(__builtin_fabsf(gained.d[e]), most);
        }
    }
    float scale = 1.0f;
    if (a.gain) scale = 1.0f / root_of(block_sum<kBlockThreads>(squares, parts) / float(a.cols) + a.eps);
    return scale_of_halfs(scale, block_max<kBlockThreads>(most, parts));
}
// Four of them; the middle two change places, as in kernels/tile.h.
RL_DEVICE Words2 four_halfs(const args::PrepareArgs& a, const float* x, uint32_t i, float up) {
    const Float4 v = gained_four(a, load<Float4>(x, i), i);
    return {{half_pair(v.d[0] * up, v.d[2] * up), half_pair(v.d[1] * up, v.d[3] * up)}};
}

#ifdef RL_FACTORS

// Where eight activations of a token are among all tokens' for kernels/few.h, of which the tile has `tokens`:
// lanes that read together read neighbours.
RL_DEVICE uint32_t few_eight(uint32_t unit, uint32_t eight, uint32_t token, uint32_t tokens) {
    return ((unit / kFactorUnits * 4 + eight) * tokens + token) * kFactorUnits + unit % kFactorUnits;
}

// Rows that a launch leaves are scaled by a number that is the same for all. Halfs are exact enough if the
// largest of a row is in this range before it is scaled: to_half(-5).
constexpr float kHandUp = 32.0f, kHandLeast = 0x1p-10f, kHandMost = 0x1p+11f - 1.0f;

// Eight elements of such a row; `most` becomes the largest.
RL_DEVICE Words4 handed_eight(const float (&values)[8], float& most) {
    float halfs[8];
    RL_UNROLL
    for (uint32_t e = 0; e < 8; ++e) {
        most = larger(__builtin_fabsf(values[e]), most);
        halfs[e] = values[e] * kHandUp;
    }
    return {{half_pair(halfs[0], halfs[2]), half_pair(halfs[1], halfs[3]), half_pair(halfs[4], halfs[6]),
             half_pair(halfs[5], halfs[7])}};
}

// The row of a block of a kernel that begins early: fours of elements, which are all on their way at once,
// and the gains of the first of them, which come before the launch before ends.
template <uint32_t kBlockThreads>
struct HeldRow {
    static constexpr uint32_t kHeld = kBlockThreads == 1 ? 1024 : 8, kHeldGains = kHeld / 4,
                              kMostCols = kHeld * 4 * kBlockThreads;
    Float4 values[kHeld], gains[kHeldGains];

    RL_DEVICE static uint32_t four(uint32_t n) { return thread_index() + n * kBlockThreads; }
    RL_DEVICE void read_gains(const args::PrepareArgs& a) {
        RL_UNROLL
        for (uint32_t n = 0; n < kHeldGains; ++n)
            gains[n] = a.gain && four(n) < a.cols / 4 ? load<Float4>(a.gain, four(n)) : Float4{};
    }
    RL_DEVICE void read(const args::PrepareArgs& a, const float* x) {
        RL_UNROLL
        for (uint32_t n = 0; n < kHeld; ++n)
            values[n] = four(n) < a.cols / 4 ? load<Float4>(x, four(n)) : Float4{};
    }
    // Zeros behind the last column.
    RL_DEVICE Float4 gained(const args::PrepareArgs& a, uint32_t n) const {
        Float4 v = values[n];
        if (!a.gain || four(n) >= a.cols / 4) return v;
        const Float4 gain = n < kHeldGains ? gains[n] : load<Float4>(a.gain, four(n));
        RL_UNROLL
        for (uint32_t e = 0; e < 4; ++e) v.d[e] *= gain.d[e];
        return v;
    }
    // The same as half_scale().
    RL_DEVICE HalfScale scale(const args::PrepareArgs& a, float* parts) const {
        float squares = 0.0f, most = 0.0f;
        RL_UNROLL
        for (uint32_t n = 0; n < kHeld; ++n) {
            const Float4 v = gained(a, n);
            RL_UNROLL
            for (uint32_t e = 0; e < 4; ++e) {
                squares = fused(values[n].d[e], values[n].d[e], squares);
                most = larger(__builtin_fabsf(v.d[e]), most);
            }
        }
        block_sum_and_max<kBlockThreads>(squares, most, parts);
        return scale_of_halfs(a.gain ? 1.0f / root_of(squares / float(a.cols) + a.eps) : 1.0f, most);
    }
    // They lie where prepare_few_row() leaves them.
    RL_DEVICE void put(const args::PrepareArgs& a, uint32_t row, float up) const {
        constexpr uint32_t kTogether = kFactorUnits * 8;  // fours
        RL_UNROLL
        for (uint32_t n = 0; n < kHeld; ++n) {
            const uint32_t i = four(n);
            if (i >= (a.cols / 4 + kTogether - 1) / kTogether * kTogether) break;
            const Float4 v = gained(a, n);
            static_cast<Words2*>(a.to)[few_eight(i / 8, i / 2 % 4, row, a.tokens) * 2 + i % 2] = {
                {half_pair(v.d[0] * up, v.d[2] * up), half_pair(v.d[1] * up, v.d[3] * up)}};
        }
    }
};

// A block makes the halfs of a row: each lane of kernels/few.h finds what it reads at few_eight(), and zeros
// where the row's last units are fewer than its lanes read together. Returns what results are to be
// multiplied by.
template <uint32_t kBlockThreads>
RL_DEVICE float prepare_few_row(const args::PrepareArgs& a, uint32_t row, float* parts) {
    const uint32_t eights = a.cols / 8;
    const float* x = a.x + size_t(row) * a.cols;
    const HalfScale scale = half_scale<kBlockThreads>(a, x, parts);
    auto* to = static_cast<Words4*>(a.to);
    constexpr uint32_t kTogether = kFactorUnits * 4;
    RL_UNROLL_BY(2)
    for (uint32_t i = thread_index(); i < (eights + kTogether - 1) / kTogether * kTogether;
         i += kBlockThreads) {
        Words4 eight = {};
        if (i < eights) {
            const Words2 low = four_halfs(a, x, i * 2, scale.up),
                         high = four_halfs(a, x, i * 2 + 1, scale.up);
            eight = {{low.d[0], low.d[1], high.d[0], high.d[1]}};
        }
        to[few_eight(i / 4, i % 4, row, a.tokens)] = eight;
    }
    return scale.down;
}

#endif

}  // namespace redline::hip
