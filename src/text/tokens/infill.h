// Fill in the middle: the tokens that mark the parts of such a prompt, and their names in various models.
#pragma once

#include "text/tokens/tokenizer.h"

#include <string_view>

namespace redline {

constexpr std::string_view kInfillPrefix[] = {"<|fim_prefix|>",  "<fim_prefix>", "<fim-prefix>",
                                              "<｜fim▁begin｜>", "<PRE>",        "▁<PRE>",
                                              "<|code_prefix|>", "<|prefix|>"};
constexpr std::string_view kInfillSuffix[] = {"<|fim_suffix|>",  "<fim_suffix>", "<fim-suffix>",
                                              "<｜fim▁hole｜>",  "<SUF>",        "▁<SUF>",
                                              "<|code_suffix|>", "<|suffix|>"};
constexpr std::string_view kInfillMiddle[] = {"<|fim_middle|>",  "<fim_middle>", "<fim-middle>",
                                              "<｜fim▁end｜>",   "<MID>",        "▁<MID>",
                                              "<|code_middle|>", "<|middle|>"};

// The markers before the text in front of the gap, before the text behind it, and before the place where the
// model writes. kNoToken: the file has none.
struct InfillTokens {
    Token prefix = kNoToken;
    Token suffix = kNoToken;
    Token middle = kNoToken;
    bool whole() const { return prefix != kNoToken && suffix != kNoToken && middle != kNoToken; }
};

// Finds the tokens by the file's keys, newer and older ones, or by the texts above.
InfillTokens infill_tokens(const Metadata& metadata, const Tokenizer& tokenizer);

}  // namespace redline
