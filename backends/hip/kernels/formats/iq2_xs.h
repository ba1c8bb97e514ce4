// Planes: entries of nine bits, the last bits of the fourth and signs (8 bytes per unit), scales (1), per 256
// elements their scale (2).
#pragma once

#include "kernels/code_books.h"

namespace redline::hip {

template <bool kShared>
struct Iq2Xs : Quantized<true, 0, false> {
    static constexpr args::Planes kPlanes = {{64, 8, 2}};
    static constexpr bool kHalves = true;
    template <uint32_t kBlockThreads>
    RL_DEVICE static void share() {
        share_book<kBlockThreads>(kIq2XsBook);
    }
    RL_DEVICE static void codes(const Matrix& w, size_t unit, uint32_t (&words)[8]) {
        const auto both = load<Words2>(w.data, unit);
        const uint32_t entries = both.d[0], signs = even_signs(both.d[1]);
        const uint32_t last = join_words(entries, both.d[1], 25);
        put_eight(book_word<kShared>(kIq2XsBook, entry_bytes<0, 9>(entries)), signs, 0, words);
        put_eight(book_word<kShared>(kIq2XsBook, entry_bytes<9, 9>(entries)), signs, 1, words);
        put_eight(book_word<kShared>(kIq2XsBook, entry_bytes<18, 9>(entries)), signs, 2, words);
        put_eight(book_word<kShared>(kIq2XsBook, entry_bytes<2, 9>(last)), signs, 3, words);
    }
    RL_DEVICE static UnitScales scales(const Matrix& w, size_t unit) {
        const uint32_t nibbles = w.data[w.units * 8 + unit];
        const float d = half_value(load<uint16_t>(w.data, w.units * 4 + w.units / 2 + unit / 8));
        return {{d * fused(0.25f, byte_float(nibbles & 15u), 0.125f),
                 d * fused(0.25f, byte_float(nibbles >> 4), 0.125f)},
                {0.0f, 0.0f}};
    }
};
struct iq2_xs : Iq2Xs<false> {
    using Own = Iq2Xs<true>;
};

}  // namespace redline::hip
