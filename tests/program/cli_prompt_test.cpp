// redline run with conversations, reasoning and standard inputs that are somebody else's.
#include "json/json.h"
#include "support/program.h"

using namespace redline;
using namespace redline::test;

namespace {

// Answers with "a" and what follows it; the template says whether reasoning is open.
std::vector<std::string> thinking(const std::string& opening, std::vector<std::string> more) {
    write_file(file("think.jinja"), "{{ messages[-1].content }}{# </think> #}" + opening);
    std::vector<std::string> all = greedy({"-p", "x", "--chat-template", file("think.jinja"), "-n", "30"});
    all.insert(all.end(), more.begin(), more.end());
    return all;
}

// A shell's command line, with the program in $0 and its model in $1.
Outcome shell(const std::string& line) {
    Launch what;
    what.arguments = {"/bin/sh", "-c", line, program(), chain_model()};
    what.input = "";
    return launch(what);
}

}  // namespace

TEST_CASE("run: a model with a chat template answers, and --raw goes on from the text") {
    const std::vector<std::string> base = {"run", chat_model(), "--temp", "0", "-n", "3", "-q"};
    const auto run = [&](std::vector<std::string> more) {
        more.insert(more.begin(), base.begin(), base.end());
        return redline_(more).out;
    };
    CHECK(run({"k"}) == "abc");
    CHECK(run({"-p", "k", "-cnv", "-st"}) == "abc");
    CHECK(run({"k", "--raw"}) == "lmn");
    CHECK(run({"k", "-no-cnv"}) == "lmn");
    CHECK(run({"k", "--no-bos"}) == "lmn");
    CHECK(redline_({"run", chain_model(), "k", "--temp", "0", "-n", "3", "-q"}).out == "lmn");
}

TEST_CASE("run: --show-prompt prints what the model would read, without its weights") {
    const std::string text =
        "<|im_start|>system\nbe brief<|im_end|>\n<|im_start|>user\nhi<|im_end|>\n<|im_start|>assistant\n";
    const std::vector<std::string> base = {"run", chat_model(),    "-sys", "be brief",
                                           "hi",  "--show-prompt", "-q"};
    CHECK(redline_(base).out == text);
    std::vector<std::string> more = base;
    more.push_back("--json");
    const Json all = parse_json(redline_(more).out);
    CHECK(all["text"] == text);
    CHECK(all["tokens"][0] == ChainModel::kBos);
    CHECK(all["tokens"][1] == ChainModel::kStart);
}

TEST_CASE("run: reasoning goes to standard error, and is cut at its budget") {
    const std::string answer = std::string("a") + ChainModel::kWholeText;
    const Outcome shown = redline_(thinking("<think>\n", {"--reasoning-budget", "3"}));
    CHECK_MESSAGE(shown.code == 0, shown.err);
    CHECK(answer.starts_with(shown.out));
    CHECK(shown.out.starts_with("abcd"));
    CHECK(has(shown.err, "abc\n"));
    const Json all =
        parse_json(redline_(thinking("<think>\n", {"--reasoning-budget", "3", "--json", "-q"})).out);
    CHECK(all["reasoning"] == "abc");
    CHECK(all["text"].get<std::string>().starts_with("abcd"));
    CHECK(all["tool_calls"] == Json::array());
    // Without a budget all of it is reasoning.
    const Json whole = parse_json(redline_(thinking("<think>\n", {"--json", "-q"})).out);
    CHECK(whole["reasoning"] == answer);
    CHECK(whole["text"] == "");
    const Outcome hidden = redline_(thinking("<think>\n", {"--think", "hide"}));
    CHECK_FALSE(has(hidden.err, answer));
    CHECK(has(hidden.err, "all of the text is reasoning, and there is no answer"));
    CHECK_FALSE(has(shown.err, "there is no answer"));
    // A template without a switch, and one that has it.
    const Json off = parse_json(redline_(thinking("<think>\n", {"--think", "off", "--json", "-q"})).out);
    CHECK(off["reasoning"] == nullptr);
    CHECK(off["text"].get<std::string>().starts_with("abcd"));
    const std::string knowing = "{% if not enable_thinking %}k{% else %}<think>\n{% endif %}";
    CHECK(redline_(thinking(knowing, {"--think", "off", "-n", "2", "-q"})).out == "lm");
}

