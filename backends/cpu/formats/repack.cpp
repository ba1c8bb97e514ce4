#include "repack.h"

#include "formats/iq1_m.h"
#include "formats/iq1_s.h"
#include "formats/iq2_s.h"
#include "formats/iq2_xs.h"
#include "formats/iq2_xxs.h"
#include "formats/iq3_s.h"
#include "formats/iq3_xxs.h"
#include "formats/tq1_0.h"
#include "formats/tq2_0.h"

#include <cstring>

namespace redline::cpu {

namespace {

// ---- Digits to the base 3 ----

// 256 digits, five to a byte as a fraction of 256. Each 16 bytes hold those of 80 neighbouring columns: the
// first digits of all are 16 columns, the second ones the next 16, and so on; the last four bytes hold four
// digits each, of 16 columns. So each 16 columns are digits in one place of their bytes but the last ones.
constexpr uint32_t kTritBytes = 52;
struct Trits {
    uint8_t bytes[kTritBytes];

    struct Place {
        uint32_t byte, digit;
    };
    static Place place_of(uint32_t column) {
        if (column < 240) return {column / 80 * 16 + column % 16, column % 80 / 16};
        return {48 + column % 4, column % 16 / 4};
    }
    void put(const uint8_t (&digits)[256]) {
        constexpr uint32_t kWorth[5] = {81, 27, 9, 3, 1};
        uint32_t numbers[kTritBytes] = {};
        for (uint32_t i = 0; i < 256; ++i) numbers[place_of(i).byte] += kWorth[place_of(i).digit] * digits[i];
        for (uint32_t at = 0; at < kTritBytes; ++at) bytes[at] = uint8_t((numbers[at] * 256 + 242) / 243);
    }
    int operator[](uint32_t column) const {
        const Place place = place_of(column);
        return formats::tq1_0::digit(bytes[place.byte], place.digit);
    }
};

// ---- Levels of three with signs ----

// 256 levels of three with a sign each, three to a byte: one, three and ten times the levels in bits 0..4, so
// that the third one can be told without bit 0, and signs in bits 5..7. Those of byte 4i + c belong to
// columns 4 (3i) + c, 4 (3i + 1) + c and 4 (3i + 2) + c.
struct Thirds {
    uint8_t bytes[88];

    void put(uint32_t column, uint32_t level, uint32_t sign) {
        constexpr uint8_t kWorth[3] = {1, 3, 10};
        const uint32_t quad = column / 4;
        uint8_t& byte = bytes[quad / 3 * 4 + column % 4];
        byte = uint8_t(byte + level * kWorth[quad % 3] + (sign << (5 + quad % 3)));
    }
    float signed_level(uint32_t column) const {
        const uint32_t quad = column / 4, byte = bytes[quad / 3 * 4 + column % 4], code = byte & 31;
        const uint32_t levels[3] = {code % 10 % 3, code % 10 / 3, code / 10};
        const auto level = uint16_t(levels[quad % 3]);
        return formats::signed_level(formats::grid_level_of_8(level, 0), byte >> 5, quad % 3);
    }
};

uint32_t nibble(const uint8_t* bytes, uint32_t i) {
    return (bytes[i / 2] >> (i % 2 * 4)) & 15u;
}
void put_nibble(uint8_t* bytes, uint32_t i, uint32_t value) {
    bytes[i / 2] |= uint8_t(value << (i % 2 * 4));
}

// ---- IQ2: three levels with signs ----

// Eight numbers: two bits of level each, and a bit of sign.
struct Octet {
    uint32_t levels, signs;
};
Octet octet_of(const formats::iq2_xxs::Block& b, uint32_t part) {
    const uint16_t* q = b.q + part / 4 * 4;
    const uint32_t word = uint32_t(q[2]) | uint32_t(q[3]) << 16, l = part % 4;
    return {formats::kIq2XxsGrid[(q[l / 2] >> (l % 2 * 8)) & 255],
            formats::even_signs((word >> (7 * l)) & 127)};
}
Octet octet_of(const formats::iq2_xs::Block& b, uint32_t part) {
    return {formats::kIq2XsGrid[b.q[part] & 511], formats::even_signs(b.q[part] >> 9)};
}
Octet octet_of(const formats::iq2_s::Block& b, uint32_t part) {
    const uint32_t high = (uint32_t(b.high[part / 4]) >> (part % 4 * 2)) & 3;
    return {formats::kIq2SGrid[b.low[part] | high << 8], b.signs[part]};
}

// The scales of 32 or 16 columns each.
void put_scales(const formats::iq2_xxs::Block& b, uint8_t (&nibbles)[4]) {
    for (uint32_t u = 0; u < 8; ++u) put_nibble(nibbles, u, uint32_t(b.q[4 * u + 3]) >> 12);
}
template <class Block>
void put_scales(const Block& b, uint8_t (&nibbles)[8]) {
    std::memcpy(nibbles, b.scales, 8);
}

template <uint32_t kColumns>
struct Iq2 {
    uint16_t scale;
    uint8_t nibbles[128 / kColumns];
    Thirds levels;

