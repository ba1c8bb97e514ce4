// A 64-bit FNV-1a hash for fingerprints and checksums; not for untrusted keys.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <string_view>

namespace redline {

class Hash64 {
public:
    void add(std::span<const std::byte> bytes) {
        for (const std::byte b : bytes) state_ = (state_ ^ uint64_t(b)) * 0x100000001B3u;
    }
    void add(std::string_view text) {
        add(std::as_bytes(std::span(text)));
        add(uint64_t(text.size()));
    }
    void add(uint64_t value) { add(std::as_bytes(std::span(&value, 1))); }
    uint64_t value() const { return state_; }

private:
    uint64_t state_ = 0xCBF29CE484222325u;
};

}  // namespace redline
