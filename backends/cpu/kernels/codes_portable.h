// Codes of 4 and 5 bits of a cache as floats, in the compiler's vector types. Each level has a CodeTable and
// FifthBits with these operations.
#pragma once

#include "kv_codes.h"
#include "vec_portable.h"

namespace redline::cpu {
namespace {

constexpr size_t kCodeVectors = 16 / Vec::kLanes;

// The elements of the codes in 16 bytes, in steps of the scale: of the lower halves, and of the upper ones.
struct CodeElements {
    Vec low[kCodeVectors], high[kCodeVectors];
};

using CodeBytes = uint8_t __attribute__((vector_size(16)));
using CodeWords = uint16_t __attribute__((vector_size(16)));

inline CodeBytes read_code_bytes(const std::byte* from) {
    CodeBytes bytes;
    std::memcpy(&bytes, from, sizeof bytes);
    return bytes;
}

// The fifth bits of the codes in 16 bytes, as 16 where a bit is 1.
struct FifthBits {
    CodeBytes low, high;

    // One bit of each of 16 bytes, which are those of 16 tokens: for the lower and for the upper halves.
    static FifthBits of_tokens(const std::byte* low, const std::byte* high, uint32_t bit) {
        return {moved(read_code_bytes(low), bit), moved(read_code_bytes(high), bit)};
    }
    // All bits of a group of one token.
    static FifthBits of_group(const std::byte* highs) {
        return {spread(highs[0], highs[1]), spread(highs[2], highs[3])};
    }

private:
    // Words are shifted, since SSE2 shifts no bytes: nothing comes from a neighbour to where a fifth bit is.
    static CodeBytes moved(CodeBytes bytes, uint32_t bit) {
        const auto words = CodeWords(bytes);
        return CodeBytes(bit < 4 ? words << (4 - bit) : words >> (bit - 4)) & uint8_t(16);
    }
    // The bits of two bytes, a byte for each.
    static CodeBytes spread(std::byte first, std::byte second) {
        constexpr uint64_t kBytes = 0x0101010101010101, kBits = 0x8040201008040201;
        using Longs = uint64_t __attribute__((vector_size(16)));
        const Longs bits = Longs{uint64_t(first) * kBytes & kBits, uint64_t(second) * kBytes & kBits};
        return CodeBytes(CodeBytes(bits) != 0) & uint8_t(16);
    }
};

// Codes to elements in steps of the scale.
class CodeTable {
public:
    explicit CodeTable(CacheType type)
        : by_levels_(type == CacheType::iq4_nl),
          zero_(Vec::set1(type == CacheType::q4_0   ? 8.0f
                          : type == CacheType::q5_0 ? 16.0f
                                                    : 0.0f)) {}

    // Those of 16 bytes, of 4 bits each.
    CodeElements read(const std::byte* codes) const {
        const CodeBytes bytes = read_code_bytes(codes);
        if (by_levels_) return levels_of(bytes);
        return widened(bytes & uint8_t(15), bytes >> 4);
    }
    // The same with fifth bits.
    CodeElements read(const std::byte* codes, const FifthBits& bits) const {
        const CodeBytes bytes = read_code_bytes(codes);
        return widened((bytes & uint8_t(15)) | bits.low, (bytes >> 4) | bits.high);
    }

private:
    // Pairs of elements by the byte that both codes are in.
    struct Pairs {
        float of[256][2];
        constexpr Pairs() : of() {
            for (uint32_t byte = 0; byte < 256; ++byte) {
                of[byte][0] = float(kLevels[byte & 15u]);
                of[byte][1] = float(kLevels[byte >> 4]);
            }
        }
    };
    static CodeElements levels_of(CodeBytes bytes) {
        static constexpr Pairs kPairs;
        CodeElements out;
        for (size_t n = 0; n < kCodeVectors; ++n) {
            float pairs[8];
            for (size_t i = 0; i < 4; ++i) std::memcpy(pairs + 2 * i, kPairs.of[bytes[n * 4 + i]], 8);
            Vec::load_pairs(pairs, out.low[n], out.high[n]);
        }
        return out;
    }
    CodeElements widened(CodeBytes low, CodeBytes high) const {
        CodeElements out;
        widen(low, out.low);
        widen(high, out.high);
        return out;
    }
    // Bytes to words to double words, each with zeros above.
    void widen(CodeBytes codes, Vec (&out)[kCodeVectors]) const {
        const auto first = CodeWords(__builtin_shufflevector(codes, CodeBytes{}, 0, 16, 1, 17, 2, 18, 3, 19,
                                                             4, 20, 5, 21, 6, 22, 7, 23));
        const auto second = CodeWords(__builtin_shufflevector(codes, CodeBytes{}, 8, 24, 9, 25, 10, 26, 11,
                                                              27, 12, 28, 13, 29, 14, 30, 15, 31));
        out[0] = widened(__builtin_shufflevector(first, CodeWords{}, 0, 8, 1, 9, 2, 10, 3, 11));
        out[1] = widened(__builtin_shufflevector(first, CodeWords{}, 4, 12, 5, 13, 6, 14, 7, 15));
        out[2] = widened(__builtin_shufflevector(second, CodeWords{}, 0, 8, 1, 9, 2, 10, 3, 11));
        out[3] = widened(__builtin_shufflevector(second, CodeWords{}, 4, 12, 5, 13, 6, 14, 7, 15));
    }
    Vec widened(CodeWords pairs) const {
        return Vec{__builtin_convertvector(Vec::Ints(pairs), Vec::Floats)} - zero_;
    }

    bool by_levels_;
    Vec zero_;
};

}  // namespace
}  // namespace redline::cpu
