// The formats of few levels as the matrix kernels read them: those with code books, which are repacked
// (repack.h), and the ternary ones. See linear_formats.h.
#pragma once

#include "linear_formats.h"

namespace redline::cpu {
namespace {

// Codes that exceed their value by 128 >> kShiftOfBias.
template <int kCodeBits, int kShiftOfBias>
struct CenteredCodes {
    static constexpr int kBits = kCodeBits, kBiasShift = kShiftOfBias;
    static constexpr bool kOffset = true, kSigned = false, kMins = false;
};

// By a nibble, half more than its lowest kBits bits.
template <int kBits>
struct FieldSteps {
    alignas(64) float of[16];

    constexpr FieldSteps() : of() {
        for (int i = 0; i < 16; ++i) of[i] = float(i % (1 << kBits)) + 0.5f;
    }
};
template <int kBits>
constexpr FieldSteps<kBits> kFieldSteps;

// Behind d, fields of kFieldBits bits, eight to 32 bits of each row: a scale is half more than its field,
// times kQuarters quarters of d.
template <class V, int kFieldBits, int kQuarters>
struct FieldScales {
    static constexpr int kFactors = 1;
    const uint8_t* b;

    RL_ALWAYS_INLINE void read(const uint8_t* block) { b = block; }
    template <int g>
    RL_ALWAYS_INLINE typename V::Floats scale() const {
        const uint8_t* fields = b + 32 + 64 * (g / 8);
        if constexpr (V::kAlone)
            return V::template pick<4 * (g % 8)>(kFieldSteps<kFieldBits>.of, V::load(fields));
        else
            return V::add(V::template u32_field<4 * (g % 8), kFieldBits>(fields), V::splat(0.5f));
    }
    template <int>
    RL_ALWAYS_INLINE typename V::Floats factor() const {
        return V::mul(V::halfs(b), V::splat(float(kQuarters) / 4.0f));
    }
};

// 256 digits to the base 3, five to a byte (see repack.cpp), in groups of 16 columns: which of 13 vectors
// have those of four neighbouring columns, and in which place.
struct TritPlace {
    int vector, digit;
};
constexpr TritPlace trit_place(int quad) {
    return quad < 60 ? TritPlace{quad / 20 * 4 + quad % 4, quad % 20 / 4} : TritPlace{12, quad % 4};
}

// use(quad, digit) for each four columns, where digit has one more than their digits in bits 6..7.
template <class V, class Use>
RL_ALWAYS_INLINE inline void trits256(const uint8_t* b, Use&& use) {
    typename V::Bytes v[13];
    unroll<0, 64>([&](auto quad) RL_ALWAYS_INLINE {
        constexpr TritPlace at = trit_place(quad);
        if constexpr (at.digit == 0)
            v[at.vector] = V::load(b + 64 * at.vector);
        else
            v[at.vector] = V::next_trit(v[at.vector]);
        use(quad, V::trit(v[at.vector]));
    });
}

// The products of these digits d with activations x of one row, for families that are kAlone: use(group,
// sums) gets 256 times those of each group of kColumns columns. F being a fraction and G what is left of it
// without its first digit, 256 d = 3 F - G, so that digits need not be taken out: sums of F x and of G x will
// do. less(quad, sum) may subtract something by adding to the sums of G x.
template <class V, int kColumns, class Less, class Use>
RL_ALWAYS_INLINE inline void trit_products256(const uint8_t* b, const Int8Block* x, const uint8_t* ahead,
                                              Less&& less, Use&& use) {
    auto sum = V::no_ints(), rest = V::no_ints();
    typename V::Bytes v[13];
    unroll<0, 64>([&](auto quad) RL_ALWAYS_INLINE {
        constexpr TritPlace at = trit_place(quad);
        constexpr int kQuads = kColumns / 4;
        auto& fraction = v[at.vector];
        if constexpr (at.digit == 0) {
            fraction = V::load(b + 64 * at.vector);
            V::prefetch(ahead + 64 * at.vector, fraction);
        }
        const auto four = V::quad(x[quad / 8].q + quad % 8 * 4);
        sum = V::dot(sum, fraction, four);
        fraction = V::next_trit(fraction);
        rest = less(quad, V::dot(rest, fraction, four), four);
        if constexpr (quad % kQuads == kQuads - 1) {
            use(Index<quad / kQuads>{}, V::to_floats(V::thrice_less(sum, rest)));
            sum = rest = V::no_ints();
        }
    });
}

// Of a byte of five digits: one more than each of the last four, the second one in bits 0..1 and so on.
struct LastTrits {
    alignas(64) uint8_t of[256];

