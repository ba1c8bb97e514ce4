// What differs between the machines that run the kernels, and nothing else: with early.h and pick.h the only
// files with intrinsics.
// AMD (clang, no headers of ROCm), NVIDIA (nvcc), and the host, where a block is one thread that is a wave of
// one lane and barriers are nothing, so that tests can run the kernels as they are.
//   RL_KERNEL(threads, name, Args)                defines a kernel for blocks of `threads`
//   RL_DENSE_KERNEL(threads, blocks, name, Args)  one of which `blocks` blocks should fit a multiprocessor
//   RL_EARLY_KERNEL(threads, blocks, name, Args)  such a one that calls let_next_start() and, before it
//                                                 reads what others write, wait_for_inputs() itself;
//                                                 all other kernels begin with both
//   RL_RARE_DEVICE                                a function whose registers no other code should pay for
//   RL_FEW_TURNS                                  of a loop: code for many turns at a time would never run
//   RL_SHARED_POOL(name)                          shared memory whose size the launch says
//   RL_TABLE name = ...;                          numbers that all kernels read, each lane where it wants
#pragma once

#include <cstddef>
#include <cstdint>

#if defined(__HIP__)
#define __host__ __attribute__((host))
#define __device__ __attribute__((device))
#define RL_DEVICE __attribute__((device)) inline
#define RL_RARE_DEVICE RL_DEVICE
#define RL_SHARED __attribute__((shared))
#define RL_TABLE static __attribute__((constant)) constexpr auto
#define RL_KERNEL(threads, name, Args)                                                           \
    extern "C" __attribute__((global, amdgpu_flat_work_group_size(threads, threads))) void name( \
        const Args args)
#define RL_DENSE_KERNEL(threads, blocks, name, Args) RL_KERNEL(threads, name, Args)
#define RL_EARLY_KERNEL(threads, blocks, name, Args) RL_KERNEL(threads, name, Args)
#ifdef __GFX10__
// Its registers are eight waves' with 128 each; the compiler would take a few more.
#define RL_OWN_KERNEL(threads, blocks, name, Args) \
    __attribute__((amdgpu_waves_per_eu(8))) RL_KERNEL(threads, name, Args)
#else
#define RL_OWN_KERNEL(threads, blocks, name, Args) RL_KERNEL(threads, name, Args)
#endif
#define RL_SHARED_POOL(name) extern __attribute__((shared)) Words4 name[]
#define RL_UNROLL _Pragma("unroll")
#define RL_PRAGMA(text) _Pragma(#text)
#define RL_UNROLL_BY(n) RL_PRAGMA(unroll n)
#define RL_FEW_TURNS RL_PRAGMA(clang loop vectorize(disable) unroll(disable))
#elif defined(__CUDACC__)
#define RL_DEVICE __device__ __forceinline__
#define RL_RARE_DEVICE static __device__ __noinline__
#define RL_SHARED __shared__
#define RL_TABLE static __device__ constexpr auto
#define RL_COMMA ,
#define RL_CUDA_KERNEL(bounds, begin, name, Args)                               \
    static __device__ __forceinline__ void name##_body(const Args& args);       \
    extern "C" __global__ void bounds name(const __grid_constant__ Args args) { \
        begin;                                                                  \
        name##_body(args);                                                      \
    }                                                                           \
    static __device__ __forceinline__ void name##_body(const Args& args)
#define RL_KERNEL(threads, name, Args) \
    RL_CUDA_KERNEL(__launch_bounds__(threads), (let_next_start(), wait_for_inputs()), name, Args)
#define RL_DENSE_KERNEL(threads, blocks, name, Args)                                                        \
    RL_CUDA_KERNEL(__launch_bounds__(threads RL_COMMA blocks), (let_next_start(), wait_for_inputs()), name, \
                   Args)
#define RL_OWN_KERNEL(threads, blocks, name, Args) RL_DENSE_KERNEL(threads, blocks, name, Args)
#define RL_EARLY_KERNEL(threads, blocks, name, Args) \
    RL_CUDA_KERNEL(__launch_bounds__(threads RL_COMMA blocks), , name, Args)
