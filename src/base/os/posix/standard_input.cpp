#include "base/os/standard_input.h"

#include <unistd.h>

namespace redline::os {

uint64_t standard_input_position() {
    const off_t at = ::lseek(kStandardInput, 0, SEEK_CUR);
    return at > 0 ? uint64_t(at) : 0;
}

bool is_parents_standard_input(const FileInfo& input) {
    std::error_code unknown;
    const FileInfo parents = info_of("/proc/" + std::to_string(::getppid()) + "/fd/0", unknown);
    return !unknown && parents.is_same_file(input);
}

}  // namespace redline::os
