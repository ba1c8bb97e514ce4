// Conversations in the form of OpenAI's API: what clients write, what is wrong in it, and the forms that chat
// templates take.
#include "host/fit_messages.h"
#include "host/messages.h"

#include "support/text_support.h"

using namespace redline;
using namespace redline::test;

namespace {

Json read(const std::string& text) {
    Result<ChatRequest> got = read_messages(text, "m.json");
    REQUIRE_MESSAGE(got.ok(), (got.ok() ? "" : got.error().message));
    return got->messages;
}

std::string refusal_of(const std::string& text) {
    const Result<ChatRequest> got = read_messages(text, "m.json");
    return got.ok() ? "accepted" : got.error().message;
}

const Tokenizer& tokenizer() {
    static const Tokenizer made = make(small_bpe());
    return made;
}

// The conversation as a template writes it.
std::string written(const std::string& source, Json messages) {
    const Result<ChatTemplate> parsed = ChatTemplate::parse(source);
    REQUIRE_MESSAGE(parsed.ok(), (parsed.ok() ? "" : parsed.error().message));
    fit_contents(messages, probe_template(parsed.value(), tokenizer(), Json::object()));
    TemplateInput input;
    input.messages = std::move(messages);
    const Result<std::vector<TextPart>> parts = render_fitted(parsed.value(), tokenizer(), std::move(input));
    if (!parts) return "error: " + parts.error().message;
    std::string text;
    for (const TextPart& part : parts.value()) text += part.text;
    return text;
}

const std::string kCalls =
    R"([{"role": "user", "content": "a"}, {"role": "assistant", "content": null, "tool_calls": [
      {"id": "call_1234567890", "type": "function", "function": {"name": "f", "arguments": "{}"}},
      {"function": {"name": "g"}}]}, )";

}  // namespace

TEST_CASE("messages: what clients leave out or write as null is not there") {
    const Json got = read(R"([{"role": "user", "content": "a", "name": "Ann"},
      {"role": "assistant", "content": null, "refusal": null, "tool_calls": null, "function_call": null, "audio": null},
      {"role": "assistant", "content": "b", "tool_calls": []}, {"role": "developer", "content": "c"}])");
    CHECK(got[0] == Json({{"role", "user"}, {"content", "a"}, {"name", "Ann"}}));
    CHECK(got[1] == Json({{"role", "assistant"}, {"content", nullptr}}));
    CHECK_FALSE(got[2].contains("tool_calls"));
    CHECK(got[3]["role"] == "developer");
    CHECK(
        read(R"([{"role": "assistant", "content": null, "refusal": "no"}, {"role": "user", "content": "a"}])")
            [0]["content"] == "no");
}

TEST_CASE("messages: contents are texts or lists of parts of text, of tools, too") {
    const Json got = read(kCalls + R"({"role": "tool", "tool_call_id": "call_1234567890", "content": [
      {"type": "text", "text": "x"}, {"type": "input_text", "text": "y", "more": 1}]},
      {"role": "user", "content": []}])");
    CHECK(got[2]["content"][0] == Json({{"type", "text"}, {"text", "x"}}));
    CHECK(got[2]["content"][1] == Json({{"type", "text"}, {"text", "y"}, {"more", 1}}));
    CHECK(got[3]["content"] == "");
}

TEST_CASE("messages: results of tools belong to their calls, by id or by place") {
    const Json got = read(kCalls + R"({"role": "tool", "content": "1"}, {"role": "tool", "content": null},
      {"role": "tool", "tool_call_id": "call_1234567890", "content": "again"}])");
    CHECK(got[1]["tool_calls"][1]["id"] == "call00001");
    CHECK(got[1]["tool_calls"][1]["type"] == "function");
    CHECK(got[2]["tool_call_id"] == "call_1234567890");
    CHECK(got[2]["name"] == "f");
    CHECK(got[3]["tool_call_id"] == "call00001");
    CHECK(got[3]["name"] == "g");
    CHECK(got[3]["content"] == "");
    CHECK(refusal_of(kCalls + R"({"role": "tool", "tool_call_id": "x", "content": "1"}])") ==
          "m.json: messages[2].tool_call_id is \"x\"; the calls before it are call_1234567890, call00001");
    // OpenAI's older form.
    const Json older = read(R"([{"role": "user", "content": "a"},
      {"role": "assistant", "content": null, "function_call": {"name": "f", "arguments": "{\"a\": 1}"}},
      {"role": "function", "name": "f", "content": "1"}])");
    CHECK(older[1]["tool_calls"][0]["function"]["name"] == "f");
    CHECK(older[2]["role"] == "tool");
    CHECK(older[2]["tool_call_id"] == older[1]["tool_calls"][0]["id"]);
}

TEST_CASE("messages: the reasoning has the names that clients and templates know") {
    const Json got = read(R"([{"role": "user", "content": "a"},
      {"role": "assistant", "content": null, "reasoning": "R", "tool_calls": [{"function": {"name": "f"}}]},
      {"role": "assistant", "content": "b", "reasoning_content": "S"}, {"role": "user", "content": "a"}])");
    CHECK(got[1]["reasoning_content"] == "R");
    CHECK(got[1]["thinking"] == "R");
    CHECK(
        read(
            R"([{"role": "assistant", "content": "", "reasoning": "R", "tool_calls": [{"function": {"name": "f"}}]},
      {"role": "tool", "content": "1"}])")[0]["thinking"] == "R");
    CHECK_FALSE(got[2].contains("thinking"));
}

