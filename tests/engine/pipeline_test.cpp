// Pipelines of a plan's parts over several backends.
#include "places/pipeline.h"
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

// The CPU first, with threads that do not divide most sizes.
Backends& backends() {
    static Backends all = [] {
        Backends made;
        made.push_back(must(open_backend("cpu", {.threads = 3, .guarded = true})));
        add_devices(made, true);
        at_end([] { backends().clear(); });
        return made;
    }();
    return all;
}

// By how much logits may differ from those of transformers, whoever of the two computes a part.
double either_bound(Backend& first, Backend& second, const std::string& name) {
    return std::max(golden_bound(first, name), golden_bound(second, name));
}

// The CPU for many small pipelines, of which threads would wait for each other most of the time.
Backend& one_thread() {
    static Backends made = [] {
        Backends all;
        all.push_back(must(open_backend("cpu", {.threads = 1, .guarded = true})));
        return all;
    }();
    return *made.front();
}

// Every pair of places with the CPU in one of them.
std::vector<std::pair<Backend*, Backend*>> pairs() {
    std::vector<std::pair<Backend*, Backend*>> all;
    for (const auto& backend : backends()) {
        all.push_back({backends()[0].get(), backend.get()});
        if (all.size() > 1) all.push_back({backend.get(), backends()[0].get()});
    }
    return all;
}

Places halves(const Model& model, Backend& first, Backend& second, size_t at) {
    const Plan plan = divided(must(model.plan(1, 1, kSizing)));
    return must(Places::load(model, kSizing, {{{&first, 0, at}, {&second, at, plan.steps.size()}}}));
}

// Logits of all tokens: a prompt of several chunks, then single ones.
std::vector<float> logits_of(Places& places, const std::vector<Token>& tokens, bool fuse) {
    const auto caches = must(places.make_caches());
    const auto many = must(places.record(kBatch, kBatch, Record::replay, fuse));
    const auto single = must(places.record(1, 1, Record::replay, fuse));
    std::vector<float> out;
    for (size_t at = 0; at < tokens.size();) {
        const size_t rows = at < kPrompt ? std::min<size_t>(kBatch, kPrompt - at) : 1;
        Executable& executable = rows == 1 ? *single : *many;
        must(executable.run(
            SequenceStep(std::span<const Token>(tokens).subspan(at, rows), at, uint32_t(rows))));
        out.insert(out.end(), executable.output().begin(), executable.output().end());
        at += rows;
    }
    return out;
}

std::vector<float> session_logits(Session session, const std::vector<Token>& tokens) {
    std::vector<float> out;
    const auto sink = [&](size_t, std::span<const float> rows) {
        out.insert(out.end(), rows.begin(), rows.end());
    };
    must(session.feed_all(std::span(tokens).first(kPrompt), sink));
    for (size_t at = kPrompt; at < tokens.size(); ++at)
        must(session.feed_all(std::span(tokens).subspan(at, 1), sink));
    return out;
}

// Logits with a model's parts where the wish has them.
std::vector<float> split_logits(const Model& model, Backend& cpu, Backend& device, const SplitWish& wish,
                                const std::vector<Token>& tokens) {
    SessionOptions options{kSizing.context, kBatch, kBatch, kSizing.types};
    options.placements = must(split_model(model, options, {&cpu, {&device}}, wish)).placements;
    return session_logits(must(Session::create(model, options)), tokens);
}

std::vector<float> whole_logits(const std::string& name, Backend& backend, const std::vector<Token>& tokens) {
    const Model model = must(Model::load(golden("models/" + name + ".gguf"), backend, {kSizing.context, {}}));
    return session_logits(must(Session::create(model, {kSizing.context, kBatch, kBatch, kSizing.types})),
                          tokens);
}

}  // namespace

