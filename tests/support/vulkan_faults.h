// Vulkan calls that fail on demand, and a count of objects that were not destroyed. volk's function pointers
// are process-wide variables, so wrappers are put into them; the memory allocator asks for its pointers by
// name and gets the same ones. An instance has to stay open meanwhile: opening one reloads the pointers.
#pragma once

#include "backends/vulkan/runtime/api.h"

#include <functional>
#include <map>
#include <mutex>
#include <string>
#include <utility>
#include <vector>

namespace redline::test {

class Faults {
public:
    // Call number `after` of `name` (empty: of any function) returns `result`; with `forever` all later calls
    // do, too.
    void arm(std::string name, int64_t after, VkResult result, bool forever) {
        const std::lock_guard lock(mutex_);
        name_ = std::move(name);
        left_ = after;
        result_ = result;
        forever_ = forever;
        struck_.clear();
        losses_ = {};
        begun_ = {};
        waiting_ = false;
    }
    // Calls that can find a lost device are counted only from when this is true.
    void count_from(std::function<bool()> begun) {
        const std::lock_guard lock(mutex_);
        begun_ = std::move(begun);
    }
    // The device is lost at the calls of these numbers that can find it, counted anew whenever a device is
    // opened after a loss; from the last of them on it stays well.
    void lose(std::vector<int64_t> after) {
        arm("", after[0], VK_ERROR_DEVICE_LOST, true);
        const std::lock_guard lock(mutex_);
        losses_ = std::move(after);
    }
    void opened() {
        const std::lock_guard lock(mutex_);
        if (losses_.empty() || left_ >= 0) return;
        losses_.erase(losses_.begin());
        if (losses_.empty())
            result_ = VK_SUCCESS;
        else
            left_ = losses_[0];
    }
    void disarm() { arm("", INT64_MAX, VK_SUCCESS, false); }
    // The name of the call that failed first; empty: none was reached.
    std::string struck() {
        const std::lock_guard lock(mutex_);
        return struck_.empty() ? "" : struck_.front();
    }
    // The names of the calls that found each loss.
    std::vector<std::string> found() {
        const std::lock_guard lock(mutex_);
        return struck_;
    }
    // The number of calls until the one that fails.
    int64_t left() {
        const std::lock_guard lock(mutex_);
        return left_;
    }
    // Calls by name since forget().
    std::map<std::string, int64_t> calls() {
        const std::lock_guard lock(mutex_);
        return calls_;
    }
    void forget_calls() {
        const std::lock_guard lock(mutex_);
        calls_.clear();
    }
    // The number of existing objects, by the name of the function that made them.
    std::map<std::string, int64_t> alive() {
        const std::lock_guard lock(mutex_);
        return alive_;
    }

    // Called by the wrappers.
    VkResult strike(const std::string& name) {
        const std::lock_guard lock(mutex_);
        // The number of polls until a fence is signalled depends on timing: together they count as one call.
        if (waits(name) && waiting_ && left_ >= 0) return VK_SUCCESS;
        ++calls_[name];
        if (!name_.empty() && name != name_) return VK_SUCCESS;
        // A device that is lost for ever cannot be reopened, either.
        if (result_ == VK_ERROR_DEVICE_LOST && losses_.empty() && !struck_.empty() &&
            name == "vkCreateDevice")
            return VK_ERROR_INITIALIZATION_FAILED;
        if (result_ == VK_ERROR_DEVICE_LOST && !can_find_lost(name)) return VK_SUCCESS;
        if (begun_ && !begun_()) return VK_SUCCESS;
        begun_ = {};
        const int64_t left = left_--;
        if (left > 0 || result_ == VK_SUCCESS) return VK_SUCCESS;
        if (left == 0) struck_.push_back(name);
        waiting_ = false;
        const VkResult result = result_;
        if (!forever_) result_ = VK_SUCCESS;
        return result;
    }
    void returned(const std::string& name, VkResult result) {
        if (!waits(name)) return;
        const std::lock_guard lock(mutex_);
        waiting_ = result == VK_NOT_READY || result == VK_TIMEOUT;
    }
    static bool waits(const std::string& name) {
        return name == "vkWaitForFences" || name == "vkGetFenceStatus";
    }
    void count(const std::string& maker, int64_t more) {
        const std::lock_guard lock(mutex_);
        if ((alive_[maker] += more) == 0) alive_.erase(maker);
    }

private:
    // A lost device also says so wherever else it may, after the first of these.
    static bool can_find_lost(const std::string& name) {
        for (const char* const one : {"vkQueueSubmit", "vkWaitForFences", "vkGetFenceStatus",
                                      "vkDeviceWaitIdle", "vkGetQueryPoolResults"})
            if (name == one) return true;
        return false;
    }

