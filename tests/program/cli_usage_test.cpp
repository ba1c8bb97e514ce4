// A wrong command line is exit status 2, said before any file is opened; what is wrong with a prompt for a
// model is said before its weights are loaded.
#include "support/program.h"

#include <fstream>

using namespace redline;
using namespace redline::test;

// The model does not exist: who looks for it first ends with status 1.
static void check_usage(const std::string& command, std::vector<std::string> more, const std::string& said) {
    std::vector<std::string> all = {command, "-m", file("nowhere.gguf")};
    if (command == "run") all.insert(all.end(), {"-p", "a"});
    all.insert(all.end(), more.begin(), more.end());
    check_refused(all, 2, {said});
}

TEST_CASE("usage: sampling options are checked before a model is looked for") {
    for (const std::string command : {"run", "chat"}) {
        INFO(command);
        check_usage(command, {"--samplers", "top_k;best"}, "samplers names \"best\"");
        check_usage(command, {"--samplers", "top_k;top_k"}, "top_k twice");
        check_usage(command, {"--temp", "abc"}, "--temp");
        check_usage(command, {"--top-p", "1.5"}, "top_p is 1.5; it must be between 0 and 1");
        check_usage(command, {"--min-p", "-0.1"}, "min_p is -0.1");
        check_usage(command, {"--repeat-penalty", "0"}, "repeat_penalty is 0");
        check_usage(command, {"--xtc-probability", "2"}, "xtc_probability is 2");
        check_usage(command, {"--mirostat", "3"}, "mirostat is 3; it must be 0 (off), 1 or 2");
    }
}

TEST_CASE("usage: a wrong grammar or schema is shown with its place before a model is looked for") {
    for (const std::string command : {"run", "chat"}) {
        INFO(command);
        check_usage(command, {"--grammar", "root ::= (\"a\""},
                    "--grammar text: line 1, column 14: expected a literal");
        std::ofstream(file("wrong.gbnf")) << "root ::= a\n";
        // A file is no part of the command line.
        const auto check_file = [&](std::vector<std::string> more, const std::string& said) {
            more.insert(more.begin(), {command, "-m", file("nowhere.gguf")});
            if (command == "run") more.insert(more.end(), {"-p", "a"});
            check_refused(more, 1, {said});
        };
        check_file({"--grammar", file("wrong.gbnf")}, "line 1, column 10: the rule a is not defined");
        check_file({"--grammar-file", file("wrong.gbnf")}, file("wrong.gbnf"));
        check_file({"--grammar-file", file("nosuch.gbnf")}, "nosuch.gbnf");
        check_file({"-jf", file("nosuch.json")}, "nosuch.json");
        check_usage(command, {"--grammar", "nosuch.gbnf"}, "\"nosuch.gbnf\" is no file here, and no grammar");
        check_usage(command, {"-j", "no/such.json"}, "\"no/such.json\" is no file here, and no JSON schema");
        check_usage(command, {"-j", "{\"not\":{}}"}, "#: the schema allows nothing");
        check_usage(command, {"-j", "{", "-v"}, "the schema is no JSON");
        check_usage(command, {"-j", "{}", "--grammar", "root ::= \"a\""}, "another grammar or schema");
    }
    check_usage("run", {"--logprobs", "2"}, "--logprobs means nothing without --json");
}

TEST_CASE("usage: the form of a device's name, and levels that a device has no use for") {
    for (const std::string command : {"run", "chat", "eval", "info", "bench"}) {
        INFO(command);
        std::vector<std::string> text;
        if (command == "eval") text = {"-f", file("nowhere.txt")};
        const auto check = [&](std::vector<std::string> more, const std::string& said) {
            more.insert(more.end(), text.begin(), text.end());
            check_usage(command, more, said);
        };
        check({"--device", ""}, "--device was given an empty name");
        check({"--device", "vulkan:"}, "behind the colon");
        check({"--device", "cpu:1"}, "one device, called cpu");
        check({"--device", "cpu", "--vulkan-level", "dot"}, "--vulkan-level means nothing with --device cpu");
        check({"--device", "vulkan:0", "--cpu-level", "avx2"},
              "--cpu-level means nothing with --device vulkan");
        check({"--device", "hip", "--vulkan-level", "dot"}, "--vulkan-level means nothing with --device hip");
        check({"-ctk", "q4"}, "--cache-type-k");
        check({"-ctv", "q4"}, "--cache-type-v");
        check({"-t", "5000"}, "--threads");
        check({"-b", "70000"}, "--batch-size");
    }
}

