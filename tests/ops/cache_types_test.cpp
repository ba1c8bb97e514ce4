// Caches of all types on every backend: which rows a device stores, and what attention makes of rows that are
// read back.
#include "measure/op_case.h"
#include "plan/backend.h"
#include "support/backends.h"
#include "support/cached_vector.h"
#include "support/models.h"

#include <doctest/doctest.h>

#include <algorithm>
#include <cmath>
#include <cstring>
#include <random>

using namespace redline;
using namespace redline::test;

namespace {

Backends& cache_backends() {
    static Backends backends = [] {
        at_end([] { cache_backends().clear(); });
        return all_test_backends();
    }();
    return backends;
}

constexpr uint64_t kTokens = 76;
constexpr uint32_t kPrompt = 70;  // tokens of the first step; then one, then the others

// Tables whose row t is the query, key or value of token t.
class GivenTables : public Fixture {
public:
    GivenTables(const HeadShape& shape, uint32_t seed, bool with_worst = true) : Fixture(seed, kTokens) {
        std::mt19937 random(seed);
        std::normal_distribution<float> normal;
        for (const uint32_t heads : {shape.heads, shape.kv_heads, shape.kv_heads}) {
            std::vector<float>& table = tables.emplace_back(kTokens * heads * shape.head_dim);
            for (float& x : table) x = normal(random);
            tensors_.push_back(Fixture::input(heads * shape.head_dim));
        }
        // Blocks that formats are at their worst with.
        for (const size_t side : {1, 2})
            for (uint32_t i = 0; with_worst && i < shape.kv_heads * shape.head_dim; ++i) {
                float* const x = tables[side].data() + i;
                const size_t width = size_t(shape.kv_heads) * shape.head_dim;
                x[3 * width] = 0.0f;
                x[4 * width] = 0.75f;
                x[5 * width] = i % 32 == 9 ? -40.0f : 0.01f * x[5 * width];
                x[6 * width] = i % 2 == 0 ? 1.0f : -1.0f;
                x[7 * width] *= 1e-4f;
                x[8 * width] += 30.0f;
            }
    }
    Status read(size_t tensor, uint64_t offset, std::span<std::byte> out) override {
        std::memcpy(out.data(), reinterpret_cast<const std::byte*>(tables[tensor].data()) + offset,
                    out.size());
        return {};
    }
    Weight table(size_t which) const { return tensors_[which]; }

