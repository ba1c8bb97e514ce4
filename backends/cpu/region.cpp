#include "region.h"

#include "memory/budget.h"

#include <atomic>
#include <cerrno>
#include <cstring>
#include <utility>

#include <sys/mman.h>

namespace redline::cpu {

static std::atomic<uint64_t> all_allocated{0};
static constexpr uint64_t kHugePage = uint64_t(2) << 20;

Result<Region> Region::allocate(uint64_t bytes, std::string_view purpose) {
    Region region;
    if (bytes == 0) return region;
    // Small blocks would waste most of a huge page.
    const uint64_t page = bytes >= kHugePage ? kHugePage : 4096;
    if (bytes > UINT64_MAX - page) return error("{} bytes for {} cannot be addressed", bytes, purpose);
    const uint64_t size = (bytes + page - 1) / page * page;
    void* data =
        ::mmap(nullptr, size, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
    if (data == MAP_FAILED)
        return error("cannot allocate {} for {}: {}", format_bytes(size), purpose, std::strerror(errno));
    if (page == kHugePage) ::madvise(data, size, MADV_HUGEPAGE);
    region.data_ = static_cast<std::byte*>(data);
    region.size_ = size;
    all_allocated += size;
    return region;
}

Region::Region(Region&& other) noexcept
    : data_(std::exchange(other.data_, nullptr)), size_(std::exchange(other.size_, 0)) {}

Region& Region::operator=(Region&& other) noexcept {
    std::swap(data_, other.data_);
    std::swap(size_, other.size_);
    return *this;
}

Region::~Region() {
    if (data_) ::munmap(data_, size_);
    all_allocated -= size_;
}

uint64_t Region::allocated() {
    return all_allocated.load();
}

}  // namespace redline::cpu
