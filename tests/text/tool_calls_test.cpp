#include "text/chat/tool_calls.h"
#include "support/text_support.h"

#include <doctest/doctest.h>

#include <ctime>

using namespace redline;
using namespace redline::test;

namespace {

const Json kTools = parse_json(R"([
  {"type": "function", "function": {"name": "weather", "parameters": {"type": "object", "properties": {
    "city": {"type": "string"}, "days": {"type": "integer"}, "zip": {"type": "string"}},
    "required": ["city"]}}},
  {"type": "function", "function": {"name": "mark", "parameters": {"type": "object", "properties": {
    "text": {"type": "string"}, "done": {"type": "boolean"}, "note": {"type": ["string", "null"]},
    "size": {"anyOf": [{"type": "integer"}, {"type": "null"}]}, "kind": {"enum": ["1", "two"]},
    "list": {"$ref": "#/$defs/list"}, "a>b": {"type": "string"}}, "$defs": {"list": {"type": "array"}}}}},
  {"type": "function", "function": {"name": "now", "parameters": {"type": "object", "properties": {}}}}])");

// "content|name{arguments}|name{arguments}"
std::string parsed(std::string_view answer) {
    const ParsedAnswer got = parse_tool_calls(answer, kTools);
    std::string out = got.content;
    for (const ToolCall& call : got.calls) out += "|" + call.name + call.arguments.dump();
    for (const std::string& note : got.notes) out += "!" + note;
    return out;
}

const std::string kKiel = R"(|weather{"city":"Kiel"})";

// The note about a call that was mended, without what all of these say.
std::string mended(std::string_view answer) {
    const ParsedAnswer got = parse_tool_calls(answer, kTools);
    constexpr std::string_view kSaid = "a call in the answer is mended: ";
    if (got.calls.size() != 1 || got.notes.size() != 1 || !got.notes[0].starts_with(kSaid))
        return parsed(answer);
    return got.calls[0].name + got.calls[0].arguments.dump() + " " + got.notes[0].substr(kSaid.size());
}

std::string hermes(const std::string& arguments) {
    return "<tool_call>\n{\"name\": \"mark\", \"arguments\": " + arguments + "}\n</tool_call>";
}

}  // namespace

TEST_CASE("tool calls: Hermes and Qwen write JSON between tags") {
    CHECK(parsed("<tool_call>\n{\"name\": \"weather\", \"arguments\": {\"city\": \"Kiel\"}}\n</tool_call>") ==
          kKiel);
    CHECK(parsed("I look.\n<tool_call>\n{\"name\": \"weather\", \"arguments\": {\"city\": \"Kiel\"}}\n"
                 "</tool_call>\n<tool_call>\n{\"name\": \"now\", \"arguments\": {}}\n</tool_call>") ==
          "I look." + kKiel + "|now{}");
    CHECK(parsed("<tool_call>{\"name\": \"weather\", \"arguments\": \"{\\\"city\\\":\\\"Kiel\\\"}\"}") ==
          kKiel);
    CHECK(
        parsed(
            "<tool_call>{\"name\": \"weather\", \"arguments\": {\"city\": \"}</tool_call>\"}}</tool_call>") ==
        "|weather{\"city\":\"}</tool_call>\"}");
}

TEST_CASE("tool calls: Qwen3-Coder's parameters are typed by the schema") {
    CHECK(
        parsed("<tool_call>\n<function=weather>\n<parameter=city>\nKiel\n</parameter>\n<parameter=days>\n3\n"
               "</parameter>\n<parameter=zip>\n24103\n</parameter>\n</function>\n</tool_call>") ==
        R"(|weather{"city":"Kiel","days":3,"zip":"24103"})");
    CHECK(parsed("<function=weather>\n<parameter=city>\nKiel\n</parameter>\n</function>") == kKiel);
    CHECK(parsed("<function=weather>{\"city\": \"Kiel\"}</function>") == kKiel);
    CHECK(parsed("<tool_call>\n<function=other>\n<parameter=a>\n[1, 2]\n</parameter>\n<parameter=b>\nx\ny\n"
                 "</parameter>\n</function>\n</tool_call>") == R"(|other{"a":[1,2],"b":"x\ny"})");
    CHECK(parsed("<minimax:tool_call>\n<invoke name=\"weather\">\n<parameter name=\"city\">Kiel</parameter>\n"
                 "</invoke>\n</minimax:tool_call>") == kKiel);
}

