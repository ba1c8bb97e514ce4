// The sampling options of run and chat, under llama.cpp's names and defaults. What the user leaves open is
// taken from the file's general.sampling.* keys.
#pragma once

#include "cli/options/options.h"
#include "gguf/metadata.h"
#include "grammar/constraint.h"
#include "sample/sampler.h"

#include <map>
#include <memory>
#include <optional>

namespace redline::cli {

struct SamplingOptions {
    SamplerOptions sampler;
    bool ignore_eos = false;
    std::optional<Grammar> grammar;          // of --grammar or --json-schema
    std::optional<Error> unread;             // of a file that was to hold one: no fault of the command line
    std::vector<std::string> notes;          // on how the schema is read
    bool strict_schema = false;              // they are errors
    std::shared_ptr<Constraint> constraint;  // made of it, once the model is there
};

// "15043+1", "15043-inf".
Status add_bias(SamplerOptions& target, const std::string& text);

void add_sampling_options(Options& options, SamplingOptions& target);
// Applies the file's recommended values where the user gave none; they are listed with -v. A value of another
// kind is an error that names the key.
Status take_file_defaults(const Options& options, const Metadata& metadata, SamplerOptions& target);
// The same values, whoever else gives some: "temp 0.6 top_k 20"; empty: the file has none.
Result<std::string> recommended_sampling(const Metadata& metadata);

// \n \r \t \' \" \\ and \xHH; any other backslash stays.
std::string unescape(std::string_view text);

}  // namespace redline::cli
