// HIP's launches are noted in place of the runtime's calls. The test double's library is opened for all other
// calls; memory is there by address alone, and code objects are empty: see all_objects().
#include "step_kernels.h"

#include "backends/hip/runtime/executable.h"

#include <sys/mman.h>

#include <map>
#include <set>

namespace redline {

namespace {

using namespace hip;

struct Seen {
    const std::string* kernel;
    uint32_t x, y, z, threads, shared;
    std::vector<uint32_t> arguments;
};
std::vector<Seen> seen;
std::set<std::string> names;
std::map<void*, size_t> reserved;
std::string device_target;
uint32_t device_units = 0;
constexpr int kUnits = 63;  // hipDeviceAttributeMultiprocessorCount

Code note_launch(hip::Function function, unsigned x, unsigned y, unsigned z, unsigned threads, unsigned,
                 unsigned, unsigned shared, Stream, void** arguments, void**) {
    seen.push_back(
        {reinterpret_cast<const std::string*>(function),
         x,
         y,
         z,
         threads,
         shared,
         {static_cast<const uint32_t*>(arguments[0]), static_cast<const uint32_t*>(arguments[1])}});
    return kSuccess;
}
Code find_function(hip::Function* function, Module, const char* name) {
    *function = reinterpret_cast<hip::Function>(const_cast<std::string*>(&*names.insert(name).first));
    return kSuccess;
}
Code load_module(Module* module, const void*) {
    *module = reinterpret_cast<Module>(&names);
    return kSuccess;
}
// At the same addresses in every run, so that arguments are the same.
Code reserve(void** at, size_t bytes) {
    static uintptr_t next = uintptr_t(1) << 45;
    constexpr size_t kPage = 4096;
    *at = mmap(reinterpret_cast<void*>(next), bytes, PROT_READ | PROT_WRITE,
               MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE | MAP_FIXED_NOREPLACE, -1, 0);
    if (*at == MAP_FAILED) return kOutOfMemory;
    next += (bytes + kPage - 1) / kPage * kPage;
    reserved[*at] = bytes;
    return kSuccess;
}
Code give_up(void* at) {
    if (at) munmap(at, reserved[at]);
    reserved.erase(at);
    return kSuccess;
}
Code memory_info(size_t* free, size_t* total) {
    *free = *total = size_t(1) << 40;
    return kSuccess;
}
Code attribute(int* value, int which, int) {
    *value = which == kUnits ? int(device_units) : 0;
    return kSuccess;
}
// The name stands first, and behind 256 bytes, wherever the version has it, the target.
Code properties(void* to, int) {
    device_target.copy(static_cast<char*>(to) + 512, device_target.size());
    return kSuccess;
}

class NotedHip : public Noted {
public:
    explicit NotedHip(std::unique_ptr<Backend> backend) : backend_(std::move(backend)) {}
    Backend& backend() const override { return *backend_; }
    Json take() override {
        Json out = Json::array();
        for (const Seen& one : std::exchange(seen, {}))
            out.push_back({{"kernel", *one.kernel},
                           {"groups", {one.x, one.y, one.z}},
                           {"threads", one.threads},
                           {"shared", one.shared},
                           {"arguments", one.arguments}});
        return out;
    }
    uint64_t scratch(const Kernel& kernel, const Plan& plan) const override {
        return static_cast<const HipKernel&>(kernel).scratch(plan);
    }
    Status write_code(std::FILE*) override { return {}; }

private:
    std::unique_ptr<Backend> backend_;
};

}  // namespace

namespace hip {

// In place of the table that the build writes for the backend: every target has every kernel.
std::span<const CodeObject> all_objects() {
    // One byte, as zstd packs it.
    static constexpr uint8_t kFrame[] = {0x28, 0xB5, 0x2F, 0xFD, 0x20, 0x01, 0x09, 0x00, 0x00, 0x00};
    static const std::vector<CodeObject> objects = [] {
        std::vector<CodeObject> all;
        for (const std::string_view target :
             {"gfx90a", "gfx942", "gfx1030", "gfx1033", "gfx1100", "gfx1101", "gfx1102", "gfx1103", "gfx1150",
              "gfx1151", "gfx1200", "gfx1201", "sm_90"}) {
            for (const Format* format : all_formats())
                if (const WeightLayout* layout = weight_layout(*format))
                    all.push_back({target, layout->name, std::as_bytes(std::span(kFrame))});
            for (const std::string_view other : {"vector", "each", "recurrent", "peak", "ranks", "cache_f32",
                                                 "cache_f16", "cache_q8_0", "cache_mixed"})
                all.push_back({target, other, std::as_bytes(std::span(kFrame))});
        }
        return all;
    }();
    return objects;
}

}  // namespace hip

Result<std::unique_ptr<Noted>> noted_hip(const std::string& target, uint32_t units) {
    Functions& call = const_cast<Runtime*>(RL_TRY(Runtime::get()))->call;
    device_target = target;
    device_units = units;
    call.device_attribute = attribute;
    call.device_properties = properties;
    call.memory_info = memory_info;
    call.allocate = reserve;
    call.release = give_up;
    call.copy_in = [](void*, const void*, size_t, Stream) { return kSuccess; };
    call.copy_out = [](void*, const void*, size_t, Stream) { return kSuccess; };
    call.copy_within = [](void*, const void*, size_t, Stream) { return kSuccess; };
    call.module_load = load_module;
    call.module_unload = [](Module) { return kSuccess; };
    call.module_function = find_function;
    call.launch = call.launch_early = note_launch;
    for (const BackendEntry* entry : all_backends())
        if (entry->name == "hip")
            return std::unique_ptr<Noted>(std::make_unique<NotedHip>(RL_TRY(entry->open({}))));
    return error("this build has no HIP backend: configure it with RL_HIP=ON");
}

}  // namespace redline
