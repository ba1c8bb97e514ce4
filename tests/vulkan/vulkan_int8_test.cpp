// Products of many rows in int8, on matrix units and by dot products, which are a choice of the kernels that
// multiply halfs or floats.
#ifdef RL_VULKAN
#include "backends/vulkan/ops/steps.h"
#include "measure/comparison.h"
#include "plan/kernel_key.h"
#include "support/share.h"
#include "support/vulkan_case.h"

using namespace redline;
using namespace redline::test;

namespace {

const Format& q4_0 = *find_format("Q4_0");
const Format& q8_0 = *find_format("Q8_0");
const Format& q4_k = *find_format("Q4_K");
const Format& q6_k = *find_format("Q6_K");

// How products of codes are computed: the level that a device is opened at, and what modules are called.
struct Way {
    std::string level, stem;
    std::string linear() const { return "linear_coop_" + stem; }
    std::string expert() const { return "expert_coop_" + stem; }
    bool matrices() const { return level == "matrix"; }
};
const Way kWays[] = {{"matrix", "int8"}, {"dot", "dots"}};

// Null where the device or this build cannot go that way.
std::unique_ptr<vulkan::VulkanBackend> open_with(const Way& way) {
    auto backend = open_vulkan("", way.level);
    if (!backend) return nullptr;
    if (vulkan::int8_module(backend->opened(), "linear_coop", *weight_layout(q8_0)).starts_with(way.linear()))
        return backend;
    not_tested(way.matrices() ? "matrices of int8: the device has none, or redline was built without them"
                              : "tiles of dot products: the device has none");
    return nullptr;
}
// Runs a check in each way that there is.
template <class Check>
void in_each_way(const Check& check) {
    bool any = false;
    for (const Way& way : kWays)
        if (const auto backend = open_with(way)) {
            CAPTURE(way.stem);
            check(way, *backend);
            any = true;
        }
    if (!any) RL_SKIP("there is no Vulkan device with what this needs");
}

// Gives the kernels of a case their choice of int8 in steps of its rows, until it goes.
class InInt8 {
public:
    InInt8(const OpCase& c, const Plan& plan, Backend& backend) : backend_(backend) {
        const BoundPlan bound = must(lower(plan, backend));
        Variants all;
        for (const Step& step : bound.plan.steps)
            all[{kernel_key(step.op, bound.plan), row_class_of(c.rows)}] = {{"int8", 1},
                                                                            {"gated_int8", 1},
                                                                            {"sum_int8", 1},
                                                                            {"shared_gated_int8", 1},
                                                                            {"shared_sum_int8", 1}};
        backend.use(std::move(all));
    }
    ~InInt8() { backend_.use({}); }

private:
    Backend& backend_;
};

// The results of a case whose kernels have the choice of int8, compared with the reference.
Comparison compare_in_int8(const OpCase& c, Backend& backend) {
    Fixture fixture(1, c.rows);
    if (c.levels) fixture.hold_levels();
    const Plan plan = must(case_plan(c, fixture, c.rows, c.rows));
    const InInt8 chosen(c, plan, backend);
    const BoundPlan bound = must(lower(plan, backend));
    std::vector<int32_t> tokens(c.rows);
    std::iota(tokens.begin(), tokens.end(), 0);
    const SequenceStep step(tokens, 0, c.rows);
    Reference reference(bound.plan, fixture.decoded(backend));
    reference.run(step, precisions(bound, step));
    Fixture again(1, c.rows);
    if (c.levels) again.hold_levels();
    return compare(output_of(c, backend, again, false), reference.output());
}

void check_in_int8(const OpCase& c, Backend& backend) {
    CAPTURE(c.name);
    const Comparison got = compare_in_int8(c, backend);
    INFO("worst at ", got.worst, ": got ", got.got, ", want ", got.want, ", bound ", got.bound, "; ",
         got.outside, " of ", got.count, " outside; spread ", got.spread, ", farthest ", got.farthest);
    CHECK(got.worst_fraction <= 1.0);
    CHECK(by_chance(got, c.alike ? kAlike : 1.0));
}

// How many pipelines were made of a module whose name begins so.
size_t made(vulkan::VulkanBackend& backend, std::string_view module) {
    const auto& all = backend.pipelines().all();
    return size_t(std::ranges::count_if(all, [&](const auto& one) { return one.first.starts_with(module); }));
}

// Activations with a huge element in some units of 32 columns, zeros in others, and rows of zeros and of the
// smallest floats.
OpCase uneven_case(const Format& format, uint32_t rows, uint64_t n, uint64_t k) {
    OpCase c;
    c.name = fmt::format("linear {} {}x{} rows {} of uneven activations", format.name, n, k, rows);
    c.rows = rows;
    c.declare = [=, &format](Fixture& f) -> OpCase::Build {
        std::vector<float> values(rows * k);
        for (size_t i = 0; i < values.size(); ++i) {
            const size_t row = i / k, unit = i % k / 32;
            const float some = float(int(i * 2654435761u >> 8 & 2047) - 1024) / 1024.0f;
            values[i] = row % 7 == 3                          ? 0.0f
                        : row % 7 == 5                        ? some * 1e-39f
                        : unit % 3 == 1                       ? 0.0f
                        : unit % 3 == 2 && i % 32 == row % 32 ? 3e4f
                                                              : some;
        }
        const Weight x = f.input(values, k), w = f.matrix(format, n, k);
        return [=](PlanBuilder& p) { return p.linear(p.embed(x), w); };
    };
    return c;
}

}  // namespace

