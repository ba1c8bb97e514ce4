#include "layout.h"

#include "code_book_layout.h"
#include "code_books.h"
#include "pack_bits.h"

#include "formats/iq4_xs.h"
#include "formats/mxfp4.h"
#include "formats/nvfp4.h"
#include "formats/q1_0.h"
#include "formats/q2_0.h"
#include "formats/q2_k.h"
#include "formats/q3_k.h"
#include "formats/q4_0.h"
#include "formats/q4_1.h"
#include "formats/q4_k.h"
#include "formats/q5_0.h"
#include "formats/q5_1.h"
#include "formats/q5_k.h"
#include "formats/q6_k.h"
#include "formats/q8_0.h"
#include "formats/tq1_0.h"
#include "formats/tq2_0.h"

namespace redline {

namespace {

// Formats of 32 whose nibbles lie as we want them: `scales` bytes before them.
template <typename F, uint32_t kScales>
void pack_nibbles(const std::byte* file, uint64_t blocks, const Planes& out) {
    for (uint64_t i = 0; i < blocks; ++i, file += sizeof(typename F::Block)) {
        std::memcpy(out[0] + i * 16, file + kScales, 16);
        std::memcpy(out[1] + i * kScales, file, kScales);
    }
}

// What a nibble in E2M1 becomes, so that shaders find the number in few instructions: see
// shaders/include/e2m1.glsl. Zero has no negative.
constexpr uint8_t kE2m1[16] = {6, 7, 8, 13, 10, 12, 11, 15, 6, 9, 4, 3, 2, 0, 5, 1};

constexpr std::array<uint8_t, 256> kE2m1Pairs = [] {
    std::array<uint8_t, 256> pairs = {};
    for (uint32_t i = 0; i < 256; ++i) pairs[i] = uint8_t(kE2m1[i & 15] | kE2m1[i >> 4] << 4);
    return pairs;
}();

void pack_mxfp4(const std::byte* file, uint64_t blocks, const Planes& out) {
    for_blocks<formats::mxfp4>(file, blocks, [&](const formats::mxfp4::Block& b, uint64_t i) {
        for (uint32_t j = 0; j < 16; ++j) out[0][i * 16 + j] = std::byte(kE2m1Pairs[b.q[j]]);
        out[1][i] = std::byte(b.exponent);
    });
}

template <typename F, uint32_t kScales>
void pack_five(const std::byte* file, uint64_t blocks, const Planes& out) {
    for_blocks<F>(file, blocks, [&](const typename F::Block& b, uint64_t i) {
        uint8_t bits[32];
        for (uint32_t e = 0; e < 32; ++e) bits[e] = uint8_t(b.high[e / 8] >> (e % 8));
        std::memcpy(out[0] + i * 16, b.q, 16);
        // Planes go by width: fifth bits (4), then the scale (2), or scale and minimum (4).
        put_bits(bits, out[1] + i * 4);
        std::memcpy(out[2] + i * kScales, &b, kScales);
    });
}

void pack_q8_0(const std::byte* file, uint64_t blocks, const Planes& out) {
    for (uint64_t i = 0; i < blocks; ++i, file += 34) {
        std::memcpy(out[0] + i * 32, file + 2, 32);
        std::memcpy(out[1] + i * 2, file, 2);
    }
}

// The nibbles of 256 elements as Q4_K and Q5_K have them: per 64 elements 32 bytes, low nibbles first.
void put_k_nibbles(const uint8_t* q, std::byte* out) {
    for (uint32_t u = 0; u < 8; ++u) take_nibbles(q + u / 2 * 32, u % 2 * 4, out + u * 16);
}

// Scale and minimum of 256 elements, then per 32 of them a byte with six bits of scale under the upper two of
// the minimum, then a nibble with its lower four: to take a sub-block's out of a register needs few steps.
// Words hold four sub-blocks each, as sub_scale() and sub_minimum() say.
template <typename Block>
void pack_k_header(const Block& b, std::byte* out) {
    constexpr uint32_t kSix = 0x3F3F3F3F, kFour = 0x0F0F0F0F, kTwo = 0x03030303;
    const auto first = load_word<uint32_t>(b.scales), second = load_word<uint32_t>(b.scales + 4),
               third = load_word<uint32_t>(b.scales + 8);
    const uint32_t scales[2] = {first & kSix, (third & kFour) | (first >> 6 & kTwo) << 4};
    const uint32_t minima[2] = {second & kSix, (third >> 4 & kFour) | (second >> 6 & kTwo) << 4};
    std::memcpy(out, &b, 4);
    for (uint32_t i = 0; i < 2; ++i) {
        const uint32_t upper = scales[i] | (minima[i] >> 4 & kTwo) << 6;
        uint32_t nibbles = minima[i] & kFour;
        nibbles = (nibbles | nibbles >> 4) & 0x00FF00FF;
        const auto lower = uint16_t(nibbles | nibbles >> 8);
        std::memcpy(out + 4 + 4 * i, &upper, 4);
        std::memcpy(out + 12 + 2 * i, &lower, 2);
    }
}

void pack_q4_k(const std::byte* file, uint64_t blocks, const Planes& out) {
    for_blocks<formats::q4_k>(file, blocks, [&](const formats::q4_k::Block& b, uint64_t i) {
        put_k_nibbles(b.q, out[0] + i * 128);
        pack_k_header(b, out[1] + i * 16);
    });
}

void pack_q5_k(const std::byte* file, uint64_t blocks, const Planes& out) {
    for_blocks<formats::q5_k>(file, blocks, [&](const formats::q5_k::Block& b, uint64_t i) {
        put_k_nibbles(b.q, out[0] + i * 128);
        pack_k_header(b, out[1] + i * 16);
        for (uint32_t u = 0; u < 8; ++u) take_bits(b.high, u, out[2] + (i * 8 + u) * 4);
    });
}

void pack_q6_k(const std::byte* file, uint64_t blocks, const Planes& out) {
    for_blocks<formats::q6_k>(file, blocks, [&](const formats::q6_k::Block& b, uint64_t i) {
        for (uint32_t u = 0; u < 8; ++u) {
            const uint32_t half = u / 4, in_half = u % 4;
            take_nibbles(b.low + half * 64 + in_half % 2 * 32, in_half / 2 * 4, out[0] + (i * 8 + u) * 16);
            take_pairs(b.high + half * 32, in_half * 2, out[1] + (i * 8 + u) * 8);
        }
        std::memcpy(out[2] + i * 16, b.scales, 16);
        std::memcpy(out[3] + i * 2, &b.scale, 2);
    });
}

void put_k_pairs(const uint8_t* q, std::byte* out) {
    for (uint32_t u = 0; u < 8; ++u) take_pairs(q + u / 4 * 32, u % 4 * 2, out + u * 8);
}

void pack_q2_k(const std::byte* file, uint64_t blocks, const Planes& out) {
    for_blocks<formats::q2_k>(file, blocks, [&](const formats::q2_k::Block& b, uint64_t i) {
        put_k_pairs(b.q, out[0] + i * 64);
        std::memcpy(out[1] + i * 16, b.scales, 16);
        std::memcpy(out[2] + i * 4, &b.scale, 2);
        std::memcpy(out[2] + i * 4 + 2, &b.minimum, 2);
    });
}

void pack_q3_k(const std::byte* file, uint64_t blocks, const Planes& out) {
    for_blocks<formats::q3_k>(file, blocks, [&](const formats::q3_k::Block& b, uint64_t i) {
        put_k_pairs(b.q, out[0] + i * 64);
        for (uint32_t u = 0; u < 8; ++u) take_bits(b.high, u, out[1] + (i * 8 + u) * 4);
        std::memcpy(out[2] + i * 12, b.scales, 12);
        std::memcpy(out[3] + i * 2, &b.scale, 2);
    });
}

void pack_iq4_xs(const std::byte* file, uint64_t blocks, const Planes& out) {
    for (uint64_t i = 0; i < blocks; ++i, file += sizeof(formats::iq4_xs::Block)) {
        std::memcpy(out[0] + i * 128, file + 8, 128);
        std::memcpy(out[1] + i * 8, file, 8);
    }
}

void pack_nvfp4(const std::byte* file, uint64_t blocks, const Planes& out) {
    for_blocks<formats::nvfp4>(file, blocks, [&](const formats::nvfp4::Block& b, uint64_t i) {
        for (uint32_t u = 0; u < 2; ++u) {
            uint8_t codes[32];
            for (uint32_t e = 0; e < 32; ++e)
                codes[e] = kE2m1[b.q[u * 16 + e / 16 * 8 + e % 8] >> (e % 16 / 8 * 4) & 15];
            put_nibbles(codes, out[0] + (i * 2 + u) * 16);
        }
        // 0x7F, which stands for NaN, counts as zero, so that 480 can have its place.
        for (uint32_t j = 0; j < 4; ++j)
            out[1][i * 4 + j] = std::byte(b.scales[j] == 0x7F ? 0 : b.scales[j] & 0x7F);
    });
}

void pack_tq2_0(const std::byte* file, uint64_t blocks, const Planes& out) {
    for_blocks<formats::tq2_0>(file, blocks, [&](const formats::tq2_0::Block& b, uint64_t i) {
        put_k_pairs(b.q, out[0] + i * 64);
        std::memcpy(out[1] + i * 2, &b.scale, 2);
    });
}

void pack_q1_0(const std::byte* file, uint64_t blocks, const Planes& out) {
    for_blocks<formats::q1_0>(file, blocks, [&](const formats::q1_0::Block& b, uint64_t i) {
        for (uint32_t u = 0; u < 4; ++u) {
            uint8_t bits[32];
            for (uint32_t e = 0; e < 32; ++e) bits[e] = uint8_t(b.q[u * 4 + e / 8] >> (e % 8));
            put_bits(bits, out[0] + (i * 4 + u) * 4);
        }
        std::memcpy(out[1] + i * 2, &b.scale, 2);
    });
}

void pack_q2_0(const std::byte* file, uint64_t blocks, const Planes& out) {
    for_blocks<formats::q2_0>(file, blocks, [&](const formats::q2_0::Block& b, uint64_t i) {
        for (uint32_t u = 0; u < 2; ++u) {
            uint8_t pairs[32];
            for (uint32_t e = 0; e < 32; ++e) pairs[e] = uint8_t(b.q[u * 8 + e / 4] >> (e % 4 * 2));
            put_pairs(pairs, out[0] + (i * 2 + u) * 8);
        }
        std::memcpy(out[1] + i * 2, &b.scale, 2);
    });
}

// Digits to the base 3, the first the highest, as the least fraction of 2^bits that gives them back.
uint32_t fraction_of(const uint8_t* digits, uint32_t stride, uint32_t count, uint32_t bits) {
    uint32_t number = 0, all = 1;
    for (uint32_t n = 0; n < count; ++n, all *= 3) number = number * 3 + digits[n * stride];
    return ((number << bits) + all - 1) / all;
}

// A unit's 32 digits as four bytes with five each and four times five bits with three: together 52 bits.
void pack_tq1_0(const std::byte* file, uint64_t blocks, const Planes& out) {
    for_blocks<formats::tq1_0>(file, blocks, [&](const formats::tq1_0::Block& b, uint64_t i) {
        uint32_t tops = 0;
        for (uint32_t u = 0; u < 8; ++u) {
            uint8_t digits[32];
            for (uint32_t e = 0; e < 32; ++e) digits[e] = uint8_t(formats::tq1_0::trit(b, u * 32 + e));
            uint32_t five = 0, three = 0;
            for (uint32_t j = 0; j < 4; ++j) {
                five |= fraction_of(digits + j, 4, 5, 8) << (8 * j);
                three |= fraction_of(digits + 20 + j, 4, 3, 5) << (5 * j);
            }
            const auto low = uint16_t(three);
            std::memcpy(out[0] + i * 32 + u * 4, &five, 4);
            std::memcpy(out[1] + i * 16 + u * 2, &low, 2);
            tops |= three >> 16 << (4 * u);
        }
        std::memcpy(out[2] + i * 4, &tops, 4);
        std::memcpy(out[3] + i * 2, &b.scale, 2);
    });
}

template <uint32_t kBytes>
void pack_plain(const std::byte* file, uint64_t blocks, const Planes& out) {
    std::memcpy(out[0], file, blocks * kBytes);
}

constexpr auto kIq1Book = ternary_pairs(formats::kIq1Grid);
constexpr auto kIq2XxsBook = level_nibbles(formats::kIq2XxsGrid);
constexpr auto kIq2XsBook = level_nibbles(formats::kIq2XsGrid);
constexpr auto kIq2SBook = level_nibbles(formats::kIq2SGrid);
constexpr auto kIq3XxsBook = levels_to_62(formats::kIq3XxsGrid);
constexpr auto kIq3SBook = levels_to_15(formats::kIq3SGrid);
static_assert(sizeof(kIq1Book) <= kMostBookBytes && sizeof(kIq2SBook) <= kMostBookBytes);

struct Known {
    uint32_t gguf_id;
    WeightLayout layout;
};

constexpr Known kLayouts[] = {
    {0, {"f32", 1, {4}, pack_plain<4>}},
    {1, {"f16", 1, {2}, pack_plain<2>}},
    {30, {"bf16", 1, {2}, pack_plain<2>}},
    {2, {"q4_0", 2, {16, 2}, pack_nibbles<formats::q4_0, 2>}},
    {3, {"q4_1", 2, {16, 4}, pack_nibbles<formats::q4_1, 4>}},
    {6, {"q5_0", 3, {16, 4, 2}, pack_five<formats::q5_0, 2>}},
    {7, {"q5_1", 3, {16, 4, 4}, pack_five<formats::q5_1, 4>}},
    {8, {"q8_0", 2, {32, 2}, pack_q8_0}},
    {10, {"q2_k", 3, {64, 16, 4}, pack_q2_k}},
    {11, {"q3_k", 4, {64, 32, 12, 2}, pack_q3_k}},
    {12, {"q4_k", 2, {128, 16}, pack_q4_k}},
    {13, {"q5_k", 3, {128, 16, 32}, pack_q5_k}},
    {14, {"q6_k", 4, {128, 64, 16, 2}, pack_q6_k}},
    {16, {"iq2_xxs", 2, {64, 2}, pack_iq2_xxs, kIq2XxsBook.d}},
    {17, {"iq2_xs", 3, {64, 8, 2}, pack_iq2_xs, kIq2XsBook.d}},
    {18, {"iq3_xxs", 3, {64, 32, 2}, pack_iq3_xxs, kIq3XxsBook.d}},
    {19, {"iq1_s", 3, {32, 16, 2}, pack_iq1_s, kIq1Book.d}},
    {20, {"iq4_nl", 2, {16, 2}, pack_nibbles<formats::iq4_nl, 2>}},
    {21, {"iq3_s", 4, {64, 32, 8, 6}, pack_iq3_s, kIq3SBook.d}},
    {22, {"iq2_s", 3, {64, 16, 2}, pack_iq2_s, kIq2SBook.d}},
    {23, {"iq4_xs", 2, {128, 8}, pack_iq4_xs}},
    {29, {"iq1_m", 3, {32, 16, 8}, pack_iq1_m, kIq1Book.d}},
    {34, {"tq1_0", 4, {32, 16, 4, 2}, pack_tq1_0}},
    {35, {"tq2_0", 2, {64, 2}, pack_tq2_0}},
    {39, {"mxfp4", 2, {16, 1}, pack_mxfp4}},
    {40, {"nvfp4", 2, {32, 4}, pack_nvfp4}},
    {41, {"q1_0", 2, {16, 2}, pack_q1_0}},
    {42, {"q2_0", 2, {16, 2}, pack_q2_0}},
};

}  // namespace

const WeightLayout* weight_layout(const Format& format) {
    for (const Known& known : kLayouts)
        if (known.gguf_id == format.gguf_id) return &known.layout;
    return nullptr;
}

Rounding rounding_to_halves(const Format& format) {
    if (format.name == "F16") return {};
    if (format.block < 256) return kToHalf;  // scales and offsets are halfs, so only the result is rounded
    // A scale, which is a product, is rounded, and so is what comes of it.
    const bool offset = format.name == "Q2_K" || format.name == "Q4_K" || format.name == "Q5_K";
    if (!offset) return {2 * kToHalf.unit};
    // Scaled code and offset may cancel. Codes that spread over most of their range are at most three times
    // the largest element together with the offset.
    return {kToHalf.unit, 4 * kToHalf.unit, 32};
}

}  // namespace redline
