// Cases of attention over a cache of keys and values, for the tests of the CPU's kernels.
#pragma once

#include "base/half.h"

#include "backends/cpu/kernels/kernels.h"
#include "support/cached_vector.h"
#include "support/guarded.h"

#include <fmt/format.h>

#include <cctype>
#include <cstring>
#include <limits>
#include <random>
#include <string>
#include <vector>

namespace redline::test {

using namespace redline::cpu;

inline constexpr float kNan = std::numeric_limits<float>::quiet_NaN();
inline constexpr float kInf = std::numeric_limits<float>::infinity();

inline std::vector<Isa> levels() {
    std::vector<Isa> found;
    for (const Isa isa : kIsaLevels)
        if (has_isa(isa)) found.push_back(isa);
    return found;
}

// Keys and values of one type, and of two.
inline constexpr CacheTypes kFormats[] = {CacheType::f32,
                                          CacheType::f16,
                                          CacheType::q8_0,
                                          CacheType::bf16,
                                          CacheType::q5_1,
                                          CacheType::q5_0,
                                          CacheType::q4_1,
                                          CacheType::q4_0,
                                          CacheType::iq4_nl,
                                          {CacheType::f16, CacheType::q8_0},
                                          {CacheType::q8_0, CacheType::f16},
                                          {CacheType::q5_1, CacheType::f32},
                                          {CacheType::bf16, CacheType::q4_0},
                                          {CacheType::q8_0, CacheType::iq4_nl},
                                          {CacheType::q4_1, CacheType::q5_0}};
// Those that kernels read without converting them first.
inline bool is_direct(CacheTypes types) {
    return types.keys == types.values && cache_code(types.keys).bits >= 8;
}
inline bool has_blocks(CacheTypes types) {
    return cache_code(types.keys).is_quantized() || cache_code(types.values).is_quantized();
}

// The operands of one attention call.
struct AttentionCase {
    CacheTypes format = {};
    uint32_t dims = 64;
    uint32_t group = 1;
    uint32_t rows = 1;
    uint64_t first_position = 0;
    uint64_t key_begin = 0;
    uint64_t key_end = 1;
    float scale = 0.125f;
    float softcap = 0.0f;
    uint64_t window = 0;
    bool sinks = false;
    float spread = 1.0f;  // of queries and keys

    uint64_t tokens() const { return std::max(first_position + rows, key_end); }
    std::string name() const {
        return fmt::format("{} d{} group {} rows {} at {}, keys {} to {}, scale {} softcap {} window {}{}",
                           cache_types_name(format), dims, group, rows, first_position, key_begin, key_end,
                           scale, softcap, window, sinks ? " sinks" : "");
    }
};

// Inputs of one case, and a cache of just the tokens of the case: keys [key_begin, key_end) are written, all
// other slots hold NaN. Every buffer ends at a guard page.
struct Setup {
    AttentionCase c;
    Guarded<float> q;
    Guarded<std::byte> cache;
    Guarded<float> sinks;
    KvHead head;

    Setup(const AttentionCase& wanted, Isa isa, uint32_t seed)
        : c(wanted),
          q(size_t{c.rows} * c.group * c.dims),
          cache(kv_head_bytes(c.format, c.dims, c.tokens())),
          sinks(c.group),
          head{c.format, c.dims, c.tokens(), cache.data()} {
        std::mt19937 random(seed);
        std::normal_distribution<float> normal;
        for (float& x : q) x = c.spread * normal(random);
        for (float& x : sinks) x = normal(random);
        Guarded<float> key(c.dims);
        Guarded<float> value(c.dims);
        for (uint64_t p = c.key_begin; p < c.key_end; ++p) {
            for (float& x : key) x = c.spread * normal(random);
            for (float& x : value) x = normal(random);
            attention_kernels(isa).kv_store(head, p, key.data(), value.data());
        }
    }

    Attend work() const {
        Attend a;
        a.q = q.data();
        a.q_stride = a.out_stride = size_t{c.group} * c.dims;
        a.rows = c.rows;
        a.group = c.group;
        a.kv = head;
        a.first_position = c.first_position;
        a.key_begin = c.key_begin;
        a.key_end = c.key_end;
        a.scale = c.scale;
        a.softcap = c.softcap;
        a.window = c.window;
        a.sinks = c.sinks ? sinks.data() : nullptr;
        return a;
    }
};

struct Token {
    std::vector<float> key;
    std::vector<float> value;
};

inline Token stored_token(const KvHead& head, uint64_t position) {
    const CacheInfo info{1, head.head_dim, 1, head.format};
    std::vector<std::byte> raw(info.row_bytes());
    kv_export(head, position, 1, raw.data());
    const auto planes = info.planes();
    return {stored_vector(head.format.keys, head.head_dim, raw.data()),
            stored_vector(head.format.values, head.head_dim, raw.data() + planes[0] + planes[1] + planes[2])};
}

}  // namespace redline::test