TEST_CASE("pipeline: a model cut between any two layers gives its logits, on any two backends") {
    const std::vector<Token> tokens = golden_tokens();
    for (const std::string name : {"llama3", "phi4-mini-short", "qwen3moe"}) {
        const Matrix want = read_npy(golden("models/" + name + ".npy"));
        const Model model = tiny(name);
        for (const auto& [first, second] : pairs()) {
            const bool one = first == second;
            const std::vector<float> whole = one ? whole_logits(name, *first, tokens) : std::vector<float>();
            for (const size_t at : layer_ends(divided(must(model.plan(1, 1, kSizing))))) {
                INFO(name, " cut before step ", at, ", on ", first->device().detail, " and ",
                     second->device().detail);
                Places places = halves(model, *first, *second, at);
                for (const bool fuse : {true, false}) {
                    const std::vector<float> got = logits_of(places, tokens, fuse);
                    CHECK(relative_error(got, want.values) < either_bound(*first, *second, name));
                    if (one && fuse) CHECK(got == whole);
                }
            }
        }
    }
}

TEST_CASE("pipeline: a model cut before any step gives its logits, whatever crosses") {
    const std::vector<Token> tokens = golden_tokens();
    size_t most = 0;
    for (const std::string name : {"gemma3n", "gemma4", "gemma4-moe", "glm4moe", "qwen35moe"}) {
        const Matrix want = read_npy(golden("models/" + name + ".npy"));
        const Model model = tiny(name);
        const Plan plan = divided(must(model.plan(1, 1, kSizing)));
        Backend &first = *backends().back(), &second = one_thread();
        for (size_t at = 1; at < plan.steps.size(); ++at) {
            INFO(name, " cut before step ", at, " on ", first.device().detail);
            const auto parts = cut(plan, {at});
            if (!parts.ok()) {
                CHECK((shares_caches(plan, at) ||
                       parts.error().message.find("rows of outputs") != std::string::npos));
                continue;
            }
            most = std::max(most, parts.value()[0].leaves.size());
            Places places = halves(model, at % 2 ? first : second, at % 2 ? second : first, at);
            CHECK(relative_error(logits_of(places, tokens, true), want.values) < 1e-3);
        }
    }
    CHECK(most > 4);
}

TEST_CASE("pipeline: slots go around parts that do not use them, and the last to write one counts") {
    const std::vector<Token> tokens = golden_tokens();
    for (const std::string name : {"gemma4", "glm4moe"}) {
        const Matrix want = read_npy(golden("models/" + name + ".npy"));
        const Model model = tiny(name);
        const Plan plan = divided(must(model.plan(1, 1, kSizing)));
        Backend &one = one_thread(), &other = *backends().back();
        for (const size_t length : {1, 2, 3}) {
            std::vector<Placement> placements;
            for (size_t at = 0; at < plan.steps.size(); at += length) {
                Backend* const backend = at / length % 2 ? &other : &one;
                placements.push_back({backend, at, std::min(at + length, plan.steps.size())});
            }
            // Caches that layers share, and the rows of outputs, stay in a place.
            std::erase_if(placements, [&](const Placement& p) {
                return p.first > 0 && !cut(plan, {p.first}, {0, 0}).ok();
            });
            for (size_t i = 0; i < placements.size(); ++i) {
                placements[i].last = i + 1 < placements.size() ? placements[i + 1].first : plan.steps.size();
                if (model.config().shared_caches > 0) placements[i].backend = &other;
            }
            INFO(name, " in parts of ", length, " steps on ", other.device().detail);
            const auto places = Places::load(model, kSizing, placements);
            if (!places.ok() && places.error().message.find("used on both sides") != std::string::npos)
                continue;
            Places made = must(Places::load(model, kSizing, placements));
            CHECK(relative_error(logits_of(made, tokens, true), want.values) < 1e-3);
        }
    }
}

