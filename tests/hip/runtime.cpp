// A HIP runtime for tests: the functions that the backend calls, over host memory. Kernels are a host build
// of the same sources and run when they are launched, block by block. Code objects are checked as the real
// loader checks them: for the device's target or its family's generic one, and for the wanted kernels.
//   RL_HIP_DOUBLE_ARCH     target of the device, "gfx1151"; gfxhost, whose code objects are empty, when unset
//   RL_HIP_DOUBLE_APU      1: integrated
//   RL_HIP_DOUBLE_COUNT    number of devices, 1 when unset
//   RL_HIP_DOUBLE_PEERS    0: no device reaches another's memory
//   RL_HIP_DOUBLE_MEMORY   bytes of the device; of several "8589934592,1048576", of which the last is also
//   that
//                          of those behind it
//   RL_HIP_DOUBLE_BROKEN   "gated": kernels with that in their names do nothing, as if compiled wrongly;
//                          "hand": rows left in int8 are zeros, "slight": one code in eight is 8 off;
//                          "pages": attention to pages does nothing; "tokens": products of more than 128
//                          tokens in tiles leave the others out. Several with commas between
//   RL_HIP_DOUBLE_FAIL     "hipMalloc 3 2": the third call from here on returns 2; once. Several may follow
//                          one another
#include "kernels/args.h"
#include "kernels/wave.h"

#include <dlfcn.h>

#include <algorithm>
#include <atomic>
#include <cstdlib>
#include <cstring>
#include <map>
#include <memory>
#include <mutex>
#include <sstream>
#include <string>
#include <utility>
#include <vector>

#define RL_EXPORT extern "C" __attribute__((visibility("default")))

