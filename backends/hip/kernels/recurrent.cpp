// The kernels of ops that keep states, and of what stands around them.
#include "kernels/args.h"
#include "kernels/block_args.h"
#include "kernels/delta.h"
#include "kernels/reduce.h"
#include "kernels/scan.h"
#include "kernels/unit.h"

namespace redline::hip {

using namespace args;

// Parts of rows of x, all of one width, go to y.
RL_KERNEL(128, copy_parts, CopyPartsArgs) {
    const uint32_t copied = args.parts * args.width;
    each_element(size_t(rows_in_step(args.step, args.of_outputs)) * copied, [&](size_t i) {
        const size_t row = i / copied;
        const uint32_t part = uint32_t(i % copied) / args.width, column = uint32_t(i % copied) % args.width;
        args.y[row * args.y_width + args.y_first + part * args.y_stride + column] =
            args.x[row * args.x_width + args.x_first + part * args.x_stride + column];
    });
}

// y *= act(gate), for each head.
RL_KERNEL(128, output_gate, OutputGateArgs) {
    each_element(size_t(rows_in_step(args.step, args.of_outputs)) * args.width, [&](size_t i) {
        const size_t head = i / args.head_dim;
        const float gate = args.x[head * args.stride + args.first + i % args.head_dim * args.step_of_gates];
        args.y[i] *= args.act == kGateSigmoid    ? sigmoid(gate)
                     : args.act == kGateSoftplus ? softplus(gate)
                                                 : gate;
    });
}

// A channel of some rows of a sequence, from row `begin` of those that it has in the step: u = before * x,
// then y[t] = act(sum over j of w[j] * u[t - taps + 1 + j] + bias) * behind. The thread of the first rows
// writes the state, which it alone reads, so that it may lie where it lay.
template <uint32_t kTaps>
RL_DEVICE void convolve(const ConvolveArgs& args, const SegmentState& segment, uint32_t begin,
                        uint32_t channel) {
    constexpr uint32_t kKept = kTaps - 1;
    if (begin >= segment.rows) return;
    const size_t width = args.width, first = segment.first_row * width + channel;
    const uint32_t end = lesser(begin + kConvolvedRows, segment.rows);
    const auto input = [&](uint32_t row) {
        const size_t at = first + row * width;
        return args.before ? args.before[at] * args.x[at] : args.x[at];
    };
    const auto state = [&](uint32_t row, uint32_t j) -> float& {
        return args.state[(size_t(row) * kKept + j) * width + channel];
    };
    const float bias = args.bias ? args.bias[channel] : 0.0f;
    float past[kKept], taps[kTaps];
    RL_UNROLL
    for (uint32_t j = 0; j < kTaps; ++j) taps[j] = args.w[size_t(channel) * kTaps + j];
    RL_UNROLL
    for (uint32_t j = 0; j < kKept; ++j)
        past[j] = begin > 0                    ? input(begin - kKept + j)
                  : segment.from == kZeroState ? 0.0f
                                               : state(segment.from, j);
    for (uint32_t row = begin; row < end; ++row) {
        const size_t at = first + row * width;
        const float u = input(row);
        float sum = taps[kKept] * u;
        RL_UNROLL
        for (uint32_t j = 0; j < kKept; ++j) sum = fused(taps[j], past[j], sum);
        RL_UNROLL
        for (uint32_t j = 0; j + 1 < kKept; ++j) past[j] = past[j + 1];
        past[kKept - 1] = u;
        sum += bias;
        if (args.silu) sum *= sigmoid(sum);
        args.y[at] = args.behind ? sum * args.behind[at] : sum;
        const uint32_t kept = state_behind(args.step, segment.first_row + row);
        if (kept == kZeroState) continue;
        RL_UNROLL
        for (uint32_t j = 0; j < kKept; ++j) state(kept, j) = past[j];
    }
    if (begin > 0) return;
    RL_UNROLL
    for (uint32_t j = 0; j < kKept; ++j)
        state(segment.to, j) = end < segment.rows ? input(segment.rows - kKept + j) : past[j];
}

template <uint32_t kTaps>
RL_DEVICE void convolve_all(const ConvolveArgs& args) {
    const uint32_t pieces = (args.step->rows + kConvolvedRows - 1) / kConvolvedRows;
    each_element(size_t(args.width) * pieces * args.step->segments, [&](size_t i) {
        const uint32_t piece = uint32_t(i / args.width);
        convolve<kTaps>(args, args.states[piece / pieces], piece % pieces * kConvolvedRows,
                        uint32_t(i % args.width));
    });
}
RL_KERNEL(128, convolve_2, ConvolveArgs) {
    convolve_all<2>(args);
}
RL_KERNEL(128, convolve_3, ConvolveArgs) {
    convolve_all<3>(args);
}
RL_KERNEL(128, convolve_4, ConvolveArgs) {
    convolve_all<4>(args);
}

// As convolve, with taps that lie apart: what is further back is read from the step's rows, and before them
// from the state. A thread per channel of a sequence.
RL_KERNEL(128, convolve_apart, ConvolveApartArgs) {
    const ConvolveArgs& c = args.convolve;
    const size_t width = c.width, kept = size_t(args.taps - 1) * args.apart;
    each_element(width * c.step->segments, [&](size_t i) {
        const SegmentState segment = c.states[i / width];
        const size_t channel = i % width, first = segment.first_row * width + channel;
        // Of a row counted from the first that the state has.
        const auto input = [&](size_t row) {
            if (row < kept)
                return segment.from == kZeroState ? 0.0f
                                                  : c.state[(segment.from * kept + row) * width + channel];
            const size_t at = first + (row - kept) * width;
            return c.before ? c.before[at] * c.x[at] : c.x[at];
        };
        for (uint32_t row = 0; row < segment.rows; ++row) {
            float sum = 0.0f;
            for (uint32_t j = 0; j < args.taps; ++j)
                sum = fused(c.w[channel * args.taps + j], input(row + size_t(j) * args.apart), sum);
            if (c.silu) sum *= sigmoid(sum);
            const size_t at = first + row * width;
            c.y[at] = c.behind ? sum * c.behind[at] : sum;
            const uint32_t behind = state_behind(c.step, segment.first_row + row);
            for (size_t j = 0; behind != kZeroState && j < kept; ++j)
                c.state[(behind * kept + j) * width + channel] = input(row + 1 + j);
        }
        // In order: where both states are one, a row is read before it is written.
        for (size_t j = 0; j < kept; ++j)
            c.state[(segment.to * kept + j) * width + channel] = input(segment.rows + j);
    });
}

RL_DEVICE uint32_t token_of(const Step* step, const Place* places, uint32_t row) {
    return places ? places[row].position : step->position + row;
}

// y[t] = the sum of x over the tokens of t's block up to t, times 1 / ratio. A thread per element of a
// sequence, which alone reads and writes its part of the state.
RL_KERNEL(128, block_mean, BlockMeanArgs) {
    each_element(size_t(args.width) * args.step->segments, [&](size_t i) {
        const SegmentState segment = args.states[i / args.width];
        const size_t column = i % args.width;
        float sum =
            segment.from == kZeroState ? 0.0f : args.state[size_t(segment.from) * args.width + column];
        for (uint32_t row = segment.first_row; row < segment.first_row + segment.rows; ++row) {
            const float x = args.x[size_t(row) * args.width + column];
            sum = token_of(args.step, args.places, row) % args.ratio == 0 ? x : sum + x;
            args.y[size_t(row) * args.width + column] = sum * (1.0f / float(args.ratio));
            const uint32_t kept = state_behind(args.step, row);
            if (kept != kZeroState) args.state[size_t(kept) * args.width + column] = sum;
        }
        args.state[size_t(segment.to) * args.width + column] = sum;
    });
}

// The mean of elements weighted by exponentials, as far as it has come: three numbers of a state. All zeros:
// of nothing.
struct Pool {
    float top, total, sum;

