// The encoders of the K-quants: sub-blocks first, then their scales against that of the whole block, then a
// second look at both.
#include "formats/q4_k.h"
#include "formats/q6_k.h"
#include "quantize/encode.h"
#include "quantize/search.h"

#include <cstring>

namespace redline {

namespace {

using namespace quantize;

// --- Q4_K: x = scale * q - minimum with q in 0..15 and scale, minimum >= 0.

constexpr int kSub = 32;
constexpr int kSubs = 8;

struct Affine {
    float scale = 0.0f;
    float minimum = 0.0f;
};

float affine_error(const float* x, const Affine& a) {
    const float inverse = a.scale > 0.0f ? 1.0f / a.scale : 0.0f;
    return sum_of(kSub, [&](int i) {
        const float q = float(level((x[i] + a.minimum) * inverse, 0, 15));
        const float difference = a.scale * q - a.minimum - x[i];
        return difference * difference;
    });
}

// The least squares for the levels that `from` gives, within the format's signs.
Affine refit(const float* x, const Affine& from) {
    const float inverse = from.scale > 0.0f ? 1.0f / from.scale : 0.0f;
    float q[kSub];
    for (int i = 0; i < kSub; ++i) q[i] = float(level((x[i] + from.minimum) * inverse, 0, 15));
    const float q1 = sum_of(kSub, [&](int i) { return q[i]; });
    const float q2 = sum_of(kSub, [&](int i) { return q[i] * q[i]; });
    const float x1 = sum_of(kSub, [&](int i) { return x[i]; });
    const float qx = sum_of(kSub, [&](int i) { return q[i] * x[i]; });
    const float determinant = float(kSub) * q2 - q1 * q1;
    if (determinant > 0.0f) {
        const Affine fit = {(float(kSub) * qx - x1 * q1) / determinant, (q1 * qx - q2 * x1) / determinant};
        if (fit.minimum >= 0.0f) return fit.scale > 0.0f ? fit : from;
    }
    return q2 > 0.0f && qx > 0.0f ? Affine{qx / q2, 0.0f} : from;
}

Affine fit_affine(const float* x) {
    const auto [low, high] = std::minmax_element(x, x + kSub);
    const float minimum = std::min(*low, 0.0f);
    const float range = *high - minimum;
    if (range <= 0.0f) return {0.0f, -minimum};
    Affine best = {range / 15.0f, -minimum};
    float best_error = affine_error(x, best);
    for (int step = 0; step <= 20; ++step) {
        const Affine fit = refit(x, {range / (14.0f + 0.1f * float(step)), -minimum});
        const float error = affine_error(x, fit);
        if (error < best_error) {
            best_error = error;
            best = fit;
        }
    }
    return best;
}

struct Q4K {
    uint16_t scale = 0;  // halves, as stored
    uint16_t minimum = 0;
    int scales[kSubs] = {};
    int minima[kSubs] = {};

