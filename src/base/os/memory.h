// Memory from the operating system, and how much of it this process has used.
#pragma once

#include <cstdint>
#include <system_error>

namespace redline::os {

// Zeroed pages of their size, which take memory only when they are written; null on a fault. `huge`: in huge
// pages where the system gives them.
void* allocate_pages(uint64_t bytes, bool huge, std::error_code& fault);
void free_pages(void* pages, uint64_t bytes);
// The most memory that this process has had resident so far, in bytes.
uint64_t peak_resident();

}  // namespace redline::os
