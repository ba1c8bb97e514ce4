// The other protocols: completions, responses, Anthropic's messages, Ollama's lines, llama-server's
// endpoints.
#include "served.h"

using namespace redline;
using namespace redline::test;
namespace server = redline::serve;

namespace {

// The names of a stream's events, in their order, without repetitions.
std::vector<std::string> event_names(const std::string& body) {
    std::vector<std::string> names;
    for (size_t at = 0; (at = body.find("event: ", at)) != body.npos;) {
        const size_t end = body.find('\n', at);
        const std::string name = body.substr(at + 7, end - at - 7);
        if (names.empty() || names.back() != name) names.push_back(name);
        at = end;
    }
    return names;
}

std::vector<Json> lines(const std::string& body) {
    std::vector<Json> all;
    for (size_t at = 0; at < body.size();) {
        const size_t end = std::min(body.find('\n', at), body.size());
        all.push_back(read_json(body.substr(at, end - at)));
        at = end + 1;
    }
    return all;
}

const Json kAnthropicTools = parse_json(
    R"([{"name": "f", "description": "d", "input_schema": {"type": "object", "properties": {"x": {"type": "integer"}}}}])");
const std::vector<std::string> kCallPieces = {"well ", "<tool_call>{\"name\": \"f\", ",
                                              "\"arguments\": {\"x\": 3}}</tool_call>"};

Json message_body(const Json& more = Json::object()) {
    Json body = chat_body({{"max_tokens", 50}});
    body.update(more);
    return body;
}

}  // namespace

TEST_CASE("completions: texts, tokens and lists of both are prompts") {
    Served served;
    const auto post = [&](const Json& prompt) {
        return served.post("/v1/completions", {{"prompt", prompt}});
    };
    const Json one = read_json(post("abc").body);
    CHECK(one["object"] == "text_completion");
    CHECK(one["choices"][0]["text"] == "Hello there!");
    CHECK(one["choices"][0]["finish_reason"] == "stop");
    CHECK(post(Json::array({3, 4, 5})).status == 200);
    CHECK(served.answers.last().prompt == std::vector<Token>{3, 4, 5});
    const Json two = read_json(post(Json::array({"abc", "de"})).body);
    CHECK(two["choices"].size() == 2);
    CHECK(two["choices"][1]["index"] == 1);
    CHECK(post(Json::array({Json::array({3}), Json::array({4})})).status == 200);
    for (const Json& bad :
         {Json(5), Json::array(), Json::array({3, -1}), Json::array({3, 1e9}), Json::object(), Json()})
        CHECK(post(bad).status == 400);
}

TEST_CASE("completions: a stream, its usage, and the older form of probabilities") {
    Served served;
    const std::vector<Json> all =
        events(served
                   .post("/v1/completions", {{"prompt", "a"},
                                             {"stream", true},
                                             {"logprobs", 1},
                                             {"stream_options", {{"include_usage", true}}}})
                   .body);
    REQUIRE(all.size() == 6);
    CHECK(all[0]["choices"][0]["text"] == "Hello");
    CHECK(all[0]["choices"][0]["logprobs"]["tokens"].size() == 5);
    CHECK(all[1]["choices"][0]["logprobs"]["text_offset"][0] == 5);
    CHECK(all[3]["choices"][0]["finish_reason"] == "stop");
    CHECK(all[4]["usage"]["prompt_tokens"] == 2);
    CHECK(all[5] == "[DONE]");
    served.answers.script()->reason = StopReason::max_tokens;
    const Json cut = served.posted("/v1/completions", {{"prompt", "a"}, {"max_tokens", 0}});
    CHECK(cut["choices"][0]["finish_reason"] == "length");
    CHECK(served.answers.last().max_tokens == 0);
}

TEST_CASE("completions: one prompt without room cancels the answers to the others") {
    Served served;
    served.answers.script()->endless = true;
    const HttpGot got = served.post("/v1/completions", {{"prompt", {"a", std::string(5000, 'b')}}});
    CHECK(got.status == 400);
    CHECK(comes_true([&] { return served.answers.cancelled() == 1; }));
}

