#include "peak.h"

#include "backends/hip/kernels/args.h"

#include <chrono>

namespace redline::hip {

namespace {

// As kernels/peak.cpp has them.
constexpr uint32_t kPeakThreads = 256;
constexpr double kSums = 8;

class Measurement {
public:
    Measurement(Device& device, Buffer out, Buffer mirror)
        : device_(device), out_(std::move(out)), mirror_(std::move(mirror)), blocks_(blocks_of(device)) {}

    // Blocks of which several fit a multiprocessor at a time, in whole turns.
    static uint32_t blocks_of(const Device& device) {
        return 8 * std::max(1u, device.report().multiprocessors);
    }
    static uint64_t bytes_of(const Device& device) { return uint64_t(blocks_of(device)) * kPeakThreads * 4; }

    // Operations per second of products of 16 x `depth` by `depth` x 16.
    Result<double> rate(const char* kernel, uint32_t depth) {
        constexpr uint32_t kCheckedRounds = 4;
        constexpr double kLong = 0.04;  // seconds of a launch: the clocks settle, and no driver minds
        constexpr int kRepetitions = 4;
        kernel_ = RL_TRY(device_.kernel("peak", kernel));
        RL_TRY(launch(kCheckedRounds, false));
        RL_TRY(check(float(kCheckedRounds * depth)));
        uint32_t rounds = 16;
        double seconds = RL_TRY(launch(rounds, true));
        while (seconds < kLong / 8 && rounds < (1u << 28)) seconds = RL_TRY(launch(rounds *= 4, true));
        rounds = uint32_t(std::clamp(rounds * kLong / seconds, 1.0, double(1u << 30)));
        seconds = RL_TRY(launch(rounds, true));
        for (int i = 1; i < kRepetitions; ++i) seconds = std::min(seconds, RL_TRY(launch(rounds, true)));
        const double waves = double(blocks_) * kPeakThreads / device_.report().wave();
        return waves * rounds * kSums * 2.0 * 16 * 16 * depth / seconds;
    }

private:
    // Seconds that it took.
    Result<double> launch(uint32_t rounds, bool varied) {
        const args::PeakArgs args = {reinterpret_cast<float*>(out_.data()), rounds, varied};
        const auto begin = std::chrono::steady_clock::now();
        RL_TRY(device_.launch(kernel_, {blocks_, 1, 1, kPeakThreads}, std::as_bytes(std::span(&args, 1))));
        RL_TRY(device_.synchronize("measuring matrix units"));
        return std::chrono::duration<double>(std::chrono::steady_clock::now() - begin).count();
    }

    // Of ones, sums are how many products there were. Of a number per block only: the test double's blocks
    // are one thread.
    Status check(float want) {
        const Code code =
            device_.call().copy_out(mirror_.data(), out_.data(), uint64_t(blocks_) * 4, device_.stream());
        RL_TRY(device_.checked(code, "measuring matrix units"));
        RL_TRY(device_.synchronize("measuring matrix units"));
        const auto* got = reinterpret_cast<const float*>(mirror_.data());
        for (uint32_t i = 0; i < blocks_; ++i)
            if (got[i] != want) return error("matrix units compute {} where {} is right", got[i], want);
        return {};
    }

    Device& device_;
    Buffer out_;
    Buffer mirror_;
    uint32_t blocks_;
    Function kernel_ = nullptr;
};

std::string_view instruction_of(const DeviceReport& report) {
    return report.target.starts_with("sm_")    ? "mma.sync"
           : report.target.starts_with("gfx9") ? "MFMA"
                                               : "WMMA";
}

}  // namespace

Result<MatrixPeak> measure_matrix_peak(Device& device, Memory& memory) {
    if (!device.report().matrix_units()) return MatrixPeak{};
    RL_TRY(device.use());
    const uint64_t bytes = Measurement::bytes_of(device);
    Buffer out = RL_TRY(memory.allocate(bytes, Use::scratch, "the measurement of matrix units"));
    Buffer mirror = RL_TRY(memory.allocate(bytes, Use::pinned, "the measurement of matrix units"));
    Measurement measurement(device, std::move(out), std::move(mirror));
    MatrixPeak peak;
    peak.instruction = instruction_of(device.report());
    peak.halfs = RL_TRY(measurement.rate("peak_halfs", 16));
    peak.bytes = RL_TRY(measurement.rate("peak_bytes", 32));
    return peak;
}

}  // namespace redline::hip
