// A large block of memory from the system, zeroed, in huge pages where the kernel gives them.
#pragma once

#include "base/result.h"

#include <cstddef>
#include <cstdint>

namespace redline::cpu {

class Region {
public:
    Region() = default;
    static Result<Region> allocate(uint64_t bytes, std::string_view purpose);
    Region(Region&& other) noexcept;
    Region& operator=(Region&& other) noexcept;
    ~Region();

    std::byte* data() const { return data_; }
    // Bytes in all regions of the program.
    static uint64_t allocated();
    uint64_t size() const { return size_; }

private:
    std::byte* data_ = nullptr;
    uint64_t size_ = 0;
};

}  // namespace redline::cpu