TEST_CASE("messages: a whole answer has blocks for reasoning, text and calls") {
    Served served;
    served.answers.script()->pieces = kCallPieces;
    served.answers.script()->pieces.insert(served.answers.script()->pieces.begin(), "<think>hm</think>");
    const Json got = served.posted("/v1/messages", message_body({{"tools", kAnthropicTools}}));
    CHECK(got["type"] == "message");
    CHECK(got["role"] == "assistant");
    REQUIRE(got["content"].size() == 3);
    CHECK(got["content"][0]["thinking"] == "hm");
    CHECK(got["content"][1] == Json{{"type", "text"}, {"text", "well"}});
    CHECK(got["content"][2]["name"] == "f");
    CHECK(got["content"][2]["input"] == Json{{"x", 3}});
    CHECK(got["stop_reason"] == "tool_use");
    CHECK(got["stop_sequence"].is_null());
    CHECK(got["usage"]["cache_read_input_tokens"] == 1);
    CHECK(got["usage"]["input_tokens"] == served.answers.last().prompt.size() - 1);
}

TEST_CASE("messages: a stream has its events in order, and blocks are numbered without gaps") {
    Served served;
    served.answers.script()->pieces = kCallPieces;
    served.answers.script()->pieces.insert(served.answers.script()->pieces.begin(), "<think>hm</think>");
    const HttpGot got =
        served.post("/v1/messages", message_body({{"tools", kAnthropicTools}, {"stream", true}}));
    const std::vector<std::string> block = {"content_block_start", "content_block_delta",
                                            "content_block_stop"};
    std::vector<std::string> wanted = {"message_start"};
    for (int i = 0; i < 3; ++i) wanted.insert(wanted.end(), block.begin(), block.end());
    wanted.insert(wanted.end(), {"message_delta", "message_stop"});
    CHECK(event_names(got.body) == wanted);
    int starts = 0;
    std::string input;
    for (const Json& event : events(got.body)) {
        if (event["type"] == "content_block_start") CHECK(event["index"] == starts++);
        if (event["type"] == "content_block_delta" && event["delta"]["type"] == "input_json_delta")
            input += event["delta"]["partial_json"].get<std::string>();
        if (event["type"] == "message_delta") CHECK(event["delta"]["stop_reason"] == "tool_use");
    }
    CHECK(starts == 3);
    CHECK(read_json(input) == Json{{"x", 3}});
}

TEST_CASE("messages: conversations with calls and their results are written, and stop sequences named") {
    Served served;
    served.answers.script()->reason = StopReason::stop_string;
    served.answers.script()->stop = "END";
    const Json messages = parse_json(R"([
        {"role": "user", "content": [{"type": "text", "text": "one"}]},
        {"role": "assistant", "content": [{"type": "text", "text": "look"},
            {"type": "tool_use", "id": "t1", "name": "f", "input": {"x": 1}}]},
        {"role": "user", "content": [{"type": "tool_result", "tool_use_id": "t1", "content": "nine"},
            {"type": "text", "text": "and?"}]},
        {"role": "system", "content": [{"type": "text", "text": "in Danish"}]}])");
    const Json body = message_body({{"system", {{{"type", "text"}, {"text", "be brief"}}}},
                                    {"messages", messages},
                                    {"tools", kAnthropicTools},
                                    {"stop_sequences", {"END"}}});
    const Json got = served.posted("/v1/messages", body);
    CHECK(got["stop_reason"] == "stop_sequence");
    CHECK(got["stop_sequence"] == "END");
    const std::string prompt = served.model.tokenizer().decode(served.answers.last().prompt, true);
    for (const char* part : {"system\nbe brief", "user\none", "assistant\nlook<tool_call>", "tool\nnine",
                             "user\nand?", "system\nin Danish"})
        CHECK_MESSAGE(mentions(prompt, part), prompt);
    CHECK(served.posted("/v1/messages/count_tokens", body)["input_tokens"] ==
          served.answers.last().prompt.size());
}

TEST_CASE("messages: a value in the first line that changes with each request is written the same") {
    Served served;
    const auto prompt_of = [&](const std::string& value) {
        served.post(
            "/v1/messages",
            message_body({{"system", "x-anthropic-billing-header: v=1; cch=" + value + "; n=2\nbe brief"}}));
        return served.answers.last().prompt;
    };
    CHECK(prompt_of("a1b2c") == prompt_of("ffff0"));
}

