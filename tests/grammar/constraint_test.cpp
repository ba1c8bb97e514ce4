// Masks over whole vocabularies: the fast way and the plain one agree, and samplers choose as if the logits
// had been masked before.
#include "gguf/gguf.h"
#include "sample/sampler.h"
#include "support/grammars.h"
#include "support/material.h"
#include "support/share.h"
#include "support/text_support.h"

#include <cmath>

using namespace redline;
using namespace redline::test;

namespace {

std::unique_ptr<Constraint> constrained(std::string_view grammar, const Tokenizer& tokenizer) {
    return must(Constraint::create(parsed(grammar), tokenizer, tokenizer.size()));
}

std::vector<bool> fast_mask(Constraint& constraint) {
    const std::span<const uint64_t> bits = must(constraint.allowed());
    std::vector<bool> mask(constraint.table().size());
    for (size_t i = 0; i < mask.size(); ++i) mask[i] = (bits[i / 64] >> (i % 64) & 1) != 0;
    return mask;
}

// Goes on with random tokens; every mask on the way is held to the plain one.
size_t compare_masks(std::string_view grammar_text, const Tokenizer& tokenizer, std::mt19937& random,
                     int steps) {
    const Grammar grammar = parsed(grammar_text);
    const auto constraint = constrained(grammar_text, tokenizer);
    std::string text;
    size_t different = 0;
    for (int step = 0; step < steps; ++step) {
        const std::vector<bool> mask = fast_mask(*constraint);
        const std::vector<bool> plain = plain_mask(grammar, constraint->table(), text);
        for (size_t i = 0; i < mask.size(); ++i) different += mask[i] != plain[i] ? 1 : 0;
        std::vector<int32_t> allowed;
        for (size_t i = 0; i < mask.size(); ++i)
            if (mask[i] && !constraint->table().ends(int32_t(i))) allowed.push_back(int32_t(i));
        if (allowed.empty()) {
            constraint->restart();
            text.clear();
            continue;
        }
        const int32_t token = allowed[random() % allowed.size()];
        REQUIRE(constraint->accept(token).ok());
        text += constraint->table().piece(token);
    }
    return different;
}

// Strings that differ in their counts and in where they stand, and rules that are written twice.
constexpr std::string_view kTwice =
    R"gbnf(root ::= "[" name "," mail ("," name2){0,3} "," "\"" [^"\\]{2,6} "\"]"
name ::= "\"" char{0,7} "\""
mail ::= "\"" char{1,9} "@" char{0,4} "\""
name2 ::= "\"" char2{0,7} "\"" | [0-9]{1,3}
char ::= [^"\\] | "\\" ["n]
char2 ::= [^"\\] | "\\" ["n]
)gbnf";

constexpr std::string_view kCounted = R"gbnf(root ::= "[" word ("," word){2,40} "]"
word ::= "\"" [^"]{3,30} "\"" | [0-9]{1,5} | "é" .{2}
)gbnf";

// Texts of an even length within limits, and of a few lengths only: counts that matter far from their ends.
constexpr std::string_view kSteps = R"gbnf(root ::= "[" @even{3,40} "," @some{0,30} "," @even{4,} "]"
even ::= "" | [a-z] @odd | ("\\" [n"]) @odd
odd ::= [a-z0-9] @even
some ::= "" | "a" @some1 | "b" @even
some1 ::= [a-c] @some2
some2 ::= [a-c] @some3
some3 ::= ""
)gbnf";

// After some characters it could be in more than 64 places, of which those that go on alike are one.
constexpr std::string_view kManyWays =
    R"gbnf(root ::= [a-z ] | [a-y ] root "b" | [a-x] root "c" | [a-w] root "bc")gbnf";

SmallVocabulary with_end(SmallVocabulary vocabulary) {
    const int32_t end = vocabulary.add("<|end|>");
    vocabulary.add("<think>");
    vocabulary.types.assign(vocabulary.tokens.size(), 1);
    vocabulary.types[size_t(end)] = 3;
    vocabulary.types.back() = 3;
    vocabulary.set_id("eos", end);
    return vocabulary;
}

}  // namespace

TEST_CASE("constraint: the mask is that of every token tried by itself, on a small vocabulary") {
    const Tokenizer tokenizer = make(with_end(small_bpe()));
    std::mt19937 random(3);
    for (const std::string_view grammar :
         {kJsonGrammar, kArithmeticGrammar, kChessGrammar, kListGrammar, kCGrammar, kCounted, kTwice, kSteps,
          kManyWays, std::string_view("root ::= .*"),
          std::string_view("root ::= ([^\\x00-\\x7F] \"a\"{2,3}){1,4}")})
        CHECK(compare_masks(grammar, tokenizer, random, 200) == 0);
}

TEST_CASE("constraint: the mask is that of every token tried by itself, on real vocabularies") {
    std::mt19937 random(4);
    const Share share = share_of_cases();
    size_t number = 0;
    for (const char* name : {"qwen3", "llama-spm"}) {
        RL_NEED_MATERIAL(path, fmt::format("vocab/{}.gguf", name));
        const Gguf file = must(Gguf::open(path));
        const Tokenizer tokenizer = must(Tokenizer::create(file.metadata()));
        for (const std::string_view grammar : {kJsonGrammar, kCounted, kListGrammar, kSteps})
            if (share.takes(number++))
                CHECK_MESSAGE(compare_masks(grammar, tokenizer, random, 25) == 0, name);
    }
}

TEST_CASE("constraint: the text may end exactly when the grammar can end") {
    const Tokenizer tokenizer = make(with_end(small_bpe()));
    const int32_t end = tokenizer.find("<|end|>");
    const auto constraint = constrained("root ::= \"a\" \"b\"?", tokenizer);
    const auto allows = [&](int32_t token) { return must(constraint->allows(token)); };
    CHECK_FALSE(allows(end));
    REQUIRE(constraint->accept(tokenizer.find("a")).ok());
    CHECK(allows(end));
    CHECK_FALSE(constraint->finished());
    REQUIRE(constraint->accept(tokenizer.find("b")).ok());
    CHECK(allows(end));
    CHECK(constraint->finished());
    CHECK_FALSE(constraint->accept(tokenizer.find("b")).ok());
    constraint->restart();
    CHECK_FALSE(allows(end));
}

TEST_CASE("constraint: control tokens are allowed only where the grammar names them") {
    const Tokenizer tokenizer = make(with_end(small_bpe()));
    const int32_t think = tokenizer.find("<think>");
    CHECK_FALSE(fast_mask(*constrained("root ::= .*", tokenizer))[size_t(think)]);
    CHECK_FALSE(fast_mask(*constrained("root ::= !<[97]>", tokenizer))[size_t(think)]);
    for (const std::string& name : {std::string("<think>"), fmt::format("<[{}]>", think)}) {
        const auto constraint = constrained("root ::= " + name + " !<[97]>* \"a\"", tokenizer);
        const std::vector<bool> mask = fast_mask(*constraint);
        CHECK(mask[size_t(think)]);
        CHECK(std::count(mask.begin(), mask.end(), true) == 1);
        REQUIRE(constraint->accept(think).ok());
        REQUIRE(constraint->accept(98).ok());
        CHECK(fast_mask(*constraint)[97]);  // by its text
        REQUIRE(constraint->accept(97).ok());
        CHECK(constraint->finished());
    }
    const auto missing = Constraint::create(parsed("root ::= \"a\" |\n <x>"), tokenizer, tokenizer.size());
    CHECK(missing.error().message ==
          "the grammar names the token <x> (line 2, column 2), which this model's vocabulary does not have");
    const auto ending = Constraint::create(parsed("root ::= <|end|>"), tokenizer, tokenizer.size());
    CHECK(ending.error().message.find("ends the text by itself") != std::string::npos);
}

namespace {

// Byte tokens, the marks of reasoning of several families, and tokens of several characters.
Tokenizer of_thinkers() {
    SmallVocabulary vocabulary = small_bpe();
    vocabulary.add_merge(":", "y");
    vocabulary.types.assign(vocabulary.tokens.size(), 1);
    for (const char* mark : {"<think>", "</think>"}) vocabulary.add(mark, 4);
    for (const char* mark : {"<|channel|>", "<|message|>", "<|start|>", "<|end|>", "<|return|>", "<|call|>",
                             "<|START_THINKING|>", "<|END_THINKING|>", "<|START_RESPONSE|>"})
        vocabulary.add(mark, 3);
    vocabulary.set_id("eos", int64_t(vocabulary.add("<|over|>", 3)));
    return make(vocabulary);
}

// The part of a text that a constraint accepts, token by token, and the place where it is finished; marks are
// tokens.
std::string taken(Constraint& constraint, const Tokenizer& tokenizer, std::string_view text) {
    std::string out;
    for (const Token token : tokenizer.encode(text, kParsed)) {
        const std::vector<bool> mask = fast_mask(constraint);
        const bool allowed = must(constraint.allows(token));
        CHECK(mask[size_t(token)] == allowed);
        CHECK(constraint.accept(token).ok() == allowed);
        if (!allowed) return out + "|";
        out += tokenizer.piece(token, true);
    }
    return out + (constraint.finished() ? "." : "");
}

}  // namespace

TEST_CASE("constraint: of a model that reasons the answer alone is bound") {
    const Tokenizer tokenizer = of_thinkers();
    const Token end = tokenizer.find("<|over|>");
    const auto constraint = constrained("root ::= \"yes\"", tokenizer);
    const auto take = [&](const char* family, std::string_view scaffold, bool wanted, std::string_view text) {
        constraint->expect_reasoning(ReasoningMarks::named(family), scaffold, wanted);
        return taken(*constraint, tokenizer, text);
    };
    // Opened by the prompt; an empty line may stand before the answer, and only the answer may end.
    CHECK(take("think", "<think>\n", true, "so </ yes\n</think>yes") == "so </ yes\n</think>yes.");
    CHECK(take("think", "<think>\n", true, "</think>\n\nyes") == "</think>\n\nyes.");
    CHECK(take("think", "<think>\n", true, "</think>\n\n\nyes") == "</think>\n\n|");
    CHECK(take("think", "<think>\n", true, "</think>no") == "</think>|");
    CHECK(take("think", "<think>\n", true, "yes<|over|>") == "yes|");
    constraint->restart();
    CHECK_FALSE(must(constraint->allows(end)));
    CHECK(taken(*constraint, tokenizer, "again</think>yes") == "again</think>yes.");
    // Opened by the model, or not.
    CHECK(take("think", "assistant\n", true, "<think>a</think>yes") == "<think>a</think>yes.");
    CHECK(take("think", "assistant\n", true, "yes") == "yes.");
    CHECK(take("think", "assistant\n", true, "a<think>") == "|");
    CHECK(take("think", "assistant\n", true, "y<think>") == "y|");
    CHECK(take("think", "assistant\n", false, "<think>") == "|");
    CHECK(take("think", "<think>\n\n</think>\n\n", true, "<think>") == "|");
    CHECK(take("think", "<think>\n\n</think>\n\n", true, "yes") == "yes.");
    CHECK(take("think", "<think>\n", false, "</think>\n\nyes") == "</think>\n\nyes.");
    // Marks that are plain text, and a token that would end one and begin the answer.
    const std::string open = "Here is my thought process:", close = "Here is my response:";
    CHECK(take("granite", "", true, open + " no. " + close + "\n\nyes") ==
          open + " no. " + close + "\n\nyes.");
    CHECK(take("granite", "", true, "Hello") == "He|");
    CHECK(take("granite", open, true, close + "yes") == close.substr(0, close.size() - 1) + "|");
    // Marks around the answer.
    CHECK(take("command", "<|START_THINKING|>", true, "a<|END_THINKING|><|START_RESPONSE|>yes") ==
          "a<|END_THINKING|><|START_RESPONSE|>yes.");
    constraint->expect_reasoning({}, "<think>\n", true);
    CHECK(taken(*constraint, tokenizer, "no") == "|");
}

TEST_CASE("constraint: of harmony's messages the answer alone is bound") {
    const Tokenizer tokenizer = of_thinkers();
    const auto constraint = constrained("root ::= \"yes\"", tokenizer);
    const auto take = [&](std::string_view scaffold, bool wanted, std::string_view text) {
        constraint->expect_reasoning(ReasoningMarks::named("harmony"), scaffold, wanted);
        return taken(*constraint, tokenizer, text);
    };
    const std::string begun = "<|start|>assistant", final = "<|channel|>final<|message|>";
    const std::string thought = "<|channel|>analysis<|message|>no, yes<|end|><|start|>assistant";
    CHECK(take(begun, true, thought + final + "yes") == thought + final + "yes.");
    CHECK(take(begun, true, thought + final + "no") == thought + final + "|");
    CHECK(take(begun, true, "yes") == "yes.");
    CHECK(take(begun, false, final + "yes") == final + "yes.");
    CHECK(take(begun, false, "<|channel|>analysis") == "<|channel|>|");
    CHECK(take(begun + final, true, "yes") == "yes.");
}

TEST_CASE("constraint: marks that a vocabulary does not have open nothing") {
    const Tokenizer tokenizer = make(with_end(small_bpe()));
    const auto constraint = constrained("root ::= \"yes\"", tokenizer);
    for (const char* family : {"harmony", "gemma4", "command"}) {
        constraint->expect_reasoning(ReasoningMarks::named(family), "assistant\n", true);
        CHECK(taken(*constraint, tokenizer, "yes") == "yes.");
    }
}

TEST_CASE("constraint: a grammar that names a mark of reasoning binds the reasoning, too") {
    const Tokenizer tokenizer = of_thinkers();
    const auto constraint = constrained("root ::= <think> \"a\" </think> \"yes\"", tokenizer);
    constraint->expect_reasoning(ReasoningMarks::named("think"), "assistant\n", true);
    CHECK(taken(*constraint, tokenizer, "<think>b") == "<think>|");
    constraint->restart();
    CHECK(taken(*constraint, tokenizer, "<think>a</think>yes") == "<think>a</think>yes.");
    // Its text is a grammar's as well; that the model opens its reasoning goes before.
    const auto any = constrained("root ::= [^\\n!]* \"!\"", tokenizer);
    any->expect_reasoning(ReasoningMarks::named("think"), "assistant\n", true);
    CHECK(taken(*any, tokenizer, "<think>\n</think>yes!") == "<think>\n</think>yes!.");
}

TEST_CASE("sampler: with a constraint it chooses as from logits that were masked before") {
    const Tokenizer tokenizer = make(with_end(small_bpe()));
    const auto size = int32_t(tokenizer.size());
    std::vector<SamplerOptions> all(6);
    all[1].temperature = 0.0f;
    all[2].mirostat = 2;
    all[3].mirostat = 1;
    all[4].repeat_penalty = 1.3f, all[4].logit_bias = {{'a', 2.0f}, {'"', -1.0f}};
    all[5].top_k = 0, all[5].typical_p = 0.8f, all[5].xtc_probability = 0.5f;
    for (SamplerOptions options : all) {
        options.seed = 7;
        std::shared_ptr<Constraint> constraint = constrained(kJsonGrammar, tokenizer);
        const auto again = constrained(kJsonGrammar, tokenizer);
        Sampler sampler = must(Sampler::create(options, {size, 4096, {}, constraint}));
        Sampler plain = must(Sampler::create(options, {size, 4096, {}}));
        CHECK(sampler.best_wanted() == 0);
        sampler.accept('x'), plain.accept('x');  // of a prompt: the grammar does not see it
        std::mt19937 random(11);
        std::normal_distribution<float> normal(0.0f, 3.0f);
        for (int step = 0; step < 60; ++step) {
            std::vector<float> logits(static_cast<size_t>(size));
            for (float& logit : logits) logit = normal(random);
            const int32_t token = must(sampler.sample(logits));
            const std::vector<bool> mask = fast_mask(*again);
            for (size_t i = 0; i < mask.size(); ++i)
                if (!mask[i]) logits[i] = -INFINITY;
            CHECK(must(plain.sample(logits)) == token);
            sampler.accept(token), plain.accept(token);
            if (tokenizer.is_end_of_generation(token)) break;
            REQUIRE(again->accept(token).ok());
        }
    }
}
