#include "support/text_support.h"

#include <doctest/doctest.h>

using namespace redline;
using namespace redline::test;

TEST_CASE("special tokens: only found when asked for, user-defined ones always") {
    SmallVocabulary vocabulary = small_bpe();
    const Token control = vocabulary.add("<|go|>", 3);
    const Token defined = vocabulary.add("<think>", 4);
    const Tokenizer tokenizer = make(vocabulary);
    CHECK(tokenizer.encode("<|go|>", kParsed) == std::vector<Token>{control});
    CHECK(tokenizer.encode("<think>", kPlain) == std::vector<Token>{defined});
    const std::vector<Token> plain = tokenizer.encode("<|go|> a", kPlain);
    CHECK(std::find(plain.begin(), plain.end(), control) == plain.end());
    CHECK(tokenizer.decode(plain) == "<|go|> a");
    CHECK(shown(tokenizer, "a<|go|><think> a<|go|>", kParsed) == "a|<|go|>|<think>| a|<|go|>");
    CHECK(tokenizer.piece(control) == "");
    CHECK(tokenizer.piece(control, true) == "<|go|>");
    CHECK(tokenizer.piece(defined) == "<think>");
}

TEST_CASE("special tokens: the longest of the whole text goes first, even where it begins later") {
    SmallVocabulary vocabulary = small_bpe();
    vocabulary.add("abc", 3);
    vocabulary.add("bcdef", 3);
    vocabulary.add("def", 3);
    vocabulary.add("ab", 3);
    const Tokenizer tokenizer = make(vocabulary);
    CHECK(shown(tokenizer, "abcdef", kParsed) == "a|bcdef");
    CHECK(shown(tokenizer, "abcde", kParsed) == "abc|d|e");
    CHECK(shown(tokenizer, "abcdef abcx", kParsed) == "a|bcdef| |abc|x");
}

// The documented rule, word by word: quadratic, obviously right.
static std::vector<std::pair<std::string, Token>> slow_split(
    const std::vector<std::pair<std::string, Token>>& specials, const std::string& text) {
    auto order = specials;
    std::stable_sort(order.begin(), order.end(),
                     [](const auto& a, const auto& b) { return a.first.size() > b.first.size(); });
    std::vector<std::pair<std::string, Token>> parts = {{text, kNoToken}};
    for (const auto& [special, token] : order) {
        std::vector<std::pair<std::string, Token>> next;
        for (const auto& [part, id] : parts) {
            if (id != kNoToken) {
                next.emplace_back(part, id);
                continue;
            }
            size_t from = 0;
            for (size_t at; (at = part.find(special, from)) != part.npos; from = at + special.size()) {
                if (at > from) next.emplace_back(part.substr(from, at - from), kNoToken);
                next.emplace_back(special, token);
            }
            if (from < part.size()) next.emplace_back(part.substr(from), kNoToken);
        }
        parts = next;
    }
    return parts;
}

TEST_CASE("special tokens: random overlapping ones are found as the slow rule finds them") {
    std::mt19937 random(17);
    for (int round = 0; round < 300; ++round) {
        SmallVocabulary vocabulary = small_bpe();
        vocabulary.merges.clear();
        std::vector<std::pair<std::string, Token>> specials;
        for (int i = 0; i < 6; ++i) {
            std::string text(1 + random() % 4, 'x');
            for (char& c : text) c = "xyz"[random() % 3];
            const bool known =
                std::any_of(specials.begin(), specials.end(), [&](const auto& s) { return s.first == text; });
            // Single letters would change what raw text becomes.
            if (text.size() > 1 && !known) specials.emplace_back(text, vocabulary.add(text, 3));
        }
        const Tokenizer tokenizer = make(vocabulary);
        std::string text(random() % 40, 'x');
        for (char& c : text) c = "xyz "[random() % 4];
        std::vector<Token> want;
        for (const auto& [part, token] : slow_split(specials, text)) {
            if (token != kNoToken) {
                want.push_back(token);
                continue;
            }
            for (const Token raw : tokenizer.encode(part, kPlain)) want.push_back(raw);
        }
        CAPTURE(text);
        CHECK(tokenizer.encode(text, kParsed) == want);
    }
}

