// The attention kernels of every level against a scalar reference in doubles. The reference reads the cache
// back through kv_export, so its bounds are about f32 arithmetic alone and not about the rounding of stored
// keys and values.
#include "support/at_end.h"
#include "support/attention_case.h"
#include "support/share.h"

#include <doctest/doctest.h>
#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <limits>
#include <map>
#include <random>
#include <string>
#include <vector>

using namespace redline;
using namespace redline::test;

namespace {

constexpr double kUnit = 0x1p-24;

struct Expected {
    std::vector<double> out;    // (rows, group, dims)
    std::vector<double> bound;  // largest error that the arithmetic explains
};

// The rounding that a kernel adds which takes its operands as bfloat16: such a number is off by up to 2^-8 of
// its value, and two of them, for queries and keys, by up to 2^-16 of their sum; the product of both second
// parts is neglected.
struct Rounding {
    double scores = 0.0;  // relative, per product
    double values = 0.0;

    explicit Rounding(Activations activations) {
        if (activations == Activations::f32) return;
        scores = 3 * 0x1p-16;
        values = 0x1p-7 * (1 + 0x1p-8);
    }
};

// One query. The error of a score is taken as a random walk of roundings over the dimensions plus those of
// the few operations after it; a probability has the error of its score, relative, and moves the output by
// that much of its distance to it.
void expect_query(const Setup& s, const std::vector<Token>& tokens, const Rounding& rounding, uint32_t row,
                  uint32_t head, double* out, double* bound) {
    const AttentionCase& c = s.c;
    const float* q = s.q.data() + (size_t{row} * c.group + head) * c.dims;
    const uint64_t position = c.first_position + row;
    std::vector<double> score, score_error;
    std::vector<const Token*> seen;
    double top = c.sinks ? double(s.sinks[head]) : -std::numeric_limits<double>::infinity();
    for (uint64_t p = c.key_begin; p < c.key_end && p <= position; ++p) {
        if (c.window > 0 && position - p >= c.window) continue;
        const Token& token = tokens[p - c.key_begin];
        double dot = 0, magnitude = 0;
        for (uint32_t i = 0; i < c.dims; ++i) {
            dot += double(q[i]) * double(token.key[i]);
            magnitude += std::abs(double(q[i]) * double(token.key[i]));
        }
        const double raw = dot * double(c.scale);
        const double value = c.softcap > 0 ? double(c.softcap) * std::tanh(raw / double(c.softcap)) : raw;
        score.push_back(value);
        score_error.push_back(kUnit * ((0.5 * std::sqrt(double(c.dims)) + 2) * magnitude * double(c.scale) +
                                       (c.softcap > 0 ? 8 : 1) * std::abs(value)) +
                              rounding.scores * magnitude * double(c.scale));
        seen.push_back(&token);
        top = std::max(top, value);
    }
    std::fill(out, out + c.dims, 0.0);
    std::fill(bound, bound + c.dims, 0.0);
    double total = c.sinks ? std::exp(double(s.sinks[head]) - top) : 0.0;
    for (const double x : score) total += std::exp(x - top);
    if (total == 0.0) return;
    std::vector<double> p(score.size());
    for (size_t k = 0; k < score.size(); ++k) {
        p[k] = std::exp(score[k] - top) / total;
        for (uint32_t i = 0; i < c.dims; ++i) out[i] += p[k] * double(seen[k]->value[i]);
    }
    const double sum_units = 0.5 * std::sqrt(double(score.size())) + 4 + double(score.size()) / 256;
    for (size_t k = 0; k < score.size(); ++k) {
        const double error = score_error[k] + kUnit * (std::abs(score[k] - top) + 4);
        for (uint32_t i = 0; i < c.dims; ++i) {
            const double v = std::abs(double(seen[k]->value[i]));
            bound[i] += p[k] * (error * (v + std::abs(out[i])) + (sum_units * kUnit + rounding.values) * v) +
                        1e-36 * v;
        }
    }
    if (c.sinks)
        for (uint32_t i = 0; i < c.dims; ++i)
            bound[i] += std::abs(out[i]) * kUnit * (std::abs(double(s.sinks[head]) - top) + 4);
}

Expected expect(const Setup& s, Activations activations) {
    std::vector<Token> tokens;
    for (uint64_t p = s.c.key_begin; p < s.c.key_end; ++p) tokens.push_back(stored_token(s.head, p));
    const size_t queries = size_t{s.c.rows} * s.c.group;
    Expected e{std::vector<double>(queries * s.c.dims), std::vector<double>(queries * s.c.dims)};
    for (uint32_t row = 0; row < s.c.rows; ++row)
        for (uint32_t head = 0; head < s.c.group; ++head) {
            const size_t at = (size_t{row} * s.c.group + head) * s.c.dims;
            expect_query(s, tokens, Rounding(activations), row, head, e.out.data() + at, e.bound.data() + at);
        }
    return e;
}

// Largest |got - want| / bound; infinity where got is not a number or differs from an exact expectation.
double worst_fraction(const float* got, const Expected& e) {
    double worst = 0;
    for (size_t i = 0; i < e.out.size(); ++i) {
        const double error = std::abs(double(got[i]) - e.out[i]);
        if (error == 0) continue;
        const double fraction = error / e.bound[i];
        worst = std::isnan(fraction) ? double(kInf) : std::max(worst, fraction);
    }
    return worst;
}

void attend(const Setup& s, Isa isa, float* out) {
    Guarded<std::byte> scratch(attend_scratch_bytes(s.c.rows, s.c.group, s.c.dims));
    Attend work = s.work();
    work.out = out;
    work.scratch = scratch.data();
    attention_kernels(isa).attend(work);
    CHECK(scratch.intact());
}

// Splits the keys into `parts` pieces (some may be empty), attends to each and merges them.
void attend_in_parts(const Setup& s, Isa isa, size_t parts, float* out) {
    const size_t part_floats = size_t{s.c.rows} * s.c.group * (s.c.dims + 2);
    Guarded<float> partials(parts * part_floats);
    Guarded<std::byte> scratch(attend_scratch_bytes(s.c.rows, s.c.group, s.c.dims));
    const uint64_t keys = s.c.key_end - s.c.key_begin;
    for (size_t i = 0; i < parts; ++i) {
        Attend work = s.work();
        work.key_begin = s.c.key_begin + keys * i / parts;
        work.key_end = s.c.key_begin + keys * (i + 1) / parts;
        work.partial = partials.data() + i * part_floats;
        work.scratch = scratch.data();
        attention_kernels(isa).attend(work);
    }
    Attend whole = s.work();
    whole.out = out;
    attention_kernels(isa).combine(partials.data(), parts, part_floats, whole);
    CHECK(partials.intact());
    CHECK(scratch.intact());
}

void check_case(const AttentionCase& c, uint32_t seed, double& worst) {
    static const Share share = share_of_cases();
    if (!share.takes(seed)) return;
    INFO(c.name());
    std::map<Activations, Expected> by_activations;
    const Setup stored(c, Isa::portable, seed);  // all levels store the same bits
    for (const Isa isa : levels()) {
        INFO(std::string(isa_name(isa)));
        const Activations activations = attention_kernels(isa).activations(size_t{c.rows} * c.group, c.dims);
        if (!by_activations.contains(activations)) by_activations[activations] = expect(stored, activations);
        const Expected& e = by_activations[activations];
        const Setup s(c, isa, seed);
        Guarded<float> out(e.out.size());
        attend(s, isa, out.data());
        const double whole = worst_fraction(out.data(), e);
        CHECK(whole <= 1.0);
        CHECK(out.intact());
        std::fill(out.begin(), out.end(), kNan);
        attend_in_parts(s, isa, 3, out.data());
        const double parts = worst_fraction(out.data(), e);
        CHECK(parts <= 1.0);
        worst = std::max({worst, whole, parts});
    }
}

// A choice of all the odd sizes together, bounded in work.
std::vector<AttentionCase> mixed_cases(CacheTypes format, size_t count) {
    const std::vector<uint32_t> dims =
        !has_blocks(format) ? std::vector<uint32_t>{1, 7, 8, 16, 33, 40, 64, 80, 96, 128, 256, 512}
                            : std::vector<uint32_t>{32, 64, 96, 128, 256, 512};
    const uint32_t groups[] = {1, 2, 3, 4, 5, 7, 8, 16};
    const uint32_t rows[] = {1, 1, 2, 3, 5, 16, 33, 64};
    const uint64_t keys[] = {1, 2, 15, 16, 17, 31, 32, 33, 63, 64, 65, 127, 128, 129, 300, 1000};
    std::mt19937 random(7);
    const auto pick = [&random](const auto& from) { return from[random() % std::size(from)]; };
    std::vector<AttentionCase> cases;
    while (cases.size() < count) {
        AttentionCase c;
        c.format = format;
        c.dims = dims[cases.size() % dims.size()];
        c.group = pick(groups);
        c.rows = pick(rows);
        c.key_end = pick(keys);
        if (double(c.dims) * double(c.group * c.rows) * double(c.key_end) > 2e6) continue;
        // From a plain prompt, over a continued one, to keys that end before or begin after the first row.
        const uint64_t from = c.key_end > c.rows ? c.key_end - c.rows : 0;
        c.first_position = random() % 4 == 0 ? random() % (c.key_end + 8) : from;
        c.key_begin = random() % 3 == 0 ? random() % c.key_end : 0;
        if (random() % 3 == 0) c.window = 1 + random() % (c.key_end + 3);
        if (random() % 3 == 0) c.softcap = random() % 2 == 0 ? 50.0f : 0.75f;
        c.sinks = random() % 3 == 0;
        c.scale = random() % 4 == 0 ? 1.0f : 1.0f / std::sqrt(float(c.dims));
        cases.push_back(c);
    }
    return cases;
}

}  // namespace

