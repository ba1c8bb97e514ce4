// POST /v1/chat/completions: the form of answers and streams, functions, reasoning, and what is refused.
#include "served.h"

using namespace redline;
using namespace redline::test;
namespace server = redline::serve;

namespace {

constexpr const char* kChat = "/v1/chat/completions";

const Json kWeather =
    parse_json(R"([{"type": "function", "function": {"name": "weather", "description": "of a city",
    "parameters": {"type": "object", "properties": {"city": {"type": "string"}}, "required": ["city"]}}}])");

// The deltas of one choice, joined: {"content": ..., "reasoning_content": ...}.
std::string joined(const std::vector<Json>& all, const char* member, size_t choice = 0) {
    std::string text;
    for (const Json& event : all) {
        if (!event.is_object() || event["choices"].empty() || event["choices"][0]["index"] != choice)
            continue;
        const Json& delta = event["choices"][0]["delta"];
        if (delta.contains(member) && delta[member].is_string()) text += delta[member].get<std::string>();
    }
    return text;
}

// The grammar that this request gets lets the whole of this text be its answer.
bool is_allowed(Served& served, const Json& body, const std::string& text) {
    const HttpGot got = served.post(kChat, body);
    REQUIRE_MESSAGE(got.status == 200, got.body);
    const std::shared_ptr<Constraint> constraint = served.answers.last().constraint;
    REQUIRE(constraint);
    for (const Token token : served.model.tokenizer().encode(text, {.add_special = false}))
        if (!constraint->accept(token)) return false;
    return constraint->complete();
}

}  // namespace

TEST_CASE("chat: a whole answer has the members that clients read") {
    Served served;
    const Json got = served.posted(kChat, chat_body());
    CHECK(got["object"] == "chat.completion");
    CHECK(got["id"].get<std::string>().starts_with("chatcmpl-"));
    CHECK(got["model"] == "tiny");
    CHECK(got["created"].is_number_integer());
    REQUIRE(got["choices"].size() == 1);
    const Json& choice = got["choices"][0];
    CHECK(choice["index"] == 0);
    CHECK(choice["message"] == Json{{"role", "assistant"}, {"content", "Hello there!"}});
    CHECK(choice["finish_reason"] == "stop");
    CHECK(choice["logprobs"].is_null());
    const Json& usage = got["usage"];
    CHECK(usage["prompt_tokens"] == served.answers.last().prompt.size());
    CHECK(usage["total_tokens"] == usage["prompt_tokens"].get<int>() + usage["completion_tokens"].get<int>());
    CHECK(usage["prompt_tokens_details"]["cached_tokens"] == 1);
    CHECK(got["timings"]["cache_n"] == 1);
}

TEST_CASE("chat: a stream has the role first, then text, then the reason of its end, then usage, then DONE") {
    Served served;
    const HttpGot got =
        served.post(kChat, chat_body({{"stream", true}, {"stream_options", {{"include_usage", true}}}}));
    CHECK(got.status == 200);
    CHECK(got.whole);
    CHECK(got.headers.at("content-type") == "text/event-stream");
    CHECK(got.headers.at("cache-control") == "no-cache");
    const std::vector<Json> all = events(got.body);
    REQUIRE(all.size() == 7);
    CHECK(all[0]["choices"][0]["delta"] == Json{{"role", "assistant"}, {"content", ""}});
    CHECK(all[0]["choices"][0]["finish_reason"].is_null());
    CHECK(all[1]["choices"][0]["delta"] == Json{{"content", "Hello"}});
    CHECK(joined(all, "content") == "Hello there!");
    CHECK(all[4]["choices"][0]["delta"] == Json::object());
    CHECK(all[4]["choices"][0]["finish_reason"] == "stop");
    CHECK(all[5]["choices"] == Json::array());
    CHECK(all[5]["usage"]["completion_tokens"].get<int>() > 0);
    CHECK(all[6] == "[DONE]");
    for (size_t i = 0; i < 6; ++i) {
        CHECK(all[i]["object"] == "chat.completion.chunk");
        CHECK(all[i]["id"] == all[0]["id"]);
    }
}

