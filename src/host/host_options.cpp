#include "host/host_options.h"

#include "devices/device_choice.h"

#include <fmt/ranges.h>

#include <algorithm>
#include <cctype>
#include <cstdlib>
#include <set>

namespace redline {

// The names that other programs give to caches in FP8. SmolLM2 diverges from f16 by 0.024 nats with e4m3, and
// by 0.0004 with q8_0, which has half a bit more (tools/bench/2026-11-30-cache-types.md).
static bool names_fp8(const std::string& name) {
    constexpr std::string_view kBeginnings[] = {"fp8", "f8", "e4m3", "e5m2"};
    return std::ranges::any_of(kBeginnings, [&](std::string_view one) { return name.starts_with(one); });
}

Result<CacheType> parse_cache_type(const std::string& name) {
    std::vector<std::string_view> names;
    for (const CacheType type : kCacheTypes) {
        if (cache_type_name(type) == name) return type;
        names.push_back(cache_type_name(type));
    }
    if (names_fp8(name))
        return error("does not take {}: q8_0 has about its size, loses less and runs on every device", name);
    return error("takes one of {}, not \"{}\"", fmt::join(names, ", "), name);
}

// "Vulkan0", "ROCm1": a kind of device and a number, as llama.cpp writes them.
static std::string with_colon(const std::string& name) {
    const size_t digits = name.find_last_not_of("0123456789") + 1;
    const std::string kind = name.substr(0, digits);
    if (digits == name.size() || (kind != "vulkan" && kind != "hip" && kind != "rocm" && kind != "cuda"))
        return name;
    return (kind == "vulkan" ? kind : "hip") + ":" + name.substr(digits);
}

Result<std::string> device_name(const std::string& text) {
    std::string name = text;
    std::transform(name.begin(), name.end(), name.begin(),
                   [](unsigned char letter) { return std::tolower(letter); });
    if (name.find_first_not_of("0123456789") == std::string::npos)
        return error("{}: a number alone names no device; vulkan:{} may be meant", text, text);
    if (name == "auto") return std::string();
    return name == "none" ? "cpu" : with_colon(name);
}

Status take_devices(const std::string& text, HostOptions& options) {
    std::vector<std::string> names;
    for (size_t at = 0; at <= text.size();) {
        const size_t end = std::min(text.find(',', at), text.size());
        const std::string one = text.substr(at, end - at);
        if (text.empty()) return error("was given an empty name");
        if (one.empty()) return error("\"{}\" has an empty name between commas", text);
        names.push_back(RL_TRY(device_name(one)));
        at = end + 1;
    }
    if (names.size() > kMostDevices) return error("takes {} devices, not {}", kMostDevices, names.size());
    if (names.size() > 1 && std::ranges::count(names, "") > 0)
        return error("\"{}\": auto is a choice of one device, and no part of a list", text);
    options.device = names.front();
    options.others.assign(names.begin() + 1, names.end());
    return {};
}

Result<std::vector<double>> parse_shares(const std::string& text) {
    std::vector<double> shares;
    for (size_t at = 0; at <= text.size();) {
        const size_t end = std::min(text.find_first_of(",/", at), text.size());
        const std::string one = text.substr(at, end - at);
        char* behind = nullptr;
        const double share = std::strtod(one.c_str(), &behind);
        if (one.empty() || *behind != 0 || !(share >= 0.0) || share > 1e9)
            return error("takes a number for each device, like 3,1, not \"{}\"", text);
        shares.push_back(share);
        at = end + 1;
    }
    if (std::ranges::count(shares, 0.0) == int64_t(shares.size()))
        return error("\"{}\" gives no device a layer", text);
    if (shares.size() > kMostDevices) return error("takes {} devices, not {}", kMostDevices, shares.size());
    return shares;
}

Result<SplitMode> parse_split_mode(const std::string& name) {
    if (name == "none") return SplitMode::none;
    if (name == "layer") return SplitMode::layer;
    if (name == "tensor") return SplitMode::tensor;
    if (name == "auto") return SplitMode::best;
    if (name == "row")
        return error(
            "takes none, layer, tensor or auto, and not row: rows alone are not shared out here; tensor "
            "divides each layer, layer shares them out");
    return error("takes none, layer, tensor or auto, not \"{}\"", name);
}

std::string device_list(const HostOptions& options) {
    return fmt::format("{}{}{}", options.device, options.others.empty() ? "" : ",",
                       fmt::join(options.others, ","));
}

Status check_one_device(const HostOptions& options, std::string_view command) {
    const SettingNames& names = *options.names;
    if (!options.others.empty())
        return error("{}: redline {} computes on one device", names.with(names.device, device_list(options)),
                     command);
    if (options.split_mode >= SplitMode::layer || !options.shares.empty())
        return error("{}: redline {} computes on one device",
                     options.shares.empty() ? names.split_mode : names.shares, command);
    return {};
}

Result<std::vector<TensorPlace>> parse_tensor_places(const std::string& text) {
    std::vector<TensorPlace> places;
    for (size_t at = 0; at <= text.size();) {
        const size_t end = std::min(text.find(',', at), text.size());
        const std::string one = text.substr(at, end - at);
        const size_t equals = one.rfind('=');
        if (equals == std::string::npos || equals == 0 || equals + 1 == one.size())
            return error("takes PATTERN=DEVICE, like ffn_.*_exps=CPU, not \"{}\"", one);
        places.push_back({one.substr(0, equals), RL_TRY(device_name(one.substr(equals + 1)))});
        at = end + 1;
    }
    return places;
}

// Takes the split mode and the shares: drops devices that are to have no layer.
static Status merge_list(HostOptions& options) {
    const SettingNames& names = *options.names;
    std::vector<std::string> all = options.others;
    all.insert(all.begin(), options.device);
    const std::string given = names.with(names.device, device_list(options));
    if (options.split_mode == SplitMode::none && all.size() > 1) {
        const auto chosen = size_t(std::max(options.main_gpu, 0));
        if (chosen >= all.size())
            return error("{}: {} has devices 0 to {}", names.with(names.main_gpu, options.main_gpu), given,
                         all.size() - 1);
        options.device = all[chosen];
        options.others.clear();
        options.main_gpu = -1;
    }
    if (options.split_mode == SplitMode::none && !options.shares.empty())
        return error("{}: {} has the model on one device: leave one of them out", names.shares,
                     names.with(names.split_mode, "none"));
    const bool all_gpus = options.split_mode >= SplitMode::layer || !options.shares.empty();
    if (options.main_gpu >= 0 && (all.size() > 1 || all_gpus))
        return error("{}: several devices have layers; with {} it says which of them is used alone",
                     names.with(names.main_gpu, options.main_gpu), names.with(names.split_mode, "none"));
    if (options.ranks_here > 1) return {};  // the shares are of all ranks of a job: see device_list.cpp
    // Without a list the shares are those of all GPUs that there are.
    const bool listed =
        all.size() > 1 || options.device == "cpu" || options.device.find(':') != std::string::npos;
    if (!listed || options.shares.empty()) return {};
    if (options.shares.size() != all.size())
        return error("{}: {} share{} for the {} device{} of {}", names.shares, options.shares.size(),
                     options.shares.size() == 1 ? "" : "s", all.size(), all.size() == 1 ? "" : "s", given);
    for (size_t i = all.size(); i-- > 0;)
        if (options.shares[i] == 0.0) {
            all.erase(all.begin() + ptrdiff_t(i));
            options.shares.erase(options.shares.begin() + ptrdiff_t(i));
        }
    options.device = all.front();
    options.others.assign(all.begin() + 1, all.end());
    return {};
}

// Takes main_gpu, and the CPU where no layer is to be on a GPU.
static Status merge_device(HostOptions& options) {
    const SettingNames& names = *options.names;
    if (options.gpu_layers == 0 && !options.streams.value_or(false)) {
        if (!options.device.empty() && device_list(options) != "cpu")
            return error(
                "{} means the CPU, {} another: leave one of them out, or have prompts computed there with {}",
                names.with(names.gpu_layers, 0), names.with(names.device, device_list(options)),
                names.stream);
        options.device = "cpu";
    }
    if (options.main_gpu >= 0 && options.device != "cpu") {
        if (options.device.find(':') != std::string::npos)
            return error("{} and {} both name a GPU: leave one of them out",
                         names.with(names.main_gpu, options.main_gpu),
                         names.with(names.device, options.device));
        options.device =
            fmt::format("{}:{}", options.device.empty() ? "gpu" : options.device, options.main_gpu);
    }
    return {};
}

static Status check_name(const std::string& device, const std::string& given) {
    const size_t colon = device.find(':');
    if (colon != std::string::npos && colon + 1 == device.size())
        return error("{}: a number, or part of a device's name, belongs behind the colon", given);
    if (device.substr(0, colon) == "cpu" && colon != std::string::npos)
        return error("{}: the CPU is one device, called cpu", given);
    return {};
}

// Where layers are divided, no part of one is elsewhere.
static Status check_divided(const HostOptions& options) {
    const SettingNames& names = *options.names;
    if (options.split_mode != SplitMode::tensor) return {};
    const char* const other = options.gpu_layers >= 0    ? names.gpu_layers
                              : options.cpu_experts      ? names.cpu_experts
                              : !options.tensors.empty() ? names.tensors
                                                         : nullptr;
    if (!other) return {};
    return error(
        "{}: with {} each device has a part of every layer: leave it out, or share layers out with {}", other,
        names.with(names.split_mode, "tensor"), names.with(names.split_mode, "layer"));
}

Status settle_device(HostOptions& options) {
    RL_TRY(merge_list(options));
    RL_TRY(merge_device(options));
    const SettingNames& names = *options.names;
    const std::string given = names.with(names.device, device_list(options));
    std::set<std::string> heads = {options.device.substr(0, options.device.find(':'))};
    RL_TRY(check_name(options.device, given));
    for (const std::string& other : options.others) {
        RL_TRY(check_name(other, given));
        heads.insert(other.substr(0, other.find(':')));
    }
    RL_TRY(check_divided(options));
    const auto unused = [](const char* level, const std::string& device) {
        return error("{} means nothing with {}: leave it out", level, device);
    };
    const auto only = [&](std::initializer_list<const char*> kinds) {
        return std::ranges::all_of(
            heads, [&](const std::string& head) { return std::ranges::find(kinds, head) != kinds.end(); });
    };
    const std::string kind = heads.size() == 1 ? names.with(names.device, *heads.begin()) : given;
    if (only({"cpu"}) && !options.vulkan_level.empty()) return unused(names.vulkan_level, given);
    if (only({"vulkan", "hip"}) && !options.level.empty()) return unused(names.cpu_level, kind);
    if (only({"cpu", "hip"}) && !options.vulkan_level.empty()) return unused(names.vulkan_level, kind);
    if (!options.others.empty() && heads.contains("cpu") &&
        (options.gpu_layers >= 0 || options.cpu_experts || !options.tensors.empty()))
        return error("{}: {} says what the CPU has, too: leave it out, or share layers out with {}",
                     options.gpu_layers >= 0 ? names.gpu_layers
                     : options.cpu_experts   ? names.cpu_experts
                                             : names.tensors,
                     given, names.shares);
    return {};
}

uint32_t batch_of(const HostOptions& options, const DeviceInfo& device) {
    return options.batch > 0 ? options.batch : usual_batch(device);
}

SessionOptions session_options(const HostOptions& options, const DeviceInfo& device, uint64_t context,
                               uint32_t outputs) {
    EngineOptions engine;
    engine.context = context;
    engine.batch = batch_of(options, device);
    engine.outputs = outputs;
    engine.cache = options.cache;
    engine.sequences = options.sequences;
    engine.kept = options.kept;
    engine.snapshots = options.snapshots;
    engine.pages = options.pages;
    engine.drafts = options.drafts;
    engine.head = options.second_head;
    engine.fuse = options.fuse;
    engine.alike_rows = options.alike_rows;
    engine.record = options.record;
    return engine;
}

}  // namespace redline
