// A model on its way to a session: what was chosen for it, opened, measured and loaded.
#pragma once

#include "devices/device_choice.h"
#include "engine/engine.h"
#include "host/split.h"

#include <map>
#include <memory>
#include <set>

namespace redline {

// A device that computes the model, or some of its layers.
struct OpenDevice {
    DeviceChoice choice;               // which one, and why
    std::unique_ptr<Backend> backend;  // null until the device is opened
    std::string id = {};               // of one in a list: "hip:1"
    std::string card = {};             // its address on the bus, where that is known, or its id
    const Backend* placed = nullptr;   // what placements name, while a lost device is not open again
    uint32_t times = 1;                // as often as this it is in the list, each time for a part of it:
    uint64_t memory = 0;               // bytes to plan with, then, and
    uint32_t threads = 0;              // threads
    uint32_t rank = 0;                 // of the process that has it, see rank_job.h; 0: this one
    uint32_t number = 0;               // among that one's devices
    double share = 0.0;        // of the layers, in proportion, as it was asked for; 0: by what the device is
    std::string vulkan_level;  // to which the check of kernels went down; empty: as the options have it
    std::set<std::string> refused;  // kernels that compute wrongly, see Backend::refuse()
    uint64_t kernels_checked = 0;   // before their first use, in this process
    double kernel_check_seconds = 0.0;
    uint64_t kernels_tuned = 0;  // by the quick tune, in this process
    double quick_tune_seconds = 0.0;
    double bandwidth = 0.0;  // bytes per second that it reads, as measured; 0: not known
    DecodePace pace;         // of steps of one token, likewise

    // "cpu", "vulkan" or "hip".
    const std::string& name() const { return choice.backend; }
    // The id without the rank that has it.
    std::string local_id() const {
        const size_t space = id.rfind(' ');
        return id.empty() ? name() : space == id.npos ? id : id.substr(space + 1);
    }
};

// The parts of a model that is not as a whole on one device.
struct ModelSplit {
    OpenDevice cpu;                     // what the devices have no room for; not opened where that is nothing
    std::vector<Placement> placements;  // which steps of the plan run where; empty: all on the device
    // Instead: those that compute a part of each layer; empty: none do.
    std::vector<RankPlace> ranks;
    SplitCounts counts;            // of the model's layers
    uint32_t stream_rows = 0;      // see EngineOptions
    double cpu_row_seconds = 0.0;  // per row of a prompt in the CPU's layers, see StreamExpectation

    explicit operator bool() const { return !placements.empty() || !ranks.empty(); }
};

// Tokens per second of a generation; 0: not known.
struct Speed {
    double expected = 0.0;  // by the measured times of kernels, see expected_tokens_per_second()
    double most = 0.0;      // by the measured bandwidth alone

    // "about 12.3 tok/s expected, at most 20.1 by the measured bandwidth"; empty: not known.
    std::string text() const;
};

// Measured and predicted; 0: not known.
struct MeasuredSpeed {
    // Seconds that a step takes to go on at another place, for each pair: see crossing_seconds().
    std::map<std::pair<const Backend*, const Backend*>, double> crossings;
    Speed planned;              // at the beginning of the context, by plan_load()
    double sum_seconds = 0.0;   // of a sum over the devices that divide each layer
    double load_seconds = 0.0;  // that inspecting and loading took, checks included
};

// Backends outlive the model, whose weights are on them.
struct LoadedModel {
    OpenDevice device;               // the first, and mostly the only one
    std::vector<OpenDevice> others;  // those that share its layers, in the order of these
    bool divides = false;            // each layer is divided over these, see SplitMode::tensor
    // In a rank of a job that computes for rank 0: all ranks that divide each layer, with no backend but the
    // one of this process; empty: they do not.
    std::vector<RankPlace> job_ranks;
    ModelSplit split;
    MeasuredSpeed speed;
    CacheTypes cache = {};
    std::unique_ptr<Model> model;

    bool is_shared() const { return !others.empty(); }
    // The device and the others.
    std::vector<OpenDevice*> devices();
    std::vector<const OpenDevice*> devices() const;
    // These, and the CPU beside them where it is open.
    std::vector<OpenDevice*> places();
    std::vector<const OpenDevice*> places() const;
    // Where the logits are computed, and MTP heads.
    Backend& output_backend() const {
        return split.placements.empty() ? *device.backend : *with_steps(split.placements).back().backend;
    }
    // "cpu", "vulkan", and of several devices "vulkan:1".
    std::string label(const Backend* backend) const;
    // "vulkan", "hip:0, hip:1".
    std::string labels() const;
    // Where the steps of its plan can be.
    SplitPlaces split_places() const;
};

}  // namespace redline