TEST_CASE("pipeline: of three parts, and of one") {
    const std::vector<Token> tokens = golden_tokens();
    const Model model = tiny("llama3");
    const Plan plan = must(model.plan(1, 1, kSizing));
    const std::vector<size_t> ends = layer_ends(plan);
    Backend &one = *backends().front(), &other = *backends().back();
    const std::vector<Placement> placements = {
        {&one, 0, ends[1]}, {&other, ends[1], ends[2]}, {&one, ends[2], plan.steps.size()}};
    Places three = must(Places::load(model, kSizing, placements));
    const Matrix want = read_npy(golden("models/llama3.npy"));
    CHECK(relative_error(logits_of(three, tokens, true), want.values) < either_bound(one, other, "llama3"));
    Places whole = must(Places::load(model, kSizing, {{{&one, 0, plan.steps.size()}}}));
    CHECK(logits_of(whole, tokens, true) == whole_logits("llama3", one, tokens));
}

// Guarded memory has gaps that differ from part to part: these share what they work in only without.
TEST_CASE("pipeline: parts of one device work in the same memory, and none disturbs another") {
    const std::vector<Token> tokens = golden_tokens();
    Backends plain;
    plain.push_back(must(open_backend("cpu", {.threads = 3})));
    add_devices(plain, false);
    const Model model = tiny("qwen3moe");
    const Plan plan = must(model.plan(1, 1, kSizing));
    const Matrix want = read_npy(golden("models/qwen3moe.npy"));
    const std::vector<Block> all = blocks(plan);
    const auto scratch = [&](std::span<const Placement> placements) {
        return must(Places::measure(model, kSizing, placements, kBatch, kBatch, true))[0].scratch;
    };
    for (const auto& backend : plain) {
        INFO("on ", backend->device().detail);
        for (Backend* other : {backend.get(), plain[0].get()}) {
            std::vector<Placement> placements;
            for (size_t i = 0; i < all.size(); ++i)
                placements.push_back({i % 2 == 0 ? backend.get() : other, all[i].first, all[i].last});
            Places places = must(Places::load(model, kSizing, placements));
            CHECK(relative_error(logits_of(places, tokens, true), want.values) <
                  either_bound(*backend, *other, "qwen3moe"));
            CHECK(scratch(placements) < 2 * scratch({{{backend.get(), 0, plan.steps.size()}}}));
        }
    }
}

TEST_CASE("pipeline: placements that leave steps out, or place one twice, are errors") {
    const Model model = tiny("llama3");
    const size_t steps = must(model.plan(1, 1, kSizing)).steps.size();
    Backend* const backend = backends().front().get();
    using Placements = std::vector<Placement>;
    for (const Placements& bad :
         {Placements{}, Placements{{backend, 0, steps - 1}}, Placements{{backend, 0, steps + 1}},
          Placements{{backend, 1, steps}}, Placements{{backend, 0, 1}, {backend, 2, steps}},
          Placements{{backend, 0, 0}, {backend, 0, steps}},
          Placements{{backend, 0, steps}, {backend, steps, steps}},
          Placements{{backend, 0, steps - 1}, {backend, steps - 1, steps}}})
        CHECK_FALSE(Places::load(model, kSizing, bad).ok());
}

TEST_CASE("pipeline: only the wanted outputs, the best of them, cancelling and tracing are as of one") {
    const std::vector<Token> tokens = golden_tokens();
    const Model model = tiny("qwen3");
    const Plan plan = must(model.plan(1, 1, kSizing));
    const size_t vocab = plan.slot(plan.output).width;
    for (const auto& [first, second] : pairs()) {
        INFO("on ", first->device().detail, " and ", second->device().detail);
        Places places = halves(model, *first, *second, layer_ends(plan)[1]);
        const auto caches = must(places.make_caches());
        const auto many = must(places.record(kBatch, 2, Record::replay));
        const SequenceStep step({tokens.data(), kBatch}, 0, 2);
        StepParams params = step;
        std::atomic<bool> cancel{true};
        params.cancel = &cancel;
        CHECK(many->run(params).error().message == "interrupted");
        cancel = false;
        must(many->run(params));
        const std::vector<float> got(many->output().begin(), many->output().end());
        CHECK(got.size() == 2 * vocab);
        std::vector<std::string_view> traced;
        must(many->run_traced(params, [&](const TraceStep& s) { traced.push_back(op_name(s.step->op)); }));
        CHECK(std::ranges::equal(many->output(), got));
        CHECK(std::count(traced.begin(), traced.end(), "input") == 1);
        const auto attends = [](std::string_view op) { return op == "attend" || op == "attention"; };
        CHECK(std::count_if(traced.begin(), traced.end(), attends) == int64_t(plan.caches.size()));

        const auto single = must(places.record(1, 1, Record::replay));
        const SequenceStep next_step({tokens.data() + kBatch, 1}, kBatch, 1);
        StepParams next = next_step;
        must(single->run(next));
        const auto largest = std::max_element(single->output().begin(), single->output().end());
        const auto id = int32_t(largest - single->output().begin());
        if (single->most_best() == 0) continue;
        next.best = 3;
        next.best_among = uint32_t(vocab);
        must(single->run(next));
        CHECK(single->output().empty());
        REQUIRE(single->best().size() >= 3);
        CHECK(single->best()[0].id == id);
    }
}

