// How a launch begins while the one before it still runs, which NVIDIA's cards offer. The macros of wave.h
// call what is here.
#pragma once

#include "kernels/wave.h"

namespace redline::hip {

#if defined(__CUDACC__)

// From compute capability 9.0 on a kernel may start while the one before it ends, once all its blocks have
// called let_next_start(). What that one writes is there when this returns.
RL_DEVICE void wait_for_inputs() {
#if __CUDA_ARCH__ >= 900
    asm volatile("griddepcontrol.wait;" ::: "memory");
#endif
}
RL_DEVICE void let_next_start() {
#if __CUDA_ARCH__ >= 900
    asm volatile("griddepcontrol.launch_dependents;");
#endif
}
// Reads before wait_for_inputs() what an earlier launch than the last one wrote: past the multiprocessor's
// own cache, which may still have what was there before.
RL_DEVICE Words4 load_early(const Words4* from) {
    const uint4 words = __ldcg(reinterpret_cast<const uint4*>(from));
    return {{words.x, words.y, words.z, words.w}};
}
RL_DEVICE float load_early(const float* from) {
    return __ldcg(from);
}

#if __CUDA_ARCH__ >= 900
#define RL_COPIES_AHEAD  // as DeviceReport::copies_ahead() has it
// Brings 4, 8 or 16 bytes to shared memory while the lane goes on; both addresses are multiples of that.
template <uint32_t kBytes>
RL_DEVICE void copy_ahead(void* to, const void* from) {
    const uint32_t at = uint32_t(__cvta_generic_to_shared(to));
    if constexpr (kBytes == 16)
        asm volatile("cp.async.cg.shared.global [%0], [%1], 16;" ::"r"(at), "l"(from) : "memory");
    else
        asm volatile("cp.async.ca.shared.global [%0], [%1], %2;" ::"r"(at), "l"(from), "n"(kBytes)
                     : "memory");
}
// The compiler neither finds the value anew where it is used, nor adds to it what comes later.
template <typename T>
RL_DEVICE void keep_in_register(T*& value) {
    asm volatile("" : "+l"(value));
}
// Ends a group of a lane's copies.
RL_DEVICE void end_copies() {
    asm volatile("cp.async.commit_group;" ::: "memory");
}
// Until all groups but the last kLeft are there.
template <uint32_t kLeft>
RL_DEVICE void wait_for_copies() {
    asm volatile("cp.async.wait_group %0;" ::"n"(kLeft) : "memory");
}
#endif

#else

RL_DEVICE void wait_for_inputs() {}
RL_DEVICE void let_next_start() {}
template <typename T>
RL_DEVICE T load_early(const T* from) {
    return *from;
}

#endif

}  // namespace redline::hip
