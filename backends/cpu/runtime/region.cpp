#include "region.h"

#include "base/os/memory.h"
#include "memory/budget.h"

#include <atomic>
#include <cstring>
#include <utility>

namespace redline::cpu {

static std::atomic<uint64_t> all_allocated{0};
static thread_local uint64_t here_allocated = 0;

static void count(uint64_t bytes) {
    all_allocated += bytes;
    here_allocated += bytes;
}

static constexpr uint64_t kHugePage = uint64_t(2) << 20;

Result<Region> Region::allocate(uint64_t bytes, std::string_view purpose, bool guarded) {
    Region region;
    if (bytes == 0) return region;
    // Small blocks would waste most of a huge page.
    const uint64_t page = bytes >= kHugePage ? kHugePage : 4096, guard = guarded ? kGuardBytes : 0;
    if (bytes > UINT64_MAX - page - 2 * guard)
        return error("{} bytes for {} cannot be addressed", bytes, purpose);
    const uint64_t size = (bytes + 2 * guard + page - 1) / page * page;
    std::error_code fault;
    void* const data = os::allocate_pages(size, page == kHugePage, fault);
    if (fault) return error("cannot allocate {} for {}: {}", format_bytes(size), purpose, fault.message());
    if (guarded) {
        std::memset(data, int(kGuard), size);
        std::memset(static_cast<std::byte*>(data) + guard, int(kPoison), bytes);
    }
    region.data_ = static_cast<std::byte*>(data) + guard;
    region.size_ = size - guard;
    region.guard_ = guard;
    region.content_ = bytes;
    region.purpose_ = purpose;
    count(region.size_);
    return region;
}

Region::Region(Region&& other) noexcept {
    *this = std::move(other);
}

Region& Region::operator=(Region&& other) noexcept {
    std::swap(data_, other.data_);
    std::swap(size_, other.size_);
    std::swap(guard_, other.guard_);
    std::swap(content_, other.content_);
    std::swap(purpose_, other.purpose_);
    return *this;
}

Region::~Region() {
    if (data_) os::free_pages(data_ - guard_, size_ + guard_);
    count(-size_);
}

uint64_t Region::allocated() {
    return all_allocated.load();
}

uint64_t Region::allocated_here() {
    return here_allocated;
}

void Region::guard(std::span<const ByteRange> gaps) {
    for (const ByteRange& gap : gaps) std::memset(data_ + gap.begin, int(kGuard), gap.end - gap.begin);
}

Status Region::check(std::span<const ByteRange> gaps) const {
    if (guard_ == 0) return {};
    RL_TRY(check_guard({data_ - guard_, guard_}, -int64_t(guard_), purpose_, content_));
    RL_TRY(check_guard({data_ + content_, size_ - content_}, int64_t(content_), purpose_, content_));
    for (const ByteRange& gap : gaps)
        RL_TRY(check_guard({data_ + gap.begin, gap.end - gap.begin}, int64_t(gap.begin), purpose_, content_));
    return {};
}

}  // namespace redline::cpu
