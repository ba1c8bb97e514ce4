// The wishes with which a model is loaded, whoever asks: the program, the C interface or a server.
#pragma once

#include "doctor/vulkan_drivers.h"
#include "engine/session.h"
#include "host/notes.h"
#include "store/model_files.h"

#include <optional>

namespace redline {

// Puts the tensors whose names match the pattern, a regular expression, on a device.
struct TensorPlace {
    std::string pattern;
    std::string device;  // see device_name()
};

// How a model is shared out over the devices there are.
enum class SplitMode : uint8_t {
    list,    // over those that are named
    none,    // one of them has it
    layer,   // over those that are named, or, where none is, all GPUs of the best backend
    tensor,  // likewise, but each computes a part of every layer
    best,    // whichever of these two should be faster, as for a list of equal GPUs; see choose_division()
};

// When a device's kernels are compared with the reference before they are used.
enum class KernelCheck : uint8_t { first_use, always, never };

// When kernels of unknown speed are timed for some seconds before they are used.
enum class TuneBefore : uint8_t { first_use, always, never };

// The names under which the caller's users set options: messages that recommend a setting use them. These are
// the program's.
struct SettingNames {
    const char* device = "--device";
    const char* main_gpu = "-mg/--main-gpu";
    const char* split_mode = "-sm/--split-mode";
    const char* shares = "-ts/--tensor-split";
    const char* context = "-c";
    const char* gpu_layers = "-ngl";
    const char* cpu_experts = "--cpu-moe";
    const char* cpu_experts_auto = "--cpu-moe auto";
    const char* tensors = "-ot";
    const char* small_cache = "--cache-type q8_0";
    const char* memory = "--mem-budget";
    const char* stream = "--op-offload";
    const char* cpu_level = "--cpu-level";
    const char* vulkan_level = "--vulkan-level";
    const char* check_again = "--self-test";
    const char* unchecked = "--no-self-test";
    const char* untuned = "--no-tune";
    const char* chat_format = "--chat-format";
    const char* chat_template = "--chat-template";
    const char* template_variables = "--chat-template-kwargs";
    const char* tools = "--tools";
    const char* between = " ";  // between a name and its value

    // "-c 4096"
    template <typename T>
    std::string with(const char* name, const T& value) const {
        return fmt::format("{}{}{}", name, between, value);
    }
};
inline constexpr SettingNames kProgramSettings;

class RankJob;

struct HostOptions {
    std::string model;                     // a path or, where there are stores, a name; see find_model()
    std::vector<ModelStore> stores;        // folders in which models are looked for by name
    int64_t context = -1;                  // tokens; -1: the default; 0: as many as fit
    uint64_t default_context = 4096;       // or the length that the model was trained for, if that is less
    uint32_t threads = 0;                  // of the CPU; 0: one per physical core
    uint32_t batch = 0;                    // tokens of a step at most; 0: see batch_of()
    std::string device;                    // see choose_device(); empty: the best
    std::vector<std::string> others = {};  // further devices, whose layers are behind those of `device`
    SplitMode split_mode = SplitMode::list;
    std::vector<double> shares = {};  // of the layers of each device, in proportion; empty: by what they are
    int64_t gpu_layers = -1;          // the last ones of the model; below 0: as many as fit
    // How many of the first layers have their experts on the CPU; below 0: as many as the device has no room
    // for. Not set: the same, unless gpu_layers is set.
    std::optional<int64_t> cpu_experts = {};
    std::vector<TensorPlace> tensors = {};
    int32_t main_gpu = -1;     // number of the GPU; -1: the best
    std::string level;         // highest level of the CPU's kernels; empty: the machine's
    std::string vulkan_level;  // highest level of Vulkan's kernels; empty: what suits the device
    CacheTypes cache = {};
    uint64_t memory = 0;      // bytes of the device to plan with; 0: what is free
    bool beside_gpu = false;  // opens the CPU of a split model, see BackendOptions
    bool keep_awake = true;   // the GPU of a split model, see BackendOptions
    // Computes prompts on the device by copying the weights of the CPU's layers there. Not set:
    // where that should be faster.
    std::optional<bool> streams = {};
    // Sequences that share the caches, see EngineOptions.
    uint32_t sequences = 1, kept = 0, snapshots = 2;
    uint64_t pages = 0;
    uint32_t drafts = 0;           // see EngineOptions
    ReadHead head = ReadHead::no;  // the MTP head of the model's file is read, too
    Model* second_head = nullptr;  // of another file; it outlives the model
    bool fuse = true;
    bool alike_rows = false;  // see EngineOptions
    Record record = Record::replay;
    KernelCheck kernel_check = KernelCheck::first_use;
    bool tuned = true;  // kernels run in the variants that were measured to be fast
    TuneBefore quick_tune = TuneBefore::first_use;
    bool precise = false;  // products of many rows take activations in 16 bits, never in int8

    RankJob* job = nullptr;   // ranks that have a part of the layers; null: there are none
    uint32_t ranks_here = 1;  // processes of the job on this machine, which share its CPU

    // The surroundings, which the caller knows.
    std::string cache_folder;  // for what is known of devices between runs; empty: nothing is kept
    NamedDrivers drivers;      // of Vulkan, that the environment names
    const SettingNames* names = &kProgramSettings;
    Notes* notes = &silent_notes();  // never null
};

constexpr int64_t kMostContext = int64_t(1) << 32;
constexpr int64_t kMostBatch = 1 << 16;  // tokens of a step
constexpr int64_t kMostThreads = 1024;
constexpr size_t kMostDevices = 16;  // of a list

// One of kCacheTypes by its name.
Result<CacheType> parse_cache_type(const std::string& name);
// The name of a device as users and llama.cpp write it ("Vulkan1", "none") in the form that choose_device()
// takes.
Result<std::string> device_name(const std::string& text);
// Sets the devices of a list, "hip:0,hip:1"; each is as device_name() has it.
Status take_devices(const std::string& text, HostOptions& options);
// "3,1" or "3/1".
Result<std::vector<double>> parse_shares(const std::string& text);
// "none", "layer", "tensor" or "auto"; others are errors with what would work.
Result<SplitMode> parse_split_mode(const std::string& name);
// The devices of the list, "hip:0,hip:1".
std::string device_list(const HostOptions& options);
// Where a command computes on one device: an error when more are named.
Status check_one_device(const HostOptions& options, std::string_view command);
// "exps=CPU,blk\\.1\\.=Vulkan0"
Result<std::vector<TensorPlace>> parse_tensor_places(const std::string& text);
// Merges the options that name a device into `device`, and refuses those that contradict each other. No
// device is looked for.
Status settle_device(HostOptions& options);

// Tokens that a step reads at most on this device.
uint32_t batch_of(const HostOptions& options, const DeviceInfo& device);
// `outputs`: rows of logits that a step can return.
SessionOptions session_options(const HostOptions& options, const DeviceInfo& device, uint64_t context,
                               uint32_t outputs = 1);

}  // namespace redline
