// A device picks the largest of its outputs.
#include "measure/op_case.h"
#include "plan/backend.h"
#include "support/backends.h"
#include "support/models.h"

#include <doctest/doctest.h>

#include <algorithm>
#include <cstring>
#include <limits>
#include <random>

using namespace redline;
using namespace redline::test;

// A plan whose outputs are these.
struct GivenFixture : Fixture {
    const std::vector<float>& outputs;
    GivenFixture(const std::vector<float>& values, uint64_t rows) : Fixture(1, rows), outputs(values) {}
    Status read(size_t, uint64_t offset, std::span<std::byte> out) override {
        std::memcpy(out.data(), reinterpret_cast<const std::byte*>(outputs.data()) + offset, out.size());
        return {};
    }
};

static void check_best(Backend& backend, const std::string& name, const std::vector<float>& given,
                       uint32_t among, uint32_t rows = 1) {
    const uint32_t width = uint32_t(given.size()) / rows, wanted = (rows + 1) / 2;
    INFO(name, ": the best of ", among, " of ", width, " in ", wanted, " rows of ", rows);
    GivenFixture fixture(given, rows);
    const Weight table = fixture.input(width);
    PlanBuilder builder(fixture.weights(), {8, 1, CacheType::f16}, rows, wanted);
    builder.output(builder.embed(table));
    const Plan plan = must(std::move(builder).finish());
    const auto weights = must(backend.load(fixture.weights(), fixture, {}));
    const auto cache = must(backend.make_caches(plan.caches));
    const auto executable =
        must(backend.record(must(lower(plan, backend, true)), *weights, *cache, Record::replay));
    std::vector<int32_t> tokens(rows);
    for (uint32_t row = 0; row < rows; ++row) tokens[row] = int32_t(rows - 1 - row);
    const SequenceStep step(tokens, 0, wanted);
    StepParams all = step, best = all;
    best.best = 1;
    best.best_among = among;
    for (int turn = 0; turn < 2; ++turn) {
        // The device's output, since some devices flush subnormals.
        must(executable->run(all));
        CHECK(executable->best().empty());
        const size_t each = std::min<size_t>(among, executable->most_best());
        std::vector<Scored> want;
        for (uint32_t row = 0; row < wanted; ++row) {
            std::vector<Scored> all_of_row;
            for (uint32_t id = 0; id < among; ++id)
                all_of_row.push_back({executable->output()[size_t(row) * width + id], int32_t(id)});
            std::sort(all_of_row.begin(), all_of_row.end(), comes_first);
            want.insert(want.end(), all_of_row.begin(), all_of_row.begin() + ptrdiff_t(each));
        }
        must(executable->run(best));
        CHECK(executable->output().empty());
        const std::span<const Scored> got = executable->best();
        REQUIRE(got.size() == want.size());
        size_t wrong = 0;
        for (size_t i = 0; i < got.size(); ++i)
            wrong += got[i].id != want[i].id || std::memcmp(&got[i].logit, &want[i].logit, 4) != 0;
        CHECK(wrong == 0);
    }
}

static void check_all(Backend& backend) {
    std::mt19937 random(3);
    std::normal_distribution<float> normal;
    const auto filled = [&](uint32_t count, auto value) {
        std::vector<float> out(count);
        for (uint32_t i = 0; i < count; ++i) out[i] = value(i);
        return out;
    };
    for (const uint32_t count : {32u, 64u, 68u, 4096u, 4100u, 10000u, 128256u, 151936u, 262144u}) {
        const auto any = filled(count, [&](uint32_t) { return normal(random); });
        check_best(backend, "normal", any, count);
        check_best(backend, "normal", any, count - 5);
        check_best(backend, "normal", any, 1);
    }
    for (const uint32_t rows : {2u, 5u})
        for (const uint32_t width : {68u, 5000u, 20000u}) {
            const auto any = filled(rows * width, [&](uint32_t) { return normal(random); });
            check_best(backend, "normal", any, width, rows);
            check_best(backend, "normal", any, width - 20, rows);
        }
    for (const uint32_t count : {40u, 5000u, 20000u}) {
        const float inf = std::numeric_limits<float>::infinity();
        check_best(backend, "equal", std::vector<float>(count, -2.5f), count);
        check_best(backend, "forbidden", std::vector<float>(count, -inf), count);
        check_best(backend, "rising", filled(count, [](uint32_t i) { return float(i) - 3000.0f; }), count);
        check_best(backend, "falling", filled(count, [](uint32_t i) { return -float(i); }), count);
        check_best(backend, "few values", filled(count, [&](uint32_t) { return float(random() % 3); }),
                   count);
        check_best(backend, "zeros", filled(count, [&](uint32_t) { return random() % 2 ? 0.0f : -0.0f; }),
                   count);
        check_best(backend, "tiny", filled(count, [&](uint32_t) { return normal(random) * 1e-41f; }), count);
        auto odd = filled(count, [&](uint32_t) { return normal(random) * 1e38f; });
        odd[7] = inf, odd[count - 1] = -std::nanf(""), odd[20] = std::nanf(""), odd[30] = -inf;
        check_best(backend, "not finite", odd, count);
        check_best(backend, "mostly forbidden",
                   filled(count, [&](uint32_t i) { return i % 997 == 5 ? normal(random) : -inf; }), count);
    }
}

TEST_CASE("device: the best of a row of outputs are picked on it, of each row, the lowest ids among equals") {
    for (const char* name : {"vulkan", "hip"}) {
        const auto backend = open_wanted(name, {.guarded = true});
        if (!backend) continue;
        INFO("on ", backend->device().name);
        check_all(*backend);
    }
}
