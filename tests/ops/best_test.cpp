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
    explicit GivenFixture(const std::vector<float>& values) : Fixture(1, 1), outputs(values) {}
    Status read(size_t, uint64_t offset, std::span<std::byte> out) override {
        std::memcpy(out.data(), reinterpret_cast<const std::byte*>(outputs.data()) + offset, out.size());
        return {};
    }
};

static void check_best(Backend& backend, const std::string& name, const std::vector<float>& given,
                       uint32_t among) {
    INFO(name, ": the best of ", among, " of ", given.size());
    GivenFixture fixture(given);
    const Weight table = fixture.input(given.size());
    PlanBuilder builder(fixture.weights(), {4, 1, CacheType::f16}, 1, 1);
    builder.output(builder.embed(table));
    const Plan plan = must(std::move(builder).finish());
    const auto weights = must(backend.load(fixture.weights(), fixture, {}));
    const auto cache = must(backend.make_caches(plan.caches));
    const auto executable =
        must(backend.record(must(lower(plan, backend, true)), *weights, *cache, Record::replay));
    const int32_t token = 0;
    const SequenceStep step({&token, 1}, 0, 1);
    StepParams all = step, best = all;
    best.best = 1;
    best.best_among = among;
    for (int turn = 0; turn < 2; ++turn) {
        // The device's output, since some devices flush subnormals.
        must(executable->run(all));
        CHECK(executable->best().empty());
        std::vector<Scored> want;
        for (uint32_t id = 0; id < among; ++id) want.push_back({executable->output()[id], int32_t(id)});
        std::sort(want.begin(), want.end(), comes_first);
        must(executable->run(best));
        CHECK(executable->output().empty());
        const std::span<const Scored> got = executable->best();
        REQUIRE(got.size() == std::min<size_t>(among, executable->most_best()));
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

TEST_CASE("device: the best of a row of outputs are picked on it, the lowest ids among equals") {
    for (const char* name : {"vulkan", "hip"}) {
        const auto backend = open_wanted(name, {.guarded = true});
        if (!backend) continue;
        INFO("on ", backend->device().name);
        check_all(*backend);
    }
}