TEST_CASE("chat: calls of functions are told apart from text, and text before them is shown at once") {
    Served served;
    served.answers.script()->pieces = {"I look. ", "<tool", "_call>\n{\"name\": \"weather\", \"argu",
                                       "ments\": {\"city\": \"Kiel\"}}\n</tool_call>"};
    const Json body = chat_body({{"tools", kWeather}});
    const Json whole = served.posted(kChat, body);
    const Json& choice = whole["choices"][0];
    CHECK(choice["finish_reason"] == "tool_calls");
    CHECK(choice["message"]["content"] == "I look.");
    REQUIRE(choice["message"]["tool_calls"].size() == 1);
    const Json& call = choice["message"]["tool_calls"][0];
    CHECK(call["type"] == "function");
    CHECK(call["function"]["name"] == "weather");
    CHECK(read_json(call["function"]["arguments"].get<std::string>()) == Json{{"city", "Kiel"}});

    Json streamed = body;
    streamed["stream"] = true;
    const std::vector<Json> all = events(served.post(kChat, streamed).body);
    CHECK(joined(all, "content").starts_with("I look."));
    std::string arguments;
    size_t names = 0;
    for (const Json& event : all) {
        if (!event.is_object()) continue;
        const Json& delta = event["choices"][0]["delta"];
        if (!delta.contains("tool_calls")) continue;
        const Json& piece = delta["tool_calls"][0];
        CHECK(piece["index"] == 0);
        names += piece["function"].contains("name") ? 1 : 0;
        arguments += piece["function"]["arguments"].get<std::string>();
    }
    CHECK(names == 1);
    CHECK(read_json(arguments) == Json{{"city", "Kiel"}});
    CHECK(all[all.size() - 2]["choices"][0]["finish_reason"] == "tool_calls");
    // Also where a limit ends the answer behind the call.
    served.answers.script()->reason = StopReason::max_tokens;
    CHECK(served.posted(kChat, body)["choices"][0]["finish_reason"] == "tool_calls");
    // Ids differ between answers, so that those of a conversation do not meet.
    CHECK(served.posted(kChat, body)["choices"][0]["message"]["tool_calls"][0]["id"] != call["id"]);
}

TEST_CASE("chat: without calls there are no tool_calls, whatever was offered") {
    Served served;
    const Json got = served.posted(kChat, chat_body({{"tools", kWeather}}));
    CHECK_FALSE(got["choices"][0]["message"].contains("tool_calls"));
    CHECK(got["choices"][0]["finish_reason"] == "stop");
    CHECK(got["choices"][0]["message"]["content"] == "Hello there!");
    // An answer that begins as a call may, and is text, too.
    served.answers.script()->pieces = {"{\"a\"", ": 1}"};
    const Json text = served.posted(kChat, chat_body({{"tools", kWeather}}));
    CHECK(text["choices"][0]["message"]["content"] == "{\"a\": 1}");
}

TEST_CASE("chat: tool_choice none offers nothing, and required holds the answer to a call") {
    Served served;
    served.posted(kChat, chat_body({{"tools", kWeather}, {"tool_choice", "none"}}));
    const size_t without = served.answers.last().prompt.size();
    CHECK_FALSE(served.answers.last().constraint);
    served.answers.script()->pieces = {"{\"name\": \"weather\", \"arguments\": {\"city\": \"Bonn\"}}"};
    for (const Json& choice :
         {Json("required"), Json{{"type", "function"}, {"function", {{"name", "weather"}}}}}) {
        const Json got = served.posted(kChat, chat_body({{"tools", kWeather}, {"tool_choice", choice}}));
        CHECK(got["choices"][0]["message"]["tool_calls"][0]["function"]["name"] == "weather");
        CHECK(got["choices"][0]["message"]["content"].is_null());
        REQUIRE(served.answers.last().constraint);
        CHECK(served.answers.last().prompt.size() > without);
        CHECK(served.answers.last().constraint->allows(served.model.tokenizer().find("a")).value() == false);
    }
    served.answers.script()->pieces[0] += served.answers.script()->pieces[0];
    CHECK(served.post(kChat, chat_body({{"tools", kWeather}, {"tool_choice", {{"name", "other"}}}})).status ==
          400);
    CHECK(served.post(kChat, chat_body({{"tool_choice", "required"}})).status == 400);
}

