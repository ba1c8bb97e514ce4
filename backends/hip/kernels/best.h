// The largest of each row of outputs, in no order: the lowest ids among equals, and what is not a number
// first. backends/shared/best.h says in what turns; x over slices of a row, y over rows. By radix: digit by
// digit the smallest key is found that is still among them, of the values, and if several share it of the
// ids.
#pragma once

#include "kernels/args.h"
#include "kernels/reduce.h"

namespace redline::hip {

constexpr uint32_t kDigits = 256;
constexpr uint32_t kNoOutput = UINT32_MAX;  // id of a place without one

struct BestShared {
    uint32_t keys[args::kBestSlice];  // of the values
    uint32_t bins[kDigits];
    uint32_t sixteens[kDigits / 16];
    uint32_t found, left, taken;
};

// Rises with the value, from 1 on; both zeros are equal. 0 is the key of a place without an output.
RL_DEVICE uint32_t value_key(uint32_t bits) {
    const uint32_t size = bits & 0x7FFFFFFFu;
    if (size > 0x7F800000u) return UINT32_MAX;
    if (size == 0) return 0x80000000u;
    return bits >> 31 ? ~bits : bits | 0x80000000u;
}

// What a block picks from: outputs, or what was picked before.
struct BestSource {
    const args::BestArgs& args;
    size_t row;  // where it begins
    uint32_t first, entries;

    RL_DEVICE uint32_t bits(uint32_t i) const {
        return args.merge ? load<Words2>(args.from, row + first + i).d[0]
                          : load<uint32_t>(args.from, row + first + i);
    }
    RL_DEVICE uint32_t id(uint32_t i) const {
        return args.merge ? load<Words2>(args.from, row + first + i).d[1] : first + i;
    }
};

// All at once are on their way before one is looked at.
RL_DEVICE void read_keys(BestShared& shared, const BestSource& source) {
    constexpr uint32_t kTurns = args::kBestSlice / kTileThreads;
    static_assert(args::kBestSlice % kTileThreads == 0);
    uint32_t bits[kTurns], ids[kTurns];
    RL_UNROLL
    for (uint32_t t = 0; t < kTurns; ++t) {
        const uint32_t i = lesser(t * kTileThreads + thread_index(), source.entries - 1);
        bits[t] = source.bits(i);
        ids[t] = source.id(i);
    }
    RL_UNROLL
    for (uint32_t t = 0; t < kTurns; ++t) {
        const uint32_t i = t * kTileThreads + thread_index();
        // No id of an output is kNoOutput.
        if (i < source.entries) shared.keys[i] = ids[t] == kNoOutput ? 0 : value_key(bits[t]);
    }
}

// The digit of the `wanted`-th largest key into shared.found, and into shared.left how many of that digit are
// wanted.
RL_DEVICE void find_digit(BestShared& shared, uint32_t wanted) {
    for (uint32_t s = thread_index(); s < kDigits / 16; s += kTileThreads) {
        uint32_t sum = 0;
        for (uint32_t d = 0; d < 16; ++d) sum += shared.bins[s * 16 + d];
        shared.sixteens[s] = sum;
    }
    sync_block();
    for (uint32_t d = thread_index(); d < kDigits; d += kTileThreads) {
        uint32_t above = 0;
        for (uint32_t s = d / 16 + 1; s < kDigits / 16; ++s) above += shared.sixteens[s];
        for (uint32_t other = d + 1; other < (d / 16 + 1) * 16; ++other) above += shared.bins[other];
        if (above < wanted && above + shared.bins[d] >= wanted) {
            shared.found = d;
            shared.left = wanted - above;
        }
    }
    sync_block();
}

// The key that is the `wanted`-th largest: of the values, or of the ids of those whose value's key is
// `value`. Leaves in shared.left how many of that key are wanted, and in bins[key & 255] how many there are.
RL_DEVICE uint32_t nth_key(BestShared& shared, const BestSource& source, uint32_t wanted, bool of_ids,
                           uint32_t value) {
    uint32_t key = 0, known = 0;
    for (uint32_t shift = 32; shift > 0;) {
        shift -= 8;
        sync_block();
        for (uint32_t d = thread_index(); d < kDigits; d += kTileThreads) shared.bins[d] = 0;
        sync_block();
        for (uint32_t i = thread_index(); i < source.entries; i += kTileThreads) {
            uint32_t k = shared.keys[i];
            if (k == 0 || (of_ids && k != value)) continue;
            if (of_ids) k = ~source.id(i);
            if ((k & known) == key) count_up(&shared.bins[k >> shift & 255u]);
        }
        sync_block();
        find_digit(shared, wanted);
        key |= shared.found << shift;
        known |= 255u << shift;
        wanted = shared.left;
    }
    return key;
}

RL_DEVICE void pick_best(const args::BestArgs& args, BestShared& shared) {
    const uint32_t row = block_index().y,
                   slices = args.merge ? 1 : (args.entries + args::kBestSlice - 1) / args::kBestSlice;
    if (row >= args.step->outputs) return;
    const uint32_t among = args.step->best_among, all = args.merge ? args.entries : among,
                   first = lesser(block_index().x * args::kBestSlice, all);
    const BestSource source = {args, size_t(row) * args.entries, first,
                               lesser(args::kBestSlice, all - first)};
    Words2* const to = static_cast<Words2*>(args.to) + (size_t(row) * slices + block_index().x) * args.count;
    // In the second turn places may be empty, but no fewer than are wanted are not.
    const uint32_t wanted = lesser(args.count, args.merge ? among : source.entries);
    RL_FEW_TURNS
    for (uint32_t i = wanted + thread_index(); i < args.count; i += kTileThreads) to[i] = {{0, kNoOutput}};
    if (wanted == 0) return;
    read_keys(shared, source);
    if (thread_index() == 0) shared.taken = 0;
    const uint32_t value = nth_key(shared, source, wanted, false, 0), equal = shared.left;
    uint32_t id = 0;
    if (shared.bins[value & 255u] > equal) id = nth_key(shared, source, equal, true, value);
    for (uint32_t i = thread_index(); i < source.entries; i += kTileThreads) {
        const uint32_t k = shared.keys[i];
        if (k > value || (k == value && ~source.id(i) >= id))
            to[count_up(&shared.taken)] = {{source.bits(i), source.id(i)}};
    }
}

}  // namespace redline::hip
