#include "base/os/memory.h"

#include <cerrno>

#include <sys/mman.h>
#include <sys/resource.h>

namespace redline::os {

void* allocate_pages(uint64_t bytes, bool huge, std::error_code& fault) {
    fault.clear();
    void* const pages =
        ::mmap(nullptr, bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
    if (pages == MAP_FAILED) {
        fault = {errno, std::generic_category()};
        return nullptr;
    }
    if (huge) ::madvise(pages, bytes, MADV_HUGEPAGE);
    return pages;
}

void free_pages(void* pages, uint64_t bytes) {
    ::munmap(pages, bytes);
}

uint64_t peak_resident() {
    struct rusage usage = {};
    ::getrusage(RUSAGE_SELF, &usage);
    return uint64_t(usage.ru_maxrss) * 1024;
}

}  // namespace redline::os