TEST_CASE(
    "chat: tool_choice allowed_tools offers these functions alone, in the forms of chats and responses") {
    Served served;
    Json tools = kWeather;
    tools.push_back(
        {{"type", "function"}, {"function", {{"name", "clock"}, {"parameters", Json::object()}}}});
    const Json named = Json::array({{{"type", "function"}, {"function", {{"name", "weather"}}}}});
    const auto with = [&](const char* mode, const Json& some) {
        return chat_body(
            {{"tools", tools},
             {"tool_choice",
              {{"type", "allowed_tools"}, {"allowed_tools", {{"mode", mode}, {"tools", some}}}}}});
    };
    CHECK(served.post(kChat, with("auto", named)).status == 200);
    CHECK_FALSE(served.answers.last().constraint);
    const std::string prompt = served.model.tokenizer().decode(served.answers.last().prompt, true);
    CHECK(mentions(prompt, "weather"));
    CHECK_FALSE(mentions(prompt, "clock"));
    CHECK(is_allowed(served, with("required", named), R"({"name":"weather","arguments":{"city":"Kiel"}})"));
    CHECK_FALSE(is_allowed(served, with("required", named), R"({"name":"clock","arguments":{}})"));
    const Json flat = {{"type", "allowed_tools"},
                       {"mode", "required"},
                       {"tools", Json::array({{{"type", "function"}, {"name", "f"}}})}};
    CHECK(served
              .post("/v1/responses", {{"input", "hi"},
                                      {"tools", Json::array({{{"type", "function"}, {"name", "f"}}})},
                                      {"tool_choice", flat}})
              .status == 200);
    CHECK(served.answers.last().constraint);
    for (const Json& bad : {with("never", named), with("auto", Json::array()),
                            with("auto", Json::array({{{"name", "other"}}}))}) {
        const HttpGot got = served.post(kChat, bad);
        CHECK(got.status == 400);
        CHECK(mentions(got.body, "tool_choice"));
    }
}

TEST_CASE("chat: a call that is required follows references within each function's parameters") {
    Served served;
    // Pydantic writes models within models so. Both functions have a definition of the same name.
    Json tools = Json::array();
    for (const char* type : {"integer", "string"})
        tools.push_back(
            {{"type", "function"},
             {"function",
              {{"name", fmt::format("f{}", tools.size())},
               {"parameters",
                {{"type", "object"},
                 {"properties", {{"p", {{"$ref", "#/$defs/P"}}}}},
                 {"required", {"p"}},
                 {"$defs", {{"P", {{"type", type}, {"minimum", 1}, {"maximum", 5}, {"maxLength", 3}}}}}}}}}});
    const Json body = chat_body({{"tools", tools}, {"tool_choice", "required"}});
    CHECK(is_allowed(served, body, R"({"name":"f0","arguments":{"p":4}})"));
    CHECK(is_allowed(served, body, R"({"name":"f1","arguments":{"p":"abc"}})"));
    CHECK_FALSE(is_allowed(served, body, R"({"name":"f0","arguments":{"p":"abc"}})"));
    CHECK_FALSE(is_allowed(served, body, R"({"name":"f1","arguments":{"p":4}})"));
}

