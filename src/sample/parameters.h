// The sampler's parameters: each is a member of SamplerOptions and a row of a table. Names, ranges and
// messages on the command line, in /set, in the defaults of a model file, in requests in JSON and in the C
// interface are the row's.
#pragma once

#include "base/result.h"
#include "json/json.h"

#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <variant>
#include <vector>

namespace redline {

inline constexpr uint32_t kRandomSeed = 0xFFFFFFFFu;

// Defaults are llama.cpp's.
struct SamplerOptions {
    uint32_t seed = kRandomSeed;  // kRandomSeed: a random one, which Sampler::seed() tells
    float temperature = 0.8f;     // <= 0: greedy, wherever and whether the chain names it
    float dynatemp_range = 0.0f;  // temperature +- range, by entropy; 0: off
    float dynatemp_exponent = 1.0f;
    int32_t top_k = 40;            // <= 0: off
    float top_p = 0.95f;           // 1: off
    float min_p = 0.05f;           // 0: off
    float typical_p = 1.0f;        // 1: off
    float top_n_sigma = -1.0f;     // <= 0: off
    float xtc_probability = 0.0f;  // 0: off
    float xtc_threshold = 0.1f;    // > 0.5: off
    int32_t min_keep = 0;          // candidates that every truncation keeps
    int32_t repeat_last_n = 64;    // -1: the whole context, 0: off
    float repeat_penalty = 1.0f;   // 1: off
    float frequency_penalty = 0.0f;
    float presence_penalty = 0.0f;
    float dry_multiplier = 0.0f;  // 0: off
    float dry_base = 1.75f;       // < 1: off
    int32_t dry_allowed_length = 2;
    int32_t dry_penalty_last_n = 64;  // -1: the whole context, 0: off
    // For the caller, who makes SamplerVocabulary::dry_breakers of them.
    std::vector<std::string> dry_sequence_breakers = {"\n", ":", "\"", "*"};
    int32_t mirostat = 0;       // 0 off, 1, 2: after the bias only temperature and mirostat are applied
    float mirostat_tau = 5.0f;  // bits
    float mirostat_eta = 0.1f;
    std::vector<std::pair<int32_t, float>> logit_bias;  // added; -inf forbids the token
    // Order of the chain: names separated by ';', or one letter each ("edskypmxt").
    std::string samplers = "penalties;dry;top_n_sigma;top_k;typ_p;top_p;min_p;xtc;temperature";
};

using ParameterMember =
    std::variant<float SamplerOptions::*, int32_t SamplerOptions::*, uint32_t SamplerOptions::*,
                 std::string SamplerOptions::*, std::vector<std::string> SamplerOptions::*,
                 std::vector<std::pair<int32_t, float>> SamplerOptions::*>;

struct Parameter {
    std::string_view
        name;  // in messages, requests in JSON (llama-server's and OpenAI's), and the C interface
    ParameterMember member;
    double least, most;                // of numbers, which are finite, too
    std::string_view meaning = {};     // of values at the ends of the range, for messages
    std::string_view must_be = {};     // the whole range, where a list of its values is clearer
    std::string_view setting = {};     // in /set; empty: it is set by requests alone
    std::string_view file_key = {};    // behind "general.sampling."; empty: files have no default for it
    std::string_view options = {};     // on the command line, separated by blanks
    std::string_view value = {};       // what the option takes, where that is no number
    std::string_view help = {};        // of the option
    std::string_view brief_help = {};  // its line in --help; empty: only --help-all lists it
};

// In the order of the help.
std::span<const Parameter> sampler_parameters();
// By Parameter::name; null: there is none.
const Parameter* find_parameter(std::string_view name);

// An error, for a value out of range, says what it has to be.
Status check_parameter(const Parameter& parameter, const SamplerOptions& options);
// All of them, and the names in the chain.
Status check_options(const SamplerOptions& options);
// The tokens of logit_bias, and its values.
Status check_bias(const SamplerOptions& options, int32_t vocabulary_size);

// Sets a parameter by the value that a request has for it, or leaves it as it is, with an error.
Status set_parameter(SamplerOptions& options, const Parameter& parameter, const Json& value);

}  // namespace redline