TEST_CASE("messages: an error names the message and says what would be right") {
    const std::string one = "[{\"role\": \"user\", \"content\": \"a\"}, ", at = "m.json: messages[1]";
    const auto refused = [&](const std::string& message) { return refusal_of(one + message + "]"); };
    const auto calls = [&](const std::string& call) {
        return refused("{\"role\": \"assistant\", \"tool_calls\": [" + call + "]}");
    };
    CHECK(refused(R"({"role": "bot", "content": "x"})") ==
          at + " has the role \"bot\"; roles are system, developer, user, assistant, tool, function");
    CHECK(refused(R"({"from": "human", "value": "x"})") ==
          at + " has \"from\" and \"value\", which are called \"role\" and \"content\" here");
    CHECK(refused(R"({"role": "user", "content": null})") == at + " has no content");
    CHECK(refused(R"({"role": "assistant"})") == at + " has neither content nor tool_calls");
    CHECK(refused(R"({"role": "user", "content": 5})") ==
          at + ".content must be a text or a list of parts, not a number");
    CHECK(refused(R"({"role": "user", "content": ["a"]})") ==
          at + ".content[0] must be an object with a type, such as {\"type\": \"text\", \"text\": \"Hi\"}");
    CHECK(refused(R"({"role": "user", "content": "x", "name": 5})") == at + ".name must be a text");
    CHECK(refused(R"({"role": "user", "content": "x", "tool_calls": [{}]})") ==
          at + " has tool_calls, which only messages of the role assistant have");
    CHECK(calls("{}") ==
          at + ".tool_calls[0] must have a function with a name, such as {\"function\": {\"name\": "
               "\"f\", \"arguments\": \"{}\"}}");
    CHECK(calls(R"({"function": {"name": "f", "arguments": "{a"}})") ==
          at + ".tool_calls[0].function.arguments must be a JSON object or a text that holds one, such as "
               "\"{}\", "
               "not the text \"{a\"");
    CHECK(calls(R"({"function": {"name": "f", "arguments": [1]}})") ==
          at + ".tool_calls[0].function.arguments must be a JSON object or a text that holds one, such as "
               "\"{}\", "
               "not an array");
}

TEST_CASE("messages: a number that no double holds is an error") {
    CHECK(mentions(refusal_of(R"([{"role": "user", "content": "hi", "n": 1e999}])"),
                   "m.json is no JSON: number"));
    const Result<Json> tools = read_tools(R"([{"name": "f", "parameters": {"default": 1e999}}])", "t.json");
    REQUIRE_FALSE(tools.ok());
    CHECK(mentions(tools.error().message, "t.json is no JSON: number"));
}

TEST_CASE("messages: a template gets lists of parts if it writes their texts, else lines") {
    const Json parts = parse_json(
        R"([{"role": "user", "content": [{"type": "text", "text": "a"}, {"type": "text", "text": "b"}]}])");
    const Json text = parse_json(R"([{"role": "user", "content": "c"}])");
    const std::string each = "{% for m in messages %}", end = "{% endfor %}";
    const std::string both =
        each +
        "{% if m.content is string %}{{ m.content }}{% else %}{% for p in m.content %}{{ p.text }};"
        "{% endfor %}{% endif %}" +
        end;
    CHECK(written(both, parts) == "a;b;");
    CHECK(written(both, text) == "c");
    // One that joins, one that shows what it gets, one that takes the first alone, one that leaves lists out.
    CHECK(written(each + "{{ '<' + m.content + '>' }}" + end, parts) == "<a\nb>");
    CHECK(written(each + "{{ m.content }}" + end, parts) == "a\nb");
    CHECK(written(each + "{{ m.content if m.content is string else m.content|tojson }}" + end, parts) ==
          "a\nb");
    CHECK(written(each + "{{ m.content if m.content is string else m.content[0].text }}" + end, parts) ==
          "a\nb");
    CHECK(written(each + "{{ m.content if m.content is string }}" + end, parts) == "a\nb");
    // One that takes lists alone.
    const std::string only = each + "{% for p in m.content %}{{ p.text }};{% endfor %}" + end;
    CHECK(written(only, parts) == "a;b;");
    CHECK(written(only, text) == "c;");
}

TEST_CASE("messages: content that is null is none to a template that takes it, else an empty text") {
    const Json null =
        parse_json(R"([{"role": "user", "content": "a"}, {"role": "assistant", "content": null}])");
    const std::string each = "{% for m in messages %}", end = "{% endfor %}";
    CHECK(written(each + "{% if m.content is not none %}<{{ m.content }}>{% endif %}" + end, null) == "<a>");
    CHECK(written(each + "{{ '<' + m.content + '>' }}" + end, null) == "<a><>");
    CHECK(written(each + "<{{ m.content }}>" + end, null) == "<a><>");
    CHECK(written(each + "<{{ m.content or '' }}>" + end, null) == "<a><>");
    CHECK(written(each + "None<{{ m.content }}>" + end, null) == "None<a>None<>");
}

TEST_CASE("messages: ids of calls that a template refuses have nine letters") {
    const std::string source =
        "{% for m in messages %}{% for c in m.tool_calls or [] %}{% if c.id|length != 9 %}{{ "
        "raise_exception('9') }}"
        "{% endif %}<{{ c.id }}>{% endfor %}{% if m.role == 'tool' %}={{ m.tool_call_id }}{% endif %}{% "
        "endfor %}";
    const Json calls = read(kCalls + R"({"role": "tool", "content": "1"}])");
    CHECK(written(source, calls) == "<call00002><call00001>=call00002");
    const std::string any =
        "{% for m in messages %}{% for c in m.tool_calls or [] %}<{{ c.id }}>{% endfor %}{% endfor %}";
    CHECK(written(any, calls) == "<call_1234567890><call00001>");
}