TEST_CASE("chat: reasoning is apart from the answer, and its tokens are counted") {
    Served served;
    served.answers.script()->pieces = {"<think>", "let me", " see", "</think>", "\n\n", "42"};
    const Json got = served.posted(kChat, chat_body());
    const Json& message = got["choices"][0]["message"];
    CHECK(message["reasoning_content"] == "let me see");
    CHECK(message["content"] == "42");
    CHECK(got["usage"]["completion_tokens_details"]["reasoning_tokens"].get<int>() > 0);
    const std::vector<Json> all = events(served.post(kChat, chat_body({{"stream", true}})).body);
    CHECK(joined(all, "reasoning_content") == "let me see");
    CHECK(joined(all, "content") == "42");
    // With its marks, where that is asked for.
    const Json raw = served.posted(kChat, chat_body({{"reasoning_format", "none"}}));
    CHECK(raw["choices"][0]["message"]["content"].get<std::string>().starts_with("<think>"));
}

TEST_CASE("chat: reasoning is switched off by either name, and limited by a budget") {
    Served served;
    served.posted(kChat, chat_body());
    const size_t usual = served.answers.last().prompt.size();
    CHECK_FALSE(served.answers.last().forced);
    served.posted(kChat, chat_body({{"reasoning_effort", "none"}}));
    CHECK(served.answers.last().prompt.size() > usual);
    served.posted(kChat, chat_body({{"chat_template_kwargs", {{"enable_thinking", false}}}}));
    CHECK(served.answers.last().prompt.size() > usual);
    served.posted(kChat, chat_body({{"reasoning_budget_tokens", 5}}));
    CHECK(served.answers.last().forced);
}

TEST_CASE("chat: several answers have numbers, and different seeds") {
    Served served;
    const Json got = served.posted(kChat, chat_body({{"n", 3}, {"seed", 11}}));
    REQUIRE(got["choices"].size() == 3);
    for (size_t i = 0; i < 3; ++i) CHECK(got["choices"][i]["index"] == i);
    CHECK((*served.answers.requests())[0].sampling.seed == 11);
    CHECK((*served.answers.requests())[2].sampling.seed == 13);
    const std::vector<Json> all = events(served.post(kChat, chat_body({{"n", 2}, {"stream", true}})).body);
    CHECK(all[0]["choices"][0]["index"] == 0);
    CHECK(all[1]["choices"][0]["index"] == 1);
    for (size_t i = 0; i < 2; ++i) CHECK(joined(all, "content", i) == "Hello there!");
}

TEST_CASE("chat: what a request asks for reaches the sampler") {
    Served served;
    served.posted(kChat, chat_body({{"temperature", 0.5},
                                    {"top_k", 7},
                                    {"min_p", 0.25},
                                    {"repetition_penalty", 1.5},
                                    {"presence_penalty", -0.5},
                                    {"logit_bias", {{"5", -100}, {"6", 2.5}}},
                                    {"stop", {"a", "b"}},
                                    {"stop_token_ids", {4}},
                                    {"max_completion_tokens", 12},
                                    {"min_tokens", 3},
                                    {"ignore_eos", true},
                                    {"cache_prompt", false},
                                    {"user", "someone"},
                                    {"unheard_of", {{"x", 1}}},
                                    {"top_p", nullptr}}));
    const server::AnswerRequest request = served.answers.last();
    CHECK(request.sampling.temperature == 0.5f);
    CHECK(request.sampling.top_k == 7);
    CHECK(request.sampling.min_p == 0.25f);
    CHECK(request.sampling.repeat_penalty == 1.5f);
    CHECK(request.sampling.presence_penalty == -0.5f);
    CHECK(request.sampling.logit_bias == std::vector<std::pair<int32_t, float>>{{5, -100.0f}, {6, 2.5f}});
    CHECK(request.sampling.top_p == SamplerOptions().top_p);
    CHECK(request.stops == std::vector<std::string>{"a", "b"});
    CHECK(request.stop_tokens == std::vector<Token>{4});
    CHECK(request.max_tokens == 12);
    CHECK(request.min_tokens == 3);
    CHECK(request.ignore_eos);
    CHECK_FALSE(request.cache_prompt);
    CHECK(request.logprobs == -1);
}

