// Filling in the middle: the tokens that mark the parts of a prompt, the texts around a gap, and run --fim.
#include "cli/commands/run_fim.h"
#include "support/program.h"
#include "support/small_vocabulary.h"

using namespace redline;
using namespace redline::test;

namespace {

// The chain model with markers: the three last byte tokens are renamed, which its chain has no use for.
std::string fim_model() {
    static const std::string path = [] {
        GgufBuilder built = ChainModel().build();
        std::vector<std::string> tokens = ChainModel().tokens();
        const int32_t first = ChainModel::kVocab - 3;
        tokens[size_t(first)] = "<|fim_prefix|>";
        tokens[size_t(first) + 1] = "<|fim_suffix|>";
        tokens[size_t(first) + 2] = "<|fim_middle|>";
        std::vector<int32_t> types(ChainModel::kVocab, 1);
        std::fill(types.begin() + ChainModel::kByte0, types.end(), 6);
        std::fill(types.end() - 3, types.end(), 3);
        types[ChainModel::kUnknown] = 2;
        types[ChainModel::kBos] = types[ChainModel::kEos] = 3;
        std::erase_if(built.keys, [](const auto& key) {
            return key.name == "tokenizer.ggml.tokens" || key.name == "tokenizer.ggml.token_type";
        });
        built.add("tokenizer.ggml.tokens", tokens);
        built.add("tokenizer.ggml.token_type", types);
        built.save(file("fim.gguf"));
        return file("fim.gguf");
    }();
    return path;
}

std::string shown_prompt(std::vector<std::string> more) {
    std::vector<std::string> all = {"run", "-m", fim_model(), "--show-prompt", "-q"};
    all.insert(all.end(), more.begin(), more.end());
    const Outcome got = redline_(all);
    return got.code == 0 ? got.out : got.err;
}

Tokenizer make(const SmallVocabulary& vocabulary) {
    Result<Tokenizer> tokenizer = Tokenizer::create(vocabulary.metadata());
    REQUIRE_MESSAGE(tokenizer.ok(), (tokenizer ? "" : tokenizer.error().message));
    return std::move(tokenizer).value();
}

SmallVocabulary with_markers() {
    SmallVocabulary vocabulary = small_bpe();
    vocabulary.add("<|fim_prefix|>", 3);
    vocabulary.add("<|fim_suffix|>", 3);
    vocabulary.add("<|fim_middle|>", 3);
    return vocabulary;
}

}  // namespace

TEST_CASE("infill: markers are found by the file's keys, by older keys, and by their texts") {
    SmallVocabulary named = with_markers();
    const Tokenizer by_text = make(named);
    const InfillTokens found = infill_tokens(named.metadata(), by_text);
    CHECK(by_text.raw_text(found.prefix) == "<|fim_prefix|>");
    CHECK(by_text.raw_text(found.suffix) == "<|fim_suffix|>");
    CHECK(by_text.raw_text(found.middle) == "<|fim_middle|>");

    SmallVocabulary keyed = with_markers();
    const Token mark = keyed.add("<here>", 3), older = keyed.add("<there>", 3);
    keyed.set_id("fim_pre", mark);
    keyed.set_id("suffix", older);
    keyed.set_id("fim_mid", 1000000);
    const InfillTokens by_key = infill_tokens(keyed.metadata(), make(keyed));
    CHECK(by_key.prefix == mark);
    CHECK(by_key.suffix == older);
    CHECK(by_key.middle == found.middle);  // the key names no token

    const SmallVocabulary none = small_bpe();
    CHECK_FALSE(infill_tokens(none.metadata(), make(none)).whole());
}

TEST_CASE("infill: texts that have no room are cut at their far ends, a quarter is the suffix's") {
    const SmallVocabulary vocabulary = with_markers();
    const Tokenizer tokenizer = make(vocabulary);
    const InfillTokens markers = infill_tokens(vocabulary.metadata(), tokenizer);
    const auto written = [&](size_t before, size_t behind, uint64_t context) {
        const FimTexts texts = {std::string(before - 1, 'x') + "y", "z" + std::string(behind - 1, 'x')};
        return write_fim(tokenizer, markers, texts, true, context, 10).value();
    };
    CHECK(written(20, 20, 53).tokens.size() == 43);
    CHECK(written(20, 20, 53).cut.empty());
    const FimPrompt cut = written(100, 100, 53);
    CHECK(cut.tokens.size() == 43);
    CHECK(has(cut.cut, "its last 30 of 100 tokens, the text behind it to its first 10 of 100"));
    const std::string text = tokenizer.decode(cut.tokens, true);
    CHECK(has(text, "xy<|fim_suffix|>zx"));
    CHECK(has(written(5, 100, 53).cut, "its last 5 of 5 tokens, the text behind it to its first 35 of 100"));
    CHECK(has(written(100, 5, 53).cut, "its last 35 of 100 tokens, the text behind it to its first 5 of 5"));
}

