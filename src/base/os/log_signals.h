// Signals of those who look after log files.
#pragma once

#include "base/os/signals.h"

namespace redline::os {

// The signal that ends programs when their terminal does, and that asks servers to open their files again. It
// is handled from here on, whatever the caller of the program wants.
void on_hang_up(SignalHandler handler);
// A file that reaches the limit of sizes then shows as a fault of a write.
void ignore_file_size_signals();

}  // namespace redline::os
