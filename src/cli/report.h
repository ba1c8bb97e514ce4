// Reports of a run, for people (standard error) and for programs (JSON).
#pragma once

#include "engine/generate.h"
#include "host/loaded_model.h"
#include "speculate/speculation.h"

#include <nlohmann/json_fwd.hpp>

namespace redline::cli {

using Json = nlohmann::ordered_json;

// A value as text; what is no UTF-8 in it becomes U+FFFD.
std::string to_text(const Json& value, bool pretty = true);

// A number that is or was an f32 with no more digits than that has: 1e-05, not 9.999999747378752e-06.
Json real_json(double value);

// How fast the tokens of a generation came, and how many bytes that took from memory.
struct DecodeSpeed {
    double tokens_per_second = 0.0;
    double gb_per_second = 0.0;
    double share_of_file = 0.0;  // of the file's bytes, read for each token
};
DecodeSpeed decode_speed(const LoadedModel& loaded, const Session& session, const Generation& generation);

// The statistics as one line for a terminal, and as a few.
std::string figures_line(const LoadedModel& loaded, const PromptResult& prompt, const Generation& generation);
void say_statistics(const LoadedModel& loaded, const Session& session, const PromptResult& prompt,
                    const Generation& generation);
// The line that says why the text ended there; empty where that needs no word.
std::string explain_stop(const Generation& generation, uint64_t context);

Json timings_json(const LoadedModel& loaded, const Session& session, const PromptResult& prompt,
                  const Generation& generation);
// The methods that guessed, and what came of it; null: none did.
void say_methods(const Speculation* speculation);
Json methods_json(const Speculation* speculation);
Json model_json(const LoadedModel& loaded);
Json device_json(const LoadedModel& loaded);
// The layers and the device of each rank of a job, and the seconds that a row of activations takes from it to
// the next one. Where ranks divide each layer: their shares, and the seconds of a sum.
Json ranks_json(const LoadedModel& loaded);

}  // namespace redline::cli
