#include "json/json.h"
#include "support/material.h"
#include "support/text_support.h"
#include "text/chat/reasoning.h"
#include "text/tokens/charsmap.h"

#include <cmath>
#include <functional>
#include <limits>

using namespace redline;
using namespace redline::test;

namespace {

std::vector<int64_t> bytes_of_hex(const std::string& hex) {
    std::vector<int64_t> bytes;
    for (size_t at = 0; at < hex.size(); at += 2) bytes.push_back(std::stoi(hex.substr(at, 2), nullptr, 16));
    return bytes;
}

SmallVocabulary golden_vocabulary(const Json& golden) {
    SmallVocabulary vocabulary;
    vocabulary.model = "t5";
    vocabulary.pre.clear();
    vocabulary.tokens = golden["tokens"].get<std::vector<std::string>>();
    vocabulary.types = golden["types"].get<std::vector<int64_t>>();
    vocabulary.scores = golden["scores"].get<std::vector<float>>();
    vocabulary.set_flag("add_space_prefix", golden["space_prefix"]);
    vocabulary.set_flag("remove_extra_whitespaces", golden["remove_extra"]);
    const std::string rules = golden["charsmap"];
    if (!rules.empty()) vocabulary.set("tokenizer.ggml.precompiled_charsmap", {bytes_of_hex(rules), 9, 0});
    vocabulary.set_id("unknown", 0);
    return vocabulary;
}

// The words of a harmony chat, as LLM-jp 4 has them.
SmallVocabulary harmony_unigram() {
    SmallVocabulary vocabulary = small_unigram();
    for (const char* mark :
         {"<|start|>", "<|channel|>", "<|message|>", "<|end|>", "<|return|>", "<|call|>", "<|constrain|>"})
        vocabulary.add(mark, 3);
    for (const char* word : {"assistant", "analysis", "final", "functions", "hello"})
        vocabulary.add(std::string(kSpaceSymbol) + word, 1, -7.5f);
    return vocabulary;
}

// The largest sum of scores over all ways to cut `text`, by trying them.
double best_sum(const SmallVocabulary& vocabulary, const std::string& text) {
    double least = 0;
    for (size_t i = 0; i < vocabulary.tokens.size(); ++i)
        if (vocabulary.types[i] == 1) least = std::min(least, double(vocabulary.scores[i]));
    const std::function<double(size_t)> best = [&](size_t at) {
        if (at == text.size()) return 0.0;
        const size_t character = utf8_step(text, at).bytes;
        double most = -std::numeric_limits<double>::infinity();
        bool known = false;
        for (size_t i = 0; i < vocabulary.tokens.size(); ++i) {
            const std::string& token = vocabulary.tokens[i];
            if (vocabulary.types[i] != 1 || text.compare(at, token.size(), token) != 0) continue;
            most = std::max(most, double(vocabulary.scores[i]) + best(at + token.size()));
            known |= token.size() == character;
        }
        return known ? most : std::max(most, least - 10 + best(at + character));
    };
    return best(0);
}

}  // namespace

TEST_CASE("unigram: texts have the ids that SentencePiece gives them") {
    const Json all = parse_json(read_file(golden("text/unigram.json")));
    REQUIRE(all.size() == 3);
    for (const Json& golden : all) {
        const std::string kind = golden["kind"];
        CAPTURE(kind);
        const Tokenizer tokenizer = make(golden_vocabulary(golden));
        CHECK(tokenizer.description() == "Unigram");
        CHECK(tokenizer.warnings().empty());
        REQUIRE(golden["texts"].size() == golden["ids"].size());
        for (size_t i = 0; i < golden["texts"].size(); ++i) {
            const std::string text = golden["texts"][i];
            CAPTURE(printable(text));
            const std::vector<Token> ids = tokenizer.encode(text, kPlain);
            CHECK(ids == golden["ids"][i].get<std::vector<Token>>());
            if (kind == "bytes") CHECK(tokenizer.decode(ids) == text);
        }
    }
}

TEST_CASE("unigram: no way to cut a text has a larger sum of scores") {
    const SmallVocabulary vocabulary = small_unigram();
    const Tokenizer tokenizer = make(vocabulary);
    std::mt19937 random(11);
    for (int round = 0; round < 100; ++round) {
        const std::string text = random_text(random, 1 + random() % 9);
        CAPTURE(printable(text));
        double sum = 0;
        for (const Token token : tokenizer.encode(text, kPlain))
            if (tokenizer.type(token) == TokenType::normal) sum += double(vocabulary.scores[size_t(token)]);
        std::string spaced(kSpaceSymbol);
        size_t unknown = 0;
        for (size_t at = 0; at < text.size(); at += utf8_step(text, at).bytes) {
            const std::string_view character = std::string_view(text).substr(at, utf8_step(text, at).bytes);
            const bool letter = character.size() == 1 && character[0] >= 'a' && character[0] <= 'z';
            unknown += !letter && character != " ";
            spaced += character == " " ? kSpaceSymbol : character;
        }
        const double least = double(vocabulary.scores.back());
        CHECK(sum + double(unknown) * (least - 10) == doctest::Approx(best_sum(vocabulary, spaced)));
    }
}