TEST_CASE("split: a session gives the model's logits with any number of layers on the device") {
    const std::vector<Token> tokens = golden_tokens();
    for (const std::string name : {"llama3", "qwen3moe", "lfm2", "qwen35"}) {
        const Matrix want = read_npy(golden("models/" + name + ".npy"));
        const Model model = tiny(name);
        for (const auto& [cpu, device] : pairs()) {
            if (cpu != backends().front().get()) continue;
            for (uint32_t layers = 0; layers <= model.config().layers; ++layers) {
                INFO(name, ", ", layers, " layers on ", device->device().detail);
                const std::vector<float> got = split_logits(model, *cpu, *device, {layers}, tokens);
                CHECK(relative_error(got, want.values) < either_bound(*cpu, *device, name));
            }
        }
    }
}

TEST_CASE("split: routers and shared experts stay on the device where experts are on the CPU") {
    const auto other = must(open_backend("cpu", {.threads = 1}));
    Backend& cpu = *backends().front();
    const SessionOptions options{kSizing.context, kBatch, kBatch, kSizing.types};
    for (const std::string name :
         {"deepseek2-v3", "gemma4-moe", "glm4moe", "granitemoe", "nemotron-h-moe", "qwen35moe"}) {
        CAPTURE(name);
        const Model model = tiny(name);
        const uint32_t layers = model.config().layers;
        const Split split = must(split_model(model, options, {&cpu, {other.get()}}, {layers, layers}));
        CHECK(split.counts.experts > 0);
        std::vector<size_t> cuts, places;
        for (const Placement& placement : split.placements) {
            if (placement.first > 0) cuts.push_back(placement.first);
            places.push_back(placement.backend == &cpu);
        }
        const Plan plan = divided(must(model.plan(1, 1, kSizing)), &cuts);
        const std::vector<PlanPart> parts = must(cut(plan, cuts, places));
        for (size_t i = 0; i < parts.size(); ++i)
            for (const WeightInfo& weight : parts[i].plan.weights) {
                const bool of_experts = weight.tensor.name.find("_exps.") != std::string::npos;
                // The scales that a router multiplies its weights by may be named like experts.
                CHECK((of_experts && weight.role == WeightRole::matrix) == (places[i] == 1));
            }
    }
}

TEST_CASE("split: layers that share caches stay together, at the nearest cut") {
    const std::vector<Token> tokens = golden_tokens();
    const SessionOptions options{kSizing.context, kBatch, kBatch, kSizing.types};
    const auto other = must(open_backend("cpu", {.threads = 1}));
    for (const std::string name : {"gemma4", "gemma4-moe", "gemma3n"}) {
        const Matrix want = read_npy(golden("models/" + name + ".npy"));
        const Model model = tiny(name);
        const uint32_t layers = model.config().layers;
        for (size_t i = backends().size() > 1 ? 1 : 0; i < backends().size(); ++i) {
            Backend& device = *backends()[i];
            std::set<uint32_t> possible;
            uint32_t last = 0;
            for (uint32_t wanted = 0; wanted <= layers; ++wanted) {
                INFO(name, ", ", wanted, " layers on ", device.device().detail);
                const Split split = must(split_model(model, options, {other.get(), {&device}}, {wanted}));
                possible.insert(split.counts.layers);
                CHECK(split.counts.layers >= last);
                last = split.counts.layers;
                CHECK((split.counts.layers == wanted) == (split.together_first == split.together_last));
                CHECK(relative_error(split_logits(model, *other, device, {wanted}, tokens), want.values) <
                      1e-3);
            }
            CHECK(last == layers);
            CHECK(possible.size() >= 3);
            CHECK(possible.size() <= layers + 1 - model.config().shared_caches);
        }
    }
}

