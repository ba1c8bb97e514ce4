// redline devices: what can compute here, and what each device can do.
#include "devices/device_choice.h"

#include "cli/options/options.h"
#include "cli/report.h"
#include "cli/surroundings.h"
#include "cli/terminal/terminal.h"
#include "cli/version.h"
#include "doctor/links.h"
#include "json/json.h"
#include "memory/budget.h"

#include <fmt/ranges.h>

namespace redline::cli {

namespace {

std::string fact_text(const DeviceListing::Fact& fact) {
    if (const auto* text = std::get_if<std::string>(&fact.value)) return *text;
    if (const auto* flag = std::get_if<bool>(&fact.value)) return *flag ? "yes" : "no";
    const uint64_t number = std::get<uint64_t>(fact.value);
    return number >= 65536 ? fmt::format("{} ({})", number, format_bytes(number)) : fmt::format("{}", number);
}

Json fact_json(const DeviceListing::Fact& fact) {
    return std::visit([](const auto& value) { return Json(value); }, fact.value);
}

std::string names_in_order() {
    std::string out;
    for (const BackendEntry* entry : backends_by_preference())
        out += fmt::format("{}{}", out.empty() ? "" : ", ", entry->name);
    return out;
}

Json listing_json() {
    Json all = Json::array();
    for (const BackendEntry* entry : backends_by_preference()) {
        const Result<std::vector<DeviceListing>> devices = entry->list();
        Json list = Json::array();
        if (devices)
            for (const DeviceListing& device : devices.value()) {
                Json facts = Json::object();
                for (const auto& fact : device.facts) facts[fact.name] = fact_json(fact);
                list.push_back({{"id", device.id},
                                {"name", device.name},
                                {"usable", device.missing.empty()},
                                {"missing", device.missing},
                                {"facts", facts}});
            }
        all.push_back({{"backend", entry->name},
                       {"devices", list},
                       {"lacks", build_lacks(entry->name)},
                       {"error", devices ? Json(nullptr) : Json(devices.error().message)}});
    }
    const DeviceChoice best = choose_device("").value();
    return {{"backends", all}, {"default", best.backend}, {"why", best.why}, {"order", names_in_order()}};
}

std::string device_text(const DeviceListing& device) {
    std::string out =
        fmt::format("{}: {}{}\n", device.id, device.name,
                    device.missing.empty() ? "" : fmt::format(" (cannot be used: lacks {})", device.missing));
    for (const auto& fact : device.facts) out += fmt::format("    {:<24}{}\n", fact.name, fact_text(fact));
    return out;
}

std::string default_text() {
    const DeviceChoice best = choose_device("").value();
    return fmt::format(
        "\nby default: {} ({})\n"
        "    Backends are asked in this order: {}. The first that has a GPU is taken, and of several GPUs "
        "the\n"
        "    best; a driver that computes on the CPU is taken only when it is asked for. HIP comes behind\n"
        "    Vulkan because no AMD card has been measured with both yet.\n"
        "    redline bench --devices measures all with a model of yours; --device takes another.\n",
        best.backend, best.why, names_in_order());
}

std::vector<GpuLinks> all_links() {
    std::vector<BackendView> views;
    for (const BackendEntry* entry : backends_by_preference())
        if (Result<std::vector<DeviceListing>> devices = entry->list())
            views.push_back({std::string(entry->name), std::move(devices.value()), ""});
    return gpu_links(views);
}

// The meaning of a list of the GPUs that are here; empty where there are none or one.
std::string list_text() {
    std::string out;
    for (const GpuLinks& links : all_links()) {
        std::vector<std::string> ids;
        std::string lines;
        for (const GpuLink& gpu : links.gpus) {
            ids.push_back(gpu.id);
            if (const std::string link = link_text(gpu); !link.empty())
                lines += fmt::format("    {:<24}{}\n", gpu.id, link);
        }
        for (const Finding& finding : examine_links({&links, 1})) {
            lines += fmt::format("    {}\n", finding.what);
            if (!finding.remedy.empty()) lines += fmt::format("    -> {}\n", finding.remedy);
        }
        out += fmt::format(
            "\nseveral: --device {} shares a model's layers out over these\n"
            "    This makes room for larger models, and long prompts faster. Rows of activations cross from one "
            "to\n"
            "    the next through the host's memory: some KiB for a token, over these links.\n{}",
            fmt::join(ids, ","), lines);
    }
    return out;
}

std::string listing_text() {
    std::string out;
    for (const BackendEntry* entry : backends_by_preference()) {
        const Result<std::vector<DeviceListing>> devices = entry->list();
        if (devices)
            for (const DeviceListing& device : devices.value()) out += device_text(device);
        else
            out += fmt::format("{}: {}\n", entry->name, devices.error().message);
        if (!devices && entry->name == std::string_view("vulkan"))
            for (const std::string& problem : broken_vulkan_drivers(named_drivers()))
                out += fmt::format("vulkan: {}\n", problem);
        if (const std::string_view lacks = build_lacks(entry->name); !lacks.empty())
            out += fmt::format("{}: this build lacks {}\n", entry->name, short_lacks(lacks));
    }
    return out + default_text() + list_text();
}

// The names that --device takes here.
std::string listing_names() {
    std::string kinds, names;
    for (const BackendEntry* entry : backends_by_preference()) {
        const Result<std::vector<DeviceListing>> devices = entry->list();
        if (!devices) continue;
        for (const DeviceListing& device : devices.value()) {
            if (!device.missing.empty()) continue;
            names += device.id + "\n";
            const std::string kind = fmt::format("{}\n", entry->name);
            if (device.id != entry->name && kinds.find(kind) == kinds.npos)
                kinds += (kinds.empty() ? "gpu\n" : "") + kind;
        }
    }
    return kinds + names;
}

int run_devices(const std::vector<std::string>& arguments) {
    bool json = false, names = false;
    Options options("devices", "list what can compute here", {"devices [--json]"});
    options.flag("--json", "write one JSON object", json);
    options.flag("--names", "print the names alone that --device takes, one a line", names);
    options.remark(
        "--device takes what stands before the colon, as vulkan:0, or part of a name; several with commas "
        "between share a model's layers.");
    if (const std::optional<int> code = options.parse(arguments)) return *code;
    Output out;
    out.write(names ? listing_names() : json ? to_text(listing_json(), true) + "\n" : listing_text());
    return out.finish();
}

}  // namespace

extern const Command devices_command = {"devices", "list what can compute here", run_devices};

}  // namespace redline::cli
