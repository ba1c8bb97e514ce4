// Guards, for tests: bytes around what kernels write, which nobody may write. They are large numbers, which
// no arithmetic leaves as they are. Memory that has to be written before it is read is poisoned with NaN.
#pragma once

#include "plan/plan.h"

#include <cstddef>

namespace redline {

constexpr std::byte kGuard{0x7B};
constexpr std::byte kPoison{0xFF};
constexpr uint64_t kGuardBytes = 4096;

// Between the slots of a plan.
struct ByteRange {
    uint64_t begin = 0, end = 0;
};
// Moves the slots apart; returns what is between and behind them.
std::vector<ByteRange> guard_arena(Plan& plan);

// `bytes` stand at `at` in, before or behind the memory for `what`, which has `size`: an error unless none
// was written.
Status check_guard(std::span<const std::byte> bytes, int64_t at, std::string_view what, uint64_t size);

}  // namespace redline