    constexpr LastTrits() : of() {
        for (int byte = 0; byte < 256; ++byte)
            for (int n = 0, rest = byte * 3 % 256; n < 4; ++n, rest = rest * 3 % 256)
                of[byte] = uint8_t(of[byte] + ((rest * 3 / 256 + 1) << (2 * n)));
    }
};
constexpr LastTrits kLastTrits;

// The products of these digits with activations of one row, for families that look bytes up: use(group, sums)
// gets 64 times those of each group of kColumns columns, with digits that are one more. Digits stay where
// they are in their bytes, for those of 16 columns are in one place: their sum is shifted. Only the last
// vector has its four digits in as many places.
template <class V, int kColumns, class Use>
RL_ALWAYS_INLINE inline void looked_up_products256(const uint8_t* b, const Int8Block* x, const uint8_t* ahead,
                                                   Use&& use) {
    typename V::Bytes v[13], last[13];
    auto sum = V::no_ints();
    unroll<0, 16>([&](auto part) RL_ALWAYS_INLINE {
        constexpr int kQuad = 4 * part, kDigit = trit_place(kQuad).digit;
        constexpr int kFrom = part == 15 || kDigit == 0 ? 6 : 2 * kDigit - 2;
        auto dots = V::no_ints();
        unroll<0, 4>([&](auto j) RL_ALWAYS_INLINE {
            constexpr TritPlace at = trit_place(kQuad + j);
            if constexpr (at.digit == 0) {
                v[at.vector] = V::load(b + 64 * at.vector);
                V::prefetch(ahead + 64 * at.vector, v[at.vector]);
                last[at.vector] = V::look_up(kLastTrits.of, v[at.vector]);
            }
            const int8_t* four = x[part / 2].q + part % 2 * 16 + 4 * j;
            if constexpr (at.digit == 0)
                dots = V::dot(dots, V::template place<6, 6, 2>(V::trit(v[at.vector])), four);
            else
                dots = V::dot(dots, V::template place<2 * at.digit - 2, kFrom, 2>(last[at.vector]), four);
        });
        if constexpr (kFrom < 6) dots = V::template shifted<6 - kFrom>(dots);
        sum = kColumns == 16 || part % 2 == 0 ? dots : V::add(sum, dots);
        if constexpr (kColumns == 16 || part % 2 == 1) use(Index<part * 16 / kColumns>{}, V::to_floats(sum));
    });
}

// Number j of the three of a byte (see repack.cpp), by the byte's code under its sign.
struct ThirdValues {
    alignas(64) int8_t of[3][64];
    // Of the second number, whatever the first one's sign, and of the third, by the codes' upper four bits
    // and whatever both signs: without its sign and with it.
    alignas(64) int8_t second[2][64];
    alignas(64) int8_t third[2][64];