TEST_CASE("attention: every level is within its bound of a double reference, whole and in parts") {
    for (const CacheTypes format : kFormats) {
        double worst = 0;
        uint32_t seed = 1;
        for (const AttentionCase& c : mixed_cases(format, is_direct(format) ? 130 : 30))
            check_case(c, ++seed, worst);
        MESSAGE(cache_types_name(format) << ": largest fraction of the bound " << worst);
    }
}

TEST_CASE("attention: prompts and single tokens of common shapes are within their bound") {
    double worst = 0;
    uint32_t seed = 1000;
    for (const CacheTypes format : kFormats)
        for (const uint32_t dims : {64u, 96u, 128u, 256u})
            for (const uint32_t group : {1u, 4u, 8u})
                for (const uint64_t depth : {uint64_t{0}, uint64_t{170}}) {
                    if (!is_direct(format) && (dims > 96 || group != 4)) continue;
                    AttentionCase c{.format = format, .dims = dims, .group = group};
                    c.scale = 1.0f / std::sqrt(float(dims));
                    c.rows = 24;
                    c.first_position = depth;
                    c.key_end = depth + c.rows;
                    check_case(c, ++seed, worst);
                    c.window = 100;
                    c.key_begin = depth > 99 ? depth - 99 : 0;
                    check_case(c, ++seed, worst);
                    c.rows = 1;
                    c.key_begin = c.window = 0;
                    c.key_end = depth + 1;
                    check_case(c, ++seed, worst);
                }
    MESSAGE("largest fraction of the bound " << worst);
}