    std::mutex mutex_;
    std::string name_;
    int64_t left_ = INT64_MAX;
    VkResult result_ = VK_SUCCESS;
    bool forever_ = false;
    std::vector<std::string> struck_;
    std::vector<int64_t> losses_;
    std::function<bool()> begun_;
    bool waiting_ = false;  // for a fence that was not signalled at the last poll
    std::map<std::string, int64_t> calls_;
    std::map<std::string, int64_t> alive_;
};

inline Faults& faults() {
    static Faults one;
    return one;
}

// Wrappers by name, for callers that look functions up.
inline std::map<std::string, PFN_vkVoidFunction>& wrappers() {
    static std::map<std::string, PFN_vkVoidFunction> all;
    return all;
}

// The device opened last.
struct Devices {
    static inline PFN_vkCreateDevice create = nullptr;
    static inline PFN_vkDestroyDevice destroy = nullptr;
    static inline PFN_vkDeviceWaitIdle idle = nullptr;
    static inline VkDevice current = VK_NULL_HANDLE;

    static VkResult VKAPI_CALL make(VkPhysicalDevice from, const VkDeviceCreateInfo* info,
                                    const VkAllocationCallbacks* allocator, VkDevice* out) {
        const VkResult fault = faults().strike("vkCreateDevice");
        const VkResult result = fault != VK_SUCCESS ? fault : create(from, info, allocator, out);
        if (result != VK_SUCCESS) return result;
        faults().count("vkCreateDevice", 1);
        current = *out;
        faults().opened();
        return result;
    }
    static void VKAPI_CALL end(VkDevice device, const VkAllocationCallbacks* allocator) {
        faults().count("vkCreateDevice", -1);
        destroy(device, allocator);
    }
};

template <auto& slot, typename F = std::remove_cvref_t<decltype(slot)>>
struct Wrapped;

// A call that can fail.
template <auto& slot, typename... Args>
struct Wrapped<slot, VkResult(VKAPI_PTR*)(Args...)> {
    static inline VkResult(VKAPI_PTR* real)(Args...) = nullptr;
    static inline std::string name;
    static inline bool makes = false;

    static VkResult VKAPI_CALL call(Args... args) {
        if (const VkResult fault = faults().strike(name); fault != VK_SUCCESS) {
            // A reset ends the work of a lost device. Waiting for that wants the queue, which who asks for a
            // fence need not hold: it is waited for when the device is settled.
            if (fault == VK_ERROR_DEVICE_LOST && !Faults::waits(name)) Devices::idle(Devices::current);
            return fault;
        }
        const VkResult result = real(args...);
        faults().returned(name, result);
        if (result == VK_SUCCESS && makes) faults().count(name, 1);
        return result;
    }
    static void put(std::string as, bool counts) {
        name = std::move(as);
        makes = counts;
        real = slot;
        slot = call;
        wrappers()[name] = reinterpret_cast<PFN_vkVoidFunction>(call);
    }
};

// The end of what `maker` made: (device, object, allocator).
template <auto& slot, typename Owner, typename Object>
struct Wrapped<slot, void(VKAPI_PTR*)(Owner, Object, const VkAllocationCallbacks*)> {
    static inline void(VKAPI_PTR* real)(Owner, Object, const VkAllocationCallbacks*) = nullptr;
    static inline std::string maker;

    static void VKAPI_CALL call(Owner owner, Object object, const VkAllocationCallbacks* allocator) {
        if (object != VK_NULL_HANDLE) faults().count(maker, -1);
        real(owner, object, allocator);
    }
    static void put(const std::string& name, std::string of) {
        maker = std::move(of);
        real = slot;
        slot = call;
        wrappers()[name] = reinterpret_cast<PFN_vkVoidFunction>(call);
    }
};

inline PFN_vkGetDeviceProcAddr& real_device_proc() {
    static PFN_vkGetDeviceProcAddr real = nullptr;
    return real;
}
inline PFN_vkVoidFunction VKAPI_CALL wrapped_device_proc(VkDevice device, const char* name) {
    const auto found = wrappers().find(name);
    return found != wrappers().end() ? found->second : real_device_proc()(device, name);
}

// Command buffers go with their pool, so they are counted by pool.
struct CommandBuffers {
    static inline PFN_vkAllocateCommandBuffers allocate = nullptr;
    static inline PFN_vkFreeCommandBuffers release = nullptr;
    static inline PFN_vkDestroyCommandPool destroy_pool = nullptr;
    static inline std::mutex mutex;
    static inline std::map<VkCommandPool, int64_t> pools;