TEST_CASE("tool calls: GLM writes keys and values") {
    CHECK(parsed("<tool_call>weather\n<arg_key>city</arg_key>\n<arg_value>Kiel</arg_value>\n<arg_key>days</"
                 "arg_key>\n"
                 "<arg_value>2</arg_value>\n</tool_call>") == R"(|weather{"city":"Kiel","days":2})");
    CHECK(parsed("<tool_call>now\n</tool_call>") == "|now{}");
}

TEST_CASE("tool calls: Llama 3.1 writes bare JSON, of functions that are offered only") {
    CHECK(parsed("{\"name\": \"weather\", \"parameters\": {\"city\": \"Kiel\"}}") == kKiel);
    CHECK(parsed("{\"type\": \"function\", \"name\": \"weather\", \"parameters\": {\"city\": \"Kiel\"}}; "
                 "{\"name\": \"now\", \"parameters\": {}}") == kKiel + "|now{}");
    CHECK(parsed("<|python_tag|>{\"name\": \"weather\", \"parameters\": {\"city\": \"Kiel\"}}") == kKiel);
    CHECK(parsed("<|python_tag|>brave_search.call(query=\"weather in Kiel\")") ==
          R"(|brave_search{"query":"weather in Kiel"})");
    const std::string person = "{\"name\": \"Ann\", \"parameters\": {\"age\": 3}}";
    CHECK(parsed(person) == person);
    CHECK(parsed("{\"name\": \"now\", \"parameters\": {}} is how") ==
          "{\"name\": \"now\", \"parameters\": {}} is how");
}

TEST_CASE("tool calls: Mistral's list, and its newer form with a name") {
    CHECK(parsed("[TOOL_CALLS] [{\"name\": \"weather\", \"arguments\": {\"city\": \"Kiel\"}, \"id\": "
                 "\"VvvODy9mT\"}]") == kKiel);
    CHECK(parsed("[TOOL_CALLS]weather[ARGS]{\"city\": \"Kiel\"}[TOOL_CALLS]now[ARGS]{}") == kKiel + "|now{}");
    const ParsedAnswer with_id =
        parse_tool_calls("[TOOL_CALLS]weather[CALL_ID]VvvODy9mT[ARGS]{\"city\": \"Kiel\"}", kTools);
    REQUIRE(with_id.calls.size() == 1);
    CHECK(with_id.calls[0].id == "VvvODy9mT");
    CHECK(with_id.calls[0].name == "weather");
}

TEST_CASE("tool calls: harmony's message to a function") {
    const std::string call =
        "<|channel|>commentary to=functions.weather <|constrain|>json<|message|>{\"city\":\"Kiel\"}";
    CHECK(parsed(call) == kKiel);
    CHECK(parsed("I look.\n<|start|>assistant" + call + "<|call|>") == "I look." + kKiel);
    CHECK(parsed("to=functions.now<|channel|>commentary<|message|>{}<|call|>") == "|now{}");
}

TEST_CASE("tool calls: DeepSeek, Kimi, Gemma 4, LFM2") {
    CHECK(parsed("<｜tool▁calls▁begin｜><｜tool▁call▁begin｜>function<｜tool▁sep｜>weather\n```json\n{"
                 "\"city\": \"Kiel\"}\n"
                 "```<｜tool▁call▁end｜><｜tool▁calls▁end｜>") == kKiel);
    CHECK(parsed("<｜tool▁calls▁begin｜><｜tool▁call▁begin｜>weather<｜tool▁sep｜>{\"city\": "
                 "\"Kiel\"}<｜tool▁call▁end｜>"
                 "<｜tool▁call▁begin｜>now<｜tool▁sep｜>{}<｜tool▁call▁end｜><｜tool▁calls▁end｜>") ==
          kKiel + "|now{}");
    const ParsedAnswer kimi = parse_tool_calls(
        "<|tool_calls_section_begin|><|tool_call_begin|>functions.weather:0<|tool_call_argument_begin|>{"
        "\"city\": "
        "\"Kiel\"}<|tool_call_end|><|tool_calls_section_end|>",
        kTools);
    REQUIRE(kimi.calls.size() == 1);
    CHECK(kimi.calls[0].id == "functions.weather:0");
    CHECK(kimi.calls[0].name == "weather");
    CHECK(parsed("<|tool_call>call:weather{city:<|\"|>Kiel \"am\" "
                 "Meer<|\"|>,days:2,more:{a:[true,null]}}<tool_call|>") ==
          R"(|weather{"city":"Kiel \"am\" Meer","days":2,"more":{"a":[true,null]}})");
    CHECK(parsed("<|tool_call_start|>[weather(city=\"Kiel\", days=2), now()]<|tool_call_end|>Here.") ==
          R"(Here.|weather{"city":"Kiel","days":2}|now{})");
}

