// The CUDA driver's calls in HIP's form, where they differ.
#include "api.h"

#ifdef RL_HIP_NVIDIA

#include <dlfcn.h>

#include <cstdio>
#include <mutex>

namespace redline::hip {

namespace {

using Context = struct ContextHandle*;
Code (*retain_context)(Context*, int) = nullptr;
Code (*set_context)(Context) = nullptr;
Code (*get_error_name)(Code, const char**) = nullptr;
Code (*get_attribute)(int*, int, int) = nullptr;

// HIP's devices are CUDA's primary contexts; each is retained once and kept.
Code set_device(int device) {
    static std::mutex mutex;
    static Context contexts[64] = {};
    if (device < 0 || device >= 64) return kInvalidValue;
    const std::lock_guard lock(mutex);
    if (!contexts[device])
        if (const Code code = retain_context(&contexts[device], device); code != kSuccess) return code;
    return set_context(contexts[device]);
}

// What is read of the properties is the target's name.
Code device_properties(void* out, int device) {
    int major = 0, minor = 0;
    if (const Code code = get_attribute(&major, 75, device); code != kSuccess) return code;
    if (const Code code = get_attribute(&minor, 76, device); code != kSuccess) return code;
    std::snprintf(static_cast<char*>(out), 16, "sm_%d%d", major, minor);
    return kSuccess;
}

Code last_error() {
    return kSuccess;
}

const char* error_name(Code code) {
    const char* name = nullptr;
    return get_error_name(code, &name) == kSuccess && name ? name : "unknown error";
}

}  // namespace

Status fill_cuda(void* library, Functions& call) {
    const auto find = [&](const char* name, auto& function) {
        function = reinterpret_cast<std::remove_reference_t<decltype(function)>>(dlsym(library, name));
        return function != nullptr;
    };
    if (!find("cuDevicePrimaryCtxRetain", retain_context) || !find("cuCtxSetCurrent", set_context) ||
        !find("cuGetErrorName", get_error_name))
        return error("it lacks functions of the CUDA driver");
    get_attribute = call.device_attribute;
    call.set_device = set_device;
    call.device_properties = device_properties;
    call.last_error = last_error;
    call.error_name = error_name;
    return {};
}

}  // namespace redline::hip

#else

namespace redline::hip {

Status fill_cuda(void*, Functions&) {
    return error("this build is not for NVIDIA");
}

}  // namespace redline::hip

#endif
