// Steps that are traced op by op on a GPU.
#include "measure/op_case.h"
#include "plan/backend.h"
#include "support/backends.h"
#include "support/models.h"

#include <doctest/doctest.h>

using namespace redline;
using namespace redline::test;

TEST_CASE("trace: a step that is cancelled ends behind the op that runs, and the next one runs") {
    for (const char* name : {"vulkan", "hip"}) {
        const auto backend = open_wanted(name, {.guarded = true});
        if (!backend) continue;
        INFO("on ", backend->device().name);
        constexpr uint32_t kWidth = 64;
        Fixture fixture(1, 1);
        const Weight table = fixture.input(kWidth);
        PlanBuilder builder(fixture.weights(), {8, 1, CacheType::f16}, 1, 1);
        builder.output(builder.rms_norm(builder.embed(table), {{}, 1e-5f}));
        const Plan plan = must(std::move(builder).finish());
        const auto weights = must(backend->load(fixture.weights(), fixture, {}));
        const auto caches = must(backend->make_caches(plan.caches));
        BoundPlan bound = must(lower(plan, *backend, true));
        const size_t steps = bound.plan.steps.size();
        REQUIRE(steps > 1);
        const auto executable = must(backend->record(std::move(bound), *weights, *caches, Record::replay));
        std::atomic<bool> cancel = false;
        const int32_t token = 0;
        const SequenceStep alone({&token, 1}, 0, 1);
        StepParams params = alone;
        params.cancel = &cancel;
        size_t ops = 0;
        const Status ended = executable->run_traced(params, [&](const TraceStep&) {
            ++ops;
            cancel = true;
        });
        REQUIRE(!ended.ok());
        CHECK(ended.error().message == "interrupted");
        CHECK(ops == 1);
        cancel = false;
        must(executable->run_traced(params, [&](const TraceStep&) { ++ops; }));
        CHECK(ops == 1 + steps);
        CHECK(executable->output().size() == kWidth);
    }
}