    std::vector<std::vector<float>> tables;

private:
    std::vector<Weight> tensors_;
};

Plan plan_of(const GivenTables& fixture, const HeadShape& shape, CacheTypes types, float scale) {
    PlanBuilder p(fixture.weights(), {kTokens, kPrompt, types}, kPrompt, kPrompt);
    const Cache cache = p.cache(shape.kv_heads, shape.head_dim);
    p.append(KvStore{p.embed(fixture.table(1)), p.embed(fixture.table(2)), cache, shape});
    p.output(p.attention(cache, p.embed(fixture.table(0)), shape, scale));
    return must(std::move(p).finish());
}

// Keys and values of a cache, [kv head][token][element].
std::array<std::vector<float>, 2> stored_rows(CacheStore& store, const CacheInfo& info) {
    std::vector<std::byte> bytes(kTokens * info.row_bytes() * info.kv_heads);
    must(store.read({0}, 0, kTokens, bytes));
    const auto planes = info.planes();
    std::array<std::vector<float>, 2> all;
    size_t head_at = 0;
    for (uint32_t head = 0; head < info.kv_heads; ++head, head_at += kTokens * info.row_bytes())
        for (uint64_t token = 0; token < kTokens; ++token) {
            size_t at = head_at;
            for (const size_t side : {0, 1}) {
                std::vector<std::byte> row;
                for (size_t p = 3 * side; p < 3 * side + 3; ++p, at += kTokens * planes[p - 1])
                    row.insert(row.end(), bytes.begin() + ptrdiff_t(at + token * planes[p]),
                               bytes.begin() + ptrdiff_t(at + (token + 1) * planes[p]));
                const CacheType type = side == 0 ? info.types.keys : info.types.values;
                const std::vector<float> x = stored_vector(type, info.head_dim, row.data());
                all[side].insert(all[side].end(), x.begin(), x.end());
            }
        }
    return all;
}

// How far what is stored may be from what was to be, beside the distance to the nearest level.
double slack(CacheType type, double x) {
    return type == CacheType::f16    ? std::abs(x) * 0x1p-11 + 0x1p-25
           : type == CacheType::bf16 ? std::abs(x) * 0x1p-8
                                     : 0;
}

void check_stored(const GivenTables& fixture, const CacheInfo& info, size_t side,
                  std::span<const float> got) {
    const CacheType type = side == 0 ? info.types.keys : info.types.values;
    const bool by_levels = cache_code(type).bits < 8;
    double worst = 0.0;
    for (uint64_t token = 0; token < kTokens; ++token)
        for (uint32_t head = 0; head < info.kv_heads; ++head)
            for (uint32_t begin = 0; begin < info.head_dim; begin += kCacheBlock) {
                const float* const x =
                    fixture.tables[side + 1].data() + (token * info.kv_heads + head) * info.head_dim + begin;
                const float* const stored = got.data() + (head * kTokens + token) * info.head_dim + begin;
                const std::vector<float> levels = by_levels ? nearest_levels(type, x) : std::vector<float>();
                const auto [low, high] = std::minmax_element(x, x + kCacheBlock);
                const double most = std::max(std::abs(double(*low)), std::abs(double(*high)));
                // A scale halfway between two halfs, 2^-10 of it apart or 2^-24, may become either.
                const double range = cache_code(type).scales == 2 ? double(*high) - double(*low) : most;
                const double rounded = by_levels ? range * 0x1p-10 + 127 * 0x1p-24 : 0.0;
                for (uint32_t i = 0; i < kCacheBlock; ++i) {
                    const double least = by_levels ? std::abs(double(levels[i]) - double(x[i]))
                                         : type == CacheType::q8_0
                                             ? most * (1.0 / 254 + 0x1p-11) + 127 * 0x1p-25
                                             : slack(type, double(x[i]));
                    worst = std::max(
                        worst, std::abs(double(stored[i]) - double(x[i])) - least - rounded - 1e-4 * most);
                }
            }
    CHECK(worst <= 1e-6);
}

// Attention of a token's query to the stored rows, in doubles.
std::vector<double> attended(const GivenTables& fixture, const HeadShape& s, float scale, uint64_t token,
                             const std::array<std::vector<float>, 2>& rows) {
    std::vector<double> y(size_t(s.heads) * s.head_dim);
    for (uint32_t head = 0; head < s.heads; ++head) {
        const uint32_t kv_head = head / (s.heads / s.kv_heads);
        const float* const q = fixture.tables[0].data() + (token * s.heads + head) * s.head_dim;
        std::vector<double> scores;
        for (uint64_t p = 0; p <= token; ++p) {
            double dot = 0.0;
            for (uint32_t i = 0; i < s.head_dim; ++i)
                dot += double(q[i]) * double(rows[0][(kv_head * kTokens + p) * s.head_dim + i]);
            scores.push_back(dot * double(scale));
        }
        const double top = *std::ranges::max_element(scores);
        double total = 0.0;
        for (double& score : scores) total += score = std::exp(score - top);
        for (uint64_t p = 0; p <= token; ++p)
            for (uint32_t i = 0; i < s.head_dim; ++i)
                y[head * s.head_dim + i] +=
                    scores[p] / total * double(rows[1][(kv_head * kTokens + p) * s.head_dim + i]);
    }
    return y;
}

void check_types(Backend& backend, const HeadShape& shape, CacheTypes types, uint32_t seed) {
    INFO(cache_types_name(types), ", heads of ", shape.head_dim, " on ", backend.device().detail);
    types.rotate = false;
    GivenTables fixture(shape, seed);
    const float scale = 0.1f / std::sqrt(float(shape.head_dim));
    const Plan plan = plan_of(fixture, shape, types, scale);
    const auto weights = must(backend.load(fixture.weights(), fixture, {}));
    const auto caches = must(backend.make_caches(plan.caches));
    const auto executable =
        must(backend.record(must(lower(plan, backend, true)), *weights, *caches, Record::replay));
    std::vector<std::pair<uint64_t, std::vector<float>>> outputs;  // with the first token of each step
    std::vector<int32_t> tokens(kTokens);
    for (size_t i = 0; i < kTokens; ++i) tokens[i] = int32_t(i);
    for (const auto& [first, count] :
         {std::pair<uint64_t, uint32_t>(0, kPrompt), {kPrompt, 1}, {kPrompt + 1, 5}}) {
        const SequenceStep step(std::span<const int32_t>(tokens).subspan(first, count), first, count);
        must(executable->run(step));
        outputs.push_back({first, {executable->output().begin(), executable->output().end()}});
    }
    const auto rows = stored_rows(*caches, plan.caches[0]);
    for (const size_t side : {0, 1}) check_stored(fixture, plan.caches[0], side, rows[side]);
    for (const auto& [first, got] : outputs) {
        // Matrix units round queries, keys, values and weights to 11 bits, or weights to 8.
        const double unit = first == 0 ? 0x1p-7 : 0x1p-16;
        const size_t width = size_t(shape.heads) * shape.head_dim;
        double worst = 0.0;
        for (size_t row = 0; row < got.size() / width; ++row) {
            const std::vector<double> want = attended(fixture, shape, scale, first + row, rows);
            for (size_t i = 0; i < width; ++i)
                worst = std::max(worst, std::abs(double(got[row * width + i]) - want[i]));
        }
        INFO("step from ", first);
        CHECK(worst <= 40 * unit);  // of values of up to 40
    }
}

}  // namespace

