// Finds the architecture of a file. For one that this version does not know, the error names the known
// architecture most like it, and other kinds of model that the file may hold.
#pragma once

#include "arch/arch.h"

namespace redline {

// Returns the file's architecture, or the error of unknown_arch().
Result<const Arch*> find_arch(const Gguf& gguf);
// `name` is the file's general.architecture.
Error unknown_arch(const Gguf& gguf, const std::string& name);
// Returns the one of `names` that is most like `wanted`, preferring the same family; empty when none is.
std::string nearest_arch(std::string_view wanted, const std::vector<std::string>& names);

}  // namespace redline
