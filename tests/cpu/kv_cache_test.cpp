// The cache of keys and values: what is stored, to the bit, at every level.
#include "support/attention_case.h"

#include <doctest/doctest.h>

#include <algorithm>
#include <cmath>

using namespace redline;
using namespace redline::test;

TEST_CASE("kv cache: every level stores the same bits") {
    for (const CacheTypes format : kFormats)
        for (const uint32_t dims : {32u, 96u, 160u}) {
            const AttentionCase c{.format = format, .dims = dims, .key_end = 37, .spread = 3.0f};
            const Setup portable(c, Isa::portable, 12);
            for (const Isa isa : levels()) {
                INFO(std::string(isa_name(isa)), " dims ", dims);
                const Setup s(c, isa, 12);
                CHECK(std::memcmp(s.cache.data(), portable.cache.data(), s.cache.size()) == 0);
                CHECK(s.cache.intact());
            }
        }
}

TEST_CASE("kv cache: exported tokens come back elsewhere bit for bit, and nothing else changes") {
    for (const CacheTypes format : kFormats)
        for (const uint32_t dims : {32u, 64u, 224u}) {
            const Setup from({.format = format, .dims = dims, .key_end = 50}, Isa::portable, 21);
            Guarded<std::byte> other(kv_head_bytes(format, dims, 77));
            const KvHead head{format, dims, 77, other.data()};
            Guarded<std::byte> raw(CacheInfo{1, dims, 1, format}.row_bytes()), again(raw.size());
            for (uint64_t p = 0; p < 50; ++p) {
                kv_export(from.head, p, 1, raw.data());
                kv_import(head, 76 - p, 1, raw.data());
                kv_export(head, 76 - p, 1, again.data());
                CHECK(std::memcmp(raw.data(), again.data(), raw.size()) == 0);
            }
            // Many at a time are those one by one, up to where rows end.
            const size_t row = raw.size();
            Guarded<std::byte> many(50 * row);
            kv_export(head, 27, 50, many.data());
            kv_export(from.head, 49, 1, raw.data());
            uint64_t in_row = 0;
            for (const uint64_t plane : CacheInfo{1, dims, 1, format}.planes()) {
                CHECK(std::memcmp(many.data() + 50 * in_row, raw.data() + in_row, plane) == 0);
                in_row += plane;
            }
            std::fill(again.begin(), again.end(), std::byte{0});
            kv_import(head, 27, 50, many.data());
            kv_export(head, 26, 1, again.data());
            CHECK(std::all_of(again.begin(), again.end(), [](std::byte b) { return b == std::byte{0xFF}; }));
            CHECK((raw.intact() && again.intact() && other.intact()));
        }
}

TEST_CASE("kv cache: halfs round to nearest even, overflow to infinity and keep NaN") {
    const float values[] = {1.0f,     0x1.002p0f, 0x1.006p0f, 65519.0f, 65520.0f, -1e9f,
                            0x1p-25f, 0x1.8p-25f, kNan,       -0.0f,    kInf};
    constexpr uint32_t kDims = std::size(values);
    for (const Isa isa : levels()) {
        Guarded<std::byte> memory(kv_head_bytes(CacheType::f16, kDims, 1));
        const KvHead head{CacheType::f16, kDims, 1, memory.data()};
        attention_kernels(isa).kv_store(head, 0, values, values);
        const Token token = stored_token(head, 0);
        for (uint32_t i = 0; i < kDims; ++i) {
            INFO(std::string(isa_name(isa)), " values[i] ", values[i]);
            const float want = half_to_float(float_to_half(values[i]));
            CHECK((std::isnan(want) ? std::isnan(token.key[i]) : token.key[i] == want));
            CHECK((std::isnan(want) ? std::isnan(token.value[i]) : token.value[i] == want));
        }
    }
}