TEST_CASE("tool calls: lists between marks of Command R7B, Granite 3, Nemotron, Hunyuan and Apertus") {
    const ParsedAnswer command = parse_tool_calls(
        "<|START_ACTION|>[\n  {\"tool_call_id\": \"0\", \"tool_name\": \"weather\", \"parameters\": "
        "{\"city\": "
        "\"Kiel\"}}\n]<|END_ACTION|>",
        kTools);
    REQUIRE(command.calls.size() == 1);
    CHECK(command.calls[0].id == "0");
    CHECK(command.content == "");
    const std::string list =
        "[{\"name\": \"weather\", \"arguments\": {\"city\": \"Kiel\"}}, {\"name\": \"now\", \"arguments\": "
        "{}}]";
    CHECK(parsed("I look.<|tool_call|>" + list) == "I look." + kKiel + "|now{}");
    CHECK(parsed("<|tool_call|>" + list + "<|/tool_call|>") == kKiel + "|now{}");
    CHECK(parsed("<TOOLCALL>" + list + "</TOOLCALL>") == kKiel + "|now{}");
    CHECK(parsed("<tool_calls>\n" + list + "\n</tool_calls>") == kKiel + "|now{}");
    CHECK(parsed("<tool_calls>\n{\"name\": \"now\", \"arguments\": {}}\n{\"name\": \"now\", \"arguments\": "
                 "{}}\n</tool_calls>") == "|now{}|now{}");
    CHECK(parsed("<tool_calls><tool_call>{\"name\": \"now\", \"arguments\": {}}</tool_call></tool_calls>") ==
          "|now{}");
    CHECK(parsed("<|tools_prefix|>[{\"weather\": {\"city\": \"Kiel\"}}, {\"now\": {}}]<|tools_suffix|>") ==
          kKiel + "|now{}");
}

TEST_CASE(
    "tool calls: a list of actions, or as in Python, that is the whole answer, of functions that are "
    "offered") {
    CHECK(parsed("Action: ```json\n[\n {\"tool_name\": \"weather\", \"parameters\": {\"city\": "
                 "\"Kiel\"}}\n]\n```") == kKiel);
    const std::string answered =
        "Action:\n```json\n[{\"tool_name\": \"directly-answer\", \"parameters\": {}}]\n```";
    CHECK(parsed(answered) == answered);
    CHECK(parsed("[weather(city=\"Kiel\"), now()]") == kKiel + "|now{}");
    CHECK(parsed("<|python_start|>[weather(city=\"Kiel\")]<|python_end|>") == kKiel);
    for (const std::string text :
         {"[print(a=1)]", "[1, 2]", "[]", "[weather(city=\"Kiel\")] says it", "Action: wait"})
        CHECK(parsed(text) == text);
}

