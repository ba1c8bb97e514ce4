// Words of a command line that mean a model.
#pragma once

#include "base/result.h"

#include <string>

namespace redline::cli {

// Looks in this user's stores, see find_model().
Result<std::string> find_user_model(const std::string& given);

// True where a word names a GGUF file, which may be missing unless its name has blanks.
bool is_model_file(const std::string& word);
// True where a word without an option means a model: a GGUF file, or the name of a model of this machine. A
// prompt may hold a part of a name, so that `part` of one counts only beside a prompt, and only from three
// letters at the start of a word.
enum class NameParts : uint8_t { whole, part };
bool names_model(const std::string& word, NameParts parts);

}  // namespace redline::cli