TEST_CASE("caches of every type hold the levels next to keys and values, and attention reads just these") {
    // Each type of few bits is one of keys and one of values; drivers on CPUs compile for long, and have
    // these alone.
    constexpr CacheTypes kPairs[] = {
        {CacheType::q5_1, CacheType::q4_0},   {CacheType::q4_0, CacheType::iq4_nl},
        {CacheType::iq4_nl, CacheType::q5_0}, {CacheType::q5_0, CacheType::bf16},
        {CacheType::bf16, CacheType::q4_1},   {CacheType::q4_1, CacheType::q5_1}};
    constexpr CacheTypes kMore[] = {{CacheType::f32, CacheType::q8_0},
                                    {CacheType::f16, CacheType::q5_1},
                                    {CacheType::q8_0, CacheType::f16},
                                    {CacheType::q8_0, CacheType::f32}};
    size_t turn = 0;  // levels of one driver on the CPU share the pairs
    for (const auto& backend : cache_backends()) {
        const bool on_cpu = backend->device().on_cpu;
        uint32_t seed = 1;
        for (size_t i = on_cpu ? turn++ % 3 : 0; i < std::size(kPairs); i += on_cpu ? 3 : 1)
            check_types(*backend, {4, 2, 64}, kPairs[i], ++seed);
        if (on_cpu) continue;
        for (const CacheTypes types : kMore) check_types(*backend, {6, 2, 96}, types, ++seed);
        for (const CacheType type : kCacheTypes) {
            check_types(*backend, {6, 2, 128}, type, ++seed);
            check_types(*backend, {2, 1, 256}, type, ++seed);
        }
    }
}

// The bytes of a cache that has read all tokens.
static std::vector<std::byte> stored_bytes(Backend& backend, GivenTables& fixture, const HeadShape& shape,
                                           CacheTypes types) {
    types.rotate = false;
    const Plan plan = plan_of(fixture, shape, types, 0.1f);
    const auto weights = must(backend.load(fixture.weights(), fixture, {}));
    const auto caches = must(backend.make_caches(plan.caches));
    const auto executable =
        must(backend.record(must(lower(plan, backend, true)), *weights, *caches, Record::replay));
    std::vector<int32_t> tokens(kPrompt);
    for (size_t i = 0; i < kPrompt; ++i) tokens[i] = int32_t(i);
    must(executable->run(SequenceStep(tokens, 0, kPrompt)));
    const CacheInfo& info = plan.caches[0];
    std::vector<std::byte> bytes(kPrompt * info.row_bytes() * info.kv_heads);
    must(caches->read({0}, 0, kPrompt, bytes));
    return bytes;
}