    RL_DEVICE void add(float exponent, float x) {
        const bool first = total == 0.0f;
        const float most = first || exponent > top ? exponent : top;
        const float down = first ? 0.0f : exp_of(top - most), own = exp_of(exponent - most);
        top = most;
        total = fused(total, down, own);
        sum = fused(sum, down, own * x);
    }
    // With another, of which there may be nothing.
    RL_DEVICE float mean_with(const Pool& other) const {
        const bool alone = other.total == 0.0f;
        const float most = alone ? top : larger(other.top, top), own = exp_of(top - most),
                    others = alone ? 0.0f : exp_of(other.top - most);
        return fused(others, other.sum, own * sum) / fused(others, other.total, own * total);
    }
};

// Entries of blocks: see BlockPool in plan/ops/blocks.h. A thread per element of a sequence, which alone
// reads and writes its part of the state.
RL_KERNEL(128, block_pool, BlockPoolArgs) {
    const uint32_t parts = args.overlaps ? 3 : 1, wide = args.width * (args.overlaps ? 2 : 1);
    each_element(size_t(args.width) * args.step->segments, [&](size_t i) {
        const SegmentState segment = args.states[i / args.width];
        const size_t column = i % args.width, floats = size_t(args.width) * 3 * parts;
        const auto load_pool = [&](uint32_t part) -> Pool {
            if (segment.from == kZeroState) return {};
            const float* own = args.state + segment.from * floats + part * 3 * args.width + column;
            return {own[0], own[args.width], own[2 * args.width]};
        };
        Pool first = load_pool(0), before = {}, second = {};
        const auto store_pool = [&](uint32_t to, uint32_t part, const Pool& pool) {
            float* own = args.state + to * floats + part * 3 * args.width + column;
            own[0] = pool.top;
            own[args.width] = pool.total;
            own[2 * args.width] = pool.sum;
        };
        const auto store_pools = [&](uint32_t to) {
            store_pool(to, 0, first);
            if (args.overlaps) store_pool(to, 1, before);
            if (args.overlaps) store_pool(to, 2, second);
        };
        if (args.overlaps) before = load_pool(1);
        if (args.overlaps) second = load_pool(2);
        for (uint32_t row = segment.first_row; row < segment.first_row + segment.rows; ++row) {
            const uint32_t place = token_of(args.step, args.places, row) % args.ratio;
            const size_t at = size_t(row) * wide + column, bias = size_t(place) * wide + column;
            if (place == 0 && args.overlaps) before = first;
            if (place == 0) first = second = {};
            first.add(args.gate[at] + args.bias[bias], args.x[at]);
            if (args.overlaps)
                second.add(args.gate[at + args.width] + args.bias[bias + args.width],
                           args.x[at + args.width]);
            args.y[size_t(row) * args.width + column] =
                args.overlaps ? second.mean_with(before) : first.mean_with({});
            const uint32_t kept = state_behind(args.step, row);
            if (kept != kZeroState) store_pools(kept);
        }
        store_pools(segment.to);
    });
}

struct ChoiceShared {
    uint32_t counts[256], sums[16], digit, left;
    uint32_t above[kThreads + 1], equal[kThreads + 1];  // before each thread's blocks
};

// The blocks of a row with the largest scores, ascending, and -1 behind them; of equal scores those of the
// first blocks. Scores are compared by bits; NaN is the largest.
struct Choice {
    const float* scores;
    uint32_t count, most;

