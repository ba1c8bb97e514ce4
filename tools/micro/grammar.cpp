// Times what a grammar adds to a token, over a real vocabulary: micro_grammar VOCABULARY.gguf...
// Texts are random but for the tokens that the grammar leaves no choice about; times are CPU times of one
// thread.
#include "gguf/gguf.h"
#include "grammar/constraint.h"
#include "grammar/json_schema.h"
#include "sample/sampler.h"
#include "text/tokens/tokenizer.h"

#include <algorithm>
#include <cstdio>
#include <random>

#include <time.h>

using namespace redline;

namespace {

// This thread's, so that other programs do not count.
double now_us() {
    timespec now = {};
    clock_gettime(CLOCK_THREAD_CPUTIME_ID, &now);
    return double(now.tv_sec) * 1e6 + double(now.tv_nsec) * 1e-3;
}

struct Times {
    std::vector<double> us;
    double mean() const {
        double sum = 0;
        for (const double x : us) sum += x;
        return sum / double(us.size());
    }
    double most() const { return *std::max_element(us.begin(), us.end()); }
};

constexpr const char* kJson = R"gbnf(root ::= value
value ::= object | array | string | number | "true" | "false" | "null"
object ::= "{" ws (string ws ":" ws value (ws "," ws string ws ":" ws value)* ws)? "}"
array ::= "[" ws (value (ws "," ws value)* ws)? "]"
string ::= "\"" ([^"\\\x7F\x00-\x1F] | "\\" (["\\bfnrt] | "u" [0-9a-fA-F]{4}))* "\""
number ::= "-"? ("0" | [1-9] [0-9]{0,15}) ("." [0-9]+)? ([eE] [-+]? [0-9]+)?
ws ::= | " " | "\n" [ \t]{0,20}
)gbnf";

constexpr const char* kSchema = R"json({"type":"object","properties":{
"title":{"type":"string","maxLength":80},"summary":{"type":"string","minLength":20,"maxLength":400},
"score":{"type":"number"},"count":{"type":"integer","minimum":0,"maximum":1000},
"kind":{"enum":["bug","feature","question"]},
"people":{"type":"array","maxItems":5,"items":{"type":"object","properties":{"name":{"type":"string","maxLength":40},
"mail":{"type":"string","pattern":"^[a-z.]{1,20}@[a-z]{1,20}\\.(com|org)$"}},"required":["name","mail"]}}},
"required":["title","summary","score","count","kind","people"]})json";

Status measure(const char* name, const std::string& text, const Tokenizer& tokenizer,
               const std::string& file) {
    const auto size = int32_t(tokenizer.size());
    const auto start = now_us();
    Grammar grammar = RL_TRY(Grammar::parse(text));
    std::shared_ptr<Constraint> constraint =
        RL_TRY(Constraint::create(std::move(grammar), tokenizer, tokenizer.size()));
    const double made_ms = (now_us() - start) * 1e-3;
    SamplerOptions options;
    options.seed = 1;
    Sampler with = RL_TRY(Sampler::create(options, {size, 4096, {}, constraint}));
    Sampler without = RL_TRY(Sampler::create(options, {size, 4096, {}}));
    std::mt19937 random(1);
    std::normal_distribution<float> normal(0.0f, 3.0f);
    std::vector<float> logits(tokenizer.size());
    for (float& logit : logits) logit = normal(random);
    Times constrained, free;
    for (int token = 0; token < 2000; ++token) {
        for (int i = 0; i < 2000; ++i) logits[random() % logits.size()] = normal(random);
        auto from = now_us();
        const int32_t chosen = RL_TRY(with.sample(logits));
        with.accept(chosen);
        constrained.us.push_back(now_us() - from);
        from = now_us();
        without.accept(RL_TRY(without.sample(logits)));
        free.us.push_back(now_us() - from);
        if (tokenizer.is_end_of_generation(chosen) || with.finished()) with.reset();
    }
    const double added = constrained.mean() - free.mean();
    std::printf("| %s | %d | %s | %.0f | %.1f | %.0f | %.0f | %.1f %% | %.1f %% |\n", file.c_str(), size,
                name, made_ms, constrained.most() * 1e-3, free.mean(), added, added / 100, added / 30);
    return {};
}

Status run(const std::string& path) {
    const Gguf file = RL_TRY(Gguf::open(path));
    const Tokenizer tokenizer = RL_TRY(Tokenizer::create(file.metadata()));
    const std::string name = path.substr(path.rfind('/') + 1);
    RL_TRY(measure("any JSON", kJson, tokenizer, name));
    RL_TRY(measure("free text", "root ::= [^\\x00-\\x08]+ \"\\n\\n\"", tokenizer, name));
    return measure("schema", RL_TRY(grammar_of_schema(kSchema)), tokenizer, name);
}

}  // namespace

int main(int count, char** arguments) {
    std::printf(
        "| vocabulary | tokens | grammar | made in, ms | slowest token, ms | sampling alone, us | added, us "
        "| "
        "of 10 ms | of 3 ms |\n|---|---:|---|---:|---:|---:|---:|---:|---:|\n");
    for (int i = 1; i < count; ++i)
        if (const Status done = run(arguments[i]); !done) {
            std::fprintf(stderr, "grammar: %s\n", done.error().message.c_str());
            return 1;
        }
    return count > 1 ? 0 : 2;
}
