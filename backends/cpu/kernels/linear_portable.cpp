// Matrix kernels of the portable level: plain loops over lanes, which compilers turn into the vectors that
// every CPU of the target has.
//
// The operations are functions of their own: inlined into the unrolled kernels they make half an hour of
// compilation.
#include "linear_table.h"

namespace redline::cpu {

namespace {

#define RL_OUT_OF_LINE __attribute__((noinline))

struct Portable {
    struct Bytes {
        uint8_t b[64];
    };
    struct Floats {
        float f[16];
    };
    struct Quad {
        int16_t x[4];
    };
    static constexpr bool kBiased = false, kInPlace = false, kAlone = false, kLooksUpTrits = false;
    static constexpr int kBitsInPlace = 0;
    static constexpr size_t kStreams = 1, kTilePanels = 1, kTileRows = 2, kFloatTileRows = 2;
    static constexpr bool kFew = false, kFewInTurn = false;

    static void prefetch(const uint8_t*) {}
    static void prefetch(const uint8_t*, const Bytes&) {}
    RL_OUT_OF_LINE static Bytes load(const void* p) {
        Bytes out;
        __builtin_memcpy(out.b, p, 64);
        return out;
    }
    static void store(uint8_t* p, const Bytes& v) { __builtin_memcpy(p, v.b, 64); }

    template <int kFrom, int kTo, int kWidth>
    RL_OUT_OF_LINE static Bytes place(const Bytes& v) {
        constexpr uint8_t kMask = (1 << kWidth) - 1;
        Bytes out;
        for (int i = 0; i < 64; ++i) out.b[i] = uint8_t(((v.b[i] >> kFrom) & kMask) << kTo);
        return out;
    }
    template <int kFrom, int kTo, int kWidth>
    RL_OUT_OF_LINE static Bytes insert(const Bytes& base, const Bytes& v) {
        Bytes out = place<kFrom, kTo, kWidth>(v);
        for (int i = 0; i < 64; ++i) out.b[i] |= base.b[i];
        return out;
    }
    RL_OUT_OF_LINE static Bytes signs(const Bytes& v) { return v; }
    static const int8_t* table(const int8_t* values) { return values; }
    RL_OUT_OF_LINE static Bytes lookup(const int8_t* table, const Bytes& nibbles) {
        Bytes out;
        for (int i = 0; i < 64; ++i) out.b[i] = uint8_t(table[nibbles.b[i]]);
        return out;
    }

    // Digits to the base 3, as a fraction of 256: bits 6..7 are 1 more than the first; and what is left
    // without it.
    RL_OUT_OF_LINE static Bytes trit(const Bytes& v) {
        Bytes out;
        for (int i = 0; i < 64; ++i) out.b[i] = uint8_t(((v.b[i] * 3 >> 8) + 1) << 6);
        return out;
    }
    RL_OUT_OF_LINE static Bytes next_trit(const Bytes& v) {
        Bytes out;
        for (int i = 0; i < 64; ++i) out.b[i] = uint8_t(v.b[i] * 3);
        return out;
    }
    // Of bytes with a code in bits 0..4 and three signs above: what they are in values.of[kSign] under sign
    // kSign.
    template <int kSign, class Values>
    RL_OUT_OF_LINE static Bytes third(const Values& values, const Bytes& v) {
        Bytes out;
        for (int i = 0; i < 64; ++i)
            out.b[i] = uint8_t(values.of[kSign][(v.b[i] & 31) | (v.b[i] >> (5 + kSign) & 1) << 5]);
        return out;
    }
    // Bit kBit of each row's 32, in all bits of its four bytes.
    template <int kBit>
    RL_OUT_OF_LINE static Bytes spread(const Bytes& v) {
        Bytes out;
        for (int i = 0; i < 64; ++i) out.b[i] = v.b[i / 4 * 4 + kBit / 8] >> (kBit % 8) & 1 ? 0xFF : 0;
        return out;
    }