    constexpr ThirdValues() : of(), second(), third() {
        constexpr int8_t kLevels[3] = {8, 25, 43};
        for (int i = 0; i < 29; ++i) {
            const int levels[3] = {i % 10 % 3, i % 10 / 3 % 3, i / 10};
            for (int j = 0; j < 3; ++j) {
                of[j][i] = kLevels[levels[j]];
                of[j][32 + i] = int8_t(-kLevels[levels[j]]);
            }
        }
        for (int sign = 0; sign < 2; ++sign)
            for (int i = 0; i < 64; ++i) {
                second[sign][i] = of[1][32 * sign + i % 32];
                third[sign][i] = of[2][32 * sign + i % 16 * 2];
            }
    }
};
constexpr ThirdValues kIq2Values;

template <class V, uint32_t kGgufId, int kColumns>
struct Iq2 : Shaped<kGgufId, 256, 90 + 128 / kColumns, 256, kColumns>, SignedCodes {
    static constexpr bool kInOrder = true;
    using Scales = FieldScales<V, 4, 1>;
    template <int, class Use>
    RL_ALWAYS_INLINE static void codes(const uint8_t* b, Use&& use) {
        unroll<0, 22>([&](auto i) RL_ALWAYS_INLINE {
            const auto v = V::load(b + 32 + 16 * (128 / kColumns) + 64 * i);
            unroll<0, (i < 21 ? 3 : 1)>([&](auto n) RL_ALWAYS_INLINE {
                constexpr int quad = 3 * i + n;
                use(Index<quad / 8>{}, Index<quad % 8>{}, V::template third<n>(kIq2Values, v));
            });
        });
    }
};
template <class V>
struct IQ2_XXS : Iq2<V, 16, 32> {};
template <class V>
struct IQ2_XS : Iq2<V, 17, 16> {};  // and IQ2_S, which is packed alike

alignas(16) constexpr int8_t kIq3XxsValues[16] = {4,  12,  20,  28,  36,  44,  52,  62,
                                                  -4, -12, -20, -28, -36, -44, -52, -62};
alignas(16) constexpr int8_t kIq3SValues[16] = {1, 3, 5, 7, 9, 11, 13, 15, -1, -3, -5, -7, -9, -11, -13, -15};

template <class V, uint32_t kGgufId, int kQuarters, const int8_t* kValues>
struct Iq3 : Shaped<kGgufId, 256, 134, 32, 32>, SignedCodes {
    using Scales = FieldScales<V, 4, kQuarters>;
    template <int s, class Use>
    RL_ALWAYS_INLINE static void codes(const uint8_t* b, Use&& use) {
        const auto table = V::table(kValues);
        nibbles32<V, 0>(b + 96 + 256 * s,
                        [&](auto j, auto v) RL_ALWAYS_INLINE { use(Index<0>{}, j, V::lookup(table, v)); });
    }
};
template <class V>
struct IQ3_XXS : Iq3<V, 18, 2, kIq3XxsValues> {};
template <class V>
struct IQ3_S : Iq3<V, 21, 8, kIq3SValues> {};

// What alone() multiplies by, for each nibble with three bits of scale under one that says down: `scale` the
// sums, in which a digit counts as much as `unit` says, `center` the sum of the activations.
struct Iq1Scales {
    alignas(64) float scale[16];
    alignas(64) float center[16];

    constexpr Iq1Scales(float unit, float up, float down) : scale(), center() {
        for (int i = 0; i < 16; ++i) {
            scale[i] = (float(i % 8) + 0.5f) * unit;
            center[i] = (float(i % 8) + 0.5f) * (i < 8 ? up : down);
        }
    }
};
constexpr Iq1Scales kIq1Scales(1.0f / 4.0f, -7.0f, -9.0f);
constexpr Iq1Scales kIq1LookedUp(1.0f, -15.0f, -17.0f);  // of digits that are one more

// Families without shifts to spare take digits where they are, of 64 times their worth.
template <class V>
struct IQ1_S : Shaped<19, 256, 58, 256, 32>, CenteredCodes<V::kInPlace ? 8 : 2, V::kInPlace ? 0 : 6> {
    static constexpr bool kInOrder = true, kMins = true;
    static constexpr int kTo = V::kInPlace ? 6 : 0;
    // Three bits of scale under one that says by its sign where a group is moved, an eighth of its scale.
    struct Scales {
        static constexpr int kFactors = 2;
        const uint8_t* b;