TEST_CASE("vulkan: products of 9 and more rows in int8 are within the bound, with weights of every format") {
    in_each_way([](const Way& way, vulkan::VulkanBackend& backend) {
        const Share share = share_of_cases();
        size_t number = 0;
        for (const Format* format : all_formats()) {
            const WeightLayout* layout = weight_layout(*format);
            if (!layout || vulkan::int8_module(backend.opened(), "linear_coop", *layout).empty()) continue;
            // Columns of which the last tile has a part, rows and tokens that fill no tile, and some that do.
            const uint64_t odd = format->block <= 32 ? 288 : format->block == 64 ? 320 : 1280;
            const OpCase cases[] = {linear_case(*format, 70, 37, odd, {true, true, true}),
                                    of_levels(linear_case(*format, 9, 128, 512, {})),
                                    of_levels(gated_case(*format, Act::silu, false, 66, 70, odd)),
                                    gated_case(*format, Act::gelu_tanh, true, 33, 37, 256),
                                    linear_case(*format, 133, 128, 256, {false, true, false})};
            for (const OpCase& c : cases)
                if (share.takes(number++, c.name)) check_in_int8(c, backend);
        }
        CHECK(made(backend, way.linear()) + made(backend, "gated_coop_" + way.stem) > 0);
    });
}

TEST_CASE("vulkan: products in int8 are as exact with activations of any sizes") {
    in_each_way([](const Way& way, vulkan::VulkanBackend& backend) {
        check_in_int8(uneven_case(q4_0, 70, 65, 288), backend);
        check_in_int8(uneven_case(q4_k, way.matrices() ? 14 : 30, 40, 512), backend);
        CHECK(made(backend, way.linear() + ".") == 2);
    });
}

TEST_CASE("vulkan: the products of a group are in int8 together, or none is") {
    in_each_way([](const Way& way, vulkan::VulkanBackend& backend) {
        check_in_int8(group_case(q8_0, q4_k, 70), backend);
        CHECK(made(backend, way.linear() + ".") == 2);
        check_in_int8(group_case(q8_0, *find_format("F16"), 70), backend);
        CHECK(made(backend, way.linear() + ".") == 2);
        if (way.matrices()) CHECK(made(backend, "linear_coop.f16") == 1);
        check_in_int8(four_group_case(q4_k, q6_k, 130), backend);
        const bool halves =
            !vulkan::int8_module(backend.opened(), "linear_coop", *weight_layout(q6_k)).empty();
        CHECK(made(backend, way.linear() + "_halves.q6_k") == (halves ? 1 : 0));
    });
}

TEST_CASE("vulkan: without the choice products are of halfs, and kernels without int8 offer none") {
    in_each_way([](const Way& way, vulkan::VulkanBackend& backend) {
        const OpCase c = linear_case(q8_0, 70, 37, 256, {});
        CHECK(off_reference(c, backend) <= 1.0);
        CHECK(made(backend, way.linear()) == 0);
        const auto offers = [&](const Format& format, RowClass rows) {
            Fixture fixture(1, 200);
            const Plan plan = must(case_plan(linear_case(format, 200, 37, 256, {}), fixture, 200, 200));
            for (const Step& step : plan.steps)
                for (const Choice& one : backend.choices_for(step.op, plan, rows))
                    if (one.name == "int8") return one.values == std::vector<uint32_t>{0, 1};
            return false;
        };
        CHECK(offers(q8_0, RowClass::some));
        CHECK(offers(q8_0, RowClass::many));
        CHECK_FALSE(offers(q8_0, RowClass::one));
        CHECK_FALSE(offers(q8_0, RowClass::few));
        CHECK_FALSE(offers(*find_format("F16"), RowClass::many));
    });
}

TEST_CASE("vulkan: places that are sorted by expert are multiplied in int8 within the bound") {
    in_each_way([](const Way& way, vulkan::VulkanBackend& backend) {
        for (OpCase c :
             {many_rows_case(q8_0, {3, 2, 96, 160}, 150), many_rows_case(q4_k, {8, 2, 256, 256, 7}, 70),
              biased_experts_case(q4_0, {4, 2, 96, 160}, 40)}) {
            c.alike = true;  // the second product's activations are rounded sums of the first
            check_in_int8(c, backend);
        }
        check_in_int8(expert_linear_case(q8_0, 65, true, true), backend);
        check_in_int8(of_levels(expert_linear_case(q4_k, 65, false, false)), backend);
        CHECK(made(backend, way.expert() + ".") > 2);
        CHECK(made(backend, "expert_coop.") == 0);
    });
}
#endif