TEST_CASE("messages: errors have Anthropic's form") {
    Served served;
    Json body = message_body();
    body.erase("max_tokens");
    const auto refused = [&](const Json& what, const char* word) {
        const HttpGot got = served.post("/v1/messages", what);
        CHECK(got.status == 400);
        const Json problem = read_json(got.body);
        CHECK(problem["type"] == "error");
        CHECK(problem["error"]["type"] == "invalid_request_error");
        CHECK_MESSAGE(mentions(problem["error"]["message"].get<std::string>(), word), got.body);
    };
    refused(body, "max_tokens");
    refused(message_body({{"messages", 5}}), "messages");
    refused(message_body({{"tool_choice", {{"type", "maybe"}}}}), "tool_choice");
    refused(message_body({{"tools", {{{"type", "web_search_20250305"}, {"name", "web_search"}}}}}),
            "web_search");
    refused(message_body({{"thinking", {{"type", "yes"}}}}), "thinking");
    refused(message_body({{"mcp_servers", {1}}}), "mcp_servers");
    *served.answers.script() = {.pieces = {"a"}, .fault = "gone"};
    const HttpGot late = served.post("/v1/messages", message_body({{"stream", true}}));
    CHECK(event_names(late.body).back() == "error");
}

TEST_CASE("responses: items come in order, with constant ids and all indices") {
    Served served;
    served.answers.script()->pieces = kCallPieces;
    served.answers.script()->pieces.insert(served.answers.script()->pieces.begin(), "<think>hm</think>");
    const Json body = {
        {"model", "m"},
        {"input", "hi"},
        {"stream", true},
        {"tools", {{{"type", "function"}, {"name", "f"}, {"parameters", {{"type", "object"}}}}}}};
    const HttpGot got = served.post("/v1/responses", body);
    const std::vector<std::string> names = event_names(got.body);
    const std::vector<std::string> wanted = {
        "response.created", "response.in_progress",
        // the reasoning
        "response.output_item.added", "response.content_part.added", "response.reasoning_text.delta",
        "response.reasoning_text.done", "response.content_part.done", "response.output_item.done",
        // the text
        "response.output_item.added", "response.content_part.added", "response.output_text.delta",
        "response.output_text.done", "response.content_part.done", "response.output_item.done",
        // the call
        "response.output_item.added", "response.function_call_arguments.delta",
        "response.function_call_arguments.done", "response.output_item.done", "response.completed"};
    CHECK(names == wanted);
    const std::vector<Json> all = events(got.body);
    for (size_t i = 0; i < all.size(); ++i) CHECK(all[i]["sequence_number"] == i);
    const Json& last = all.back()["response"];
    CHECK(last["id"] == all[0]["response"]["id"]);
    CHECK(last["status"] == "completed");
    REQUIRE(last["output"].size() == 3);
    CHECK(last["output"][2]["name"] == "f");
    CHECK(last["output"][2]["arguments"] == "{\"x\":3}");
    CHECK(last["usage"]["input_tokens_details"]["cached_tokens"] == 1);
    for (const Json& event : all)
        if (event["type"] == "response.output_text.delta") {
            CHECK(event["item_id"] == last["output"][1]["id"]);
            CHECK(event["output_index"] == 1);
            CHECK(event["content_index"] == 0);
        }
    CHECK_FALSE(mentions(got.body, "[DONE]"));
}

TEST_CASE("responses: probabilities of the text come where they are asked for, and none of the reasoning") {
    Served served;
    served.answers.script()->pieces = {"<think>", "hm", "</think>", "a", "b"};
    const size_t tokens = served.model.tokenizer().encode("ab", {.add_special = false}).size();
    for (const Json& wish :
         {Json{{"top_logprobs", 2}}, Json{{"include", {"message.output_text.logprobs"}}}, Json::object()}) {
        CAPTURE(wish.dump());
        Json body = {{"input", "hi"}};
        body.update(wish);
        const Json whole = served.posted("/v1/responses", body);
        const Json part = whole["output"][1]["content"][0];
        CHECK(part["text"] == "ab");
        REQUIRE(part["logprobs"].size() == (wish.empty() ? 0 : tokens));
        if (!wish.empty())
            CHECK(part["logprobs"][0]["top_logprobs"].size() == (wish.contains("top_logprobs") ? 2 : 0));
        body["stream"] = true;
        Json deltas = Json::array();
        const std::vector<Json> all = events(served.post("/v1/responses", body).body);
        for (const Json& event : all)
            if (event["type"] == "response.output_text.delta")
                for (const Json& each : event["logprobs"]) deltas.push_back(each);
        CHECK(deltas == part["logprobs"]);
        CHECK(all.back()["response"]["output"][1]["content"][0]["logprobs"] == part["logprobs"]);
    }
}

