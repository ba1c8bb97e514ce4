// Shared parts of the tests of the text folder: tokenizers of small vocabularies, and random text.
#pragma once

#include "support/material.h"
#include "support/must.h"
#include "support/small_vocabulary.h"
#include "text/tokens/tokenizer.h"
#include "text/tokens/unicode.h"

#include <doctest/doctest.h>

#include <algorithm>
#include <ctime>
#include <fstream>
#include <random>
#include <sstream>

namespace redline::test {

constexpr TokenizeOptions kPlain{.add_special = false, .parse_special = false};
constexpr TokenizeOptions kParsed{.add_special = false, .parse_special = true};

inline Tokenizer make(const SmallVocabulary& vocabulary) {
    Result<Tokenizer> made = Tokenizer::create(vocabulary.metadata());
    REQUIRE_MESSAGE(made.ok(), (made.ok() ? "" : made.error().message));
    return std::move(made).value();
}

inline std::string refusal(const Metadata& metadata) {
    const Result<Tokenizer> made = Tokenizer::create(metadata);
    return made.ok() ? "accepted" : made.error().message;
}

inline std::string refusal(const SmallVocabulary& vocabulary) {
    return refusal(vocabulary.metadata());
}

inline bool mentions(const std::string& text, std::string_view part) {
    return text.find(part) != text.npos;
}

inline bool warns(const Tokenizer& tokenizer, std::string_view part) {
    const auto& all = tokenizer.warnings();
    return std::any_of(all.begin(), all.end(),
                       [&](const std::string& warning) { return mentions(warning, part); });
}

inline size_t count_control(const Tokenizer& tokenizer, const std::vector<Token>& tokens) {
    return size_t(std::count_if(tokens.begin(), tokens.end(),
                                [&](Token token) { return tokenizer.type(token) == TokenType::control; }));
}

// The pieces of a text's tokens, joined with "|".
inline std::string shown(const Tokenizer& tokenizer, std::string_view text,
                         TokenizeOptions options = kPlain) {
    std::string out;
    for (const Token token : tokenizer.encode(text, options))
        out += (out.empty() ? "" : "|") + tokenizer.piece(token, true);
    return out;
}

// Random valid UTF-8 of every length of character, without U+2581, which SPM cannot tell from a space.
inline std::string random_text(std::mt19937& random, size_t characters) {
    static const std::vector<std::string> kParts = {" ",
                                                    "  ",
                                                    "the",
                                                    " the",
                                                    "thing",
                                                    "aaaa",
                                                    "1",
                                                    "11",
                                                    "\n",
                                                    "\t",
                                                    "\r\n",
                                                    ".",
                                                    "!?",
                                                    "é",
                                                    "e\u0301",
                                                    "ß",
                                                    "Ω",
                                                    "中",
                                                    "漢字",
                                                    "かな",
                                                    "한글",
                                                    "🦙",
                                                    "👩‍👩‍👧",
                                                    "🇩🇪",
                                                    "\u200b",
                                                    "\u00a0",
                                                    "\u3000",
                                                    "\ufeff",
                                                    "\ufffd",
                                                    "\U0010ffff"};
    std::string text;
    for (size_t i = 0; i < characters; ++i) {
        const uint32_t kind = random() % 4;
        if (kind < 2) {
            text += kParts[random() % kParts.size()];
        } else if (kind == 2) {
            text += char(random() % 128);
        } else {
            auto code = char32_t(random() % 0x110000);
            if ((code >= 0xD800 && code < 0xE000) || code == 0x2581) code = 'x';
            append_utf8(text, code);
        }
    }
    return text;
}

inline double cpu_seconds() {
    return double(std::clock()) / CLOCKS_PER_SEC;
}

}  // namespace redline::test