namespace redline::hip {

thread_local Index3 host_block;
thread_local uint32_t host_grid_blocks;

// Rounds to nearest, ties to even.
uint16_t half_bits(float value) {
    const uint32_t bits = __builtin_bit_cast(uint32_t, value), magnitude = bits & 0x7FFFFFFFu;
    const uint16_t sign = uint16_t((bits >> 16) & 0x8000u);
    if (magnitude > 0x7F800000u) return uint16_t(sign | 0x7E00u);
    if (magnitude >= 0x477FF000u) return uint16_t(sign | 0x7C00u);
    if (magnitude < 0x38800000u) {
        const float aligned = __builtin_bit_cast(float, magnitude) + 0.5f;
        return uint16_t(sign | uint16_t(__builtin_bit_cast(uint32_t, aligned) - 0x3F000000u));
    }
    return uint16_t(sign | uint16_t((magnitude - 0x38000000u + 0xFFFu + ((magnitude >> 13) & 1u)) >> 13));
}

namespace {

constexpr int kInvalidValue = 1, kOutOfMemory = 2, kInvalidImage = 200, kNoBinary = 209, kNotFound = 500;
constexpr int kCaptureUnsupported = 900;

std::string setting(const char* name, const char* fallback) {
    const char* value = std::getenv(name);
    return value ? value : fallback;
}

// Returns the injected error when this call is the one that is to fail.
int injected(const char* function) {
    static std::mutex mutex;
    static std::string current;
    static std::map<std::string, int> calls;
    const std::lock_guard lock(mutex);
    const std::string wanted = setting("RL_HIP_DOUBLE_FAIL", "");
    if (wanted != current) {
        current = wanted;
        calls.clear();
    }
    const int now = ++calls[function];
    std::istringstream in(wanted);
    std::string name;
    for (int call = 0, code = 0; in >> name >> call >> code;)
        if (name == function && call == now) return code;
    return 0;
}
#define RL_MAY_FAIL() \
    if (const int code = redline::hip::injected(__func__)) return code

struct Function {
    void (*run)(const void*);
    size_t args_bytes;
    // See RL_HIP_DOUBLE_BROKEN.
    bool spoils_rows = false, spoils_little = false, knows_no_pages = false, leaves_tokens = false;
};
struct Launch {
    Function function;
    uint32_t grid[3];
    std::vector<std::byte> args;
};
struct Module {
    std::string bytes;  // of the ELF file; empty on gfxhost
    std::map<std::string, std::unique_ptr<Function>> functions;
};
struct Graph {
    std::vector<Launch> launches;
};
struct Stream {
    Graph* captured = nullptr;
};

int device_count() {
    return std::stoi(setting("RL_HIP_DOUBLE_COUNT", "1"));
}
thread_local int current_device = 0;

struct Allocation {
    size_t bytes = 0;
    int device = 0;
};
std::mutex allocations_mutex;
std::map<void*, Allocation> allocations;  // of device memory
std::map<int, size_t> allocated;          // by device

size_t device_bytes() {
    std::istringstream in(setting("RL_HIP_DOUBLE_MEMORY", "8589934592"));
    std::string bytes;
    for (int device = 0; device <= current_device && std::getline(in, bytes, ',');) ++device;
    return std::stoull(bytes);
}

// The number of launches since the start in which an argument word was not zero, by the size of the arguments
// and the word's place.
std::map<std::pair<size_t, size_t>, size_t> words_launched;
std::mutex words_mutex;  // threads have a device each

void count_words(const Launch& launch) {
    const std::lock_guard lock(words_mutex);
    for (size_t at = 0; at + 8 <= launch.args.size(); at += 8) {
        uint64_t word = 0;
        std::memcpy(&word, launch.args.data() + at, 8);
        if (word != 0) ++words_launched[{launch.args.size(), at}];
    }
}

template <typename Args>
void spoil_row(const Launch& launch) {
    if (launch.args.size() != sizeof(Args)) return;
    const auto* args = reinterpret_cast<const Args*>(launch.args.data());
    if (!args->hand.row) return;
    if (!launch.function.spoils_little)
        std::memset(args->hand.row, 0, args->hand.units * args::kHandedUnitBytes);
    // Every fourth of the first plane's codes, of which each unit has 16 of 32.
    for (uint32_t i = 0; i < args->hand.units * 16; i += 4) static_cast<uint8_t*>(args->hand.row)[i] ^= 8;
}
bool has_pages(const Launch& launch) {
    if (launch.args.size() != sizeof(args::AttentionArgs)) return false;
    return reinterpret_cast<const args::AttentionArgs*>(launch.args.data())->cache.pages != nullptr;
}

void run(const Launch& launch) {
    count_words(launch);
    if (launch.function.knows_no_pages && has_pages(launch)) return;
    host_grid_blocks = launch.grid[0];
    const uint32_t rows = launch.function.leaves_tokens ? std::min(launch.grid[1], 2u) : launch.grid[1];
    for (uint32_t z = 0; z < launch.grid[2]; ++z)
        for (uint32_t y = 0; y < rows; ++y)
            for (uint32_t x = 0; x < launch.grid[0]; ++x) {
                host_block = {x, y, z};
                launch.function.run(launch.args.data());
            }
    if (!launch.function.spoils_rows && !launch.function.spoils_little) return;
    spoil_row<args::DotArgs>(launch);
    spoil_row<args::AttentionArgs>(launch);
}

// An ELF header's flags for a target, and the generic target that its device accepts.
struct Machine {
    const char* arch;
    uint8_t machine;
    uint8_t generic;
};
constexpr Machine kMachines[] = {
    {"gfx90a", 0x3f, 0},     {"gfx942", 0x4c, 0x5f},  {"gfx950", 0x4f, 0x5f},  {"gfx1030", 0x36, 0x53},
    {"gfx1031", 0x37, 0x53}, {"gfx1032", 0x38, 0x53}, {"gfx1033", 0x39, 0x53}, {"gfx1034", 0x3e, 0x53},
    {"gfx1035", 0x3d, 0x53}, {"gfx1036", 0x45, 0x53}, {"gfx1100", 0x41, 0x54}, {"gfx1101", 0x46, 0x54},
    {"gfx1102", 0x47, 0x54}, {"gfx1103", 0x44, 0x54}, {"gfx1150", 0x43, 0x54}, {"gfx1151", 0x4a, 0x54},
    {"gfx1152", 0x55, 0x54}, {"gfx1153", 0x58, 0x54}, {"gfx1200", 0x48, 0x59}, {"gfx1201", 0x4e, 0x59},
};

int check_image(const char* image, Module& module) {
    const std::string arch = setting("RL_HIP_DOUBLE_ARCH", "gfxhost");
    if (arch == "gfxhost") return std::strncmp(image, "redline kernels", 15) == 0 ? 0 : kInvalidImage;
    if (std::memcmp(image, "\177ELF", 4) != 0) return kInvalidImage;
    uint32_t flags = 0;
    uint64_t sections = 0;
    uint16_t section_bytes = 0, section_count = 0;
    std::memcpy(&sections, image + 40, 8);
    std::memcpy(&flags, image + 48, 4);
    std::memcpy(&section_bytes, image + 58, 2);
    std::memcpy(&section_count, image + 60, 2);
    for (const Machine& known : kMachines)
        if (arch.substr(0, arch.find(':')) == known.arch) {
            const uint8_t machine = uint8_t(flags);
            if (machine != known.machine && machine != known.generic) return kNoBinary;
            // The section headers end the file.
            module.bytes.assign(image, sections + uint64_t(section_bytes) * section_count);
            return 0;
        }
    return kNoBinary;
}

void* own_symbol(const std::string& name) {
    static void* self = [] {
        Dl_info info = {};
        dladdr(reinterpret_cast<void*>(&injected), &info);
        return dlopen(info.dli_fname, RTLD_NOW | RTLD_NOLOAD);
    }();
    return dlsym(self, name.c_str());
}

int copy(void* to, const void* from, size_t bytes) {
    std::memcpy(to, from, bytes);
    return 0;
}

}  // namespace
}  // namespace redline::hip

