#include "api.h"

#include "base/os/shared_library.h"
#include "base/os/system.h"

#include <mutex>

namespace redline::hip {

namespace {

#ifdef RL_HIP_NVIDIA
constexpr bool kCuda = true;
constexpr const char* kLibraries[] = {"libcuda.so.1"};
constexpr Attributes kAttributes = {18, 16};
#else
constexpr bool kCuda = false;
constexpr const char* kLibraries[] = {"libamdhip64.so.7", "libamdhip64.so.6", "libamdhip64.so.5",
                                      "/opt/rocm/lib/libamdhip64.so"};
constexpr Attributes kAttributes = {16, 63};
#endif

Status fill(void* library, Functions& call) {
    std::string lacking;
    const auto find = [&](const char* name) {
        void* symbol = *name ? os::find_symbol(library, name) : nullptr;
        if (*name && !symbol) lacking = name;
        return symbol;
    };
#define RL_FIND(member, hip, cuda, parameters) \
    call.member = reinterpret_cast<Code(*) parameters>(find(kCuda ? cuda : hip));
    RL_HIP_FUNCTIONS(RL_FIND)
#undef RL_FIND
    if (!lacking.empty()) return error("it has no function {}", lacking);
    call.launch_early = call.launch;
    call.device_pci = reinterpret_cast<decltype(call.device_pci)>(
        os::find_symbol(library, kCuda ? "cuDeviceGetPCIBusId" : "hipDeviceGetPCIBusId"));
    if (kCuda) return fill_cuda(library, call);
    call.can_access_peer =
        reinterpret_cast<decltype(call.can_access_peer)>(os::find_symbol(library, "hipDeviceCanAccessPeer"));
    call.enable_peer =
        reinterpret_cast<decltype(call.enable_peer)>(os::find_symbol(library, "hipDeviceEnablePeerAccess"));
    call.error_name = reinterpret_cast<const char* (*)(Code)>(find("hipGetErrorName"));
    if (!call.error_name) return error("it has no function hipGetErrorName");
    return {};
}

// Why there is no device, as far as the system tells.
std::string why_no_device() {
    if (kCuda) return "the CUDA driver finds no device";
    if (!os::exists("/dev/kfd")) return "there is no /dev/kfd: no AMD GPU whose kernel driver is loaded";
    if (!os::can_read_and_write("/dev/kfd"))
        return "no permission on /dev/kfd: add the user to the group render, then log in again";
    return "ROCm finds no card that it supports";
}

Status start(Runtime& runtime) {
    void* library = nullptr;
    std::string tried, trouble;
    for (const char* name : kLibraries) {
        os::LibraryFault fault;
        library = os::open_library(name, fault);
        if (library) {
            runtime.library = name;
            break;
        }
        tried += (tried.empty() ? "" : ", ") + std::string(name);
        // A library that is there but cannot be loaded tells more than one that is not.
        if (fault.kind != os::LibraryFault::Kind::missing) trouble = fault.message;
    }
    const char* product = kCuda ? "the CUDA driver" : "ROCm";
    if (!library)
        return trouble.empty() ? error("{} is not installed (looked for {})", product, tried)
                               : error("{} cannot be loaded: {}", product, trouble);
    if (const Status filled = fill(library, runtime.call); !filled)
        return error("{} is not usable: {}", runtime.library, filled.error().message);
    // ROCm 6 changed the layout and gave the new one another name; either holds what is looked for.
    if (!kCuda)
        if (void* newer = os::find_symbol(library, "hipGetDevicePropertiesR0600"))
            runtime.call.device_properties = reinterpret_cast<Code (*)(void*, int)>(newer);
    runtime.attributes = kAttributes;
    runtime.cuda = kCuda;
    int count = 0;
    if (runtime.call.init(0) != kSuccess || runtime.call.device_count(&count) != kSuccess || count == 0)
        return error("{}", why_no_device());
    return runtime.checked(runtime.call.runtime_version(&runtime.version), "asking for the version");
}

}  // namespace

Result<const Runtime*> Runtime::get() {
    static std::mutex mutex;
    static std::unique_ptr<Runtime> opened;
    const std::lock_guard lock(mutex);
    if (opened) return static_cast<const Runtime*>(opened.get());
    auto runtime = std::make_unique<Runtime>();
    RL_TRY(start(*runtime));
    opened = std::move(runtime);
    return static_cast<const Runtime*>(opened.get());
}

std::string Runtime::version_text() const {
    if (cuda) return fmt::format("CUDA {}.{}", version / 1000, version % 1000 / 10);
    return fmt::format("HIP {}.{}.{}", version / 10000000, version / 100000 % 100, version % 100000);
}

Status Runtime::checked(Code code, std::string_view doing) const {
    if (code == kSuccess) return {};
    call.last_error();  // else the next call would report this one again
    return error("{}: {} ({})", doing, call.error_name(code), code);
}

}  // namespace redline::hip