TEST_CASE("run: a grammar binds the answer and not what the model thinks before it") {
    const auto answered = [](const std::string& opening, std::vector<std::string> more, int code = 0) {
        more.insert(more.end(), {"--grammar", "root ::= [m-p]{4}", "--json", "-q"});
        const Outcome got = redline_(thinking(opening, more));
        REQUIRE_MESSAGE(got.code == code, got.err);
        return parse_json(got.out);
    };
    const Json cut = answered("<think>\n", {"--reasoning-budget", "3"});
    CHECK(cut["reasoning"] == "abc");
    CHECK(cut["text"] == "mnop");
    CHECK(cut["stop_reason"] == "end_of_generation");
    // The end of the text is no way around the grammar.
    const Json endless = answered("<think>\n", {}, 4);
    CHECK(endless["reasoning"].get<std::string>().starts_with(std::string("a") + ChainModel::kWholeText));
    CHECK(endless["stop_reason"] == "max_tokens");
    const Json off = answered("<think>\n", {"--think", "off"});
    CHECK(off["reasoning"] == nullptr);
    CHECK(off["text"] == "mnop");
    CHECK(answered("", {})["text"] == "mnop");
    // A stop string that the closing mark ends like holds the text back, but not the grammar.
    CHECK(answered("<think>\n", {"--reasoning-budget", "3", "-r", "\n\nZ"})["text"] == "mnop");
}

TEST_CASE("run: --messages answers a conversation of OpenAI's form") {
    write_file(file("chat.json"), R"([{"role": "system", "content": "be brief"},
        {"role": "user", "content": [{"type": "text", "text": "one"}, {"type": "text", "text": "two"}]},
        {"role": "assistant", "content": "three"}, {"role": "user", "content": "four"}])");
    const std::vector<std::string> base = {"run", chat_model(), "--messages", file("chat.json"), "-q"};
    std::vector<std::string> more = base;
    more.push_back("--show-prompt");
    CHECK(redline_(more).out ==
          "<|im_start|>system\nbe "
          "brief<|im_end|>\n<|im_start|>user\none\ntwo<|im_end|>\n<|im_start|>assistant\n"
          "three<|im_end|>\n<|im_start|>user\nfour<|im_end|>\n<|im_start|>assistant\n");
    more = base;
    more.insert(more.end(), {"-n", "3", "--temp", "0"});
    CHECK(redline_(more).out == "abc");
    more[3] = "-";
    CHECK(redline_(more, R"({"messages": [{"role": "user", "content": "hi"}]})").out == "abc");
    // Other fields of a request of that form are not dropped silently.
    more[4] = "-v";
    const Outcome asked = redline_(
        more,
        R"({"model": "m", "messages": [{"role": "user", "content": "hi"}], "top_p": 1, "max_tokens": 1})");
    CHECK(asked.out == "abc");
    CHECK(has(asked.err, "standard input: top_p, max_tokens are not read here"));
}

TEST_CASE("run: what is wrong with messages and functions is said with its place") {
    const auto refused = [](const std::string& text, const std::string& said) {
        write_file(file("wrong.json"), text);
        check_refused({"run", chat_model(), "--messages", file("wrong.json"), "-q"}, 1, {"wrong.json", said});
    };
    refused("[{", "is no JSON");
    refused("{}", "must hold a list of messages");
    refused("[]", "must hold a list of messages");
    refused("[1]", "messages[0] must be an object");
    refused(R"([{"role": "bard", "content": "x"}])", "messages[0] has the role \"bard\"");
    refused(R"([{"role": "user"}])", "messages[0] has no content");
    refused(R"([{"role": "user", "content": [{"type": "image_url"}]}])",
            "content[0] is of the type \"image_url\"");
    refused(R"([{"role": "user", "content": "x"}, {"role": "assistant", "content": "y"}])",
            "messages[1], the last");
    refused(std::string(100000, '['), "is no JSON");
    refused(std::string(1000, '[') + std::string(1000, ']'), "nested too deep");
    write_file(file("tools.json"), R"([{"name": "f", "parameters": {}}])");
    check_refused({"run", chat_model(), "hi", "--tools", file("tools.json"), "-q"}, 1,
                  {"no place for functions"});
    write_file(file("tools.json"), "[{}]");
    check_refused({"run", chat_model(), "hi", "--tools", file("tools.json"), "-q"}, 1,
                  {"[0] must be a function"});
}

