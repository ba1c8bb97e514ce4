// The kernels that know neither a weight's format nor the cache's type: work per row or per element.
#include "args.h"
#include "kernels/reduce.h"
#include "kernels/unit.h"

namespace redline::hip {

using namespace args;

template <typename Each>
RL_DEVICE void each_element(size_t count, Each each) {
    const size_t step = size_t(grid_blocks()) * kThreads;
    for (size_t i = size_t(block_index().x) * kThreads + thread_index(); i < count; i += step) each(i);
}

// y = x / sqrt(mean(x^2) + eps) * gain over `width` elements: the row, or a head. A block per group.
RL_KERNEL(128, rms_norm, NormArgs) {
    RL_SHARED float parts[kWaves];
    const size_t groups = size_t(rows_in_step(args.step, args.of_outputs)) * args.groups;
    for (size_t group = block_index().x; group < groups; group += grid_blocks()) {
        const float* x = args.x + group * args.width;
        float squares = 0.0f;
        for (uint32_t i = thread_index(); i < args.width; i += kThreads) squares = fused(x[i], x[i], squares);
        const float scale = 1.0f / root_of(block_sum(squares, parts) / float(args.width) + args.eps);
        for (uint32_t i = thread_index(); i < args.width; i += kThreads)
            args.y[group * args.width + i] = x[i] * scale * (args.gain ? args.gain[i] : 1.0f);
    }
}

// y += x.
RL_KERNEL(128, add, ElementArgs) {
    each_element(size_t(rows_in_step(args.step, args.of_outputs)) * args.width,
                 [&](size_t i) { args.y[i] += args.x[i]; });
}

// y[t] += bias.
RL_KERNEL(128, add_bias, ElementArgs) {
    each_element(size_t(rows_in_step(args.step, args.of_outputs)) * args.width,
                 [&](size_t i) { args.y[i] += args.x[i % args.width]; });
}

// y = act(x) * z; y may be one of them.
RL_KERNEL(128, act_mul, ElementArgs) {
    each_element(size_t(rows_in_step(args.step, args.of_outputs)) * args.width,
                 [&](size_t i) { args.y[i] = apply_act(args.act, args.x[i]) * args.z[i]; });
}

// y = the rows of x whose output is wanted.
RL_KERNEL(128, select_rows, ElementArgs) {
    const size_t from = size_t(args.step->first_output) * args.width;
    each_element(size_t(args.step->outputs) * args.width, [&](size_t i) { args.y[i] = args.x[from + i]; });
}

// Rotates each head in place. Cosines and sines come from the host, which has the doubles that far positions
// need.
RL_KERNEL(128, rope, RopeArgs) {
    each_element(size_t(args.step->rows) * args.heads * args.pairs, [&](size_t i) {
        const size_t pair = i % args.pairs, head = i / args.pairs, row = head / args.heads;
        float* first = args.x + head * args.head_dim + (args.half_split ? pair : 2 * pair);
        float* second = first + (args.half_split ? args.pairs : 1);
        const float* turn = args.table + row * 2 * args.pairs + pair;
        const float cosine = turn[0], sine = turn[args.pairs], x = *first, y = *second;
        *first = x * cosine - y * sine;
        *second = x * sine + y * cosine;
    });
}

constexpr uint32_t kSoftmax = 0, kSigmoid = 1, kSoftmaxOfSelected = 2;

struct RouteShared {
    float chances[kMostExperts];
    uint32_t taken[kMostExperts];
    float chosen[kMostUsed];
};

RL_DEVICE void route_chances(const RouteArgs& a, const float* logits, RouteShared& shared) {
    float top = -kInfinity;
    for (uint32_t e = lane_index(); e < a.experts; e += kWave) top = larger(logits[e], top);
    top = wave_max(top);
    float sum = 0.0f;
    for (uint32_t e = lane_index(); e < a.experts; e += kWave) {
        float p = logits[e];
        if (a.gating == kSoftmax) p = exp_of(p - top);
        if (a.gating == kSigmoid) p = 1.0f / (1.0f + exp_of(-p));
        sum += p;
        shared.chances[e] = p;
        shared.taken[e] = 0;
    }
    sum = wave_sum(sum);
    if (a.gating == kSoftmax)
        for (uint32_t e = lane_index(); e < a.experts; e += kWave) shared.chances[e] /= sum;
    sync_wave();
}

// The best expert that is not taken; ties go to the lower id.
RL_DEVICE uint32_t best_expert(const RouteArgs& a, const RouteShared& shared) {
    float best = -kInfinity;
    uint32_t id = a.experts;
    for (uint32_t e = lane_index(); e < a.experts; e += kWave) {
        const float score = shared.chances[e] + (a.bias ? a.bias[e] : 0.0f);
        if (shared.taken[e] == 0 && (id == a.experts || score > best)) {
            best = score;
            id = e;
        }
    }
    const float most = wave_max(id < a.experts ? best : -kInfinity);
    const uint32_t winner = wave_min(id < a.experts && best == most ? id : a.experts);
    return winner < a.experts ? winner : wave_min(id);  // NaN everywhere: any that is left
}

// The `used` best experts of each row by its logits, best first, and their weights. A block per row, of which
// one wave chooses.
RL_KERNEL(128, route, RouteArgs) {
    RL_SHARED RouteShared shared;
    const uint32_t row = block_index().x;
    if (row >= args.step->rows || wave_index() > 0) return;
    route_chances(args, args.logits + size_t(row) * args.experts, shared);
    for (uint32_t place = 0; place < args.used; ++place) {
        const uint32_t winner = best_expert(args, shared);
        sync_wave();
        if (lane_index() == 0) {
            shared.taken[winner] = 1;
            shared.chosen[place] = shared.chances[winner];
            args.ids[size_t(row) * args.used + place] = int32_t(winner);
        }
        sync_wave();
    }
    if (lane_index() != 0) return;
    float total = 0.0f;
    const float first = shared.chosen[0];
    if (args.gating == kSoftmaxOfSelected) {
        for (uint32_t i = 0; i < args.used; ++i) total += exp_of(shared.chosen[i] - first);
        for (uint32_t i = 0; i < args.used; ++i) shared.chosen[i] = exp_of(shared.chosen[i] - first) / total;
    }
    total = 0.0f;
    for (uint32_t i = 0; i < args.used; ++i) total += shared.chosen[i];
    const float divisor = args.normalise ? larger(total, 6.103515625e-5f) : 1.0f;
    for (uint32_t i = 0; i < args.used; ++i)
        args.scales[size_t(row) * args.used + i] = shared.chosen[i] / divisor * args.scale;
}

}  // namespace redline::hip
