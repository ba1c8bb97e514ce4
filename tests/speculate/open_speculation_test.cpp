// Speculation as users ask for it, from options to text.
#include "host/open_speculation.h"
#include "engine/generate.h"
#include "host/load_model.h"
#include "support/material.h"
#include "support/mtp_model.h"

#include <doctest/doctest.h>

using namespace redline;
using namespace redline::test;

namespace {

HostOptions host_options(const std::string& path) {
    HostOptions host;
    host.model = path;
    host.device = "cpu";
    host.threads = 1;
    host.context = 128;
    host.cache = CacheType::f32;
    return host;
}

// A model that speculates as the options have it.
struct Opened {
    LoadedModel loaded;
    OpenSpeculation guesses;
    std::optional<Session> session;
};

Status open(SpeculationOptions options, HostOptions host, Opened& opened) {
    host.head = options.head();
    opened.loaded = RL_TRY(inspect_model(host));
    const Model& model = *opened.loaded.model;
    opened.guesses = RL_TRY(inspect_speculation(options, host, opened.loaded));
    const uint32_t outputs = options.outputs(model);
    RL_TRY(place_model(opened.loaded, host, 128, outputs));
    opened.session = RL_TRY(open_session(opened.loaded, host, 128, outputs));
    return open_speculation(opened.guesses, options, host, *opened.session);
}

std::string problem_of(const SpeculationOptions& options, const std::string& path) {
    Opened opened;
    const Status done = open(options, host_options(path), opened);
    return done ? "" : done.error().message;
}

Generation written(Opened& opened) {
    Sampler sampler = must(make_sampler(*opened.loaded.model, {.temperature = 0.0f}, true, 128));
    must(read_prompt(*opened.session, sampler, opened.loaded.model->tokenizer().encode("Once upon a time")));
    GenerateOptions options;
    options.max_tokens = 60;
    options.drafter = opened.guesses.speculation.get();
    return must(generate(*opened.session, sampler, options, {}));
}

std::vector<std::string> methods_of(const Opened& opened) {
    std::vector<std::string> names;
    if (opened.guesses.speculation)
        for (const auto& method : opened.guesses.speculation->results()) names.emplace_back(method.name);
    return names;
}

}  // namespace

TEST_CASE("speculation options: a head guesses where the file has one, alone or beside looking up") {
    const HeadFile file("llama3"), hybrid("qwen35"), second("llama3", true);
    Opened plain;
    must(open({}, host_options(file.path), plain));
    CHECK(methods_of(plain).empty());
    const Generation text = written(plain);
    using Names = std::vector<std::string>;
    const std::string tiny = golden("models/llama3.gguf");
    const auto check = [&](const SpeculationOptions& options, const std::string& path, const Names& names) {
        Opened opened;
        must(open(options, host_options(path), opened));
        CHECK(methods_of(opened) == names);
        const Generation guessed = written(opened);
        if (path != hybrid.path) CHECK(guessed.tokens == text.tokens);
        if (options.type == SpeculationType::draft_mtp) CHECK(guessed.drafted > 0);
    };
    check({.type = SpeculationType::draft_mtp}, file.path, {"draft-mtp"});
    check({.type = SpeculationType::automatic}, file.path, {"ngram-simple", "draft-mtp"});
    check({.type = SpeculationType::automatic}, tiny, {"ngram-simple"});
    check({.type = SpeculationType::ngram_simple}, file.path, {"ngram-simple"});
    check({.type = SpeculationType::draft_mtp, .draft_model = second.path}, tiny, {"draft-mtp"});
    check({.type = SpeculationType::automatic, .draft_model = second.path}, tiny,
          {"ngram-simple", "draft-mtp"});
    check({.type = SpeculationType::automatic, .draft_model = tiny}, tiny, {"ngram-simple", "draft-simple"});
    check({.type = SpeculationType::draft_mtp}, hybrid.path, {"draft-mtp"});
}

TEST_CASE("speculation options: a head for which there is no room is left out, unless it was asked for") {
    const HeadFile file("llama3");
    const auto need = [&](ReadHead head) {
        const auto backend = cpu(1);
        const Model model = must(Model::inspect(file.path, 128, head));
        EngineOptions options{128, 64, 9, CacheType::f32};
        options.drafts = 8;
        return must(memory_need(model, *backend, options)).total();
    };
    HostOptions host = host_options(file.path);
    host.batch = 64;
    host.memory = (need(ReadHead::no) + need(ReadHead::required)) / 2;
    Opened opened;
    must(open({.type = SpeculationType::automatic}, host, opened));
    CHECK(methods_of(opened) == std::vector<std::string>{"ngram-simple"});
    CHECK_FALSE(opened.loaded.model->has_head());
    CHECK(!written(opened).tokens.empty());
    Opened asked;
    CHECK_FALSE(open({.type = SpeculationType::draft_mtp}, host, asked).ok());
    host.memory = need(ReadHead::required);
    Opened roomy;
    must(open({.type = SpeculationType::automatic}, host, roomy));
    CHECK(methods_of(roomy).size() == 2);
}

