// Prompts of a split model, for which weights of the CPU flow through the device.
#include "places/stream.h"
#include "devices/device_choice.h"
#include "host/split.h"
#include "support/backends.h"
#include "support/cuts.h"
#include "support/models.h"

#include <set>

using namespace redline;
using namespace redline::test;

namespace {

constexpr size_t kPrompt = 30;  // tokens that are read in chunks of kBatch; the others one by one

// The CPU first.
Backends& backends() {
    static Backends all = [] {
        Backends made;
        made.push_back(must(open_backend("cpu", {.threads = 2, .guarded = true})));
        add_devices(made, true);
        at_end([] { backends().clear(); });
        return made;
    }();
    return all;
}

SessionOptions options_of(std::vector<Placement> placements, uint32_t stream_rows) {
    SessionOptions options{kSizing.context, kBatch, kBatch, kSizing.types};
    options.placements = std::move(placements);
    options.stream_rows = stream_rows;
    return options;
}

std::vector<Placement> split_of(const Model& model, Backend& device, const SplitWish& wish) {
    auto placements =
        must(split_model(model, options_of({}, 0), {backends()[0].get(), {&device}}, wish)).placements;
    const size_t end = placements.back().last;
    if (wish.layers == 0) placements.push_back({&device, end, end});
    return placements;
}

std::vector<float> logits_of(const Model& model, const SessionOptions& options) {
    const std::vector<Token> tokens = golden_tokens();
    Session session = must(Session::create(model, options));
    std::vector<float> out;
    const auto sink = [&](size_t, std::span<const float> rows) {
        out.insert(out.end(), rows.begin(), rows.end());
    };
    must(session.feed_all(std::span(tokens).first(kPrompt), sink));
    for (size_t at = kPrompt; at < tokens.size(); ++at)
        must(session.feed_all(std::span(tokens).subspan(at, 1), sink));
    return out;
}

uint64_t need_on(const Model& model, const SessionOptions& options, const Backend& device) {
    const std::vector<Backend*> all = backends_of(options.placements);
    const std::vector<MemoryNeed> needs = must(memory_needs(model, options));
    for (size_t i = 0; i < all.size(); ++i)
        if (all[i] == &device) return needs[i].total();
    return 0;
}

// Splits of a model: every number of layers, of which none has the device for prompts alone, and the experts
// of any number of layers.
std::vector<SplitWish> wishes(const Model& model) {
    std::vector<SplitWish> all;
    for (uint32_t layers = 0; layers < model.config().layers; ++layers) all.push_back({layers});
    if (model.config().experts > 0)
        for (uint32_t experts = 1; experts <= model.config().layers; ++experts)
            all.push_back({model.config().layers, experts});
    return all;
}

}  // namespace

TEST_CASE("stream: prompts through the device give the model's logits, however it is split") {
    for (const std::string name : {"llama3", "gemma3", "qwen3moe", "lfm2", "qwen35", "deepseek2-lite"}) {
        const Matrix want = read_npy(golden("models/" + name + ".npy"));
        const Model model = tiny(name);
        for (size_t i = 1; i < backends().size(); ++i) {
            Backend& device = *backends()[i];
            const double bound = std::max(golden_bound(*backends()[0], name), golden_bound(device, name));
            for (const SplitWish& wish : wishes(model)) {
                INFO(name, ", ", wish.layers, " layers without the experts of ", wish.experts, " on ",
                     device.device().detail);
                const SessionOptions plain = options_of(split_of(model, device, wish), 0),
                                     options = options_of(plain.placements, 2);
                if (plain.placements.size() == 1) continue;  // a layer without experts
                CHECK(need_on(model, options, device) > need_on(model, plain, device));
                CHECK(relative_error(logits_of(model, options), want.values) < bound);
            }
        }
    }
}

