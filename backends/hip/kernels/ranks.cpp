// The sum of rows over ranks, each of which is a device of this machine.
#include "kernels/rank_args.h"
#include "kernels/unit.h"

#if !defined(__HIP__) && !defined(__CUDACC__)
#include <sched.h>
#endif

namespace redline::hip {

using namespace args;

namespace {

// Memory that others write or read at the same time is accessed past all caches of this device.
template <typename T>
RL_DEVICE void put(T* to, T value) {
#if defined(__HIP__) || defined(__CUDACC__)
    *static_cast<volatile T*>(to) = value;
#else
    __atomic_store(to, &value, __ATOMIC_RELAXED);
#endif
}
template <typename T>
RL_DEVICE T look(const T* from) {
#if defined(__HIP__) || defined(__CUDACC__)
    return *static_cast<const volatile T*>(from);
#else
    T value;
    __atomic_load(const_cast<T*>(from), &value, __ATOMIC_RELAXED);
    return value;
#endif
}
// Earlier writes are seen by all devices, and the host, before later ones.
RL_DEVICE void fence_system() {
#if defined(__HIP__)
    __builtin_amdgcn_fence(__ATOMIC_SEQ_CST, "");
#elif defined(__CUDACC__)
    __threadfence_system();
#else
    __atomic_thread_fence(__ATOMIC_SEQ_CST);
#endif
}
RL_DEVICE void rest() {
#if defined(__HIP__)
    __builtin_amdgcn_s_sleep(1);
#elif defined(__CUDACC__)
    __nanosleep(20);
#else
    sched_yield();
#endif
}

// Waits until the flag of a block has reached this turn. Flags are of 32 bits, and begin anew at their end.
RL_DEVICE void wait_for(const uint32_t* flag, uint32_t turn, const RankSumArgs& args) {
    for (uint32_t spin = 0; int32_t(look(flag) - turn) < 0; ++spin) {
        if (spin >= args.spins) put(args.trouble, 1u);
        if ((spin & 63) == 63 && look(args.trouble) != 0) return;
        rest();
    }
}

}  // namespace

constexpr uint32_t kSumThreads = kTileThreads;

// y = the sum of all ranks' y, in their order. A block per part of the elements, which goes on when the same
// block of each other rank has its rows there. A rank that writes the rows of a turn has ended the turn
// before, for which all ranks had ended the one before that: two halves are enough.
RL_KERNEL(kTileThreads, rank_sum, RankSumArgs) {
    const uint64_t elements = uint64_t(rows_in_step(args.step, args.of_outputs)) * args.width;
    const uint32_t block = block_index().x;
    const uint64_t part = (elements + grid_blocks() - 1) / grid_blocks();
    const uint64_t begin = part * block < elements ? part * block : elements,
                   end = begin + part < elements ? begin + part : elements;
    const uint32_t turn = args.turns[block] + 1, flag = block * kRankFlagStride;
    const uint64_t half = (turn & 1) * args.half;
    for (uint64_t i = begin + thread_index(); i < end; i += kSumThreads) {
        const float value = args.y[i];
        for (uint32_t target = 0; target < args.targets; ++target) put(args.to[target] + half + i, value);
    }
    fence_system();
    sync_block();
    if (thread_index() == 0) {
        for (uint32_t target = 0; target < args.targets; ++target) put(args.flags[target] + flag, turn);
        for (uint32_t rank = 0; rank < args.ranks; ++rank)
            if (rank != args.rank) wait_for(args.seen[rank] + flag, turn, args);
        args.turns[block] = turn;
        fence_system();
    }
    // Sums of all sizes are one sequence: the next may have more blocks.
    if (block + 1 == grid_blocks())
        for (uint32_t i = grid_blocks() + thread_index(); i < kMostRankBlocks; i += kSumThreads)
            args.turns[i] = turn;
    sync_block();
    for (uint64_t i = begin + thread_index(); i < end; i += kSumThreads) {
        float sum = 0.0f;
        for (uint32_t rank = 0; rank < args.ranks; ++rank) {
            const float value = rank == args.rank ? args.y[i] : look(args.from[rank] + half + i);
            sum = rank == 0 ? value : sum + value;
        }
        args.y[i] = sum;
    }
}

}  // namespace redline::hip
