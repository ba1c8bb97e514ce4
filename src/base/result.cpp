#include "base/result.h"

#include <cstdio>
#include <cstdlib>
#include <variant>

namespace redline {

void check_failed(const char* file, int line, const char* condition, const std::string& detail) {
    std::fprintf(stderr, "redline bug at %s:%d: %s does not hold: %s\n", file, line, condition,
                 detail.c_str());
    std::abort();
}

void wrong_result() {
    throw std::bad_variant_access();
}

}  // namespace redline