    Affine sub(int j) const {
        return {half_to_float(scale) * float(scales[j]), half_to_float(minimum) * float(minima[j])};
    }
};

// The six-bit numbers of sub-block j: those nearest to the fit, or a neighbour that does better.
float choose_sub(Q4K& k, int j, const float* x, const Affine& wanted) {
    const float scale = half_to_float(k.scale);
    const float minimum = half_to_float(k.minimum);
    const int s0 = scale > 0.0f ? level(wanted.scale / scale, 0, 63) : 0;
    const int m0 = minimum > 0.0f ? level(wanted.minimum / minimum, 0, 63) : 0;
    float best = INFINITY;
    for (int s = std::max(s0 - 1, 0); s <= std::min(s0 + 1, 63); ++s)
        for (int m = std::max(m0 - 1, 0); m <= std::min(m0 + 1, 63); ++m) {
            const float error = affine_error(x, {scale * float(s), minimum * float(m)});
            if (error >= best) continue;
            best = error;
            k.scales[j] = s;
            k.minima[j] = m;
        }
    return best;
}

float choose_subs(Q4K& k, const float* x, const Affine* wanted) {
    float error = 0.0f;
    for (int j = 0; j < kSubs; ++j) error += choose_sub(k, j, x + j * kSub, wanted[j]);
    return error;
}

// The two scales of the block that fit best, given the numbers of the sub-blocks and the levels.
Q4K refit_block(const Q4K& k, const float* x) {
    double ss = 0.0, sm = 0.0, mm = 0.0, sx = 0.0, mx = 0.0;
    for (int i = 0; i < kSub * kSubs; ++i) {
        const int j = i / kSub;
        const Affine a = k.sub(j);
        const float inverse = a.scale > 0.0f ? 1.0f / a.scale : 0.0f;
        const double s = double(k.scales[j]) * level((x[i] + a.minimum) * inverse, 0, 15);
        const double m = -double(k.minima[j]);
        ss += s * s;
        sm += s * m;
        mm += m * m;
        sx += s * double(x[i]);
        mx += m * double(x[i]);
    }
    Q4K out = k;
    const double determinant = ss * mm - sm * sm;
    if (determinant > 1e-9 * ss * mm && determinant > 0.0) {
        const double scale = (sx * mm - mx * sm) / determinant;
        const double minimum = (mx * ss - sx * sm) / determinant;
        if (scale < 0.0 || minimum < 0.0) return k;
        out.scale = float_to_half(float(scale));
        out.minimum = float_to_half(float(minimum));
    } else if (ss > 0.0 && sx > 0.0 && mm == 0.0) {
        out.scale = float_to_half(float(sx / ss));
    }
    return out;
}

void pack_scales(const Q4K& k, uint8_t (&out)[12]) {
    for (int j = 0; j < 4; ++j) {
        out[j] = uint8_t(k.scales[j] | (k.scales[j + 4] >> 4) << 6);
        out[j + 4] = uint8_t(k.minima[j] | (k.minima[j + 4] >> 4) << 6);
        out[j + 8] = uint8_t((k.scales[j + 4] & 15) | (k.minima[j + 4] & 15) << 4);
    }
}

// --- Q6_K: x = scale * q with q in -32..31 and a signed scale.

constexpr int kSmall = 16;
constexpr int kSmalls = 16;

struct Q6K {
    uint16_t scale = 0;  // a half, as stored
    int scales[kSmalls] = {};
};

float choose_smalls(Q6K& k, const float* x, const float* wanted) {
    const float scale = half_to_float(k.scale);
    float sum = 0.0f;
    for (int j = 0; j < kSmalls; ++j) {
        const int s0 = scale != 0.0f ? level(wanted[j] / scale, -128, 127) : 0;
        float best = INFINITY;
        for (int s = std::max(s0 - 1, -128); s <= std::min(s0 + 1, 127); ++s) {
            const float error = scale_error(x + j * kSmall, kSmall, scale * float(s), -32, 31);
            if (error >= best) continue;
            best = error;
            k.scales[j] = s;
        }
        sum += best;
    }
    return sum;
}

Q6K refit_block(const Q6K& k, const float* x) {
    double aa = 0.0, ax = 0.0;
    for (int i = 0; i < kSmall * kSmalls; ++i) {
        const int s = k.scales[i / kSmall];
        const float scale = half_to_float(k.scale) * float(s);
        const double a = double(s) * level(scale != 0.0f ? x[i] / scale : 0.0f, -32, 31);
        aa += a * a;
        ax += a * double(x[i]);
    }
    Q6K out = k;
    if (aa > 0.0) out.scale = float_to_half(float(ax / aa));
    return out;
}

}  // namespace

void encode_q4_k(const float* values, std::byte* block) {
    Affine wanted[kSubs];
    float most_scale = 0.0f;
    float most_minimum = 0.0f;
    for (int j = 0; j < kSubs; ++j) {
        wanted[j] = fit_affine(values + j * kSub);
        most_scale = std::max(most_scale, wanted[j].scale);
        most_minimum = std::max(most_minimum, wanted[j].minimum);
    }
    Q4K k;
    k.scale = float_to_half(most_scale / 63.0f);
    k.minimum = float_to_half(most_minimum / 63.0f);
    float error = choose_subs(k, values, wanted);
    for (int round = 0; round < 2; ++round) {
        Q4K next = refit_block(k, values);
        Affine aims[kSubs];
        for (int j = 0; j < kSubs; ++j) aims[j] = k.sub(j);
        const float next_error = choose_subs(next, values, aims);
        if (!(next_error < error)) break;
        error = next_error;
        k = next;
    }

    auto& out = *reinterpret_cast<formats::q4_k::Block*>(block);
    out.scale = k.scale;
    out.minimum = k.minimum;
    pack_scales(k, out.scales);
    for (int j = 0; j < kSubs; ++j) {
        const Affine a = k.sub(j);
        const float inverse = a.scale > 0.0f ? 1.0f / a.scale : 0.0f;
        for (int i = 0; i < kSub; ++i) {
            const int q = level((values[j * kSub + i] + a.minimum) * inverse, 0, 15);
            uint8_t& byte = out.q[j / 2 * kSub + i];
            byte = j % 2 == 0 ? uint8_t(q) : uint8_t(byte | q << 4);
        }
    }
}

void encode_q6_k(const float* values, std::byte* block) {
    float wanted[kSmalls];
    for (int j = 0; j < kSmalls; ++j) wanted[j] = fit_scale(values + j * kSmall, kSmall, -32, 31);
    Q6K k;
    k.scale = float_to_half(extreme(wanted, kSmalls) / -128.0f);
    float error = choose_smalls(k, values, wanted);
    for (int round = 0; round < 2; ++round) {
        Q6K next = refit_block(k, values);
        float aims[kSmalls];
        for (int j = 0; j < kSmalls; ++j) aims[j] = half_to_float(k.scale) * float(k.scales[j]);
        const float next_error = choose_smalls(next, values, aims);
        if (!(next_error < error)) break;
        error = next_error;
        k = next;
    }

    auto& out = *reinterpret_cast<formats::q6_k::Block*>(block);
    std::memset(&out, 0, sizeof(out));
    out.scale = k.scale;
    for (int j = 0; j < kSmalls; ++j) out.scales[j] = int8_t(k.scales[j]);
    for (int i = 0; i < kSmall * kSmalls; ++i) {
        const float scale = half_to_float(k.scale) * float(k.scales[i / kSmall]);
        const int q = level(scale != 0.0f ? values[i] / scale : 0.0f, -32, 31) + 32;
        const int half = i / 128;
        out.low[half * 64 + i % 64] |= uint8_t((q & 15) << (i % 128 / 64 * 4));
        out.high[half * 32 + i % 32] |= uint8_t((q >> 4) << (i % 128 / 32 * 2));
    }
}

}  // namespace redline