TEST_CASE("HIP's caches of other types than q8_0 hold the CPU's bytes") {
    constexpr HeadShape kShape = {4, 2, 96};
    const auto cpu = must(open_backend("cpu", {}));
    for (const auto& backend : cache_backends()) {
        if (!is_hip(*backend)) continue;
        uint32_t seed = 40;
        for (const CacheTypes types : {CacheTypes(CacheType::q5_1, CacheType::q4_0),
                                       {CacheType::q4_1, CacheType::iq4_nl},
                                       {CacheType::bf16, CacheType::q5_0},
                                       {CacheType::f32, CacheType::f16}}) {
            INFO(cache_types_name(types), " on ", backend->device().detail);
            GivenTables fixture(kShape, ++seed);
            CHECK(stored_bytes(*backend, fixture, kShape, types) ==
                  stored_bytes(*cpu, fixture, kShape, types));
        }
    }
}

// The outputs of a prompt whose heads have one element that is larger than the others, as many models' keys
// have.
static std::vector<float> outputs_of_uneven_heads(Backend& backend, CacheTypes types, bool fused) {
    constexpr HeadShape kShape = {4, 2, 128};
    GivenTables fixture(kShape, 5, false);
    for (std::vector<float>& table : fixture.tables)
        for (size_t i = 0; i < table.size(); ++i)
            if (i % kShape.head_dim == 77) table[i] *= 20.0f;
    PlanBuilder p(fixture.weights(), {kTokens, kPrompt, types}, kPrompt, kPrompt);
    const Cache cache = p.cache(kShape.kv_heads, kShape.head_dim);
    const float scale = 0.02f;
    const Slot q = p.embed(fixture.table(0)), k = p.embed(fixture.table(1)), v = p.embed(fixture.table(2));
    if (fused) {
        const uint32_t rope = p.add_rope(test_rope(kShape.head_dim, true));
        p.output(p.attend(cache, {q, k, v}, kShape, rope, scale));
    } else {
        p.append(KvStore{k, v, cache, kShape});
        p.output(p.attention(cache, q, kShape, scale));
    }
    const Plan plan = must(std::move(p).finish());
    const auto weights = must(backend.load(fixture.weights(), fixture, {}));
    const auto caches = must(backend.make_caches(plan.caches));
    const auto executable =
        must(backend.record(must(lower(plan, backend, true)), *weights, *caches, Record::replay));
    std::vector<int32_t> tokens(kPrompt);
    for (size_t i = 0; i < kPrompt; ++i) tokens[i] = int32_t(i);
    must(executable->run(SequenceStep(tokens, 0, kPrompt)));
    return {executable->output().begin(), executable->output().end()};
}

TEST_CASE("caches of few bits lose less where keys and values are rotated, and the result is turned back") {
    const auto distance = [](std::span<const float> a, std::span<const float> b) {
        double off = 0.0, all = 0.0;
        for (size_t i = 0; i < a.size(); ++i) {
            off += std::pow(double(a[i]) - double(b[i]), 2);
            all += std::pow(double(b[i]), 2);
        }
        return std::sqrt(off / all);
    };
    for (const auto& backend : cache_backends()) {
        for (const bool fused : {false, true})
            for (const CacheTypes types : {CacheTypes(CacheType::q4_0), CacheTypes(CacheType::q5_1),
                                           CacheTypes(CacheType::q4_1, CacheType::f16),
                                           CacheTypes(CacheType::f16, CacheType::iq4_nl)}) {
                if (backend->device().on_cpu && (fused || types.keys != CacheType::q4_0)) continue;
                INFO(cache_types_name(types), std::string(fused ? " fused on " : " on "),
                     backend->device().detail);
                const std::vector<float> exact = outputs_of_uneven_heads(*backend, CacheType::f32, fused);
                const double rotated = distance(outputs_of_uneven_heads(*backend, types, fused), exact),
                             plain = distance(
                                 outputs_of_uneven_heads(*backend, {types.keys, types.values, false}, fused),
                                 exact);
                INFO("off by ", rotated, " rotated and ", plain, " plain");
                CHECK(rotated < plain);
                CHECK(rotated < 0.1);
            }
    }
}