TEST_CASE(
    "tool calls: functions with parameters in marks, of Seed-OSS, Muse-Glimmer, DeepSeek V3.2 and others") {
    CHECK(
        parsed("Look:\n<seed:tool_call>\n<function=weather>\n<parameter=city>Kiel</parameter>\n</function>\n"
               "</seed:tool_call>") == "Look:" + kKiel);
    CHECK(parsed(
              "<｜DSML｜function_calls>\n<｜DSML｜invoke name=\"weather\">\n<｜DSML｜parameter name=\"city\" "
              "string=\"true\">Kiel</｜DSML｜parameter>\n<｜DSML｜parameter name=\"days\" string=\"false\">2"
              "</｜DSML｜parameter>\n</｜DSML｜invoke>\n</｜DSML｜function_calls>") ==
          R"(|weather{"city":"Kiel","days":2})");
    CHECK(parsed("<｜DSML｜tool_calls>\n<｜DSML｜invoke name=\"other\">\n<｜DSML｜parameter name=\"a\" "
                 "string=\"true\">"
                 "2</｜DSML｜parameter>\n</｜DSML｜invoke>\n</｜DSML｜tool_calls>") == R"(|other{"a":"2"})");
    CHECK(parsed("<function name=\"weather\"><param name=\"city\">Kiel</param></function>") == kKiel);
    CHECK(parsed("<|function_call|>{\"name\": \"weather\", \"arguments\": {\"city\": \"Kiel\"}}") == kKiel);
    CHECK(parsed("function call<|role_sep|>\n{\"name\": \"weather\", \"arguments\": {\"city\": \"Kiel\"}}") ==
          kKiel);
    const std::string atem =
        "<atem:function_calls>\n<atem:invoke name=\"weather\">\n<atem:parameter "
        "name=\"city\">Kiel</atem:parameter>\n"
        "</atem:invoke>\n</atem:function_calls>";
    CHECK(parsed(atem) == kKiel);
    CHECK(parsed("I look.\n<|start|>assistant to=weather<|message|>" + atem + "<|eot|>") ==
          "I look." + kKiel);
    CHECK(parsed("<|tool_calls|><|tool_call:begin|>a1<|tool_call:name|>weather<|tool_call:args|>{\"city\": "
                 "\"Kiel\"}"
                 "<|tool_call:end|><|calls|>") == kKiel);
}

TEST_CASE("tool calls: what cannot be read stays text, with a note that says why") {
    const char* kBroken[] = {"<tool_call>{\"name\": \"weather\", \"arguments\": {\"city\": \"Ki",
                             "<tool_call>{\"name\": \"weather\"}</tool_call>",
                             "<tool_call>{\"arguments\": {}}</tool_call>",
                             "<tool_call>{\"name\": \"weather\", \"arguments\": [1]}</tool_call>",
                             "<tool_call>{\"name\": \"now\", \"arguments\": {}} and so on",
                             "<tool_call>\n</tool_call>",
                             "<function=weather><parameter=city>Kiel",
                             "<|python_tag|>print(1)",
                             "[TOOL_CALLS]weather",
                             "[TOOL_CALLS]weather[ARGS]{\"city\"",
                             "<|channel|>commentary to=functions.weather<|message|>Kiel",
                             "<|channel|>commentary to=functions.weather",
                             "<｜tool▁calls▁begin｜>",
                             "<|tool_calls_section_begin|><|tool_call_begin|>",
                             "<|tool_call>weather{}",
                             "<|tool_call>call:weather{city:<|\"|>Kiel",
                             "<|tool_call_start|>[weather(city=\"Kiel\"",
                             "<|tool_call_start|>[weather(1)]",
                             "<|START_ACTION|>[{\"tool_name\": \"weather\"}]<|END_ACTION|>",
                             "<|tools_prefix|>[{\"weather\": {}, \"now\": {}}]",
                             "<seed:tool_call>now</seed:tool_call>",
                             "<tool_calls></tool_calls>",
                             "<｜DSML｜tool_calls><｜DSML｜invoke name=\"now\"></｜DSML｜invoke>",
                             "<|tool_calls|><|tool_call:begin|>a<|tool_call:name|>now"};
    for (const char* broken : kBroken) {
        CAPTURE(broken);
        const ParsedAnswer got = parse_tool_calls(broken, kTools);
        CHECK(got.content == broken);
        CHECK(got.calls.empty());
        REQUIRE_FALSE(got.notes.empty());
        CHECK(mentions(got.notes[0], "a call in the answer is left as text: what follows "));
    }
    CHECK(parsed("Plain text. 1 < 2.") == "Plain text. 1 < 2.");
    CHECK(parsed("") == "");
}

TEST_CASE("tool calls: nesting without end is refused, not followed") {
    for (const char* open : {"[", "{\"a\":", "{a:"}) {
        std::string deep;
        for (int i = 0; i < 100000; ++i) deep += open;
        for (const std::string& answer :
             {"<tool_call>{\"name\": \"f\", \"arguments\": " + deep, "<|tool_call>call:f{a:" + deep,
              "<tool_call><function=f><parameter=a>" + deep + "</parameter></function></tool_call>",
              "<tool_call>{\"name\": \"f\", \"arguments\": \"" + std::string(open[0] == '[' ? deep : "[") +
                  "\"}"}) {
            const ParsedAnswer got = parse_tool_calls(answer, kTools);
            CHECK(got.calls.size() + got.notes.size() > 0);
        }
    }
}

