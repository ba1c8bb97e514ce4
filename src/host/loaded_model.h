// A model on its way to a session: what was chosen for it, opened, measured and loaded.
#pragma once

#include "devices/device_choice.h"
#include "engine/engine.h"
#include "host/split.h"

#include <memory>
#include <set>

namespace redline {

// The device that computes the model, or most of it.
struct OpenDevice {
    DeviceChoice choice;               // which one, and why
    std::unique_ptr<Backend> backend;  // null until the device is opened
    std::string vulkan_level;       // to which the check of kernels went down; empty: as the options have it
    std::set<std::string> refused;  // kernels that compute wrongly, see Backend::refuse()
    uint64_t kernels_checked = 0;   // before their first use, in this process
    double kernel_check_seconds = 0.0;
    uint64_t kernels_tuned = 0;  // by the quick tune, in this process
    double quick_tune_seconds = 0.0;

    // "cpu", "vulkan" or "hip".
    const std::string& name() const { return choice.backend; }
};

// The parts of the model where the device has no room for all of it.
struct ModelSplit {
    std::unique_ptr<Backend> cpu;       // null where the model is not split
    std::vector<Placement> placements;  // which steps of the plan run where; empty: all on the device
    SplitCounts counts;                 // of the model's layers
    uint32_t stream_rows = 0;           // see EngineOptions
    double cpu_row_seconds = 0.0;       // per row of a prompt in the CPU's layers, see StreamExpectation

    explicit operator bool() const { return !placements.empty(); }
};

// Tokens per second of a generation; 0: not known.
struct Speed {
    double expected = 0.0;  // by the measured times of kernels, see expected_tokens_per_second()
    double most = 0.0;      // by the measured bandwidth alone

    // "about 12.3 tok/s expected, at most 20.1 by the measured bandwidth"; empty: not known.
    std::string text() const;
};

// Rates that were measured for the model's devices; 0: not known.
struct MeasuredSpeed {
    double bandwidth = 0.0;         // bytes per second that the device reads
    double cpu_bandwidth = 0.0;     // the same of the CPU, where the model is split
    DecodePace pace, cpu_pace;      // of steps of one token on each of them
    double crossing_seconds = 0.0;  // to go on at the other one, see crossing_seconds()
    Speed planned;                  // at the beginning of the context, by plan_load()
    double load_seconds = 0.0;      // that inspecting and loading took, checks included
};

// Backends outlive the model, whose weights are on them.
struct LoadedModel {
    OpenDevice device;
    ModelSplit split;
    MeasuredSpeed speed;
    CacheType cache = CacheType::f16;
    std::unique_ptr<Model> model;
};

}  // namespace redline
