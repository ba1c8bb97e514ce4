// Variants of kernels: each computes correct results; the tuner finds the fastest by the test's clock, stores
// it, and the program uses it.
#include "devices/device_choice.h"
#include "host/tuned.h"
#include "measure/device_file.h"
#include "measure/op_alone.h"
#include "measure/quick_tune.h"
#include "support/fake_clock.h"

#include <fstream>
#include <set>
#include <thread>

using namespace redline;
using namespace redline::test;

namespace {

void write_text(const std::string& path, const std::string& text) {
    std::ofstream(path, std::ios::binary) << text;
}

// The number of variants that have none in `met`: each value of each choice by itself; `last_only`: one of
// each choice.
size_t check_variants(const Model& model, Backend& backend, bool last_only,
                      std::set<Variants::key_type>& met) {
    size_t variants = 0;
    std::vector<Plan> plans;
    for (const Plan& plan : must(engine_plans(model, tune_options())))
        plans.push_back(must(lower(plan, backend)).plan);
    for (const Plan& plan : plans)
        for (size_t i = 0; i < plan.steps.size(); ++i)
            for (const RowClass rows : kRowClassList) {
                const Op& op = plan.steps[i].op;
                if ((rows == RowClass::one) != (plan.max_rows == 1)) continue;
                if (!met.insert({kernel_key(op, plan), rows}).second) continue;
                for (const Choice& choice : backend.choices_for(op, plan, rows))
                    for (size_t v = last_only ? choice.values.size() - 1 : 1; v < choice.values.size(); ++v) {
                        if (v == 0) continue;
                        const Variant variant = {{choice.name, choice.values[v]}};
                        INFO(kernel_key(op, plan), ", ", row_class_name(rows), ": ", variant_text(variant));
                        CHECK(must(wrong_variant(plan, i, rows, variant, backend)) == "");
                        ++variants;
                    }
            }
    return variants;
}

}  // namespace

TEST_CASE("variants: every value of every choice computes what the reference does") {
    for (const auto& backend : gpu_backends()) {
        INFO(backend->device().name);
        // The CPU's driver of Vulkan takes long to compile kernels.
        const char* const wanted = std::getenv("RL_TEST_VARIANTS");
        const bool all = wanted && std::string_view(wanted) == "all", some = all || !backend->device().on_cpu;
        std::set<Variants::key_type> met;
        size_t variants = 0;
        const auto check = [&](const std::string& path, bool last_only) {
            INFO(path);
            const Model model = must(Model::inspect(path, 512));
            variants += check_variants(model, *backend, last_only, met);
        };
        check(golden("models/llama3.gguf"), !some);
        if (some) {
            check(golden("models/qwen3moe.gguf"), false);
            check(demo(), false);
            // Latent attention, entries, the delta rule, and state spaces.
            for (const char* name : {"deepseek2-lite", "deepseek4", "qwen35", "mamba2"})
                check(golden(fmt::format("models/{}.gguf", name)), !all);
        }
        CHECK(variants >= 10);
        MESSAGE(backend->device().name, ": ", variants, " variants");
    }
}

TEST_CASE("variants: all choices of kernels are listed, with meaning, and why the default is one") {
    for (const auto& backend : gpu_backends()) {
        INFO(backend->device().name);
        std::set<std::string> names;
        for (const char* name : {"llama3", "qwen3moe", "deepseek2-lite", "deepseek4", "qwen35", "mamba2"}) {
            const Model model = must(Model::inspect(golden(fmt::format("models/{}.gguf", name)), 512));
            const auto all = must(kernel_choices(model, *backend, tune_options(), true));
            CHECK(!all.empty());
            for (const KernelChoices& kernel : all) {
                INFO(kernel.key, ", ", row_class_name(kernel.rows));
                CHECK(!kernel.choices.empty());
                CHECK(kernel.count > 0);
                CHECK(kernel.variant.empty());
                for (const Choice& choice : kernel.choices) {
                    INFO(choice.name);
                    CHECK(choice_meaning(choice.name) != "");
                    CHECK(choice.usual.devices != "");
                    CHECK(choice.usual.source != "");
                    CHECK(choice.usual.date != "");
                    names.insert(choice.name);
                }
            }
        }
        CHECK(names.size() >= 4);
    }
}

