// Planes: two words with entries of nine bits (8 bytes per unit), signs (4), the last bits of each fourth
// entry (1), per 256 elements scale and packed scales (6).
#pragma once

#include "kernels/code_books.h"

namespace redline::hip {

template <bool kShared>
struct Iq3S : Quantized<true, 0, false> {
    static constexpr args::Planes kPlanes = {{64, 32, 8, 6}};
    template <uint32_t kBlockThreads>
    RL_DEVICE static void share() {
        share_book<kBlockThreads>(kIq3SBook);
    }
    RL_DEVICE static void codes(const Matrix& w, size_t unit, uint32_t (&words)[8]) {
        const auto entries = load<Words2>(w.data, unit);
        const uint32_t signs = load<uint32_t>(w.data, w.units * 2 + unit);
        const uint32_t tops = w.data[w.units * 12 + unit];
        RL_UNROLL
        for (uint32_t h = 0; h < 2; ++h) {
            const uint32_t four = entries.d[h], k = h * 4, last = join_words(four, tops >> (4 * h), 25);
            words[k] = signed_levels(book_word<kShared>(kIq3SBook, entry_bytes<0, 9>(four)), signs, k);
            words[k + 1] =
                signed_levels(book_word<kShared>(kIq3SBook, entry_bytes<9, 9>(four)), signs, k + 1);
            words[k + 2] =
                signed_levels(book_word<kShared>(kIq3SBook, entry_bytes<18, 9>(four)), signs, k + 2);
            words[k + 3] =
                signed_levels(book_word<kShared>(kIq3SBook, entry_bytes<2, 9>(last)), signs, k + 3);
        }
    }
    RL_DEVICE static UnitScales scales(const Matrix& w, size_t unit) {
        const size_t header = w.units / 2 * 13 + unit / 8 * 3;
        const uint32_t nibbles = load<uint16_t>(w.data, header + 1 + unit / 4 % 2);
        const float d = half_value(load<uint16_t>(w.data, header));
        return pair_scales(d * byte_float(1 + 2 * ((nibbles >> (unit % 4 * 4)) & 15u)), 0.0f);
    }
};
struct iq3_s : Iq3S<false> {
    using Own = Iq3S<true>;
};

}  // namespace redline::hip
