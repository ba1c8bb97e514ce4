// redline doctor: what is wrong with this machine for running models, and what mends it.
#include "cli/options/options.h"
#include "cli/report.h"
#include "cli/surroundings.h"
#include "cli/terminal/terminal.h"
#include "doctor/findings.h"
#include "doctor/links.h"
#include "host/expected_speed.h"
#include "host/open_device.h"
#include "json/json.h"

#include <cstdlib>

namespace redline::cli {

namespace {

struct DoctorOptions {
    bool json = false;
    bool measure = true;
    std::string root;
};

std::vector<BackendView> backend_views() {
    std::vector<BackendView> views;
    for (const BackendEntry* entry : all_backends()) {
        Result<std::vector<DeviceListing>> devices = entry->list();
        views.push_back({std::string(entry->name),
                         devices ? std::move(devices.value()) : std::vector<DeviceListing>(),
                         devices ? "" : devices.error().message});
    }
    return views;
}

// Devices that cannot be opened are left out: they are findings anyway.
std::vector<MeasuredBandwidth> measure() {
    HostOptions options;
    take_surroundings(options);
    std::vector<MeasuredBandwidth> out;
    for (const UsableDevice& device : usable_devices())
        if (const auto backend = open_device(device.choice, options))
            out.push_back({device.listing.id, measured_bandwidth(*backend.value(), "", *options.notes)});
    return out;
}

Machine examined(const DoctorOptions& options) {
    Machine machine = read_machine(options.root);
    for (const std::string& variable : kDoctorVariables)
        if (const char* value = std::getenv(variable.c_str()); value && *value)
            machine.environment[variable] = value;
    if (options.root.empty()) machine.broken_drivers = broken_vulkan_drivers(named_drivers());
    machine.backends = backend_views();
    if (options.measure) machine.bandwidths = measure();
    machine.links = gpu_links(machine.backends, options.root);
    return machine;
}

Json links_json(const Machine& m) {
    Json all = Json::array();
    for (const GpuLinks& links : m.links) {
        Json gpus = Json::array();
        for (const GpuLink& gpu : links.gpus)
            gpus.push_back({{"id", gpu.id},
                            {"pci", gpu.pci},
                            {"reaches", gpu.reaches},
                            {"adds_rows_by", gpu.sums},
                            {"lanes", gpu.link ? Json(gpu.link->lanes) : Json(nullptr)},
                            {"most_lanes", gpu.link ? Json(gpu.link->most_lanes) : Json(nullptr)},
                            {"transfers_per_second", gpu.link ? Json(gpu.link->transfers) : Json(nullptr)},
                            {"iommu_group", gpu.isolation ? Json(gpu.isolation->group) : Json(nullptr)},
                            {"iommu", gpu.isolation ? Json(gpu.isolation->kind) : Json(nullptr)}});
        all.push_back({{"backend", links.backend},
                       {"gpus", gpus},
                       {"collectives", links.collectives.empty() ? Json(nullptr) : Json(links.collectives)}});
    }
    return all;
}

Json machine_json(const Machine& m) {
    Json gpus = Json::array();
    const auto bytes = [](const std::optional<uint64_t>& value) {
        return value ? Json(*value) : Json(nullptr);
    };
    for (const KernelGpu& gpu : m.gpus)
        gpus.push_back({{"card", gpu.card},
                        {"pci", gpu.pci},
                        {"vendor", gpu.vendor},
                        {"device", gpu.device},
                        {"driver", gpu.driver},
                        {"target", gpu.target},
                        {"vram_total", bytes(gpu.vram_total)},
                        {"vram_used", bytes(gpu.vram_used)},
                        {"vram_visible", bytes(gpu.visible)},
                        {"gtt_total", bytes(gpu.gtt_total)},
                        {"gtt_used", bytes(gpu.gtt_used)}});
    Json bandwidths = Json::object();
    for (const MeasuredBandwidth& measured : m.bandwidths)
        bandwidths[measured.device] = measured.bytes_per_second;
    return {
        {"system", m.system},
        {"kernel", m.kernel},
        {"rocm", m.rocm},
        {"container", m.container},
        {"memory_total", m.memory.total},
        {"memory_available", m.memory.available},
        {"memory_of_group", m.memory.group_limit == UINT64_MAX ? Json(nullptr) : Json(m.memory.group_limit)},
        {"swap_used", m.swap_used},
        {"ttm_limit", bytes(m.ttm_limit)},
        {"vulkan_drivers", m.vulkan_drivers},
        {"environment", m.environment},
        {"gpus", gpus},
        {"links", links_json(m)},
        {"bandwidths", bandwidths}};
}

Json findings_json(const std::vector<Finding>& findings) {
    Json list = Json::array();
    for (const Finding& finding : findings)
        list.push_back({{"severity", severity_name(finding.severity)},
                        {"check", finding.check},
                        {"what", finding.what},
                        {"remedy", finding.remedy}});
    return list;
}

std::string as_text(const Machine& m, const std::vector<Finding>& findings) {
    std::string out = fmt::format(
        "{}, Linux {}{}{}; {} of memory, {} available\n", m.system.empty() ? "unknown system" : m.system,
        m.kernel, m.rocm.empty() ? "" : ", ROCm " + m.rocm, m.container ? ", in a container" : "",
        format_bytes(m.memory.total), format_bytes(m.memory.available));
    size_t problems = 0, warnings = 0;
    for (const Finding& finding : findings) {
        problems += finding.severity == Severity::problem;
        warnings += finding.severity == Severity::warning;
        out += fmt::format("{:<8} {}\n",
                           finding.severity == Severity::good ? "ok" : severity_name(finding.severity),
                           finding.what);
        if (!finding.remedy.empty()) out += fmt::format("         -> {}\n", finding.remedy);
    }
    const DeviceChoice choice = choose_device("").value();
    out += fmt::format("by default models run on {} ({})\n", choice.backend, choice.why);
    return out + fmt::format("{} problem{}, {} warning{}\n", problems, problems == 1 ? "" : "s", warnings,
                             warnings == 1 ? "" : "s");
}

int run_doctor(const std::vector<std::string>& arguments) {
    DoctorOptions doctor;
    Options options("doctor", "say what keeps models from running well here, and what mends it",
                    {"doctor [options]"});
    options.flag("--json", "write one JSON object", doctor.json);
    options.flag("--no-measure", "do not measure the bandwidth of memory, which takes a second per device",
                 doctor.measure, false);
    options.name("--root", "DIR", "read /proc, /sys and the like below this folder: a recorded machine",
                 doctor.root);
    options.remark("Needs no rights and changes nothing. Ends with status 1 when there is a problem.");
    options.example("redline doctor");
    options.example("redline doctor --json | jq '.findings[] | select(.severity != \"good\")'");
    if (const std::optional<int> code = options.parse(arguments)) return *code;
    const Machine machine = examined(doctor);
    const std::vector<Finding> findings = examine(machine);
    Output out;
    out.write(doctor.json
                  ? to_text(Json{{"machine", machine_json(machine)}, {"findings", findings_json(findings)}}) +
                        "\n"
                  : as_text(machine, findings));
    const int written = out.finish();
    const bool wrong = std::any_of(findings.begin(), findings.end(), [](const Finding& finding) {
        return finding.severity == Severity::problem;
    });
    return written != kDone ? written : wrong ? kFailed : kDone;
}

}  // namespace

extern const Command doctor_command = {"doctor", "look for what keeps models from running well here",
                                       run_doctor};

}  // namespace redline::cli
