#include "backends/vulkan/vulkan_backend.h"

#include "backends/vulkan/ops/steps.h"
#include "backends/vulkan/runtime/fragments.h"
#include "backends/vulkan/runtime/read_bandwidth.h"

#include "backends/shared/cache_rows.h"
#include "base/hash.h"
#include "memory/budget.h"
#include "shader_table.h"

#include <algorithm>

namespace redline {

namespace vulkan {

namespace {

std::string shapes_of(const DeviceReport& report) {
    std::string out;
    for (const MatrixShape& s : report.matrices)
        out += fmt::format("{}{}x{}x{} {}*{}+{}", out.empty() ? "" : ", ", s.m, s.n, s.k, component_name(s.a),
                           component_name(s.b), component_name(s.c));
    return out.empty() ? "none" : out;
}

// What can be planned with: the heaps that the device calls its own, or all of them where it shares the
// host's.
MemoryBudget budget_of(const DeviceReport& report) {
    uint64_t sum = 0;
    for (const Heap& heap : report.heaps)
        if (heap.local || report.integrated()) sum += heap.budget > heap.used ? heap.budget - heap.used : 0;
    // Left to the driver and the screen.
    sum -= std::min(sum, std::max<uint64_t>(sum / 16, uint64_t(128) << 20));
    const std::vector<KernelGpu> gpus = kernel_gpus();
    return gpu_budget(
        {report.budget ? "VK_EXT_memory_budget, less a reserve" : "Vulkan's heaps, less a reserve", sum},
        report.integrated(), find_gpu(gpus, report.pci), ttm_limit(), host_memory());
}

}  // namespace

VulkanBackend::VulkanBackend(std::unique_ptr<Device> device, std::unique_ptr<Memory> memory,
                             const std::string& cache_folder, uint64_t asked, const std::string& why)
    : DeviceBackend(std::move(device), std::move(memory)), pipelines_(*device_, cache_folder) {
    const DeviceReport& report = device_->report();
    info_.name = report.name;
    const std::string kinds = fmt::format(
        "subgroups of {}{}{}{}{}", device_->subgroup(), device_->use_dot() ? ", int8 dot products" : "",
        device_->use_matrix() ? ", matrix units" : "", device_->use_bfloat16() ? ", bfloat16" : "",
        device_->use_group_matrices() ? ", work-group matrices" : "");
    info_.detail = fmt::format("{}; {}; {}", report.driver, why, kinds);
    info_.identity = fmt::format("{}; {}; {}", report.name, report.driver, kinds);
    info_.unified = report.integrated();
    info_.on_cpu = report.type == VK_PHYSICAL_DEVICE_TYPE_CPU;
    info_.memory = asked > 0 ? asked_budget(asked) : budget_of(report);
    info_.wave = device_->subgroup();
}

Status VulkanBackend::find_fragments() {
    device_->fragments = RL_TRY(ask_fragments(*device_, *memory_, pipelines_));
    return {};
}

// Llama-3.1-8B Q4_K_M on an H200, 2026-11-30 and 2026-11-29.
double VulkanBackend::row_cost(uint32_t rows) const {
    if (uses_fragments(*device_).value != 0) return rows <= 1 ? 1.0 : rows <= 8 ? 1.57 : 2.05;
    return rows <= 1 ? 1.0 : rows <= 2 ? 1.54 : rows <= 4 ? 2.07 : 3.2;
}

bool VulkanBackend::has_kernels(const Format& format) const {
    const WeightLayout* layout = weight_layout(format);
    if (!layout) return false;
    const std::string name = fmt::format("embed.{}", layout->name);
    return std::any_of(all_shaders().begin(), all_shaders().end(),
                       [&](const Shader& shader) { return shader.name == name; });
}

uint64_t VulkanBackend::kernels_hash() const {
    Hash64 hash;
    for (const Shader& shader : all_shaders()) hash.add(std::as_bytes(shader.code));
    return hash.value();
}

Result<std::vector<std::unique_ptr<Executable>>> VulkanBackend::record_group(PlanGroup plans,
                                                                             WeightStore& weights,
                                                                             CacheStore& caches,
                                                                             Record mode) {
    auto made = RL_TRY(DeviceBackend::record_group(std::move(plans), weights, caches, mode));
    if (busy_)
        for (const auto& one : made) static_cast<VulkanExecutable&>(*one).keep_awake(*busy_);
    return made;
}

double VulkanBackend::measure_read_bandwidth() {
    if (bandwidth_ > 0.0) return bandwidth_;
    const uint64_t most = std::min({uint64_t(1) << 30, info_.memory.bytes / 4, device_->largest_buffer()});
    const Result<double> measured = read_bandwidth(*device_, *memory_, pipelines_, most);
    return measured ? bandwidth_ = measured.value() : 0.0;
}

static DeviceListing listing_of(const DeviceReport& report, size_t index) {
    DeviceListing out{fmt::format("vulkan:{}", index), report.name, report.hardware(), report.missing, {}};
    const std::string why_not = why_not_bfloat16(report), why_no_group = why_no_group_matrices(report);
    const auto yes = [](bool has, const char* used) { return std::string(has ? used : "no"); };
    out.facts = {{"type", std::string(type_name(report.type))},
                 {"driver", report.driver},
                 {"Vulkan", fmt::format("{}.{}.{}", VK_API_VERSION_MAJOR(report.api),
                                        VK_API_VERSION_MINOR(report.api), VK_API_VERSION_PATCH(report.api))}};
    for (size_t i = 0; i < report.heaps.size(); ++i) {
        const Heap& heap = report.heaps[i];
        out.facts.push_back(
            {fmt::format("heap {}", i),
             fmt::format("{} {}, {} free", format_bytes(heap.size),
                         heap.local ? "of the device" : "of the host",
                         format_bytes(heap.budget > heap.used ? heap.budget - heap.used : 0))});
    }
    const std::vector<DeviceListing::Fact> more = {
        {"PCI address", report.pci.empty() ? "unknown" : report.pci},
        {"memory to plan with", budget_of(report).text()},
        {"subgroups",
         report.min_subgroup == report.max_subgroup
             ? fmt::format("{}", report.subgroup)
             : fmt::format("{} ({} to {})", report.subgroup, report.min_subgroup, report.max_subgroup)},
        {"compute units", report.units > 0 ? fmt::format("{}", report.units) : std::string("unknown")},
        {"subgroup size control", yes(report.subgroup_control, "used")},
        {"integer dot product", report.dot_accelerated
                                    ? std::string("accelerated, used")
                                    : yes(report.dot, "yes, but not accelerated: not used")},
        {"fp16 arithmetic", yes(report.float16, "yes")},
        {"bfloat16", !report.bfloat16  ? "no"
                     : why_not.empty() ? "yes"
                                       : "yes, not used: " + why_not},
        {"matrix shapes", !report.matrices.empty() && !Pipelines::exists("linear_coop.f16")
                              ? "not used: " + std::string(kCompilerTooOld)
                              : shapes_of(report)},
        {"work-group matrices", report.group_matrices.empty() ? "no"
                                : why_no_group.empty()        ? "yes"
                                                              : "yes, not used: " + why_no_group},
        {"memory budget", yes(report.budget, "used")},
        {"largest buffer", uint64_t(report.limits.maxStorageBufferRange)},
        {"largest allocation", report.max_allocation},
        {"shared memory", uint64_t(report.limits.maxComputeSharedMemorySize)},
        {"work-group", uint64_t(report.limits.maxComputeWorkGroupInvocations)}};
    out.facts.insert(out.facts.end(), more.begin(), more.end());
    return out;
}

static Result<Level> level_named(const std::string& name, bool& forced) {
    forced = !name.empty();
    if (name.empty() || name == "workgroup") return Level::workgroup;
    if (name == "bfloat16") return Level::bfloat16;
    if (name == "matrix") return Level::matrix;
    if (name == "dot") return Level::dot;
    if (name == "plain") return Level::plain;
    return error(
        "no level of Vulkan kernels is called {}; these are: plain, dot, matrix, bfloat16, "
        "workgroup",
        name);
}

Result<std::unique_ptr<VulkanBackend>> open_vulkan_backend(const BackendOptions& options) {
    bool forced = false;
    const Level level = RL_TRY(level_named(options.level, forced));
    std::shared_ptr<Instance> instance = RL_TRY(Instance::get());
    const std::vector<DeviceReport> devices = RL_TRY(instance->devices());
    std::string why;
    const size_t index = RL_TRY(choose_device(devices, options.device, why));
    auto device = RL_TRY(Device::open(instance, devices[index], level, forced));
    auto memory = RL_TRY(Memory::create(*device, options.guarded));
    if (options.most_groups > 0) device->most_groups = options.most_groups;
    const bool awake =
        options.keep_awake && !devices[index].integrated() && KeepBusy::possible(devices[index]);
    auto backend = std::make_unique<VulkanBackend>(std::move(device), std::move(memory), options.cache_folder,
                                                   options.memory, why);
    RL_TRY(backend->find_fragments());
    if (awake) backend->keep_awake();
    return backend;
}

}  // namespace vulkan

static Result<std::unique_ptr<Backend>> open_vulkan(const BackendOptions& options) {
    return std::unique_ptr<Backend>(RL_TRY(vulkan::open_vulkan_backend(options)));
}

static Result<std::vector<DeviceListing>> list_vulkan() {
    std::shared_ptr<vulkan::Instance> instance = RL_TRY(vulkan::Instance::get());
    const std::vector<vulkan::DeviceReport> devices = RL_TRY(instance->devices());
    if (devices.empty()) {
        std::string why;
        return choose_device(devices, "", why).error();
    }
    std::vector<DeviceListing> out;
    for (size_t i = 0; i < devices.size(); ++i) out.push_back(listing_of(devices[i], i));
    return out;
}

extern const BackendEntry vulkan_backend;
const BackendEntry vulkan_backend = {"vulkan", 10, open_vulkan, list_vulkan};

}  // namespace redline
