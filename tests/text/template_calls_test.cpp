// An assistant's calls as chat templates write them are understood by the reader of calls: random arguments
// pass through the published templates, and through short ones in the forms of families whose templates are
// not at hand.
#include "support/material.h"
#include "support/text_support.h"
#include "text/chat/chat_template.h"
#include "text/chat/reasoning.h"
#include "text/chat/tool_calls.h"

#include <set>

using namespace redline;
using namespace redline::test;

namespace {

// The values that a template can write unambiguously.
struct Limits {
    bool one = false;                    // takes one call at a time
    bool words = false;                  // names of arguments are Python's
    bool bare = false;                   // names of arguments are not quoted
    bool named_id = false;               // the id is the function's name and a number
    std::vector<std::string> lost = {};  // texts in values that the form cannot hold
};

struct Family {
    std::string name;
    std::string source;
    Limits limits;
};

const std::vector<std::string> kPieces = {"\"",
                                          "'",
                                          "\\",
                                          "\\n",
                                          "\n",
                                          "\t",
                                          "\r\n",
                                          "<",
                                          ">",
                                          "</",
                                          "{",
                                          "}",
                                          "[",
                                          "]",
                                          "(",
                                          ")",
                                          ",",
                                          ":",
                                          "=",
                                          "true",
                                          "None",
                                          "123",
                                          "-1.5",
                                          "ü",
                                          "漢字",
                                          "🦙",
                                          "\u2028",
                                          "\x01",
                                          "```",
                                          "```json",
                                          "<tool_call>",
                                          "</tool_call>",
                                          "[TOOL_CALLS]",
                                          "[ARGS]",
                                          "<|\"|>",
                                          "</parameter>.",
                                          "<parameter=x>",
                                          "</function>",
                                          "</arg_value>.",
                                          "<arg_key>",
                                          "</invoke>",
                                          "<|end|>",
                                          "<|im_end|>",
                                          "%",
                                          "|",
                                          " ",
                                          "  ",
                                          "Kiel",
                                          "é",
                                          "{\"a\": 1}",
                                          "\\u0041",
                                          "\\'",
                                          "$",
                                          "#"};

std::string random_string(std::mt19937& random, const std::vector<std::string>& lost) {
    std::string text;
    for (size_t i = random() % 7; i > 0; --i) text += kPieces[random() % kPieces.size()];
    for (const std::string& each : lost)
        for (size_t at = text.find(each); at != text.npos; at = text.find(each)) text.erase(at, each.size());
    return text;
}

std::string random_key(std::mt19937& random, const Limits& limits, int depth) {
    static const std::vector<std::string> kWords = {"city", "max_tokens", "x", "URL", "_a1"};
    static const std::vector<std::string> kBare = {"a-b",  "a.b",  "ключ", "two words", "it's",
                                                   "a\"b", "a<b>", "a=b",  "a/b",       "1st"};
    static const std::vector<std::string> kOdd = {"",     "a:b", "a,b",   "{",  "}",   "[x]",
                                                  "a\\b", " a ", "\"q\"", "漢", "</x>"};
    const bool anything = !limits.words || depth > 0;
    const uint32_t kind = random() % 4;
    if (kind == 0 && anything) return kBare[random() % kBare.size()];
    if (kind == 1 && anything && !limits.bare) return kOdd[random() % kOdd.size()];
    return kWords[random() % kWords.size()];
}

Json random_value(std::mt19937& random, const Limits& limits, int depth) {
    switch (random() % (depth < 3 ? 9 : 6)) {
        case 0:
            return int64_t(random()) - int64_t(random());
        case 1:
            return double(int32_t(random())) / 1024.0;
        case 2:
            return random() % 2 == 0;
        case 3:
            return nullptr;
        case 4:
            return std::vector<Json>{1e22, 1e-7, -0.5, 100000.0, int64_t(1) << 60}[random() % 5];
        case 6: {
            Json list = Json::array();
            for (size_t i = random() % 4; i > 0; --i) list.push_back(random_value(random, limits, depth + 1));
            return list;
        }
        case 7: {
            Json object = Json::object();
            for (size_t i = random() % 4; i > 0; --i)
                object[random_key(random, limits, depth)] = random_value(random, limits, depth + 1);
            return object;
        }
        default:
            return random_string(random, limits.lost);
    }
}

std::string type_of(const Json& value) {
    return value.is_string()    ? "string"
           : value.is_number()  ? "number"
           : value.is_boolean() ? "boolean"
           : value.is_null()    ? "null"
           : value.is_object()  ? "object"
                                : "array";
}

struct Sample {
    Json calls = Json::array();
    Json tools = Json::array();
};

Sample random_sample(std::mt19937& random, const Limits& limits) {
    static const char* kNames[] = {"look", "get_weather", "x-y_2"};
    Sample sample;
    const size_t count = limits.one ? 1 : 1 + random() % 3;
    for (size_t i = 0; i < count; ++i) {
        const std::string name = kNames[i];
        Json arguments = Json::object(), properties = Json::object();
        for (size_t k = random() % 5; k > 0; --k) {
            const std::string key = random_key(random, limits, 0);
            arguments[key] = random_value(random, limits, 1);
            properties[key] = {{"type", type_of(arguments[key])}, {"description", "what"}};
        }
        const Json function = {{"name", name}, {"arguments", arguments}};
        const std::string id =
            limits.named_id ? fmt::format("functions.{}:{}", name, i) : fmt::format("callid{:03}", i);
        sample.calls.push_back({{"id", id}, {"type", "function"}, {"function", function}});
        const Json parameters = {{"type", "object"}, {"properties", properties}};
        sample.tools.push_back(
            {{"type", "function"},
             {"function", {{"name", name}, {"description", "d"}, {"parameters", parameters}}}});
    }
    return sample;
}

std::string joined(const std::vector<TextPart>& parts) {
    std::string text;
    for (const TextPart& part : parts) text += part.text;
    return text;
}

// Without the tokens that end a turn, which no answer has.
std::string_view without_end(std::string_view text) {
    static constexpr std::string_view kEnds[] = {
        "<|the-eos|>",           "<|im_end|>", "<|eot_id|>", "<|call|>", "<turn|>", "<|tool_response>",
        "<｜end▁of▁sentence｜>", "\n"};
    for (bool found = true; found;) {
        found = false;
        for (const std::string_view end : kEnds) {
            if (!text.ends_with(end)) continue;
            text.remove_suffix(end.size());
            found = true;
        }
    }
    return text;
}

const Tokenizer& tokenizer() {
    static const Tokenizer made = [] {
        SmallVocabulary vocabulary = small_bpe();
        vocabulary.set_id("bos", vocabulary.add("<|the-bos|>", 3));
        vocabulary.set_id("eos", vocabulary.add("<|the-eos|>", 3));
        return make(vocabulary);
    }();
    return made;
}

// The text with which a model would make these calls; empty where the template refuses them.
std::optional<std::string> written(const ChatTemplate& chat, const std::string& source,
                                   const Sample& sample) {
    TemplateInput input;
    input.tools = sample.tools;
    input.messages = {{{"role", "user"}, {"content", "Look"}}};
    const Result<std::vector<TextPart>> prompt = chat.render(tokenizer(), input);
    input.answer = false;
    const Result<std::vector<TextPart>> before = chat.render(tokenizer(), input);
    input.messages.push_back({{"role", "assistant"}, {"content", nullptr}, {"tool_calls", sample.calls}});
    Result<std::vector<TextPart>> after = chat.render(tokenizer(), input);
    if (!after) input.messages.back()["content"] = "";
    if (!after) after = chat.render(tokenizer(), input);
    if (!prompt || !before || !after) return {};
    const std::string all = joined(after.value()), head = joined(prompt.value());
    const bool goes_on = all.starts_with(head);
    const std::string_view rest =
        std::string_view(all).substr(goes_on ? head.size() : joined(before.value()).size());
    const std::optional<ReasoningMarks> marks = ReasoningMarks::find(source, tokenizer());
    if (!marks) return std::string(without_end(rest));
    return split_answer(*marks, goes_on ? last_scaffold(prompt.value()) : "", without_end(rest)).content;
}

// Members in one order, numbers as they are written.
std::string sorted(const Json& value) {
    return nlohmann::json::parse(value.dump()).dump();
}

void check_family(const Family& family, bool writes_calls = true) {
    CAPTURE(family.name);
    Result<ChatTemplate> chat = ChatTemplate::parse(family.source);
    REQUIRE_MESSAGE(chat.ok(), (chat.ok() ? "" : chat.error().message));
    std::mt19937 random(45);
    for (int round = 0; round < 300; ++round) {
        const Sample sample = random_sample(random, family.limits);
        const std::optional<std::string> text = written(chat.value(), family.source, sample);
        if (!writes_calls) {
            CHECK((!text || text->find("look") == text->npos));
            continue;
        }
        REQUIRE(text);
        CAPTURE(*text);
        const ParsedAnswer got = parse_tool_calls(*text, sample.tools);
        REQUIRE(got.calls.size() == sample.calls.size());
        CHECK(got.notes.empty());
        for (size_t i = 0; i < got.calls.size(); ++i) {
            const Json& function = sample.calls[i]["function"];
            CHECK(got.calls[i].name == function["name"].get<std::string>());
            REQUIRE(sorted(got.calls[i].arguments) == sorted(function["arguments"]));
        }
    }
}

// Around a call's marks: each value as text or as JSON.
constexpr const char* kValue = "{{ v if v is string else v|tojson }}";

std::string each_call(const std::string& call, const std::string& before = "", const std::string& after = "",
                      const std::string& between = "") {
    return "{% for m in messages %}{% if m.role == 'assistant' %}" + before +
           "{% for c in m.tool_calls %}{% set f = c.function %}" + call + "{% if not loop.last %}" + between +
           "{% endif %}{% endfor %}" + after +
           "{% else %}<user>{{ m.content }}</user>{% endif %}{% endfor %}";
}

const std::string kObject = "{\"name\": \"{{ f.name }}\", \"arguments\": {{ f.arguments|tojson }}}";

}  // namespace