    template <class Block>
    void pack(const Block& b) {
        scale = b.scale;
        put_scales(b, nibbles);
        for (uint32_t part = 0; part < 32; ++part) {
            const Octet octet = octet_of(b, part);
            for (uint32_t j = 0; j < 8; ++j)
                levels.put(8 * part + j, (octet.levels >> (2 * j)) & 3, (octet.signs >> j) & 1);
        }
    }
    float decode(uint32_t i) const {
        const float each = half_to_float(scale) * (0.5f + float(nibble(nibbles, i / kColumns))) * 0.25f;
        return each * levels.signed_level(i);
    }
};

// ---- IQ3: eight levels with signs ----

// Four numbers of three bits of level.
uint32_t four_of(const formats::iq3_xxs::Block& b, uint32_t part) {
    return formats::kIq3XxsGrid[b.q[part]];
}
uint32_t four_of(const formats::iq3_s::Block& b, uint32_t part) {
    return formats::kIq3SGrid[b.low[part] | ((uint32_t(b.high[part / 8]) >> (part % 8)) & 1) << 8];
}
// The signs of columns 8 * part on.
uint32_t signs_of(const formats::iq3_xxs::Block& b, uint32_t part) {
    const uint16_t* words = b.words + part / 4 * 2;
    const uint32_t word = uint32_t(words[0]) | uint32_t(words[1]) << 16;
    return formats::even_signs((word >> (part % 4 * 7)) & 127);
}
uint32_t signs_of(const formats::iq3_s::Block& b, uint32_t part) {
    return b.signs[part];
}
void put_scales(const formats::iq3_xxs::Block& b, uint8_t* nibbles) {
    for (uint32_t u = 0; u < 8; ++u) put_nibble(nibbles, u, uint32_t(b.words[2 * u + 1]) >> 12);
}
void put_scales(const formats::iq3_s::Block& b, uint8_t* nibbles) {
    std::memcpy(nibbles, b.scales, 4);
}
float scaled_level(const formats::iq3_xxs::Block*, float scale, uint32_t sub_scale, uint32_t level,
                   uint32_t sign) {
    constexpr int8_t levels[8] = {4, 12, 20, 28, 36, 44, 52, 62};
    return scale * (0.5f + float(sub_scale)) * 0.5f * formats::signed_level(levels[level], sign, 0);
}
float scaled_level(const formats::iq3_s::Block*, float scale, uint32_t sub_scale, uint32_t level,
                   uint32_t sign) {
    return scale * float(1 + 2 * int(sub_scale)) * formats::signed_level(1 + 2 * int(level), sign, 0);
}

template <class FileBlock>
struct Iq3 {
    uint16_t scale;
    uint8_t nibbles[4];
    uint8_t codes[128];  // of each 32 columns 16 bytes: low nibbles first; a level under a sign

    void pack(const FileBlock& b) {
        scale = b.scale;
        put_scales(b, nibbles);
        for (uint32_t part = 0; part < 32; ++part) {
            const uint32_t signs = signs_of(b, part);
            const uint32_t levels = four_of(b, 2 * part) | four_of(b, 2 * part + 1) << 12;
            for (uint32_t j = 0; j < 8; ++j) {
                const uint32_t code = ((levels >> (3 * j)) & 7) | ((signs >> j) & 1) << 3;
                codes[part / 4 * 16 + part % 2 * 8 + j] |= uint8_t(code << (part % 4 / 2 * 4));
            }
        }
    }
    float decode(uint32_t i) const {
        const uint32_t code = (codes[i / 32 * 16 + i % 16] >> (i % 32 / 16 * 4)) & 15u;
        const FileBlock* format = nullptr;
        return scaled_level(format, half_to_float(scale), nibble(nibbles, i / 32), code & 7, code >> 3);
    }
};

// ---- IQ1: -1, 0 and 1, moved by an eighth ----

float moved_level(float scale, uint32_t sub_scale, int level, uint32_t down) {
    return scale * float(2 * sub_scale + 1) * (float(level) + (down ? -0.125f : 0.125f));
}

struct Iq1S {
    uint16_t scale;
    uint8_t nibbles[4];  // of 32 columns: three bits of scale, one: down
    Trits levels;