TEST_CASE("usage: names that are empty, and options without the one that they go with") {
    check_usage("run", {"-f", ""}, "--file was given an empty name");
    check_usage("run", {"--prompt-cache", ""}, "--prompt-cache was given an empty name");
    check_usage("run", {"--prompt-cache-ro"}, "without --prompt-cache");
    check_usage("run", {"--keep", "5"}, "without --context-shift");
    check_usage("run", {"--chat", "--no-bos"}, "--no-bos means nothing with a chat template");
    check_usage("run", {"-sys", "x", "--parse-special"},
                "--parse-special means nothing with a chat template");
    check_usage("run", {"-sys", "x", "--raw"}, "--system-prompt means nothing with --raw");
    check_usage("run", {"--fim", "a"}, "--fim needs two values: PREFIX SUFFIX");
    check_usage("run", {"--fim", "a", "b"}, "a prompt means nothing with --fim");
    check_usage("run", {"--think", "off", "--raw"}, "--think means nothing with --raw");
    check_usage("run", {"--think=loudly"}, "--think takes on, off, hide");
    check_usage("run", {"--messages", file("m.json")}, "a prompt means nothing with --messages");
    check_usage("chat", {"--chat-format", "morse"}, "\"morse\"");
    check_usage("chat", {"--chat-template-kwargs", "[1]"}, "takes a JSON object");
    check_usage("eval", {"--ids", ""}, "--ids was given an empty name");
    check_usage("eval", {"-f", "x", "--logits", ""}, "--logits was given an empty name");
    check_usage("eval", {"-f", "x", "-c", "3"}, "size of a chunk");
    check_usage("tokenize", {"-f", ""}, "--file was given an empty name");
    check_usage("bench", {"-ctk", ""}, "takes one of f32, f16, bf16, q8_0");
    for (const std::string name : {"fp8", "f8_e4m3", "fp8_e5m2", "e4m3"})
        check_usage("run", {"-ctk", name},
                    "-ctk/--cache-type-k does not take " + name +
                        ": q8_0 has about its size, loses less and runs on every device");
    check_usage("bench", {"-p", "0", "-n", "0"}, "nothing to measure");
    check_refused({"bench", "-m", ","}, 2, {"--model was given an empty name"});
}

TEST_CASE("usage: what a model cannot take is said before its weights are loaded") {
    // A device that cannot be opened stands for the loading, which comes after it.
    if (has(redline_({"run", "--device", "vulkan:99", "-p", "a"}).err, "has no Vulkan backend")) {
        MESSAGE("not tested: this build has no Vulkan backend");
        return;
    }
    const std::string long_text(500, 'a');
    const auto check = [](std::vector<std::string> arguments, const std::string& said, int code = 1) {
        arguments.insert(arguments.end(), {"--device", "vulkan:99", "-q"});
        check_refused(arguments, code, {said});
    };
    check({"run", "-m", chain_model(), "-p", "a"}, "ulkan", 3);
    check({"run", "-m", chain_model(), "-p", long_text}, "501 tokens");
    check({"run", "-m", chain_model(), "-p", "a", "-l", "99999+1"}, "99999");
    check({"run", "-m", chain_model(), "-p", "a", "--chat"}, "chat");
    check({"chat", "-m", chain_model()}, "--chat-format");
    write_file(file("few.txt"), "abcdef");
    check({"eval", "-m", chain_model(), "-f", file("few.txt"), "--logits", "/nowhere/x.npy"},
          "/nowhere/x.npy");
    // The device is opened before the text is read, which may come slowly.
    check({"eval", "-m", chain_model(), "-f", file("nowhere.txt")}, "ulkan", 3);
    check_refused({"eval", "-m", chain_model(), "-f", file("few.txt"), "-c", "8"}, 1, {"7 tokens"});
    check_refused({"eval", "-m", chain_model(), "-f", file("nowhere.txt")}, 1, {"nowhere.txt"});
    check({"bench", "-m", chain_model() + "," + file("nowhere.gguf")}, "nowhere.gguf");
}

