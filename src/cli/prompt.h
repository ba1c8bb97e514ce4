// Where a prompt comes from: an argument, a file, standard input, or several of them.
#pragma once

#include "base/result.h"

#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace redline::cli {

// Bytes of an input that are no UTF-8. A tokenizer decides what becomes of them.
struct StrayBytes {
    std::string where;  // "-p", a file, "standard input"
    uint64_t offset = 0;
    uint8_t first = 0;
    uint64_t count = 0;
};
// Adds what the text has of them, if it has any.
void find_stray_bytes(std::string_view text, const std::string& where, std::vector<StrayBytes>& found);

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
// Nothing when there is no part at all. UTF-16 with a byte order mark becomes UTF-8, which is said.
Result<std::optional<std::string>> gather_prompt(const PromptSource& source,
                                                 std::vector<StrayBytes>* stray = nullptr);

// The text of a file or, as "-", of standard input, in UTF-8 likewise.
Result<std::string> read_prompt_file(const std::string& path);
// UTF-16 with a byte order mark as UTF-8, and UTF-8 without its mark; both are said. An odd byte at the end
// is an error.
Result<std::string> as_utf8(std::string text, const std::string& where);

// All of standard input; an error above 1 GiB. Closed: empty.
Result<std::string> read_standard_input();

}  // namespace redline::cli
