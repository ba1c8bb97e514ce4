// The Vulkan backend of a build without it: says so.
#include "plan/backend.h"

namespace redline {

static Error absent() {
    return error("this build has no Vulkan backend: " RL_VULKAN_ABSENT);
}
static Result<std::unique_ptr<Backend>> open_vulkan(const BackendOptions&) {
    return absent();
}
static Result<std::vector<DeviceListing>> list_vulkan() {
    return absent();
}

extern const BackendEntry vulkan_backend;
const BackendEntry vulkan_backend = {"vulkan", 10, open_vulkan, list_vulkan};

}  // namespace redline
