// A 64-bit hash for fingerprints and checksums, of FNV's kind but a word at a time; not for untrusted keys.
// How bytes are split over calls does not matter.
#pragma once

#include <cstddef>
#include <cstdint>
#include <cstring>
#include <span>
#include <string_view>

namespace redline {

class Hash64 {
public:
    void add(std::span<const std::byte> bytes) {
        length_ += bytes.size();
        while (!bytes.empty() && (pending_bytes_ > 0 || bytes.size() < sizeof(uint64_t))) {
            pending_ |= uint64_t(bytes.front()) << (8 * pending_bytes_);
            bytes = bytes.subspan(1);
            if (++pending_bytes_ < sizeof(uint64_t)) continue;
            state_ = mixed(state_, pending_);
            pending_ = pending_bytes_ = 0;
        }
        for (; bytes.size() >= sizeof(uint64_t); bytes = bytes.subspan(sizeof(uint64_t))) {
            uint64_t word;
            std::memcpy(&word, bytes.data(), sizeof(word));
            state_ = mixed(state_, word);
        }
        if (!bytes.empty()) {
            std::memcpy(&pending_, bytes.data(), bytes.size());
            pending_bytes_ = uint32_t(bytes.size());
        }
    }
    void add(std::string_view text) {
        add(std::as_bytes(std::span(text)));
        add(uint64_t(text.size()));
    }
    void add(uint64_t value) { add(std::as_bytes(std::span(&value, 1))); }
    uint64_t value() const { return mixed(mixed(state_, pending_), length_); }

private:
    static uint64_t mixed(uint64_t state, uint64_t word) {
        state = (state ^ word) * 0x9E3779B97F4A7C15u;
        return state ^ state >> 32;
    }

    uint64_t state_ = 0xCBF29CE484222325u;
    uint64_t pending_ = 0;  // bytes that do not make a word yet
    uint32_t pending_bytes_ = 0;
    uint64_t length_ = 0;
};

}  // namespace redline
