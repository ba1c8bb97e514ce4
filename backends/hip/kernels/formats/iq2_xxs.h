// Planes: entries and signs with the scale before them (8 bytes per unit), per 256 elements their scale (2).
#pragma once

#include "kernels/code_books.h"

namespace redline::hip {

template <bool kShared>
struct Iq2Xxs : Quantized<true, 0, false> {
    static constexpr args::Planes kPlanes = {{64, 2}};
    template <uint32_t kBlockThreads>
    RL_DEVICE static void share() {
        share_book<kBlockThreads>(kIq2XxsBook);
    }
    RL_DEVICE static void codes(const Matrix& w, size_t unit, uint32_t (&words)[8]) {
        const auto both = load<Words2>(w.data, unit);
        const uint32_t entries = both.d[0], signs = even_signs(both.d[1]);
        put_eight(book_word<kShared>(kIq2XxsBook, entry_bytes<0, 8>(entries)), signs, 0, words);
        put_eight(book_word<kShared>(kIq2XxsBook, entry_bytes<8, 8>(entries)), signs, 1, words);
        put_eight(book_word<kShared>(kIq2XxsBook, entry_bytes<16, 8>(entries)), signs, 2, words);
        put_eight(book_word<kShared>(kIq2XxsBook, entry_bytes<24, 8>(entries)), signs, 3, words);
    }
    RL_DEVICE static UnitScales scales(const Matrix& w, size_t unit) {
        const uint32_t nibble = load<uint32_t>(w.data, unit * 2 + 1) & 15u;
        const float d = half_value(load<uint16_t>(w.data, w.units * 4 + unit / 8));
        return pair_scales(d * fused(0.25f, byte_float(nibble), 0.125f), 0.0f);
    }
};
struct iq2_xxs : Iq2Xxs<false> {
    using Own = Iq2Xxs<true>;
};

}  // namespace redline::hip
