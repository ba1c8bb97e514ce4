// The architecture of a file, and the error for one that this version does not know: what is like it, and
// what else the file may be.
#pragma once

#include "arch/arch.h"

namespace redline {

// The file's, or the error below.
Result<const Arch*> find_arch(const Gguf& gguf);
// `name`: the file's general.architecture.
Error unknown_arch(const Gguf& gguf, const std::string& name);
// Of `names` the one that is most like `wanted`: of the same family first; empty when none is.
std::string nearest_arch(std::string_view wanted, const std::vector<std::string>& names);

}  // namespace redline
