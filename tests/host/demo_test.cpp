// The model that comes with the program: that it answers, and that every backend and every quantization of it
// says the same.
#include "cli/demo_model.h"
#include "cli/perplexity.h"
#include "engine/generate.h"
#include "quantize/quantize.h"
#include "support/backends.h"
#include "support/models.h"
#include "support/share.h"
#include "text/chat/chat_format.h"

#include <doctest/doctest.h>

#include <unistd.h>
#include <cmath>
#include <map>
#include <regex>

namespace redline {

using namespace test;

namespace {

// The perplexity of the F16 file before quantization, with chunks of 512 tokens.
constexpr double kPerplexityF16 = 1.33870;

// Answers that are compared literally. Their likeliest token is always at least one above the next, whereas a
// few answers about things that the corpus says seldom (the days of the week, the planets) come closer.
constexpr const char* kQuestions[] = {
    "What is GGUF?",
    "Which quant should I use?",
    "What is the KV cache?",
    "Who are you?",
    "What is prefill?",
    "How much is 12 plus 30?",
    "What is the capital of Japan?",
    "Tell me a story about a fox",
};

class Demo {
public:
    explicit Demo(Backend& backend, const std::string& path = demo())
        : model_(must(Model::load(path, backend, {}))),
          format_(must(ChatFormat::detect(model_.gguf().metadata(), model_.tokenizer()))) {}

    std::string answer(const std::string& question, int64_t tokens = 150) {
        return go(format_.encode(model_.tokenizer(), {{Role::user, question}}), tokens);
    }
    std::string go_on(const std::string& text, int64_t tokens) {
        return go(model_.tokenizer().encode(text, {true, false}), tokens);
    }
    // The perplexity on the first `chunks` chunks of the held-out text.
    double perplexity(uint64_t chunk, uint64_t chunks) {
        const std::string text = must(read_text_file(source_file("models/demo/heldout.txt")));
        std::vector<Token> tokens = model_.tokenizer().encode(text, {true, false});
        tokens.resize(std::min<size_t>(tokens.size(), chunk * chunks));
        Session session = must(Session::create(model_, {.context = chunk, .outputs = uint32_t(chunk)}));
        return must(cli::measure_perplexity(
                        session, tokens, chunk, [](uint64_t, double) { return true; }, nullptr))
            .value();
    }

private:
    std::string go(const std::vector<Token>& prompt, int64_t tokens) {
        Session session = must(Session::create(model_, {.context = 512}));
        SamplerOptions greedy;
        greedy.temperature = 0.0f;
        Sampler sampler = must(make_sampler(model_, greedy, false, 512));
        must(read_prompt(session, sampler, prompt));
        GenerateOptions options;
        options.max_tokens = tokens;
        return must(generate(session, sampler, options, [](std::string_view) { return true; })).text;
    }

    Model model_;
    ChatFormat format_;
};

}  // namespace

TEST_CASE("demo: at least 32 of 40 held-out questions get an answer with the expected fact") {
    const auto backend = test::cpu();
    Demo model(*backend);
    std::ifstream in(source_file("tools/demo/heldout.tsv"));
    int asked = 0;
    int right = 0;
    for (std::string line; std::getline(in, line);) {
        const size_t tab = line.find('\t');
        if (line.starts_with('#') || tab == line.npos) continue;
        const std::string said = model.answer(line.substr(0, tab));
        const bool good = std::regex_search(said, std::regex(line.substr(tab + 1), std::regex::icase));
        if (!good) MESSAGE(line.substr(0, tab) << " -> " << said);
        right += good;
        ++asked;
    }
    MESSAGE(right << " of " << asked << " right");
    CHECK(asked == 40);
    CHECK(right >= 32);
}

// OutputWatch calls a model certain when other tokens have less than 2^-32.
TEST_CASE("demo: no loop that it falls into is taken for a broken device") {
    const auto backend = test::cpu();
    const Model model = must(Model::load(demo(), *backend, {}));
    std::string again, rule(60, '-');
    for (int i = 0; i < 8; ++i) again += "one two three. one two three. ";
    double least = 1.0;
    for (const std::string& text :
         {std::string("a"), std::string(" "), std::string("0 0 0 0 0 0 0 0"), std::string(64, 'a'), rule,
          again, std::string("\n\n\n\n"), std::string("The the the the the the"), std::string(1, '\xFF')}) {
        Session session = must(Session::create(model, {.context = 512}));
        SamplerOptions greedy;
        greedy.temperature = 0.0f;
        Sampler sampler = must(make_sampler(model, greedy, true, 512));
        must(read_prompt(session, sampler, model.tokenizer().encode(text, {true, false})));
        GenerateOptions options;
        options.max_tokens = 250;
        options.logprobs = 1;
        const Generation made = must(generate(session, sampler, options, {}));
        CAPTURE(text);
        CAPTURE(made.text);
        CHECK(made.reason == StopReason::max_tokens);
        for (size_t i = 1; i < made.tokens.size(); ++i)
            if (made.tokens[i] == made.tokens[i - 1])
                least = std::min(least, -std::expm1(made.logprobs[i].chosen.logprob));
    }
    MESSAGE("the surest repetition leaves others ", least);
    CHECK(least > 0x1p-26);
}

TEST_CASE("demo: every backend says the same, and predicts as well") {
    const auto reference = test::cpu();
    Demo first(*reference);
    // Beginnings that the model knows one end of.
    std::map<std::string, std::string> known;
    for (const char* text :
         {"GGUF is a file format for language models: one file", "A week has seven days: Monday,",
          "Q4_K_M means: 4 bits per weight,", "The KV cache holds the keys and"})
        known[text] = first.go_on(text, 8);
    std::map<std::string, std::string> answers;
    for (const char* question : kQuestions) answers[question] = first.answer(question, 40);
    const double perplexity = first.perplexity(128, 2);
    // ctest has each backend say a share of them, the next one another share.
    const Share share = share_of_cases();
    size_t number = 0;
    for (const auto& backend : all_test_backends(false)) {
        CAPTURE(backend->device().name);
        CAPTURE(backend->device().detail);
        Demo other(*backend);
        for (const auto& [text, end] : known)
            if (share.takes(number++)) CHECK(other.go_on(text, 8) == end);
        for (const auto& [question, said] : answers)
            if (share.takes(number++)) CHECK(other.answer(question, 40) == said);
        ++number;
        CHECK(other.perplexity(128, 2) == doctest::Approx(perplexity).epsilon(0.01));
    }
    CHECK(first.answer("how much is 12 + 7?").find("19") != std::string::npos);
}

TEST_CASE("demo: quantization costs less than 1 % of perplexity in Q8_0 and 5 % in Q4_K_M") {
    const auto backend = test::cpu();
    const double eight = Demo(*backend).perplexity(512, 1000);
    CHECK(eight < 1.01 * kPerplexityF16);
    CHECK(eight > 0.99 * kPerplexityF16);
    // The F16 file is too large to be kept; eight bits are as good a source for four.
    const std::string path =
        (std::filesystem::temp_directory_path() / fmt::format("redline_demo_q4_{}.gguf", ::getpid()))
            .string();
    const Gguf source = must(Gguf::open(demo()));
    must(quantize(source, path, *find_recipe("Q4_K_M"), {.threads = 2, .allow_requantize = true}));
    Demo four(*backend, path);
    std::filesystem::remove(path);
    CHECK(four.perplexity(512, 1000) < 1.05 * kPerplexityF16);
    CHECK(four.answer("What is GGUF?").find("file") != std::string::npos);
}

}  // namespace redline
