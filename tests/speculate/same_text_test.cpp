// Long texts with guesses and without, on each backend: they are the same, byte for byte, whether a model's
// layers are dense, have experts, or keep states. RL_TEST_TOKENS says how long they are; then a table tells
// what was guessed.
#include "engine/generate.h"
#include "speculate/mtp_head.h"
#include "speculate/ngram.h"
#include "speculate/speculation.h"
#include "support/backends.h"
#include "support/mtp_model.h"
#include "support/share.h"

#include <doctest/doctest.h>

using namespace redline;
using namespace redline::test;

namespace {

constexpr uint32_t kMost = 4;

// Dense, with windows, with experts, on latents, with states, with both.
constexpr const char* kModels[] = {"llama3",       "exaone4", "mixtral",        "glm4moe",
                                   "deepseek2-v3", "qwen35",  "nemotron-h-moe", "qwen35moe"};

// Zero: as few as a test should take.
int64_t asked_tokens() {
    const char* given = std::getenv("RL_TEST_TOKENS");
    return given ? std::max(0, std::atoi(given)) : 0;
}

struct Method {
    const char* name;
    std::unique_ptr<Proposer> (*make)(Session& session);
};

std::unique_ptr<Proposer> no_method(Session&) {
    return nullptr;
}
std::unique_ptr<Proposer> by_looking_up(Session&) {
    return std::make_unique<NgramProposer>(3);
}
std::unique_ptr<Proposer> by_head(Session& session) {
    return std::make_unique<MtpProposer>(session.engine(), session.sequence());
}

constexpr Method kMethods[] = {{"none", no_method}, {"ngram", by_looking_up}, {"mtp", by_head}};

Generation text_by(const Method& method, Session& session, float temperature, int64_t tokens) {
    SamplerOptions how;
    how.temperature = temperature;
    how.seed = 5;
    Sampler sampler = must(make_sampler(session.model(), how, true, session.context()));
    session.rewind(0);
    must(read_prompt(session, sampler, session.model().tokenizer().encode("Once upon a time there was a")));
    GenerateOptions options;
    options.max_tokens = tokens;
    std::unique_ptr<Proposer> proposer = method.make(session);
    if (!proposer) return must(generate(session, sampler, options, {}));
    std::vector<std::unique_ptr<Proposer>> methods;
    methods.push_back(std::move(proposer));
    Speculation guesses(std::move(methods), {kMost, true});
    options.drafter = &guesses;
    return must(generate(session, sampler, options, {}));
}

void check_texts(Backend& backend, const std::string& name) {
    const HeadFile file(name);
    const Model model = file.load(backend);
    const int64_t asked = asked_tokens(), tokens = asked > 0 ? asked : 60;
    EngineOptions options{.context = uint64_t(tokens) + 64, .batch = 16, .outputs = kMost + 1};
    options.drafts = kMost;
    options.alike_rows = true;
    Session session = must(Session::create(model, options));
    for (const float temperature : {0.0f, 1.0f}) {
        CAPTURE(temperature);
        const Generation plain = text_by(kMethods[0], session, temperature, tokens);
        CHECK(plain.tokens.size() == size_t(tokens));
        for (const Method& method : std::span(kMethods).subspan(1)) {
            INFO(method.name);
            const Generation guessed = text_by(method, session, temperature, tokens);
            CHECK(guessed.text == plain.text);
            CHECK(guessed.tokens == plain.tokens);
            if (asked > 0)
                fmt::print("| {} | {} | {} | {} | {} | {} | {} | {} |\n", backend.device().name, name,
                           method.name, temperature, tokens, guessed.drafted, guessed.accepted,
                           guessed.tokens == plain.tokens ? "same" : "differs");
        }
    }
}

}  // namespace

TEST_CASE("same text: with guesses and without, rows being alike, on each backend") {
    const Share share = share_of_cases();
    size_t number = 0;
    for (const auto& backend : session_test_backends())
        for (const std::string name : kModels) {
            if (!share.takes(number++, name) || !runs_on(*backend, name)) continue;
            INFO(name, " on ", backend->device().name);
            check_texts(*backend, name);
        }
}
