// From messages, a text or a gap to the tokens that the model reads, and how its answer is to be read.
#pragma once

#include "serve/api/wishes.h"
#include "text/chat/tool_calls.h"

namespace redline::serve {

// A conversation to be answered, in the form of OpenAI's API, whichever protocol it came by.
struct ChatCall {
    Json messages = Json::array();
    Json tools = {};  // null: none
    enum class Choice : uint8_t { automatic, none, required } choice = Choice::automatic;
    std::string function = {};  // the one that is to be called, with `required`; empty: any
    bool parallel = true;       // several functions may be called
    std::optional<bool> thinking = {};
    Json variables = Json::object();  // of the template
    int64_t reasoning_budget = -1;
    bool raw_reasoning = false;  // it stays in the answer with its marks
    bool continues = false;      // the last message is the beginning of the answer
    Wishes wishes;
};

struct PreparedPrompt {
    std::vector<TextPart> parts = {};
    std::vector<Token> tokens = {};
    std::optional<ReasoningMarks> reasoning = {};
    int64_t reasoning_budget = -1;
    bool reasons = false;  // the answer may begin with reasoning
    Json tools = {};       // null: no calls are looked for
    bool parallel = true;
    std::vector<Token> shown = {};  // control tokens that have to be seen in the answer
};

Status check_conversation(ChatCall& call);
// An error has the member of the request in it. With `required` the wishes get a grammar.
Result<PreparedPrompt> prepare_chat(Service& service, ChatCall& call);
// OpenAI's names for the choice of tools and for reasoning.
Status read_tool_choice(const Fields& fields, ChatCall& call);
Status read_reasoning(const Fields& fields, ChatCall& call);

}  // namespace redline::serve