TEST_CASE(
    "speculation options: a model whose layers two devices share guesses by its head, or by another's") {
    const HeadFile file("llama3"), second("llama3", true);
    Opened whole;
    must(open({}, host_options(file.path), whole));
    const Generation text = written(whole);
    HostOptions host = host_options(file.path);
    host.others = {"cpu"};
    for (const SpeculationType type : {SpeculationType::draft_mtp, SpeculationType::automatic}) {
        Opened opened;
        must(open({.type = type}, host, opened));
        REQUIRE(opened.loaded.split.placements.size() == 2);
        CHECK(opened.session->guesses());
        const Generation guessed = written(opened);
        CHECK(guessed.tokens == text.tokens);
        if (type == SpeculationType::draft_mtp) CHECK(guessed.drafted > 0);
    }
    host.model = golden("models/llama3.gguf");
    Opened other;
    must(open({.type = SpeculationType::draft_mtp, .draft_model = second.path}, host, other));
    CHECK(written(other).drafted > 0);
    CHECK(methods_of(other) == std::vector<std::string>{"draft-mtp"});
}

TEST_CASE("speculation options: by default a model guesses where its texts stay the same bit for bit") {
    SpeculationOptions nothing_asked, none, drafts;
    must(settle(nothing_asked));
    CHECK(nothing_asked.type == SpeculationType::automatic);
    none.asked = true;
    must(settle(none));
    CHECK(none.type == SpeculationType::none);
    drafts.draft_model = "small";
    must(settle(drafts));
    CHECK_FALSE(drafts.by_default);
    const HeadFile file("llama3");
    Opened opened;
    must(open(nothing_asked, host_options(file.path), opened));
    CHECK(methods_of(opened) == std::vector<std::string>{"ngram-simple", "draft-mtp"});
    Opened blocks;
    must(open(nothing_asked, host_options(golden("models/deepseek4.gguf")), blocks));
    CHECK(methods_of(blocks).empty());
    CHECK(written(blocks).drafted == 0);
}

TEST_CASE("speculation options: guesses are shorter where layers keep states, unless their length is given") {
    const Model dense = must(Model::inspect(golden("models/llama3.gguf"))),
                hybrid = must(Model::inspect(golden("models/qwen35.gguf")));
    SpeculationOptions options{.type = SpeculationType::automatic};
    CHECK(options.drafts(dense) == 8);
    CHECK(options.drafts(hybrid) == 4);
    options.most = 6;
    CHECK(options.drafts(hybrid) == 6);
    options.type = SpeculationType::none;
    CHECK(options.outputs(dense) == 1);
}

TEST_CASE("speculation options: what cannot guess says why") {
    const auto has = [](const std::string& text, std::string_view part) {
        INFO(text);
        CHECK(text.find(part) != std::string::npos);
    };
    const std::string tiny = golden("models/llama3.gguf"), other = golden("models/qwen3.gguf");
    has(problem_of({.type = SpeculationType::draft_mtp}, tiny), "this file has no MTP head");
    const HeadFile head("llama3", true);
    has(problem_of({}, head.path), "holds an MTP head alone");
    has(problem_of({.type = SpeculationType::draft_mtp, .draft_model = tiny}, tiny),
        "it is no MTP head alone");
    const std::string path = temporary("drafter.gguf");
    const Gguf gguf = must(Gguf::open(tiny));
    const auto same = [](std::string name) { return name; };
    const std::pair<const char*, const char*> kinds[] = {{"eagle3", "an EAGLE-3 head"},
                                                         {"dflash", "a DFlash drafter"},
                                                         {"gemma4-assistant", "Gemma 4's assistant"}};
    for (const auto& [arch, what] : kinds) {
        const auto key = [](std::string name) { return name == "general.architecture" ? "" : name; };
        save_renamed(gguf, key, same, {{"general.architecture", {std::string(arch), 8, 0}}}, path);
        const std::string said = problem_of({.type = SpeculationType::automatic, .draft_model = path}, tiny);
        has(said, what);
        has(said, "redline guesses by MTP heads, by smaller models and by looking up");
    }
    std::filesystem::remove(path);
}