TEST_CASE("unigram: any bytes come back, and long texts take time in proportion") {
    const Tokenizer tokenizer = make(small_unigram());
    std::mt19937 random(3);
    for (int round = 0; round < 300; ++round) {
        const std::string text = random_text(random, random() % 60);
        std::string bytes;
        for (size_t i = random() % 50; i > 0; --i) bytes += char(random() % 256);
        CAPTURE(printable(text));
        CHECK(tokenizer.decode(tokenizer.encode(text)) == text);
        CHECK(tokenizer.decode(tokenizer.encode(bytes)) == bytes);
    }
    const std::string letters(size_t(1) << 20, 'a');  // no place is decided before the end
    CHECK(tokenizer.encode(letters, kPlain).size() == (size_t(1) << 18) + 1);
    const std::string spaces(size_t(1) << 20, ' ');
    CHECK(tokenizer.decode(tokenizer.encode(spaces)) == spaces);
}

TEST_CASE("unigram: text never becomes a control, unknown or byte token") {
    SmallVocabulary vocabulary = small_unigram();
    vocabulary.scores[0] = vocabulary.scores[1] = vocabulary.scores[70] = 0;  // more likely than any word
    const Tokenizer tokenizer = make(vocabulary);
    CHECK(shown(tokenizer, "<s><unk><0x43>").starts_with(" |<|s|>|<|u|"));
    for (const Token token : tokenizer.encode("<s></s><unk><0x43>", kPlain))
        CHECK(tokenizer.raw_text(token).size() < 7);
    CHECK(tokenizer.encode("<s>", kParsed) == std::vector<Token>{1});
}

TEST_CASE("unigram: without bytes, unknown characters in a row are one unknown token") {
    SmallVocabulary vocabulary = small_unigram();
    vocabulary.tokens[3] = "<none>";
    const Tokenizer lacking = make(vocabulary);
    CHECK(
        warns(lacking, "1 of the 256 bytes have no token: characters that are no token become the unknown"));
    CHECK(shown(lacking,
                "a\xE2\x98\x83\xE2\x98\x83"
                "b \xF0\x9F\xA6\x99") == " |a|<unk>|b| |<unk>");
    CHECK(shown(lacking, "\xE2\x98\x83") == " |<unk>");
    SmallVocabulary none = small_unigram();
    none.tokens.erase(none.tokens.begin() + 3, none.tokens.begin() + 259);
    none.types.erase(none.types.begin() + 3, none.types.begin() + 259);
    none.scores.erase(none.scores.begin() + 3, none.scores.begin() + 259);
    none.tokens[0] = "text";
    none.types[0] = 1;
    none.more.clear();
    const Tokenizer bare = make(none);
    CHECK(warns(bare, "there is no unknown token: characters that are no token are left out"));
    CHECK(shown(bare,
                "a\xE2\x98\x83"
                "b") == "a|b");
}

TEST_CASE("unigram: a vocabulary with such scores is one, also where the file says SPM") {
    SmallVocabulary vocabulary = small_unigram();
    vocabulary.model = "llama";
    const Tokenizer marked = make(vocabulary);
    CHECK(marked.description() == "Unigram");
    CHECK(warns(marked, "is marked \"llama\" and its scores are those of a Unigram vocabulary"));
    CHECK(marked.bos() == 1);
    CHECK(marked.adds_bos());
    vocabulary.more.clear();
    CHECK(shown(make(vocabulary), "the thing") == shown(marked, "the thing"));
    // A few words were added to a true SPM vocabulary: it stays one.
    SmallVocabulary spm = small_spm();
    for (const char* word : {"more", "words"}) spm.add(word, 1, -3.25f);
    CHECK(make(spm).description() == "SPM");
    spm.scores.assign(spm.scores.size(), 0);
    CHECK(make(spm).description() == "SPM");
}

TEST_CASE("unigram: BOS and EOS are added as the file says, and by default neither") {
    SmallVocabulary vocabulary = small_unigram();
    vocabulary.set_id("bos", 1);
    vocabulary.set_id("eos", 2);
    CHECK(make(vocabulary).encode("a").size() == 2);
    vocabulary.set_flag("add_bos_token", true);
    vocabulary.set_flag("add_eos_token", true);
    const std::vector<Token> ids = make(vocabulary).encode("a");
    REQUIRE(ids.size() == 4);
    CHECK(ids.front() == 1);
    CHECK(ids.back() == 2);
}