TEST_CASE("run: functions reach the template, and calls are told apart from the text") {
    write_file(file("tools.json"), R"([{"name": "f", "parameters": {}}])");
    // The chain model goes on from "<tool_call>..." as from any text; a call cannot be read from it.
    write_file(file("tools.jinja"), "{{ tools[0].function.name }}{{ messages[-1].content }}");
    const Outcome got = redline_(greedy({"-p", "x", "--tools", file("tools.json"), "--chat-template",
                                         file("tools.jinja"), "--show-prompt", "-q"}));
    CHECK(got.out == "fx");
}

TEST_CASE("run: calls of functions come as OpenAI's clients want them, in the forms of two families") {
    write_file(file("ask.json"), R"([{"role": "user", "content": "Bonn, Ulm?"}])");
    write_file(
        file("weather.json"),
        R"([{"type": "function", "function": {"name": "weather", "parameters": {"type": "object", "properties": {"place": {"type": "string"},
                                   "days": {"type": "integer"}}, "required": ["place"]}}}])");
    write_file(file("hermes.jinja"),
               "{% for tool in tools %}{{ tool | tojson }}{% endfor %}{% for m in messages %}"
               "<|im_start|>{{ m.role }}\n{{ m.content }}<|im_end|>\n{% endfor %}<|im_start|>assistant\n");
    const auto called = [](const std::string& text) {
        std::string rule;
        for (const char c : text) rule += c == '\n' ? "\\n" : c == '"' ? "\\\"" : std::string(1, c);
        const Outcome got = redline_(greedy({"--messages", file("ask.json"), "--tools", file("weather.json"),
                                             "--chat-template", file("hermes.jinja"), "--json", "-q", "-c",
                                             "1024", "--grammar", "root ::= \"" + rule + "\""}));
        REQUIRE_MESSAGE(got.code == 0, got.err);
        return parse_json(got.out);
    };
    const Json hermes = called(
        "I look.\n<tool_call>\n{\"name\": \"weather\", \"arguments\": {\"place\": \"Bonn\", \"days\": 2}}\n"
        "</tool_call>\n<tool_call>\n{\"name\": \"weather\", \"arguments\": {\"place\": "
        "\"Ulm\"}}\n</tool_call>");
    CHECK(hermes["text"] == "I look.");
    REQUIRE(hermes["tool_calls"].size() == 2);
    const Json& first = hermes["tool_calls"][0];
    CHECK(first["type"] == "function");
    CHECK(first["function"]["name"] == "weather");
    CHECK(parse_json(first["function"]["arguments"].get<std::string>()) ==
          Json({{"place", "Bonn"}, {"days", 2}}));
    CHECK(first["id"] != hermes["tool_calls"][1]["id"]);
    CHECK(parse_json(hermes["tool_calls"][1]["function"]["arguments"].get<std::string>())["place"] == "Ulm");

    const Json coder = called(
        "<tool_call>\n<function=weather>\n<parameter=place>\nBonn\n</parameter>\n<parameter=days>\n3\n"
        "</parameter>\n</function>\n</tool_call>");
    REQUIRE(coder["tool_calls"].size() == 1);
    CHECK(parse_json(coder["tool_calls"][0]["function"]["arguments"].get<std::string>()) ==
          Json({{"place", "Bonn"}, {"days", 3}}));
    // Text that is no call stays text.
    const Json text = called("<tool_call>\nno JSON\n</tool_call>");
    CHECK(text["tool_calls"] == Json::array());
    CHECK(text["text"].get<std::string>().find("no JSON") != std::string::npos);
}

TEST_CASE("run: a schema whose oneOf is read as anyOf says so once, and not with -q") {
    const std::string schema = R"({"oneOf":[{"type":"integer"},{"type":"number"}]})";
    const Outcome said = redline_(greedy({"-p", "a", "-n", "3", "-j", schema}));
    CHECK(said.code == 0);
    CHECK(has(said.err, "#/oneOf: read as anyOf"));
    CHECK(redline_(greedy({"-p", "a", "-n", "3", "-q", "-j", schema})).err.empty());
}

