// Planes: entries (8 bytes per unit), signs with the scale before them (4), per 256 elements their scale (2).
#pragma once

#include "kernels/code_books.h"

namespace redline::hip {

template <bool kShared>
struct Iq3Xxs : Quantized<true, 0, false> {
    static constexpr args::Planes kPlanes = {{64, 32, 2}};
    template <uint32_t kBlockThreads>
    RL_DEVICE static void share() {
        share_book<kBlockThreads>(kIq3XxsBook);
    }
    RL_DEVICE static void codes(const Matrix& w, size_t unit, uint32_t (&words)[8]) {
        const auto entries = load<Words2>(w.data, unit);
        const uint32_t signs = even_signs(load<uint32_t>(w.data, w.units * 2 + unit));
        RL_UNROLL
        for (uint32_t h = 0; h < 2; ++h) {
            const uint32_t four = entries.d[h], k = h * 4;
            words[k] = signed_levels(book_word<kShared>(kIq3XxsBook, entry_bytes<0, 8>(four)), signs, k);
            words[k + 1] =
                signed_levels(book_word<kShared>(kIq3XxsBook, entry_bytes<8, 8>(four)), signs, k + 1);
            words[k + 2] =
                signed_levels(book_word<kShared>(kIq3XxsBook, entry_bytes<16, 8>(four)), signs, k + 2);
            words[k + 3] =
                signed_levels(book_word<kShared>(kIq3XxsBook, entry_bytes<24, 8>(four)), signs, k + 3);
        }
    }
    RL_DEVICE static UnitScales scales(const Matrix& w, size_t unit) {
        const uint32_t nibble = load<uint32_t>(w.data, w.units * 2 + unit) & 15u;
        const float d = half_value(load<uint16_t>(w.data, w.units * 6 + unit / 8));
        return pair_scales(d * fused(0.5f, byte_float(nibble), 0.25f), 0.0f);
    }
};
struct iq3_xxs : Iq3Xxs<false> {
    using Own = Iq3Xxs<true>;
};

}  // namespace redline::hip
