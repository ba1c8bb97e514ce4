// What comes of waiting for a user's line.
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

}  // namespace redline::cli
