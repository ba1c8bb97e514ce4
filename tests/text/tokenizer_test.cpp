#include "gguf/gguf.h"
#include "support/material.h"
#include "support/text_support.h"

#include <doctest/doctest.h>

#include <iterator>
#include <limits>
#include <thread>

using namespace redline;
using namespace redline::test;

TEST_CASE("tokenizer: every published vector of the six vocabularies matches") {
    for (const char* name : {"llama-spm", "phi-3", "gpt-2", "llama-bpe", "qwen3", "deepseek-llm"}) {
        CAPTURE(name);
        RL_NEED_MATERIAL(path, std::string("vocab/") + name + ".gguf");
        const Result<Gguf> file = Gguf::open(path);
        REQUIRE(file.ok());
        const Result<Tokenizer> tokenizer = Tokenizer::create(file.value().metadata());
        REQUIRE(tokenizer.ok());
        const std::string base = path.substr(0, path.size() - 5);
        const std::string texts = read_file(base + ".inp");
        const std::string separator = "\n__ggml_vocab_test__\n";
        std::istringstream lines(read_file(base + ".out"));
        std::string line;
        size_t at = 0;
        size_t vectors = 0;
        for (; std::getline(lines, line); ++vectors) {
            const size_t end = std::min(texts.find(separator, at), texts.size());
            const std::string text = at < texts.size() ? texts.substr(at, end - at) : "";
            at = end + separator.size();
            std::istringstream numbers(line);
            const std::vector<Token> want{std::istream_iterator<Token>(numbers),
                                          std::istream_iterator<Token>()};
            CAPTURE(text);
            CHECK(tokenizer.value().encode(text, kPlain) == want);
        }
        CHECK(vectors >= 46);
    }
}

TEST_CASE("tokenizer: the 260K-parameter story model's SPM gives the known ids") {
    RL_NEED_MATERIAL(path, "models/stories260K.gguf");
    const Result<Gguf> file = Gguf::open(path);
    REQUIRE(file.ok());
    const Result<Tokenizer> made = Tokenizer::create(file.value().metadata());
    REQUIRE(made.ok());
    const Tokenizer& tokenizer = made.value();
    CHECK(tokenizer.description() == "SPM");
    const std::pair<const char*, std::vector<Token>> cases[] = {
        {"Hello world", {1, 346, 306, 414, 263, 304, 341}},
        {"  two spaces", {1, 410, 410, 259, 424, 414, 262, 427, 412, 331, 419}},
        {"naïve café — 3.14",
         {1, 297, 412, 198, 178, 360, 280, 412, 431, 485, 410, 481, 410, 472, 426, 475, 484}},
        {"\n\nNew", {1, 410, 13, 13, 458, 411, 424}},
        {"🦙", {1, 410, 243, 162, 169, 156}},
        {"Lily and Tom went to the park.", {1, 317, 269, 274, 287, 263, 377, 267, 265, 282, 295, 433, 426}},
    };
    for (const auto& sample : cases) {
        CAPTURE(sample.first);
        CHECK(tokenizer.encode(sample.first) == sample.second);
        CHECK(tokenizer.decode(sample.second) == sample.first);
    }
}

TEST_CASE("tokenizer: decoding what was encoded gives the text back, for any UTF-8") {
    const Tokenizer spm = make(small_spm());
    const Tokenizer bpe = make(small_bpe());
    std::mt19937 random(7);
    for (int round = 0; round < 400; ++round) {
        const std::string text = random_text(random, random() % 60);
        CAPTURE(printable(text));
        CHECK(spm.decode(spm.encode(text)) == text);
        CHECK(bpe.decode(bpe.encode(text)) == text);
    }
}

TEST_CASE("tokenizer: any bytes can be encoded; SPM keeps them, BPE reads broken UTF-8 as U+FFFD") {
    const Tokenizer spm = make(small_spm());
    const Tokenizer bpe = make(small_bpe());
    const std::string cases[] = {"",
                                 " ",
                                 "\xFF",
                                 "\xC3",
                                 "a\xE2\x82",
                                 "\xED\xA0\x80",
                                 "\xF0\x9F\xA6",
                                 "\xC0\x80",
                                 "\xF5\x80\x80\x80",
                                 std::string("\0", 1),
                                 std::string("a\0b", 3),
                                 "\x80\x80 the"};
    for (const std::string& text : cases) {
        CAPTURE(printable(text));
        CHECK(spm.decode(spm.encode(text)) == text);
        CHECK(bpe.decode(bpe.encode(text)) == to_valid_utf8(text));
    }
    std::mt19937 random(3);
    for (int round = 0; round < 300; ++round) {
        std::string text;
        for (size_t i = random() % 50; i > 0; --i) text += char(random() % 256);
        CHECK(spm.decode(spm.encode(text)) == text);
        CHECK(bpe.decode(bpe.encode(text)) == to_valid_utf8(text));
    }
}