TEST_CASE("tool calls: random cuts of real forms are read or left, never lost") {
    const std::string kForms[] = {
        "a<tool_call>\n{\"name\": \"weather\", \"arguments\": {\"city\": \"Kiel\"}}\n</tool_call>b",
        "a<tool_call>\n<function=weather>\n<parameter=city>\nKiel\n</parameter>\n</function>\n</tool_call>b",
        "a[TOOL_CALLS]weather[ARGS]{\"city\": \"Kiel\"}b",
        "a<|tool_call>call:weather{city:<|\"|>Kiel<|\"|>}<tool_call|>b",
        "a<|tool_call_start|>[weather(city=\"Kiel\")]<|tool_call_end|>b"};
    std::mt19937 random(5);
    for (int round = 0; round < 2000; ++round) {
        std::string text = kForms[round % 5];
        text.erase(random() % text.size(), 1 + random() % 8);
        const ParsedAnswer got = parse_tool_calls(text, kTools);
        if (got.calls.empty()) CHECK(got.content == text);
    }
}

TEST_CASE("tool calls: as OpenAI's API writes them") {
    const ParsedAnswer got =
        parse_tool_calls("<tool_call>{\"name\":\"weather\",\"arguments\":{\"city\":\"Kiel\"}}", kTools);
    CHECK(
        tool_calls_json(got.calls).dump() ==
        R"([{"id":"call_1","type":"function","function":{"name":"weather","arguments":"{\"city\":\"Kiel\"}"}}])");
}

TEST_CASE("tool calls: JSON with slips that have one reading is mended, and it is said") {
    CHECK(mended(hermes("{\"text\": \"a\nb\"}")) == R"(mark{"text":"a\nb"} a text has a raw line end)");
    CHECK(mended(hermes("{\"text\": \"a\tb\"}")) ==
          R"(mark{"text":"a\tb"} a text has a raw control character)");
    CHECK(mended(hermes("{\"done\": True, \"note\": None}")) ==
          R"(mark{"done":true,"note":null} True stands for true; None stands for null)");
    CHECK(mended(hermes("{\"done\": false, \"list\": [1, 2,],}")) ==
          R"(mark{"done":false,"list":[1,2]} a comma stands before ]; a comma stands before })");
    CHECK(
        mended(hermes("{'text': 'say \"it\\'s\"'}")) ==
        R"(mark{"text":"say \"it's\""} single quotes stand for double ones; \' is no escape, and stands for ')");
    CHECK(mended(hermes("{text: \"a\"}")) == R"(mark{"text":"a"} the key text has no quotes)");
    CHECK(mended(hermes("{\"text\": \"it\\'s\"}")) ==
          R"(mark{"text":"it's"} \' is no escape, and stands for ')");
    CHECK(mended(hermes("{\"text\": \"\\d+\\.\"}")) ==
          R"(mark{"text":"\\d+\\."} \d is no escape, and its backslash is kept; )"
          R"(\. is no escape, and its backslash is kept)");
    CHECK(mended(hermes("{\"text\": \"\\x41\"}")) ==
          R"(mark{"text":"A"} \x is no escape, and is read as Python's)");
    CHECK(mended("<tool_call>{\"name\": \"mark\", \"arguments\": {\"done\": true}</tool_call>") ==
          R"(mark{"done":true} } is missing)");
    CHECK(mended("<tool_call>{\"name\": \"mark\", \"arguments\": {\"done\": true}}}\n</tool_call>") ==
          R"(mark{"done":true} a bracket is closed twice)");
    CHECK(mended("[TOOL_CALLS]mark[ARGS]{\"done\": True}") == R"(mark{"done":true} True stands for true)");
    CHECK(mended("{'name': 'mark', 'parameters': {}}") == "mark{} single quotes stand for double ones");
    CHECK(mended("<tool_call>{\"name\": \"mark\", \"arguments\": \"{'done': True}\"}</tool_call>") ==
          R"(mark{"done":true} single quotes stand for double ones; True stands for true)");
}