TEST_CASE("tune: the fastest values are found, one choice after the other, and kept") {
    for (const auto& backend : gpu_backends()) {
        INFO(backend->device().name);
        const Model model = must(Model::inspect(golden("models/llama3.gguf"), 512));
        const CacheFolder folder;
        FakeClock clock;
        TuneOptions how;
        how.prompts = !backend->device().on_cpu;
        const Tuning tuning = tuned(model, *backend, clock, how);
        CHECK(tuning.complete);
        REQUIRE(tuning.kernels.size() >= 3);
        size_t faster = 0;
        for (const TunedKernel& kernel : tuning.kernels) {
            INFO(kernel.key, ", ", row_class_name(kernel.rows), ": ", variant_text(kernel.variant));
            CHECK(kernel.seconds <= kernel.default_seconds);
            CHECK(kernel.wrong.empty());
            CHECK((kernel.variant.empty() || kernel.gain() >= (kernel.rows == RowClass::one ? 0.05 : 0.02)));
            double expected = kernel.default_seconds;
            for (const auto& [name, value] : kernel.variant) expected *= factor_of(name, value);
            CHECK(kernel.seconds == doctest::Approx(expected));
            faster += !kernel.variant.empty();
            must(keep_tuned(folder.path, *backend, {&kernel, 1}));
        }
        CHECK(faster >= 1);
        CHECK(saved_share(tuning.kernels, RowClass::one) > 0.0);
        CHECK(backend->variants().size() == faster);
        CHECK(tuned_variants(folder.path, *backend) == backend->variants());
        if (backend->device().on_cpu) continue;
        // The same again: the order of measurements changes nothing.
        FakeClock again;
        const Variants before = backend->variants();
        tuned(model, *backend, again);
        CHECK(backend->variants() == before);
    }
}

bool is_attention(const std::string& key) {
    return key.starts_with("att");
}

TEST_CASE("tune: copies of an operation wait for each other, also where steps that share nothing do not") {
    for (const auto& backend : gpu_backends()) {
        INFO(backend->device().name);
        const Model model = must(Model::inspect(golden("models/llama3.gguf"), 512));
        const Plan plan = must(lower(must(engine_plans(model, tune_options()))[0], *backend)).plan;
        std::set<std::string> met;
        for (const Step& step : plan.steps) {
            if (!stands_alone(step.op) || !met.insert(kernel_key(step.op, plan)).second) continue;
            INFO(kernel_key(step.op, plan));
            constexpr uint32_t kTimes = 4;
            const OpAlone alone = must(op_repeated(step.op, plan, 1, {}, kTimes, 1));
            const Plan timed = must(lower(alone.plan, *backend)).plan;
            uint32_t copies = 1;
            for (size_t i = 1; i < timed.steps.size(); ++i) {
                if (timed.steps[i].layer == timed.steps[i - 1].layer) continue;
                ++copies;
                CHECK(timed.steps[i].barrier);
            }
            CHECK(copies == kTimes);
        }
        CHECK(met.size() >= 3);
    }
}

TEST_CASE(
    "tune: what attention takes is timed behind few tokens and behind many, however small the context") {
    for (const auto& backend : gpu_backends()) {
        INFO(backend->device().name);
        const Model model = must(Model::inspect(golden("models/phi4-mini-short.gguf")));
        REQUIRE(model.config().train_context > 2000);
        for (const double far : {1.5, 1.0}) {
            // No default is as fast behind few tokens as another variant, which behind many takes `far` as
            // long.
            RuleClock clock([&](const TimedStep& what) {
                const bool few = what.position < 1000,
                           other = !what.variant.empty() && is_attention(what.key);
                return (few ? 1e-3 : 1e-2) * (other ? (few ? 0.8 : far) : 1.0);
            });
            TuneOptions how;
            how.prompts = false;
            how.copy_bytes = 1 << 20;
            SessionOptions options = tune_options();
            options.context = 64;
            must(tune(model, *backend, options, clock, how, [](const TunedKernel&) { return Status(); }));
            size_t taken = 0;
            for (const auto& [key, variant] : backend->variants()) taken += is_attention(key.first);
            CHECK((taken > 0) == (far == 1.0));
            backend->use({});
        }
    }
}