using namespace redline::hip;

RL_EXPORT int hipInit(unsigned) {
    RL_MAY_FAIL();
    return 0;
}
RL_EXPORT int hipRuntimeGetVersion(int* version) {
    *version = 60342134;
    return 0;
}
RL_EXPORT int hipGetDeviceCount(int* count) {
    RL_MAY_FAIL();
    *count = device_count();
    return 0;
}
RL_EXPORT int hipSetDevice(int device) {
    if (device < 0 || device >= device_count()) return 101;
    current_device = device;
    return 0;
}
RL_EXPORT int hipDeviceGetName(char* name, int bytes, int) {
    std::strncpy(name, "gfx test double", size_t(bytes));
    return 0;
}
RL_EXPORT int hipDeviceGetAttribute(int* value, int attribute, int) {
    *value = attribute == 16 ? setting("RL_HIP_DOUBLE_APU", "0") == "1" : attribute == 63 ? 4 : 0;
    return 0;
}
// The place of the target's name differs between versions of ROCm; the device's name comes first.
RL_EXPORT int hipGetDeviceProperties(void* out, int device) {
    hipDeviceGetName(static_cast<char*>(out), 256, device);
    std::strcpy(static_cast<char*>(out) + 1160, setting("RL_HIP_DOUBLE_ARCH", "gfxhost").c_str());
    return 0;
}
RL_EXPORT int hipGetLastError() {
    return 0;
}
RL_EXPORT const char* hipGetErrorName(int code) {
    return code == kOutOfMemory ? "hipErrorOutOfMemory"
           : code == 719        ? "hipErrorLaunchFailure"
                                : "hipErrorOfTheDouble";
}
// Its devices reach each other's memory, unless RL_HIP_DOUBLE_PEERS is 0.
RL_EXPORT int hipDeviceCanAccessPeer(int* can, int, int) {
    *can = setting("RL_HIP_DOUBLE_PEERS", "1") != "0";
    return 0;
}
RL_EXPORT int hipDeviceEnablePeerAccess(int, unsigned) {
    return 0;
}
// Reports no address, so that no GPU of this machine is taken for the double.
RL_EXPORT int hipDeviceGetPCIBusId(char*, int, int) {
    return 1;
}
RL_EXPORT int hipMemGetInfo(size_t* free, size_t* total) {
    const std::lock_guard lock(allocations_mutex);
    *total = device_bytes();
    const size_t used = allocated[current_device];
    *free = *total > used ? *total - used : 0;
    return 0;
}
RL_EXPORT int hipMalloc(void** out, size_t bytes) {
    RL_MAY_FAIL();
    const std::lock_guard lock(allocations_mutex);
    if (allocated[current_device] + bytes > device_bytes()) return kOutOfMemory;
    // Not zero: kernels must not count on it.
    *out = std::aligned_alloc(256, (bytes + 255) / 256 * 256);
    std::memset(*out, 0xFF, bytes);
    allocations[*out] = {bytes, current_device};
    allocated[current_device] += bytes;
    return 0;
}
RL_EXPORT int hipFree(void* data) {
    const std::lock_guard lock(allocations_mutex);
    const auto found = allocations.find(data);
    if (found == allocations.end()) return kInvalidValue;
    allocated[found->second.device] -= found->second.bytes;
    allocations.erase(found);
    std::free(data);
    return 0;
}
RL_EXPORT int hipHostMalloc(void** out, size_t bytes, unsigned) {
    RL_MAY_FAIL();
    *out = std::aligned_alloc(4096, (bytes + 4095) / 4096 * 4096);
    return 0;
}
RL_EXPORT int hipHostFree(void* data) {
    std::free(data);
    return 0;
}
RL_EXPORT int hipMallocManaged(void** out, size_t bytes, unsigned) {
    return hipMalloc(out, bytes);
}
RL_EXPORT int hipMemcpyHtoDAsync(void* to, const void* from, size_t bytes, Stream*) {
    RL_MAY_FAIL();
    return copy(to, from, bytes);
}
RL_EXPORT int hipMemcpyDtoHAsync(void* to, const void* from, size_t bytes, Stream*) {
    RL_MAY_FAIL();
    return copy(to, from, bytes);
}
RL_EXPORT int hipMemcpyDtoDAsync(void* to, const void* from, size_t bytes, Stream*) {
    return copy(to, from, bytes);
}
RL_EXPORT int hipStreamCreateWithFlags(Stream** out, unsigned) {
    RL_MAY_FAIL();
    *out = new Stream;
    return 0;
}
RL_EXPORT int hipStreamDestroy(Stream* stream) {
    delete stream;
    return 0;
}
RL_EXPORT int hipStreamSynchronize(Stream*) {
    RL_MAY_FAIL();
    return 0;
}
RL_EXPORT int hipEventCreateWithFlags(int** out, unsigned) {
    *out = new int(0);
    return 0;
}
RL_EXPORT int hipEventDestroy(int* event) {
    delete event;
    return 0;
}
RL_EXPORT int hipEventRecord(int*, Stream*) {
    return 0;
}
RL_EXPORT int hipEventSynchronize(int*) {
    return 0;
}
RL_EXPORT int hipModuleLoadData(Module** out, const void* image) {
    RL_MAY_FAIL();
    auto module = std::make_unique<Module>();
    if (const int code = check_image(static_cast<const char*>(image), *module)) return code;
    *out = module.release();
    return 0;
}
RL_EXPORT int hipModuleUnload(Module* module) {
    delete module;
    return 0;
}
void does_nothing(const void*) {}
bool is_broken(const std::string& what) {
    std::istringstream in(setting("RL_HIP_DOUBLE_BROKEN", ""));
    for (std::string part; std::getline(in, part, ',');)
        if (!part.empty() && what.find(part) != std::string::npos) return true;
    return false;
}

