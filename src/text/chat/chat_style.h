// The turn markers of the known chat formats, one row each. Adding a format is adding a row to
// chat_style.cpp.
#pragma once

#include <array>
#include <cstdint>
#include <optional>
#include <span>
#include <string_view>

namespace redline {

// Where the system text goes.
enum class SystemPlace : uint8_t { own_turn, first_user, last_user };

struct TurnMarkers {
    std::string_view open;
    std::string_view close;
};

// In marker texts "{bos}" and "{eos}" stand for the model's tokens.
struct ChatStyle {
    std::string_view name;
    std::array<std::string_view, 3> also = {};  // further names, as llama.cpp's; none: empty
    // Texts that a chat template of this format has; all must be there. They are looked for in the template's
    // source with "\n" as line ends and single quotes only. None: the format is known by its name only.
    std::array<std::string_view, 3> in_template = {};
    // Tokens by which a model without a template is recognised; none: it cannot be.
    std::array<std::string_view, 3> in_vocabulary = {};
    std::string_view begin = {};  // before the first turn, behind BOS
    TurnMarkers system;           // inside a user's turn unless it has its own
    TurnMarkers user;
    TurnMarkers assistant;
    std::string_view answer = {};  // what makes the assistant speak, after a user's turn
    SystemPlace place = SystemPlace::own_turn;
    bool trim = false;  // white space around the texts is removed
    bool bos = false;   // begins with BOS whatever the file says
    // Written by a format that is chosen by its name where no system text is given; none: no turn.
    std::optional<std::string_view> default_system = {};
    std::string_view thoughts_end =
        "</think>";  // of the assistant's earlier turns what comes behind it is kept
};

// In the order in which they are tried: the special before the general.
std::span<const ChatStyle> chat_styles();

}  // namespace redline
