// Fill in the middle (FIM): the tokens that mark the parts of such a prompt, their names in various models,
// and the prompt by which a model that was trained for it writes what belongs into a gap.
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

// The text that stands before a gap, and the text behind it.
struct FimTexts {
    std::string prefix;
    std::string suffix;
};

struct FimPrompt {
    std::vector<Token> tokens;
    std::string cut;  // a sentence, where not all of both texts has room
};

// Prefix and suffix between the tokenizer's markers, in the order that llama.cpp writes: prefix, suffix,
// middle. Both are cut at their far ends to leave `room` tokens of the context to the answer. An error where
// the model has no such markers.
Result<FimPrompt> write_fim(const Tokenizer& tokenizer, const InfillTokens& markers, const FimTexts& texts,
                            bool add_bos, uint64_t context, uint64_t room);
// The tokens that an answer is left: what was asked for, or an eighth of the context.
uint64_t fim_room(uint64_t context, int64_t max_tokens);

}  // namespace redline