TEST_CASE("tokenizer: BPE merges by rank, the leftmost of equal ones first") {
    const Tokenizer tokenizer = make(small_bpe());
    CHECK(shown(tokenizer, "the thing") == "the| |th|ing");
    CHECK(shown(tokenizer, "in the") == "in| the");
    CHECK(shown(tokenizer, "aaaaaaa") == "aaaa|aa|a");
    CHECK(shown(tokenizer, "") == "");
}

// Byte pair encoding as it is defined: over and over, the leftmost pair of the lowest rank.
static std::vector<std::string> slow_bpe(const SmallVocabulary& vocabulary, const std::string& text) {
    std::vector<std::string> symbols;
    for (const char c : text) symbols.emplace_back(1, c);
    for (;;) {
        size_t best = vocabulary.merges.size();
        size_t place = 0;
        for (size_t i = 0; i + 1 < symbols.size(); ++i)
            for (size_t rank = 0; rank < best; ++rank)
                if (vocabulary.merges[rank] == symbols[i] + " " + symbols[i + 1]) {
                    best = rank;
                    place = i;
                }
        if (best == vocabulary.merges.size()) return symbols;
        symbols[place] += symbols[place + 1];
        symbols.erase(symbols.begin() + std::ptrdiff_t(place) + 1);
    }
}

TEST_CASE("tokenizer: short words and long ones are merged as the slow rule merges them") {
    SmallVocabulary vocabulary = small_bpe();
    vocabulary.add_merge("th", "in");
    vocabulary.add_merge("aa", "a");
    vocabulary.add_merge("n", "a");
    vocabulary.add_merge("he", "n");
    vocabulary.add_merge("h", "e");
    const Tokenizer tokenizer = make(vocabulary);
    std::mt19937 random(41);
    for (const size_t length : {2u, 3u, 5u, 8u, 13u, 40u, 40u, 40u, 300u, 2500u}) {
        std::string word(length, 'a');
        for (char& c : word) c = "thiengaa"[random() % 8];
        std::vector<std::string> got;
        for (const Token token : tokenizer.encode(word, kPlain)) got.push_back(tokenizer.piece(token));
        CAPTURE(length);
        CHECK(got == slow_bpe(vocabulary, word));
    }
}

TEST_CASE("tokenizer: SPM merges by score, the leftmost of equal ones first") {
    const Tokenizer tokenizer = make(small_spm());
    CHECK(shown(tokenizer, "the thing") == " the| th|ing");
    CHECK(shown(tokenizer, "aaaaaaa") == " |aaaa|aa|a");
    SmallVocabulary tied;
    tied.model = "llama";
    tied.pre.clear();
    for (const char* text : {"a", "b", "ab", "ba"}) tied.add(text, 1, 1.0f);
    tied.set_flag("add_space_prefix", false);
    CHECK(shown(make(tied), "aba") == "ab|a");
}

TEST_CASE("tokenizer: SPM with a token across words gives the same as merging the whole text") {
    // "a b" as a token forbids merging word by word.
    SmallVocabulary vocabulary = small_spm();
    vocabulary.add("a" + std::string(kSpaceSymbol), 1, -0.1f);
    vocabulary.add("a" + std::string(kSpaceSymbol) + "b", 1, -0.05f);
    const Tokenizer tokenizer = make(vocabulary);
    CHECK(shown(tokenizer, "za bz") == " |z|a b|z");
    CHECK(shown(tokenizer, "a b the") == " |a b| the");
}

TEST_CASE("tokenizer: megabytes without a break are cut in far less than quadratic time") {
    const Tokenizer spm = make(small_spm());
    const Tokenizer bpe = make(small_bpe());
    std::string mixed;
    std::mt19937 random(5);
    while (mixed.size() < 1'000'000) mixed += "ain"[random() % 3];
    for (const std::string& text :
         {std::string(1'000'000, 'a'), std::string(1'000'000, ' '), std::string(1'000'000, '\n'), mixed}) {
        CAPTURE(printable(text.substr(0, 3)));
        for (const Tokenizer* tokenizer : {&spm, &bpe}) {
            const double start = cpu_seconds();
            const std::vector<Token> tokens = tokenizer->encode(text, kPlain);
            const double seconds = cpu_seconds() - start;
            CHECK(tokenizer->decode(tokens) == text);
            CHECK(seconds < 10.0);  // about 0.5 s; quadratic time would be minutes
        }
    }
}