TEST_CASE("template calls: what published templates write of calls is read back as it was") {
    RL_NEED_MATERIAL(folder, "templates");
    const Limits any, one{.one = true};
    const Limits bare{.bare = true, .lost = {"<|\"|>"}};
    const std::pair<const char*, Limits> kWriting[] = {{"GLM-4.6", {.lost = {"<tool_call>"}}},
                                                       {"Mistral-Small-3.2-24B-Instruct-2506", any},
                                                       {"Qwen-Qwen2.5-7B-Instruct", any},
                                                       {"Qwen-Qwen3-0.6B", any},
                                                       {"Qwen3-Coder", any},
                                                       {"Qwen3.5-4B", any},
                                                       {"deepseek-ai-DeepSeek-R1-Distill-Qwen-32B", any},
                                                       {"google-gemma-4-31B-it", bare},
                                                       {"meta-llama-Llama-3.1-8B-Instruct", one},
                                                       {"mistralai-Mistral-Nemo-Instruct-2407", any},
                                                       {"openai-gpt-oss-120b", one}};
    std::set<std::string> known = {"HuggingFaceTB-SmolLM3-3B", "LFM2-8B-A1B", "google-gemma-2-2b-it",
                                   "ibm-granite-granite-3.3-2B-Instruct", "microsoft-Phi-3.5-mini-instruct"};
    const auto source = [&](const std::string& name) { return read_file(folder + "/" + name + ".jinja"); };
    for (const std::string& name : known) check_family({name, source(name), {}}, false);
    for (const auto& [name, limits] : kWriting) {
        check_family({name, source(name), limits});
        known.insert(name);
    }
    for (const auto& entry : std::filesystem::directory_iterator(folder)) {
        const std::string name = entry.path().stem().string();
        CHECK_MESSAGE(known.count(name) == 1, name);
    }
}