TEST_CASE("stream: what is slower than predicted is computed on the CPU from then on, and said once") {
    const Matrix want = read_npy(golden("models/llama3.npy"));
    const Model model = tiny("llama3");
    const std::vector<Token> tokens = golden_tokens();
    for (size_t i = 1; i < backends().size(); ++i) {
        Backend& device = *backends()[i];
        INFO("on ", device.device().detail);
        SessionOptions options = options_of(split_of(model, device, {1}), 2);
        std::vector<std::string> told;
        // A second passes whenever the clock is looked at: twice for each layer whose weights flow.
        double seconds = 0.0;
        uint64_t looks = 0;
        options.stream_expected = {1e-6, [&](const std::string& slow) { told.push_back(slow); },
                                   [&] { return ++looks, seconds += 1.0; }};
        CHECK(relative_error(logits_of(model, options), want.values) <
              std::max(golden_bound(*backends()[0], "llama3"), golden_bound(device, "llama3")));
        Session session = must(Session::create(model, options));
        told.clear();
        std::vector<uint64_t> looks_of;
        std::vector<float> logits;
        for (size_t at = 0; at + 4 <= 20; at += 4) {
            looks = 0;
            must(session.feed(std::span(tokens).subspan(at, 4)));
            looks_of.push_back(looks);
        }
        CHECK(looks_of[0] > 2);
        CHECK(looks_of == std::vector<uint64_t>{looks_of[0], looks_of[0], 2, 2, 2});
        REQUIRE(told.size() == 1);
        CHECK(told[0].find("slower than predicted") != std::string::npos);
        // More rows than were ever slow have not been tried.
        looks = 0;
        must(session.feed(std::span(tokens).subspan(20, kBatch)));
        CHECK(looks == looks_of[0]);
        // Once whole batches are slow, too, what the device kept for the weights is given back.
        const uint64_t flowing = device.allocated();
        for (int step = 0; step < 3; ++step) {
            session.rewind(0);
            must(session.feed(std::span(tokens).first(kBatch)));
        }
        CHECK(device.allocated() < flowing);
    }
}

TEST_CASE("stream: the faster way is kept, as measured") {
    size_t told = 0;
    const StreamExpectation expected{1.0, [&](const std::string&) { ++told; }};
    const auto streamed = [](StreamWatch& watch, uint32_t rows, double layers) {
        const bool flows = watch.begin(rows);
        if (!flows) return false;
        watch.add_layer(layers);
        watch.streamed(rows, layers + 1.0);
        return true;
    };
    StreamWatch as_predicted(8, expected);
    CHECK_FALSE(streamed(as_predicted, 7, 99.0));
    for (int i = 0; i < 9; ++i) CHECK(streamed(as_predicted, 8, i % 2 ? 7.0 : 99.0));  // never two in a row

    StreamWatch cpu_is_slow(8, expected);
    CHECK(streamed(cpu_is_slow, 16, 20.0));
    CHECK(streamed(cpu_is_slow, 16, 19.0));
    CHECK_FALSE(cpu_is_slow.begin(16));
    CHECK(cpu_is_slow.begin(17));
    cpu_is_slow.computed(4, 0.1);  // too few rows to say anything
    CHECK_FALSE(cpu_is_slow.begin(16));
    cpu_is_slow.computed(16, 21.0);
    for (int i = 0; i < 9; ++i) CHECK(streamed(cpu_is_slow, 16, 99.0));
    CHECK(told == 0);

    StreamWatch few_rows_are_slow(8, expected);
    CHECK(streamed(few_rows_are_slow, 8, 20.0));
    CHECK(streamed(few_rows_are_slow, 9, 20.0));
    few_rows_are_slow.begin(9);
    few_rows_are_slow.computed(9, 10.0);
    CHECK_FALSE(few_rows_are_slow.begin(9));
    CHECK(streamed(few_rows_are_slow, 20, 19.0));
    CHECK(told == 1);

    StreamWatch ordered(8, {});
    for (int i = 0; i < 9; ++i) CHECK(streamed(ordered, 8, 99.0));
}