    RL_OUT_OF_LINE static Floats zero() { return {}; }
    RL_OUT_OF_LINE static Floats splat(float v) {
        Floats out;
        for (float& f : out.f) f = v;
        return out;
    }
    RL_OUT_OF_LINE static Floats add(const Floats& a, const Floats& b) {
        Floats out;
        for (int i = 0; i < 16; ++i) out.f[i] = a.f[i] + b.f[i];
        return out;
    }
    RL_OUT_OF_LINE static Floats mul(const Floats& a, const Floats& b) {
        Floats out;
        for (int i = 0; i < 16; ++i) out.f[i] = a.f[i] * b.f[i];
        return out;
    }
    RL_OUT_OF_LINE static Floats fma(const Floats& a, const Floats& b, const Floats& c) {
        Floats out;
        for (int i = 0; i < 16; ++i) out.f[i] = a.f[i] * b.f[i] + c.f[i];
        return out;
    }
    RL_OUT_OF_LINE static Floats floats(const float* p) {
        Floats out;
        __builtin_memcpy(out.f, p, sizeof out.f);
        return out;
    }
    RL_OUT_OF_LINE static Floats halfs(const uint8_t* p) {
        uint16_t h[16];
        __builtin_memcpy(h, p, sizeof h);
        Floats out;
        for (int i = 0; i < 16; ++i) out.f[i] = half_to_float(h[i]);
        return out;
    }
    RL_OUT_OF_LINE static Floats bfloats(const uint8_t* p) {
        uint16_t h[16];
        __builtin_memcpy(h, p, sizeof h);
        Floats out;
        for (int i = 0; i < 16; ++i) out.f[i] = bfloat_to_float(h[i]);
        return out;
    }
    RL_OUT_OF_LINE static Floats u8s(const uint8_t* p) { return u8_field<0, 0, 8>(p); }
    RL_OUT_OF_LINE static Floats i8s(const uint8_t* p) {
        Floats out;
        for (int i = 0; i < 16; ++i) out.f[i] = float(int8_t(p[i]));
        return out;
    }
    template <int kFrom, int kTo, int kWidth>
    RL_OUT_OF_LINE static Floats u8_field(const uint8_t* p) {
        Floats out;
        for (int i = 0; i < 16; ++i) out.f[i] = float(((p[i] >> kFrom) & ((1 << kWidth) - 1)) << kTo);
        return out;
    }
    // A field of each row's 32 bits.
    template <int kFrom, int kWidth>
    RL_OUT_OF_LINE static Floats u32_field(const uint8_t* p) {
        uint32_t words[16];
        __builtin_memcpy(words, p, sizeof words);
        Floats out;
        for (int i = 0; i < 16; ++i) out.f[i] = float((words[i] >> kFrom) & ((1u << kWidth) - 1));
        return out;
    }
    // Numbers in E4M3 without a sign, times 2^-8: with three more bits of exponent they are halves.
    RL_OUT_OF_LINE static Floats small_e4m3s(const uint8_t* p) {
        Floats out;
        for (int i = 0; i < 16; ++i) out.f[i] = half_to_float(uint16_t(p[i] << 7));
        return out;
    }
    RL_OUT_OF_LINE static Floats half_powers(const uint8_t* p) {
        Floats out;
        for (int i = 0; i < 16; ++i)
            out.f[i] = bits_to_float(p[i] < 2 ? 0x00200000u << p[i] : uint32_t(p[i] - 1) << 23);
        return out;
    }
    RL_OUT_OF_LINE static Floats load_rows(const float* p, unsigned count) {
        Floats out = {};
        for (unsigned i = 0; i < count; ++i) out.f[i] = p[i];
        return out;
    }
    static void store_rows(float* p, unsigned count, const Floats& v) {
        for (unsigned i = 0; i < count; ++i) p[i] = v.f[i];
    }
    static void keep(Bytes&) {}
    static Quad quad(const int8_t* p) { return {{p[0], p[1], p[2], p[3]}}; }

    template <class F>
    struct Sum {
        int32_t sum[16];

        RL_OUT_OF_LINE void start(const int32_t& negative) {
            int32_t first = 0;
            if constexpr (F::kOffset) first = negative >> F::kBiasShift;
            for (int32_t& s : sum) s = first;
        }
        template <int>
        RL_OUT_OF_LINE void add(const Bytes& codes, const Quad& x) {
            for (int r = 0; r < 16; ++r)
                for (int i = 0; i < 4; ++i) {
                    const uint8_t code = codes.b[4 * r + i];
                    sum[r] += (F::kSigned ? int16_t(int8_t(code)) : int16_t(code)) * x.x[i];
                }
        }
        RL_OUT_OF_LINE Floats value() const {
            Floats out;
            for (int i = 0; i < 16; ++i) out.f[i] = float(sum[i]);
            return out;
        }
    };
};

}  // namespace

const LinearKernel* linear_kernel_portable(uint32_t gguf_id) {
    for (const auto find :
         {find_float<Portable>, find_plain<Portable, Int8Entry>, find_low_k<Portable, Int8Entry>,
          find_high_k<Portable, Int8Entry>, find_nonlinear<Portable, Int8Entry>,
          find_code_books<Portable, Int8Entry>, find_ternary<Portable, Int8Entry>})
        if (const LinearKernel* kernel = find(gguf_id)) return kernel;
    return nullptr;
}

}  // namespace redline::cpu
