// SHA-256 (FIPS 180-4), by which publishers identify model files.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <span>
#include <string>

namespace redline {

class Sha256 {
public:
    void update(std::span<const std::byte> bytes);
    // The hash of all bytes so far, as 64 hexadecimal digits. It can be taken once.
    std::string digest();

private:
    void block(const std::byte* bytes);

    std::array<uint32_t, 8> state_ = {0x6a09e667, 0xbb67ae85, 0x3c6ef372, 0xa54ff53a,
                                      0x510e527f, 0x9b05688c, 0x1f83d9ab, 0x5be0cd19};
    std::array<std::byte, 64> held_ = {};
    uint64_t bytes_ = 0;
};

}  // namespace redline