TEST_CASE("stream: few rows, tables and the embedding stay where they are, and halves take turns") {
    const Model model = tiny("qwen3moe");
    for (size_t i = 1; i < backends().size(); ++i) {
        Backend& device = *backends()[i];
        INFO("on ", device.device().detail);
        const std::vector<Placement> placements = split_of(model, device, {1});
        Plan plan = must(model.plan(kBatch, kBatch, kSizing));
        plan.weights.assign(model.file_weights().begin(), model.file_weights().end());
        const auto streamed = plan_stream(plan, placements);
        REQUIRE(streamed);
        CHECK(streamed->parts.front().place == StreamedPlan::Place::cpu);
        CHECK(streamed->parts.back().place == StreamedPlan::Place::device);
        uint64_t bytes = 0, layers = 0;
        std::set<uint32_t> used[2];
        for (const StreamedPlan::Part& part : streamed->parts) {
            if (part.place != StreamedPlan::Place::streamed) continue;
            for (const uint32_t weight : part.weights) used[layers % 2].insert(weight);
            for (const WeightInfo& weight : part.plan.plan.weights)
                if (weight.role == WeightRole::matrix) bytes += weight.tensor.bytes();
            ++layers;
        }
        CHECK(layers == model.config().layers - 1);
        uint64_t of_formats = 0;
        for (const auto& [format, format_bytes] : streamed->streamed_formats()) of_formats += format_bytes;
        CHECK(of_formats == bytes);
        for (const uint32_t weight : used[0]) CHECK(used[1].count(weight) == 0);
        uint64_t staged = 0;
        for (const WeightInfo& weight : streamed->weights)
            if (weight.role == WeightRole::matrix) staged += weight.tensor.bytes();
        CHECK(staged <= bytes);
    }
    // The CPU's weights flow through no CPU.
    const auto other = must(open_backend("cpu", {.threads = 1}));
    const Plan plan = must(model.plan(kBatch, kBatch, kSizing));
    CHECK_FALSE(plan_stream(plan, split_of(model, *other, {1})));
}

TEST_CASE("stream: what is planned is what is allocated, and cancelling leaves a session that goes on") {
    const Model model = tiny("llama3");
    const std::vector<Token> tokens = golden_tokens();
    Backends plain;
    add_devices(plain, false);
    for (const auto& device : plain) {
        INFO("on ", device->device().detail);
        const SessionOptions options = options_of(split_of(model, *device, {1}), 4);
        const uint64_t planned = need_on(model, options, *device), before = device->allocated();
        std::vector<float> whole, again;
        {
            Session session = must(Session::create(model, options));
            must(session.feed(tokens));
            whole.assign(session.logits().begin(), session.logits().end());
            CHECK(device->allocated() - before <= planned);
        }
        CHECK(device->allocated() == before);
        Session session = must(Session::create(model, options));
        std::atomic<bool> cancel{true};
        CHECK_FALSE(session.feed(tokens, &cancel).ok());
        cancel = false;
        session.rewind(0);
        must(session.feed(tokens, &cancel));
        again.assign(session.logits().begin(), session.logits().end());
        CHECK(again == whole);
    }
}

TEST_CASE("stream: memory that is not to be had leaves nothing behind, a hundred times, and then all works") {
    const std::unique_ptr<Backend> device = open_wanted("hip");
    if (!device || device->device().name.find("double") == std::string::npos)
        RL_SKIP("HIP's double is not what runs here");
    const Model model = tiny("llama3");
    const std::vector<Token> tokens = golden_tokens();
    const SessionOptions options = options_of(split_of(model, *device, {1}), 4);
    const auto read = [&]() -> Result<std::vector<float>> {
        Session session = RL_TRY(Session::create(model, options));
        RL_TRY(session.feed(tokens));
        return std::vector<float>(session.logits().begin(), session.logits().end());
    };
    const uint64_t before = device->allocated();
    const std::vector<float> whole = must(read());
    size_t failures = 0;
    while (failures < 100) {
        const size_t begun = failures;
        for (const std::string function : {"hipMalloc", "hipHostMalloc"})
            for (int call = 1;; ++call) {
                ::setenv("RL_HIP_DOUBLE_FAIL", fmt::format("{} {} 2", function, call).c_str(), 1);
                const auto got = read();
                ::unsetenv("RL_HIP_DOUBLE_FAIL");
                CHECK(device->allocated() == before);
                if (got.ok()) break;
                ++failures;
                CHECK(must(read()) == whole);
            }
        REQUIRE(failures > begun);
    }
}
