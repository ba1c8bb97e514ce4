// The part of the HIP runtime that is used, as function pointers: the library is opened when a device is
// asked for, never linked. A build for NVIDIA fills the same table from the CUDA driver, whose calls are the
// same but for their names; api_cuda.cpp holds the few that differ.
#pragma once

#include "base/result.h"

#include <cstddef>
#include <memory>

namespace redline::hip {

using Code = int;  // hipError_t
using Stream = struct StreamHandle*;
using Event = struct EventHandle*;
using Module = struct ModuleHandle*;
using Function = struct FunctionHandle*;
using Graph = struct GraphHandle*;
using GraphExec = struct GraphExecHandle*;

constexpr Code kSuccess = 0, kInvalidValue = 1, kOutOfMemory = 2, kNoDevice = 100;

// X(member, HIP's name, CUDA's name or "" where an adapter stands in, parameters)
#define RL_HIP_FUNCTIONS(X)                                                                             \
    X(init, "hipInit", "cuInit", (unsigned))                                                            \
    X(runtime_version, "hipRuntimeGetVersion", "cuDriverGetVersion", (int*))                            \
    X(device_count, "hipGetDeviceCount", "cuDeviceGetCount", (int*))                                    \
    X(set_device, "hipSetDevice", "", (int))                                                            \
    X(device_name, "hipDeviceGetName", "cuDeviceGetName", (char*, int, int))                            \
    X(device_attribute, "hipDeviceGetAttribute", "cuDeviceGetAttribute", (int*, int, int))              \
    X(device_properties, "hipGetDeviceProperties", "", (void*, int))                                    \
    X(last_error, "hipGetLastError", "", ())                                                            \
    X(memory_info, "hipMemGetInfo", "cuMemGetInfo_v2", (size_t*, size_t*))                              \
    X(allocate, "hipMalloc", "cuMemAlloc_v2", (void**, size_t))                                         \
    X(release, "hipFree", "cuMemFree_v2", (void*))                                                      \
    X(allocate_host, "hipHostMalloc", "cuMemHostAlloc", (void**, size_t, unsigned))                     \
    X(release_host, "hipHostFree", "cuMemFreeHost", (void*))                                            \
    X(allocate_managed, "hipMallocManaged", "cuMemAllocManaged", (void**, size_t, unsigned))            \
    X(copy_in, "hipMemcpyHtoDAsync", "cuMemcpyHtoDAsync_v2", (void*, const void*, size_t, Stream))      \
    X(copy_out, "hipMemcpyDtoHAsync", "cuMemcpyDtoHAsync_v2", (void*, const void*, size_t, Stream))     \
    X(copy_within, "hipMemcpyDtoDAsync", "cuMemcpyDtoDAsync_v2", (void*, const void*, size_t, Stream))  \
    X(stream_create, "hipStreamCreateWithFlags", "cuStreamCreate", (Stream*, unsigned))                 \
    X(stream_destroy, "hipStreamDestroy", "cuStreamDestroy_v2", (Stream))                               \
    X(stream_synchronize, "hipStreamSynchronize", "cuStreamSynchronize", (Stream))                      \
    X(event_create, "hipEventCreateWithFlags", "cuEventCreate", (Event*, unsigned))                     \
    X(event_destroy, "hipEventDestroy", "cuEventDestroy_v2", (Event))                                   \
    X(event_record, "hipEventRecord", "cuEventRecord", (Event, Stream))                                 \
    X(event_synchronize, "hipEventSynchronize", "cuEventSynchronize", (Event))                          \
    X(module_load, "hipModuleLoadData", "cuModuleLoadData", (Module*, const void*))                     \
    X(module_unload, "hipModuleUnload", "cuModuleUnload", (Module))                                     \
    X(module_function, "hipModuleGetFunction", "cuModuleGetFunction", (Function*, Module, const char*)) \
    X(launch, "hipModuleLaunchKernel", "",                                                              \
      (Function, unsigned, unsigned, unsigned, unsigned, unsigned, unsigned, unsigned, Stream, void**,  \
       void**))                                                                                         \
    X(begin_capture, "hipStreamBeginCapture", "cuStreamBeginCapture_v2", (Stream, int))                 \
    X(end_capture, "hipStreamEndCapture", "cuStreamEndCapture", (Stream, Graph*))                       \
    X(graph_instantiate, "hipGraphInstantiateWithFlags", "cuGraphInstantiateWithFlags",                 \
      (GraphExec*, Graph, unsigned long long))                                                          \
    X(graph_launch, "hipGraphLaunch", "cuGraphLaunch", (GraphExec, Stream))                             \
    X(graph_destroy, "hipGraphDestroy", "cuGraphDestroy", (Graph))                                      \
    X(graph_exec_destroy, "hipGraphExecDestroy", "cuGraphExecDestroy", (GraphExec))

struct Functions {
#define RL_MEMBER(member, hip, cuda, parameters) Code(*member) parameters = nullptr;
    RL_HIP_FUNCTIONS(RL_MEMBER)
#undef RL_MEMBER
    const char* (*error_name)(Code) = nullptr;
    Code (*device_pci)(char*, int,
                       int) = nullptr;  // null where the runtime has none: nothing computed needs it
    // Null where the runtime has none: then sums over devices go through the host's memory.
    Code (*can_access_peer)(int*, int, int) = nullptr;
    Code (*enable_peer)(int, unsigned) = nullptr;  // of the calling thread's device to another
    decltype(launch) launch_early = nullptr;       // of kernels that wait for the one before by themselves
};

// Numbers of device attributes. HIP's are those of ROCm 5 to 7, which keep the place of what they drop.
struct Attributes {
    int integrated;
    int multiprocessors;
};

class Runtime {
public:
    // Opened once per process and kept: unloading a GPU runtime is not safe. An error says what is absent.
    static Result<const Runtime*> get();

    Functions call;
    Attributes attributes;
    std::string library;  // as it was found: "libamdhip64.so.6"
    int version = 0;      // 60342134 is 6.3.42134; CUDA's 13000 is 13.0
    bool cuda = false;

    std::string version_text() const;
    Status checked(Code code, std::string_view doing) const;
};

// Fills what CUDA has no function of the same form for.
Status fill_cuda(void* library, Functions& call);

}  // namespace redline::hip