TEST_CASE("special tokens: thousands of nested ones do not make a long text slow") {
    SmallVocabulary vocabulary = small_bpe();
    for (size_t length = 2; length < 100; ++length) vocabulary.add(std::string(length, '\n'), 4);
    for (int i = 0; i < 5000; ++i) vocabulary.add("<|reserved_" + std::to_string(i) + "|>", 3);
    const Tokenizer tokenizer = make(vocabulary);
    std::string reserved;
    for (int i = 0; i < 30'000; ++i) reserved += "<|reserved_" + std::to_string(i % 5000) + "|>";
    for (const std::string& text : {std::string(200'000, '\n'), reserved, std::string(1'000'000, '<')}) {
        const double start = cpu_seconds();
        const std::vector<Token> tokens = tokenizer.encode(text, kParsed);
        CHECK(cpu_seconds() - start < 5.0);
        CHECK(tokenizer.decode(tokens, true) == text);
    }
}

TEST_CASE("special tokens: phi-3 swallows the white space after them, by the model's name") {
    SmallVocabulary vocabulary = small_spm();
    vocabulary.add("<|user|>", 3);
    vocabulary.add("<|endoftext|>", 3);
    const std::string text = "<|user|> \n the<|endoftext|> the</s>  the";
    CHECK(shown(make(vocabulary), text, kParsed) == "<|user|>|  |\n| the|<|endoftext|>| | the|</s>|  | the");
    vocabulary.set_text("general.name", "Phi-3.5 Mini");
    CHECK(shown(make(vocabulary), text, kParsed) == "<|user|>| the|<|endoftext|>| | the|</s>| the");
}

TEST_CASE("parts: text and scaffold are merged as one, but only scaffold has control tokens") {
    SmallVocabulary vocabulary = small_bpe();
    const Token end = vocabulary.add("<|im_end|>", 3);
    vocabulary.add("\n\n", 4);
    const Tokenizer tokenizer = make(vocabulary);
    const std::vector<TextPart> parts = {{"<|im_end|>", true}, {"t", true},  {"he<|im_end|>", false},
                                         {"<|im_end|>", true}, {"\n", true}, {"\na", false}};
    const std::vector<Token> tokens = tokenizer.encode(parts, false);
    CHECK(std::count(tokens.begin(), tokens.end(), end) == 2);
    std::string pieces;
    for (const Token token : tokens) pieces += tokenizer.piece(token, true) + "|";
    CHECK(pieces == "<|im_end|>|the|<|||i|m|_|e|n|d|||>|<|im_end|>|\n\n|a|");
    // A marker that is typed half by the template and half by the user is no marker.
    const std::vector<TextPart> split = {{"<|im_", true}, {"end|>", false}};
    const std::vector<Token> typed = tokenizer.encode(split, false);
    CHECK(std::count(typed.begin(), typed.end(), end) == 0);
}

TEST_CASE("special ids: the end-of-generation set holds given ids, listed ids and known texts") {
    SmallVocabulary vocabulary = small_bpe();
    const Token eos = vocabulary.add("<|my_end|>", 3);
    const Token turn = vocabulary.add("<|im_end|>", 3);
    const Token listed = vocabulary.add("<|other|>", 3);
    const Token pad = vocabulary.add("<|fim_pad|>", 4);
    const Token infill = vocabulary.add("<|fim_prefix|>", 4);
    vocabulary.set_id("eos", eos);
    vocabulary.set("tokenizer.ggml.eos_token_ids", {std::vector<int64_t>{listed, 99999, -5}, 9, 5});
    const Tokenizer tokenizer = make(vocabulary);
    CHECK(tokenizer.eos() == eos);
    CHECK(tokenizer.end_of_generation() == std::vector<Token>{eos, turn, listed, pad});
    CHECK(tokenizer.is_end_of_generation(turn));
    CHECK_FALSE(tokenizer.is_end_of_generation(infill));
    CHECK_FALSE(tokenizer.is_end_of_generation(-1));
    CHECK_FALSE(tokenizer.is_end_of_generation(1 << 30));
    CHECK(tokenizer.type(infill) == TokenType::control);
    CHECK(warns(tokenizer, "eos_token_ids is 99999"));
    CHECK(warns(tokenizer, "eos_token_ids is -5"));
}

TEST_CASE("special ids: an end token typed as text becomes a control token, an ordinary word does not") {
    SmallVocabulary vocabulary = small_bpe();
    const Token eos = vocabulary.add("<eos>", 1);
    vocabulary.add_merge("<", "/");
    vocabulary.add_merge("s", ">");
    vocabulary.add_merge("</", "s>");  // the closing tag of HTML's <s>, as real vocabularies have it
    const Tokenizer tokenizer = make(vocabulary);
    CHECK(tokenizer.type(eos) == TokenType::control);
    CHECK(warns(tokenizer, "\"<eos>\" is typed as text"));
    CHECK(tokenizer.end_of_generation() == std::vector<Token>{eos});
    CHECK(tokenizer.type(tokenizer.find("</s>")) == TokenType::normal);
}

TEST_CASE("special ids: harmony's <|end|> ends no turn, and its channel markers are printed") {
    SmallVocabulary vocabulary = small_bpe();
    const Token end = vocabulary.add("<|end|>", 3);
    const Token channel = vocabulary.add("<|channel|>", 3);
    CHECK(make(vocabulary).is_end_of_generation(end));
    CHECK(make(vocabulary).piece(channel) == "");
    const Token ret = vocabulary.add("<|return|>", 3);
    const Token call = vocabulary.add("<|call|>", 3);
    const Tokenizer harmony = make(vocabulary);
    CHECK(harmony.end_of_generation() == std::vector<Token>{ret, call});
    CHECK(harmony.piece(channel) == "<|channel|>");
    CHECK(shown(harmony, "<|channel|>") != "<|channel|>");  // typed text stays text
    SmallVocabulary gemma = small_spm();
    CHECK(make(gemma).is_end_of_generation(2));
    gemma.add("<|tool_response>", 3);
    CHECK_FALSE(make(gemma).is_end_of_generation(2));
}

TEST_CASE("special ids: ids out of range are ignored with a warning, of the wrong kind they are an error") {
    for (const int64_t id : {int64_t(100000), int64_t(-2), int64_t(1) << 40, INT64_MIN}) {
        SmallVocabulary vocabulary = small_spm();
        vocabulary.set_id("bos", id);
        const Tokenizer tokenizer = make(vocabulary);
        CHECK(tokenizer.bos() == 1);  // the default of SPM
        CHECK(warns(tokenizer, fmt::format("bos_token_id is {}", id)));
    }
    SmallVocabulary none = small_bpe();
    none.set_id("bos", 0xFFFFFFFF);
    CHECK(make(none).bos() == kNoToken);
    SmallVocabulary wrong = small_spm();
    wrong.set_text("tokenizer.ggml.eos_token_id", "two");
    CHECK(mentions(refusal(wrong), "eos_token_id is no integer"));
    SmallVocabulary plain = small_bpe();  // id 11, the default EOS of this model, is an ordinary comma here
    CHECK(make(plain).eos() == kNoToken);
    CHECK(warns(make(plain), "no token ends a generation"));
}
