// Where a prompt comes from: an argument, a file, standard input, or several of them.
#pragma once

#include "base/result.h"

#include <optional>
#include <string>

namespace redline::cli {

struct PromptSource {
    std::string text;       // -p
    bool has_text = false;  // "" is a prompt too
    std::string file;       // -f; "-" is standard input
    bool escapes = true;    // backslash escapes in `text` are taken
    bool combines = false;  // standard input may come behind a file, too
};

// The parts in the order text, file, standard input, joined by line ends; one line end at the end of a file
// or of the input is dropped. Standard input is read when it is no terminal and no file was named; behind
// another part only when it is meant for the prompt, which prompt.cpp decides, and says where it is not.
// Nothing when there is no part at all.
Result<std::optional<std::string>> gather_prompt(const PromptSource& source);

// All of standard input; an error above 1 GiB. Closed: empty.
Result<std::string> read_standard_input();

}  // namespace redline::cli