        RL_ALWAYS_INLINE void read(const uint8_t* block) { b = block; }
        template <int g>
        RL_ALWAYS_INLINE typename V::Floats scale() const {
            return V::add(V::template u32_field<4 * g, 3>(b + 32), V::splat(0.5f));
        }
        template <int g>
        RL_ALWAYS_INLINE typename V::Floats minimum() const {
            const auto down = V::template u32_field<4 * g + 3, 1>(b + 32);
            return V::mul(scale<g>(), V::fma(down, V::splat(-2.0f), V::splat(1.0f)));
        }
        template <int i>
        RL_ALWAYS_INLINE typename V::Floats factor() const {
            return V::mul(V::halfs(b), V::splat(i == 0 ? 2.0f / float(1 << kTo) : 0.25f));
        }
    };
    template <int, class Use>
    RL_ALWAYS_INLINE static void codes(const uint8_t* b, Use&& use) {
        trits256<V>(b + 96, [&](auto quad, auto digit) RL_ALWAYS_INLINE {
            use(Index<quad / 8>{}, Index<quad % 8>{}, V::template place<6, kTo, 2>(digit));
        });
    }
    static constexpr bool kGoesAlone = V::kAlone;
    // One row's products with the block's scales: adds to what factor<0> and factor<1> multiply.
    RL_ALWAYS_INLINE static void alone(const uint8_t* b, const Int8Block* x, const float*,
                                       const uint8_t* ahead, typename V::Floats* totals) {
        constexpr const Iq1Scales& kScales = V::kLooksUpTrits ? kIq1LookedUp : kIq1Scales;
        auto fields = V::load(b + 32);
        V::prefetch(ahead + 832, fields);
        V::prefetch(ahead + 896, fields);
        const auto use = [&](auto g, auto sums) RL_ALWAYS_INLINE {
            const auto scaled = V::mul(sums, V::template pick<4 * g>(kScales.scale, fields));
            totals[0] = V::fma(scaled, V::splat(x[g].scale), totals[0]);
            totals[1] =
                V::fma(V::template pick<4 * g>(kScales.center, fields), V::splat(x[g].sum), totals[1]);
        };
        if constexpr (V::kLooksUpTrits)
            looked_up_products256<V, 32>(b + 96, x, ahead, use);
        else
            trit_products256<V, 32>(
                b + 96, x, ahead, [](auto, auto rest, auto) RL_ALWAYS_INLINE { return rest; }, use);
    }
};

// Eight times one less than the digit, and one more or less: by one more than the digit, under a bit that
// says less.
alignas(16) constexpr int8_t kIq1Values[16] = {0, -7, 1, 9, 0, -9, -1, 7};
alignas(16) constexpr int8_t kIq1Centered[16] = {0, 9, 17, 25, 0, 7, 15, 23};  // 16 more, for small codes

template <bool kBiased>
struct Iq1MCodes : SignedCodes {
    static constexpr const int8_t* kValues = kIq1Values;
};
template <>
struct Iq1MCodes<false> : CenteredCodes<5, 3> {
    static constexpr const int8_t* kValues = kIq1Centered;
};

// The center is that of elements that are moved up, or prepared for each two bits that say which are not.
constexpr Iq1Scales kIq1MScales(1.0f / 32.0f, -7.0f, -7.0f);
constexpr Iq1Scales kIq1MLookedUp(1.0f / 8.0f, 0.0f, 0.0f);

template <class V>
struct IQ1_M : Shaped<29, 256, 66, 256, 16>, Iq1MCodes<V::kBiased> {
    static constexpr bool kInOrder = true;
    using Scales = FieldScales<V, 3, 1>;
    template <int, class Use>
    RL_ALWAYS_INLINE static void codes(const uint8_t* b, Use&& use) {
        const auto table = V::table(IQ1_M::kValues);
        const auto fields = V::load(b + 160);
        trits256<V>(b + 224, [&](auto quad, auto digit) RL_ALWAYS_INLINE {
            const auto level = V::template place<6, 0, 2>(digit);
            const auto less = V::template spread<quad / 2>(fields);
            use(Index<quad / 8>{}, Index<quad % 8>{},
                V::lookup(table, V::template insert<2, 2, 1>(level, less)));
        });
    }
    static constexpr bool kGoesAlone = V::kAlone;
    static constexpr int kCenters = V::kLooksUpTrits ? 64 : 0;
    // For each 16 columns and two bits that say which eight are moved down: what is added to sums of 64 for
    // one more than a digit.
    static void prepare_centers(const Int8Block& x, float* out) {
        for (int h = 0; h < 2; ++h, out += 4) {
            int32_t sums[2] = {0, 0};
            for (int i = 0; i < 8; ++i) sums[0] += x.q[16 * h + i];
            for (int i = 0; i < 8; ++i) sums[1] += x.q[16 * h + 8 + i];
            for (int bits = 0; bits < 4; ++bits)
                out[bits] =
                    x.scale * float(-sums[0] * (bits & 1 ? 136 : 120) - sums[1] * (bits & 2 ? 136 : 120));
        }
    }
    // One row's: 64 for each element that is moved down is a quarter of a digit.
    RL_ALWAYS_INLINE static void alone(const uint8_t* b, const Int8Block* x,
                                       [[maybe_unused]] const float* centers, const uint8_t* ahead,
                                       typename V::Floats* totals) {
        auto fields = V::load(b + 160);
        V::prefetch(ahead + 832, fields);
        if constexpr (V::kLooksUpTrits) {
            typename V::Bytes scales[2] = {V::load(b + 32), V::load(b + 96)};
            V::prefetch(ahead + 896, scales[0]);
            V::prefetch(ahead + 960, scales[1]);
            V::prefetch(ahead + 1024, scales[1]);
            return looked_up_products256<V, 16>(b + 224, x, ahead, [&](auto g, auto sums) RL_ALWAYS_INLINE {
                const auto center = V::template pick4<2 * g>(centers + 4 * g, fields);
                totals[0] =
                    V::fma(V::fma(sums, V::splat(x[g / 2].scale), center),
                           V::template pick<4 * (g % 8)>(kIq1MLookedUp.scale, scales[g / 8]), totals[0]);
            });
        }
        trit_products256<V, 16>(
            b + 224, x, ahead,
            [&](auto quad, auto rest, auto four)
                RL_ALWAYS_INLINE { return V::template dot_where<quad / 2>(rest, fields, 64, four); },
            [&](auto g, auto sums) RL_ALWAYS_INLINE {
                const auto scales = V::load(b + 32 + 64 * (g / 8));
                const auto scaled = V::mul(sums, V::template pick<4 * (g % 8)>(kIq1MScales.scale, scales));
                totals[0] = V::fma(scaled, V::splat(x[g / 2].scale), totals[0]);
                totals[0] = V::fma(V::template pick<4 * (g % 8)>(kIq1MScales.center, scales),
                                   V::splat(x[g / 2].sum16[g % 2]), totals[0]);
            });
    }
};

// One scale for a whole block: what is multiplied by it are plain sums.
template <class V>
struct BlockScale {
    static constexpr int kFactors = 1;
    const uint8_t* b;