    // In the order of scores, with one zero.
    RL_DEVICE uint32_t bits(uint32_t block) const {
        const float score = scores[block];
        if (score != score) return UINT32_MAX;
        const uint32_t bits = score == 0.0f ? 0 : float_bits(score);
        return bits >> 31 ? ~bits : bits | 0x80000000u;
    }
    // The largest that `most` blocks have at least, eight bits at a time: counted are the blocks that have
    // the bits so far, by their next ones.
    RL_DEVICE uint32_t least(ChoiceShared& shared) const {
        const uint32_t tid = thread_index();
        uint32_t least = 0, left = most;
        for (uint32_t round = 0; count > most && round < 4; ++round) {
            const uint32_t shift = 24 - 8 * round, known = round == 0 ? 0 : UINT32_MAX << (shift + 8);
            for (uint32_t i = tid; i < 256; i += kThreads) shared.counts[i] = 0;
            sync_block();
            for (uint32_t b = tid; b < count; b += kThreads) {
                const uint32_t own = bits(b);
                if ((own & known) == least) count_up(&shared.counts[own >> shift & 255]);
            }
            sync_block();
            for (uint32_t i = tid; i < 16; i += kThreads) {
                shared.sums[i] = 0;
                for (uint32_t k = 0; k < 16; ++k) shared.sums[i] += shared.counts[i * 16 + k];
            }
            sync_block();
            if (tid == 0) {
                uint32_t sixteen = 15;
                while (left > shared.sums[sixteen]) left -= shared.sums[sixteen--];
                uint32_t digit = sixteen * 16 + 15;
                while (left > shared.counts[digit]) left -= shared.counts[digit--];
                shared.digit = digit;
                shared.left = left;
            }
            sync_block();
            least |= shared.digit << shift;
            left = shared.left;
        }
        return least;
    }
};

RL_KERNEL(128, choose_blocks, ChooseArgs) {
    RL_SHARED ChoiceShared shared;
    uint32_t *const above = shared.above, *const equal = shared.equal;
    const uint32_t tid = thread_index();
    for (uint32_t row = block_index().x; row < args.step->rows; row += grid_blocks()) {
        const uint32_t complete = (token_of(args.step, args.places, row) + 1) / args.ratio;
        const Choice choice{args.scores + size_t(row) * args.blocks, lesser(complete, args.blocks),
                            args.most};
        const uint32_t least = choice.least(shared), each = (choice.count + kThreads - 1) / kThreads,
                       begin = lesser(tid * each, choice.count), end = lesser(begin + each, choice.count);
        uint32_t own_above = 0, own_equal = 0;
        for (uint32_t b = begin; b < end; ++b) {
            own_above += choice.bits(b) > least;
            own_equal += choice.bits(b) == least;
        }
        sync_block();  // the last row is done
        above[tid + 1] = own_above;
        equal[tid + 1] = own_equal;
        sync_block();
        if (tid == 0) {
            above[0] = equal[0] = 0;
            for (uint32_t i = 0; i < kThreads; ++i) {
                above[i + 1] += above[i];
                equal[i + 1] += equal[i];
            }
        }
        sync_block();
        const uint32_t taken = lesser(args.most, choice.count), ties = taken - lesser(above[kThreads], taken);
        float* y = args.y + size_t(row) * args.most;
        uint32_t seen = equal[tid], to = above[tid] + lesser(seen, ties);
        for (uint32_t b = begin; b < end; ++b) {
            const uint32_t bits = choice.bits(b);
            if (bits > least || (bits == least && seen < ties)) y[to++] = float(b);
            seen += bits == least;
        }
        for (uint32_t i = taken + tid; i < args.most; i += kThreads) y[i] = -1.0f;
    }
}

// By the keys of a head, at most.
RL_KERNEL(128, delta_pairs_128, DeltaArgs) {
    RL_SHARED PairShared<128> shared;
    pair_all(args_in_lanes(args), shared);
}
RL_KERNEL(128, delta_pairs_256, DeltaArgs) {
    RL_SHARED PairShared<256> shared;
    pair_all(args_in_lanes(args), shared);
}

// By the keys of a head, at most, and the lanes that share columns.
RL_KERNEL(128, delta_net_128_8, DeltaArgs) {
    RL_SHARED DeltaShared<DeltaCut<128, 8>> shared;
    delta_all(args_in_lanes(args), shared);
}
RL_KERNEL(128, delta_net_128_16, DeltaArgs) {
    RL_SHARED DeltaShared<DeltaCut<128, 16>> shared;
    delta_all(args_in_lanes(args), shared);
}
RL_KERNEL(128, delta_net_256_16, DeltaArgs) {
    RL_SHARED DeltaShared<DeltaCut<256, 16>> shared;
    delta_all(args_in_lanes(args), shared);
}

// By the states and the rows of a head that a block has.
RL_KERNEL(128, state_scan_128_64, ScanArgs) {
    RL_SHARED ScanShared<ScanCut<128, 8, 4>> shared;
    scan_all(args_in_lanes(args), shared);
}
RL_KERNEL(128, state_scan_128_80, ScanArgs) {
    RL_SHARED ScanShared<ScanCut<128, 8, 5>> shared;
    scan_all(args_in_lanes(args), shared);
}
RL_KERNEL(128, state_scan_256_32, ScanArgs) {
    RL_SHARED ScanShared<ScanCut<256, 16, 4>> shared;
    scan_all(args_in_lanes(args), shared);
}

}  // namespace redline::hip