TEST_CASE("template calls: lists and objects of JSON between the marks of many families") {
    for (const auto& [name, before, after] : std::vector<std::tuple<std::string, std::string, std::string>>{
             {"granite 3", "<|tool_call|>[", "]"},
             {"phi-4-mini", "<|tool_call|>[", "]<|/tool_call|>"},
             {"nemotron", "<TOOLCALL>[", "]</TOOLCALL>"},
             {"hunyuan", "<tool_calls>[", "]</tool_calls>"},
             {"mistral v1", "[TOOL_CALLS] [", "]"}})
        check_family({name, each_call(kObject, before, after, ", "), {}});
    check_family({"gigachat", each_call("<|function_call|>" + kObject), {.one = true}});
    check_family({"granite 4", each_call("<tool_call>\n" + kObject + "\n</tool_call>", "", "", "\n"), {}});
    check_family(
        {"apertus",
         each_call("{{ {f.name: f.arguments}|tojson }}", "<|tools_prefix|>[", "]<|tools_suffix|>", ", "),
         {}});
    check_family({"command r7b",
                  each_call("{\"tool_call_id\": \"{{ loop.index0 }}\", \"tool_name\": \"{{ f.name }}\", "
                            "\"parameters\": {{ f.arguments|tojson }}}",
                            "<|START_ACTION|>[\n    ", "\n]<|END_ACTION|>", ",\n    "),
                  {}});
    check_family(
        {"kimi k2",
         each_call("<|tool_call_begin|>{{ c.id }}<|tool_call_argument_begin|>{{ f.arguments|tojson }}"
                   "<|tool_call_end|>",
                   "<|tool_calls_section_begin|>", "<|tool_calls_section_end|>"),
         {.named_id = true}});
    check_family(
        {"deepseek v3.1",
         each_call(
             "<｜tool▁call▁begin｜>{{ f.name }}<｜tool▁sep｜>{{ f.arguments|tojson }}<｜tool▁call▁end｜>",
             "<｜tool▁calls▁begin｜>", "<｜tool▁calls▁end｜>"),
         {}});
    check_family({"mistral v13", each_call("[TOOL_CALLS]{{ f.name }}[ARGS]{{ f.arguments|tojson }}"), {}});
    check_family({"solar open",
                  each_call("<|tool_call:begin|>{{ c.id }}<|tool_call:name|>{{ f.name }}<|tool_call:args|>"
                            "{{ f.arguments|tojson }}<|tool_call:end|>",
                            "<|tool_calls|>", "<|calls|>"),
                  {}});
}