    RL_ALWAYS_INLINE void read(const uint8_t* block) { b = block; }
    template <int>
    RL_ALWAYS_INLINE typename V::Floats scale() const {
        return V::splat(1.0f);
    }
    template <int>
    RL_ALWAYS_INLINE typename V::Floats factor() const {
        return V::halfs(b);
    }
};

// And TQ1_0, which is packed alike.
template <class V>
struct TQ2_0 : Shaped<35, 256, 66, 128, 32>, CenteredCodes<2, 7> {
    using Scales = BlockScale<V>;
    template <int s, class Use>
    RL_ALWAYS_INLINE static void codes(const uint8_t* b, Use&& use) {
        unroll<0, 8>([&](auto j) RL_ALWAYS_INLINE {
            const auto v = V::load(b + 32 + 512 * s + 64 * j);
            unroll<0, 4>([&](auto k) RL_ALWAYS_INLINE { use(k, j, V::template place<2 * k, 0, 2>(v)); });
        });
    }
    static constexpr bool kGoesAlone = V::kInPlace;
    // One row's products, codes where they are: each 32 columns count four times what those before do.
    RL_ALWAYS_INLINE static void alone(const uint8_t* b, const Int8Block* x, const float*,
                                       const uint8_t* ahead, typename V::Floats* total) {
        unroll<0, 2>([&](auto s) RL_ALWAYS_INLINE {
            typename V::Ints dots[4];
            for (auto& each : dots) each = V::no_ints();
            unroll<0, 8>([&](auto j) RL_ALWAYS_INLINE {
                auto v = V::load(b + 32 + 512 * s + 64 * j);
                V::prefetch(ahead + 512 * s + 64 * j, v);
                if constexpr (s == 1 && j == 7) V::prefetch(ahead + 1024, v);
                unroll<0, 4>([&](auto k) RL_ALWAYS_INLINE {
                    dots[k] = V::dot(dots[k], V::template place<2 * k, 2 * k, 2>(v), x[4 * s + k].q + 4 * j);
                });
            });
            unroll<0, 4>([&](auto k) RL_ALWAYS_INLINE {
                const auto& each = x[4 * s + k];
                const auto scaled = V::mul(V::to_floats(dots[k]), V::splat(1.0f / float(1 << 2 * k)));
                *total = V::fma(scaled, V::splat(each.scale), V::sub(*total, V::splat(each.sum)));
            });
        });
    }
};

// Bits become 0 and 2, around 1.
template <class V>
struct Q1_0 : Shaped<41, 128, 18, 128, 32>, CenteredCodes<2, 7> {
    static constexpr bool kInOrder = true;
    using Scales = HalfScales<V>;
    template <int, class Use>
    RL_ALWAYS_INLINE static void codes(const uint8_t* b, Use&& use) {
        typename V::Bytes v[4];
        unroll<0, 4>([&](auto i) RL_ALWAYS_INLINE { v[i] = V::load(b + 32 + 64 * i); });
        unroll<0, 32>([&](auto quad) RL_ALWAYS_INLINE {
            constexpr int k = quad / 8, j = quad % 8;
            use(Index<k>{}, Index<j>{}, V::template place<2 * k + j / 4, 1, 1>(v[j % 4]));
        });
    }
    static constexpr bool kGoesAlone = V::kBitsInPlace > 0;
    // One row's products, bits where they are: the first half of 32 columns counts half of the second, so
    // that its sum is doubled, and each 32 columns four times what those before do. The halves are summed
    // apart, for each product waits for the sum before it.
    RL_ALWAYS_INLINE static void alone(const uint8_t* b, const Int8Block* x, const float*,
                                       const uint8_t* ahead, typename V::Floats* total) {
        typename V::Bytes v[4];
        unroll<0, 4>([&](auto i) RL_ALWAYS_INLINE { v[i] = V::load(b + 32 + 64 * i); });
        auto sum = V::zero();
        unroll<0, 4>([&](auto g) RL_ALWAYS_INLINE {
            constexpr int kPlace = 2 * g % V::kBitsInPlace;
            V::prefetch(ahead + 64 * g, v[g]);
            if constexpr (g == 3) V::prefetch(ahead + 256, v[g]);
            auto first = V::no_ints(), second = V::no_ints();
            unroll<0, 4>([&](auto j) RL_ALWAYS_INLINE {
                first = V::dot(first, V::template bit_in_place<2 * g>(v[j]), x[g].q + 4 * j);
            });
            unroll<0, 4>([&](auto j) RL_ALWAYS_INLINE {
                second = V::dot(second, V::template bit_in_place<2 * g + 1>(v[j]), x[g].q + 16 + 4 * j);
            });
            const auto dots = V::to_floats(V::add(V::twice(first), second));
            const auto scaled = V::mul(dots, V::splat(1.0f / float(1 << kPlace)));
            sum = V::fma(scaled, V::splat(x[g].scale), V::sub(sum, V::splat(x[g].sum)));
        });
        *total = V::fma(V::halfs(b), sum, *total);
    }
};

template <class V>
struct Q2_0 : Shaped<42, 64, 18, 64, 32>, CenteredCodes<2, 7> {
    static constexpr bool kInOrder = true;
    using Scales = HalfScales<V>;
    template <int, class Use>
    RL_ALWAYS_INLINE static void codes(const uint8_t* b, Use&& use) {
        unroll<0, 4>([&](auto i) RL_ALWAYS_INLINE {
            const auto v = V::load(b + 32 + 64 * i);
            unroll<0, 4>([&](auto f) RL_ALWAYS_INLINE {
                use(Index<i / 2>{}, Index<i % 2 * 4 + f>{}, V::template place<2 * f, 0, 2>(v));
            });
        });
    }
};

}  // namespace
}  // namespace redline::cpu