TEST_CASE(
    "split: patterns that would part an attention from the cache it reads leave it there, and the split "
    "tells") {
    const std::vector<Token> tokens = golden_tokens();
    const SessionOptions options{kSizing.context, kBatch, kBatch, kSizing.types};
    Backend& cpu = *backends().front();
    for (const std::string name : {"gemma4", "gemma3n"}) {
        const Matrix want = read_npy(golden("models/" + name + ".npy"));
        const Model model = tiny(name);
        const uint32_t layers = model.config().layers;
        for (size_t i = 1; i < backends().size(); ++i) {
            Backend& device = *backends()[i];
            // The first layer of gemma3n is computed together with what makes its streams.
            for (uint32_t layer = name == "gemma3n" ? 1 : 0; layer < layers; ++layer) {
                INFO(name, ", layer ", layer, " on the CPU, others on ", device.device().detail);
                const SplitWish wish{UINT32_MAX, 0, {{fmt::format("blk\\.{}\\.", layer), true}}};
                const Split split = must(split_model(model, options, {&cpu, {&device}}, wish));
                // It reads the cache of an earlier layer, or later layers read its cache and come along.
                if (layer >= layers - model.config().shared_caches)
                    CHECK(split.followed == std::vector{layer});
                for (const uint32_t other : split.followed)
                    CHECK(other >= layers - model.config().shared_caches);
                CHECK(relative_error(split_logits(model, cpu, device, wish, tokens), want.values) < 1e-3);
            }
        }
    }
}

TEST_CASE("split: a mixture gives its logits with the experts of any layers on the CPU") {
    const std::vector<Token> tokens = golden_tokens();
    for (const auto& [cpu, device] : pairs()) {
        if (cpu != backends().front().get()) continue;
        for (const std::string& name : tiny_models(*device)) {
            const Model model = tiny(name);
            const uint32_t layers = model.config().layers;
            if (model.config().experts == 0) continue;
            const Matrix want = read_npy(golden("models/" + name + ".npy"));
            std::vector<SplitWish> wishes = {{layers, layers}, {1, layers}};
            if (name == "qwen3moe" || name == "qwen35moe")
                for (uint32_t on_device = 0; on_device <= layers; ++on_device)
                    for (uint32_t experts = 0; experts <= layers; ++experts)
                        wishes.push_back({on_device, experts});
            for (const SplitWish& wish : wishes) {
                INFO(name, ", ", wish.layers, " layers on ", device->device().detail, ", experts of ",
                     wish.experts, " on the CPU");
                const std::vector<float> got = split_logits(model, *cpu, *device, wish, tokens);
                CHECK(relative_error(got, want.values) < either_bound(*cpu, *device, name));
            }
        }
    }
}