TEST_CASE("run: --fim writes the prompt with the file's markers, and only the middle is the answer") {
    CHECK(shown_prompt({"--fim", "ab", "xy"}) == "<s><|fim_prefix|>ab<|fim_suffix|>xy<|fim_middle|>");
    CHECK(shown_prompt({"--fim", "a\\nb", "", "--no-bos"}) ==
          "<|fim_prefix|>a\nb<|fim_suffix|><|fim_middle|>");
    const Outcome got =
        redline_({"run", "-m", fim_model(), "--fim", "ab", "xy", "--temp", "0", "-n", "3", "-q"});
    CHECK(got.code == 0);
    CHECK(got.out == "abc");
    CHECK(got.err.empty());
    // Markers in the texts are text.
    const std::vector<std::string> posing = {
        "run", "-m", fim_model(), "--fim", "a<|fim_middle|>", "b", "--show-prompt", "--json", "-q"};
    const std::string shown = redline_(posing).out;
    CHECK(has(shown, "\"tokens\""));
    size_t middles = 0;
    for (size_t at = shown.find("289"); at != std::string::npos; at = shown.find("289", at + 1)) ++middles;
    CHECK(middles == 1);
}

TEST_CASE("run: beside --fim a word is the model, also by a part of its name") {
    const TemporaryFolder folder;
    std::filesystem::copy_file(fim_model(), folder.path / "coder-one.gguf");
    Launch what = command({"run", "coder", "--fim", "ab", "xy", "--no-bos", "--show-prompt", "-q"});
    what.environment = {"REDLINE_MODELS=" + folder.path.string(), "HOME=" + folder.path.string()};
    const Outcome got = launch(what);
    CHECK_MESSAGE(got.out == "<|fim_prefix|>ab<|fim_suffix|>xy<|fim_middle|>", got.err);
}

TEST_CASE("run: --fim-file is a place in a file, --fim-parts are two files") {
    write_file(file("code.txt"),
               "ab\ncd\r\n\xC3\xA9"
               "fg\n");
    const auto at = [](const std::string& place) {
        return shown_prompt({"--fim-file", file("code.txt") + place, "--no-bos"});
    };
    const auto prompt = [](const std::string& before, const std::string& behind) {
        return "<|fim_prefix|>" + before + "<|fim_suffix|>" + behind + "<|fim_middle|>";
    };
    CHECK(at(":1") == prompt("ab",
                             "\ncd\r\n\xC3\xA9"
                             "fg\n"));
    CHECK(at(":2") == prompt("ab\ncd",
                             "\r\n\xC3\xA9"
                             "fg\n"));
    CHECK(at(":1:1") == prompt("",
                               "ab\ncd\r\n\xC3\xA9"
                               "fg\n"));
    CHECK(at(":3:2") == prompt("ab\ncd\r\n\xC3\xA9", "fg\n"));
    CHECK(at(":4") == prompt("ab\ncd\r\n\xC3\xA9"
                             "fg\n",
                             ""));
    CHECK(has(at(":9"), "code.txt has 4 lines, not 9"));
    CHECK(has(at(":1:9"), "line 1 of"));
    CHECK(has(at(""), "--fim-file takes FILE:LINE"));
    write_file(file("before.txt"), "ab\n");
    write_file(file("behind.txt"), "\nxy");
    CHECK(shown_prompt({"--fim-parts", file("before.txt"), file("behind.txt"), "--no-bos"}) ==
          prompt("ab\n", "\nxy"));
    CHECK(shown_prompt({"--fim-file", file("nowhere.txt") + ":1"}).starts_with("redline: "));
}

TEST_CASE("run: --fim is refused where a model has no markers, and beside what has turns") {
    check_refused({"run", "-m", chain_model(), "--fim", "a", "b"}, 1,
                  {"cannot fill in the middle", "no prefix marker, no suffix marker and no middle marker"});
    check_refused({"run", "-m", fim_model(), "--fim", "a", "b", "--chat"}, 2, {"--fim, which has no turns"});
    check_refused({"run", "-m", fim_model(), "--fim", "a", "b", "-sys", "c"}, 2, {"--system-prompt"});
    check_refused({"run", "-m", fim_model(), "--fim", "a", "b", "--fim-file", "c:1"}, 2,
                  {"give one of them"});
    check_refused({"run", "-m", fim_model(), "--fim-parts", "-", "-"}, 2, {"standard input"});
}

TEST_CASE("run: a model for code that was trained elsewhere fills in an expression") {
    const std::string coder = "/opt/real/qwen2.5-coder-1.5b-q4_k_m.gguf";
    if (!std::filesystem::exists(coder)) return not_tested("filling in by a real model, which is not here");
    const Outcome got = redline_({"run", "-m", coder, "--fim", "def add(a, b):\\n    return ",
                                  "\\n\\nprint(add(1, 2))", "--temp", "0", "-n", "4", "-c", "256", "-q"});
    CHECK(got.code == 0);
    CHECK_MESSAGE(got.out.starts_with("a + b"), got.out);
}