    void pack(const formats::iq1_s::Block& b) {
        scale = b.scale;
        uint8_t digits[256];
        for (uint32_t u = 0; u < 8; ++u) {
            put_nibble(nibbles, u, b.high[u] >> 12);
            for (uint32_t i = 0; i < 32; ++i) {
                const uint32_t entry = b.low[4 * u + i / 8] | ((uint32_t(b.high[u]) >> (i / 8 * 3)) & 7) << 8;
                digits[32 * u + i] = uint8_t(formats::iq1_s::level(entry, i % 8) + 1);
            }
        }
        levels.put(digits);
    }
    float decode(uint32_t i) const {
        const uint32_t both = nibble(nibbles, i / 32);
        return moved_level(half_to_float(scale), both & 7, levels[i] - 1, both >> 3);
    }
};

struct Iq1M {
    uint16_t scale;
    uint8_t nibbles[8];  // of 16 columns: three bits of scale
    uint8_t down[4];     // a bit for 8 columns
    Trits levels;

    void pack(const formats::iq1_m::Block& b) {
        const uint16_t* s = b.scales;
        scale = uint16_t(s[0] >> 12 | (s[1] >> 12) << 4 | (s[2] >> 12) << 8 | (s[3] >> 12) << 12);
        uint8_t digits[256];
        for (uint32_t g = 0; g < 16; ++g) put_nibble(nibbles, g, (uint32_t(s[g / 4]) >> (g % 4 * 3)) & 7);
        for (uint32_t part = 0; part < 32; ++part) {
            const uint32_t high = nibble(b.high, part), entry = b.low[part] | (high & 7) << 8;
            down[part / 8] |= uint8_t((high >> 3) << (part % 8));
            for (uint32_t j = 0; j < 8; ++j)
                digits[8 * part + j] = uint8_t(formats::iq1_s::level(entry, j) + 1);
        }
        levels.put(digits);
    }
    float decode(uint32_t i) const {
        const uint32_t part = i / 8;
        return moved_level(half_to_float(scale), nibble(nibbles, i / 16), levels[i] - 1,
                           (down[part / 8] >> (part % 8)) & 1u);
    }
};

// ---- TQ1_0: as TQ2_0 has it, which is a fifth more and decodes twice as fast ----

struct Tq1 {
    formats::tq2_0::Block block;

    void pack(const formats::tq1_0::Block& b) {
        block.scale = b.scale;
        for (uint32_t i = 0; i < 256; ++i)
            block.q[i / 128 * 32 + i % 32] |= uint8_t(formats::tq1_0::trit(b, i) << (i % 128 / 32 * 2));
    }
    float decode(uint32_t i) const { return formats::tq2_0::decode(block, i); }
};

template <class F, class Packed>
constexpr Repacking repacking() {
    static_assert(sizeof(Packed) <= kMostRepackedBytes && F::block == 256);
    return {F::gguf_id, sizeof(Packed),
            [](const std::byte* block, std::byte* out) {
                typename F::Block from;
                std::memcpy(&from, block, sizeof from);
                Packed packed = {};
                packed.pack(from);
                std::memcpy(out, &packed, sizeof packed);
            },
            [](const std::byte* bytes, float* out) {
                Packed packed;
                std::memcpy(&packed, bytes, sizeof packed);
                for (uint32_t i = 0; i < F::block; ++i) out[i] = packed.decode(i);
            }};
}

constexpr Repacking kRepackings[] = {
    repacking<formats::iq1_s, Iq1S>(),
    repacking<formats::iq1_m, Iq1M>(),
    repacking<formats::iq2_xxs, Iq2<32>>(),
    repacking<formats::iq2_xs, Iq2<16>>(),
    repacking<formats::iq2_s, Iq2<16>>(),
    repacking<formats::iq3_xxs, Iq3<formats::iq3_xxs::Block>>(),
    repacking<formats::iq3_s, Iq3<formats::iq3_s::Block>>(),
    repacking<formats::tq1_0, Tq1>(),
};

}  // namespace

const Repacking* find_repacking(uint32_t gguf_id) {
    for (const Repacking& each : kRepackings)
        if (each.gguf_id == gguf_id) return &each;
    return nullptr;
}

}  // namespace redline::cpu
