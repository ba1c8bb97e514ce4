#include "base/hash.h"

#include <doctest/doctest.h>

#include <set>
#include <vector>

using namespace redline;

static std::vector<std::byte> some_bytes(size_t size) {
    std::vector<std::byte> bytes(size);
    for (size_t i = 0; i < size; ++i) bytes[i] = std::byte(i * 7 + i / 256);
    return bytes;
}

TEST_CASE("hash: how bytes are split over calls does not matter") {
    const std::vector<std::byte> bytes = some_bytes(1003);
    Hash64 whole;
    whole.add(bytes);
    for (size_t step = 1; step < 100; ++step) {
        CAPTURE(step);
        Hash64 parts;
        for (size_t at = 0; at < bytes.size(); at += step)
            parts.add(std::span(bytes).subspan(at, std::min(step, bytes.size() - at)));
        parts.add(std::span<const std::byte>());  // without an address
        CHECK(parts.value() == whole.value());
    }
}

TEST_CASE("hash: every byte, its place and zeros at the end matter") {
    std::set<uint64_t> seen;
    const auto is_new = [&](const std::vector<std::byte>& bytes) {
        Hash64 hash;
        hash.add(bytes);
        return seen.insert(hash.value()).second;
    };
    for (size_t size = 0; size < 100; ++size) CHECK(is_new(std::vector<std::byte>(size)));
    std::vector<std::byte> bytes = some_bytes(100);
    CHECK(is_new(bytes));
    for (std::byte& b : bytes) {
        b ^= std::byte(1);
        CHECK(is_new(bytes));
        b ^= std::byte(1);
    }
    for (size_t i = 0; i + 32 < bytes.size(); ++i) {
        std::swap(bytes[i], bytes[i + 32]);
        CHECK(is_new(bytes));
        std::swap(bytes[i], bytes[i + 32]);
    }
}
