// The encoders of blocks of 32.
#include "formats/iq4_nl.h"
#include "formats/mxfp4.h"
#include "formats/q4_0.h"
#include "formats/q4_1.h"
#include "formats/q5_0.h"
#include "formats/q5_1.h"
#include "formats/q8_0.h"
#include "quantize/encode.h"
#include "quantize/search.h"

#include <cstring>

namespace redline {

namespace {

using namespace quantize;

constexpr int kCount = 32;

// Packs codes of at most five bits: the fifth into bit i of `high`, where there is one, the others into
// nibbles.
template <typename Block>
void put_code(Block& out, int i, int code) {
    out.q[i % 16] |= uint8_t((code & 15) << (i / 16 * 4));
    if constexpr (requires { out.high; }) out.high[i / 8] |= uint8_t((code >> 4) << (i % 8));
}

template <typename Levels, typename Block>
void encode_scaled(const float* values, const float* weights, std::byte* bytes) {
    Block out = {};
    out.scale = float_to_half(fit_scale<Levels, kCount>(values, weights));
    const float inverse = inverse_of(half_to_float(out.scale));
    for (int i = 0; i < kCount; ++i) put_code(out, i, Levels::code(values[i] * inverse));
    std::memcpy(bytes, &out, sizeof(out));
}

template <int kMost, typename Block>
void encode_affine(const float* values, const float* weights, std::byte* bytes) {
    const Affine fit = fit_affine<kMost, kCount, Minimum::any>(values, weights);
    Block out = {};
    out.scale = float_to_half(fit.scale);
    out.minimum = float_to_half(-fit.minimum);
    const Affine stored = {half_to_float(out.scale), -half_to_float(out.minimum)};
    const float inverse = stored.inverse();
    for (int i = 0; i < kCount; ++i) put_code(out, i, affine_level<kMost>(stored, inverse, values[i]));
    std::memcpy(bytes, &out, sizeof(out));
}

// The numbers of E2M1 times two, in rising order.
constexpr std::array<float, 15> kMicroscaledLevels = {-12, -8, -6, -4, -3, -2, -1, 0, 1, 2, 3, 4, 6, 8, 12};
using Microscaled = Listed<kMicroscaledLevels>;

// The code of the level nearest to x: its magnitude, with the sign in the fourth bit.
int microscaled_code(float x) {
    const int place = Microscaled::code(x) - 7;
    return place < 0 ? 8 - place : place;
}

}  // namespace

// Without weights the largest value becomes 127 steps: a search gains nothing measurable at eight bits.
void encode_q8_0(const float* values, const float* weights, std::byte* block) {
    auto& out = *reinterpret_cast<formats::q8_0::Block*>(block);
    const bool alike = std::all_of(weights, weights + kCount, [&](float w) { return w == weights[0]; });
    const float scale = alike ? std::fabs(extreme(values, kCount)) / 127.0f
                              : fit_scale<Whole<-127, 127>, kCount>(values, weights);
    out.scale = float_to_half(scale);
    const float inverse = inverse_of(alike ? scale : half_to_float(out.scale));
    for (int i = 0; i < kCount; ++i) out.q[i] = int8_t(level(values[i] * inverse, -127, 127));
}

void encode_q4_0(const float* values, const float* weights, std::byte* block) {
    encode_scaled<Whole<-8, 7>, formats::q4_0::Block>(values, weights, block);
}

void encode_q5_0(const float* values, const float* weights, std::byte* block) {
    encode_scaled<Whole<-16, 15>, formats::q5_0::Block>(values, weights, block);
}

void encode_iq4_nl(const float* values, const float* weights, std::byte* block) {
    encode_scaled<Curved, formats::iq4_nl::Block>(values, weights, block);
}

void encode_q4_1(const float* values, const float* weights, std::byte* block) {
    encode_affine<15, formats::q4_1::Block>(values, weights, block);
}

void encode_q5_1(const float* values, const float* weights, std::byte* block) {
    encode_affine<31, formats::q5_1::Block>(values, weights, block);
}

// Tries the power of two that fits the largest value to the levels, and its neighbours.
void encode_mxfp4(const float* values, const float* weights, std::byte* block) {
    formats::mxfp4::Block out = {};
    const float most = std::fabs(extreme(values, kCount));
    const int around = most > 0.0f ? std::ilogb(most) - 2 + 127 : 0;
    float best = INFINITY;
    for (int exponent = std::max(around - 1, 0); exponent <= std::clamp(around + 1, 0, 254); ++exponent) {
        const float scale = formats::mxfp4::half_scale(uint32_t(exponent));
        const float error = scale_error<Microscaled, kCount>(values, weights, scale);
        if (error >= best) continue;
        best = error;
        out.exponent = uint8_t(exponent);
    }
    const float inverse = 1.0f / formats::mxfp4::half_scale(out.exponent);
    for (int i = 0; i < kCount; ++i) put_code(out, i, microscaled_code(values[i] * inverse));
    std::memcpy(block, &out, sizeof(out));
}

}  // namespace redline