TEST_CASE("usage: 2 is for a wrong command line, and 1 for what is missing or wrong elsewhere") {
    write_file(file("empty.txt"), "");
    write_file(file("lines.txt"), "one\n");
    const struct {
        std::vector<std::string> arguments;
        int code;
        std::string said;
    } cases[] = {
        {{"run", "-m", chat_model(), ""}, 2, "the prompt is empty"},
        {{"run", "-m", chat_model(), "-f", file("empty.txt")}, 1, "the prompt is empty"},
        {{"run", "-m", chain_model(), "-p", "", "--no-bos"}, 2, "the prompt is empty"},
        {{"run", "Qwen/Qwen3-0.6B-GGUF:Q4_K_M", "hi"}, 1, "none here is called so"},
        {{"run", "-m", file("nowhere.gguf"), "-p", "a"}, 1, "nowhere.gguf"},
        {{"run", "-m", chat_model(), "--fim-file", "main.py"}, 2, "--fim-file takes FILE:LINE"},
        {{"run", "-m", chat_model(), "--fim-file", file("lines.txt") + ":9"}, 1, "has 2 lines, not 9"},
        {{"run", "-m", chat_model(), "-p", "a", "--messages", file("nowhere.json")}, 2, "--messages"},
        {{"run", "-m", chat_model(), "--messages", file("nowhere.json")}, 1, "nowhere.json"},
        {{"run", "-hf", "foo", "a"}, 2, "is no model's name"},
        {{"run", "-mu", "ftp://x/a.gguf", "a"}, 2, "an address begins with https:// or http://"},
        {{"pull", "notaurl"}, 2, "an address that begins with https:// or http://"},
        {{"pull", "ftp://x"}, 2, "an address begins with https:// or http://"},
        {{"pull", "https://example.org/page"}, 2, "ends with NAME.gguf"},
        {{"pull", "http://example.org/a%20b.gguf"}, 2, "ends with NAME.gguf"},
        {{"pull", "http://127.0.0.1:1/a.gguf", "-o", file("pulled")}, 1, "127.0.0.1"},
        {{"info", file("nowhere.gguf")}, 1, "nowhere.gguf"},
        {{"tokenize", file("nowhere.gguf"), "a"}, 1, "nowhere.gguf"},
        {{"report", "-m", "no-such-model"}, 1, "no-such-model"},
        {{"quantize", chain_model()}, 2, "IN.gguf OUT.gguf TYPE"},
        {{"quantize", file("nowhere.gguf"), file("out.gguf"), "Q8_0"}, 1, "nowhere.gguf"},
    };
    for (const auto& one : cases) check_refused(one.arguments, one.code, {one.said});
}

TEST_CASE("usage: the demo model is announced when it is taken, and not before something else fails") {
    const auto note = [](std::vector<std::string> arguments, int code) {
        const Outcome got = redline_(std::move(arguments), "");
        CHECK_MESSAGE(got.code == code, got.err);
        return has(got.err, "demo model that comes with redline is taken");
    };
    CHECK(note({"run", "hi", "-n", "1"}, 0));
    CHECK(note({"run", "hi", "--show-prompt"}, 0));
    CHECK(note({"info"}, 0));
    CHECK(note({"tokenize", "hello world"}, 0));
    CHECK(note({"chat"}, 0));
    CHECK_FALSE(note({"run"}, 2));
    CHECK_FALSE(note({"run", ""}, 2));
    CHECK_FALSE(note({"run", "hi", "--chat-template", "no-such-template"}, 1));
    CHECK_FALSE(note({"run", "-f", file("nowhere.txt")}, 1));
    CHECK_FALSE(note({"run", "hi", "-l", "999999+1"}, 1));
    CHECK_FALSE(note({"chat", "--session", file("no/such/folder.session")}, 1));
    CHECK_FALSE(note({"info", chain_model()}, 0));
}

TEST_CASE("tokenize: a text alone is for the demo model, and beside a text the first word is the model") {
    const Outcome alone = redline_({"tokenize", "hello world"});
    CHECK(alone.code == 0);
    CHECK(alone.out == redline_({"tokenize", "-p", "hello world"}).out);
    const std::string demo = source_file("models/demo/redline-demo-q8_0.gguf");
    CHECK(alone.out == redline_({"tokenize", demo, "hello world"}).out);
    CHECK(alone.out == redline_({"tokenize", demo}, "hello world").out);
    CHECK(redline_({"tokenize"}, "hello world").out == alone.out);
    check_refused({"tokenize", "hello", "world"}, 1,
                  {"\"hello\" is no file", "the model comes before the text"});
    check_refused({"tokenize", "-m", demo, "hello", "world"}, 2, {"redline tokenize MODEL \"TEXT\""});
}

TEST_CASE("usage: a prompt that is too large for any context is refused by its size at once") {
    write_file(file("huge.txt"), std::string(200'000'000, 'a'));
    for (const std::string form : {"--chat", "--raw"})
        check_refused({"run", "-m", chat_model(), form, "-f", file("huge.txt")}, 1,
                      {"the prompt has 200.0 MB, and the context of 256 tokens takes",
                       "the model was trained for 256 tokens", "give it a part of the text"});
    std::filesystem::remove(file("huge.txt"));
}