TEST_CASE("tune: small gains are left, the time is kept, and what was found before an interruption stays") {
    for (const auto& backend : gpu_backends()) {
        INFO(backend->device().name);
        const Model model = must(Model::inspect(golden("models/llama3.gguf"), 512));
        FakeClock weak(0.02);
        if (!backend->device().on_cpu)
            for (const TunedKernel& kernel : tuned(model, *backend, weak).kernels)
                CHECK((kernel.variant.empty() ||
                       kernel.gain() >= (kernel.rows == RowClass::one ? 0.05 : 0.02)));
        FakeClock slow;
        TuneOptions how;
        how.seconds = 0.3;
        const Tuning part = tuned(model, *backend, slow, how);
        CHECK(!part.complete);
        CHECK(part.seconds >= 0.3);
        CHECK(part.seconds < 1.0);
        CHECK(part.kernels[0].rows == RowClass::one);
        std::atomic<bool> cancel = false;
        how.seconds = 0.0;
        how.cancel = &cancel;
        how.copy_bytes = 1 << 20;
        FakeClock clock;
        const Tuning stopped =
            must(tune(model, *backend, tune_options(), clock, how, [&](const TunedKernel&) {
                cancel = true;
                return Status();
            }));
        CHECK(stopped.kernels.size() == 1);
        CHECK(!stopped.complete);
    }
}

TEST_CASE(
    "quick tune: every kernel has one turn, what reads most first, and a whole tune stays a whole one") {
    for (const auto& backend : gpu_backends()) {
        INFO(backend->device().name);
        const Model model = must(Model::inspect(golden("models/llama3.gguf"), 512));
        const CacheFolder folder;
        TuneOptions how;
        how.copy_bytes = 1 << 20;
        const auto quick = [&](FakeClock& clock, bool again) {
            return must(quick_tune(model, *backend, tune_options(), clock, folder.path, again, how));
        };
        FakeClock clock;
        const QuickTune first = quick(clock, false);
        REQUIRE(first.kernels.size() >= 3);
        CHECK(first.kernels.size() == first.planned);
        CHECK(first.faster() >= 1);
        CHECK(clock.now() <= kQuickSeconds);
        for (const TunedKernel& kernel : first.kernels) CHECK(kernel.rows == RowClass::one);
        CHECK(backend->variants().size() == first.faster());
        CHECK(tuned_variants(folder.path, *backend) == backend->variants());
        CHECK(first.text("hip").find("times as fast") != std::string::npos);
        // All is known: nothing is timed, and what was found is still used.
        FakeClock idle;
        const Variants found = backend->variants();
        CHECK(quick(idle, false).planned == 0);
        CHECK(idle.now() == 0.0);
        CHECK(backend->variants() == found);
        // A full tune's findings are not timed again, whatever they were.
        TunedKernel whole = first.kernels[0];
        whole.variant = {{"threads", 77}};
        must(keep_tuned(folder.path, *backend, {&whole, 1}));
        FakeClock later;
        CHECK(quick(later, true).planned == first.planned - 1);
        CHECK(tuned_variants(folder.path, *backend).at({whole.key, whole.rows}) == whole.variant);
        CHECK(tuned_keys(folder.path, *backend, false).size() == 1);
        // A whole tune times all.
        if (backend->device().on_cpu) continue;
        FakeClock all;
        const Tuning tuning = tuned(model, *backend, all);
        CHECK(tuning.kernels.size() > first.planned);
        must(keep_tuned(folder.path, *backend, tuning.kernels));
        CHECK(tuned_keys(folder.path, *backend, false).size() == tuning.kernels.size());
    }
}

TEST_CASE("quick tune: variants that save little of a step are given up, in the file as well") {
    for (const auto& backend : gpu_backends()) {
        INFO(backend->device().name);
        const Model model = must(Model::inspect(golden("models/llama3.gguf"), 512));
        TuneOptions how;
        how.copy_bytes = 1 << 20;
        std::string key;
        {
            const CacheFolder folder;
            FakeClock clock;
            const QuickTune all =
                must(quick_tune(model, *backend, tune_options(), clock, folder.path, false, how));
            for (const TunedKernel& kernel : all.kernels)
                if (kernel.tried > 0 && key.empty()) key = kernel.key;
            backend->use({});
        }
        REQUIRE(!key.empty());
        for (const double others : {1e-3, 30e-3}) {
            const CacheFolder folder;
            RuleClock clock([&](const TimedStep& what) {
                return what.key != key ? others : what.variant.empty() ? 1e-3 : 0.5e-3;
            });
            const QuickTune found =
                must(quick_tune(model, *backend, tune_options(), clock, folder.path, false, how));
            CHECK(found.faster() == (others < 2e-3 ? 1 : 0));
            CHECK(tuned_variants(folder.path, *backend).size() == found.faster());
            CHECK(backend->variants().size() == found.faster());
            CHECK(tuned_keys(folder.path, *backend, true).size() == found.planned);
            backend->use({});
        }
    }
}

