#include "device.h"

#include <algorithm>
#include <chrono>
#include <thread>

namespace redline::vulkan {

namespace {

// Enabled features of a device, chained; each only when the device has it.
struct Features {
    VkPhysicalDeviceFeatures2 base = {VK_STRUCTURE_TYPE_PHYSICAL_DEVICE_FEATURES_2};
    VkPhysicalDeviceVulkan11Features v11 = {VK_STRUCTURE_TYPE_PHYSICAL_DEVICE_VULKAN_1_1_FEATURES};
    VkPhysicalDeviceVulkan12Features v12 = {VK_STRUCTURE_TYPE_PHYSICAL_DEVICE_VULKAN_1_2_FEATURES};
    VkPhysicalDeviceShaderIntegerDotProductFeatures dot = {
        VK_STRUCTURE_TYPE_PHYSICAL_DEVICE_SHADER_INTEGER_DOT_PRODUCT_FEATURES};
    VkPhysicalDeviceSubgroupSizeControlFeatures control = {
        VK_STRUCTURE_TYPE_PHYSICAL_DEVICE_SUBGROUP_SIZE_CONTROL_FEATURES};
    VkPhysicalDeviceCooperativeMatrixFeaturesKHR matrix = {};
    VkPhysicalDeviceShaderBfloat16FeaturesKHR bfloat16 = {};
    VkPhysicalDeviceCooperativeMatrix2FeaturesNV group_matrix = {};
    VkPhysicalDevicePipelineExecutablePropertiesFeaturesKHR facts = {
        VK_STRUCTURE_TYPE_PHYSICAL_DEVICE_PIPELINE_EXECUTABLE_PROPERTIES_FEATURES_KHR};
    VkPhysicalDeviceShaderClockFeaturesKHR clock = {
        VK_STRUCTURE_TYPE_PHYSICAL_DEVICE_SHADER_CLOCK_FEATURES_KHR};
    std::vector<const char*> extensions;

