// A 64-bit hash for fingerprints and checksums, of FNV's kind but four words at a time; not for untrusted
// keys. How bytes are split over calls does not matter.
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <span>
#include <string_view>

namespace redline {

class Hash64 {
public:
    void add(std::span<const std::byte> bytes) {
        if (bytes.empty()) return;  // memcpy must not get a null pointer, even for no bytes
        length_ += bytes.size();
        if (pending_bytes_ > 0) {
            const size_t taken = std::min(bytes.size(), kBlock - pending_bytes_);
            std::memcpy(pending_ + pending_bytes_, bytes.data(), taken);
            bytes = bytes.subspan(taken);
            pending_bytes_ += taken;
            if (pending_bytes_ < kBlock) return;
            mix_block(pending_);
            pending_bytes_ = 0;
        }
        for (; bytes.size() >= kBlock; bytes = bytes.subspan(kBlock)) mix_block(bytes.data());
        std::memcpy(pending_, bytes.data(), bytes.size());
        pending_bytes_ = bytes.size();
    }
    void add(std::string_view text) {
        add(std::as_bytes(std::span(text)));
        add(uint64_t(text.size()));
    }
    void add(uint64_t value) { add(std::as_bytes(std::span(&value, 1))); }
    uint64_t value() const {
        Hash64 end = *this;
        std::memset(end.pending_ + pending_bytes_, 0, kBlock - pending_bytes_);
        end.mix_block(end.pending_);
        uint64_t all = length_;
        for (const uint64_t state : end.states_) all = mixed(all, state);
        return all;
    }

private:
    // A chain of products for each word of a block: a single chain waits for its multiplier, at 1.3 bytes a
    // cycle.
    static constexpr size_t kChains = 4, kBlock = kChains * sizeof(uint64_t);

    static uint64_t mixed(uint64_t state, uint64_t word) {
        state = (state ^ word) * 0x9E3779B97F4A7C15u;
        return state ^ state >> 32;
    }
    void mix_block(const std::byte* block) {
        uint64_t words[kChains];
        std::memcpy(words, block, kBlock);
        for (size_t i = 0; i < kChains; ++i) states_[i] = mixed(states_[i], words[i]);
    }

    uint64_t states_[kChains] = {0xCBF29CE484222325u, 0x84222325CBF29CE4u, 0x22325CBF29CE4842u,
                                 0x9CE484222325CBF2u};
    std::byte pending_[kBlock];  // the start of the next block
    size_t pending_bytes_ = 0;
    uint64_t length_ = 0;
};

}  // namespace redline
