#include "code_book_layout.h"

#include "pack_bits.h"

#include "formats/grids/grid.h"
#include "formats/iq1_m.h"
#include "formats/iq1_s.h"
#include "formats/iq2_s.h"
#include "formats/iq2_xs.h"
#include "formats/iq2_xxs.h"
#include "formats/iq3_s.h"
#include "formats/iq3_xxs.h"

namespace redline {

namespace {

// Signs of four times eight elements into a word: bit l of nibble 2j belongs to element 8l + j, of nibble
// 2j + 1 to element 8l + 4 + j, so that a shift and a mask put those of one entry beside its nibbles.
uint32_t signs_word(const uint8_t (&signs)[4]) {
    uint32_t word = 0;
    for (uint32_t l = 0; l < 4; ++l)
        for (uint32_t j = 0; j < 8; ++j)
            word |= ((uint32_t(signs[l]) >> j) & 1u) << (j % 4 * 8 + j / 4 * 4 + l);
    return word;
}

// The same where the number of minus signs of every eight is even, and is to be known: the lowest nibble,
// with the first sign of each eight, is another field's.
uint32_t even_signs_word(const uint8_t (&sevens)[4], uint32_t field) {
    uint8_t signs[4];
    for (uint32_t l = 0; l < 4; ++l) signs[l] = uint8_t(formats::even_signs(sevens[l]));
    return (signs_word(signs) & ~15u) | (field & 15u);
}

// Four times seven signs under four bits of scale.
uint32_t signs_and_scale(uint32_t word) {
    uint8_t sevens[4];
    for (uint32_t l = 0; l < 4; ++l) sevens[l] = uint8_t((word >> (7 * l)) & 127);
    return even_signs_word(sevens, word >> 28);
}

void put(uint64_t value, uint32_t bytes, std::byte* out) {
    std::memcpy(out, &value, bytes);
}

}  // namespace

void pack_iq2_xxs(const std::byte* file, uint64_t blocks, const Planes& out) {
    for_blocks<formats::iq2_xxs>(file, blocks, [&](const formats::iq2_xxs::Block& b, uint64_t i) {
        for (uint32_t u = 0; u < 8; ++u) {
            std::byte* to = out[0] + i * 64 + u * 8;
            std::memcpy(to, b.q + u * 4, 4);
            put(signs_and_scale(uint32_t(b.q[u * 4 + 2]) | uint32_t(b.q[u * 4 + 3]) << 16), 4, to + 4);
        }
        std::memcpy(out[1] + i * 2, &b.scale, 2);
    });
}

void pack_iq2_xs(const std::byte* file, uint64_t blocks, const Planes& out) {
    for_blocks<formats::iq2_xs>(file, blocks, [&](const formats::iq2_xs::Block& b, uint64_t i) {
        for (uint32_t u = 0; u < 8; ++u) {
            uint8_t sevens[4];
            uint64_t entries = 0;
            for (uint32_t l = 0; l < 4; ++l) {
                const uint32_t q = b.q[u * 4 + l];
                entries |= uint64_t(q & 511) << (9 * l);
                sevens[l] = uint8_t(q >> 9);
            }
            std::byte* to = out[0] + i * 64 + u * 8;
            put(entries, 4, to);
            put(even_signs_word(sevens, uint32_t(entries >> 32)), 4, to + 4);
        }
        std::memcpy(out[1] + i * 8, b.scales, 8);
        std::memcpy(out[2] + i * 2, &b.scale, 2);
    });
}

void pack_iq2_s(const std::byte* file, uint64_t blocks, const Planes& out) {
    for_blocks<formats::iq2_s>(file, blocks, [&](const formats::iq2_s::Block& b, uint64_t i) {
        for (uint32_t u = 0; u < 8; ++u) {
            uint8_t signs[4];
            std::memcpy(signs, b.signs + u * 4, 4);
            uint64_t entries = 0;
            for (uint32_t l = 0; l < 4; ++l)
                entries |= uint64_t(b.low[u * 4 + l] | ((uint32_t(b.high[u]) >> (2 * l)) & 3) << 8)
                           << (10 * l);
            std::byte* to = out[0] + i * 64 + u * 8;
            put(entries, 4, to);
            put(signs_word(signs), 4, to + 4);
            put(entries >> 32 | uint64_t(b.scales[u]) << 8, 2, out[1] + i * 16 + u * 2);
        }
        std::memcpy(out[2] + i * 2, &b.scale, 2);
    });
}

void pack_iq3_xxs(const std::byte* file, uint64_t blocks, const Planes& out) {
    for_blocks<formats::iq3_xxs>(file, blocks, [&](const formats::iq3_xxs::Block& b, uint64_t i) {
        std::memcpy(out[0] + i * 64, b.q, 64);
        for (uint32_t u = 0; u < 8; ++u)
            put(signs_and_scale(uint32_t(b.words[u * 2]) | uint32_t(b.words[u * 2 + 1]) << 16), 4,
                out[1] + i * 32 + u * 4);
        std::memcpy(out[2] + i * 2, &b.scale, 2);
    });
}

void pack_iq3_s(const std::byte* file, uint64_t blocks, const Planes& out) {
    for_blocks<formats::iq3_s>(file, blocks, [&](const formats::iq3_s::Block& b, uint64_t i) {
        std::memcpy(out[3] + i * 6, &b.scale, 2);
        std::memcpy(out[3] + i * 6 + 2, b.scales, 4);
        for (uint32_t u = 0; u < 8; ++u) {
            // Four entries of nine bits each in a word and a nibble.
            uint64_t entries[2] = {};
            for (uint32_t k = 0; k < 8; ++k)
                entries[k / 4] |= uint64_t(b.low[u * 8 + k] | ((uint32_t(b.high[u]) >> k) & 1) << 8)
                                  << (k % 4 * 9);
            put(entries[0], 4, out[0] + i * 64 + u * 8);
            put(entries[1], 4, out[0] + i * 64 + u * 8 + 4);
            put(entries[0] >> 32 | entries[1] >> 32 << 4, 1, out[2] + i * 8 + u);
            uint8_t signs[4];
            std::memcpy(signs, b.signs + u * 4, 4);
            put(signs_word(signs), 4, out[1] + i * 32 + u * 4);
        }
    });
}

void pack_iq1_s(const std::byte* file, uint64_t blocks, const Planes& out) {
    for_blocks<formats::iq1_s>(file, blocks, [&](const formats::iq1_s::Block& b, uint64_t i) {
        for (uint32_t u = 0; u < 8; ++u) {
            const uint32_t high = b.high[u];
            uint64_t entries = uint64_t(high >> 12) << 44;
            for (uint32_t l = 0; l < 4; ++l)
                entries |= uint64_t(b.low[u * 4 + l] | ((high >> (3 * l)) & 7) << 8) << (11 * l);
            put(entries, 4, out[0] + i * 32 + u * 4);
            put(entries >> 32, 2, out[1] + i * 16 + u * 2);
        }
        std::memcpy(out[2] + i * 2, &b.scale, 2);
    });
}

void pack_iq1_m(const std::byte* file, uint64_t blocks, const Planes& out) {
    for_blocks<formats::iq1_m>(file, blocks, [&](const formats::iq1_m::Block& b, uint64_t i) {
        const uint16_t* s = b.scales;
        uint64_t scales = s[0] >> 12 | (s[1] >> 12) << 4 | (s[2] >> 12) << 8 | uint32_t(s[3] >> 12) << 12;
        for (uint32_t u = 0; u < 8; ++u) {
            uint64_t entries = 0;
            for (uint32_t l = 0; l < 4; ++l) {
                const uint32_t high = (uint32_t(b.high[u * 2 + l / 2]) >> (l % 2 * 4)) & 15;
                entries |= uint64_t(b.low[u * 4 + l] | high << 8) << (12 * l);
            }
            put(entries, 4, out[0] + i * 32 + u * 4);
            put(entries >> 32, 2, out[1] + i * 16 + u * 2);
            scales |= uint64_t((uint32_t(s[u / 2]) >> (u % 2 * 6)) & 63) << (16 + 6 * u);
        }
        put(scales, 8, out[2] + i * 8);
    });
}

}  // namespace redline