TEST_CASE("attention: a group of queries larger than a block is within its bound") {
    double worst = 0;
    check_case({.dims = 16, .group = 200, .rows = 3, .first_position = 20, .key_end = 23}, 5, worst);
    check_case({.dims = 64, .group = 71, .rows = 5, .first_position = 130, .key_end = 135}, 6, worst);
}

TEST_CASE("attention: scores in the tens of thousands neither overflow nor lose the largest") {
    double worst = 0;
    for (const uint32_t rows : {1u, 40u})
        for (const float spread : {8.0f, 60.0f, 200.0f})
            check_case({.dims = 64,
                        .group = 4,
                        .rows = rows,
                        .first_position = 500 - rows,
                        .key_end = 500,
                        .scale = 1.0f,
                        .spread = spread},
                       11, worst);
    MESSAGE("largest fraction of the bound " << worst);
}

// One key's probability is 1, and a query of one 1 has an element of the key as its score.
TEST_CASE("attention: elements of quantized keys and values are those that are stored, bit for bit") {
    constexpr uint32_t kDims = 96, kTokens = 40;
    for (const CacheTypes format : kFormats) {
        if (!cache_code(format.keys).is_quantized() || !cache_code(format.values).is_quantized()) continue;
        for (const Isa isa : levels()) {
            INFO(std::string(isa_name(isa)), " ", cache_types_name(format));
            const AttentionCase c{.format = format,
                                  .dims = kDims,
                                  .group = kDims,
                                  .first_position = kTokens - 1,
                                  .key_end = kTokens,
                                  .scale = 1.0f,
                                  .spread = 3.0f};
            Setup s(c, isa, 17);
            std::fill(s.q.begin(), s.q.end(), 0.0f);
            for (uint32_t i = 0; i < kDims; ++i) s.q[i * kDims + i] = 1.0f;
            Guarded<float> out(s.q.size()), partial(kDims * (kDims + 2));
            Guarded<std::byte> scratch(attend_scratch_bytes(1, kDims, kDims));
            for (uint64_t p = 0; p < kTokens; ++p) {
                Attend work = s.work();
                work.key_begin = p;
                work.key_end = p + 1;
                work.few = true;  // in floats
                work.out = out.data();
                work.partial = partial.data();
                work.scratch = scratch.data();
                attention_kernels(isa).attend(work);
                const Token token = stored_token(s.head, p);
                for (uint32_t i = 0; i < kDims; ++i) {
                    CHECK(partial[i * (kDims + 2) + kDims] == token.key[i]);
                    CHECK(std::equal(token.value.begin(), token.value.end(), &out[i * kDims]));
                }
            }
            CHECK(scratch.intact());
        }
    }
}

