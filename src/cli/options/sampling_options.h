// The sampling options of run and chat, by the table of the sampler's parameters. The model file has defaults
// for those that the user leaves open (general.sampling.*).
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
    std::optional<Error> unread;             // a file that was to hold one: no fault of the command line
    std::vector<std::string> notes;          // on how the schema is read
    bool strict_schema = false;              // such notes are errors
    std::shared_ptr<Constraint> constraint;  // by the grammar, once the model is there
};

// The text for a list with nothing in it.
inline constexpr std::string_view kEmptyList = "none";

// Sets a parameter by its text; whether the value is within its range is for check_parameter().
Status set_by_text(SamplerOptions& options, const Parameter& parameter, const std::string& text);
// The text that sets the parameter to the value that it has.
std::string parameter_text(const SamplerOptions& options, const Parameter& parameter);

// "15043+1", "15043-inf".
Status add_bias(SamplerOptions& target, const std::string& text);

// Those of the sampler, and --ignore-eos.
void add_sampler_options(Options& options, SamplingOptions& target);
// The same with those of grammars and schemas.
void add_sampling_options(Options& options, SamplingOptions& target);
// Applies the file's recommended values where the user gave none; they are listed with -v. A value of another
// kind is an error that names the key.
Status take_file_defaults(const Options& options, const Metadata& metadata, SamplerOptions& target);
// All values that the file recommends: "temp 0.6, top_k 20"; empty: it has none.
Result<std::string> recommended_sampling(const Metadata& metadata);

// \n \r \t \' \" \\ and \xHH; any other backslash stays.
std::string unescape(std::string_view text);

}  // namespace redline::cli
