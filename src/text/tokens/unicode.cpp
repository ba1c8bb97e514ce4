#include "text/tokens/unicode.h"

#include <fmt/format.h>

namespace redline {
namespace {

// The bytes that may follow a lead byte: the number of continuation bytes and the range of the first of them,
// which excludes overlong forms, surrogates and values above U+10FFFF (Unicode standard, table 3-7).
struct Lead {
    uint8_t more;
    uint8_t low, high;
};

constexpr Lead lead_of(uint8_t byte) {
    if (byte < 0xC2) return {0, 0, 0};
    if (byte < 0xE0) return {1, 0x80, 0xBF};
    if (byte < 0xF0) return {2, uint8_t(byte == 0xE0 ? 0xA0 : 0x80), uint8_t(byte == 0xED ? 0x9F : 0xBF)};
    if (byte < 0xF5) return {3, uint8_t(byte == 0xF0 ? 0x90 : 0x80), uint8_t(byte == 0xF4 ? 0x8F : 0xBF)};
    return {0, 0, 0};
}

constexpr bool reorders_text(char32_t code) {
    return code == 0x061C || code == 0x200E || code == 0x200F || (code >= 0x2028 && code <= 0x202E) ||
           (code >= 0x2066 && code <= 0x2069);
}

constexpr ByteAlphabet make_alphabet() {
    ByteAlphabet alphabet{};
    alphabet.byte.fill(-1);
    char32_t next = 0x100;
    for (int byte = 0; byte < 256; ++byte) {
        const bool itself = (byte >= 0x21 && byte <= 0x7E) || (byte >= 0xA1 && byte <= 0xAC) || byte >= 0xAE;
        const char32_t code = itself ? char32_t(byte) : next++;
        alphabet.character[size_t(byte)] = code;
        alphabet.byte[code] = int16_t(byte);
    }
    return alphabet;
}

constexpr ByteAlphabet kAlphabet = make_alphabet();

}  // namespace

Utf8Step utf8_step(std::string_view text, size_t at) {
    using Kind = Utf8Step::Kind;
    const auto first = uint8_t(text[at]);
    if (first < 0x80) return {Kind::character, 1, first};
    const Lead lead = lead_of(first);
    if (lead.more == 0) return {Kind::invalid, 1, 0};
    char32_t code = first & (0x3Fu >> lead.more);
    for (uint8_t i = 1; i <= lead.more; ++i) {
        if (at + i >= text.size()) return {Kind::cut, i, 0};
        const auto byte = uint8_t(text[at + i]);
        const uint8_t low = i == 1 ? lead.low : 0x80;
        const uint8_t high = i == 1 ? lead.high : 0xBF;
        if (byte < low || byte > high) return {Kind::invalid, i, 0};
        code = code << 6 | (byte & 0x3Fu);
    }
    return {Kind::character, uint8_t(lead.more + 1), code};
}

bool is_valid_utf8(std::string_view text) {
    for (size_t at = 0; at < text.size();) {
        const Utf8Step step = utf8_step(text, at);
        if (step.kind != Utf8Step::Kind::character) return false;
        at += step.bytes;
    }
    return true;
}

std::string to_valid_utf8(std::string_view text) {
    std::string out;
    out.reserve(text.size());
    for (size_t at = 0; at < text.size();) {
        const Utf8Step step = utf8_step(text, at);
        out += step.kind == Utf8Step::Kind::character ? text.substr(at, step.bytes) : kReplacement;
        at += step.bytes;
    }
    return out;
}

void append_utf8(std::string& out, char32_t code) {
    if (code < 0x80) {
        out += char(code);
    } else if (code < 0x800) {
        out += char(0xC0 | code >> 6);
        out += char(0x80 | (code & 0x3F));
    } else if (code < 0x10000) {
        out += char(0xE0 | code >> 12);
        out += char(0x80 | (code >> 6 & 0x3F));
        out += char(0x80 | (code & 0x3F));
    } else {
        out += char(0xF0 | code >> 18);
        out += char(0x80 | (code >> 12 & 0x3F));
        out += char(0x80 | (code >> 6 & 0x3F));
        out += char(0x80 | (code & 0x3F));
    }
}

bool is_white_space(char32_t code) {
    return code == ' ' || (code >= 0x09 && code <= 0x0D) || (code >= 0x1C && code <= 0x1F) || code == 0x85 ||
           code == 0xA0 || code == 0x1680 || (code >= 0x2000 && code <= 0x200A) || code == 0x2028 ||
           code == 0x2029 || code == 0x202F || code == 0x205F || code == 0x3000;
}

std::string printable(std::string_view text) {
    std::string out;
    for (size_t at = 0; at < text.size();) {
        const Utf8Step step = utf8_step(text, at);
        const std::string_view bytes = text.substr(at, step.bytes);
        at += step.bytes;
        if (step.kind != Utf8Step::Kind::character) {
            for (const char byte : bytes) out += fmt::format("\\x{:02x}", uint8_t(byte));
        } else if (step.code == '\n') {
            out += "\\n";
        } else if (step.code == '\t') {
            out += "\\t";
        } else if (step.code == '\r') {
            out += "\\r";
        } else if (step.code == '\\') {
            out += "\\\\";
        } else if (step.code < 0x20 || (step.code >= 0x7F && step.code < 0xA0)) {
            for (const char byte : bytes) out += fmt::format("\\x{:02x}", uint8_t(byte));
        } else if (reorders_text(step.code)) {
            out += fmt::format("\\u{:04x}", uint32_t(step.code));
        } else {
            out += bytes;
        }
    }
    return out;
}

const ByteAlphabet& byte_alphabet() {
    return kAlphabet;
}

}  // namespace redline
