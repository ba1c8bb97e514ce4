// The outcome of waiting for a user's line.
#pragma once

#include "base/result.h"

#include <string>

namespace redline::cli {

struct Typed {
    enum class Kind : uint8_t { message, end, interrupted };
    Kind kind = Kind::end;
    std::string text;   // interrupted: what was typed until then
    std::string shown;  // the same as it stood in the line, where long parts of it were folded
};

// A text that a line begins with.
struct Draft {
    std::string text;
    // It came back by itself: who goes on typing may not have seen it.
    bool unasked = false;
};

}  // namespace redline::cli