    static void add(VkCommandPool pool, int64_t more) {
        const std::lock_guard lock(mutex);
        pools[pool] += more;
        faults().count("vkAllocateCommandBuffers", more);
    }
    static VkResult VKAPI_CALL make(VkDevice device, const VkCommandBufferAllocateInfo* info,
                                    VkCommandBuffer* out) {
        const VkResult fault = faults().strike("vkAllocateCommandBuffers");
        const VkResult result = fault != VK_SUCCESS ? fault : allocate(device, info, out);
        if (result == VK_SUCCESS) add(info->commandPool, info->commandBufferCount);
        return result;
    }
    static void VKAPI_CALL end(VkDevice device, VkCommandPool pool, uint32_t count,
                               const VkCommandBuffer* buffers) {
        add(pool, -int64_t(count));
        release(device, pool, count, buffers);
    }
    static void VKAPI_CALL end_pool(VkDevice device, VkCommandPool pool, const VkAllocationCallbacks* with) {
        int64_t left = 0;
        {
            const std::lock_guard lock(mutex);
            left = pools[pool];
            pools.erase(pool);
        }
        faults().count("vkAllocateCommandBuffers", -left);
        faults().count("vkCreateCommandPool", -1);
        destroy_pool(device, pool, with);
    }
};

#define RL_FAULT(function, makes) Wrapped<function>::put(#function, makes)
#define RL_END(function, maker) Wrapped<function>::put(#function, #maker)

// Once per process, while an instance is open.
inline void wrap_vulkan() {
    static bool done = false;
    if (std::exchange(done, true)) return;
    Devices::idle = vkDeviceWaitIdle;
    RL_FAULT(vkEnumeratePhysicalDevices, false);
    RL_FAULT(vkEnumerateDeviceExtensionProperties, false);
    RL_FAULT(vkCreateCommandPool, true);
    RL_FAULT(vkCreateFence, true);
    RL_FAULT(vkCreateBuffer, true);
    RL_FAULT(vkAllocateMemory, true);
    RL_FAULT(vkBindBufferMemory, false);
    RL_FAULT(vkBindBufferMemory2, false);
    RL_FAULT(vkMapMemory, false);
    RL_FAULT(vkFlushMappedMemoryRanges, false);
    RL_FAULT(vkInvalidateMappedMemoryRanges, false);
    RL_FAULT(vkCreatePipelineCache, true);
    RL_FAULT(vkGetPipelineCacheData, false);
    RL_FAULT(vkCreateDescriptorSetLayout, true);
    RL_FAULT(vkCreatePipelineLayout, true);
    RL_FAULT(vkCreateShaderModule, true);
    RL_FAULT(vkCreateComputePipelines, true);
    RL_FAULT(vkCreateDescriptorPool, true);
    RL_FAULT(vkAllocateDescriptorSets, false);
    RL_FAULT(vkCreateQueryPool, true);
    RL_FAULT(vkGetQueryPoolResults, false);
    RL_FAULT(vkBeginCommandBuffer, false);
    RL_FAULT(vkEndCommandBuffer, false);
    RL_FAULT(vkResetFences, false);
    RL_FAULT(vkQueueSubmit, false);
    RL_FAULT(vkWaitForFences, false);
    RL_FAULT(vkGetFenceStatus, false);
    RL_FAULT(vkDeviceWaitIdle, false);
    RL_END(vkDestroyFence, vkCreateFence);
    RL_END(vkDestroyBuffer, vkCreateBuffer);
    RL_END(vkFreeMemory, vkAllocateMemory);
    RL_END(vkDestroyPipelineCache, vkCreatePipelineCache);
    RL_END(vkDestroyDescriptorSetLayout, vkCreateDescriptorSetLayout);
    RL_END(vkDestroyPipelineLayout, vkCreatePipelineLayout);
    RL_END(vkDestroyShaderModule, vkCreateShaderModule);
    RL_END(vkDestroyPipeline, vkCreateComputePipelines);
    RL_END(vkDestroyDescriptorPool, vkCreateDescriptorPool);
    RL_END(vkDestroyQueryPool, vkCreateQueryPool);
    Devices::create = std::exchange(vkCreateDevice, Devices::make);
    Devices::destroy = std::exchange(vkDestroyDevice, Devices::end);
    CommandBuffers::allocate = std::exchange(vkAllocateCommandBuffers, CommandBuffers::make);
    CommandBuffers::release = std::exchange(vkFreeCommandBuffers, CommandBuffers::end);
    CommandBuffers::destroy_pool = std::exchange(vkDestroyCommandPool, CommandBuffers::end_pool);
    real_device_proc() = std::exchange(vkGetDeviceProcAddr, wrapped_device_proc);
}

#undef RL_FAULT
#undef RL_END

}  // namespace redline::test
