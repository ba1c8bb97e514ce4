// What physical devices report, and the choice among them.
#include "pipelines.h"

#include "memory/budget.h"

#include <algorithm>
#include <charconv>
#include <cstdlib>

namespace redline::vulkan {

std::string_view type_name(VkPhysicalDeviceType type) {
    switch (type) {
        case VK_PHYSICAL_DEVICE_TYPE_DISCRETE_GPU:
            return "discrete GPU";
        case VK_PHYSICAL_DEVICE_TYPE_INTEGRATED_GPU:
            return "integrated GPU";
        case VK_PHYSICAL_DEVICE_TYPE_VIRTUAL_GPU:
            return "virtual GPU";
        case VK_PHYSICAL_DEVICE_TYPE_CPU:
            return "Vulkan on the CPU";
        default:
            return "other";
    }
}

std::string_view component_name(VkComponentTypeKHR type) {
    switch (int(type)) {
        case VK_COMPONENT_TYPE_FLOAT16_KHR:
            return "f16";
        case VK_COMPONENT_TYPE_FLOAT32_KHR:
            return "f32";
        case VK_COMPONENT_TYPE_SINT8_KHR:
            return "s8";
        case VK_COMPONENT_TYPE_SINT32_KHR:
            return "s32";
        case VK_COMPONENT_TYPE_UINT8_KHR:
            return "u8";
        case VK_COMPONENT_TYPE_UINT32_KHR:
            return "u32";
        case int(kBfloat16):
            return "bf16";
        default:
            return "other";
    }
}

const MatrixShape* matrix_shape(const DeviceReport& report, VkComponentTypeKHR factors) {
    const MatrixShape* best = nullptr;
    for (const MatrixShape& s : report.matrices) {
        const bool wanted = s.a == factors && s.b == factors && s.c == VK_COMPONENT_TYPE_FLOAT32_KHR &&
                            s.result == VK_COMPONENT_TYPE_FLOAT32_KHR;
        // Tiles are cut in multiples of 16 or 8.
        const bool fits = (s.m == 8 || s.m == 16) && (s.n == 8 || s.n == 16) && (s.k == 8 || s.k == 16);
        if (wanted && fits && (!best || s.m * s.n * s.k > best->m * best->n * best->k)) best = &s;
    }
    return best;
}

const MatrixShape* int8_shape(const DeviceReport& report) {
    const MatrixShape* best = nullptr;
    for (const MatrixShape& s : report.matrices) {
        const bool wanted = s.a == VK_COMPONENT_TYPE_SINT8_KHR && s.b == s.a &&
                            s.c == VK_COMPONENT_TYPE_SINT32_KHR && s.result == s.c;
        const bool fits =
            (s.m == 8 || s.m == 16) && (s.n == 8 || s.n == 16) && (s.k == 8 || s.k == 16 || s.k == 32);
        // Sums are scaled and added up in matrices of floats.
        const bool floats = std::ranges::any_of(report.matrices, [&](const MatrixShape& other) {
            return other.result == VK_COMPONENT_TYPE_FLOAT32_KHR && other.m == s.m && other.n == s.n;
        });
        if (wanted && fits && floats && (!best || s.m * s.n * s.k > best->m * best->n * best->k)) best = &s;
    }
    return report.int8 ? best : nullptr;
}

std::string why_not_bfloat16(const DeviceReport& report) {
    if (!report.bfloat16) return "the driver does not know it";
    if (!report.bfloat16_matrices || !matrix_shape(report, kBfloat16))
        return "no matrix shape for it has sums in f32";
    if (!Pipelines::exists("linear_coop_bfloat.bf16")) return kCompilerTooOld;
    return "";
}

std::string why_no_group_matrices(const DeviceReport& report) {
    if (report.group_matrices.empty()) return "the driver does not know them";
    if (!Pipelines::exists("linear_coop2.f16")) return kCompilerTooOld;
    return "";
}

// Whether buffers may be named, which is for layers that are asked for: others need not know.
static bool has_names() {
    if (!std::getenv("VK_INSTANCE_LAYERS")) return false;
    uint32_t count = 0;
    if (vkEnumerateInstanceExtensionProperties(nullptr, &count, nullptr) != VK_SUCCESS) return false;
    std::vector<VkExtensionProperties> known(count);
    if (vkEnumerateInstanceExtensionProperties(nullptr, &count, known.data()) != VK_SUCCESS) return false;
    return std::any_of(known.begin(), known.end(), [](const VkExtensionProperties& one) {
        return std::string_view(one.extensionName) == VK_EXT_DEBUG_UTILS_EXTENSION_NAME;
    });
}

Result<std::shared_ptr<Instance>> Instance::get() {
    // Function pointers are process-wide, so the instance is, too; it goes with its last user.
    static std::mutex mutex;
    static std::weak_ptr<Instance> shared;
    const std::lock_guard lock(mutex);
    if (auto instance = shared.lock()) return instance;
    if (volkInitialize() != VK_SUCCESS)
        return error(
            "there is no Vulkan loader (libvulkan.so.1) on this machine; install libvulkan1 and the driver's "
            "Vulkan package (mesa-vulkan-drivers for AMD and Intel)");
    if (volkGetInstanceVersion() < VK_API_VERSION_1_2)
        return error("the Vulkan loader is older than 1.2; install a newer libvulkan1");
    VkApplicationInfo application = {VK_STRUCTURE_TYPE_APPLICATION_INFO};
    application.pApplicationName = "redline";
    application.apiVersion = std::min<uint32_t>(volkGetInstanceVersion(), VK_API_VERSION_1_3);
    VkInstanceCreateInfo create = {VK_STRUCTURE_TYPE_INSTANCE_CREATE_INFO};
    create.pApplicationInfo = &application;
    const char* const names = VK_EXT_DEBUG_UTILS_EXTENSION_NAME;
    create.enabledExtensionCount = has_names() ? 1 : 0;
    create.ppEnabledExtensionNames = &names;
    std::shared_ptr<Instance> made(new Instance);
    const VkResult result = vkCreateInstance(&create, nullptr, &made->handle_);
    if (result == VK_ERROR_INCOMPATIBLE_DRIVER)
        return error(
            "there is a Vulkan loader on this machine but no Vulkan driver that works; install the driver's "
            "Vulkan package (mesa-vulkan-drivers for AMD and Intel); redline doctor looks at those that are "
            "there");
    RL_TRY(checked(result, "opening Vulkan"));
    volkLoadInstance(made->handle_);
    shared = made;
    return made;
}

Instance::~Instance() {
    if (handle_) vkDestroyInstance(handle_, nullptr);
}

Result<std::vector<DeviceReport>> Instance::devices() const {
    uint32_t count = 0;
    RL_TRY(checked(vkEnumeratePhysicalDevices(handle_, &count, nullptr), "listing devices"));
    std::vector<VkPhysicalDevice> handles(count);
    RL_TRY(checked(vkEnumeratePhysicalDevices(handle_, &count, handles.data()), "listing devices"));
    std::vector<DeviceReport> out;
    for (const VkPhysicalDevice handle : handles) out.push_back(RL_TRY(describe(handle)));
    return out;
}

namespace {

Result<std::vector<std::string>> extensions_of(VkPhysicalDevice device) {
    constexpr std::string_view kDoing = "listing a device's extensions";
    uint32_t count = 0;
    RL_TRY(checked(vkEnumerateDeviceExtensionProperties(device, nullptr, &count, nullptr), kDoing));
    std::vector<VkExtensionProperties> list(count);
    RL_TRY(checked(vkEnumerateDeviceExtensionProperties(device, nullptr, &count, list.data()), kDoing));
    std::vector<std::string> names;
    for (const VkExtensionProperties& e : list) names.emplace_back(e.extensionName);
    return names;
}

// Extensions, or the versions of Vulkan that include them.
struct Known {
    bool dot, control, matrix, bfloat16, group_matrix, clock, pci, amd_units, nvidia_units;
};

void read_properties(DeviceReport& report, const Known& known) {
    VkPhysicalDeviceProperties2 properties = {VK_STRUCTURE_TYPE_PHYSICAL_DEVICE_PROPERTIES_2};
    VkPhysicalDeviceVulkan11Properties v11 = {VK_STRUCTURE_TYPE_PHYSICAL_DEVICE_VULKAN_1_1_PROPERTIES};
    VkPhysicalDeviceVulkan12Properties v12 = {VK_STRUCTURE_TYPE_PHYSICAL_DEVICE_VULKAN_1_2_PROPERTIES};
    VkPhysicalDeviceShaderIntegerDotProductProperties dot = {
        VK_STRUCTURE_TYPE_PHYSICAL_DEVICE_SHADER_INTEGER_DOT_PRODUCT_PROPERTIES};
    VkPhysicalDeviceSubgroupSizeControlProperties control = {
        VK_STRUCTURE_TYPE_PHYSICAL_DEVICE_SUBGROUP_SIZE_CONTROL_PROPERTIES};
    properties.pNext = &v11;
    v11.pNext = &v12;
    void** next = &v12.pNext;
    if (known.dot) {
        *next = &dot;
        next = &dot.pNext;
    }
    if (known.control) {
        *next = &control;
        next = &control.pNext;
    }
    VkPhysicalDeviceCooperativeMatrix2PropertiesNV group_matrix = {};
    group_matrix.sType = kGroupMatrixProperties;
    if (known.group_matrix) {
        *next = &group_matrix;
        next = &group_matrix.pNext;
    }
    VkPhysicalDevicePCIBusInfoPropertiesEXT pci = {
        VK_STRUCTURE_TYPE_PHYSICAL_DEVICE_PCI_BUS_INFO_PROPERTIES_EXT};
    if (known.pci) {
        *next = &pci;
        next = &pci.pNext;
    }
    VkPhysicalDeviceShaderCoreProperties2AMD amd = {
        VK_STRUCTURE_TYPE_PHYSICAL_DEVICE_SHADER_CORE_PROPERTIES_2_AMD};
    VkPhysicalDeviceShaderSMBuiltinsPropertiesNV nvidia = {
        VK_STRUCTURE_TYPE_PHYSICAL_DEVICE_SHADER_SM_BUILTINS_PROPERTIES_NV};
    if (known.amd_units)
        *next = &amd;
    else if (known.nvidia_units)
        *next = &nvidia;
    vkGetPhysicalDeviceProperties2(report.handle, &properties);
    report.units = amd.activeComputeUnitCount + nvidia.shaderSMCount;
    report.driver = fmt::format("{}, {}", v12.driverName, v12.driverInfo);
    if (known.pci)
        report.pci = fmt::format("{:04x}:{:02x}:{:02x}.{:x}", pci.pciDomain, pci.pciBus, pci.pciDevice,
                                 pci.pciFunction);
    report.limits = properties.properties.limits;
    report.group_matrix_shared = group_matrix.cooperativeMatrixWorkgroupScopeReservedSharedMemory;
    report.max_allocation = v11.maxMemoryAllocationSize;
    report.subgroup = report.min_subgroup = report.max_subgroup = v11.subgroupSize;
    if (known.control) {
        report.min_subgroup = control.minSubgroupSize;
        report.max_subgroup = control.maxSubgroupSize;
        report.subgroup_control = (control.requiredSubgroupSizeStages & VK_SHADER_STAGE_COMPUTE_BIT) != 0;
    }
    if (known.dot) report.dot_accelerated = dot.integerDotProduct4x8BitPackedSignedAccelerated;
    for (const uint8_t byte : v11.deviceUUID) report.uuid += fmt::format("{:02x}", byte);
    for (const uint8_t byte : properties.properties.pipelineCacheUUID)
        report.uuid += fmt::format("{:02x}", byte);
    const bool arithmetic = (v11.subgroupSupportedOperations & VK_SUBGROUP_FEATURE_ARITHMETIC_BIT) &&
                            (v11.subgroupSupportedStages & VK_SHADER_STAGE_COMPUTE_BIT);
    constexpr VkSubgroupFeatureFlags kWithin =
        VK_SUBGROUP_FEATURE_CLUSTERED_BIT | VK_SUBGROUP_FEATURE_SHUFFLE_BIT;
    report.clustered = (v11.subgroupSupportedOperations & kWithin) == kWithin;
    if (!arithmetic) report.missing = "subgroup arithmetic in compute shaders";
    if (v11.subgroupSize < 4 || v11.subgroupSize > 128)
        report.missing = fmt::format("a subgroup size of 4 to 128 (it has {})", v11.subgroupSize);
}

void read_features(DeviceReport& report, const Known& known) {
    VkPhysicalDeviceFeatures2 features = {VK_STRUCTURE_TYPE_PHYSICAL_DEVICE_FEATURES_2};
    VkPhysicalDeviceVulkan11Features v11 = {VK_STRUCTURE_TYPE_PHYSICAL_DEVICE_VULKAN_1_1_FEATURES};
    VkPhysicalDeviceVulkan12Features v12 = {VK_STRUCTURE_TYPE_PHYSICAL_DEVICE_VULKAN_1_2_FEATURES};
    VkPhysicalDeviceShaderIntegerDotProductFeatures dot = {
        VK_STRUCTURE_TYPE_PHYSICAL_DEVICE_SHADER_INTEGER_DOT_PRODUCT_FEATURES};
    VkPhysicalDeviceSubgroupSizeControlFeatures control = {
        VK_STRUCTURE_TYPE_PHYSICAL_DEVICE_SUBGROUP_SIZE_CONTROL_FEATURES};
    VkPhysicalDeviceCooperativeMatrixFeaturesKHR matrix = {};
    matrix.sType = kMatrixFeatures;
    VkPhysicalDeviceShaderBfloat16FeaturesKHR bfloat16 = {};
    bfloat16.sType = kBfloat16Features;
    features.pNext = &v11;
    v11.pNext = &v12;
    void** next = &v12.pNext;
    const auto chain = [&next](auto& item) {
        *next = &item;
        next = &item.pNext;
    };
    if (known.dot) chain(dot);
    if (known.control) chain(control);
    if (known.matrix) chain(matrix);
    if (known.bfloat16) chain(bfloat16);
    VkPhysicalDeviceCooperativeMatrix2FeaturesNV group_matrix = {};
    group_matrix.sType = kGroupMatrixFeatures;
    if (known.group_matrix) chain(group_matrix);
    VkPhysicalDeviceShaderClockFeaturesKHR clock = {
        VK_STRUCTURE_TYPE_PHYSICAL_DEVICE_SHADER_CLOCK_FEATURES_KHR};
    if (known.clock) chain(clock);
    vkGetPhysicalDeviceFeatures2(report.handle, &features);
    report.float16 = v12.shaderFloat16;
    report.int8 = v12.shaderInt8;
    report.dot = known.dot && dot.shaderIntegerDotProduct;
    report.dot_accelerated = report.dot && report.dot_accelerated;
    report.subgroup_control = report.subgroup_control && control.subgroupSizeControl;
    report.full_subgroups = known.control && control.computeFullSubgroups;
    if (!matrix.cooperativeMatrix || !v12.vulkanMemoryModel || !v12.vulkanMemoryModelDeviceScope)
        report.matrices.clear();
    if (report.matrices.empty() || !group_matrix.cooperativeMatrixWorkgroupScope ||
        !group_matrix.cooperativeMatrixFlexibleDimensions ||
        !group_matrix.cooperativeMatrixPerElementOperations ||
        !group_matrix.cooperativeMatrixTensorAddressing)
        report.group_matrices.clear();
    report.bfloat16 = bfloat16.shaderBFloat16Type;
    report.shader_clock = clock.shaderDeviceClock;
    report.bfloat16_matrices =
        report.bfloat16 && bfloat16.shaderBFloat16CooperativeMatrix && !report.matrices.empty();
    if (!v11.storageBuffer16BitAccess) report.missing = "16-bit storage (storageBuffer16BitAccess)";
    if (!v12.storageBuffer8BitAccess) report.missing = "8-bit storage (storageBuffer8BitAccess)";
}

void read_matrices(DeviceReport& report, VkInstance instance) {
    const auto query = reinterpret_cast<PFN_vkGetPhysicalDeviceCooperativeMatrixPropertiesKHR>(
        vkGetInstanceProcAddr(instance, "vkGetPhysicalDeviceCooperativeMatrixPropertiesKHR"));
    uint32_t count = 0;
    if (!query || query(report.handle, &count, nullptr) != VK_SUCCESS) return;
    std::vector<VkCooperativeMatrixPropertiesKHR> list(count);
    for (auto& item : list) item = {kMatrixProperties};
    if (query(report.handle, &count, list.data()) != VK_SUCCESS) return;
    for (const auto& p : list)
        if (p.scope == VK_SCOPE_SUBGROUP_KHR && !p.saturatingAccumulation)
            report.matrices.push_back({p.MSize, p.NSize, p.KSize, p.AType, p.BType, p.CType, p.ResultType});
}

void read_group_matrices(DeviceReport& report, VkInstance instance) {
    const auto query =
        reinterpret_cast<PFN_vkGetPhysicalDeviceCooperativeMatrixFlexibleDimensionsPropertiesNV>(
            vkGetInstanceProcAddr(instance,
                                  "vkGetPhysicalDeviceCooperativeMatrixFlexibleDimensionsPropertiesNV"));
    uint32_t count = 0;
    if (!query || query(report.handle, &count, nullptr) != VK_SUCCESS) return;
    std::vector<VkCooperativeMatrixFlexibleDimensionsPropertiesNV> list(count);
    for (auto& item : list) item = {kGroupMatrixShapes};
    if (query(report.handle, &count, list.data()) != VK_SUCCESS) return;
    for (const auto& p : list)
        if (p.scope == kScopeWorkgroup && !p.saturatingAccumulation && p.AType == p.BType &&
            p.CType == VK_COMPONENT_TYPE_FLOAT32_KHR && p.ResultType == VK_COMPONENT_TYPE_FLOAT32_KHR)
            report.group_matrices.push_back(
                {p.MGranularity, p.NGranularity, p.KGranularity, p.AType, p.workgroupInvocations});
}

void read_memory(DeviceReport& report) {
    VkPhysicalDeviceMemoryProperties2 memory = {VK_STRUCTURE_TYPE_PHYSICAL_DEVICE_MEMORY_PROPERTIES_2};
    VkPhysicalDeviceMemoryBudgetPropertiesEXT budget = {
        VK_STRUCTURE_TYPE_PHYSICAL_DEVICE_MEMORY_BUDGET_PROPERTIES_EXT};
    if (report.budget) memory.pNext = &budget;
    vkGetPhysicalDeviceMemoryProperties2(report.handle, &memory);
    for (uint32_t i = 0; i < memory.memoryProperties.memoryHeapCount; ++i) {
        const VkMemoryHeap& heap = memory.memoryProperties.memoryHeaps[i];
        report.heaps.push_back({heap.size, (heap.flags & VK_MEMORY_HEAP_DEVICE_LOCAL_BIT) != 0,
                                report.budget ? budget.heapBudget[i] : heap.size,
                                report.budget ? budget.heapUsage[i] : 0});
    }
}

void find_queue(DeviceReport& report) {
    uint32_t count = 0;
    vkGetPhysicalDeviceQueueFamilyProperties(report.handle, &count, nullptr);
    std::vector<VkQueueFamilyProperties> families(count);
    vkGetPhysicalDeviceQueueFamilyProperties(report.handle, &count, families.data());
    for (uint32_t i = 0; i < count; ++i)
        if (families[i].queueFlags & VK_QUEUE_COMPUTE_BIT) {
            report.queue_family = i;
            return;
        }
    report.missing = "a queue that computes";
}

}  // namespace

Result<DeviceReport> Instance::describe(VkPhysicalDevice handle) const {
    DeviceReport report;
    report.handle = handle;
    VkPhysicalDeviceProperties basic;
    vkGetPhysicalDeviceProperties(handle, &basic);
    report.name = basic.deviceName;
    report.type = basic.deviceType;
    report.api = basic.apiVersion;
    report.vendor = basic.vendorID;
    report.limits = basic.limits;
    if (basic.apiVersion < VK_API_VERSION_1_2) {
        report.missing = fmt::format("Vulkan 1.2 (it has {}.{})", VK_API_VERSION_MAJOR(basic.apiVersion),
                                     VK_API_VERSION_MINOR(basic.apiVersion));
        return report;
    }
    const std::vector<std::string> extensions = RL_TRY(extensions_of(handle));
    const auto has = [&](std::string_view name) {
        return std::find(extensions.begin(), extensions.end(), name) != extensions.end();
    };
    const bool v13 = basic.apiVersion >= VK_API_VERSION_1_3;
    Known known = {};
    known.dot = v13 || has(VK_KHR_SHADER_INTEGER_DOT_PRODUCT_EXTENSION_NAME);
    known.control = v13 || has(VK_EXT_SUBGROUP_SIZE_CONTROL_EXTENSION_NAME);
    known.matrix = has(VK_KHR_COOPERATIVE_MATRIX_EXTENSION_NAME);
    known.bfloat16 = has(VK_KHR_SHADER_BFLOAT16_EXTENSION_NAME);
    // Its kernels are SPIR-V 1.6.
    known.group_matrix = v13 && known.matrix && has(VK_NV_COOPERATIVE_MATRIX_2_EXTENSION_NAME);
    known.amd_units = has(VK_AMD_SHADER_CORE_PROPERTIES_2_EXTENSION_NAME);
    known.nvidia_units = has(VK_NV_SHADER_SM_BUILTINS_EXTENSION_NAME);
    known.clock = has(VK_KHR_SHADER_CLOCK_EXTENSION_NAME);
    known.pci = has(VK_EXT_PCI_BUS_INFO_EXTENSION_NAME);
    report.budget = has(VK_EXT_MEMORY_BUDGET_EXTENSION_NAME);
    report.pipeline_facts = has(VK_KHR_PIPELINE_EXECUTABLE_PROPERTIES_EXTENSION_NAME);
    read_properties(report, known);
    if (known.matrix) read_matrices(report, handle_);
    if (known.group_matrix) read_group_matrices(report, handle_);
    read_features(report, known);
    read_memory(report);
    find_queue(report);
    constexpr uint32_t kBindings = 14, kShared = 16384, kThreads = 256;
    if (report.limits.maxPerStageDescriptorStorageBuffers < kBindings)
        report.missing = fmt::format("{} storage buffers per shader (it has {})", kBindings,
                                     report.limits.maxPerStageDescriptorStorageBuffers);
    if (report.limits.maxComputeSharedMemorySize < kShared) report.missing = "16 KiB of shared memory";
    if (report.limits.maxComputeWorkGroupInvocations < kThreads)
        report.missing = "work-groups of 256 invocations";
    return report;
}

static std::string lower_case(std::string text) {
    for (char& c : text) c = char(std::tolower(static_cast<unsigned char>(c)));
    return text;
}

static std::string listed(const std::vector<DeviceReport>& devices) {
    std::string out;
    for (size_t i = 0; i < devices.size(); ++i)
        out += fmt::format("{}vulkan:{} {}", out.empty() ? "" : ", ", i, devices[i].name);
    return out;
}

static uint64_t local_bytes(const DeviceReport& d) {
    uint64_t sum = 0;
    for (const Heap& heap : d.heaps)
        if (heap.local) sum += heap.size;
    return sum;
}

static int rank_of(VkPhysicalDeviceType type) {
    switch (type) {
        case VK_PHYSICAL_DEVICE_TYPE_DISCRETE_GPU:
            return 3;
        case VK_PHYSICAL_DEVICE_TYPE_INTEGRATED_GPU:
            return 2;
        case VK_PHYSICAL_DEVICE_TYPE_VIRTUAL_GPU:
            return 1;
        default:
            return 0;
    }
}

Result<size_t> choose_device(const std::vector<DeviceReport>& devices, const std::string& wanted,
                             std::string& why) {
    if (devices.empty())
        return error(
            "Vulkan finds no device; is the driver's Vulkan package installed, and may "
            "this user open /dev/dri/renderD*?");
    if (!wanted.empty()) {
        size_t index = devices.size();
        const auto [end, code] = std::from_chars(wanted.data(), wanted.data() + wanted.size(), index);
        const bool number = code == std::errc() && end == wanted.data() + wanted.size();
        for (size_t i = 0; !number && i < devices.size() && index == devices.size(); ++i)
            if (lower_case(devices[i].name).find(lower_case(wanted)) != std::string::npos) index = i;
        if (index >= devices.size())
            return error("no Vulkan device is called \"{}\"; these are there: {}", wanted, listed(devices));
        if (!devices[index].usable())
            return error("{} cannot be used: it lacks {}", devices[index].name, devices[index].missing);
        why = "asked for";
        return index;
    }
    size_t best = devices.size();
    for (size_t i = 0; i < devices.size(); ++i) {
        if (!devices[i].usable()) continue;
        const auto better = [](const DeviceReport& a, const DeviceReport& b) {
            if (rank_of(a.type) != rank_of(b.type)) return rank_of(a.type) > rank_of(b.type);
            return local_bytes(a) > local_bytes(b);
        };
        if (best == devices.size() || better(devices[i], devices[best])) best = i;
    }
    if (best == devices.size())
        return error("no Vulkan device can be used: {} lacks {}", devices[0].name, devices[0].missing);
    why = devices.size() == 1
              ? "the only device"
              : fmt::format("{} with {} of its own memory, the best of {}", type_name(devices[best].type),
                            format_bytes(local_bytes(devices[best])), devices.size());
    return best;
}

}  // namespace redline::vulkan