RL_EXPORT int hipModuleGetFunction(Function** out, Module* module, const char* name) {
    const std::string kernel = name;
    const bool there = module->bytes.empty() || module->bytes.find(kernel + ".kd") != std::string::npos;
    void* run = own_symbol(kernel);
    const void* bytes = own_symbol(kernel + "_args_size");
    if (!there || !run || !bytes) return kNotFound;
    std::unique_ptr<Function>& function = module->functions[kernel];
    if (!function) {
        const auto body = reinterpret_cast<void (*)(const void*)>(run);
        function.reset(new Function{is_broken(kernel) ? does_nothing : body,
                                    *static_cast<const size_t*>(bytes), is_broken("hand"),
                                    is_broken("slight"), is_broken("pages"),
                                    is_broken("tokens") && kernel.starts_with("linear_tile_")});
    }
    *out = function.get();
    return 0;
}
RL_EXPORT int hipModuleLaunchKernel(Function* function, unsigned x, unsigned y, unsigned z, unsigned,
                                    unsigned, unsigned, unsigned, Stream* stream, void** parameters, void**) {
    RL_MAY_FAIL();
    if (x == 0 || y == 0 || z == 0 || y > 65535 || z > 65535) return kInvalidValue;
    const auto* args = static_cast<const std::byte*>(parameters[0]);
    Launch launch{*function, {x, y, z}, {args, args + function->args_bytes}};
    if (stream->captured)
        stream->captured->launches.push_back(std::move(launch));
    else
        run(launch);
    return 0;
}
RL_EXPORT int hipStreamBeginCapture(Stream* stream, int) {
    RL_MAY_FAIL();
    if (stream->captured) return kCaptureUnsupported;
    stream->captured = new Graph;
    return 0;
}
RL_EXPORT int hipStreamEndCapture(Stream* stream, Graph** out) {
    *out = std::exchange(stream->captured, nullptr);
    return *out ? 0 : kCaptureUnsupported;
}
RL_EXPORT int hipGraphInstantiateWithFlags(Graph** out, Graph* graph, unsigned long long) {
    RL_MAY_FAIL();
    *out = new Graph(*graph);
    return 0;
}
RL_EXPORT int hipGraphLaunch(Graph* graph, Stream*) {
    RL_MAY_FAIL();
    for (const Launch& launch : graph->launches) run(launch);
    return 0;
}
RL_EXPORT int hipGraphDestroy(Graph* graph) {
    delete graph;
    return 0;
}
RL_EXPORT int hipGraphExecDestroy(Graph* graph) {
    delete graph;
    return 0;
}
// A function of another library on a stream: it runs now, or with the graph that is captured.
RL_EXPORT int rl_hip_double_launch(Stream* stream, void (*function)(const void*), const void* args,
                                   size_t bytes) {
    const auto* from = static_cast<const std::byte*>(args);
    Launch launch{{function, bytes}, {1, 1, 1}, {from, from + bytes}};
    if (stream->captured)
        stream->captured->launches.push_back(std::move(launch));
    else
        run(launch);
    return 0;
}
// Launches that ran whose arguments have that size, and there a word that is not zero: "who was given a row?"
RL_EXPORT size_t rl_hip_double_launches(size_t args_bytes, size_t word_at) {
    return words_launched[{args_bytes, word_at}];
}
// Bytes of device memory in use, and whether it is all given back.
RL_EXPORT size_t rl_hip_double_allocated() {
    const std::lock_guard lock(allocations_mutex);
    size_t all = 0;
    for (const auto& [device, bytes] : allocated) all += bytes;
    return all;
}