TEST_CASE("split: tensors named by patterns are where these say, and all of a block or none of it moves") {
    const std::vector<Token> tokens = golden_tokens();
    const SessionOptions options{kSizing.context, kBatch, 1, kSizing.types};
    Backend &cpu = *backends().front(), &device = *backends().back();
    if (&cpu == &device) return;
    const auto counts = [&](const std::string& name, const std::vector<TensorRule>& rules) {
        const Model model = tiny(name);
        const Split split = must(split_model(model, options, {&cpu, {&device}}, {UINT32_MAX, 0, rules}));
        const Matrix want = read_npy(golden("models/" + name + ".npy"));
        const std::vector<float> got = split_logits(model, cpu, device, {UINT32_MAX, 0, rules}, tokens);
        CHECK(relative_error(got, want.values) < either_bound(cpu, device, name));
        const auto& [layers, experts, parts, by_device] = split.counts;
        CHECK(by_device == std::vector{layers});
        return fmt::format("{} {} {}, {} parts, unused {}", layers, experts, parts, split.placements.size(),
                           fmt::join(split.unused, " "));
    };
    CHECK(counts("qwen3moe", {{"ffn_.*_exps", true}}) == "2 2 0, 5 parts, unused ");
    CHECK(counts("qwen3moe", {{"blk\\.(1|2)\\.ffn.*", true}}) == "2 1 0, 3 parts, unused ");
    CHECK(counts("qwen3moe", {{"blk\\.0\\.", true}}) == "1 0 0, 3 parts, unused ");
    CHECK(counts("qwen3moe", {{"blk\\.0\\.", false}, {"exps", true}}) == "2 1 0, 3 parts, unused ");
    CHECK(counts("qwen3moe", {{"no_such", true}}) == "2 0 0, 1 parts, unused no_such");
    CHECK(counts("llama3", {{"blk\\.1\\.ffn_(gate|up|down)", true}}) == "2 0 1, 3 parts, unused ");
    CHECK(counts("llama3", {{"attn", true}}) == "2 0 2, 5 parts, unused ");
    CHECK(counts("llama3", {{"token_embd|^output", true}}) == "2 0 0, 3 parts, unused ");
    CHECK(counts("llama3", {{".", true}}) == "0 0 0, 1 parts, unused ");

    const auto refused = [&](const std::string& name, const std::vector<TensorRule>& rules) {
        const auto split = split_model(tiny(name), options, {&cpu, {&device}}, {UINT32_MAX, 0, rules});
        REQUIRE_FALSE(split.ok());
        return split.error().message;
    };
    CHECK(
        refused("qwen3moe", {{"blk.1.ffn_up_exps", true}}) ==
        "blk.1.ffn_gate_exps.weight would be on the device and blk.1.ffn_up_exps.weight on the CPU, but they "
        "are computed together: a pattern has to fit both or none of them");
    CHECK(refused("qwen3moe", {{"ffn_gate_inp", true}}).find("computed together") != std::string::npos);
    CHECK(refused("llama3", {{"attn_q", true}}).find("computed together") != std::string::npos);
    CHECK(refused("llama3", {{"(", true}}).starts_with("\"(\" is no pattern: "));
}

TEST_CASE("split: a session saves and restores its caches, wherever they are") {
    const std::vector<Token> tokens = golden_tokens();
    for (const std::string name : {"llama3", "lfm2"}) {
        const Model model = tiny(name);
        SessionOptions options{kSizing.context, kBatch, 1, kSizing.types};
        Backend &cpu = *backends().front(), &device = *backends().back();
        options.placements = must(split_model(model, options, {&cpu, {&device}}, {1})).placements;
        const std::string path = std::filesystem::temp_directory_path() / ("redline_split_" + name);
        std::vector<float> want;
        {
            Session session = must(Session::create(model, options));
            must(session.feed(std::span(tokens).first(kPrompt)));
            must(session.save(path));
            must(session.feed(std::span(tokens).subspan(kPrompt, 1)));
            want.assign(session.logits().begin(), session.logits().end());
        }
        Session session = must(Session::create(model, options));
        must(session.restore(path));
        CHECK(session.position() == kPrompt);
        must(session.feed(std::span(tokens).subspan(kPrompt, 1)));
        CHECK(std::ranges::equal(session.logits(), want));
        std::filesystem::remove(path);
    }
}