TEST_CASE("responses: a whole answer, a cut one, a conversation of items, and what is refused") {
    Served served;
    served.answers.script()->reason = StopReason::max_tokens;
    const Json input = parse_json(R"([{"role": "user", "content": [{"type": "input_text", "text": "a"}]},
        {"type": "function_call", "call_id": "c1", "name": "f", "arguments": "{}"},
        {"type": "function_call_output", "call_id": "c1", "output": "nine"}])");
    const Json got = served.posted("/v1/responses", {{"input", input}, {"instructions", "be brief"}});
    CHECK(got["object"] == "response");
    CHECK(got["status"] == "incomplete");
    CHECK(got["incomplete_details"]["reason"] == "max_output_tokens");
    CHECK(got["output"][0]["content"][0]["text"] == "Hello there!");
    const std::string prompt = served.model.tokenizer().decode(served.answers.last().prompt, true);
    for (const char* part : {"system\nbe brief", "user\na", "<tool_call>", "tool\nnine"})
        CHECK(mentions(prompt, part));
    const Json refusals = parse_json(R"({"previous_response_id": "r", "conversation": "c", "background": true,
        "truncation": "auto", "max_output_tokens": 0, "input": 5, "tools": [{"type": "web_search"}],
        "reasoning": {"effort": "lots"}, "text": {"format": {"type": "xml"}}})");
    for (const auto& [name, value] : refusals.items()) {
        Json body = {{"input", "hi"}};
        body[name] = value;
        const HttpGot refused = served.post("/v1/responses", body);
        CAPTURE(refused.body);
        CHECK(refused.status == 400);
        CHECK(mentions(refused.body, name == "reasoning" ? "reasoning_effort" : name));
    }
}

TEST_CASE("ollama: a chat streams by default, in lines that end with the counts") {
    Served served;
    served.answers.script()->pieces.insert(served.answers.script()->pieces.begin(), "<think>hm</think>");
    const HttpGot got = served.post("/api/chat", chat_body());
    CHECK(got.headers.at("content-type") == "application/x-ndjson");
    const std::vector<Json> all = lines(got.body);
    REQUIRE(all.size() == 5);
    CHECK(all[0]["message"] == Json{{"role", "assistant"}, {"content", ""}, {"thinking", "hm"}});
    CHECK(all[1]["message"]["content"] == "Hello");
    CHECK(all[1]["done"] == false);
    CHECK(all[4]["done"] == true);
    CHECK(all[4]["done_reason"] == "stop");
    CHECK(all[4]["prompt_eval_count"] == served.answers.last().prompt.size());
    CHECK(all[4]["eval_duration"].is_number_integer());
    const Json whole = served.posted("/api/chat", chat_body({{"stream", false}}));
    CHECK(whole["message"]["content"] == "Hello there!");
    CHECK(whole["message"]["thinking"] == "hm");
}

TEST_CASE("ollama: calls have an object of arguments, options reach the sampler, and more is refused") {
    Served served;
    served.answers.script()->pieces = kCallPieces;
    const Json tools =
        parse_json(R"([{"type": "function", "function": {"name": "f", "parameters": {"type": "object"}}}])");
    const Json got = served.posted(
        "/api/chat",
        chat_body(
            {{"tools", tools},
             {"stream", false},
             {"options", {{"temperature", 0.25}, {"num_predict", 9}, {"stop", "x"}, {"num_ctx", 100}}}}));
    CHECK(got["message"]["tool_calls"][0]["function"]["arguments"] == Json{{"x", 3}});
    CHECK(served.answers.last().sampling.temperature == 0.25f);
    CHECK(served.answers.last().max_tokens == 9);
    CHECK(served.answers.last().stops == std::vector<std::string>{"x"});
    const Json refusals =
        parse_json(R"({"options": {"num_ctx": 99999}, "think": "lots", "format": 5, "images": ["AA"]})");
    for (const auto& [name, value] : refusals.items()) {
        const HttpGot refused = served.post("/api/chat", chat_body({{name, value}}));
        CHECK(refused.status == 400);
        CHECK(mentions(read_json(refused.body)["error"].get<std::string>(),
                       name == "options" ? "num_ctx" : name));
    }
    CHECK(served.post("/api/embed", Json::object()).status == 501);
}