TEST_CASE("tokenizer: ten megabytes of one character take seconds, not hours") {
    const Tokenizer bpe = make(small_bpe());
    const double start = cpu_seconds();
    const std::vector<Token> tokens = bpe.encode(std::string(10'000'000, 'a'), kPlain);
    const double seconds = cpu_seconds() - start;
    CHECK(tokens.size() == 2'500'000);
    CHECK(seconds < 60.0);
}

TEST_CASE("tokenizer: text never becomes a control, unknown or byte token, whatever could be merged") {
    SmallVocabulary spm = small_spm();
    for (const char* text : {"<", "s", ">", "s>", "</", "/", "<0", "x", "4", "1>"}) spm.add(text, 1, -0.5f);
    spm.add("<0x4", 1, -0.4f);
    const Tokenizer from_spm = make(spm);
    for (const char* text : {"<s>", "</s>", "<unk>", "<0x41>"}) {
        CAPTURE(text);
        for (const Token token : from_spm.encode(text, kPlain))
            CHECK(from_spm.type(token) == TokenType::normal);
        CHECK(from_spm.decode(from_spm.encode(text, kPlain)) == text);
    }
    SmallVocabulary bpe = small_bpe();
    bpe.add("qq", 3);
    bpe.merges.push_back("q q");
    const Tokenizer from_bpe = make(bpe);
    CHECK(warns(from_bpe, "1 merges give a control token"));
    CHECK(shown(from_bpe, "qq") == "q|q");
}

TEST_CASE("tokenizer: BOS and EOS are added as the file says") {
    SmallVocabulary vocabulary = small_spm();
    CHECK(make(vocabulary).encode("the").front() == 1);
    CHECK(make(vocabulary).encode("").size() == 1);
    vocabulary.set_flag("add_eos_token", true);
    CHECK(make(vocabulary).encode("the").back() == 2);
    CHECK(make(vocabulary).encode("the", kPlain).size() == 1);
    vocabulary.set_flag("add_bos_token", false);
    CHECK_FALSE(make(vocabulary).adds_bos());

    SmallVocabulary bpe = small_bpe();
    const Token start = bpe.add("<|begin|>", 3);
    CHECK_FALSE(make(bpe).adds_bos());  // no BOS is known
    bpe.set_id("bos", start);
    CHECK(make(bpe).adds_bos());  // llama-bpe adds one by default
    bpe.pre = "qwen2";
    CHECK_FALSE(make(bpe).adds_bos());
    bpe.pre = "glm4";
    CHECK(make(bpe).bos() == kNoToken);
}

TEST_CASE("tokenizer: what is not supported is refused by name") {
    SmallVocabulary vocabulary = small_bpe();
    vocabulary.model = "bert";
    CHECK(mentions(refusal(vocabulary), "\"bert\" (WordPiece) is not supported"));
    vocabulary.model = "wat\x1b[31m";
    CHECK(mentions(refusal(vocabulary), "\"wat\\x1b[31m\" is not known"));
    vocabulary.model = "gpt2";
    vocabulary.pre = "brand-new";
    CHECK(mentions(refusal(vocabulary), "\"brand-new\" is not known; known are"));
    CHECK(mentions(refusal(vocabulary), "qwen2"));
    vocabulary.pre = "";
    CHECK(warns(make(vocabulary), "does not name its pre-tokenizer"));
    CHECK(mentions(refusal(Metadata()), "tokenizer.ggml.model"));
}

TEST_CASE("tokenizer: hostile vocabularies are refused or repaired with a warning") {
    SmallVocabulary vocabulary = small_spm();
    vocabulary.types.pop_back();
    CHECK(mentions(refusal(vocabulary), "token_type has 295 entries for 296 tokens"));
    vocabulary = small_spm();
    vocabulary.scores.push_back(0);
    CHECK(mentions(refusal(vocabulary), "scores has 297 entries for 296 tokens"));
    vocabulary = small_spm();
    vocabulary.scores[7] = std::numeric_limits<float>::quiet_NaN();
    CHECK(mentions(refusal(vocabulary), "the score of token 7 is not a number"));
    vocabulary = small_spm();
    vocabulary.tokens.clear();
    CHECK(mentions(refusal(vocabulary), "tokens is empty"));
    vocabulary = small_spm();
    vocabulary.types[5] = 99;
    vocabulary.types[6] = -1;
    CHECK(warns(make(vocabulary), "2 tokens have a type outside"));
    vocabulary = small_spm();
    vocabulary.tokens[300 - 10] = "";
    vocabulary.add("the", 1);
    vocabulary.add("the", 1);
    vocabulary.scores[8] = std::numeric_limits<float>::infinity();
    const Tokenizer repaired = make(vocabulary);
    CHECK(warns(repaired, "1 tokens have an empty text"));
    CHECK(warns(repaired, "1 token texts occur more than once"));
    CHECK(repaired.decode(repaired.encode("the thing")) == "the thing");

    SmallVocabulary bpe = small_bpe();
    for (const char* merge : {"", " ", "a", "a ", " b", "th e x", "zz yy"}) bpe.merges.push_back(merge);
    const Tokenizer merged = make(bpe);
    CHECK(warns(merged, "5 merges are not of the form"));
    CHECK(merged.decode(merged.encode("zzyy the")) == "zzyy the");
    bpe.tokens.resize(10);
    bpe.types.resize(10);
    CHECK(warns(make(bpe), "246 of the 256 bytes have no token"));
    for (const Token token : make(bpe).encode("the thing!\"#")) CHECK(token < 10);
}

