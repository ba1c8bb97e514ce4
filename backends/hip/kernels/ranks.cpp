// The sum of rows over ranks, each of which is a device of this machine.
#include "kernels/rank_args.h"
#include "kernels/row.h"
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
// Four at a time, of which each may arrive alone.
RL_DEVICE void put_four(float* to, const Float4& value) {
#if defined(__CUDACC__)
    asm volatile("st.volatile.v4.f32 [%0], {%1, %2, %3, %4};" ::"l"(to), "f"(value.d[0]), "f"(value.d[1]),
                 "f"(value.d[2]), "f"(value.d[3])
                 : "memory");
#elif defined(__HIP__)
    typedef float Four __attribute__((ext_vector_type(4)));
    *reinterpret_cast<volatile Four*>(to) = Four{value.d[0], value.d[1], value.d[2], value.d[3]};
#else
    for (uint32_t i = 0; i < 4; ++i) put(to + i, value.d[i]);
#endif
}
RL_DEVICE Float4 look_four(const float* from) {
#if defined(__CUDACC__)
    Float4 value;
    asm volatile("ld.volatile.v4.f32 {%0, %1, %2, %3}, [%4];"
                 : "=f"(value.d[0]), "=f"(value.d[1]), "=f"(value.d[2]), "=f"(value.d[3])
                 : "l"(from)
                 : "memory");
    return value;
#elif defined(__HIP__)
    typedef float Four __attribute__((ext_vector_type(4)));
    const Four four = *reinterpret_cast<const volatile Four*>(from);
    return {{four[0], four[1], four[2], four[3]}};
#else
    return {{look(from), look(from + 1), look(from + 2), look(from + 3)}};
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
// 200 ns by measurement: with 20 a token of a 70B over two H200 took 11 to 15 ms in place of 8.3
// (2026-11-30). It may be that so many looks keep the rows of the others from coming in.
RL_DEVICE void rest() {
#if defined(__HIP__)
    __builtin_amdgcn_s_sleep(1);
#elif defined(__CUDACC__)
    __nanosleep(200);
#else
    sched_yield();
#endif
}

// Turns are of 32 bits and begin anew at their end, where zero, which memory has at first, is left out.
RL_DEVICE uint32_t turn_behind(uint32_t turn) {
    return turn == 0xFFFFFFFFu ? 2u : turn + 1;
}

// The word of trouble lies in the host's memory, which many threads read slowly: looked at as often as every
// 64 looks, a rank that was behind by 16 us made the others wait for 250 (two H200, 2026-11-30).
#if defined(__HIP__) || defined(__CUDACC__)
constexpr uint32_t kLooksForTrouble = 8192;
#else
constexpr uint32_t kLooksForTrouble = 16;  // on the CPU other threads may run between two looks
#endif

// Looks again and again, until there is something or nobody waits any more; false then.
template <typename There>
RL_DEVICE bool wait_until(const RankSumArgs& args, There there) {
    for (uint32_t spin = 0; !there(); ++spin) {
        if (spin >= args.spins) {
            put(args.trouble, 1u);
            return false;
        }
        if (spin % kLooksForTrouble == kLooksForTrouble - 1 && look(args.trouble) != 0) return false;
        rest();
    }
    return true;
}
// Until the flag of a block has reached this turn. Its rank may be one turn ahead by then.
RL_DEVICE void wait_for(const uint32_t* flag, uint32_t turn, const RankSumArgs& args) {
    wait_until(args, [&] {
        const uint32_t seen = look(flag);
        return seen == turn || seen == turn_behind(turn);
    });
}
// An element of another rank, once it is that of this turn.
RL_DEVICE float arrived(const uint64_t* from, uint32_t turn, const RankSumArgs& args) {
    uint64_t word = 0;
    wait_until(args, [&] {
        word = look(from);
        return uint32_t(word >> 32) == turn;
    });
    return bits_float(uint32_t(word));
}

constexpr uint32_t kSumThreads = kTileThreads;

// The part of the elements that a block has: whole groups of `grain`.
struct BlockPart {
    uint64_t begin, end;
};
RL_DEVICE BlockPart part_of_block(uint64_t elements, uint32_t grain) {
    const uint64_t groups = (elements + grain - 1) / grain;
    const uint64_t each = (groups + grid_blocks() - 1) / grid_blocks() * grain;
    const uint64_t begin = each * block_index().x;
    return {begin < elements ? begin : elements, begin + each < elements ? begin + each : elements};
}
RL_DEVICE uint64_t elements_of(const RankSumArgs& args) {
    return uint64_t(rows_in_step(args.step, args.of_outputs)) * args.width;
}
// Sums of all sizes are one sequence of turns: the next may have more blocks.
RL_DEVICE void end_turn(const RankSumArgs& args, uint32_t turn) {
    if (thread_index() == 0) args.turns[block_index().x] = turn;
    if (block_index().x + 1 < grid_blocks()) return;
    for (uint32_t i = grid_blocks() + thread_index(); i < kMostRankBlocks; i += kSumThreads)
        args.turns[i] = turn;
}

}  // namespace