TEST_CASE("kv cache: q8_0 is within half a step, and says so when it cannot be") {
    std::mt19937 random(5);
    std::normal_distribution<float> normal;
    for (const Isa isa : levels())
        for (const float size : {1e-9f, 1e-6f, 1e-3f, 1.0f, 1e4f, 8e6f, 1e9f}) {
            INFO(std::string(isa_name(isa)), " size ", size);
            Guarded<std::byte> memory(kv_head_bytes(CacheType::q8_0, 64, 16));
            const KvHead head{CacheType::q8_0, 64, 16, memory.data()};
            std::vector<float> x(64);
            for (float& v : x) v = size * std::clamp(normal(random), -1.0f, 1.0f);
            attention_kernels(isa).kv_store(head, 3, x.data(), x.data());
            const Token token = stored_token(head, 3);
            // Half a step of the scale as stored, whose rounding costs 2^-11 of the largest, and 2^-25
            // outright.
            const double limit = std::min(double(size), 127.0 * 65504);
            for (size_t i = 0; i < 64; ++i) {
                const double want = std::clamp(double(x[i]), -limit, limit);
                const double bound = limit / 254 + limit * 0x1p-11 + 127 * 0x1p-25;
                CHECK(std::abs(double(token.key[i]) - want) <= bound);
                CHECK(token.key[i] == token.value[i]);
            }
            x[40] = size > 1.0f ? kNan : -kInf;
            attention_kernels(isa).kv_store(head, 3, x.data(), x.data());
            const Token bad = stored_token(head, 3);
            CHECK(std::all_of(bad.key.begin() + 32, bad.key.end(), [](float v) { return std::isnan(v); }));
            CHECK(std::none_of(bad.key.begin(), bad.key.begin() + 32, [](float v) { return std::isnan(v); }));
        }
}

TEST_CASE("kv cache: elements of few bits go to the nearest level, and blocks that are not finite to NaN") {
    std::mt19937 random(9);
    std::normal_distribution<float> normal;
    std::vector<std::vector<float>> all(40, std::vector<float>(kCacheBlock));
    for (size_t n = 0; n < all.size(); ++n)
        for (float& x : all[n]) x = normal(random) * (n % 3 == 0 ? 1e-3f : n % 3 == 1 ? 1.0f : 300.0f);
    std::ranges::fill(all[0], 0.0f);
    std::ranges::fill(all[1], 1.5f);
    std::ranges::fill(all[2], -0.75f);
    all[3][17] = 4e4f;
    all[4][5] = -all[4][4];
    for (float& x : all[5]) x += 1000.0f;
    for (const Isa isa : levels())
        for (const CacheType type : kCacheTypes) {
            if (cache_code(type).bits >= 8) continue;
            INFO(std::string(isa_name(isa)), " ", std::string(cache_type_name(type)));
            Guarded<std::byte> memory(kv_head_bytes(type, kCacheBlock, 16));
            const KvHead head{type, kCacheBlock, 16, memory.data()};
            for (std::vector<float>& x : all) {
                attention_kernels(isa).kv_store(head, 3, x.data(), x.data());
                const Token token = stored_token(head, 3);
                const std::vector<float> want = nearest_levels(type, x.data());
                for (size_t i = 0; i < kCacheBlock; ++i) {
                    CHECK(token.key[i] == token.value[i]);
                    // Either of two levels that are as near.
                    const double off = std::abs(double(token.key[i]) - double(x[i])),
                                 least = std::abs(double(want[i]) - double(x[i]));
                    CHECK(off <= least + 1e-5 * (std::abs(double(x[i])) + least));
                }
            }
            std::vector<float> bad = all[7];
            bad[30] = kInf;
            attention_kernels(isa).kv_store(head, 4, bad.data(), bad.data());
            const Token token = stored_token(head, 4);
            CHECK(std::ranges::all_of(token.key, [](float v) { return std::isnan(v); }));
            CHECK(std::ranges::all_of(token.value, [](float v) { return std::isnan(v); }));
        }
}

TEST_CASE("kv cache: sizes are exact and do not wrap at two thousand million tokens") {
    CHECK(CacheInfo{1, 128, 1, CacheType::f32}.row_bytes() == 1024);
    CHECK(CacheInfo{1, 128, 1, CacheType::f16}.row_bytes() == 512);
    CHECK(CacheInfo{1, 128, 1, CacheType::q8_0}.row_bytes() == 272);
    CHECK(CacheInfo{1, 128, 1, CacheType::q5_1}.row_bytes() == 192);
    CHECK(CacheInfo{1, 128, 1, CacheType::q5_0}.row_bytes() == 176);
    CHECK(CacheInfo{1, 128, 1, CacheType::q4_1}.row_bytes() == 160);
    CHECK(CacheInfo{1, 128, 1, {CacheType::q4_0, CacheType::bf16}}.row_bytes() == 72 + 256);
    CHECK(kv_head_bytes(CacheType::f16, 1, 1) == 64);
    CHECK(kv_head_bytes(CacheType::f16, 128, 4096) == 4096u * 512);
    CHECK(kv_head_bytes(CacheType::q8_0, 512, uint64_t{1} << 31) == (uint64_t{1} << 31) * 1088);
    CHECK(kv_head_bytes(CacheType::f16, 512, (uint64_t{1} << 31) - 1) == (uint64_t{1} << 42));
}
