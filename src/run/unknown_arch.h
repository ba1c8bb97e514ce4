// The error for a file of an architecture that this version does not know: what is like it, and what the file
// is otherwise.
#pragma once

#include "gguf/gguf.h"

namespace redline {

// `name`: the file's general.architecture.
Error unknown_arch(const Gguf& gguf, const std::string& name);
// Of `names` the one that is most like `wanted`: of the same family first; empty when none is.
std::string nearest_arch(std::string_view wanted, const std::vector<std::string>& names);

}  // namespace redline