TEST_CASE("chat: probabilities come with each token, and need to be asked for") {
    Served served;
    const Json got = served.posted(kChat, chat_body({{"logprobs", true}, {"top_logprobs", 2}}));
    const Json& content = got["choices"][0]["logprobs"]["content"];
    CHECK(content.size() == got["usage"]["completion_tokens"].get<size_t>());
    CHECK(content[0]["logprob"] == -0.5);
    CHECK(content[0]["top_logprobs"].size() == 2);
    CHECK(content[0]["bytes"] == Json::array({'H'}));
    const std::vector<Json> all =
        events(served.post(kChat, chat_body({{"logprobs", true}, {"stream", true}})).body);
    size_t count = 0;
    for (const Json& event : all)
        if (event.is_object() && event["choices"][0]["logprobs"].is_object())
            count += event["choices"][0]["logprobs"]["content"].size();
    CHECK(count == content.size());
    CHECK(served.post(kChat, chat_body({{"top_logprobs", 2}})).status == 400);
}

TEST_CASE("chat: answers follow a schema where one is given, strictly where that is asked for") {
    Served served;
    const Json schema = {{"type", "object"}, {"properties", {{"a", {{"type", "integer"}}}}}};
    const auto with = [&](const Json& format) {
        return served.post(kChat, chat_body({{"response_format", format}}));
    };
    CHECK(with({{"type", "json_schema"}, {"json_schema", {{"name", "x"}, {"schema", schema}}}}).status ==
          200);
    CHECK(served.answers.last().constraint);
    CHECK(with({{"type", "json_object"}}).status == 200);
    CHECK(served.answers.last().constraint);
    CHECK(with({{"type", "text"}}).status == 200);
    CHECK_FALSE(served.answers.last().constraint);
    CHECK(served.post(kChat, chat_body({{"grammar", "root ::= \"a\""}})).status == 200);
    CHECK(served.answers.last().constraint);
    const HttpGot bad = served.post(kChat, chat_body({{"grammar", "root = x"}}));
    CHECK(bad.status == 400);
    CHECK(mentions(bad.body, "grammar"));
    CHECK(with({{"type", "xml"}}).status == 400);
    // A keyword that cannot be held is an error where the client insists.
    const Json held = {{"type", "array"}, {"contains", {{"type", "integer"}}}};
    for (const bool strict : {false, true}) {
        const Json named = {{"name", "x"}, {"schema", held}, {"strict", strict}};
        CHECK(with({{"type", "json_schema"}, {"json_schema", named}}).status == (strict ? 400 : 200));
    }
    CHECK(served.post(kChat, chat_body({{"tools", kWeather}, {"grammar", "root ::= \"a\""}})).status == 400);
}

TEST_CASE("chat: with functions and a schema the answer is a call or follows the schema") {
    Served served;
    const Json schema = {{"type", "object"},
                         {"properties", {{"a", {{"$ref", "#/$defs/A"}}}}},
                         {"required", {"a"}},
                         {"$defs", {{"A", {{"type", "integer"}, {"minimum", 1}, {"maximum", 5}}}}}};
    Json body =
        chat_body({{"tools", kWeather},
                   {"response_format",
                    {{"type", "json_schema"}, {"json_schema", {{"name", "x"}, {"schema", schema}}}}}});
    const std::string call = R"({"name":"weather","arguments":{"city":"Kiel"}})";
    CHECK(is_allowed(served, body, R"({"a":4})"));
    CHECK(is_allowed(served, body, call));
    CHECK_FALSE(is_allowed(served, body, R"({"a":"Kiel"})"));
    CHECK_FALSE(is_allowed(served, body, R"({"name":"other","arguments":{"city":"Kiel"}})"));
    served.answers.script()->pieces = {"{\"a\"", ":4}"};
    CHECK(served.posted(kChat, body)["choices"][0]["message"]["content"] == R"({"a":4})");
    served.answers.script()->pieces = {call};
    CHECK(served.posted(kChat, body)["choices"][0]["finish_reason"] == "tool_calls");
    // A choice of tools decides between the two.
    body["tool_choice"] = "required";
    CHECK(is_allowed(served, body, call));
    CHECK_FALSE(is_allowed(served, body, R"({"a":4})"));
    body["tool_choice"] = "none";
    CHECK(is_allowed(served, body, R"({"a":4})"));
    CHECK_FALSE(is_allowed(served, body, call));
    body = chat_body({{"tools", kWeather}, {"response_format", {{"type", "json_object"}}}});
    CHECK(is_allowed(served, body, R"({"b":true})"));
}

