// The encoders of blocks of 256 without minima: x = scale * level in sub-blocks whose signed scales are whole
// multiples of the block's. Fits the sub-blocks first, then rounds their scales to such multiples, then
// refines both.
#include "formats/iq4_xs.h"
#include "formats/q3_k.h"
#include "formats/q6_k.h"
#include "quantize/encode.h"
#include "quantize/search.h"

#include <cstring>

namespace redline {

namespace {

using namespace quantize;

constexpr int kBlock = 256;

// The multiples of sub-blocks are -kTop..kTop - 1.
template <typename Levels, int kSub, int kTop>
class ScaledBlock {
public:
    static constexpr int kSubs = kBlock / kSub;

    ScaledBlock(const float* x, const float* w) : x_(x), w_(w) { fit(); }

    uint16_t scale() const { return best_.scale; }
    int sub_scale(int j) const { return best_.scales[j]; }
    int code(int i) const { return Levels::code(x_[i] * inverse_of(best_.sub(i / kSub))); }

private:
    struct Numbers {
        uint16_t scale = 0;  // a half, as stored
        int scales[kSubs] = {};

        float sub(int j) const { return half_to_float(scale) * float(scales[j]); }
    };

    void fit() {
        float wanted[kSubs];
        for (int j = 0; j < kSubs; ++j) wanted[j] = fit_scale<Levels, kSub>(x_ + j * kSub, w_ + j * kSub);
        best_.scale = float_to_half(extreme(wanted, kSubs) / float(-kTop));
        float error = choose(best_, wanted);
        for (int round = 0; round < 2; ++round) {
            Numbers next = refit();
            for (int j = 0; j < kSubs; ++j) wanted[j] = best_.sub(j);
            const float next_error = choose(next, wanted);
            if (!(next_error < error)) break;
            error = next_error;
            best_ = next;
        }
    }

    // Chooses the multiple of each sub-block: the one nearest to the fit, or a better neighbour.
    float choose(Numbers& k, const float* wanted) const {
        const float scale = half_to_float(k.scale);
        float sum = 0.0f;
        for (int j = 0; j < kSubs; ++j) {
            const int s0 = scale != 0.0f ? level(wanted[j] / scale, -kTop, kTop - 1) : 0;
            float best = INFINITY;
            for (int s = std::max(s0 - 1, -kTop); s <= std::min(s0 + 1, kTop - 1); ++s) {
                const float error = scale_error<Levels, kSub>(x_ + j * kSub, w_ + j * kSub, scale * float(s));
                if (error >= best) continue;
                best = error;
                k.scales[j] = s;
            }
            sum += best;
        }
        return sum;
    }

    // The scale of the block that fits best, given the multiples of the sub-blocks and the levels.
    Numbers refit() const {
        double aa = 0.0, ax = 0.0;
        for (int i = 0; i < kBlock; ++i) {
            const float inverse = inverse_of(best_.sub(i / kSub));
            const double a = double(best_.scales[i / kSub]) * double(Levels::nearest(x_[i] * inverse));
            aa += double(w_[i]) * a * a;
            ax += double(w_[i]) * a * double(x_[i]);
        }
        Numbers out = best_;
        if (aa > 0.0) out.scale = float_to_half(float(ax / aa));
        return out;
    }

    const float* x_;
    const float* w_;
    Numbers best_;
};

}  // namespace

void encode_q3_k(const float* values, const float* weights, std::byte* block) {
    const ScaledBlock<Whole<-4, 3>, 16, 32> fit(values, weights);
    formats::q3_k::Block out = {};
    out.scale = fit.scale();
    for (int j = 0; j < fit.kSubs; ++j) {
        const int s = fit.sub_scale(j) + 32;
        out.scales[j % 8] |= uint8_t((s & 15) << (j / 8 * 4));
        out.scales[8 + j % 4] |= uint8_t((s >> 4) << (j / 4 * 2));
    }
    for (int i = 0; i < kBlock; ++i) {
        const int q = fit.code(i);
        out.q[i / 128 * 32 + i % 32] |= uint8_t((q & 3) << (i % 128 / 32 * 2));
        out.high[i % 32] |= uint8_t((q >> 2) << (i / 32));
    }
    std::memcpy(block, &out, sizeof(out));
}

void encode_q6_k(const float* values, const float* weights, std::byte* block) {
    const ScaledBlock<Whole<-32, 31>, 16, 128> fit(values, weights);
    formats::q6_k::Block out = {};
    out.scale = fit.scale();
    for (int j = 0; j < fit.kSubs; ++j) out.scales[j] = int8_t(fit.sub_scale(j));
    for (int i = 0; i < kBlock; ++i) {
        const int q = fit.code(i);
        const int half = i / 128;
        out.low[half * 64 + i % 64] |= uint8_t((q & 15) << (i % 128 / 64 * 4));
        out.high[half * 32 + i % 32] |= uint8_t((q >> 4) << (i % 128 / 32 * 2));
    }
    std::memcpy(block, &out, sizeof(out));
}

void encode_iq4_xs(const float* values, const float* weights, std::byte* block) {
    const ScaledBlock<Curved, 32, 32> fit(values, weights);
    formats::iq4_xs::Block out = {};
    out.scale = fit.scale();
    for (int j = 0; j < fit.kSubs; ++j) {
        const int s = fit.sub_scale(j) + 32;
        out.scales_low[j / 2] |= uint8_t((s & 15) << (j % 2 * 4));
        out.scales_high = uint16_t(out.scales_high | (s >> 4) << (j * 2));
    }
    for (int i = 0; i < kBlock; ++i) out.q[i / 32 * 16 + i % 16] |= uint8_t(fit.code(i) << (i % 32 / 16 * 4));
    std::memcpy(block, &out, sizeof(out));
}

}  // namespace redline
