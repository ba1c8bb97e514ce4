// Planes: entries of eleven bits under a direction (4 bytes per unit), the last bits of the third, and the
// fourth (2), per 256 elements their scale and of each unit two scales of three bits (8). Codes as iq1_s.
#pragma once

#include "kernels/code_books.h"

namespace redline::hip {

struct Iq1M {
    uint32_t low, high;
    RL_DEVICE Iq1M(const Matrix& w, size_t unit)
        : low(load<uint32_t>(w.data, unit)), high(load<uint16_t>(w.data, w.units * 2 + unit)) {}
    RL_DEVICE uint32_t third() const { return join_words(low, high, 22); }  // from bit 2 on
    // Of a part of the elements' own.
    RL_DEVICE static UnitScales scales(const Matrix& w, size_t unit, float part, float offset) {
        const auto all = load<Words2>(w.data, w.units / 4 * 3 + unit / 8);
        const uint32_t j = uint32_t(unit % 8), first = j < 3 ? all.d[0] : all.d[1];
        const uint32_t both = join_words(first, all.d[1], (16 + 6 * j) % 32);
        const float d = half_value(uint16_t(all.d[0]));
        const float a = d * fused(2.0f * part, byte_float(both & 7u), part),
                    b = d * fused(2.0f * part, byte_float((both >> 3) & 7u), part);
        return {{a, b}, {a * offset, b * offset}};
    }
};

struct Iq1MOwn : Quantized<false, 0, true> {
    static constexpr args::Planes kPlanes = {{32, 16, 8}};
    static constexpr bool kHalves = true;
    template <uint32_t kBlockThreads>
    RL_DEVICE static void share() {
        share_ternary_book<kBlockThreads>();
    }
    // One more in all nibbles, unless bit kBit says down.
    template <uint32_t kBit>
    RL_DEVICE static uint32_t ones(uint32_t word) {
        return ~uint32_t(int32_t(word << (31 - kBit)) >> 31) & 0x11111111u;
    }
    RL_DEVICE static void codes(const Matrix& w, size_t unit, uint32_t (&words)[8]) {
        const Iq1M u(w, unit);
        put_shared_ternary(entry_bytes<0, 11>(u.low), ones<11>(u.low), 0, words);
        put_shared_ternary(entry_bytes<12, 11>(u.low), ones<23>(u.low), 1, words);
        put_shared_ternary(entry_bytes<2, 11>(u.third()), ones<3>(u.high), 2, words);
        put_shared_ternary(entry_bytes<4, 11>(u.high), ones<15>(u.high), 3, words);
    }
    RL_DEVICE static UnitScales scales(const Matrix& w, size_t unit) {
        return Iq1M::scales(w, unit, 0.25f, -4.5f);
    }
};

struct iq1_m : Quantized<false, 9, false> {
    using Own = Iq1MOwn;
    static constexpr args::Planes kPlanes = Own::kPlanes;
    static constexpr bool kHalves = true;
    RL_DEVICE static void codes(const Matrix& w, size_t unit, uint32_t (&words)[8]) {
        const Iq1M u(w, unit);
        put_ternary(u.low & 2047u, (u.low >> 11) & 1u, 0, words);
        put_ternary((u.low >> 12) & 2047u, (u.low >> 23) & 1u, 1, words);
        put_ternary((u.third() >> 2) & 2047u, (u.high >> 3) & 1u, 2, words);
        put_ternary((u.high >> 4) & 2047u, u.high >> 15, 3, words);
    }
    RL_DEVICE static UnitScales scales(const Matrix& w, size_t unit) {
        return Iq1M::scales(w, unit, 0.125f, 0.0f);
    }
};

}  // namespace redline::hip
