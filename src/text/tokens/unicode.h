// UTF-8 as the tokenizers read and write it, and the byte alphabet of byte-level BPE.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>

namespace redline {

constexpr std::string_view kReplacement = "\xEF\xBF\xBD";  // U+FFFD
constexpr std::string_view kSpaceSymbol = "\xE2\x96\x81";  // U+2581, how SPM vocabularies write a space

// One character of a text. An invalid part is the longest start of a character that cannot be completed (at
// least one byte), as the Unicode standard recommends to replace it; `cut` is such a start at the end of the
// text.
struct Utf8Step {
    enum class Kind : uint8_t { character, invalid, cut };
    Kind kind = Kind::invalid;
    uint8_t bytes = 1;
    char32_t code = 0;  // for a character
};

// `at` must be inside the text. Overlong forms, surrogates and values above U+10FFFF are invalid.
Utf8Step utf8_step(std::string_view text, size_t at);
bool is_valid_utf8(std::string_view text);
// Replaces every invalid or cut part by U+FFFD.
std::string to_valid_utf8(std::string_view text);
// Appends the UTF-8 form of a code point below 0x110000.
void append_utf8(std::string& out, char32_t code);
// True for the characters that Python's str.strip, and so Jinja's trim, removes: Unicode white space and
// U+001C to U+001F.
bool is_white_space(char32_t code);

// Makes text safe for terminals and messages: valid UTF-8 in which control characters, line ends and the
// characters that reorder text are written as escapes (\n, \x1b, \u202e).
std::string printable(std::string_view text);

// Byte-level BPE writes every byte as a printable character: 0x21-0x7E, 0xA1-0xAC and 0xAE-0xFF as the code
// point of that value, the other 68 bytes, in order, as U+0100, U+0101, ...
struct ByteAlphabet {
    std::array<char32_t, 256> character;
    std::array<int16_t, 0x144> byte;  // by code point; -1: none
};
const ByteAlphabet& byte_alphabet();

}  // namespace redline