#define RL_SHARED_POOL(name) extern __shared__ Words4 name[]
#define RL_UNROLL _Pragma("unroll")
#define RL_PRAGMA(text) _Pragma(#text)
#define RL_UNROLL_BY(n) RL_PRAGMA(unroll n)
#define RL_FEW_TURNS
#else
#include <cmath>
#define RL_DEVICE inline
#define RL_RARE_DEVICE RL_DEVICE
#define RL_SHARED static thread_local
#define RL_TABLE [[maybe_unused]] static constexpr auto
#define RL_KERNEL(threads, name, Args)                       \
    static void name##_body(const Args& args);               \
    extern "C" const size_t name##_args_size;                \
    extern "C" const size_t name##_args_size = sizeof(Args); \
    extern "C" void name(const void* args);                  \
    extern "C" void name(const void* args) {                 \
        name##_body(*static_cast<const Args*>(args));        \
    }                                                        \
    static void name##_body([[maybe_unused]] const Args& args)
#define RL_DENSE_KERNEL(threads, blocks, name, Args) RL_KERNEL(threads, name, Args)
#define RL_EARLY_KERNEL(threads, blocks, name, Args) RL_KERNEL(threads, name, Args)
#define RL_OWN_KERNEL(threads, blocks, name, Args) RL_KERNEL(threads, name, Args)
#define RL_SHARED_POOL(name) static thread_local Words4 name[kSharedPool]
#define RL_UNROLL
#define RL_UNROLL_BY(n)
#define RL_FEW_TURNS
#endif

