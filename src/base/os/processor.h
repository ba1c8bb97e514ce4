// The processors that this process may use, and the time that it has had on them.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

namespace redline::os {

// The numbers of the processors in the affinity mask; empty where it is not known.
std::vector<uint32_t> usable_processors();
// The same by physical cores; a processor whose core is not known counts as one.
std::vector<std::vector<uint32_t>> usable_cores();
// Lets this thread, and those that it starts from here on, run on these processors alone. False: the system
// does not allow it.
bool bind_thread(std::span<const uint32_t> processors);
// Nanoseconds that this thread has had a processor.
uint64_t thread_nanoseconds();
// Asks the system for the tile registers of AMX, for the whole process. False: it does not give them.
bool request_tile_registers();

}  // namespace redline::os
