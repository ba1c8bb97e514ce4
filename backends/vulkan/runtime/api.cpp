#include "api.h"

namespace redline::vulkan {

std::string_view result_name(VkResult result) {
    switch (result) {
        case VK_SUCCESS:
            return "success";
        case VK_NOT_READY:
            return "not ready";
        case VK_TIMEOUT:
            return "timeout";
        case VK_INCOMPLETE:
            return "incomplete";
        case VK_ERROR_OUT_OF_HOST_MEMORY:
            return "out of host memory";
        case VK_ERROR_OUT_OF_DEVICE_MEMORY:
            return "out of device memory";
        case VK_ERROR_INITIALIZATION_FAILED:
            return "initialization failed";
        case VK_ERROR_DEVICE_LOST:
            return "device lost";
        case VK_ERROR_MEMORY_MAP_FAILED:
            return "memory map failed";
        case VK_ERROR_LAYER_NOT_PRESENT:
            return "layer not present";
        case VK_ERROR_EXTENSION_NOT_PRESENT:
            return "extension not present";
        case VK_ERROR_FEATURE_NOT_PRESENT:
            return "feature not present";
        case VK_ERROR_INCOMPATIBLE_DRIVER:
            return "incompatible driver";
        case VK_ERROR_TOO_MANY_OBJECTS:
            return "too many objects";
        case VK_ERROR_FRAGMENTED_POOL:
            return "fragmented pool";
        case VK_ERROR_OUT_OF_POOL_MEMORY:
            return "out of pool memory";
        default:
            return "";
    }
}

Status checked(VkResult result, std::string_view doing) {
    if (result == VK_SUCCESS) return {};
    if (result == VK_ERROR_DEVICE_LOST)
        return error(
            "the Vulkan device was lost while {}: its driver reset it, as it does when work takes too long, "
            "memory runs out or the driver is at fault. If that happens again, try --batch-size 64, a "
            "smaller --ctx-size, or another driver version (the kernel's log says which reason it was)",
            doing);
    const std::string_view name = result_name(result);
    if (name.empty()) return error("{}: Vulkan result {}", doing, int(result));
    return error("{}: Vulkan says {}", doing, name);
}

}  // namespace redline::vulkan
