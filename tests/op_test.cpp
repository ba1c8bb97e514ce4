// Every op on every backend of this build and level of this machine against the reference, within the bound
// that the reference computes from the data.
#include "support/backends.h"
#include "support/comparison.h"

#include <doctest/doctest.h>

#include <map>
#include <set>

using namespace redline;
using namespace redline::test;

namespace {

std::vector<std::unique_ptr<Backend>>& test_backends() {
    static auto backends = [] {
        at_end([] { test_backends().clear(); });
        return all_test_backends();
    }();
    return backends;
}

// The loosest of the kernels that one case asks for.
Precision precision_of(const BoundPlan& bound, uint32_t rows) {
    Precision loosest = Precision::exact;
    for (const auto& kernel : bound.kernels) loosest = std::max(loosest, kernel->precision(rows));
    return loosest;
}

std::vector<int32_t> tokens_from(uint64_t first, uint64_t count) {
    std::vector<int32_t> tokens(count);
    for (uint64_t i = 0; i < count; ++i) tokens[i] = int32_t(first + i);
    return tokens;
}

// Tokens before the compared step are fed in steps of this many.
constexpr uint32_t kFeedRows = 100;

// Feeds the tokens before the compared step, then that step, to `run`.
void feed(const OpCase& c, const std::function<void(const StepParams&)>& run) {
    for (uint64_t p = 0; p < c.position; p += kFeedRows) {
        const std::vector<int32_t> tokens = tokens_from(p, std::min<uint64_t>(kFeedRows, c.position - p));
        run({tokens, p, 0});
    }
    const std::vector<int32_t> tokens = tokens_from(c.position, c.rows);
    run({tokens, c.position, 0});
}

Plan record(const OpCase& c, Fixture& fixture) {
    const uint32_t rows = c.position > 0 ? std::max(c.rows, kFeedRows) : c.rows;
    Result<Plan> plan = case_plan(c, fixture, rows, rows);
    REQUIRE_MESSAGE(plan.ok(), c.name, ": ", plan.ok() ? "" : plan.error().message);
    return std::move(plan).value();
}

void run_case(const OpCase& c, std::map<std::string, double>& worst) {
    Fixture fixture(uint32_t(std::hash<std::string>()(c.name)), c.position + c.rows);
    const Plan plan = record(c, fixture);
    // By precision, and by whether weights are decoded to halfs.
    std::map<std::pair<Precision, bool>, std::vector<Bounded>> wanted;
    for (const auto& backend : test_backends())
        for (const bool fuse : {true, false}) {
            const auto weights = std::move(backend->load(fixture.weights(), fixture, {})).value();
            const auto cache = std::move(backend->make_caches(plan.caches)).value();
            BoundPlan bound = std::move(lower(plan, *backend, fuse)).value();
            const Precision precision = precision_of(bound, bound.plan.max_rows);
            const bool to_halfs = !decoded_formats(fixture.weights(), *backend).empty();
            std::vector<Bounded>& want = wanted[{precision, to_halfs}];
            if (want.empty()) {
                Reference reference(plan, fixture.decoded(*backend));
                feed(c, [&](const StepParams& step) { reference.run(step, precision); });
                want = {reference.output().begin(), reference.output().end()};
            }
            Result<std::unique_ptr<Executable>> recorded =
                backend->record(std::move(bound), *weights, *cache, Record::replay);
            REQUIRE_MESSAGE(recorded.ok(), c.name, ": ", recorded.ok() ? "" : recorded.error().message);
            const std::unique_ptr<Executable> executable = std::move(recorded).value();
            feed(c, [&](const StepParams& step) { REQUIRE(executable->run(step).ok()); });
            const Comparison got = compare(executable->output(), want);
            double& most = worst[backend->device().detail];
            most = std::max(most, got.worst_fraction);
            INFO(c.name, fuse ? " fused" : " decomposed", " on ", backend->device().detail);
            INFO("worst at ", got.worst, ": got ", got.got, ", want ", got.want, ", bound ", got.bound, "; ",
                 got.outside, " of ", got.count, " outside; NMSE ", got.nmse);
            CHECK(got.worst_fraction <= 1.0);
            CHECK(got.nmse < 1e-2);
        }
}

}  // namespace

TEST_CASE("every op, format, row class and fused flag is within its bound on every backend") {
    std::map<std::string, double> worst;
    for (const OpCase& c : op_cases()) run_case(c, worst);
    for (const auto& [device, fraction] : worst) MESSAGE(device, ": worst fraction of the bound ", fraction);
}

TEST_CASE("the random inputs of the cases are varied") {
    Fixture fixture(1, 5);
    fixture.input(64);
    for (const Format* format : all_formats()) fixture.matrix(*format, 8, 512);
    const auto cpu = std::move(open_backend("cpu", {1})).value();
    for (const std::vector<float>& values : fixture.decoded(*cpu)) {
        const std::set<float> distinct(values.begin(), values.end());
        CHECK(distinct.size() > 30);
        CHECK(*distinct.begin() < 0.0f);
        CHECK(*distinct.rbegin() > 0.0f);
        CHECK(std::isfinite(*distinct.begin()));
        CHECK(std::isfinite(*distinct.rbegin()));
    }
}

TEST_CASE("a plan whose slots share memory gives what one without sharing gives, bit for bit") {
    if (test_backends().empty()) return;
    const Format& q8 = *find_format("Q8_0");
    const OpCase c = gated_case(q8, Act::silu, true, 9, 96, 64);
    Fixture fixture(7, 9);
    Plan shared = record(c, fixture), apart = shared;
    assign_arena(apart, false);
    CHECK(shared.arena_bytes < apart.arena_bytes);
    std::vector<std::vector<float>> outputs;
    for (const Plan& plan : {shared, apart}) {
        Backend& backend = *test_backends().front();
        const auto weights = std::move(backend.load(fixture.weights(), fixture, {})).value();
        const auto cache = std::move(backend.make_caches(plan.caches)).value();
        const auto executable = std::move(backend.record(std::move(lower(plan, backend, false)).value(),
                                                         *weights, *cache, Record::replay))
                                    .value();
        feed(c, [&](const StepParams& step) { REQUIRE(executable->run(step).ok()); });
        outputs.emplace_back(executable->output().begin(), executable->output().end());
    }
    CHECK(outputs[0] == outputs[1]);
}
