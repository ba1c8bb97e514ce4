// Argument passing of built-in functions.
#pragma once

#include "text/jinja/interpreter.h"

#include <initializer_list>

namespace redline::jinja {

// The arguments in the order of the names; missing ones are undefined.
Result<std::vector<Value>> bind(const Arguments& arguments, std::initializer_list<std::string_view> names,
                                size_t required = 0);
Result<int64_t> take_integer(const Value& value, std::string_view name, int64_t fallback);
// Returns a text unchanged; another value as str() writes it.
Value to_text_value(Store& store, const Value& value);
// A text argument; `fallback` when it is undefined.
Result<Value> take_text(const Value& value, std::string_view name, std::string_view fallback);

// The single argument, a text or an integer.
Result<Value> bind_text(const Arguments& arguments, std::string_view name);
Result<int64_t> bind_integer(const Arguments& arguments, std::string_view name, int64_t fallback);

struct NamedBuiltin {
    std::string_view name;
    Builtin builtin;
};

template <size_t N>
Builtin find_builtin(const NamedBuiltin (&table)[N], std::string_view name) {
    for (const NamedBuiltin& entry : table)
        if (entry.name == name) return entry.builtin;
    return nullptr;
}

enum class Case : uint8_t { upper, lower, capital, swapped, title };
Value change_case(Store& store, const Text& text, Case to);
char32_t lower_of(char32_t code);
char32_t upper_of(char32_t code);
// Removes the characters of `set` (white space when null) from the ends.
Value strip(Store& store, const Text& text, const Text* set, bool left, bool right);
// False: searching for `part` in `bytes` would take too long. Every place may be compared up to the part's
// end, so that a long part counts as often as it may be compared.
bool may_search(Store& store, std::string_view bytes, std::string_view part);
Value replace(Store& store, const Text& text, const Text& from, const Text& to, int64_t count);
std::vector<Value> split_lines(Store& store, const Text& text);
Result<Value> join(Store& store, const std::vector<Value>& items, const Text& separator);

}  // namespace redline::jinja