TEST_CASE("ollama: generate writes a turn, or goes on from a text, and an empty prompt loads") {
    Served served;
    const std::vector<Json> all =
        lines(served.post("/api/generate", {{"prompt", "abc"}, {"system", "s"}}).body);
    CHECK(all[0]["response"] == "Hello");
    CHECK(all.back()["done"] == true);
    const auto prompt = [&] { return served.model.tokenizer().decode(served.answers.last().prompt, true); };
    CHECK(mentions(prompt(), "user\nabc"));
    served.post("/api/generate", {{"prompt", "abc"}, {"raw", true}, {"stream", false}});
    CHECK(prompt() == "<s>abc");
    CHECK(served.posted("/api/generate", {{"model", "tiny"}})["done_reason"] == "load");
    CHECK(served.post("/api/generate", {{"model", "tiny"}, {"keep_alive", 0}}).status == 400);
    CHECK(served.post("/api/generate", {{"prompt", "a"}, {"context", {1, 2}}}).status == 400);
}

TEST_CASE("ollama: lists of models have what its client insists on") {
    Served served;
    const auto get = [&](const char* path) { return read_json(http_get(served.port(), path).body); };
    CHECK(get("/api/tags")["models"][0]["model"] == "tiny:latest");
    CHECK(get("/api/tags")["models"][0]["details"]["format"] == "gguf");
    CHECK(get("/api/ps")["models"][0]["context_length"] == 4096);
    // Clients of Ollama refuse a server that is older than they need.
    CHECK(get("/api/version")["version"] == "0.12.11");
    const Json shown = served.posted("/api/show", {{"model", "tiny"}});
    CHECK(shown["model_info"]["general.architecture"] == "llama");
    CHECK(shown["capabilities"] == Json::array({"completion", "tools", "thinking"}));
}

TEST_CASE("llama-server's endpoints: completion, tokens, templates, state") {
    Served served;
    const Json whole = served.posted("/completion", {{"prompt", "abc"}, {"n_predict", 5}, {"n_probs", 1}});
    CHECK(whole["content"] == "Hello there!");
    CHECK(whole["stop_type"] == "eos");
    CHECK(whole["completion_probabilities"][0]["top_logprobs"].size() == 1);
    const std::vector<Json> all =
        events(served.post("/completion", {{"prompt", {3, "abc"}}, {"stream", true}}).body);
    CHECK(all[0]["content"] == "Hello");
    CHECK(all.back()["stop"] == true);
    const Json tokens = served.posted("/tokenize", {{"content", "ab"}, {"with_pieces", true}});
    CHECK(tokens["tokens"][1]["piece"] == "b");
    CHECK(served.posted("/tokenize", {{"prompt", "ab"}})["count"] == 3);
    CHECK(served.posted("/tokenize", chat_body())["count"].get<int>() > 3);
    CHECK(served.posted("/detokenize", {{"tokens", {3, 4}}})["content"] == "ab");
    CHECK(served.post("/detokenize", {{"tokens", {-3}}}).status == 400);
    CHECK(served.posted("/apply-template", chat_body())["prompt"] ==
          "<|im_start|>user\nhi<|im_end|>\n<|im_start|>assistant\n");
    CHECK(served.post("/infill", {{"input_prefix", "a"}, {"input_suffix", "b"}}).status == 400);
    const auto get = [&](const char* path) { return read_json(http_get(served.port(), path).body); };
    CHECK(get("/health") == Json{{"status", "ok"}});
    CHECK(get("/props")["total_slots"] == 2);
    CHECK(get("/props")["chat_template"] == kServedTemplate);
    CHECK(get("/slots")[1]["is_processing"] == true);
    served.answers.state = server::Health::device_lost;
    CHECK(http_get(served.port(), "/health").status == 503);
}

