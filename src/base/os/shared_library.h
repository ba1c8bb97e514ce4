// Shared libraries that are opened while the program runs. They stay open unless closed.
#pragma once

#include <cstdint>
#include <string>

namespace redline::os {

struct LibraryFault {
    enum class Kind : uint8_t {
        missing,      // there is no such file
        other_words,  // it is for programs of another word size
        broken
    };
    Kind kind = Kind::broken;
    std::string message;  // the system's; may be empty
};

// Opens a library by name or path; null on a fault. `all_at_once` resolves all of its symbols now.
void* open_library(const char* name, LibraryFault& fault, bool all_at_once = true);
void close_library(void* library);
// The address of a function; null where the library has none of that name.
void* find_symbol(void* library, const char* name);

}  // namespace redline::os
