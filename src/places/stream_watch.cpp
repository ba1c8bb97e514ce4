#include "places/stream_watch.h"

#include <algorithm>
#include <chrono>

#include <fmt/format.h>

namespace redline {

namespace {

// More than one: the first step may find the weights outside of the system's page cache, and fills it.
constexpr uint32_t kSlowSteps = 2;

double system_seconds() {
    return std::chrono::duration<double>(std::chrono::steady_clock::now().time_since_epoch()).count();
}

}  // namespace

StreamWatch::StreamWatch(uint32_t least, StreamExpectation expected)
    : least_(least),
      smallest_(least),
      expected_(std::move(expected)),
      settled_(expected_.cpu_row_seconds <= 0.0) {
    if (!expected_.clock) expected_.clock = system_seconds;
}

double StreamWatch::now() const {
    return expected_.clock();
}

bool StreamWatch::begin(uint32_t rows) {
    layers_ = 0.0;
    const bool tries_cpu = slow_ == kSlowSteps && rows <= slow_rows_;
    return rows >= least_ && !tries_cpu;
}

void StreamWatch::streamed(uint32_t rows, double seconds) {
    if (settled_) return;
    if (layers_ <= rows * expected_.cpu_row_seconds) {
        slow_ = slow_rows_ = 0;
        return;
    }
    const double row_seconds = seconds / rows;
    slow_row_seconds_ = slow_ == 0 ? row_seconds : std::min(slow_row_seconds_, row_seconds);
    slow_rows_ = std::max(slow_rows_, rows);
    ++slow_;
}

void StreamWatch::computed(uint32_t rows, double seconds) {
    if (slow_ < kSlowSteps || rows < smallest_ || rows > slow_rows_) return;
    const double row_seconds = seconds / rows;
    // The CPU's time may have been predicted as wrongly: then weights stay streamed, and no prediction is
    // used any more.
    settled_ = row_seconds >= slow_row_seconds_;
    if (!settled_) {
        least_ = slow_rows_ + 1;
        if (expected_.tell && !told_)
            expected_.tell(fmt::format(
                "prompts are slower than predicted with the CPU's layers on the device: {:.1f} ms a token, against "
                "{:.1f} ms with these layers on the CPU, where they are computed from now on",
                1e3 * slow_row_seconds_, 1e3 * row_seconds));
        told_ = true;
    }
    slow_ = slow_rows_ = 0;
}

}  // namespace redline