// y = the sum of all ranks' x, in their order. A block per part of the elements, which goes on when the same
// block of each other rank has its rows there. A rank that writes the rows of a turn has ended the turn
// before, for which all ranks had ended the one before that: two halves are enough.
RL_KERNEL(kTileThreads, rank_sum, RankSumArgs) {
    constexpr uint32_t kGrain = 64;
    const BlockPart part = part_of_block(elements_of(args), kGrain);
    const uint64_t fours = part.begin + (part.end - part.begin) / 4 * 4;
    const uint32_t block = block_index().x, turn = turn_behind(args.turns[block]),
                   flag = block * kRankFlagStride;
    const uint64_t half = (turn & 1) * args.half;
    const auto to = [&](uint32_t target) { return static_cast<float*>(args.to[target]) + half; };
    const auto from = [&](uint32_t rank) { return static_cast<const float*>(args.from[rank]) + half; };
    RL_UNROLL_BY(4)
    for (uint64_t i = part.begin + thread_index() * 4; i < fours; i += kSumThreads * 4) {
        const auto value = load<Float4>(args.x, i / 4);
        for (uint32_t target = 0; target < args.targets; ++target) put_four(to(target) + i, value);
    }
    for (uint64_t i = fours + thread_index(); i < part.end; i += kSumThreads)
        for (uint32_t target = 0; target < args.targets; ++target) put(to(target) + i, args.x[i]);
    fence_system();
    sync_block();
    if (thread_index() == 0) {
        for (uint32_t target = 0; target < args.targets; ++target) put(args.flags[target] + flag, turn);
        for (uint32_t rank = 0; rank < args.ranks; ++rank)
            if (rank != args.rank) wait_for(args.seen[rank] + flag, turn, args);
        fence_system();
    }
    sync_block();
    RL_UNROLL_BY(4)
    for (uint64_t i = part.begin + thread_index() * 4; i < fours; i += kSumThreads * 4) {
        Float4 sum = {};
        for (uint32_t rank = 0; rank < args.ranks; ++rank) {
            const Float4 value = rank == args.rank ? load<Float4>(args.x, i / 4) : look_four(from(rank) + i);
            RL_UNROLL
            for (uint32_t e = 0; e < 4; ++e) sum.d[e] = rank == 0 ? value.d[e] : sum.d[e] + value.d[e];
        }
        reinterpret_cast<Float4*>(args.y)[i / 4] = sum;
    }
    for (uint64_t i = fours + thread_index(); i < part.end; i += kSumThreads) {
        float sum = 0.0f;
        for (uint32_t rank = 0; rank < args.ranks; ++rank) {
            const float value = rank == args.rank ? args.x[i] : look(from(rank) + i);
            sum = rank == 0 ? value : sum + value;
        }
        args.y[i] = sum;
    }
    end_turn(args, turn);
}

// The same for few elements, each of which travels with its turn in one word: no flag has to wait until the
// rows before it are there. The sum of one row is left for the product that takes it, too.
RL_KERNEL(kTileThreads, rank_sum_short, RankSumArgs) {
    const BlockPart part = part_of_block(elements_of(args), kHalfUnit);
    const uint32_t turn = turn_behind(args.turns[block_index().x]);
    const uint64_t half = (turn & 1) * args.half;
    for (uint64_t i = part.begin + thread_index(); i < part.end; i += kSumThreads) {
        const uint64_t word = uint64_t(turn) << 32 | float_bits(args.x[i]);
        for (uint32_t target = 0; target < args.targets; ++target)
            put(static_cast<uint64_t*>(args.to[target]) + half + i, word);
    }
    for (uint64_t i = part.begin + thread_index(); i < part.end; i += kSumThreads) {
        float sum = 0.0f;
        for (uint32_t rank = 0; rank < args.ranks; ++rank) {
            const float value =
                rank == args.rank
                    ? args.x[i]
                    : arrived(static_cast<const uint64_t*>(args.from[rank]) + half + i, turn, args);
            sum = rank == 0 ? value : sum + value;
        }
        args.y[i] = sum;
    }
    sync_block();
    if (args.hand.row && part.begin < part.end)
        leave_halves<kSumThreads>(args.hand, args.y + part.begin, uint32_t(part.begin / kHalfUnit),
                                  uint32_t((part.end - part.begin) / kHalfUnit));
    end_turn(args, turn);
}

RL_KERNEL(kTileThreads, rank_check, RankCheckArgs) {
    const uint64_t step = uint64_t(grid_blocks()) * kSumThreads;
    for (uint64_t i = uint64_t(block_index().x) * kSumThreads + thread_index(); i < args.elements;
         i += step) {
        const float got = args.y[i], want = args.want[i];
        const bool same =
            args.most ? __builtin_fabsf(got - want) <= args.most[i] : float_bits(got) == float_bits(want);
        if (!same) count_up(args.wrong);
    }
}

}  // namespace redline::hip
