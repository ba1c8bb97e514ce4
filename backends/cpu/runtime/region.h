// A large block of memory from the system, zeroed, in huge pages where the kernel gives them.
#pragma once

#include "plan/guard.h"

namespace redline::cpu {

class Region {
public:
    Region() = default;
    // `guarded`, for tests: poisoned, with guards before and behind.
    static Result<Region> allocate(uint64_t bytes, std::string_view purpose, bool guarded = false);
    Region(Region&& other) noexcept;
    Region& operator=(Region&& other) noexcept;
    ~Region();

    std::byte* data() const { return data_; }
    // Bytes in all regions of the program.
    static uint64_t allocated();
    // Bytes that this thread has allocated less those that it has freed, modulo 2^64: other threads do not
    // change it.
    static uint64_t allocated_here();
    uint64_t size() const { return size_; }
    // Makes these parts of it guards, too.
    void guard(std::span<const ByteRange> gaps);
    // An error where a guard was written, or one of `gaps` within.
    Status check(std::span<const ByteRange> gaps = {}) const;

private:
    std::byte* data_ = nullptr;
    uint64_t size_ = 0;
    uint64_t guard_ = 0;    // bytes that are mapped before data_
    uint64_t content_ = 0;  // bytes that were asked for: what follows them is a guard too
    std::string purpose_;
};

}  // namespace redline::cpu