TEST_CASE("tool calls: what Qwen2.5-Coder 1.5B wrote in place of its form is read") {
    const std::string block =
        "```json\n{\n  \"name\": \"weather\",\n  \"arguments\": {\n    \"city\": \"Kiel\"\n  }\n}\n```";
    CHECK(mended(block) == R"(weather{"city":"Kiel"} it stands in a block of code)");
    CHECK(mended("{{\"name\": \"weather\", \"arguments\": {\"city\": \"Kiel\"}}") ==
          R"(weather{"city":"Kiel"} { stands twice)");
    CHECK(mended("{{\"name\": \"weather\", \"arguments\": {\"city\": \"Kiel\"}}}") ==
          R"(weather{"city":"Kiel"} { stands twice; a bracket is closed twice)");
    for (const std::string& text :
         {"Like this:\n" + block, std::string("```python\n[weather(city=\"Kiel\")]\n```"), std::string("```"),
          std::string("```\n```"), std::string("```json\n{\"name\": \"f\", \"arguments\": {}}\n```")})
        CHECK(parsed(text) == text);
}

TEST_CASE("tool calls: slips with several readings stay text, with a note") {
    for (const char* arguments :
         {"{\"text\": \"say \"it\" twice\"}", "{\"text\": \"C:\\data\\new\"}", "{\"text\": \"\\ud800\"}",
          "{\"size\": 007}", "{\"size\": 1 2}", "{\"list\": [1,,2]}", "{\"text\": a}", "{\"text\" \"a\"}",
          "{\"text\": 'it's'}", "{\"text\": \"a"}) {
        CAPTURE(arguments);
        const std::string answer = hermes(arguments);
        const ParsedAnswer got = parse_tool_calls(answer, kTools);
        CHECK(got.content == answer);
        CHECK(got.calls.empty());
        REQUIRE(got.notes.size() == 1);
        CHECK(mentions(got.notes[0], "a call in the answer is left as text: what follows <tool_call> "));
    }
    for (const char* text : {"C:\\data\\new", "D:\\x64\\Release"})
        CHECK(mentions(parsed(hermes(fmt::format("{{\"text\": \"{}\"}}", text))),
                       "backslashes may be escapes or not"));
    // Cut in its middle, which may have gone on.
    for (const char* cut : {"<tool_call>{\"name\": \"mark\", \"arguments\": {\"size\": 1",
                            "<tool_call>{\"name\": \"mark\", \"arguments\": {\"done\": true, </tool_call>",
                            "<tool_call>{\"name\": \"mark\", \"arguments\": {</tool_call>"})
        CHECK(parse_tool_calls(cut, kTools).calls.empty());
}

TEST_CASE("tool calls: marks that stand twice or are missing are mended, and it is said") {
    const std::string begin = "<tool_call>\n<function=mark>\n<parameter=text>\na\n";
    CHECK(mended(begin + "</parameter>\n</parameter>\n</function>\n</tool_call>") ==
          R"(mark{"text":"a"} </parameter> stands twice)");
    CHECK(mended(begin + "</parameter>\n</function>\n</function>\n</tool_call>\n</tool_call>\n") ==
          R"(mark{"text":"a"} </function> stands twice; </tool_call> stands twice)");
    CHECK(mended(begin + "</function>\n</tool_call>") == R"(mark{"text":"a"} </parameter> is missing)");
    CHECK(mended(begin + "</parameter>\n</tool_call>") == R"(mark{"text":"a"} </function> is missing)");
    CHECK(mended("<tool_call>\n<tool_call>\n{\"name\": \"now\", \"arguments\": {}}\n</tool_call>") ==
          "now{} <tool_call> stands twice");
    CHECK(
        mended(
            "<tool_call>mark\n<arg_key>text</arg_key>\n<arg_value>a</arg_value></arg_value>\n</tool_call>") ==
        R"(mark{"text":"a"} </arg_value> stands twice)");
    // A value may hold its mark, where more of the call follows the real one.
    CHECK(parsed(begin + "</parameter> b\n</parameter>\n</function>\n</tool_call>") ==
          R"(|mark{"text":"a\n</parameter> b"})");
    // Two calls are not taken for one.
    CHECK(parsed(begin + "</function>\n</tool_call>\n" + begin + "</parameter>\n</function>\n</tool_call>")
              .starts_with(R"(|mark{"text":"a"}|mark{"text":"a"})"));
}

