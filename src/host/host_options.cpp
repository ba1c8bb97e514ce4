#include "host/host_options.h"

#include "devices/device_choice.h"

#include <algorithm>
#include <cctype>

namespace redline {

Result<CacheType> parse_cache_type(const std::string& name) {
    for (const CacheType type : {CacheType::f16, CacheType::q8_0, CacheType::f32})
        if (cache_type_name(type) == name) return type;
    return error("takes f16, q8_0 or f32, not \"{}\"", name);
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

// Takes main_gpu, and the CPU where no layer is to be on a GPU.
static Status merge_device(HostOptions& options) {
    const SettingNames& names = *options.names;
    if (options.gpu_layers == 0 && !options.streams.value_or(false)) {
        if (!options.device.empty() && options.device != "cpu")
            return error(
                "{} means the CPU, {} another: leave one of them out, or have prompts computed there with {}",
                names.with(names.gpu_layers, 0), names.with(names.device, options.device), names.stream);
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

Status settle_device(HostOptions& options) {
    RL_TRY(merge_device(options));
    const SettingNames& names = *options.names;
    const std::string head = options.device.substr(0, options.device.find(':'));
    const std::string given = names.with(names.device, options.device);
    const auto unused = [](const char* level, const std::string& device) {
        return error("{} means nothing with {}: leave it out", level, device);
    };
    if (head.size() + 1 == options.device.size())
        return error("{}: a number, or part of a device's name, belongs behind the colon", given);
    if (head == "cpu" && head != options.device) return error("{}: the CPU is one device, called cpu", given);
    if (head == "cpu" && !options.vulkan_level.empty()) return unused(names.vulkan_level, given);
    if ((head == "vulkan" || head == "hip") && !options.level.empty())
        return unused(names.cpu_level, names.with(names.device, head));
    if (head == "hip" && !options.vulkan_level.empty())
        return unused(names.vulkan_level, names.with(names.device, head));
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