TEST_CASE("split: as many layers as fit are on the device, and none fits is an error with the numbers") {
    const Model model = tiny("llama3");
    const SessionOptions options{kSizing.context, kBatch, 1, kSizing.types};
    Backend& cpu = *backends().front();
    const uint32_t layers = model.config().layers;
    const auto other = must(open_backend("cpu", {.threads = 1}));
    uint32_t last = 0;
    for (uint32_t wanted = 0; wanted <= layers; ++wanted) {
        const Split exact = must(split_model(model, options, {&cpu, {other.get()}}, {wanted}));
        const uint64_t need = wanted == 0 ? 1 : exact.needs.back().total();
        const auto device = must(open_backend("cpu", {.threads = 1, .memory = need}));
        const Split split = must(fitting_split(model, options, {&cpu, {device.get()}}, {}, Yield::layers));
        CHECK(split.counts.layers >= last);
        CHECK(split.counts.layers >= wanted);
        CHECK(fits(split));
        last = split.counts.layers;
        const auto speed = [](const Backend&) { return 1e9; };
        CHECK(must(most_tokens_per_second(model, options, split.placements, speed, 10)) > 0.0);
    }
    CHECK(last == layers);
    const auto tiny_cpu = must(open_backend("cpu", {.threads = 1, .memory = 1}));
    const auto none = fitting_split(model, options, {tiny_cpu.get(), {tiny_cpu.get()}}, {}, Yield::layers);
    REQUIRE_FALSE(none.ok());
    CHECK(none.error().message.find("no split between them fits") != std::string::npos);
    CHECK(must(fitting_context(model, options, {tiny_cpu.get(), {tiny_cpu.get()}}, {}, Yield::layers)) == 0);
    CHECK(must(fitting_context(model, options, {&cpu, {tiny_cpu.get()}}, {}, Yield::layers)) ==
          options.context);
    // Room for the caches of 8192 tokens, and of no more; those of few take less than loading does.
    SessionOptions longer{8192, kBatch, 1, kSizing.types};
    const uint64_t room =
        must(split_model(model, longer, {other.get(), {tiny_cpu.get()}}, {0})).needs.front().total();
    const auto small = must(open_backend("cpu", {.threads = 1, .memory = room}));
    longer.context = 20000;
    CHECK(must(fitting_context(model, longer, {small.get(), {tiny_cpu.get()}}, {}, Yield::layers)) == 8192);
    // A session that is told to split so refuses before it loads.
    SessionOptions told = options;
    told.placements = must(split_model(model, options, {tiny_cpu.get(), {&cpu}}, {1})).placements;
    CHECK_FALSE(Session::create(model, told).ok());
}

TEST_CASE("split: as many experts as have to are on the CPU, and layers only when that is not enough") {
    const Model model = tiny("qwen3moe");
    const SessionOptions options{kSizing.context, kBatch, 1, kSizing.types};
    Backend& cpu = *backends().front();
    const uint32_t layers = model.config().layers;
    const auto other = must(open_backend("cpu", {.threads = 1}));
    const auto need_of = [&](const SplitWish& wish) {
        return must(split_model(model, options, {&cpu, {other.get()}}, wish)).needs.front().total();
    };
    const auto fitted = [&](uint64_t memory, Yield yield) {
        const auto device = must(open_backend("cpu", {.threads = 1, .memory = memory}));
        return fitting_split(model, options, {&cpu, {device.get()}}, {}, yield);
    };
    for (uint32_t experts = 1; experts <= layers; ++experts) {
        const uint64_t need = need_of({layers, experts});
        for (const Yield yield : {Yield::experts, Yield::experts_first}) {
            const SplitCounts counts = must(fitted(need, yield)).counts;
            CHECK(counts.layers == layers);
            CHECK(counts.experts <= experts);
        }
    }
    const uint64_t less = need_of({layers, layers}) - 1;
    CHECK_FALSE(fitted(1, Yield::experts).ok());
    const SplitCounts counts = must(fitted(less, Yield::experts_first)).counts;
    CHECK(counts.layers < layers);
    CHECK(counts.experts == counts.layers);
    CHECK(must(fitted(1, Yield::experts_first)).counts.layers == 0);
}
