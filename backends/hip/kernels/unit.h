// What a format of backends/hip/kernels/formats says about a weight. Quantized: units of 32 elements whose
// codes are bytes; element i of a unit is scale * (code - bias) + offset with the scale and offset of its
// half.
#pragma once

#include "kernels/args.h"
#include "kernels/pick.h"
#include "kernels/wave.h"

namespace redline::hip {

using args::Matrix;

struct UnitScales {
    float scale[2];
    float offset[2];
};

// A format adds codes(w, unit, words), word k holding the codes of elements 4k .. 4k + 3, and scales(w,
// unit).
template <bool kSignedCodes, int kBiasOfCodes, bool kHasOffset>
struct Quantized {
    static constexpr bool kFloats = false;
    static constexpr bool kSigned = kSignedCodes;
    static constexpr int kBias = kBiasOfCodes;
    static constexpr bool kOffset = kHasOffset;
    static constexpr bool kHalves = false;   // scales differ between the halves of a unit
    static constexpr bool kCrowded = false;  // fills the registers of some targets
};

// A format whose codes are nibbles alone has nibbles(): the low ones of a unit's words are its first sixteen
// codes.
template <typename F>
concept OfNibbles = requires(const Matrix& w) {
    F::nibbles(w, size_t(0));
};

// A format as kernels of one token read it, whose blocks call share_book_of() and pass a barrier
// before: F, or F::Own.
template <typename F>
struct OwnForm {
    using Type = F;
};
template <typename F>
requires requires {
    typename F::Own;
}
struct OwnForm<F> {
    using Type = typename F::Own;
};
template <typename F>
using own_form = typename OwnForm<F>::Type;
template <typename F, uint32_t kBlockThreads = kDotThreads>
RL_DEVICE void share_book_of() {
    if constexpr (requires { typename F::Own; }) F::Own::template share<kBlockThreads>();
}

// A format adds value(bits); one whose elements are halfs as they are says so.
template <typename Format, typename Bits>
struct Floats {
    static constexpr bool kFloats = true;
    static constexpr bool kHalfs = false;
    static constexpr bool kCrowded = true;
    static constexpr args::Planes kPlanes = {{sizeof(Bits) * 256}};
    struct alignas(sizeof(Bits) * 4) Four {
        Bits d[4];
    };
    RL_DEVICE static float element(const Matrix& w, size_t i) { return Format::value(load<Bits>(w.data, i)); }
    // Elements 4i .. 4i + 3.
    RL_DEVICE static Float4 elements(const Matrix& w, size_t i) {
        const Four four = load<Four>(w.data, i);
        return {{Format::value(four.d[0]), Format::value(four.d[1]), Format::value(four.d[2]),
                 Format::value(four.d[3])}};
    }
};

RL_DEVICE UnitScales pair_scales(float scale, float offset) {
    return {{scale, scale}, {offset, offset}};
}

// The six-bit scale and minimum of sub-block j of 8, as pack_k_header() in layout.cpp leaves them.
struct KCodes {
    uint32_t scale, minimum;
};
RL_DEVICE KCodes k_codes(const Words4& header, uint32_t j) {
    const uint32_t both = (j < 4 ? header.d[1] : header.d[2]) >> (j % 4 * 8);
    return {both & 63u, ((header.d[3] >> (j * 4)) & 15u) | ((both >> 2) & 0x30u)};
}
RL_DEVICE UnitScales k_scales(const Words4& header, uint32_t j) {
    const KCodes codes = k_codes(header, j);
    return pair_scales(half_value(uint16_t(header.d[0])) * byte_float(codes.scale),
                       -(half_value(uint16_t(header.d[0] >> 16)) * byte_float(codes.minimum)));
}

template <typename F>
RL_DEVICE float code_value(uint32_t word, uint32_t i) {
    if constexpr (F::kSigned) return small_float(signed_byte(word, i));
    return small_float(int32_t(byte_of(word, i)) - F::kBias);
}

// Element i of word k, rounded as the host decodes it.
template <typename F>
RL_DEVICE float decoded(const uint32_t (&words)[8], const UnitScales& s, uint32_t k, uint32_t i) {
    const float scaled = s.scale[k / 4] * code_value<F>(words[k], i);
    if constexpr (F::kOffset) return scaled + s.offset[k / 4];
    return scaled;
}

// sums[r * kTokens + t] += w[rows[r]] . x[x_rows[t]] over this lane's share. Sums in f32, within a lane in
// order; the caller sums over lanes.
template <typename F, int kRows, int kTokens>
RL_DEVICE void lane_products(const Matrix& w, const size_t (&rows)[kRows], const float* x,
                             const size_t (&x_rows)[kTokens], uint32_t cols, float (&sums)[kRows * kTokens]) {
    if constexpr (F::kFloats) {
        if (cols % 4 == 0) {
            [[maybe_unused]] constexpr uint32_t kAtOnce = kTokens == 1 ? 4 : 1;  // loads on their way
            RL_UNROLL_BY(kAtOnce)
            for (uint32_t i = lane_index(); i < cols / 4; i += kWave) {
                Float4 values[kRows];
                RL_UNROLL
                for (int r = 0; r < kRows; ++r) values[r] = F::elements(w, rows[r] * (cols / 4) + i);
                RL_UNROLL
                for (int t = 0; t < kTokens; ++t) {
                    const auto x4 = load<Float4>(x, x_rows[t] * (cols / 4) + i);
                    RL_UNROLL
                    for (int r = 0; r < kRows; ++r) RL_UNROLL
                    for (int e = 0; e < 4; ++e)
                        sums[r * kTokens + t] = fused(values[r].d[e], x4.d[e], sums[r * kTokens + t]);
                }
            }
            return;
        }
        for (uint32_t i = lane_index(); i < cols; i += kWave) RL_UNROLL
        for (int r = 0; r < kRows; ++r) {
            const float value = F::element(w, rows[r] * cols + i);
            RL_UNROLL
            for (int t = 0; t < kTokens; ++t)
                sums[r * kTokens + t] = fused(value, x[x_rows[t] * cols + i], sums[r * kTokens + t]);
        }
    } else {
        const size_t units = cols / 32;
        for (size_t u = lane_index(); u < units; u += kWave) {
            uint32_t words[kRows][8];
            UnitScales s[kRows];
            RL_UNROLL
            for (int r = 0; r < kRows; ++r) {
                F::codes(w, rows[r] * units + u, words[r]);
                s[r] = F::scales(w, rows[r] * units + u);
            }
            RL_UNROLL
            for (uint32_t k = 0; k < 8; ++k) {
                RL_UNROLL
                for (int t = 0; t < kTokens; ++t) {
                    const auto x4 = load<Float4>(x, (x_rows[t] * units + u) * 8 + k);
                    RL_UNROLL
                    for (int r = 0; r < kRows; ++r) RL_UNROLL
                    for (uint32_t e = 0; e < 4; ++e)
                        sums[r * kTokens + t] =
                            fused(decoded<F>(words[r], s[r], k, e), x4.d[e], sums[r * kTokens + t]);
                }
                if constexpr (kWave == 64 && kTokens == 8) keep_order();
            }
        }
    }
}

// act(gate) * up, as Act of plan/types.h has it. Comparisons let NaN through.
RL_DEVICE float act_times(uint32_t act, float x, float up) {
    if (act == 0) return x / (1.0f + exp_of(-x)) * up;
    if (act == 2) {
        const float low = x > 7.0f ? 7.0f : x, factor = up > 7.0f ? 7.0f : up < -7.0f ? -7.0f : up;
        return low / (1.0f + exp_of(-1.702f * low)) * (factor + 1.0f);
    }
    const float inner = 0.7978845608028654f * (x + 0.044715f * x * x * x);
    const float e = exp_of(-2.0f * __builtin_fabsf(inner)), t = (1.0f - e) / (1.0f + e);
    return 0.5f * x * (1.0f + (inner < 0.0f ? -t : t)) * up;
}

// The row of states that gets those of a row's sequence behind it, which is not its last; kZeroState: they
// are not kept.
RL_DEVICE uint32_t state_behind(const args::Step* step, uint32_t row) {
    return step->row_states == 0 ? args::kZeroState
                                 : reinterpret_cast<const uint32_t*>(step)[step->row_states + row];
}
RL_DEVICE uint32_t rows_in_step(const args::Step* step, uint32_t of_outputs) {
    return of_outputs ? step->outputs : step->rows;
}

// Of DotArgs or TileArgs: which of the matrices a row, or a tile, of all of them belongs to.
template <typename Args>
RL_DEVICE uint32_t part_of(const Args& a, uint32_t row) {
    return (row >= a.begin[1] ? 1u : 0u) + (row >= a.begin[2] ? 1u : 0u) + (row >= a.begin[3] ? 1u : 0u);
}
template <typename Args>
RL_DEVICE uint32_t begin_of(const Args& a, uint32_t part) {
    return part == 0 ? 0 : part == 1 ? a.begin[1] : part == 2 ? a.begin[2] : a.begin[3];
}
template <typename Args>
RL_DEVICE const args::DotPart& part_at(const Args& a, uint32_t part) {
    return part == 0 ? a.parts[0] : part == 1 ? a.parts[1] : part == 2 ? a.parts[2] : a.parts[3];
}

RL_DEVICE float sigmoid(float x) {
    return 1.0f / (1.0f + exp_of(-x));
}
// log(1 + e^x) = max(x, 0) + log(1 + t), t = e^-|x|, whose bits are all good where it is small, as those of
// 1 + t are not. log(1 + t) = 2 artanh(z), z = t / (2 + t) of at most 1/3, by its series.
RL_DEVICE float softplus(float x) {
    const float t = exp_of(-__builtin_fabsf(x)), z = t / (2.0f + t), square = z * z;
    float sum = 1.0f / 13.0f;
    RL_UNROLL
    for (int n = 11; n > 0; n -= 2) sum = fused(sum, square, 1.0f / float(n));
    return (x > 0.0f ? x : 0.0f) + 2.0f * z * sum;
}

}  // namespace redline::hip