TEST_CASE("attention: equal scores give the mean of the values that are seen") {
    for (const Isa isa : levels())
        for (const uint32_t rows : {1u, 33u}) {
            INFO(std::string(isa_name(isa)), " rows ", rows);
            const AttentionCase c{
                .dims = 32, .group = 2, .rows = rows, .first_position = 200, .key_end = 200 + rows};
            Setup s(c, isa, 3);
            std::fill(s.q.begin(), s.q.end(), 0.0f);
            Guarded<float> out(s.q.size());
            attend(s, isa, out.data());
            std::vector<double> sum(c.dims, 0.0);
            for (uint64_t p = 0; p <= c.first_position; ++p) {
                const Token token = stored_token(s.head, p);
                for (uint32_t i = 0; i < c.dims; ++i) sum[i] += double(token.value[i]);
            }
            for (uint32_t i = 0; i < c.dims; ++i)
                CHECK(double(out[i]) == doctest::Approx(sum[i] / 201).epsilon(1e-5).scale(1e-2));
        }
}

TEST_CASE("attention: keys and values that a row must not see do not reach it, whatever they hold") {
    for (const Isa isa : levels())
        for (const float poison : {kNan, kInf, -kInf, 65504.0f})
            for (const uint32_t rows : {2u, 3u, 20u, 40u})
                for (const uint64_t window : {uint64_t{0}, uint64_t{7}}) {
                    INFO(std::string(isa_name(isa)), " poison ", poison, " rows ", rows, " window ", window);
                    AttentionCase c{
                        .dims = 48, .group = 2, .rows = rows, .first_position = 100, .key_end = 100 + rows};
                    if (rows == 40) c.dims = 64;  // and so many queries: matrix units
                    c.window = window;
                    const Setup clean(c, isa, 9);
                    Setup dirty(c, isa, 9);
                    // The second row's token, which the first must not see; with a window, an old one as
                    // well.
                    const std::vector<float> bad(c.dims, poison);
                    attention_kernels(isa).kv_store(dirty.head, 101, bad.data(), bad.data());
                    if (window > 0) attention_kernels(isa).kv_store(dirty.head, 94, bad.data(), bad.data());
                    Guarded<float> want(clean.q.size()), got(clean.q.size());
                    attend(clean, isa, want.data());
                    attend(dirty, isa, got.data());
                    const size_t row = size_t{c.group} * c.dims;
                    if (window == 0) CHECK(std::memcmp(want.data(), got.data(), row * sizeof(float)) == 0);
                    if (std::isnan(poison)) CHECK(std::isnan(got[row]));
                    // Rows from 108 on look past both.
                    for (size_t i = 8 * row; window > 0 && i < rows * row; ++i) CHECK(std::isfinite(got[i]));
                }
}

TEST_CASE("attention: a NaN in a query stays in its row and head") {
    for (const Isa isa : levels())
        for (const uint32_t rows : {1u, 3u, 40u})
            for (const bool split : {false, true}) {
                INFO(std::string(isa_name(isa)), " rows ", rows, " split ", split);
                Setup s({.dims = 64, .group = 3, .rows = rows, .first_position = 60, .key_end = 60 + rows},
                        isa, 4);
                const size_t bad = (size_t{rows} - 1) * 3 + 1;
                s.q[bad * 64 + 5] = kNan;
                Guarded<float> out(s.q.size());
                if (split)
                    attend_in_parts(s, isa, 4, out.data());
                else
                    attend(s, isa, out.data());
                for (size_t i = 0; i < out.size(); ++i) CHECK(std::isnan(out[i]) == (i / 64 == bad));
            }
}

