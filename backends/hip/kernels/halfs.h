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
    const uint32_t bits = float_bits(block_max<kBlockThreads>(most, parts) * scale),
                   biased = (bits >> 23) & 255u, exponent = biased < 40u ? 40u : lesser(biased, 215u);
    return {bits_float((254u + 9u - exponent) << 23) * scale, bits_float((exponent - 9u) << 23)};
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
