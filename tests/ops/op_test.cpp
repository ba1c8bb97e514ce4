// Every op on every backend of this build and level of this machine against the reference, within the bound
// that the reference computes from the data.
#include "cases/crossover_cases.h"
#include "devices/device_choice.h"
#include "measure/pages.h"
#include "reference/reference_product.h"
#include "support/backends.h"
#include "support/each_op.h"
#include "support/share.h"
#ifdef RL_VULKAN
#include "backends/vulkan/vulkan_backend.h"
#endif

#include <map>
#include <numeric>
#include <random>
#include <set>
#include <sstream>

using namespace redline;
using namespace redline::test;

namespace {

// RL_TEST_UNWAITED=1: steps do not wait for each other, which validation layers must complain of.
bool unwaited() {
    return std::getenv("RL_TEST_UNWAITED");
}

std::vector<std::unique_ptr<Backend>>& test_backends() {
    static auto backends = [] {
        at_end([] { test_backends().clear(); });
        // Guards give steps other memory, and other waits.
        return all_test_backends(!unwaited());
    }();
    return backends;
}

// RL_TEST_CASES=convolution takes those whose name has it; several may stand with | between.
bool chosen(const OpCase& c) {
    const char* const given = std::getenv("RL_TEST_CASES");
    if (!given) return true;
    std::istringstream in(given);
    for (std::string part; std::getline(in, part, '|');)
        if (c.name.find(part) != std::string::npos) return true;
    return false;
}

// RL_TEST_SHOW=1 says which case begins, beside what a device's runtime writes of it, and a hash of its
// results.
void show(const OpCase& c) {
    if (std::getenv("RL_TEST_SHOW")) std::fprintf(stderr, "[redline] case %s\n", c.name.c_str());
}
void show_results(const std::vector<float>& results) {
    const auto bytes = std::as_bytes(std::span(results));
    const std::string_view text(reinterpret_cast<const char*>(bytes.data()), bytes.size());
    if (std::getenv("RL_TEST_SHOW"))
        std::fprintf(stderr, "[redline] results %016zx\n", std::hash<std::string_view>()(text));
}

uint64_t inputs_of(const OpCase& c) {
    return c.position + c.rows;
}

// Rows of a sequence in the compared step.
uint64_t rows_of(const OpCase& c, uint32_t sequence, uint32_t sequences) {
    if (c.uneven) return sequence == sequences / 2 ? c.rows - (sequences - 1) : 1;
    return c.rows / sequences + (sequence < c.rows % sequences ? 1 : 0);
}

// Tokens before the compared step are fed in steps of this many.
constexpr uint32_t kFeedRows = 100;

// Feeds the tokens before the compared step, then that step, to `run`.
void feed(const OpCase& c, const Plan& plan,
          const std::function<void(const StepParams&, bool compared)>& run) {
    const std::vector<std::vector<uint32_t>> lists = scattered_pages(plan.caches, c.sequences);
    const std::vector<std::span<const uint32_t>> pages(lists.begin(), lists.end());
    std::vector<int32_t> tokens;
    std::vector<Row> rows;
    const auto add = [&](uint32_t sequence, uint64_t first, uint64_t count) {
        for (uint64_t p = first; p < first + count; ++p) {
            tokens.push_back(int32_t((p + 17 * sequence) % inputs_of(c)));
            rows.push_back({sequence, uint32_t(p)});
        }
    };
    const auto step = [&](bool compared) {
        std::vector<uint32_t> outputs(rows.size());
        std::iota(outputs.begin(), outputs.end(), 0u);
        StepParams params{tokens, rows, outputs, pages};
        const std::vector<float> lookups = case_lookups(plan, rows.size());
        params.lookups = lookups;
        run(params, compared);
        tokens.clear();
        rows.clear();
    };
    const uint32_t sequences = std::max(1u, c.sequences);
    const auto before = [&](uint32_t sequence) { return c.position + sequence * kFurtherTokens; };
    for (uint32_t s = 0; s < sequences; ++s)
        for (uint64_t p = 0; p < before(s); p += kFeedRows) {
            add(s, p, std::min<uint64_t>(kFeedRows, before(s) - p));
            step(false);
        }
    for (uint32_t s = 0; s < sequences; ++s) add(s, before(s), rows_of(c, s, sequences));
    step(true);
}

Plan record(const OpCase& c, Fixture& fixture) {
    const bool feeds = c.position > 0 || c.sequences > 1;
    const uint32_t rows = feeds ? std::max(c.rows, kFeedRows) : c.rows;
    Result<Plan> plan = case_plan(c, fixture, rows, rows);
    REQUIRE_MESSAGE(plan.ok(), c.name, ": ", plan.ok() ? "" : plan.error().message);
    return std::move(plan).value();
}

// The outputs of the compared step, with a separate cache.
std::vector<float> outputs_of(const OpCase& c, BoundPlan bound, Backend& backend, WeightStore& weights) {
    if (unwaited())
        for (Step& step : bound.plan.steps) step.barrier = false;
    const Plan plan = bound.plan;
    const auto cache = must(backend.make_caches(plan.caches));
    const auto executable = must(backend.record(std::move(bound), weights, *cache, Record::replay));
    feed(c, plan, [&](const StepParams& step, bool) { must(executable->run(step)); });
    return {executable->output().begin(), executable->output().end()};
}

// Along x, of kernels that stride; false where it cannot be told.
bool limit_groups([[maybe_unused]] Backend& backend, [[maybe_unused]] uint64_t most) {
#ifdef RL_VULKAN
    if (auto* const vulkan = dynamic_cast<vulkan::VulkanBackend*>(&backend)) {
        vulkan->opened().most_groups = most;
        return true;
    }
#endif
    return false;
}

// The reference values for the kernels of a lowered case, computed once for those of equal precision with the
// same weights: either as in the file or decoded to halves.
using Wanted = std::map<std::pair<std::vector<Precision>, bool>, std::vector<Bounded>>;
const std::vector<Bounded>& reference_for(const OpCase& c, const BoundPlan& bound, const Fixture& fixture,
                                          const Backend& backend, Wanted& wanted) {
    std::vector<Precision> of_core_ops;
    const std::vector<size_t> from = expand(bound.plan).from;
    feed(c, bound.plan, [&](const StepParams& step, bool) {
        const std::vector<Precision> all = precisions(bound, step);
        for (const size_t i : from) of_core_ops.push_back(all[i]);
    });
    const bool to_halfs = !decoded_formats(fixture.weights(), backend).empty();
    const auto [at, absent] = wanted.try_emplace({std::move(of_core_ops), to_halfs});
    if (absent) {
        Reference reference(bound.plan, fixture.decoded(backend));
        feed(c, bound.plan, [&](const StepParams& step, bool compared) {
            reference.run(step, precisions(bound, step), compared);
        });
        at->second = {reference.output().begin(), reference.output().end()};
    }
    return at->second;
}

// A case of one step, each op of which is held to the reference by itself; replayed, its outputs are the
// same.
void run_each_op(const OpCase& c, BoundPlan bound, const Fixture& fixture, Backend& backend,
                 WeightStore& weights) {
    const Plan plan = bound.plan;
    const auto caches = must(backend.make_caches(plan.caches));
    Reference reference(plan, fixture.decoded(backend));
    feed(c, plan, [&](const StepParams& step, bool) {
        const std::vector<Precision> held_to = precisions(bound, step);
        const auto executable = must(backend.record(std::move(bound), weights, *caches, Record::replay));
        check_each_op(*executable, reference, plan, step, held_to);
        const std::vector<float> traced(executable->output().begin(), executable->output().end());
        show_results(traced);
        must(executable->run(step));
        CHECK(std::ranges::equal(executable->output(), traced));
    });
}

// Sets the backend's variants, while this lives, to the case's variant for its lowered plan.
class CaseVariant {
public:
    CaseVariant(const OpCase& c, const Plan& plan, Backend& backend, bool fuse) : backend_(backend) {
        if (c.variant.empty()) return;
        const BoundPlan bound = must(lower(plan, backend, fuse));
        Variants all;
        for (const Step& step : bound.plan.steps)
            for (const RowClass rows : {RowClass::one, row_class_of(c.rows)})
                all[{kernel_key(step.op, bound.plan), rows}] = c.variant;
        backend.use(std::move(all));
    }
    ~CaseVariant() { backend_.use({}); }

private:
    Backend& backend_;
};

void run_case(const OpCase& c, std::map<std::string, double>& worst) {
    if (!chosen(c)) return;
    show(c);
    Fixture fixture(uint32_t(std::hash<std::string>()(c.name)), inputs_of(c));
    if (c.levels) fixture.hold_levels();
    const Plan plan = record(c, fixture);
    Wanted wanted;
    for (const auto& backend : test_backends())
        for (const bool fuse : {true, false}) {
            INFO(c.name, std::string(fuse ? " fused" : " decomposed"), " on ", backend->device().detail);
            if (c.cpu_only && backend->device().threads == 0) {
                const Result<BoundPlan> refused = lower(plan, *backend, fuse);
                REQUIRE_FALSE(refused.ok());
                CHECK(refused.error().message.ends_with("; the device cpu runs it"));
                continue;
            }
            const CaseVariant variant(c, plan, *backend, fuse);
            const auto weights = must(backend->load(fixture.weights(), fixture, {}));
            BoundPlan bound = must(lower(plan, *backend, fuse));
            if (c.each_op) {
                run_each_op(c, std::move(bound), fixture, *backend, *weights);
                continue;
            }
            const std::vector<Bounded>& want = reference_for(c, bound, fixture, *backend, wanted);
            const std::vector<float> outputs = outputs_of(c, std::move(bound), *backend, *weights);
            show_results(outputs);
            const Comparison got = compare(outputs, want);
            double& most = worst[backend->device().detail];
            most = std::max(most, got.worst_fraction);
            INFO("worst at ", got.worst, ": got ", got.got, ", want ", got.want, ", bound ", got.bound, "; ",
                 got.outside, " of ", got.count, " outside; NMSE ", got.nmse, "; spread ", got.spread,
                 ", farthest ", got.farthest);
            CHECK(got.worst_fraction <= 1.0);
            CHECK(got.loosest_bound <= kLoosestBound);
            CHECK(by_chance(got, c.alike ? kAlike : 1.0));
            CHECK(got.nmse < kLoosestBound * kLoosestBound);
            // With so few work-groups every kernel that strides has to; lavapipe ends loops after 65535
            // turns. Every third time: kernels have many cases each, and this doubles their time.
            static uint32_t turn = 0;
            if (turn++ % 3 != 0 || c.rows > 1000 || !limit_groups(*backend, 3)) continue;
            CHECK(outputs_of(c, must(lower(plan, *backend, fuse)), *backend, *weights) == outputs);
            limit_groups(*backend, UINT64_MAX);
        }
}

// A format that no backend here has kernels for is F16 to all of them.
bool any_has_kernels(const Format& format) {
    return std::any_of(test_backends().begin(), test_backends().end(),
                       [&](const auto& backend) { return backend->has_kernels(format); });
}

void run_share(const std::vector<OpCase>& cases, std::map<std::string, double>& worst) {
    const Share share = share_of_cases();
    for (size_t i = 0; i < cases.size(); ++i)
        if (share.takes(i, cases[i].name)) run_case(cases[i], worst);
    for (const auto& [device, fraction] : worst) MESSAGE(device, ": worst fraction of the bound ", fraction);
}

}  // namespace