TEST_CASE("attention: a row without keys is zero, its part weighs nothing, with and without sinks") {
    for (const Isa isa : levels())
        for (const uint32_t dims : {40u, 64u})
            for (const bool sinks : {false, true})
                for (const uint32_t rows : {1u, 20u}) {
                    INFO(std::string(isa_name(isa)), " dims ", dims, " sinks ", sinks, " rows ", rows);
                    AttentionCase c{.dims = dims,
                                    .group = 2,
                                    .rows = rows,
                                    .first_position = 3,
                                    .key_begin = 30,
                                    .key_end = 40};
                    c.sinks = sinks;
                    Setup s(c, isa, 8);
                    const size_t stride = dims + 2;
                    Guarded<float> out(s.q.size()), partial(size_t{rows} * 2 * stride);
                    Guarded<std::byte> scratch(attend_scratch_bytes(rows, 2, dims));
                    Attend work = s.work();
                    work.out = out.data();
                    work.partial = partial.data();
                    work.scratch = scratch.data();
                    attention_kernels(isa).attend(work);
                    for (const float x : out) CHECK(x == 0.0f);
                    for (size_t q = 0; q < size_t{rows} * 2; ++q) {
                        CHECK(partial[q * stride] == 0.0f);
                        CHECK(partial[q * stride + dims] == -kInf);
                        CHECK(partial[q * stride + dims + 1] == 0.0f);
                    }
                    std::fill(out.begin(), out.end(), kNan);
                    attention_kernels(isa).combine(partial.data(), 1, partial.size(), work);
                    for (const float x : out) CHECK(x == 0.0f);
                }
}

TEST_CASE("attention: a sink of minus infinity is no sink") {
    for (const Isa isa : levels()) {
        Setup s({.dims = 64, .group = 2, .rows = 2, .first_position = 9, .key_end = 11}, isa, 2);
        Guarded<float> plain(s.q.size()), with(s.q.size());
        attend(s, isa, plain.data());
        s.c.sinks = true;
        std::fill(s.sinks.begin(), s.sinks.end(), -kInf);
        attend(s, isa, with.data());
        CHECK(std::memcmp(plain.data(), with.data(), plain.size() * sizeof(float)) == 0);
    }
}

TEST_CASE("attention: strides larger than a row leave the gaps alone") {
    for (const Isa isa : levels()) {
        const AttentionCase c{.dims = 24, .group = 2, .rows = 5, .first_position = 9, .key_end = 14};
        const Setup s(c, isa, 2);
        const Expected e = expect(s, Activations::f32);
        Guarded<float> q(5 * 100), out(5 * 80);
        for (size_t row = 0; row < 5; ++row) std::copy_n(&s.q[row * 48], 48, &q[row * 100]);
        Guarded<std::byte> scratch(attend_scratch_bytes(5, 2, 24));
        Attend work = s.work();
        work.q = q.data();
        work.q_stride = 100;
        work.out = out.data();
        work.out_stride = 80;
        work.scratch = scratch.data();
        attention_kernels(isa).attend(work);
        std::vector<float> dense;
        for (size_t row = 0; row < 5; ++row) {
            dense.insert(dense.end(), &out[row * 80], &out[row * 80] + 48);
            for (size_t i = 48; i < 80; ++i) CHECK(std::isnan(out[row * 80 + i]));
        }
        CHECK(worst_fraction(dense.data(), e) <= 1.0);
    }
}

TEST_CASE("attention: a cache over 4 GiB is addressed with 64 bits") {
    // Reserved, not touched: only the pages of the tokens used come to be.
    const uint64_t capacity = uint64_t{12} << 20;
    const size_t bytes = kv_head_bytes(CacheType::f16, 256, capacity);
    REQUIRE(bytes > (size_t{12} << 30) - 1);
    void* memory =
        mmap(nullptr, bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
    if (memory == MAP_FAILED) {
        not_tested("what needs 12 GiB of address space");
        return;
    }
    for (const Isa isa : levels()) {
        INFO(std::string(isa_name(isa)));
        AttentionCase c{.dims = 256,
                        .group = 2,
                        .rows = 3,
                        .first_position = capacity - 3,
                        .key_begin = capacity - 40,
                        .key_end = capacity};
        c.scale = 0.0625f;
        const Setup small(
            {.dims = 256, .group = 2, .rows = 3, .first_position = 37, .key_end = 40, .scale = 0.0625f}, isa,
            1);
        Setup s({.dims = 256, .group = 2, .rows = 3}, isa, 1);
        s.c = c;
        s.head = KvHead{CacheType::f16, 256, capacity, static_cast<std::byte*>(memory)};
        std::copy(small.q.data(), small.q.data() + small.q.size(), s.q.begin());
        std::vector<std::byte> raw(40 * CacheInfo{1, 256, 1, CacheType::f16}.row_bytes());
        kv_export(small.head, 0, 40, raw.data());
        kv_import(s.head, capacity - 40, 40, raw.data());
        Guarded<float> want(small.q.size()), got(small.q.size());
        attend(small, isa, want.data());
        attend(s, isa, got.data());
        CHECK(worst_fraction(got.data(), expect(s, Activations::f32)) <= 1.0);
        CHECK(worst_fraction(want.data(), expect(small, Activations::f32)) <= 1.0);
    }
    munmap(memory, bytes);
}
