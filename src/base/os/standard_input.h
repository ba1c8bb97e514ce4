// Standard input as the caller of the program left it.
#pragma once

#include "base/os/file_handle.h"

namespace redline::os {

// Bytes of a file at standard input that were read before; 0 where it has no position.
uint64_t standard_input_position();
// Programs inherit the standard input of the one that starts them. A pipe that is also the parent's belongs
// to the parent: the shell of a "while read" loop reads its next line from there, and a service's never ends.
bool is_parents_standard_input(const FileInfo& input);

}  // namespace redline::os