    explicit Features(const DeviceReport& report) {
        const bool v13 = report.api >= VK_API_VERSION_1_3;
        base.pNext = &v11;
        v11.pNext = &v12;
        void** next = &v12.pNext;
        const auto chain = [&next](auto& item) {
            *next = &item;
            next = &item.pNext;
        };
        base.features.shaderStorageBufferArrayDynamicIndexing =
            available(report).shaderStorageBufferArrayDynamicIndexing;
        base.features.shaderInt16 = available(report).shaderInt16;
        v11.storageBuffer16BitAccess = VK_TRUE;
        v12.storageBuffer8BitAccess = VK_TRUE;
        v12.shaderFloat16 = report.float16;
        v12.shaderInt8 = report.int8;
        if (report.dot) {
            dot.shaderIntegerDotProduct = VK_TRUE;
            chain(dot);
            if (!v13) extensions.push_back(VK_KHR_SHADER_INTEGER_DOT_PRODUCT_EXTENSION_NAME);
        }
        if (report.subgroup_control || report.full_subgroups) {
            control.subgroupSizeControl = report.subgroup_control;
            control.computeFullSubgroups = report.full_subgroups;
            chain(control);
            if (!v13) extensions.push_back(VK_EXT_SUBGROUP_SIZE_CONTROL_EXTENSION_NAME);
        }
        if (!report.matrices.empty()) {
            v12.vulkanMemoryModel = VK_TRUE;  // the kernels for matrices are written in it
            v12.vulkanMemoryModelDeviceScope = VK_TRUE;
            matrix.sType = kMatrixFeatures;
            matrix.cooperativeMatrix = VK_TRUE;
            chain(matrix);
            extensions.push_back(VK_KHR_COOPERATIVE_MATRIX_EXTENSION_NAME);
        }
        if (report.bfloat16_matrices) {
            bfloat16.sType = kBfloat16Features;
            bfloat16.shaderBFloat16Type = VK_TRUE;
            bfloat16.shaderBFloat16CooperativeMatrix = VK_TRUE;
            chain(bfloat16);
            extensions.push_back(VK_KHR_SHADER_BFLOAT16_EXTENSION_NAME);
        }
        if (!report.group_matrices.empty()) {
            group_matrix.sType = kGroupMatrixFeatures;
            group_matrix.cooperativeMatrixWorkgroupScope = VK_TRUE;
            group_matrix.cooperativeMatrixFlexibleDimensions = VK_TRUE;
            group_matrix.cooperativeMatrixPerElementOperations = VK_TRUE;
            group_matrix.cooperativeMatrixTensorAddressing = VK_TRUE;
            chain(group_matrix);
            extensions.push_back(VK_NV_COOPERATIVE_MATRIX_2_EXTENSION_NAME);
        }
        if (report.pipeline_facts) {
            facts.pipelineExecutableInfo = VK_TRUE;
            chain(facts);
            extensions.push_back(VK_KHR_PIPELINE_EXECUTABLE_PROPERTIES_EXTENSION_NAME);
        }
        if (report.shader_clock) {
            clock.shaderDeviceClock = VK_TRUE;
            chain(clock);
            extensions.push_back(VK_KHR_SHADER_CLOCK_EXTENSION_NAME);
        }
        if (report.budget) extensions.push_back(VK_EXT_MEMORY_BUDGET_EXTENSION_NAME);
    }

private:
    static VkPhysicalDeviceFeatures available(const DeviceReport& report) {
        VkPhysicalDeviceFeatures all;
        vkGetPhysicalDeviceFeatures(report.handle, &all);
        return all;
    }
};

}  // namespace

Result<std::unique_ptr<Device>> Device::open(std::shared_ptr<Instance> instance, DeviceReport report,
                                             Level level, bool forced) {
    std::unique_ptr<Device> made(new Device(std::move(instance), std::move(report)));
    const DeviceReport& r = made->report_;
    made->use_clustered_ = level >= Level::dot && r.clustered && r.subgroup >= 8;
    made->use_dot_ = level >= Level::dot && (forced ? r.dot : r.dot_accelerated);
    made->use_matrix_ = level >= Level::matrix && !r.matrices.empty() && r.float16;
    made->pace_.rates = Pace::rates_of(r.type, made->use_matrix_);
    made->use_bfloat16_ = level >= Level::bfloat16 && why_not_bfloat16(r).empty();
    made->use_group_matrices_ =
        level >= Level::workgroup && made->use_matrix_ && why_no_group_matrices(r).empty();
    const float priority = 1.0f;
    VkDeviceQueueCreateInfo queue = {VK_STRUCTURE_TYPE_DEVICE_QUEUE_CREATE_INFO};
    queue.queueFamilyIndex = r.queue_family;
    queue.queueCount = 1;
    queue.pQueuePriorities = &priority;
    Features features(r);
    VkDeviceCreateInfo create = {VK_STRUCTURE_TYPE_DEVICE_CREATE_INFO};
    create.pNext = &features.base;
    create.queueCreateInfoCount = 1;
    create.pQueueCreateInfos = &queue;
    create.enabledExtensionCount = uint32_t(features.extensions.size());
    create.ppEnabledExtensionNames = features.extensions.data();
    RL_TRY(checked(vkCreateDevice(r.handle, &create, nullptr, &made->handle_), "opening " + r.name));
    vkGetDeviceQueue(made->handle_, r.queue_family, 0, &made->queue_);
    VkCommandPoolCreateInfo pool = {VK_STRUCTURE_TYPE_COMMAND_POOL_CREATE_INFO};
    pool.flags = VK_COMMAND_POOL_CREATE_RESET_COMMAND_BUFFER_BIT;
    pool.queueFamilyIndex = r.queue_family;
    RL_TRY(
        checked(vkCreateCommandPool(made->handle_, &pool, nullptr, &made->pool_), "making a command pool"));
    made->once_ = RL_TRY(made->make_fence());
    return made;
}

Device::~Device() {
    if (!handle_) return;
    vkDeviceWaitIdle(handle_);
    if (once_) vkDestroyFence(handle_, once_, nullptr);
    if (pool_) vkDestroyCommandPool(handle_, pool_, nullptr);
    vkDestroyDevice(handle_, nullptr);
}

VkInstance Device::instance() const {
    return instance_->handle();
}

Result<VkFence> Device::make_fence() const {
    VkFenceCreateInfo create = {VK_STRUCTURE_TYPE_FENCE_CREATE_INFO};
    VkFence fence = VK_NULL_HANDLE;
    RL_TRY(checked(vkCreateFence(handle_, &create, nullptr, &fence), "making a fence"));
    return fence;
}

Status Device::submit(std::span<const VkCommandBuffer> buffers, VkFence fence) {
    VkSubmitInfo submit = {VK_STRUCTURE_TYPE_SUBMIT_INFO};
    submit.commandBufferCount = uint32_t(buffers.size());
    submit.pCommandBuffers = buffers.data();
    VkResult result = VK_SUCCESS;
    {
        const std::lock_guard lock(queue_mutex_);
        // Here and not after the wait, so that a step that ended early leaves nothing to mend.
        if (fence) result = vkResetFences(handle_, 1, &fence);
        if (result == VK_SUCCESS) result = vkQueueSubmit(queue_, 1, &submit, fence);
    }
    return settled(result, "handing work to the device");
}

void Device::settle() {
    const std::lock_guard lock(queue_mutex_);
    if (vkDeviceWaitIdle(handle_) == VK_ERROR_DEVICE_LOST) lost_ = true;
}

Status Device::settled(VkResult result, std::string_view doing) {
    if (result == VK_SUCCESS) return {};
    if (result == VK_ERROR_DEVICE_LOST) lost_ = true;
    settle();
    return checked(result, doing);
}

Status Device::wait(VkFence fence, std::string_view doing) {
    // A token's work is over sooner than a sleeping thread wakes up; a device that is this CPU needs the
    // core.
    if (report_.hardware()) {
        const auto until = std::chrono::steady_clock::now() + std::chrono::milliseconds(4);
        while (std::chrono::steady_clock::now() < until) {
            const VkResult state = vkGetFenceStatus(handle_, fence);
            if (state == VK_NOT_READY) continue;
            return settled(state, doing);
        }
    }
    constexpr uint64_t kSlice = 1000000000;
    VkResult result = VK_TIMEOUT;
    while (result == VK_TIMEOUT) result = vkWaitForFences(handle_, 1, &fence, VK_TRUE, kSlice);
    return settled(result, doing);
}

Status Device::run_once(const std::function<void(VkCommandBuffer)>& record, std::string_view doing) {
    VkCommandBufferAllocateInfo allocate = {VK_STRUCTURE_TYPE_COMMAND_BUFFER_ALLOCATE_INFO};
    allocate.commandPool = pool_;
    allocate.commandBufferCount = 1;
    VkCommandBuffer buffer = VK_NULL_HANDLE;
    RL_TRY(checked(vkAllocateCommandBuffers(handle_, &allocate, &buffer), doing));
    VkCommandBufferBeginInfo begin = {VK_STRUCTURE_TYPE_COMMAND_BUFFER_BEGIN_INFO};
    begin.flags = VK_COMMAND_BUFFER_USAGE_ONE_TIME_SUBMIT_BIT;
    Status status = checked(vkBeginCommandBuffer(buffer, &begin), doing);
    if (status) {
        record(buffer);
        status = checked(vkEndCommandBuffer(buffer), doing);
    }
    if (status) status = submit(std::span(&buffer, 1), once_);
    if (status) status = wait(once_, doing);
    vkFreeCommandBuffers(handle_, pool_, 1, &buffer);
    return status;
}

uint64_t Device::largest_buffer() const {
    const uint64_t least = std::min<uint64_t>(most_per_buffer, report_.limits.maxStorageBufferRange);
    return report_.max_allocation > 0 ? std::min(least, report_.max_allocation) : least;
}

}  // namespace redline::vulkan