TEST_CASE("tool calls: a value that may hold the next one stays text, with a note") {
    const std::string begin = "<tool_call>\n<function=weather>\n<parameter=city>Kiel",
                      end = "</parameter>\n</function>\n</tool_call>";
    // A comma behind the mark, no mark, and a mark that is missing in the last value but one.
    for (const std::string& between :
         {std::string("</parameter>,\n<parameter=days>3"), std::string("\n<parameter=days>3"),
          std::string("</parameter>\n<parameter=zip>1\n<parameter=days>3")}) {
        const ParsedAnswer got = parse_tool_calls(begin + between + end, kTools);
        CHECK(got.calls.empty());
        CHECK(got.content == begin + between + end);
        REQUIRE_FALSE(got.notes.empty());
        CHECK(got.notes[0] ==
              "a call in the answer is left as text: what follows <tool_call> has a value that "
              "holds <parameter=days, which may begin another one");
    }
    CHECK(parsed(begin + "\n<parameter=x>" + end) == R"(|weather{"city":"Kiel\n<parameter=x>"})");
    CHECK(parsed(begin + " <parameter=days>" + end) == R"(|weather{"city":"Kiel <parameter=days>"})");
}

TEST_CASE("tool calls: a mark that is missing between two values is mended where that is the only reading") {
    // A whole number holds no mark, and a parameter that is required must come.
    const std::string missing = R"( </parameter> is missing)";
    const std::string size = "<tool_call>\n<function=mark>\n<parameter=size>", done = "<parameter=done>true",
                      close = "</parameter>", end = "</function>\n</tool_call>";
    const std::string both = R"(mark{"size":1,"done":true})" + missing;
    for (const char* between : {"", " ", "\n", "\n\n  "}) {
        CAPTURE(between);
        CHECK(mended(size + "1" + between + done + close + end) == both);
        CHECK(mended(size + "1" + between + done + "\n" + close + "\n" + end) == both);
        CHECK(mended(size + "1" + between + done + end) == both);
        CHECK(mended(size + "1" + between + done + "\n" + end) == both);
        CHECK(mended(size + "1" + between + done + between + "<parameter=text>a" + close + end) ==
              R"(mark{"size":1,"done":true,"text":"a"})" + missing);
        CHECK(mended("<tool_call>\n<function=weather>\n<parameter=zip>1" + std::string(between) +
                     "<parameter=city>Kiel" + close + end) ==
              R"(weather{"zip":"1","city":"Kiel"})" + missing);
        CHECK(mended("<tool_call>mark<arg_key>size</arg_key><arg_value>1" + std::string(between) +
                     "<arg_key>done</arg_key>\n<arg_value>true</arg_value></tool_call>") ==
              R"(mark{"size":1,"done":true} </arg_value> is missing)");
        CHECK(mended("<minimax:tool_call><invoke name=\"mark\"><parameter name=\"size\">1" +
                     std::string(between) +
                     "<parameter name=\"done\">true</parameter></invoke></minimax:tool_call>") == both);
    }
    // A text may hold the mark of another parameter, and that one may be left out.
    const std::string open =
        "<tool_call>\n<function=weather>\n<parameter=city>Kiel<parameter=days>3" + close + end;
    CHECK(parsed(open).starts_with(open + "!a call in the answer is left as text"));
    // Work is bounded, whatever a value holds.
    std::string many = "<function=weather>\n<parameter=city>";
    for (int i = 0; i < 50'000; ++i) many += "a <parameter=days> ";
    const std::clock_t begin = std::clock();
    CHECK(parse_tool_calls(many + close + "</function>", kTools).calls.empty());
    CHECK(double(std::clock() - begin) / CLOCKS_PER_SEC < 4);
    // That call is still found.
    CHECK(parsed("<function=weather>\n<parameter=zip>a <parameter=city>b" + close + "<parameter=city>Kiel" +
                 close + "</function>") == R"(|weather{"zip":"a <parameter=city>b","city":"Kiel"})");
}

TEST_CASE("tool calls: Python's texts have its octal escapes") {
    CHECK(parsed("<|python_tag|>mark.call(text=\"\\033[0m \\0 \\1234 \\8\")") ==
          R"(|mark{"text":"\u001b[0m \u0000 S4 \\8"})");
}

TEST_CASE("tool calls: a schema whose types refer to each other in many ways is read in short time") {
    const Json tools = parse_json(R"([{"name": "f", "parameters": {"properties": {"a": {"$ref": "#/$defs/a"}},
        "$defs": {"a": {"anyOf": [{"$ref": "#/$defs/a"}, {"$ref": "#/$defs/a"}, {"$ref": "#/$defs/a"},
        {"$ref": "#/$defs/a"}, {"$ref": "#/$defs/a"}, {"$ref": "#/$defs/a"}, {"$ref": "#/$defs/a"},
        {"$ref": "#/$defs/a"}, {"$ref": "#/$defs/a"}, {"$ref": "#/$defs/a"}, {"$ref": "#/$defs/a"}]}}}}])");
    const std::clock_t begin = std::clock();
    const ParsedAnswer got = parse_tool_calls("<function=f><parameter=a>x</parameter></function>", tools);
    REQUIRE(got.calls.size() == 1);
    CHECK(got.calls[0].arguments.dump() == R"({"a":"x"})");
    CHECK(double(std::clock() - begin) / CLOCKS_PER_SEC < 4);
}