TEST_CASE("quick tune: five seconds are kept, and what there was no time for is not tried again") {
    for (const auto& backend : gpu_backends()) {
        INFO(backend->device().name);
        const Model model = must(Model::inspect(golden("models/llama3.gguf"), 512));
        const CacheFolder folder;
        TuneOptions how;
        how.copy_bytes = 1 << 20;
        FakeClock slow(1.0, 0.1);
        const QuickTune part =
            must(quick_tune(model, *backend, tune_options(), slow, folder.path, false, how));
        CHECK(part.kernels.size() >= 1);
        CHECK(part.kernels.size() < part.planned);
        CHECK(slow.now() < kQuickSeconds + 1.0);
        CHECK(part.text("hip").find(fmt::format("{} of {} timed", part.kernels.size(), part.planned)) !=
              std::string::npos);
        FakeClock clock;
        CHECK(must(quick_tune(model, *backend, tune_options(), clock, folder.path, false, how)).planned == 0);
        CHECK(tuned_keys(folder.path, *backend, true).size() == part.planned);
        CHECK(tuned_keys(folder.path, *backend, false).empty());
    }
}

TEST_CASE("tune: values that lie behind a slower one are not timed where only the nearest are") {
    for (const auto& backend : gpu_backends()) {
        INFO(backend->device().name);
        const Model model = must(Model::inspect(golden("models/llama3.gguf"), 512));
        const auto tried = [&](bool nearest) {
            TuneOptions how;
            how.prompts = false;
            how.nearest = nearest;
            // Everything but the default is slower: of each choice a value below and one above it are left.
            FakeClock slower(-1.0);
            size_t count = 0;
            for (const TunedKernel& kernel : tuned(model, *backend, slower, how).kernels) {
                CHECK(kernel.variant.empty());
                count += kernel.tried;
            }
            backend->use({});
            return count;
        };
        const size_t all = tried(false), nearest = tried(true);
        CHECK(nearest < all);
        CHECK(nearest > 0);
    }
}

TEST_CASE("tune: variants of what keeps a state compute what the default does") {
    for (const auto& backend : gpu_backends()) {
        INFO(backend->device().name);
        const Model model = must(Model::inspect(golden("models/qwen35moe.gguf"), 512));
        TuneOptions how;
        how.prompts = false;
        FakeClock clock;
        size_t with_state = 0;
        for (const TunedKernel& kernel : tuned(model, *backend, clock, how).kernels) {
            INFO(kernel.key, ": ", fmt::format("{}", fmt::join(kernel.wrong, "; ")));
            CHECK(kernel.wrong.empty());
            with_state += kernel.key.starts_with("delta_net") && kernel.tried > 0;
        }
        CHECK(with_state > 0);
    }
}

namespace {

// Runs the steps that it is asked for as well.
class RunningClock : public FakeClock {
public:
    Result<double> time(const TimedStep& what, const std::function<Status()>& step) override {
        RL_TRY(step());
        return FakeClock::time(what, step);
    }
};

}  // namespace

TEST_CASE("tune: attention that is timed behind many tokens and behind few is not called wrong") {
    for (const auto& backend : gpu_backends()) {
        INFO(backend->device().name);
        const Model model = must(Model::inspect(golden("models/llama3.gguf"), 2048));
        SessionOptions options = tune_options();
        options.context = 2048;
        TuneOptions how;
        how.prompts = false;
        how.copy_bytes = 1 << 20;
        RunningClock clock;
        const Tuning tuning =
            must(tune(model, *backend, options, clock, how, [](const TunedKernel&) { return Status(); }));
        size_t tried = 0;
        for (const TunedKernel& kernel : tuning.kernels) {
            INFO(kernel.key, ": ", fmt::format("{}", fmt::join(kernel.wrong, "; ")));
            CHECK(kernel.wrong.empty());
            if (is_attention(kernel.key)) tried += kernel.tried;
        }
        CHECK(tried > 0);
    }
}

TEST_CASE("quick tune: where nothing can be kept nothing is timed") {
    for (const auto& backend : gpu_backends()) {
        INFO(backend->device().name);
        const Model model = must(Model::inspect(golden("models/llama3.gguf"), 512));
        const CacheFolder folder;
        write_text(folder.path / "file", "");
        FakeClock clock;
        const auto tuned =
            quick_tune(model, *backend, tune_options(), clock, folder.path / "file" / "below", false);
        CHECK(!tuned);
        CHECK(clock.now() == 0.0);
        CHECK(backend->variants().empty());
    }
}

