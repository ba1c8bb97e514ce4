// Which instruction-set level this machine, its operating system and this build have.
#include "linear.h"

#include "base/os/processor.h"

#include <atomic>
#include <cstring>
#include <iterator>

#if defined(__x86_64__)
#include <cpuid.h>
#endif

namespace redline::cpu {

const char* isa_name(Isa isa) {
    switch (isa) {
        case Isa::portable:
            return "portable";
        case Isa::avx2:
            return "avx2";
        case Isa::avx512:
            return "avx512";
        case Isa::amx:
            return "amx";
    }
    return "unknown";
}

#if defined(__x86_64__)

namespace {

struct Leaf {
    uint32_t eax = 0, ebx = 0, ecx = 0, edx = 0;
};

Leaf cpuid(uint32_t leaf, uint32_t subleaf) {
    Leaf out;
    if (!__get_cpuid_count(leaf, subleaf, &out.eax, &out.ebx, &out.ecx, &out.edx)) return {};
    return out;
}

bool has(uint32_t word, std::initializer_list<int> bits) {
    for (const int bit : bits)
        if (!((word >> bit) & 1u)) return false;
    return true;
}

// The register states that the operating system saves: XCR0. By its opcode, for this file is compiled for any
// x86-64.
uint64_t saved_states() {
    uint32_t low = 0, high = 0;
    __asm__ volatile(".byte 0x0f, 0x01, 0xd0" : "=a"(low), "=d"(high) : "c"(0));
    return uint64_t(high) << 32 | low;
}

Isa detect() {
    constexpr uint64_t kYmm = 0x6;        // XMM, YMM
    constexpr uint64_t kZmm = 0xE6;       // and opmask, ZMM low and high
    constexpr uint64_t kTiles = 0x60000;  // TILECFG, TILEDATA
    const Leaf one = cpuid(1, 0);
    const Leaf seven = cpuid(7, 0);
    const Leaf seven_one = cpuid(7, 1);
    if (!has(one.ecx, {27})) return Isa::portable;  // OSXSAVE
    const uint64_t states = saved_states();
    const bool avx2 = has(one.ecx, {12, 28, 29}) && has(seven.ebx, {5, 8});  // FMA AVX F16C, AVX2 BMI2
    if (!avx2 || (states & kYmm) != kYmm) return Isa::portable;
    const bool avx512 = has(seven.ebx, {16, 17, 30, 31}) && has(seven.ecx, {11});  // F DQ BW VL, VNNI
    if (!avx512 || (states & kZmm) != kZmm) return Isa::avx2;
    // AMX-BF16 AMX-TILE, AVX512-BF16, AVX512-VBMI
    const bool amx = has(seven.edx, {22, 24}) && has(seven_one.eax, {5}) && has(seven.ecx, {1});
    if (!amx || (states & kTiles) != kTiles || !os::request_tile_registers()) return Isa::avx512;
    return Isa::amx;
}

bool detect_byte_permutes() {
    return has(cpuid(7, 0).ecx, {1});  // AVX512-VBMI
}

// The highest level that this machine and its operating system have.
Isa machine_isa() {
    static const Isa isa = detect();
    return isa;
}

// "AuthenticAMD", or the same cores as "HygonGenuine".
bool made_by_amd() {
    const Leaf leaf = cpuid(0, 0);
    char vendor[12];
    std::memcpy(vendor, &leaf.ebx, 4), std::memcpy(vendor + 4, &leaf.edx, 4),
        std::memcpy(vendor + 8, &leaf.ecx, 4);
    return std::memcmp(vendor, "AuthenticAMD", 12) == 0 || std::memcmp(vendor, "HygonGenuine", 12) == 0;
}

}  // namespace

bool has_byte_permutes() {
    static const bool has_them = machine_isa() >= Isa::avx512 && detect_byte_permutes();
    return has_them;
}

#else

namespace {

bool made_by_amd() {
    return false;
}

Isa machine_isa() {
    return Isa::portable;
}

}  // namespace

bool has_byte_permutes() {
    return false;
}

#endif

static bool is_built(Isa isa) {
    switch (isa) {
        case Isa::portable:
            return true;
        case Isa::avx2:
            return RL_CPU_AVX2;
        case Isa::avx512:
            return RL_CPU_AVX512 && (RL_CPU_AVX2 || has_byte_permutes());
        case Isa::amx:
            return RL_CPU_AMX;
    }
    return false;
}

bool has_isa(Isa isa) {
    return isa <= machine_isa() && is_built(isa);
}

Isa best_isa() {
    for (size_t i = std::size(kIsaLevels); i-- > 0;)
        if (has_isa(kIsaLevels[i])) return kIsaLevels[i];
    return machine_isa();
}

static std::atomic<bool>& side_by_side() {
    static std::atomic<bool> value{!made_by_amd()};
    return value;
}

bool reads_side_by_side() {
    return side_by_side();
}

void set_reads_side_by_side(bool value) {
    side_by_side() = value;
}

}  // namespace redline::cpu