TEST_CASE("chat: what is not honoured is refused by its name") {
    Served served;
    const Json cases = parse_json(R"([
        ["echo", true], ["best_of", 3], ["suffix", "x"], ["functions", [{"name": "f"}]], ["audio", {"voice": "x"}],
        ["modalities", ["text", "audio"]], ["web_search_options", {"a": 1}], ["use_beam_search", true],
        ["prompt_logprobs", 2], ["guided_regex", "a+"], ["guided_choice", ["a"]], ["return_progress", true],
        ["top_logprobs", 3], ["n", 1000], ["n", 0], ["temperature", "hot"], ["temperature", 1e300], ["top_p", 2],
        ["seed", 1.5], ["max_tokens", -5], ["max_tokens", "many"], ["n_discard", -1], ["stop", 5],
        ["stop_token_ids", [-1]], ["logit_bias", {"999999": 1}], ["stream", "yes"],
        ["stream_options", {"include_usage": true}], ["reasoning_effort", "lots"], ["reasoning_format", "xml"],
        ["tools", [{"no": "name"}]], ["messages", []], ["messages", [{"role": "wizard", "content": "x"}]],
        ["chat_template_kwargs", 5], ["min_p", -3], ["top_k", 1e12], ["n_predict", 1e30]])");
    for (const Json& one : cases) {
        const std::string name = one[0].get<std::string>();
        const HttpGot got = served.post(kChat, chat_body({{name, one[1]}}));
        CAPTURE(one.dump());
        CAPTURE(got.body);
        CHECK(got.status == 400);
        const Json problem = read_json(got.body)["error"];
        CHECK(problem["type"] == "invalid_request_error");
        CHECK(problem["code"] == 400);
        CHECK(mentions(problem["message"].get<std::string>(), name));
    }
    // An image, by its type.
    const HttpGot image = http_post(served.port(), kChat, R"({"messages": [{"role": "user", "content":
        [{"type": "image_url", "image_url": {"url": "data:image/png;base64,AA"}}]}]})");
    CHECK(image.status == 400);
    CHECK(mentions(image.body, "image_url"));
    CHECK(served.answers.requests()->empty());
}

TEST_CASE("chat: a body that is no JSON, or nested without end, is refused") {
    Served served;
    const auto post = [&](const std::string& body) { return http_post(served.port(), kChat, body); };
    for (const std::string& body :
         {std::string(), std::string("{"), std::string("[]"), std::string("{\"temperature\": NaN}"),
          std::string("{\"temperature\": 1e999}"),
          "{\"messages\": " + std::string(200, '[') + std::string(200, ']') + "}", std::string(5000000, '['),
          "{\"a\": \"" + std::string("\xff\xfe") + "\"}"}) {
        const HttpGot got = post(body);
        CAPTURE(body.substr(0, 60));
        CHECK(got.status == 400);
        CHECK(read_json(got.body)["error"]["type"] == "invalid_request_error");
    }
}