TEST_CASE("every op, format, row class and fused flag is within its bound on every backend") {
    std::map<std::string, double> worst;
    std::vector<const Format*> formats, decoded;
    for (const Format* format : all_formats())
        (any_has_kernels(*format) ? formats : decoded).push_back(format);
    for (const Format* format : decoded) {
        for (const uint32_t rows : {1u, 33u}) run_case(linear_case(*format, rows, 37, 512, {}), worst);
        run_case(embed_case(*format, 5), worst);
    }
    run_share(op_cases(formats), worst);
}

// The CPU and Vulkan have one kernel each for what are several of HIP.
TEST_CASE("every kernel of HIP for a format, a row class or a type of cache is within its bound") {
    if (!wanted("hip")) RL_SKIP("HIP is not among the backends of this run");
    std::map<std::string, double> worst;
    std::vector<const Format*> formats;
    for (const Format* format : all_formats())
        if (any_has_kernels(*format)) formats.push_back(format);
    run_share(kernel_cases(formats), worst);
}

TEST_CASE("wherever the crossovers between ways lie, products and experts are within their bounds") {
    std::map<std::string, double> worst;
    run_share(crossover_cases(), worst);
}

TEST_CASE("a product that lacks some terms is told from one that is rounded, though it is within the bound") {
    constexpr size_t kCols = 4096, kRows = 64, kLacking = 64, kGroup = 16;
    std::mt19937 random(7);
    std::normal_distribution<double> normal;
    std::vector<Bounded> x(kCols);
    for (Bounded& value : x) {
        value.value = normal(random);
        value.magnitude = std::abs(value.value);
    }
    std::vector<double> rounded(kCols);
    for (size_t begin = 0; begin < kCols; begin += kGroup) {
        double most = 0.0;
        for (size_t i = begin; i < begin + kGroup; ++i) most = std::max(most, x[i].magnitude);
        for (size_t i = begin; i < begin + kGroup; ++i)
            rounded[i] = std::round(x[i].value / (most / 127)) * (most / 127);
    }
    Precision precision;
    precision.activations = to_int8(kGroup);
    ProductRow row(precision, x.data(), kCols, nullptr);
    std::vector<Bounded> want(kRows);
    std::vector<float> right(kRows), lacking(kRows), w(kCols);
    for (size_t r = 0; r < kRows; ++r) {
        for (float& weight : w) weight = float(normal(random));
        want[r] = row.dot(w.data());
        double sum = 0.0, left_out = 0.0;
        for (size_t i = 0; i < kCols; ++i) (i < kLacking ? left_out : sum) += double(w[i]) * rounded[i];
        right[r] = float(sum + left_out);
        lacking[r] = float(sum);
    }
    CHECK(compare(right, want).worst_fraction <= 1.0);
    CHECK(by_chance(compare(right, want)));
    CHECK(compare(lacking, want).worst_fraction <= 1.0);
    CHECK(compare(lacking, want).spread > kMostSpread);
    // So is a single one of them.
    const size_t worst = compare(lacking, want).worst;
    std::vector<float> one = right;
    one[worst] = lacking[worst];
    CHECK(compare(one, want).farthest > kFarthest);
}

