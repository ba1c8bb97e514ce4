// Cuts a template into texts, tags and the tokens inside tags, as jinja2 does with trim_blocks and
// lstrip_blocks set.
#pragma once

#include "base/result.h"

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

namespace redline::jinja {

// A place in a template; both count from 1.
struct Position {
    uint32_t line = 1;
    uint32_t column = 1;
};

struct Lexeme {
    enum class Kind : uint8_t {
        data,         // text between the tags
        block_begin,  // {%
        block_end,
        output_begin,  // {{
        output_end,
        name,
        text,
        integer,
        real,
        sign,  // an operator or bracket
        end,   // of the template
    };
    Kind kind = Kind::end;
    std::string text;  // for a text its value, without quotes and escapes
    int64_t integer = 0;
    double real = 0.0;
    Position at;
};

// "line 3, column 14: ..."
Error located(Position at, const Error& error);

// The last lexeme is of the kind `end`. The source must be valid UTF-8.
Result<std::vector<Lexeme>> cut_template(std::string_view source);

}  // namespace redline::jinja
