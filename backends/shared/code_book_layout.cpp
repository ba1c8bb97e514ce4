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

// Signs of 32 elements into 4 bytes, as put_bits() groups them.
void put_signs(const uint8_t (&signs)[4], std::byte* out) {
    uint8_t bits[32];
    for (uint32_t e = 0; e < 32; ++e) bits[e] = uint8_t(signs[e / 8] >> (e % 8));
    put_bits(bits, out);
}

// The same where the number of minus signs of every eight is even, and is to be known: in the place of the
// eighth sign of entry l stands bit l of `field`.
void put_even_signs(const uint8_t (&sevens)[4], uint32_t field, std::byte* out) {
    uint8_t signs[4];
    for (uint32_t l = 0; l < 4; ++l) signs[l] = uint8_t((sevens[l] & 127) | ((field >> l) & 1) << 7);
    put_signs(signs, out);
}

// Four times seven signs under four bits of scale.
void put_signs_and_scale(uint32_t word, std::byte* out) {
    uint8_t sevens[4];
    for (uint32_t l = 0; l < 4; ++l) sevens[l] = uint8_t((word >> (7 * l)) & 127);
    put_even_signs(sevens, word >> 28, out);
}

}  // namespace

void pack_iq2_xxs(const std::byte* file, uint64_t blocks, const Planes& out) {
    for_blocks<formats::iq2_xxs>(file, blocks, [&](const formats::iq2_xxs::Block& b, uint64_t i) {
        for (uint32_t u = 0; u < 8; ++u) {
            std::byte* to = out[0] + i * 64 + u * 8;
            std::memcpy(to, b.q + u * 4, 4);
            put_signs_and_scale(uint32_t(b.q[u * 4 + 2]) | uint32_t(b.q[u * 4 + 3]) << 16, to + 4);
        }
        std::memcpy(out[1] + i * 2, &b.scale, 2);
    });
}

void pack_iq2_xs(const std::byte* file, uint64_t blocks, const Planes& out) {
    for_blocks<formats::iq2_xs>(file, blocks, [&](const formats::iq2_xs::Block& b, uint64_t i) {
        for (uint32_t u = 0; u < 8; ++u) {
            std::byte* to = out[0] + i * 64 + u * 8;
            uint8_t sevens[4];
            uint32_t top = 0;
            for (uint32_t l = 0; l < 4; ++l) {
                const uint32_t q = b.q[u * 4 + l];
                to[l] = std::byte(q & 255);
                top |= (q >> 8 & 1) << l;
                sevens[l] = uint8_t(q >> 9);
            }
            put_even_signs(sevens, top, to + 4);
        }
        std::memcpy(out[1] + i * 8, b.scales, 8);
        std::memcpy(out[2] + i * 2, &b.scale, 2);
    });
}

void pack_iq2_s(const std::byte* file, uint64_t blocks, const Planes& out) {
    for_blocks<formats::iq2_s>(file, blocks, [&](const formats::iq2_s::Block& b, uint64_t i) {
        for (uint32_t u = 0; u < 8; ++u) {
            std::byte* to = out[0] + i * 64 + u * 8;
            std::memcpy(to, b.low + u * 4, 4);
            uint8_t signs[4];
            std::memcpy(signs, b.signs + u * 4, 4);
            put_signs(signs, to + 4);
            out[1][i * 16 + u * 2] = std::byte(b.high[u]);
            out[1][i * 16 + u * 2 + 1] = std::byte(b.scales[u]);
        }
        std::memcpy(out[2] + i * 2, &b.scale, 2);
    });
}

void pack_iq3_xxs(const std::byte* file, uint64_t blocks, const Planes& out) {
    for_blocks<formats::iq3_xxs>(file, blocks, [&](const formats::iq3_xxs::Block& b, uint64_t i) {
        std::memcpy(out[0] + i * 64, b.q, 64);
        for (uint32_t u = 0; u < 8; ++u)
            put_signs_and_scale(uint32_t(b.words[u * 2]) | uint32_t(b.words[u * 2 + 1]) << 16,
                                out[1] + i * 32 + u * 4);
        std::memcpy(out[2] + i * 2, &b.scale, 2);
    });
}

void pack_iq3_s(const std::byte* file, uint64_t blocks, const Planes& out) {
    for_blocks<formats::iq3_s>(file, blocks, [&](const formats::iq3_s::Block& b, uint64_t i) {
        std::memcpy(out[0] + i * 64, b.low, 64);
        for (uint32_t u = 0; u < 8; ++u) {
            uint8_t signs[4];
            std::memcpy(signs, b.signs + u * 4, 4);
            put_signs(signs, out[1] + i * 32 + u * 4);
        }
        std::memcpy(out[2] + i * 14, &b.scale, 2);
        std::memcpy(out[2] + i * 14 + 2, b.scales, 4);
        std::memcpy(out[2] + i * 14 + 6, b.high, 8);
    });
}

void pack_iq1_s(const std::byte* file, uint64_t blocks, const Planes& out) {
    for_blocks<formats::iq1_s>(file, blocks, [&](const formats::iq1_s::Block& b, uint64_t i) {
        std::memcpy(out[0] + i * 32, b.low, 32);
        std::memcpy(out[1] + i * 16, b.high, 16);
        std::memcpy(out[2] + i * 2, &b.scale, 2);
    });
}

void pack_iq1_m(const std::byte* file, uint64_t blocks, const Planes& out) {
    for_blocks<formats::iq1_m>(file, blocks, [&](const formats::iq1_m::Block& b, uint64_t i) {
        std::memcpy(out[0] + i * 32, b.low, 32);
        std::memcpy(out[1] + i * 16, b.high, 16);
        std::memcpy(out[2] + i * 8, b.scales, 8);
    });
}

}  // namespace redline
