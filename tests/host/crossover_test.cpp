// Choices of up to how many rows a way is taken: timed at several numbers of rows, and results whose
// precision is that of the way taken.
#include "plan/kernel_key.h"
#include "support/fake_clock.h"

#include <doctest/doctest.h>

#include <bit>
#include <functional>
#include <optional>
#include <set>

using namespace redline;
using namespace redline::test;

namespace {

// Calls `each` with every kernel of a model's plans that has crossovers in steps of this class.
void visit_crossovers(const Model& model, Backend& backend, RowClass rows,
                      const std::function<void(const Plan&, const Op&, const Choice&)>& each) {
    for (const Plan& recorded : must(engine_plans(model, tune_options()))) {
        if (recorded.max_rows == 1) continue;
        const Plan plan = must(lower(recorded, backend)).plan;
        std::set<std::string> met;
        for (const Step& step : plan.steps) {
            if (!met.insert(kernel_key(step.op, plan)).second) continue;
            for (const Choice& one : backend.choices_for(step.op, plan, rows))
                if (one.crossover) each(plan, step.op, one);
        }
    }
}

// Devices whose steps of 9 to 128 rows can go two ways: not those without matrix units and int8 dot products.
Backends backends_with_ways() {
    Backends all = gpu_backends();
    const Model model = must(Model::inspect(demo(), 512));
    std::erase_if(all, [&](const auto& backend) {
        size_t found = 0;
        visit_crossovers(model, *backend, RowClass::some,
                         [&](const Plan&, const Op&, const Choice&) { ++found; });
        return found == 0;
    });
    return all;
}

}  // namespace

TEST_CASE("crossovers: values are widths of the class, or the last row of the class before") {
    const Backends backends = backends_with_ways();
    if (backends.empty()) RL_SKIP("no device here has two ways");
    for (const auto& backend : backends) {
        INFO(backend->device().name);
        size_t found = 0;
        const Model model = must(Model::inspect(demo(), 512));
        for (const RowClass rows : {RowClass::few, RowClass::some})
            visit_crossovers(model, *backend, rows, [&](const Plan&, const Op&, const Choice& one) {
                INFO(one.name);
                ++found;
                const uint32_t least = widths_of(rows).front() / 2, most = widths_of(rows).back();
                // The first may follow from the op's shape, or from other choices.
                for (size_t i = 1; i < one.values.size(); ++i)
                    CHECK((std::has_single_bit(one.values[i]) && one.values[i] >= least &&
                           one.values[i] <= most));
                CHECK(one.values.front() <= most);
                CHECK(one.usual.devices != "");
                CHECK(one.usual.source != "");
            });
        CHECK(found >= 2);
    }
}

TEST_CASE("tune: a crossover is timed at all widths of its class and put where a way stops being faster") {
    const Backends backends = backends_with_ways();
    if (backends.empty()) RL_SKIP("no device here has two ways");
    for (const auto& backend : backends) {
        INFO(backend->device().name);
        const Model model = must(Model::inspect(demo(), 512));
        TuneOptions how;
        how.copy_bytes = 1 << 20;
        for (const KernelChoices& kernel : must(kernel_choices(model, *backend, tune_options(), true)))
            how.known.insert({kernel.key, kernel.rows});
        // One of those that occur in steps of several rows: of a prompt's rows only the last has an output.
        std::optional<Variants::key_type> tuned_one;
        Choice choice;
        visit_crossovers(
            model, *backend, RowClass::some, [&](const Plan& plan, const Op& op, const Choice& one) {
                const Variants::key_type key = {kernel_key(op, plan), RowClass::some};
                if ((one.name != "few_rows" && one.name != "dot_rows") || !how.known.contains(key)) return;
                tuned_one = key;
                choice = one;
            });
        REQUIRE(tuned_one);
        how.known.erase(*tuned_one);
        for (const uint32_t best : {16u, 32u}) {
            std::set<uint32_t> widths;
            const auto rows_of = [&](const Variant& variant) {
                const auto value = variant.find(choice.name);
                return value != variant.end() ? value->second : choice.values.front();
            };
            // One way takes as long as it has rows, the other as long as `best` of them and a half.
            RuleClock clock([&](const TimedStep& what) {
                widths.insert(what.width);
                return (what.width <= rows_of(what.variant) ? double(what.width) : 1.5 * best) * 1e-4;
            });
            const Tuning tuning = must(tune(model, *backend, tune_options(), clock, how,
                                            [](const TunedKernel&) { return Status(); }));
            REQUIRE(tuning.kernels.size() == 1);
            INFO(tuning.kernels[0].op, ": ", variant_text(tuning.kernels[0].variant));
            CHECK(tuning.kernels[0].wrong.empty());
            CHECK(rows_of(tuning.kernels[0].variant) == best);
            CHECK(widths == std::set<uint32_t>{16, 32, 64, 128});
            backend->use({});
        }
    }
}

TEST_CASE("crossovers: the precision of results is that of the way that is taken") {
    const Backends backends = backends_with_ways();
    if (backends.empty()) RL_SKIP("no device here has two ways");
    for (const auto& backend : backends) {
        INFO(backend->device().name);
        const Model model = must(Model::inspect(demo(), 512));
        size_t moved = 0;
        visit_crossovers(
            model, *backend, RowClass::some, [&](const Plan& plan, const Op& op, const Choice& c) {
                if (c.name != "few_rows" && c.name != "dot_rows") return;
                INFO(op_text(op, plan), ", ", c.name);
                const auto precision_at = [&](uint32_t up_to, uint64_t rows) {
                    backend->use({{{kernel_key(op, plan), RowClass::some}, {{c.name, up_to}}}});
                    const Precision found = backend->kernel_for(op, plan)->precision(rows);
                    backend->use({});
                    return found;
                };
                for (const uint64_t rows : {9, 16, 17, 32})
                    for (const uint32_t up_to : {8u, 16u, 32u})
                        CHECK(precision_at(up_to, rows) == precision_at(rows <= up_to ? 32 : 8, 16));
                CHECK(precision_at(8, 16) != precision_at(32, 16));
                ++moved;
            });
        CHECK(moved > 0);
    }
}