TEST_CASE("run: a standard input that belongs to the caller is not read") {
    const std::string run = "\"$0\" run \"$1\" --device cpu -t 1 --temp 0 -n 1 -q ";
    const Outcome loop = shell("printf 'a\\nk\\n' | while read -r line; do " + run + "-p \"$line\"; done");
    CHECK(loop.out == "bl");
    write_file(file("lines.txt"), "a\nk\n");
    const Outcome from_file =
        shell("while read -r line; do " + run + "-p \"$line\"; done < " + file("lines.txt"));
    CHECK(from_file.out == "bl");
    CHECK(shell("printf k | " + run + "-p x").out == "l");
    CHECK(shell(run + "-p x < " + file("lines.txt")).out == "l");
    CHECK(shell("printf 'a\\nk\\n' | while read -r line; do " + run + "-p x -f -; done").out == "l");
}

TEST_CASE("run: an open pipe without data does not block a prompt") {
    const Outcome got = shell("sleep 4 | \"$0\" run \"$1\" --device cpu -t 1 --temp 0 -n 1 -p a");
    CHECK(got.out == "b");
    CHECK(has(got.err, "an open pipe without data"));
}

TEST_CASE("run: llama.cpp's options are taken with one note, or refused by their whole name") {
    const Outcome got =
        redline_(greedy({"-p", "a", "-n", "1", "-ngl", "99", "--jinja", "--mlock", "-fa", "on"}));
    CHECK(got.out == "b");
    CHECK(has(got.err, "note: --jinja, --mlock, -fa change nothing here"));
    check_refused(greedy({"-p", "a", "--lora", "x.gguf"}), 2, {"--lora: there are no adapters here"});
    check_refused(greedy({"-p", "a", "--completion-bash"}), 2, {"redline completion bash"});
    check_refused(greedy({"-p", "a", "-sm", "row"}), 2, {"tensor divides each layer, layer shares them out"});
    check_refused(greedy({"-p", "a", "--rpc", "host:1"}), 2, {"the devices are those of this machine"});
    check_refused(greedy({"-p", "a", "--gpu", "max"}), 2, {"-ngl N"});
    check_refused(greedy({"-p", "a", "-ts", "3,1"}), 2,
                  {"-ts/--tensor-split: 2 shares for the 1 device of --device cpu"});
    check_refused(greedy({"-p", "a", "-dr", "a"}), 2, {"-dr: redline pull USER/REPO fetches a model"});
    check_refused(greedy({"-p", "a", "--n-gpu-layer", "9"}), 2, {"did you mean --n-gpu-layers"});
}

TEST_CASE("run: bytes that are no UTF-8 are noted with their place, and what becomes of them") {
    write_file(file("latin1.txt"),
               "ab\xE9"
               "cd\xFF");
    const Outcome got = redline_(greedy({"-f", file("latin1.txt"), "-n", "1"}));
    CHECK(got.code == 0);
    CHECK(has(got.err,
              "latin1.txt has 2 bytes that are no UTF-8 (the first is 0xE9, at offset 2): the model reads "
              "them as they are"));
    CHECK(has(redline_(greedy({"-p", "x\xFF", "-n", "1"})).err,
              "-p has 1 byte that is no UTF-8 (0xFF, at offset 1)"));
    CHECK(has(redline_(greedy({"-n", "1"}), "x\x80").err, "standard input has 1 byte"));
    CHECK(redline_(greedy({"-p", "\xC3\xA9", "-n", "1"})).err.empty());
    const std::string demo = source_file("models/demo/redline-demo-q8_0.gguf");
    CHECK(has(redline_({"run", "-m", demo, "-p", "a\xFF", "-n", "1"}).err,
              "the model reads U+FFFD in their place"));
}

TEST_CASE("run: a prompt with a zero byte is no text, and refused before a model reads it") {
    write_file(file("binary.txt"), std::string("a\0b", 3));
    check_refused(greedy({"-f", file("binary.txt")}), 1, {"binary.txt is no text: its byte 2 is 0"});
    check_refused(greedy({"-f", chain_model()}), 1, {"chain.gguf is no text: its byte "});
}

