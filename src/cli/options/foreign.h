// Options of llama.cpp, ollama and LM Studio that redline has no use for: those that change nothing here are
// noted, the others refused with the nearest thing that exists. An option that a command has comes first.
#pragma once

#include <span>
#include <string>
#include <string_view>

namespace redline::cli {

struct ForeignOption {
    std::string_view names;         // separated by blanks
    int values = 0;                 // arguments that follow; kMaybe: on, off or auto may
    std::string_view instead = {};  // empty: it changes nothing here
};
constexpr int kMaybe = -1;

const ForeignOption* find_foreign(std::string_view name);
// How many of the arguments behind it are its values.
size_t foreign_values(const ForeignOption& option, std::span<const std::string> behind);

// on, off, auto and the like: what an option with an optional value takes from the next argument.
bool is_switch_word(std::string_view word);

}  // namespace redline::cli
