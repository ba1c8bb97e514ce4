// The encoders of the K-quants with minima: x = scale * q - minimum in sub-blocks whose scales and minima,
// not below 0, are whole multiples of two scales of the block. Fits the sub-blocks first, then rounds their
// scales and minima to such multiples, then refines both.
#include "formats/q2_k.h"
#include "formats/q4_k.h"
#include "formats/q5_k.h"
#include "quantize/encode.h"
#include "quantize/search.h"

#include <cstring>

namespace redline {

namespace {

using namespace quantize;

constexpr int kBlock = 256;

// kMost: the largest level; kTop: the largest multiple of a sub-block.
template <int kMost, int kSub, int kTop>
class AffineBlock {
public:
    static constexpr int kSubs = kBlock / kSub;

    AffineBlock(const float* x, const float* w) : x_(x), w_(w) { fit(); }

    uint16_t scale() const { return best_.scale; }
    uint16_t minimum() const { return best_.minimum; }
    uint8_t sub_scale(int j) const { return uint8_t(best_.scales[j]); }
    uint8_t sub_minimum(int j) const { return uint8_t(best_.minima[j]); }
    int code(int i) const {
        const Affine a = best_.sub(i / kSub);
        return affine_level<kMost>(a, a.inverse(), x_[i]);
    }

private:
    struct Numbers {
        uint16_t scale = 0;  // as stored, in halves
        uint16_t minimum = 0;
        int scales[kSubs] = {};
        int minima[kSubs] = {};

        Affine sub(int j) const {
            return {half_to_float(scale) * float(scales[j]), half_to_float(minimum) * float(minima[j])};
        }
    };

    void fit() {
        Affine wanted[kSubs];
        float most_scale = 0.0f;
        float most_minimum = 0.0f;
        for (int j = 0; j < kSubs; ++j) {
            wanted[j] = fit_affine<kMost, kSub, Minimum::not_negative>(x_ + j * kSub, w_ + j * kSub);
            most_scale = std::max(most_scale, wanted[j].scale);
            most_minimum = std::max(most_minimum, wanted[j].minimum);
        }
        best_.scale = float_to_half(most_scale / float(kTop));
        best_.minimum = float_to_half(most_minimum / float(kTop));
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

    // Chooses the multiples of each sub-block: those nearest to the fit, or better neighbours.
    float choose(Numbers& k, const Affine* wanted) const {
        float error = 0.0f;
        for (int j = 0; j < kSubs; ++j) error += choose_sub(k, j, wanted[j]);
        return error;
    }
    float choose_sub(Numbers& k, int j, const Affine& wanted) const {
        const float scale = half_to_float(k.scale);
        const float minimum = half_to_float(k.minimum);
        const int s0 = scale > 0.0f ? level(wanted.scale / scale, 0, kTop) : 0;
        const int m0 = minimum > 0.0f ? level(wanted.minimum / minimum, 0, kTop) : 0;
        float best = INFINITY;
        for (int s = std::max(s0 - 1, 0); s <= std::min(s0 + 1, kTop); ++s)
            for (int m = std::max(m0 - 1, 0); m <= std::min(m0 + 1, kTop); ++m) {
                const float error = affine_error<kMost, kSub>(x_ + j * kSub, w_ + j * kSub,
                                                              {scale * float(s), minimum * float(m)});
                if (error >= best) continue;
                best = error;
                k.scales[j] = s;
                k.minima[j] = m;
            }
        return best;
    }

    // The two scales of the block that fit best, given the multiples of the sub-blocks and the levels.
    Numbers refit() const {
        double ss = 0.0, sm = 0.0, mm = 0.0, sx = 0.0, mx = 0.0;
        for (int i = 0; i < kBlock; ++i) {
            const int j = i / kSub;
            const double s = double(best_.scales[j]) * code(i);
            const double m = -double(best_.minima[j]);
            const double w = double(w_[i]);
            ss += w * s * s;
            sm += w * s * m;
            mm += w * m * m;
            sx += w * s * double(x_[i]);
            mx += w * m * double(x_[i]);
        }
        Numbers out = best_;
        const double determinant = ss * mm - sm * sm;
        if (determinant > 1e-9 * ss * mm && determinant > 0.0) {
            const double scale = (sx * mm - mx * sm) / determinant;
            const double minimum = (mx * ss - sx * sm) / determinant;
            if (scale < 0.0 || minimum < 0.0) return best_;
            out.scale = float_to_half(float(scale));
            out.minimum = float_to_half(float(minimum));
        } else if (ss > 0.0 && sx > 0.0 && mm == 0.0) {
            out.scale = float_to_half(float(sx / ss));
        }
        return out;
    }

    const float* x_;
    const float* w_;
    Numbers best_;
};

// Packs scales and minima as in Q4_K and Q5_K; see formats/q4_k.h.
template <typename Fit>
void pack_scales(const Fit& fit, uint8_t (&out)[12]) {
    for (int j = 0; j < 4; ++j) {
        out[j] = uint8_t(fit.sub_scale(j) | (fit.sub_scale(j + 4) >> 4) << 6);
        out[j + 4] = uint8_t(fit.sub_minimum(j) | (fit.sub_minimum(j + 4) >> 4) << 6);
        out[j + 8] = uint8_t((fit.sub_scale(j + 4) & 15) | (fit.sub_minimum(j + 4) & 15) << 4);
    }
}

}  // namespace

void encode_q2_k(const float* values, const float* weights, std::byte* block) {
    const AffineBlock<3, 16, 15> fit(values, weights);
    formats::q2_k::Block out = {};
    out.scale = fit.scale();
    out.minimum = fit.minimum();
    for (int j = 0; j < fit.kSubs; ++j) out.scales[j] = uint8_t(fit.sub_scale(j) | fit.sub_minimum(j) << 4);
    for (int i = 0; i < kBlock; ++i)
        out.q[i / 128 * 32 + i % 32] |= uint8_t(fit.code(i) << (i % 128 / 32 * 2));
    std::memcpy(block, &out, sizeof(out));
}

void encode_q4_k(const float* values, const float* weights, std::byte* block) {
    const AffineBlock<15, 32, 63> fit(values, weights);
    formats::q4_k::Block out = {};
    out.scale = fit.scale();
    out.minimum = fit.minimum();
    pack_scales(fit, out.scales);
    for (int i = 0; i < kBlock; ++i) out.q[i / 64 * 32 + i % 32] |= uint8_t(fit.code(i) << (i % 64 / 32 * 4));
    std::memcpy(block, &out, sizeof(out));
}

void encode_q5_k(const float* values, const float* weights, std::byte* block) {
    const AffineBlock<31, 32, 63> fit(values, weights);
    formats::q5_k::Block out = {};
    out.scale = fit.scale();
    out.minimum = fit.minimum();
    pack_scales(fit, out.scales);
    for (int i = 0; i < kBlock; ++i) {
        const int q = fit.code(i);
        out.q[i / 64 * 32 + i % 32] |= uint8_t((q & 15) << (i % 64 / 32 * 4));
        out.high[i % 32] |= uint8_t((q >> 4) << (i / 32));
    }
    std::memcpy(block, &out, sizeof(out));
}

}  // namespace redline