TEST_CASE("unigram: a text begins anew behind a special token, and its space is not the answer's") {
    const Tokenizer tokenizer = make(harmony_unigram());
    const std::string said =
        "<|channel|>analysis<|message|>the thing<|end|><|start|>assistant<|channel|>final<|message|>hello  "
        "the "
        "<|return|>";
    const std::vector<Token> ids = tokenizer.encode(said, kParsed);
    CHECK(tokenizer.raw_text(ids[1]) == std::string(kSpaceSymbol) + "analysis");
    CHECK(tokenizer.decode(ids, true) == said);
    const auto marks = ReasoningMarks::find("<|start|><|channel|>analysis<|message|>", tokenizer);
    REQUIRE(marks.has_value());
    CHECK(marks->is_harmony());
    ReasoningSplitter splitter(*marks, "<|start|>assistant");
    std::string reasoning, answer;
    Token previous = tokenizer.encode("<|start|>assistant", kParsed).back();
    for (const Token token : ids) {
        if (!tokenizer.is_end_of_generation(token))
            for (const AnswerPiece& piece : splitter.push(tokenizer.piece_after(previous, token)))
                (piece.reasoning ? reasoning : answer) += piece.text;
        previous = token;
    }
    for (const AnswerPiece& piece : splitter.finish()) answer += piece.text;
    CHECK(reasoning == "the thing");
    CHECK(answer == "hello  the ");
    // Within a text a space is a space.
    const Token the = tokenizer.find(std::string(kSpaceSymbol) + "the");
    const Token hello = tokenizer.find(std::string(kSpaceSymbol) + "hello");
    CHECK(tokenizer.piece_after(hello, the) == " the");
    CHECK(tokenizer.piece_after(ids[0], the) == "the");
    CHECK(tokenizer.piece_after(kNoToken, the) == "the");
    CHECK(make(small_spm()).piece_after(1, make(small_spm()).find(std::string(kSpaceSymbol) + "the")) ==
          " the");
}

TEST_CASE("unigram: hostile vocabularies are refused or repaired with a warning") {
    SmallVocabulary vocabulary = small_unigram();
    const std::string infinite = "aa";
    for (size_t i = 0; i < vocabulary.tokens.size(); ++i)
        if (vocabulary.tokens[i] == infinite) vocabulary.scores[i] = std::numeric_limits<float>::infinity();
    vocabulary.add("bb", 1, -std::numeric_limits<float>::infinity());
    vocabulary.add("", 1, -1.5f);
    vocabulary.add(std::string(3000, 'c'), 1, -0.5f);
    vocabulary.add("\xE2\x98", 1, -0.5f);
    vocabulary.add("d", 1, -0.25f);  // twice
    const Tokenizer repaired = make(vocabulary);
    CHECK(warns(repaired, "2 tokens are no UTF-8 or longer than 2048 bytes and match nothing"));
    const std::string text = "aaaaa bbbb " + std::string(4000, 'c') + "\xE2\x98\x83 d";
    CHECK(repaired.decode(repaired.encode(text)) == text);
    SmallVocabulary spm = small_unigram();
    Metadata metadata;
    REQUIRE(metadata.add("tokenizer.ggml.model", {std::string("t5"), 8, 0}).ok());
    REQUIRE(metadata.add("tokenizer.ggml.tokens", {spm.tokens, 9, 8}).ok());
    CHECK(mentions(refusal(metadata), "scores is missing: a Unigram tokenizer cannot work without"));
}

TEST_CASE("unigram: hostile rules of normalization are refused or do no harm") {
    const auto with_rules = [](MetadataValue value) {
        SmallVocabulary vocabulary = small_unigram();
        vocabulary.set("tokenizer.ggml.precompiled_charsmap", std::move(value));
        return vocabulary;
    };
    CHECK(mentions(refusal(with_rules({std::string("text"), 8, 0})), "charsmap is no list of bytes"));
    for (const std::vector<int64_t>& bytes : {std::vector<int64_t>{1},
                                              {0, 0, 0, 0},
                                              {8, 0, 0, 0, 1, 2, 3, 4},
                                              {255, 255, 255, 255, 0, 0, 0, 0},
                                              {3, 0, 0, 0, 1, 2, 3}})
        CHECK(mentions(refusal(with_rules({bytes, 9, 0})), "precompiled_charsmap: its "));
    CHECK(make(with_rules({std::vector<int64_t>{}, 9, 0})).encode("a", kPlain).size() == 2);

    // Any trie and any replacements: no access outside, and a rule is never longer than the text.
    const Json all = parse_json(read_file(golden("text/unigram.json")));
    std::string rules;
    for (const int64_t byte : bytes_of_hex(all[1]["charsmap"])) rules += char(byte);
    std::mt19937 random(29);
    for (int round = 0; round < 2000; ++round) {
        std::string changed = rules;
        for (size_t i = random() % 40; i > 0; --i)
            changed[4 + random() % (rules.size() - 4)] = char(random());
        if (round % 4 == 0) changed.resize(changed.size() - random() % 20);  // of the replacements
        const Result<CharsMap> map = CharsMap::read(changed);
        if (!map) continue;
        const std::string text = "ab\xEF\xBC\xA1\xE3\x81\x8B\xE3\x82\x99\xE2\x91\xA0 abc\t";
        for (size_t at = 0; at < text.size(); ++at)
            CHECK(map.value().find(text, at).bytes <= text.size() - at);
    }
}
