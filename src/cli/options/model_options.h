// Options that every command with a model has, and what they lead to: an open device, a loaded model, a
// session.
#pragma once

#include "cli/options/options.h"
#include "engine/session.h"
#include "host/split.h"

#include <memory>
#include <set>

namespace redline::cli {

// Where tensors are whose names have a pattern in them.
struct TensorPlace {
    std::string pattern;
    std::string device;  // see device_name()
};

// Whether a device's kernels are checked before they are used.
enum class KernelCheck : uint8_t { first_use, always, never };

// Whether kernels of which no speed is known are timed quickly before they are used.
enum class TuneBefore : uint8_t { first_use, always, never };

// A model by the name or address that it is fetched from, see take_remote_model().
struct RemoteModel {
    std::string hub;       // USER/REPO[:QUANT]
    std::string hub_file;  // of that repository
    std::string token;     // for the hub; empty: see hub_of()
    std::string url;
    bool offline = false;  // only what is here already is taken
    explicit operator bool() const { return !hub.empty() || !url.empty(); }
};

struct ModelOptions {
    std::string model;
    bool unnamed = false;  // the demo model is taken in place of one
    RemoteModel remote;
    int64_t context = -1;  // -1: the default, at most the model's own; 0: the most that fits, at most that
    uint64_t default_context = 4096;
    uint32_t threads = 0;     // 0: one per physical core
    uint32_t batch = 0;       // 0: see batch_of()
    std::string device;       // empty: the preferred one
    int64_t gpu_layers = -1;  // 0: the CPU; below: as many as fit
    // The first layers, whose experts are on the CPU; below 0: as many as have to. None: likewise, where the
    // layers on the GPU are not said.
    std::optional<int64_t> cpu_experts = {};
    std::vector<TensorPlace> tensors = {};
    int32_t main_gpu = -1;     // -1: the preferred one
    std::string level;         // of the CPU's kernels; empty: the machine's
    std::string vulkan_level;  // of Vulkan's; empty: what the device is good at
    CacheType cache = CacheType::f16;
    uint64_t memory = 0;      // bytes to plan with; 0: what the device has
    bool beside_gpu = false;  // the CPU, of a split model
    bool keep_awake = true;   // the GPU of one, see BackendOptions
    // Whether prompts have weights of the CPU flow through the device; none: where that should be faster.
    std::optional<bool> streams = {};
    bool fuse = true;
    Record record = Record::replay;
    KernelCheck kernel_check = KernelCheck::first_use;
    bool tuned = true;  // kernels run as they were found to be fast
    TuneBefore quick_tune = TuneBefore::first_use;
};
constexpr int64_t kMostContext = int64_t(1) << 32;
constexpr int64_t kMostBatch = 1 << 16;  // tokens of a step
constexpr int64_t kMostThreads = 1024;

// -m, -c, -t, -b, the cache type, and the two groups below.
void add_model_options(Options& options, ModelOptions& target);
// --device, --cpu-level, --vulkan-level, --no-fuse.
void add_device_options(Options& options, ModelOptions& target);
// -ngl, --cpu-moe, --n-cpu-moe, -ot; the group above has them.
void add_split_options(Options& options, ModelOptions& target);
// A device as a user writes it in the form that choose_device() takes; llama.cpp's names are known.
Result<std::string> device_name(const std::string& text);
// Brings the options that name a device together. What can be said of them without looking for one: the form
// of its name, and levels that it has no use for.
Status check_device_options(ModelOptions& options);
// -t, where 0 and -1, llama.cpp's default, are one per core of this kind.
void add_threads_option(Options& options, std::string_view cores, uint32_t& target);
// -v, -q, --no-color.
void add_voice_options(Options& options);
// -ctk, -ctv: one type for both, since the cache stores key and value side by side.
void add_cache_options(Options& options, std::function<Status(const std::string&)> take);
Result<CacheType> parse_cache_type(const std::string& name);

constexpr const char* kBatchHelp = "tokens read at a time (default: 512; on cards of 16 GB or more 1024)";
uint32_t batch_of(const ModelOptions& options, const DeviceInfo& device);

// Says how to name a model when none was.
Status check_model_given(const std::string& path);

struct LoadedModel {
    std::string device;  // name of the backend
    std::string which;   // of the backend's devices; empty: its best
    std::string why;     // it was chosen; empty when it was asked for
    std::unique_ptr<Backend> backend;
    std::unique_ptr<Backend> cpu;         // for what the device has no room for
    std::vector<Placement> placements;    // of such a split; empty: all is on the device
    SplitCounts counts;                   // of the model's layers
    uint32_t stream_rows = 0;             // see EngineOptions
    double stream_cpu_row_seconds = 0.0;  // see StreamExpectation
    std::unique_ptr<Model> model;         // borrows the backend
    CacheType cache = CacheType::f16;
    std::string vulkan_level;       // to which the check of kernels went down; empty: as the options have it
    std::set<std::string> refused;  // see Backend::refuse()
    uint64_t kernels_checked = 0;   // before the first use
    double kernel_check_seconds = 0.0;
    uint64_t kernels_tuned = 0;  // likewise
    double quick_tune_seconds = 0.0;
    double bandwidth = 0.0;         // bytes per second that the device reads; 0: not known
    double cpu_bandwidth = 0.0;     // likewise, where there is a split
    DecodePace pace, cpu_pace;      // of steps of one token there, likewise
    double crossing_seconds = 0.0;  // between the two, see there
    double load_seconds = 0.0;
};
// Chooses the device and reads all of the model but its weights, so that what is wrong with a prompt or an
// option is said before gigabytes are loaded.
Result<LoadedModel> inspect_model(const ModelOptions& options);
// Opens the device that inspect_model() chose, or, unless it was asked for, one that opens.
Status open_for(LoadedModel& loaded, const ModelOptions& options);
// The device that is taken once more, with what its check has found.
Result<std::unique_ptr<Backend>> open_again(const LoadedModel& loaded, const ModelOptions& options);
// Opens the device where that is not done, checks and times its kernels, sizes and says the plan of a session
// of so many tokens (with 0 there is none), and loads the weights, with progress on a terminal. Notes about
// the file are said as file_notes.h has it.
Status place_model(LoadedModel& loaded, const ModelOptions& options, uint64_t context, uint32_t outputs = 1);
// Both.
Result<LoadedModel> load_model(const ModelOptions& options);

// The context that the options ask for; says when it is more than the model was trained for, or less since no
// more fits. Opens the device where it has to know what fits.
Result<uint64_t> choose_context(LoadedModel& loaded, const ModelOptions& options);
Result<Session> open_session(const LoadedModel& loaded, const ModelOptions& options, uint64_t context,
                             uint32_t outputs = 1);
SessionOptions session_options(const ModelOptions& options, const DeviceInfo& device, uint64_t context,
                               uint32_t outputs = 1);

// What one step reads and computes.
Cost step_cost(const Plan& plan, const StepShape& shape);

}  // namespace redline::cli