TEST_CASE("every op that programs use has a case") {
    std::set<std::string_view> met = {Input::kName};  // of pipelines: pipeline_test has it
    const Format* const one[] = {find_format("Q8_0")};
    for (const OpCase& c : op_cases(one)) {
        if (c.rows > 8) continue;  // large weights, and no other ops
        Fixture fixture(1, inputs_of(c));
        const Plan plan = record(c, fixture);
        PlanBuilder parts = PlanBuilder::like(plan);
        for (const Step& step : plan.steps) parts.append(step.op);
        // Ops of a decomposition are appended, and visited later.
        for (size_t i = 0; i < parts.plan().steps.size(); ++i) {
            const Op op = parts.plan().steps[i].op;
            met.insert(op_name(op));
            decompose(op, parts);
        }
    }
    const auto look_for = [&](std::string_view name) {
        CAPTURE(name);
        CHECK(met.contains(name));
    };
    // Ops of several kinds have a name for each.
    const auto look_for_op = [&]<typename T>(const T&) {
        if constexpr (!requires(T op) { op.name(); }) look_for(T::kName);
    };
    const auto look_for_all = [&]<typename... Ops>(const std::variant<Ops...>&) {
        (look_for_op(Ops()), ...);
    };
    look_for_all(Op());
    for (const EachFacts& row : each_rows()) look_for(row.name);
    for (const StreamKind kind : {StreamKind::mix, StreamKind::add, StreamKind::dot, StreamKind::turn})
        look_for(StreamProduct{kind}.name());
    for (const Keys keys : {Keys::all, Keys::blocks, Keys::entries, Keys::latents})
        look_for(Attention{.keys = {keys}}.name());
    for (const char* const product :
         {"linear", "linear_group", "gated", "head_linear", "expert_linear", "expert_gated"})
        look_for(product);
}

