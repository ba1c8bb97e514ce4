// What a user types, a message at a time. Plain lines for now: an editor with history would replace this
// class.
#pragma once

#include "base/result.h"

#include <string>

namespace redline::cli {

struct Typed {
    enum class Kind : uint8_t { message, end, interrupted };
    Kind kind = Kind::end;
    std::string text;
};

class LineReader {
public:
    LineReader();
    bool interactive() const { return interactive_; }

    // The next message of standard input: a line; several when they end with a backslash or stand between
    // lines of
    // """. Prompts are shown on a terminal. Interrupted: by a signal, what was typed is forgotten.
    Result<Typed> read();

private:
    Result<Typed> read_line(const char* prompt);

    bool interactive_;
    bool ended_ = false;
    std::string held_;  // read and not yet given
};

}  // namespace redline::cli
