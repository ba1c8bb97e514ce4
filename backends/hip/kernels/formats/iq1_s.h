// Planes: entries of eleven bits (4 bytes per unit), the last bits of the third, the fourth, scale and
// direction (2), per 256 elements their scale (2). Codes are eight times -1, 0 or 1, and one more or less,
// under an eighth of the scale.
#pragma once

#include "kernels/code_books.h"

namespace redline::hip {

struct Iq1S {
    uint32_t low, high;
    RL_DEVICE Iq1S(const Matrix& w, size_t unit)
        : low(load<uint32_t>(w.data, unit)), high(load<uint16_t>(w.data, w.units * 2 + unit)) {}
    RL_DEVICE uint32_t third() const { return join_words(low, high, 20); }  // from bit 2 on
    // Of an eighth.
    RL_DEVICE float scale(const Matrix& w, size_t unit) const {
        const float d = half_value(load<uint16_t>(w.data, w.units * 3 + unit / 8));
        return d * fused(0.25f, byte_float((high >> 12) & 7u), 0.125f);
    }
};

// Directions are a matter of the offset, which these kernels have per unit.
struct Iq1SOwn : Quantized<false, 0, true> {
    static constexpr args::Planes kPlanes = {{32, 16, 2}};
    template <uint32_t kBlockThreads>
    RL_DEVICE static void share() {
        share_ternary_book<kBlockThreads>();
    }
    RL_DEVICE static void codes(const Matrix& w, size_t unit, uint32_t (&words)[8]) {
        const Iq1S u(w, unit);
        put_shared_ternary(entry_bytes<0, 11>(u.low), 0, 0, words);
        put_shared_ternary(entry_bytes<11, 11>(u.low), 0, 1, words);
        put_shared_ternary(entry_bytes<2, 11>(u.third()), 0, 2, words);
        put_shared_ternary(entry_bytes<1, 11>(u.high), 0, 3, words);
    }
    RL_DEVICE static UnitScales scales(const Matrix& w, size_t unit) {
        const Iq1S u(w, unit);
        const float s = 2.0f * u.scale(w, unit);
        return pair_scales(s, s * ((u.high & 0x8000u) != 0 ? -4.5f : -3.5f));
    }
};

struct iq1_s : Quantized<false, 9, false> {
    using Own = Iq1SOwn;
    static constexpr args::Planes kPlanes = Own::kPlanes;
    RL_DEVICE static void codes(const Matrix& w, size_t unit, uint32_t (&words)[8]) {
        const Iq1S u(w, unit);
        const uint32_t down = u.high >> 15;
        put_ternary(u.low & 2047u, down, 0, words);
        put_ternary((u.low >> 11) & 2047u, down, 1, words);
        put_ternary((u.third() >> 2) & 2047u, down, 2, words);
        put_ternary((u.high >> 1) & 2047u, down, 3, words);
    }
    RL_DEVICE static UnitScales scales(const Matrix& w, size_t unit) {
        return pair_scales(Iq1S(w, unit).scale(w, unit), 0.0f);
    }
};

}  // namespace redline::hip
