// From what a user calls a model to its file.
#pragma once

#include "store/model_files.h"

namespace redline::cli {

// The stores of this user.
std::vector<ModelStore> user_model_stores();

// A path to a file stays as it is. Anything else is looked for by name, or a part of one, among the files of
// this machine; an error lists them when there are several, and says where was looked when there is none.
Result<std::string> find_model(const std::string& given);

}  // namespace redline::cli
