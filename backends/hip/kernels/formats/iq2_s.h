// Planes: entries of ten bits, and signs (8 bytes per unit), the last bits of the fourth entry, and scales
// (2), per 256 elements their scale (2).
#pragma once

#include "kernels/code_books.h"

namespace redline::hip {

template <bool kShared>
struct Iq2S : Quantized<true, 0, false> {
    static constexpr args::Planes kPlanes = {{64, 16, 2}};
    static constexpr bool kHalves = true;
    template <uint32_t kBlockThreads>
    RL_DEVICE static void share() {
        share_book<kBlockThreads>(kIq2SBook);
    }
    RL_DEVICE static void codes(const Matrix& w, size_t unit, uint32_t (&words)[8]) {
        const auto both = load<Words2>(w.data, unit);
        const uint32_t entries = both.d[0], signs = both.d[1];
        const uint32_t last = join_words(entries, load<uint16_t>(w.data, w.units * 4 + unit), 28);
        put_eight(book_word<kShared>(kIq2SBook, entry_bytes<0, 10>(entries)), signs, 0, words);
        put_eight(book_word<kShared>(kIq2SBook, entry_bytes<10, 10>(entries)), signs, 1, words);
        put_eight(book_word<kShared>(kIq2SBook, entry_bytes<20, 10>(entries)), signs, 2, words);
        put_eight(book_word<kShared>(kIq2SBook, entry_bytes<2, 10>(last)), signs, 3, words);
    }
    RL_DEVICE static UnitScales scales(const Matrix& w, size_t unit) {
        const uint32_t nibbles = load<uint16_t>(w.data, w.units * 4 + unit) >> 8;
        const float d = half_value(load<uint16_t>(w.data, w.units * 5 + unit / 8));
        return {{d * fused(0.25f, byte_float(nibbles & 15u), 0.125f),
                 d * fused(0.25f, byte_float(nibbles >> 4), 0.125f)},
                {0.0f, 0.0f}};
    }
};
struct iq2_s : Iq2S<false> {
    using Own = Iq2S<true>;
};

}  // namespace redline::hip
