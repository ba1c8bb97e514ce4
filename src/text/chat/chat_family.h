// The families of chat models, one row each: how turns are marked, how reasoning is, and in which form
// functions are called. A family that adds nothing to one of these leaves it out. Adding a family is adding a
// row to chat_family.cpp; a form of calls that no family has yet is a function of CallReader, too.
#pragma once

#include "text/chat/call_reader.h"

#include <array>
#include <cstdint>
#include <optional>
#include <span>
#include <string_view>

namespace redline {

// Where the system text goes: into a turn for it alone, or before the text of a user's turn.
enum class SystemPlace : uint8_t { system_turn, first_user, last_user };

struct TurnMarkers {
    std::string_view open;
    std::string_view close;
};

// How a conversation is written. In markers "{bos}" and "{eos}" stand for the model's tokens.
struct ChatStyle {
    std::string_view name;
    std::array<std::string_view, 3> also = {};  // further names, as llama.cpp's; none: empty
    // Texts that a chat template of this format has; all must be there. They are looked for in the template's
    // source with "\n" as line ends and single quotes only. None: the format is known by its name only.
    std::array<std::string_view, 3> in_template = {};
    // Tokens by which a model without a template is recognised; none: it cannot be.
    std::array<std::string_view, 3> in_vocabulary = {};
    std::string_view begin = {};  // before the first turn, behind BOS
    TurnMarkers system = {};      // inside a user's turn unless there is a turn for it
    TurnMarkers user = {};
    TurnMarkers assistant = {};
    std::string_view answer = {};  // makes the assistant speak, after a user's turn
    SystemPlace place = SystemPlace::system_turn;
    bool trim = false;  // white space around the texts is removed
    bool bos = false;   // begins with BOS whatever the file says
    // Written by a format that is chosen by its name where no system text is given; none: no turn.
    std::optional<std::string_view> default_system = {};
    // The assistant's earlier turns are kept from behind this mark on.
    std::string_view thoughts_end = "</think>";
};

// The form of an answer with reasoning.
enum class ReasoningForm : uint8_t {
    marks,               // two marks around the reasoning
    channels,            // messages with headers, as of harmony, whose channel says what they are
    addressed_messages,  // messages whose headers say whom they are for
    marked_messages      // messages that begin with a mark for what they are
};

struct ReasoningStyle {
    std::string_view name;  // empty: the family has no reasoning for itself
    std::string_view open;
    std::string_view close;
    std::string_view closing;  // the close mark with the text that the model writes behind it
    std::array<std::string_view, 5> tokens = {};  // the parts of the marks that are tokens
    ReasoningForm form = ReasoningForm::marks;
    std::string_view opened = {};  // a prompt that ends with it has opened the reasoning; empty: `open`
    std::string_view closed = {};  // a prompt that ends with it has closed the reasoning; empty: `close`
    bool repeats = false;          // the answer may be interrupted by reasoning
    bool by_vocabulary = true;     // the first two tokens tell the family; else the template has to
    bool by_close = false;  // a template tells it by the closing mark alone: it leaves out earlier reasoning
};

// A text that begins calls of functions.
struct CallForm {
    std::string_view mark;
    bool (CallReader::*read)();
    bool keeps_mark = false;  // the reader begins at the mark, not behind it
};

struct CallStyle {
    std::array<CallForm, 5> forms = {};
    std::array<std::string_view, 6> tokens = {};  // the marks that may be control tokens
};

struct ChatFamily {
    ChatStyle style = {};
    ReasoningStyle reasoning = {};
    TurnMarkers answer = {};  // around the answer behind the reasoning; the opening one may be missing
    CallStyle calls = {};
};

// In the order in which they are tried: the special before the general.
std::span<const ChatFamily> chat_families();

}  // namespace redline
