// The ids with a special meaning (BOS, EOS, ...) and the set of tokens that end a generation. Published files
// give only some of them, so the rest is found by the texts that models use.
#pragma once

#include "text/tokens/vocabulary.h"

#include <functional>

namespace redline {

// The ids that a kind of tokenizer implies when the file is silent.
struct SpecialDefaults {
    Token bos = kNoToken;
    Token eos = kNoToken;
    Token unknown = kNoToken;
    bool add_bos = false;
};

struct SpecialIds {
    Token bos = kNoToken;
    Token eos = kNoToken;
    Token unknown = kNoToken;
    Token eot = kNoToken;  // end of turn
    Token eom = kNoToken;  // end of message, before a tool's answer
    bool add_bos = false;
    bool add_eos = false;
    std::vector<Token> end_of_generation;  // ascending
    std::vector<Token> printed;            // control tokens of the visible output; may contain kNoToken
};

// Tokens with a known special text that are typed as text become control tokens in `vocabulary`, except those
// for which `is_text` holds: a byte-level vocabulary may well have "</s>" as an ordinary word. Ids out of
// range are ignored with a warning.
Result<SpecialIds> read_special_ids(const Metadata& metadata, Vocabulary& vocabulary,
                                    const SpecialDefaults& defaults,
                                    const std::function<bool(Token)>& is_text,
                                    std::vector<std::string>& warnings);

}  // namespace redline
