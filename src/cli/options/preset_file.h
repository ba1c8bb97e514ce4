// A file of presets as llama-server has them: a section for each model, with options by their names without
// dashes. The section [*] holds for all of them.
#pragma once

#include "base/result.h"

#include <string>
#include <string_view>
#include <vector>

namespace redline::cli {

struct PresetLine {
    std::string key, value;
    size_t number = 0;  // from 1
};
struct Preset {
    std::string name;  // "*": what holds for all
    size_t number = 0;
    std::vector<PresetLine> lines;
};

// Errors name the file and the line; `name` is the file's.
Result<std::vector<Preset>> parse_presets(std::string_view text, const std::string& name);
Result<std::vector<Preset>> read_presets(const std::string& path);

// "true", "on", "yes" or "1", or what means the opposite.
Result<bool> parse_switch(std::string_view text);

}  // namespace redline::cli