TEST_CASE("template calls: parameters between marks and Python's calls of many families") {
    const std::string loop = "{% for k, v in f.arguments|items %}", end = "{% endfor %}";
    const auto marks = [&](const std::string& open, const std::string& close) {
        return loop + open + kValue + close + end;
    };
    check_family({"minimax m2",
                  each_call("<invoke name=\"{{ f.name }}\">\n" +
                                marks("<parameter name=\"{{ k }}\">", "</parameter>\n") + "</invoke>\n",
                            "<minimax:tool_call>\n", "</minimax:tool_call>"),
                  {}});
    check_family(
        {"deepseek v3.2",
         each_call("<｜DSML｜invoke name=\"{{ f.name }}\">\n" +
                       marks("<｜DSML｜parameter name=\"{{ k }}\" string=\"{{ 'true' if v is string else "
                             "'false' }}\">",
                             "</｜DSML｜parameter>\n") +
                       "</｜DSML｜invoke>\n",
                   "<｜DSML｜function_calls>\n", "</｜DSML｜function_calls>"),
         {}});
    check_family(
        {"seed-oss",
         each_call("<seed:tool_call>\n<function={{ f.name }}>\n" +
                   marks("<parameter={{ k }}>", "</parameter>\n") + "</function>\n</seed:tool_call>"),
         {}});
    check_family({"minicpm 5",
                  each_call("<function name=\"{{ f.name }}\">" +
                            marks("<param name=\"{{ k }}\">", "</param>") + "</function>"),
                  {}});
    const std::string python =
        "{{ f.name }}(" + loop + "{{ '%s=%r' % (k, v) }}{% if not loop.last %}, {% endif %}" + end + ")";
    for (const auto& [name, before, after] : std::vector<std::tuple<std::string, std::string, std::string>>{
             {"lfm2", "<|tool_call_start|>[", "]<|tool_call_end|>"},
             {"llama 4", "[", "]"},
             {"llama 4 with marks", "<|python_start|>[", "]<|python_end|>"}})
        check_family({name, each_call(python, before, after, ", "), {.words = true}});
}
