// From what a user calls a model to its file.
#pragma once

#include "fetch/hub.h"
#include "store/model_files.h"

#include <optional>

namespace redline::cli {

// The stores of this user.
std::vector<ModelStore> user_model_stores();

// A path to a file stays as it is. Anything else is looked for by name, or a part of one, among the files of
// this machine; an error lists them when there are several, and says where was looked when there is none.
Result<std::string> find_model(const std::string& given);

// The file of a hub's model that some program of this machine has fetched: all its parts are there, and they
// are sound. What is wrong with others goes to `faults`.
std::optional<StoredModel> find_hub_model(const HubModel& model, std::vector<std::string>& faults);

// Whether a word names a GGUF file, which may be missing unless its name has blanks.
bool is_model_file(const std::string& word);
// Whether a word without an option means a model: a GGUF file, or the name of a model of this machine. A
// prompt may hold a part of a name, so that `part` of one counts only beside a prompt, and only from three
// letters at the start of a word.
enum class NameParts : uint8_t { whole, part };
bool names_model(const std::string& word, NameParts parts);

}  // namespace redline::cli
