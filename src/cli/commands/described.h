// The tables of options of all commands, from which the manual and completions are written.
#pragma once

#include "cli/options/options.h"

namespace redline::cli {

// The options of every command, in the order of the overview. They are for reading: what they set is gone.
std::vector<Options> described_commands();

std::string bash_completion(const std::vector<Options>& commands);
std::string zsh_completion(const std::vector<Options>& commands);
std::string fish_completion(const std::vector<Options>& commands);
// In the language of man.
std::string manual_page(const std::vector<Options>& commands);

}  // namespace redline::cli