TEST_CASE("variants: with --precise kernels with activations in int8 run by default, others as found") {
    for (const auto& backend : gpu_backends()) {
        INFO(backend->device().name);
        const Variants before = backend->variants();
        const Variants found = {{{"a product", RowClass::many}, {{"int8", 1}, {"tile_rows", 64}}},
                                {{"experts", RowClass::some}, {{"gated_int8", 1}}},
                                {{"halfs", RowClass::many}, {{"int8", 0}, {"tile_rows", 64}}},
                                {{"attention", RowClass::one}, {{"threads", 128}}}};
        backend->use(found);
        HostOptions options;
        use_precise(*backend, options);
        CHECK(backend->variants() == found);
        options.precise = true;
        use_precise(*backend, options);
        CHECK(backend->variants().size() == 2);
        CHECK(backend->variants().count({"halfs", RowClass::many}) == 1);
        CHECK(backend->variants().count({"attention", RowClass::one}) == 1);
        backend->use(before);
    }
}

TEST_CASE("variants: what a kernel does not know is left out") {
    const Choices choices = {choice("threads", 128, {64, 256, 128}), choice("blocks", 64, {32}, true)};
    CHECK(choices[0].values == std::vector<uint32_t>{128, 64, 256});
    CHECK(allowed({{"threads", 64}, {"blocks", 77}}, choices) == Variant{{"threads", 64}, {"blocks", 77}});
    CHECK(allowed({{"threads", 128}, {"blocks", 0}, {"waves", 2}}, choices).empty());
    CHECK(allowed({{"threads", 63}}, choices).empty());
    CHECK(variant_text({}) == "default");
    CHECK(variant_text({{"threads", 64}, {"ahead", 2}}) == "ahead 2, threads 64");
}

TEST_CASE("tuning file: what is damaged, cut short or of another version counts as empty, and is mended") {
    const auto cpu = must(open_backend("cpu", {}));
    const CacheFolder folder;
    TunedKernel kernel;
    kernel.key = "linear";
    kernel.variant = {{"threads", 64}};
    std::string problem;
    CHECK(tuned_variants(folder.path, *cpu, &problem).empty());
    CHECK(problem == "");
    must(keep_tuned(folder.path, *cpu, {&kernel, 1}));
    CHECK(tuned_variants(folder.path, *cpu).size() == 1);
    const std::string path = folder.path / "tuning.json", whole = must(read_text_file(path));
    std::string older = whole;
    older.replace(older.find("\"version\": 2"), 12, "\"version\": 1");
    for (const std::string& text : {std::string("{"), std::string("[]"), std::string(),
                                    std::string("\0\xff", 2), whole.substr(0, whole.size() / 2), older}) {
        INFO(text);
        write_text(path, text);
        problem.clear();
        CHECK(tuned_variants(folder.path, *cpu, &problem).empty());
        CHECK(problem.find("tuning.json is ") != std::string::npos);
        must(keep_tuned(folder.path, *cpu, {&kernel, 1}));
        CHECK(tuned_variants(folder.path, *cpu).size() == 1);
    }
    // Values that are none are left out, the others are not.
    const std::string key = Json(device_key(*cpu)).dump();
    write_text(path,
               "{\"version\": 2, \"devices\": {" + key +
                   ": {\"kernels\": {\"a\": 3, \"b\": {\"1 row\": {\"variant\": {\"x\": -1, \"y\": \"2\", "
                   "\"z\": 3}}}}}}}");
    const Variants read = tuned_variants(folder.path, *cpu);
    REQUIRE(read.size() == 1);
    CHECK(read.begin()->second == Variant{{"z", 3}});
}

TEST_CASE("tuning file: writers take turns, so that none loses what another has found") {
    const auto cpu = must(open_backend("cpu", {}));
    const CacheFolder folder;
    constexpr int kWriters = 4, kEach = 8;
    {
        std::vector<std::jthread> writers;
        for (int w = 0; w < kWriters; ++w)
            writers.emplace_back([&, w] {
                for (int i = 0; i < kEach; ++i) {
                    TunedKernel kernel;
                    kernel.key = fmt::format("op {} of {}", i, w);
                    kernel.variant = {{"threads", uint32_t(i + 1)}};
                    static_cast<void>(keep_tuned(folder.path, *cpu, {&kernel, 1}).ok());
                }
            });
    }
    CHECK(tuned_variants(folder.path, *cpu).size() == kWriters * kEach);
}