TEST_CASE("tool calls: a call without arguments is one where the function needs none") {
    const std::string none = " no arguments are written";
    CHECK(mended("<tool_call>{\"name\": \"now\"}</tool_call>") == "now{}" + none);
    CHECK(mended("<|START_ACTION|>[{\"tool_name\": \"mark\"}]<|END_ACTION|>") == "mark{}" + none);
    CHECK(mended("[TOOL_CALLS]now[ARGS]") == "now{}" + none);
    CHECK(mended("<|channel|>commentary to=functions.now<|message|><|call|>") == "now{}" + none);
    CHECK(mended("<｜tool▁calls▁begin｜><｜tool▁call▁begin｜>function<｜tool▁sep｜>now\n```json\n\n```"
                 "<｜tool▁call▁end｜><｜tool▁calls▁end｜>") == "now{}" + none);
    CHECK(parsed("<tool_call>{\"name\": \"now\", \"arguments\": \"\"}</tool_call>") == "|now{}");
    // Members beside the name may be meant as arguments.
    CHECK(parse_tool_calls("<tool_call>{\"name\": \"now\", \"zone\": \"UTC\"}</tool_call>", kTools)
              .calls.empty());
}

TEST_CASE("tool calls: values between marks have the types of the schema") {
    const auto value = [](const std::string& key, const std::string& text) {
        return parsed("<tool_call>\n<function=mark>\n<parameter=" + key + ">\n" + text +
                      "\n</parameter>\n</function>\n</tool_call>");
    };
    CHECK(value("done", "True") == R"(|mark{"done":true})");
    CHECK(value("done", "false") == R"(|mark{"done":false})");
    CHECK(value("text", "True") == R"(|mark{"text":"True"})");
    CHECK(value("text", " 5\n") == R"(|mark{"text":" 5\n"})");
    CHECK(value("note", "None") == R"(|mark{"note":null})");
    CHECK(value("note", "5") == R"(|mark{"note":"5"})");
    CHECK(value("size", "5") == R"(|mark{"size":5})");
    CHECK(value("kind", "1") == R"(|mark{"kind":"1"})");
    CHECK(value("list", "['a', None]") == R"(|mark{"list":["a",null]})");
    CHECK(value("list", "[1, \"a\"]") == R"(|mark{"list":[1,"a"]})");
    CHECK(value("a>b", "x") == R"(|mark{"a>b":"x"})");
    CHECK(value("unknown", "x > 1") == R"(|mark{"unknown":"x > 1"})");
}

TEST_CASE("call watch: text before a call is certain at once, whatever pieces it comes in") {
    const auto watched = [](std::string_view answer, size_t step) {
        CallWatch watch;
        std::string certain;
        for (size_t at = 0; at < answer.size(); at += step) certain += watch.push(answer.substr(at, step));
        return certain;
    };
    for (const size_t step : {1, 2, 5, 100}) {
        CAPTURE(step);
        CHECK(watched("I look. <tool_call>{\"name\": \"now\"}</tool_call>", step) == "I look. ");
        CHECK(watched("a < b, and <b>bold</b>.", step) == "a < b, and <b>bold</b>.");
        CHECK(watched("  {\"name\": \"now\", \"arguments\": {}}", step) == "");
        CHECK(watched("```json\n{}\n```", step) == "");
        CHECK(watched("Actually, no.", step) == "Actually, no.");
        // A mark that has begun at the end may go on.
        CHECK(watched("so <tool", step) == "so ");
    }
}
