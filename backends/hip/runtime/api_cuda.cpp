// The CUDA driver's calls in HIP's form, where they differ.
#include "api.h"

#ifdef RL_HIP_NVIDIA

#include "base/os/shared_library.h"

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

// CUDA names the other device by its context.
Code (*enable_peer_context)(Context, unsigned) = nullptr;
Code enable_peer(int other, unsigned flags) {
    Context context = nullptr;
    if (const Code code = retain_context(&context, other); code != kSuccess) return code;
    return enable_peer_context(context, flags);
}

// As the driver has them.
struct LaunchAttribute {
    int id;
    int unused;
    int value[16];
};
struct LaunchConfig {
    unsigned grid[3], block[3], shared;
    Stream stream;
    LaunchAttribute* attributes;
    unsigned attribute_count;
};
static_assert(sizeof(LaunchAttribute) == 72 && sizeof(LaunchConfig) == 56);
Code (*launch_extended)(const LaunchConfig*, Function, void**, void**) = nullptr;
Code (*set_function_attribute)(Function, int, int) = nullptr;

// More than 48 KiB of shared memory, what a kernel declares included, is had on request alone.
Code launch_with(unsigned attributes, Function function, const unsigned (&grid)[3],
                 const unsigned (&block)[3], unsigned shared, Stream stream, void** parameters,
                 void** extra) {
    constexpr int kProgrammaticSerialization = 6, kMaxDynamicShared = 8;
    constexpr unsigned kMostDeclared = 12 << 10;
    if (shared > (48 << 10) - kMostDeclared)
        if (const Code code = set_function_attribute(function, kMaxDynamicShared, int(shared));
            code != kSuccess)
            return code;
    LaunchAttribute attribute = {kProgrammaticSerialization, 0, {1}};
    const LaunchConfig config = {
        {grid[0], grid[1], grid[2]}, {block[0], block[1], block[2]}, shared, stream, &attribute, attributes};
    return launch_extended(&config, function, parameters, extra);
}
Code launch(Function function, unsigned x, unsigned y, unsigned z, unsigned threads_x, unsigned threads_y,
            unsigned threads_z, unsigned shared, Stream stream, void** parameters, void** extra) {
    return launch_with(0, function, {x, y, z}, {threads_x, threads_y, threads_z}, shared, stream, parameters,
                       extra);
}
// The kernel starts while the one before it on the stream ends: all of ours wait for its results themselves
// (wait_for_inputs() in kernels/wave.h), and some fetch weights meanwhile.
Code launch_early(Function function, unsigned x, unsigned y, unsigned z, unsigned threads_x,
                  unsigned threads_y, unsigned threads_z, unsigned shared, Stream stream, void** parameters,
                  void** extra) {
    return launch_with(1, function, {x, y, z}, {threads_x, threads_y, threads_z}, shared, stream, parameters,
                       extra);
}

const char* error_name(Code code) {
    const char* name = nullptr;
    return get_error_name(code, &name) == kSuccess && name ? name : "unknown error";
}

}  // namespace

Status fill_cuda(void* library, Functions& call) {
    const auto find = [&](const char* name, auto& function) {
        function =
            reinterpret_cast<std::remove_reference_t<decltype(function)>>(os::find_symbol(library, name));
        return function != nullptr;
    };
    if (!find("cuDevicePrimaryCtxRetain", retain_context) || !find("cuCtxSetCurrent", set_context) ||
        !find("cuGetErrorName", get_error_name) || !find("cuLaunchKernelEx", launch_extended) ||
        !find("cuFuncSetAttribute", set_function_attribute))
        return error("it lacks functions of the CUDA driver");
    find("cuDeviceCanAccessPeer", call.can_access_peer);
    if (find("cuCtxEnablePeerAccess", enable_peer_context)) call.enable_peer = enable_peer;
    get_attribute = call.device_attribute;
    call.set_device = set_device;
    call.device_properties = device_properties;
    call.launch = launch;
    call.launch_early = launch_early;
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
