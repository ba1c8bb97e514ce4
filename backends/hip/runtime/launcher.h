// Puts a step's launches on the device's stream, one after the other. Long steps are paced: the host keeps at
// most a slice of work ahead of the device, so that a step can be cancelled and its launches stay short.
#pragma once

#include "device.h"

#include <algorithm>
#include <atomic>

namespace redline::hip {

// What one launch may cost: a tenth of a second if a multiprocessor did no more than 25 GFLOP/s.
inline double flops_per_launch(const DeviceReport& report) {
    return 2.5e9 * double(std::max(8u, report.multiprocessors));
}

// Blocks of a grid along y, or z.
constexpr uint32_t kMostHigh = 65535;

class Launcher {
public:
    // load: only the kernels are loaded, which a stream that is captured must not see. capture: the stream is
    // being captured into a graph, and nothing may wait.
    enum class Mode : uint8_t { run, capture, load };

    Launcher(Device& device, Mode mode, const std::atomic<bool>* cancel = nullptr)
        : device_(device), mode_(mode), cancel_(cancel) {}
    ~Launcher();
    Launcher(const Launcher&) = delete;
    Launcher& operator=(const Launcher&) = delete;

    // `module`: "q4_k"; `kernel`: "linear_1_q4_k". `flops` is what it may cost at most.
    template <typename Args>
    Status launch(const std::string& module, const std::string& kernel, const Launch& shape, const Args& args,
                  double flops = 0.0) {
        return launch_any(module, kernel, shape, std::as_bytes(std::span(&args, 1)), flops);
    }
    // Launches follow each other; a Recorder has to be told.
    void claim_scratch() {}
    void barrier() {}
    Device& device() { return device_; }
    // Work that may go into one launch: what takes more is cut.
    double flops_per_slice() const { return flops_per_launch(device_.report()); }
    bool only_loads() const { return mode_ == Mode::load; }

private:
    Status launch_any(const std::string& module, const std::string& kernel, const Launch& shape,
                      std::span<const std::byte> args, double flops);
    Status pace();

    Device& device_;
    Mode mode_;
    const std::atomic<bool>* cancel_;
    double ahead_ = 0.0;  // flops launched since the last event
    Event events_[2] = {};
    uint64_t recorded_ = 0;
};

}  // namespace redline::hip
