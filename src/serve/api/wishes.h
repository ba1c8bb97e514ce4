// The wishes for an answer that requests of all protocols may have: sampling, limits, a grammar,
// probabilities.
#pragma once

#include "serve/api/fields.h"
#include "serve/api/service.h"

namespace redline::serve {

struct Wishes {
    SamplerOptions sampling;
    int64_t max_tokens = -1;
    uint64_t min_tokens = 0;
    std::vector<std::string> stops = {};
    std::vector<Token> stop_tokens = {};
    bool ignore_eos = false;
    int32_t logprobs = -1;  // so many of the likeliest; -1: none
    uint32_t count = 1;     // answers
    bool cache_prompt = true;
    std::string grammar = {};  // GBNF; empty: none
    Json schema = {};          // the one that the grammar was made from; null: none
    bool stream = false;
    bool usage_in_stream = false;
};

// By the names that OpenAI's API, llama-server and vLLM have for them. An error names the member.
Result<Wishes> read_wishes(const Fields& fields, const Service& service);
// The sampler's parameters alone.
Status read_sampling(const Fields& fields, SamplerOptions& sampling);
// A grammar for JSON by this schema.
Result<std::string> grammar_of(const Json& schema, bool strict, const std::string& where);
// Holds the answer to this schema, which may also be a text that has it; true: any object.
Status hold_to_schema(Wishes& wishes, const Json& schema, bool strict, const std::string& where);
Status read_stops(const Fields& fields, std::string_view name, std::vector<std::string>& stops);

// Members that one of these APIs knows and this server cannot honour; an error names the one that is set.
Status refuse_unknown_wishes(const Fields& fields);

}  // namespace redline::serve
