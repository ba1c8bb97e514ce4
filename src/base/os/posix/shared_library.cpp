#include "base/os/shared_library.h"

#include <dlfcn.h>

namespace redline::os {

void* open_library(const char* name, LibraryFault& fault, bool all_at_once) {
    void* const library = ::dlopen(name, (all_at_once ? RTLD_NOW : RTLD_LAZY) | RTLD_LOCAL);
    if (library) return library;
    const char* const said = ::dlerror();
    fault.message = said ? said : "";
    const auto says = [&](const char* part) { return fault.message.find(part) != std::string::npos; };
    fault.kind = says("No such file")      ? LibraryFault::Kind::missing
                 : says("wrong ELF class") ? LibraryFault::Kind::other_words
                                           : LibraryFault::Kind::broken;
    return nullptr;
}

void close_library(void* library) {
    ::dlclose(library);
}

void* find_symbol(void* library, const char* name) {
    return ::dlsym(library, name);
}

}  // namespace redline::os