TEST_CASE("a step of 8200 rows is within its bound: more heads and experts than a grid has work-groups") {
    std::map<std::string, double> worst;
    AttentionFlags near_keys;
    near_keys.window = 2;
    near_keys.cache = CacheType::f32;
    run_case(attention_case({40, 8, 8}, 8200, 0, near_keys), worst);
    run_case(many_rows_case(*find_format("F32"), {9, 8, 8, 8}, 8200), worst);
}

TEST_CASE("the random inputs of the cases are varied: within blocks, and from block to block") {
    Fixture fixture(1, 5);
    fixture.input(64);
    for (const Format* format : all_formats()) fixture.matrix(*format, 32, 512);
    const auto cpu = std::move(open_backend("cpu", {1})).value();
    const std::vector<std::vector<float>> decoded = fixture.decoded(*cpu);
    for (size_t i = 0; i < decoded.size(); ++i) {
        const std::vector<float>& values = decoded[i];
        const Format& format = *fixture.weights()[i].tensor.format;
        CAPTURE(format.name);
        const std::set<float> distinct(values.begin(), values.end());
        size_t most = 0;
        for (auto at = values.begin(); at != values.end(); at += format.block)
            most = std::max(most, std::set<float>(at, at + format.block).size());
        const uint32_t codes = format.name == "Q1_0" ? 2 : 3;  // that and the ternary formats have the fewest
        CHECK(most >= std::min(format.block, codes));
        CHECK(distinct.size() > most);
        CHECK(*distinct.begin() < 0.0f);
        CHECK(*distinct.rbegin() > 0.0f);
        CHECK(std::isfinite(*distinct.begin()));
        CHECK(std::isfinite(*distinct.rbegin()));
    }
}

TEST_CASE("a plan whose slots share memory gives what one without sharing gives, bit for bit") {
    const auto backend = test::cpu();  // guarded memory would have slots placed anew
    const OpCase c = gated_case(*find_format("Q8_0"), Act::silu, true, 9, 96, 64);
    Fixture fixture(7, 9);
    const Plan plan = record(c, fixture);
    const auto weights = must(backend->load(fixture.weights(), fixture, {}));
    BoundPlan shared = must(lower(plan, *backend, false)), apart = must(lower(plan, *backend, false));
    assign_arena(apart.plan, false);
    CHECK(shared.plan.arena_bytes < apart.plan.arena_bytes);
    const std::vector<float> want = outputs_of(c, std::move(apart), *backend, *weights);
    CHECK(outputs_of(c, std::move(shared), *backend, *weights) == want);
}
