// Plans: checks, liveness, hazards, decomposition, cost.
#include "plan/backend.h"
#include "plan/handing.h"

#include <doctest/doctest.h>

using namespace redline;

namespace {

WeightInfo matrix(uint64_t rows, uint64_t cols) {
    return {{"m", find_format("F32"), {1, rows, cols}}, WeightRole::matrix};
}
WeightInfo vector(uint64_t size) {
    return {{"v", find_format("F32"), {1, 1, size}}, WeightRole::vector};
}

constexpr CacheSizing kSizing{16, 4, CacheType::f16};

}  // namespace

TEST_CASE("plan: a matrix of the wrong shape is an error that names the op and the shapes") {
    PlanBuilder p({matrix(10, 8), matrix(6, 9)}, kSizing, 4, 1);
    p.output(p.linear(p.embed({0}), {1}));
    const Result<Plan> plan = std::move(p).finish();
    REQUIRE_FALSE(plan.ok());
    CHECK(plan.error().message.find("linear") != std::string::npos);
    CHECK(plan.error().message.find("(1, 6, 9)") != std::string::npos);
}

TEST_CASE("plan: a missing weight is an error, not a crash") {
    PlanBuilder p({matrix(10, 8)}, kSizing, 4, 1);
    p.output(p.linear(p.embed({0}), Weight{}));
    CHECK_FALSE(std::move(p).finish().ok());
}

TEST_CASE("plan: two steps that only read the same slot need no barrier, a reader of what was written does") {
    PlanBuilder p({matrix(10, 8), matrix(8, 8), matrix(8, 8)}, kSizing, 4, 1);
    const Slot x = p.embed({0});
    const Slot a = p.linear(x, {1});
    const Slot b = p.linear(x, {2});
    p.append(Add{a, b});
    p.output(b);
    const Plan plan = std::move(std::move(p).finish()).value();
    CHECK_FALSE(plan.steps[0].barrier);
    CHECK(plan.steps[1].barrier);
    CHECK_FALSE(plan.steps[2].barrier);
    CHECK(plan.steps[3].barrier);
}

TEST_CASE("plan: a norm is left to its readers when all can do it and what it norms is still there") {
    const auto readers = [](const std::function<void(PlanBuilder&, Slot, Slot)>& after, bool all = true) {
        PlanBuilder p({matrix(10, 8), matrix(8, 8), vector(8)}, kSizing, 4, 1);
        const Slot x = p.embed({0}), h = p.rms_norm(x, {{2}, 1e-5f});
        p.append(Linear{h, {1}, p.slot(8)});
        after(p, x, h);
        p.output(x);
        const Plan plan = std::move(std::move(p).finish()).value();
        return norming_readers(plan, 1, [&](size_t i) {
            return all ? std::holds_alternative<Linear>(plan.steps[i].op) : i == 2;
        });
    };
    using Steps = std::vector<size_t>;
    const auto read_again = [](PlanBuilder& p, Slot, Slot h) { p.append(Linear{h, {1}, p.slot(8)}); };
    CHECK(readers([](PlanBuilder&, Slot, Slot) {}) == Steps{2});
    CHECK(readers(read_again) == Steps{2, 3});
    CHECK(readers(read_again, false).empty());
    CHECK(readers([](PlanBuilder& p, Slot x, Slot h) { p.append(Add{h, x}); }).empty());
    // Read after what it norms has changed, or by nobody but them.
    CHECK(readers([](PlanBuilder& p, Slot x, Slot h) {
              p.append(Linear{p.embed({0}), {1}, x});
              p.append(Linear{h, {1}, p.slot(8)});
          }).empty());
    CHECK(readers([](PlanBuilder& p, Slot x, Slot) { p.append(Linear{p.embed({0}), {1}, x}); }).empty());
}

TEST_CASE("plan: attention waits for the cache to be written") {
    PlanBuilder p({matrix(10, 32), matrix(10, 16)}, kSizing, 4, 1);
    const Slot q = p.embed({0});
    const Slot k = p.embed({1}), v = p.embed({1});
    const HeadShape shape{4, 2, 8};
    const Cache cache = p.cache(2, 8);
    p.append(KvStore{k, v, cache, shape});
    p.output(p.attention(cache, q, shape, 1.0f));
    const Plan plan = std::move(std::move(p).finish()).value();
    CHECK(plan.steps[4].barrier);
}