TEST_CASE("chat: a prompt that the context has no room for is refused with the numbers, and never cut") {
    Served served;
    Json long_one = chat_body();
    long_one["messages"][0]["content"] = std::string(5000, 'a');
    const HttpGot got = served.post(kChat, long_one);
    CHECK(got.status == 400);
    const Json problem = read_json(got.body)["error"];
    CHECK(problem["type"] == "exceed_context_size_error");
    CHECK(problem["n_ctx"] == 4096);
    CHECK(problem["n_prompt_tokens"].get<int>() > 5000);
    // Words by which clients know that the conversation has to be shortened.
    for (const char* known : {"prompt is too long", "exceeds the available context size"})
        CHECK(mentions(problem["message"].get<std::string>(), known));
    CHECK(served.answers.requests()->empty());
    Json streamed = long_one;
    streamed["stream"] = true;
    CHECK(served.post(kChat, streamed).status == 400);
}

TEST_CASE("chat: a full queue is 429 and an ending server 503, with the time of another try") {
    Served served;
    *served.answers.refusal() = {
        .refusal = server::Refusal::queue_full, .message = "the queue is full", .retry_seconds = 7};
    for (const bool stream : {false, true}) {
        const HttpGot full = served.post(kChat, chat_body({{"stream", stream}}));
        CHECK(full.status == 429);
        CHECK(full.headers.at("retry-after") == "7");
        CHECK(read_json(full.body)["error"]["type"] == "rate_limit_error");
    }
    *served.answers.refusal() = {.refusal = server::Refusal::device_lost, .message = "it is opened again"};
    CHECK(served.post(kChat, chat_body()).status == 503);
    *served.answers.refusal() = {};
    served.server->drain();
    const HttpGot ending = served.post(kChat, chat_body());
    CHECK(ending.status == 503);
    CHECK(ending.headers.count("retry-after") == 1);
    CHECK(http_get(served.port(), "/health").status == 503);
}

TEST_CASE("chat: a fault is a plain error before the stream begins, and an event after") {
    Served served;
    *served.answers.script() = {.pieces = {}, .fault = "the device is gone"};
    CHECK(served.post(kChat, chat_body({{"stream", true}})).status == 500);
    CHECK(served.post(kChat, chat_body()).status == 500);
    served.answers.script()->pieces = {"Hel"};
    const HttpGot got = served.post(kChat, chat_body({{"stream", true}}));
    CHECK(got.status == 200);
    const std::vector<Json> all = events(got.body);
    CHECK(all.back()["error"]["message"] == "the device is gone");
    CHECK(all.back()["error"]["type"] == "server_error");
}

TEST_CASE("chat: a client that goes ends its answer, while it waits, reads or is written to") {
    Served served;
    for (const bool stream : {true, false})
        for (const bool waits : {true, false}) {
            CAPTURE(stream);
            CAPTURE(waits);
            const size_t before = served.answers.cancelled();
            *served.answers.script() = {.endless = true, .waits = waits};
            HttpConnection client(served.port());
            client.send(http_text("POST", kChat, chat_body({{"stream", stream}}).dump()));
            if (stream && !waits) CHECK(client.receive());
            CHECK(comes_true([&] { return served.answers.requests()->size() > before; }));
            client.close();
            CHECK(comes_true([&] { return served.answers.cancelled() > before; }));
        }
    // Others are not touched.
    *served.answers.script() = {};
    CHECK(served.posted(kChat, chat_body())["choices"][0]["message"]["content"] == "Hello there!");
}

TEST_CASE("chat: an answer goes on from a last message of the assistant where that is asked for") {
    Served served;
    Json body = chat_body();
    body["messages"].push_back({{"role", "assistant"}, {"content", "Once upon"}});
    CHECK(served.post(kChat, body).status == 400);
    body["continue_final_message"] = true;
    CHECK(served.post(kChat, body).status == 200);
    const std::string prompt = served.model.tokenizer().decode(served.answers.last().prompt, true);
    CHECK(prompt.ends_with("assistant\nOnce upon"));
}
