// Calls of functions in an answer, in the forms that families of models write: Hermes and Qwen, Qwen3-Coder,
// Llama 3.1, Mistral, harmony, GLM, DeepSeek, Kimi, Gemma 4, MiniMax, LFM2.
#pragma once

#include "json/json.h"
#include "text/tokens/tokenizer.h"

#include <string>
#include <string_view>
#include <vector>

namespace redline {

struct ToolCall {
    std::string id;  // as the model wrote it, else "call_1", ...
    std::string name;
    Json arguments;  // an object
};

struct ParsedAnswer {
    std::string content;  // without the calls
    std::vector<ToolCall> calls;
    std::vector<std::string> notes;  // calls that were left as text, or mended, and why
};

// `tools` is OpenAI's list of functions: it says which parameters are texts, and only a function in it is
// called by an answer that is nothing but JSON. A call with slips that can be meant in one way only is
// mended; one that cannot be read stays text.
ParsedAnswer parse_tool_calls(std::string_view answer, const Json& tools);

// The part of an answer that certainly stands before all calls, while the answer comes. Whether the rest is
// calls is known at its end.
class CallWatch {
public:
    // The text that is certain now.
    std::string push(std::string_view text);

private:
    enum class State : uint8_t { start, text, held };
    State state_ = State::start;
    std::string waiting_;  // may become a mark, or an answer that is nothing but a call
};

// The control tokens that mark calls; they have to be written out (GenerateOptions::shown) to be seen.
std::vector<Token> tool_call_tokens(const Tokenizer& tokenizer);

// In the form of OpenAI's API: {"id", "type": "function", "function": {"name", "arguments": TEXT}}.
Json tool_calls_json(const std::vector<ToolCall>& calls);

}  // namespace redline