TEST_CASE("run: UTF-16 with a byte order mark is read as text, a lost byte is an error, and CRLF stays") {
    const auto text = [](const std::string& bytes) {
        write_file(file("wide.txt"), bytes);
        return redline_(greedy({"-f", file("wide.txt"), "-n", "1", "--display-prompt"}));
    };
    const Outcome little =
        text(std::string("\xFF\xFE"
                         "a\0b\0\x3D\xD8\x00\xDE\n\0",
                         12));
    CHECK(little.out.starts_with("ab\xF0\x9F\x98\x80"));
    CHECK(has(little.err, "wide.txt is UTF-16 and is read as such"));
    CHECK(text(std::string("\xFE\xFF\0a\0b", 6)).out == "abc");
    const Outcome odd =
        text(std::string("\xFF\xFE"
                         "a\0b",
                         5));
    CHECK(odd.code == 1);
    CHECK(has(odd.err, "an odd number of bytes"));
    const Outcome marked = text(
        "\xEF\xBB\xBF"
        "ab");
    CHECK(marked.out == "abc");
    CHECK(has(marked.err, "the byte order mark at its beginning is left out"));
    CHECK(text("a\r\nb\r\n").out == "a\r\nbc");
}

TEST_CASE("run: control tokens of a raw prompt that are read as text, and a second BOS, are noted") {
    const std::vector<std::string> base = {"run", "-m", chat_model(), "--raw", "-n", "1", "--temp", "0"};
    const auto told = [&](std::vector<std::string> more) {
        more.insert(more.begin(), base.begin(), base.end());
        return redline_(more).err;
    };
    CHECK(has(told({"-p", "a<|im_end|>b<|im_end|>"}),
              "<|im_end|> in the prompt is read as text; --parse-special makes it a control token"));
    CHECK(told({"-p", "a<|im_end|>b", "--parse-special"}).empty());
    CHECK(told({"-p", "a <b> c"}).empty());
    CHECK(has(told({"-p", "<s>a", "--parse-special"}), "begins with two BOS tokens"));
    CHECK(has(told({"-p", "<s>a", "--parse-special"}), "--no-bos"));
    CHECK(told({"-p", "<s>a", "--parse-special", "--no-bos"}).empty());
}

TEST_CASE(
    "run: an answer that -n or the context cuts before its grammar is complete is status 4, and noted") {
    const std::vector<std::string> schema = {"-p", "a", "--grammar", "root ::= \"bcdef\"", "-t", "1"};
    const auto run = [&](std::vector<std::string> more) {
        more.insert(more.begin(), schema.begin(), schema.end());
        return redline_(greedy(more));
    };
    const Outcome cut = run({"-n", "3"});
    CHECK(cut.code == 4);
    CHECK(cut.out == "bcd");
    CHECK(has(cut.err, "before its grammar or schema is complete"));
    CHECK(run({"-n", "5"}).code == 0);
    CHECK(run({"-n", "50"}).code == 0);
    CHECK(run({"-c", "5"}).code == 4);
    CHECK(run({"-n", "3", "-q"}).err.empty());
    CHECK(run({"-n", "3", "-q"}).code == 4);
    CHECK(parse_json(run({"-n", "3", "-q", "--json"}).out)["stop_reason"] == "max_tokens");
    // A text that may end wherever it is cut is no cut one.
    CHECK(redline_(greedy({"-p", "a", "--grammar", "root ::= [a-z]*", "-n", "3"})).code == 0);
}

TEST_CASE(
    "run: an answer that its grammar can end within -n or the context is brought to its end, and noted") {
    const std::string grammar = "root ::= [a-z]{1,90} \"y\" \"z\"";
    const auto run = [&](std::vector<std::string> more) {
        more.insert(more.begin(), {"-p", "a", "--grammar", grammar, "-t", "1"});
        return redline_(greedy(more));
    };
    const Outcome ended = run({"-n", "7"});
    CHECK(ended.code == 0);
    CHECK(ended.out.size() == 7);
    CHECK(ended.out.ends_with("yz"));
    CHECK(has(ended.err, "brought to its end, as its grammar or schema wants it, to fit into -n 7"));
    CHECK(has(run({"-c", "8"}).err, "to fit into the context of 8 tokens"));
    CHECK(parse_json(run({"-n", "7", "-q", "--json"}).out)["hastened"] == true);
    CHECK(run({"-n", "2"}).code == 4);
    CHECK(parse_json(run({"-n", "95", "-q", "--json"}).out)["stop_reason"] == "end_of_generation");
}
