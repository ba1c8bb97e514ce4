#include "base/file_turn.h"

namespace redline {

Result<FileTurn> FileTurn::take(const std::string& path, unsigned mode) {
    const std::string name = path + ".lock";
    std::error_code fault;
    os::FileHandle handle = os::FileHandle::open(name, os::OpenMode::update, fault, mode);
    if (!fault) handle.lock(fault);
    if (fault) return error("{}: {}", name, fault.message());
    return FileTurn(std::move(handle));
}

}  // namespace redline