namespace redline::hip {

struct Index3 {
    uint32_t x, y, z;
};
struct alignas(8) Words2 {
    uint32_t d[2];
};
struct alignas(16) Words4 {
    uint32_t d[4];
};
struct alignas(16) Float4 {
    float d[4];
};

constexpr float kInfinity = __builtin_huge_valf();
constexpr uint32_t kSharedPool = 3072;  // of RL_SHARED_POOL at most, in Words4: 48 KiB

#if defined(__HIP__)

#if defined(__GFX9__)
constexpr uint32_t kWave = 64;
#else
constexpr uint32_t kWave = 32;
#endif
constexpr uint32_t kThreads = 128;  // of a block, unless a kernel says otherwise
constexpr uint32_t kTileThreads = 256;
constexpr uint32_t kDotThreads = 256;  // as DeviceReport::dot_threads() has it

RL_DEVICE uint32_t thread_index() {
    return __builtin_amdgcn_workitem_id_x();
}
RL_DEVICE Index3 block_index() {
    return {__builtin_amdgcn_workgroup_id_x(), __builtin_amdgcn_workgroup_id_y(),
            __builtin_amdgcn_workgroup_id_z()};
}
// Of the grid along x, in blocks.
RL_DEVICE uint32_t grid_blocks() {
    const auto* packet = (const __attribute__((address_space(4))) uint32_t*)__builtin_amdgcn_dispatch_ptr();
    const uint32_t size = packet[1] & 0xFFFFu, items = packet[3];  // workgroup_size_x, grid_size_x
    return items / size;
}
RL_DEVICE void sync_block() {
    __builtin_amdgcn_fence(__ATOMIC_RELEASE, "workgroup");
    __builtin_amdgcn_s_barrier();
    __builtin_amdgcn_fence(__ATOMIC_ACQUIRE, "workgroup");
}
RL_DEVICE void sync_wave() {
    __builtin_amdgcn_fence(__ATOMIC_RELEASE, "wavefront");
    __builtin_amdgcn_wave_barrier();
    __builtin_amdgcn_fence(__ATOMIC_ACQUIRE, "wavefront");
}

template <int kControl>
RL_DEVICE uint32_t dpp(uint32_t value) {
    return uint32_t(__builtin_amdgcn_update_dpp(0, int(value), kControl, 15, 15, true));
}
// The value of the lane whose number differs in this bit. Needs all lanes.
RL_DEVICE uint32_t across(uint32_t value, uint32_t bit) {
    const uint32_t lane = thread_index() % kWave;
    return uint32_t(__builtin_amdgcn_ds_bpermute(int((lane ^ bit) * 4), int(value)));
}
RL_DEVICE uint32_t across_rows(uint32_t value) {
#if defined(__GFX9__)
    return across(value, 16);
#else
    return __builtin_amdgcn_permlanex16(value, value, 0x76543210u, 0xFEDCBA98u, false, true);
#endif
}
// Folds a value over the lanes of a wave, each of which gets the result; all lanes must take part. Within
// rows of 16 by DPP: pairs, pairs of pairs, then mirrored halves, where all lanes of a quad are equal
// already.
template <typename T, typename Fold>
RL_DEVICE T wave_fold(T value, Fold fold) {
    const auto with = [&](uint32_t other) { value = fold(value, __builtin_bit_cast(T, other)); };
    with(dpp<0xB1>(__builtin_bit_cast(uint32_t, value)));
    with(dpp<0x4E>(__builtin_bit_cast(uint32_t, value)));
    with(dpp<0x141>(__builtin_bit_cast(uint32_t, value)));
    with(dpp<0x140>(__builtin_bit_cast(uint32_t, value)));
    with(across_rows(__builtin_bit_cast(uint32_t, value)));
    if constexpr (kWave == 64) with(across(__builtin_bit_cast(uint32_t, value), 32));
    return value;
}
// The same over kShare neighbouring lanes.
constexpr uint32_t kShare = 4;
template <typename T, typename Fold>
RL_DEVICE T share_fold(T value, Fold fold) {
    const auto with = [&](uint32_t other) { value = fold(value, __builtin_bit_cast(T, other)); };
    with(dpp<0xB1>(__builtin_bit_cast(uint32_t, value)));
    with(dpp<0x4E>(__builtin_bit_cast(uint32_t, value)));
    return value;
}
// sum + the four products of signed bytes.
RL_DEVICE int32_t dot4(uint32_t a, uint32_t b, int32_t sum) {
#if defined(__GFX11__) || defined(__GFX12__)
    return __builtin_amdgcn_sudot4(true, int(a), true, int(b), sum, false);
#else
    return __builtin_amdgcn_sdot4(int(a), int(b), sum, false);
#endif
}
// The same of bytes without signs.
RL_DEVICE uint32_t byte_dot4(uint32_t a, uint32_t b, uint32_t sum) {
    return __builtin_amdgcn_udot4(a, b, sum, false);
}
// Sums of dot4() begin with kDotStart and end with dot_value().
constexpr int32_t kDotStart = 0;
RL_DEVICE float dot_value(int32_t sum) {
    return float(sum);
}
// Of less than 2^22 either way.
RL_DEVICE float small_float(int32_t value) {
    return float(value);
}
RL_DEVICE float byte_float(uint32_t value) {
    return float(value);
}
// Of at least 1e-30; good to a few units in the last place.
RL_DEVICE float fast_inverse(float x) {
    return __builtin_amdgcn_rcpf(x);
}

// A value that all lanes share, kept in a register of each lane: there are few scalar registers.
RL_DEVICE size_t in_each_lane(size_t value) {
    uint32_t low = uint32_t(value), high = uint32_t(uint64_t(value) >> 32);
    asm("" : "+v"(low), "+v"(high));
    return uint64_t(high) << 32 | low;
}

// A value that all lanes share, and the compiler does not know to be shared: branches by it need no masks.
RL_DEVICE uint32_t same_in_lanes(uint32_t value) {
    return __builtin_amdgcn_readfirstlane(value);
}

// CDNA's instructions take one constant each: another one that is in a register lets two of them be one.
RL_DEVICE uint32_t constant_in_lanes(uint32_t value) {
#if defined(__GFX9__)
    asm("" : "+v"(value));
#endif
    return value;
}

// The kernel's arguments, read by each lane when they are used: for what would fill the scalar registers.
template <typename Args>
RL_DEVICE const Args& args_in_lanes([[maybe_unused]] const Args& args) {
#if defined(__GFX9__)
    return *reinterpret_cast<const Args*>(in_each_lane(size_t(__builtin_amdgcn_kernarg_segment_ptr())));
#else
    return args;
#endif
}

// Nothing is moved over this: loads started too early fill the registers.
RL_DEVICE void keep_order() {
    __builtin_amdgcn_sched_barrier(0);
}

RL_DEVICE float half_value(uint16_t bits) {
    return float(__builtin_bit_cast(_Float16, bits));
}
RL_DEVICE uint16_t half_bits(float value) {
    return __builtin_bit_cast(uint16_t, _Float16(value));
}
// Byte i is that byte of low:high which byte i of `select` (0 to 7) names.
RL_DEVICE uint32_t pick_bytes(uint32_t select, uint32_t low, uint32_t high) {
    return __builtin_amdgcn_perm(high, low, select);
}
// The lower 32 bits of high:low without their first `shift`, which are less than 32.
RL_DEVICE uint32_t join_words(uint32_t low, uint32_t high, uint32_t shift) {
    return __builtin_amdgcn_alignbit(high, low, shift);
}
// Bytes of 0 or 1 as such of 0 or 255.
// Some bits of a value, with others.
RL_DEVICE uint32_t and_or(uint32_t value, uint32_t mask, uint32_t others) {
    return (value & mask) | others;
}
RL_DEVICE uint32_t full_bytes(uint32_t bits) {
    typedef uint16_t Pair __attribute__((ext_vector_type(2)));
    return __builtin_bit_cast(uint32_t, __builtin_bit_cast(Pair, bits) * Pair(255));
}
RL_DEVICE float exp_of(float x) {
    return __builtin_elementwise_exp(x);
}
RL_DEVICE float log_of(float x) {
    return __builtin_elementwise_log(x);
}
RL_DEVICE float root_of(float x) {
    return __builtin_sqrtf(x);
}
RL_DEVICE float round_of(float x) {
    return __builtin_elementwise_roundeven(x);
}

// Of the machine: the last bits may differ.
RL_DEVICE float exp2_of(float x) {
    return __builtin_amdgcn_exp2f(x);
}
// The value of the lane whose number differs in this one bit. Needs all lanes.
template <uint32_t kBit>
RL_DEVICE float from_lane_across(float value) {
    const uint32_t bits = __builtin_bit_cast(uint32_t, value);
    if constexpr (kBit == 1) return __builtin_bit_cast(float, dpp<0xB1>(bits));
    if constexpr (kBit == 2) return __builtin_bit_cast(float, dpp<0x4E>(bits));
    if constexpr (kBit == 32) return __builtin_bit_cast(float, across(bits, 32));
#if defined(__GFX9__)
    return __builtin_bit_cast(float, __builtin_amdgcn_ds_swizzle(int(bits), int(kBit << 10 | 0x1Fu)));
#else
    if constexpr (kBit == 16) return __builtin_bit_cast(float, across_rows(bits));
    return __builtin_bit_cast(float, dpp<0x160 + kBit>(bits));
#endif
}
// What the block's threads wrote before, others on the device see once they have passed theirs behind it.
RL_DEVICE void fence_device() {
    __builtin_amdgcn_fence(__ATOMIC_ACQ_REL, "agent");
}
// Adds one; what was there before.
RL_DEVICE uint32_t count_up(uint32_t* counter) {
    return __hip_atomic_fetch_add(counter, 1u, __ATOMIC_RELAXED, __HIP_MEMORY_SCOPE_AGENT);
}

#elif defined(__CUDACC__)

constexpr uint32_t kWave = 32;
constexpr uint32_t kThreads = 128;
constexpr uint32_t kTileThreads = 256;
constexpr uint32_t kDotThreads = 512;

RL_DEVICE uint32_t thread_index() {
    return threadIdx.x;
}
RL_DEVICE Index3 block_index() {
    return {blockIdx.x, blockIdx.y, blockIdx.z};
}
RL_DEVICE uint32_t grid_blocks() {
    return gridDim.x;
}
RL_DEVICE void sync_block() {
    __syncthreads();
}
RL_DEVICE void sync_wave() {
    __syncwarp();
}
template <typename T, typename Fold>
RL_DEVICE T wave_fold(T value, Fold fold) {
    for (int bit = 1; bit < 32; bit *= 2) value = fold(value, __shfl_xor_sync(0xFFFFFFFFu, value, bit));
    return value;
}
constexpr uint32_t kShare = 4;
template <typename T, typename Fold>
RL_DEVICE T share_fold(T value, Fold fold) {
    for (int bit = 1; bit < 4; bit *= 2) value = fold(value, __shfl_xor_sync(0xFFFFFFFFu, value, bit));
    return value;
}
RL_DEVICE int32_t dot4(uint32_t a, uint32_t b, int32_t sum) {
    return __dp4a(int(a), int(b), sum);
}
RL_DEVICE uint32_t byte_dot4(uint32_t a, uint32_t b, uint32_t sum) {
    return __dp4a(a, b, sum);
}
// Integers become floats at a sixteenth of the rate of other arithmetic; in the mantissa of 1.5 * 2^23 they
// are floats already.
constexpr int32_t kDotStart = 0x4B400000;
RL_DEVICE float dot_value(int32_t sum) {
    return __int_as_float(sum) - 12582912.0f;
}
RL_DEVICE float small_float(int32_t value) {
    return dot_value(kDotStart + value);
}
RL_DEVICE float byte_float(uint32_t value) {
    return dot_value(kDotStart | int32_t(value));
}
RL_DEVICE float fast_inverse(float x) {
    return __fdividef(1.0f, x);
}
RL_DEVICE float half_value(uint16_t bits) {
    float value;
    asm("cvt.f32.f16 %0, %1;" : "=f"(value) : "h"(bits));
    return value;
}
RL_DEVICE uint16_t half_bits(float value) {
    uint16_t bits;
    asm("cvt.rn.f16.f32 %0, %1;" : "=h"(bits) : "f"(value));
    return bits;
}
RL_DEVICE uint32_t pick_bytes(uint32_t select, uint32_t low, uint32_t high) {
    const uint32_t pairs = select | select >> 4;  // selectors are nibbles here
    return __byte_perm(low, high, (pairs & 0xFFu) | (pairs >> 8 & 0xFF00u));
}
RL_DEVICE uint32_t join_words(uint32_t low, uint32_t high, uint32_t shift) {
    return __funnelshift_r(low, high, shift);
}
// Written out, since the compiler makes two instructions of it where mask and others are constants.
RL_DEVICE uint32_t and_or(uint32_t value, uint32_t mask, uint32_t others) {
    uint32_t both;
    asm("lop3.b32 %0, %1, %2, %3, 0xEA;" : "=r"(both) : "r"(value), "r"(mask), "r"(others));
    return both;
}
RL_DEVICE uint32_t full_bytes(uint32_t bits) {
    return bits * 255u;
}
RL_DEVICE float exp_of(float x) {
    return expf(x);
}
RL_DEVICE float log_of(float x) {
    return logf(x);
}
RL_DEVICE float root_of(float x) {
    return sqrtf(x);
}
RL_DEVICE float round_of(float x) {
    return rintf(x);
}
RL_DEVICE float exp2_of(float x) {
    float power;
    asm("ex2.approx.ftz.f32 %0, %1;" : "=f"(power) : "f"(x));
    return power;
}
template <uint32_t kBit>
RL_DEVICE float from_lane_across(float value) {
    return __shfl_xor_sync(0xFFFFFFFFu, value, int(kBit));
}
RL_DEVICE void fence_device() {
    __threadfence();
}
RL_DEVICE uint32_t count_up(uint32_t* counter) {
    return atomicAdd(counter, 1u);
}

#else

constexpr uint32_t kWave = 1;
constexpr uint32_t kThreads = 1;
constexpr uint32_t kTileThreads = 1;
constexpr uint32_t kDotThreads = 1;

// Set by the runtime that runs the kernels.
extern thread_local Index3 host_block;
extern thread_local uint32_t host_grid_blocks;

RL_DEVICE uint32_t thread_index() {
    return 0;
}
RL_DEVICE Index3 block_index() {
    return host_block;
}
RL_DEVICE uint32_t grid_blocks() {
    return host_grid_blocks;
}
RL_DEVICE void sync_block() {}
RL_DEVICE void sync_wave() {}
template <typename T, typename Fold>
RL_DEVICE T wave_fold(T value, Fold) {
    return value;
}
constexpr uint32_t kShare = 1;
template <typename T, typename Fold>
RL_DEVICE T share_fold(T value, Fold) {
    return value;
}
RL_DEVICE int32_t dot4(uint32_t a, uint32_t b, int32_t sum) {
    for (uint32_t i = 0; i < 32; i += 8) sum += int32_t(int8_t(a >> i)) * int32_t(int8_t(b >> i));
    return sum;
}
RL_DEVICE uint32_t byte_dot4(uint32_t a, uint32_t b, uint32_t sum) {
    for (uint32_t i = 0; i < 32; i += 8) sum += ((a >> i) & 255u) * ((b >> i) & 255u);
    return sum;
}
constexpr int32_t kDotStart = 0;
RL_DEVICE float dot_value(int32_t sum) {
    return float(sum);
}
RL_DEVICE float small_float(int32_t value) {
    return float(value);
}
RL_DEVICE float byte_float(uint32_t value) {
    return float(value);
}
RL_DEVICE float fast_inverse(float x) {
    return 1.0f / x;
}
RL_DEVICE float half_value(uint16_t bits) {
    const uint32_t sign = uint32_t(bits & 0x8000u) << 16, exponent = (bits >> 10) & 31u,
                   mantissa = bits & 1023u;
    if (exponent == 31) return __builtin_bit_cast(float, sign | 0x7F800000u | mantissa << 13);
    if (exponent != 0) return __builtin_bit_cast(float, sign | (exponent + 112) << 23 | mantissa << 13);
    const float magnitude = float(mantissa) * 0x1p-24f;
    return sign ? -magnitude : magnitude;
}
uint16_t half_bits(float value);
RL_DEVICE uint32_t join_words(uint32_t low, uint32_t high, uint32_t shift) {
    return uint32_t((uint64_t(high) << 32 | low) >> shift);
}
RL_DEVICE uint32_t and_or(uint32_t value, uint32_t mask, uint32_t others) {
    return (value & mask) | others;
}
RL_DEVICE uint32_t full_bytes(uint32_t bits) {
    return bits * 255u;
}
RL_DEVICE uint32_t pick_bytes(uint32_t select, uint32_t low, uint32_t high) {
    uint32_t out = 0;
    for (uint32_t i = 0; i < 32; i += 8) {
        const uint32_t s = (select >> i) & 7u;
        out |= (((s < 4 ? low : high) >> (s % 4 * 8)) & 255u) << i;
    }
    return out;
}
RL_DEVICE float exp_of(float x) {
    return std::exp(x);
}
RL_DEVICE float log_of(float x) {
    return std::log(x);
}
RL_DEVICE float root_of(float x) {
    return std::sqrt(x);
}
RL_DEVICE float round_of(float x) {
    return std::nearbyint(x);
}
RL_DEVICE float exp2_of(float x) {
    return std::exp2(x);
}
template <uint32_t kBit>
RL_DEVICE float from_lane_across(float value) {
    return value;
}
RL_DEVICE void fence_device() {}
RL_DEVICE uint32_t count_up(uint32_t* counter) {
    return (*counter)++;
}

#endif

constexpr uint32_t kWaves = kThreads / kWave;  // of a block

#if !defined(__HIP__)
RL_DEVICE size_t in_each_lane(size_t value) {
    return value;
}
RL_DEVICE uint32_t same_in_lanes(uint32_t value) {
    return value;
}
RL_DEVICE uint32_t constant_in_lanes(uint32_t value) {
    return value;
}
template <typename Args>
RL_DEVICE const Args& args_in_lanes(const Args& args) {
    return args;
}
RL_DEVICE void keep_order() {}
#endif
RL_DEVICE uint32_t lane_index() {
    return thread_index() % kWave;
}
RL_DEVICE uint32_t wave_index() {
    return thread_index() / kWave;
}
RL_DEVICE float larger(float a, float b) {
    return a > b ? a : b;
}
RL_DEVICE uint32_t lesser(uint32_t a, uint32_t b) {
    return a < b ? a : b;
}
RL_DEVICE float wave_sum(float value) {
    return wave_fold(value, [](float a, float b) { return a + b; });
}
RL_DEVICE float wave_max(float value) {
    return wave_fold(value, [](float a, float b) { return larger(a, b); });
}
// One rounding; nothing else is contracted.
RL_DEVICE float fused(float a, float b, float c) {
    return __builtin_fmaf(a, b, c);
}
RL_DEVICE float bits_float(uint32_t bits) {
    return __builtin_bit_cast(float, bits);
}
RL_DEVICE uint32_t float_bits(float value) {
    return __builtin_bit_cast(uint32_t, value);
}
template <typename T>
RL_DEVICE T load(const void* base, size_t index) {
    return static_cast<const T*>(base)[index];
}
RL_DEVICE int32_t signed_byte(uint32_t word, uint32_t index) {
    return int32_t(int8_t(word >> (index * 8)));
}
RL_DEVICE uint32_t byte_of(uint32_t word, uint32_t index) {
    return (word >> (index * 8)) & 255u;
}
}  // namespace redline::hip

#include "kernels/early.h"  // what kernels begin with