TEST_CASE("tokenizer: a vocabulary without merges, scores or types says what is missing or copes") {
    Metadata metadata;
    REQUIRE(metadata.add("tokenizer.ggml.model", {std::string("gpt2"), 8, 0}).ok());
    REQUIRE(metadata.add("tokenizer.ggml.tokens", {std::vector<std::string>{"a", "b"}, 9, 8}).ok());
    CHECK(mentions(refusal(metadata), "merges is missing"));
    Metadata spm;
    REQUIRE(spm.add("tokenizer.ggml.model", {std::string("llama"), 8, 0}).ok());
    REQUIRE(spm.add("tokenizer.ggml.tokens", {std::vector<std::string>{"a", "b"}, 9, 8}).ok());
    CHECK(mentions(refusal(spm), "scores is missing"));
    SmallVocabulary vocabulary = small_spm();
    vocabulary.types.clear();
    const Tokenizer untyped = make(vocabulary);
    CHECK(untyped.bos() == 1);
    CHECK(untyped.encode("the").front() == 1);
}

TEST_CASE("tokenizer: tokens that the model has no row for are never made") {
    SmallVocabulary vocabulary = small_bpe();
    const Token last = vocabulary.add("<|far|>", 3);
    vocabulary.set_id("eos", last);
    const Result<Tokenizer> made = Tokenizer::create(vocabulary.metadata(), size_t(last) - 3);
    REQUIRE(made.ok());
    CHECK(made.value().size() == size_t(last) - 3);
    CHECK(warns(made.value(), "the rest is left out"));
    CHECK(warns(made.value(), "eos_token_id is 266, outside the 263 tokens"));
    for (const Token token : made.value().encode("aaaa 11 <|far|>", kParsed)) CHECK(token < last - 3);
}

TEST_CASE("tokenizer: gemma 4's alphabet of characters, with line ends and byte tokens") {
    SmallVocabulary vocabulary;
    vocabulary.model = "gemma4";
    vocabulary.pre.clear();
    const std::string space(kSpaceSymbol);
    const Token bos = vocabulary.add("<bos>", 3);
    for (int byte = 0; byte < 256; ++byte) vocabulary.add(fmt::format("<0x{:02X}>", byte), 6);
    for (const std::string& text :
         {std::string("t"), std::string("h"), std::string("e"), space, std::string("\n")})
        vocabulary.add(text);
    vocabulary.add("\n\n\n");
    vocabulary.add_merge("t", "h");
    vocabulary.add_merge("th", "e");
    vocabulary.add_merge(space, "the");
    vocabulary.set_id("bos", bos);
    vocabulary.set_flag("add_bos_token", false);
    const Tokenizer tokenizer = make(vocabulary);
    CHECK(tokenizer.adds_bos());
    CHECK(shown(tokenizer, "the the\n\n\nthe é") == "the| the|\n\n\n|the| |\xC3|\xA9");
    CHECK(tokenizer.decode(tokenizer.encode("the  thé\n\n \xF0\x9F\xA6\x99")) ==
          "the  thé\n\n \xF0\x9F\xA6\x99");
}

TEST_CASE("tokenizer: several threads can encode with one tokenizer") {
    const Tokenizer tokenizer = make(small_bpe());
    std::mt19937 random(23);
    const std::string text = random_text(random, 2000);
    const std::vector<Token> want = tokenizer.encode(text);
    std::vector<int> same(4, 0);
    std::vector<std::thread> threads;
    for (int& result : same)
        threads.emplace_back([&] {
            for (int i = 0; i < 10; ++i) result += tokenizer.encode(text) == want ? 1 : 0;
        });
    for (std::thread& thread : threads) thread.join();
    CHECK(same == std::vector<int>(4, 10));
}