TEST_CASE("plan: a cache with a window keeps the window and a step's rows, not the whole context") {
    PlanBuilder p({matrix(10, 32)}, {131072, 512, CacheType::f16}, 512, 1);
    const Cache whole = p.cache(2, 8), ring = p.cache(2, 8, 1024), wide = p.cache(2, 8, 131000);
    CHECK(p.plan().cache(whole).capacity == 131072);
    CHECK(p.plan().cache(ring).capacity == 1024 + 512);
    CHECK(p.plan().cache(wide).capacity == 131072);
    Slot q = p.embed({0});
    p.append(Attention{q, p.slot(32), ring, {4, 2, 8}, 1.0f, 0.0f, 1025, {}});
    p.output(q);
    const Result<Plan> plan = std::move(p).finish();
    REQUIRE_FALSE(plan.ok());
    CHECK(plan.error().message.find("keeps less than the window") != std::string::npos);
}

TEST_CASE("plan: slots that are alive together never overlap, and slots that are not may share") {
    PlanBuilder p({matrix(10, 64), matrix(64, 64)}, kSizing, 4, 1);
    Slot x = p.embed({0});
    for (int i = 0; i < 20; ++i) x = p.linear(x, {1});
    p.output(x);
    const Plan plan = std::move(std::move(p).finish()).value();
    CHECK(plan.arena_bytes <= 3 * 4 * 64 * 4 + 1024);
    for (const Step& step : plan.steps) {
        const Access used = access(step.op);
        for (const Slot r : used.reads)
            for (const Slot w : used.writes)
                CHECK((plan.slot(r).offset + plan.slot_bytes(r) <= plan.slot(w).offset ||
                       plan.slot(w).offset + plan.slot_bytes(w) <= plan.slot(r).offset));
    }
}

TEST_CASE("plan: sizes above 4 GiB are kept in 64 bits") {
    const WeightInfo huge{{"huge", find_format("F32"), {128, 65536, 65536}}, WeightRole::matrix};
    CHECK(huge.tensor.bytes() == uint64_t(128) * 65536 * 65536 * 4);
    PlanBuilder p({matrix(10, 1u << 20)}, {131072, 4096, CacheType::f16}, 4096, 1);
    for (int layer = 0; layer < 80; ++layer) p.cache(8, 128);
    p.output(p.embed({0}));
    const Plan plan = std::move(std::move(p).finish()).value();
    CHECK(plan.arena_bytes >= (uint64_t(4096) << 20) * 4);
    CHECK(cache_bytes(plan.caches) == uint64_t(80) * 8 * 131072 * 512);
}

TEST_CASE("plan: a decode step costs every matrix once, and the cache up to its position") {
    PlanBuilder p({matrix(10, 32), matrix(16, 32)}, kSizing, 1, 1);
    const Slot q = p.embed({0});
    const HeadShape shape{4, 2, 8};
    p.output(p.attention(p.cache(2, 8), q, shape, 1.0f));
    const Plan plan = std::move(std::move(p).finish()).value();
    const Cost attention = cost(plan.steps[1].op, plan, {1, 1, 10});
    CHECK(attention.cache_bytes == 10 * 2 * 2 * 8 * 2);
    CHECK(attention.flops == 4 * 10 * 4 * 8);
    CHECK(cost(Linear{q, {1}, q}, plan, {1, 1, 1}).weight_bytes == 16 * 32 * 4);
    CHECK(cost(Linear{q, {1}, q}, plan, {3, 1, 1}).flops == 2 * 3 * 16 * 32);
}

TEST_CASE("plan: decomposing peels norm, accumulation and bias until core ops are left") {
    PlanBuilder p({matrix(10, 8), matrix(8, 8), vector(8), vector(8)}, kSizing, 4, 1);
    const Slot x = p.embed({0}), y = p.embed({0});
    std::vector<Op> pending{Linear{x, {1}, y, {{2}, 1e-5f}, {3}, true}};
    std::vector<std::string_view> names;
    while (!pending.empty()) {
        const Op op = pending.back();
        pending.pop_back();
        const size_t before = p.plan().steps.size();
        if (!decompose(op, p)) {
            names.push_back(op_name(op));
            continue;
        }
        for (size_t i = p.plan().steps.size(); i > before; --i) pending.push_back(p.plan().steps[i - 1].op);
    }
    CHECK(names == std::vector<std::string_view>{"rms_norm", "linear", "add_bias", "add"});
}

TEST_CASE("backend: an unknown name is an error that lists the known ones") {
    const auto backend = open_backend("abacus", {});
    REQUIRE_FALSE(backend.ok());
    CHECK(backend.error().message.find("cpu") != std::string::npos);
}

TEST_CASE("backend: an unknown CPU level and too many threads are errors") {
    CHECK_FALSE(open_backend("cpu", {1, "sse9"}).ok());
    CHECK_FALSE(open_backend("cpu", {100000, ""}).ok());
}