TEST_CASE("routers: a worker tells its load and its version, and writes prompts as tokens") {
    Served served;
    const auto get = [&](const char* path) { return read_json(http_get(served.port(), path).body); };
    CHECK(get("/get_load") ==
          Json{{"load", 1}, {"num_reqs", 1}, {"num_waiting_reqs", 0}, {"num_tokens", 12}});
    CHECK(get("/load") == Json{{"server_load", 1}});
    CHECK(get("/version") == Json{{"version", "redline 0.0.0"}});
    CHECK(get("/ping") == Json{{"status", "ok"}});
    const Json chat = served.posted("/v1/chat/completions/render", chat_body({{"max_tokens", 7}}));
    CHECK(chat["token_ids"] == served.posted("/tokenize", chat_body())["tokens"]);
    CHECK(chat["sampling_params"]["max_tokens"] == 7);
    const Json texts = served.posted("/v1/completions/render", {{"prompt", {"ab", "c"}}});
    REQUIRE(texts.size() == 2);
    CHECK(texts[0]["token_ids"] == served.posted("/tokenize", {{"prompt", "ab"}})["tokens"]);
    CHECK(texts[1]["sampling_params"]["max_tokens"] == 4096 - texts[1]["token_ids"].size());
    CHECK(served.post("/v1/chat/completions/render", {{"messages", 3}}).status == 400);
    const Json pieces = served.posted("/tokenize", {{"prompt", "ab"}, {"return_token_strs", true}});
    CHECK(pieces["token_strs"][2] == "b");
    CHECK(pieces["tokens"].size() == pieces["token_strs"].size());
}

TEST_CASE("routers: a server that ends refuses what is new, and its connections end behind their answers") {
    Served served;
    served.answers.script()->endless = true;
    HttpConnection running(served.port()), idle(served.port());
    running.send(http_text("POST", "/v1/chat/completions", chat_body({{"stream", true}}).dump()));
    REQUIRE(running.receive());
    served.server->drain();
    for (const char* path : {"/health", "/ping"}) {
        const HttpGot got = http_get(served.port(), path);
        CHECK(got.status == 503);
        CHECK(got.headers.at("connection") == "close");
        CHECK(std::stoi(got.headers.at("retry-after")) > 0);
    }
    idle.send(http_text("POST", "/v1/chat/completions", chat_body().dump()));
    const HttpGot refused = idle.read();
    CHECK(refused.status == 503);
    CHECK(refused.headers.at("connection") == "close");
    CHECK(refused.headers.contains("retry-after"));
}

TEST_CASE("models: the list has the model, and others are not found") {
    Served served;
    const Json list = read_json(http_get(served.port(), "/v1/models").body);
    CHECK(list["data"][0]["id"] == "tiny");
    CHECK(list["data"][0]["meta"]["n_ctx"] == 4096);
    CHECK(list["data"][0]["created_at"] == "2023-11-14T22:13:20Z");
    CHECK(list["has_more"] == false);
    CHECK(http_get(served.port(), "/v1/models/tiny").status == 200);
    CHECK(http_get(served.port(), "/v1/models/other").status == 404);
    for (const char* path : {"/v1/embeddings", "/embeddings", "/embedding"}) {
        const HttpGot got = served.post(path, {{"input", "x"}});
        CHECK(got.status == 501);
        CHECK(mentions(got.body, "embeddings are not computed"));
    }
}

TEST_CASE("metrics: counters have llama-server's names and vLLM's, and histograms add up") {
    Served served;
    const HttpGot got = http_get(served.port(), "/metrics");
    CHECK(got.headers.at("content-type").starts_with("text/plain"));
    for (const char* line :
         {"llamacpp:prompt_tokens_total 60\n", "llamacpp:prompt_tokens_cached_total 40\n",
          "llamacpp:requests_processing 1\n", "vllm:kv_cache_usage_perc{model_name=\"tiny\"} 0.5\n",
          "vllm:time_to_first_token_seconds_bucket{model_name=\"tiny\",le=\"0.005\"} 1\n",
          "vllm:time_to_first_token_seconds_bucket{model_name=\"tiny\",le=\"+Inf\"} 2\n",
          "vllm:time_to_first_token_seconds_count{model_name=\"tiny\"} 2\n",
          "vllm:request_success_total{model_name=\"tiny\",finished_reason=\"stop\"} 0\n"})
        CHECK_MESSAGE(mentions(got.body, line), line);
}
