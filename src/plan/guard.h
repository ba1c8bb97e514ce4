// Guards, for tests: bytes around the memory that kernels write, which no kernel may change. As floats they
// are numbers so large that no computation yields them. Memory that has to be written before it is read is
// poisoned with NaN.
#pragma once

#include "plan/plan.h"

#include <cstddef>

namespace redline {

constexpr std::byte kGuard{0x7B};
constexpr std::byte kPoison{0xFF};
constexpr uint64_t kGuardBytes = 4096;

// A range of guard bytes between the slots of a plan.
struct ByteRange {
    uint64_t begin = 0, end = 0;
};
// Moves the slots apart; returns the ranges between and behind them.
std::vector<ByteRange> guard_arena(Plan& plan);

// Checks `bytes`, read from offset `at` of (or before, or behind) the memory for `what`, which has `size`
// bytes: an error unless none was changed.
Status check_guard(std::span<const std::byte> bytes, int64_t at, std::string_view what, uint64_t size);

}  // namespace redline
