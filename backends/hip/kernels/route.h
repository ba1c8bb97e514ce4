// The router: which experts a row goes to, and what each of them counts.
#pragma once

#include "kernels/row.h"
#include "kernels/unit.h"

namespace redline::hip {

constexpr uint32_t kSoftmax = 0, kSigmoid = 1, kSoftmaxOfSelected = 2, kSparseMixer = 3, kSqrtSoftplus = 4;
constexpr float kMixerReach = 0.02f;  // as in src/plan/ops/experts.h

// A number that is no NaN as an integer, in the same order, and the other way round.
RL_DEVICE int32_t order_of(float x) {
    const int32_t bits = int32_t(float_bits(x + 0.0f));  // -0 is 0
    return bits ^ ((bits >> 31) & 0x7FFFFFFF);
}
RL_DEVICE float score_of(int32_t order) {
    return bits_float(uint32_t(order ^ ((order >> 31) & 0x7FFFFFFF)));
}
constexpr int32_t kLowest = int32_t(0xFF800000u ^ 0x7FFFFFFFu);  // of -infinity

struct RouteShared {
    float chances[args::kMostExperts];
    alignas(16) int32_t scores[args::kMostExperts];  // what the choice goes by, as order_of() has it
    float worths[args::kMostGroups];                 // of groups
    float chosen[args::kMostUsed];
    int32_t ids[args::kMostUsed];
    float parts[16];  // of waves
};
static_assert(sizeof(RouteShared) <= args::kRouteBytes);

// Each thread sees to experts thread_index(), thread_index() + kBlockThreads, ...
template <uint32_t kBlockThreads>
RL_DEVICE void route_chances(const args::RouteArgs& a, const float* logits, RouteShared& shared) {
    float top = -kInfinity, sum = 0.0f;
    const auto logit = [&](uint32_t e) { return logits[e] + (a.bias_of_logits ? a.bias[e] : 0.0f); };
    if (a.gating == kSoftmax) {
        RL_FEW_TURNS
        for (uint32_t e = thread_index(); e < a.experts; e += kBlockThreads) top = larger(logit(e), top);
        top = block_max<kBlockThreads>(top, shared.parts);
    }
    RL_FEW_TURNS
    for (uint32_t e = thread_index(); e < a.experts; e += kBlockThreads) {
        float p = logit(e);
        if (a.gating == kSoftmax) p = exp_of(p - top);
        if (a.gating == kSigmoid) p = sigmoid(p);
        if (a.gating == kSqrtSoftplus) p = root_of(softplus(p));
        sum += p;
        shared.chances[e] = p;
    }
    if (a.gating == kSoftmax) sum = block_sum<kBlockThreads>(sum, shared.parts);
    RL_FEW_TURNS
    for (uint32_t e = thread_index(); e < a.experts; e += kBlockThreads) {
        if (a.gating == kSoftmax) shared.chances[e] /= sum;
        const bool biased = a.bias && !a.bias_of_logits;
        // As Route::chosen_by_logits() says.
        const bool by_logits = a.gating == kSigmoid && a.groups <= 1 && !biased;
        const float score = by_logits ? logit(e) : shared.chances[e] + (biased ? a.bias[e] : 0.0f);
        shared.scores[e] = order_of(score == score ? score : -kInfinity);
    }
    // The places of a last four that have no expert are behind all.
    const uint32_t end = (a.experts + 3) / 4 * 4;
    RL_FEW_TURNS
    for (uint32_t e = a.experts + thread_index(); e < end; e += kBlockThreads) shared.scores[e] = kLowest;
    sync_block();
}

// Scores of experts that are not in the best groups become the lowest there are.
template <uint32_t kBlockThreads>
RL_DEVICE void leave_best_groups(const args::RouteArgs& a, RouteShared& shared) {
    const uint32_t size = a.experts / a.groups;
    RL_FEW_TURNS
    for (uint32_t g = thread_index(); g < a.groups; g += kBlockThreads) {
        float best = -kInfinity, second = -kInfinity;
        RL_FEW_TURNS
        for (uint32_t e = g * size; e < (g + 1) * size; ++e) {
            const float score = score_of(shared.scores[e]);
            second = larger(score > best ? best : score, second);
            best = larger(score, best);
        }
        shared.worths[g] = a.by_two ? best + second : best;
    }
    sync_block();
    RL_FEW_TURNS
    for (uint32_t e = thread_index(); e < a.experts; e += kBlockThreads) {
        const uint32_t own = e / size;
        uint32_t better = 0;
        RL_FEW_TURNS
        for (uint32_t g = 0; g < a.groups; ++g) {
            const float other = shared.worths[g];
            better += other > shared.worths[own] || (other == shared.worths[own] && g < own) ? 1u : 0u;
        }
        if (better >= a.groups_used) shared.scores[e] = kLowest;
    }
    sync_block();
}

// How many experts are better; of equal ones the lower id is. kShare lanes count for one expert, four scores
// at a time.
RL_DEVICE uint32_t rank_of(const args::RouteArgs& a, const RouteShared& shared, uint32_t expert) {
    const int32_t own = shared.scores[expert];
    const uint32_t part = thread_index() % kShare, own_four = expert / 4;
    uint32_t rank = 0;
    // Turns side by side would fill CDNA's scalar registers.
    RL_FEW_TURNS
    for (uint32_t i = part; i * 4 < a.experts; i += kShare) {
        const auto others = load<Words4>(shared.scores, i);
        const int32_t least = own - (i < own_four ? 1 : 0);
        RL_UNROLL
        for (uint32_t e = 0; e < 4; ++e) rank += int32_t(others.d[e]) > least ? 1u : 0u;
    }
    RL_FEW_TURNS
    for (uint32_t e = own_four * 4 + part; e < expert; e += kShare) rank += shared.scores[e] == own ? 1u : 0u;
    return share_fold(rank, [](uint32_t one, uint32_t more) { return one + more; });
}

// Of an expert's logit among those that are near, without those that are chosen before it.
RL_DEVICE float share_of_near(const args::RouteArgs& a, const RouteShared& shared, uint32_t expert) {
    const float best = score_of(shared.scores[expert]);
    float sum = 0.0f;
    RL_FEW_TURNS
    for (uint32_t e = 0; e < a.experts; ++e) {
        const float other = score_of(shared.scores[e]), size = larger(__builtin_fabsf(other), best);
        const bool left = other < best || (other == best && e >= expert);
        if (left && !(best - other > kMixerReach * size)) sum += exp_of(other - best);
    }
    return 1.0f / sum;
}

// Those that the row's token has in the table.
template <uint32_t kBlockThreads>
RL_DEVICE void take_from_table(const args::RouteArgs& a, size_t row, RouteShared& shared) {
    const auto* tokens = reinterpret_cast<const int32_t*>(a.step + 1);
    const float* own = a.table + size_t(uint32_t(tokens[row])) * a.used;
    RL_FEW_TURNS
    for (uint32_t i = thread_index(); i < a.used; i += kBlockThreads) {
        const float number = own[i] > 0.0f ? own[i] : 0.0f;
        const uint32_t expert = lesser(uint32_t(number), a.experts - 1);
        shared.chosen[i] = shared.chances[expert];
        shared.ids[i] = int32_t(expert);
    }
}

template <uint32_t kBlockThreads>
RL_DEVICE void take_best(const args::RouteArgs& a, RouteShared& shared) {
    if (a.groups > 1) leave_best_groups<kBlockThreads>(a, shared);
    RL_FEW_TURNS
    for (uint32_t first = 0; first < a.experts; first += kBlockThreads / kShare) {
        const uint32_t real = first + thread_index() / kShare, e = lesser(real, a.experts - 1);
        const uint32_t rank = rank_of(a, shared, e);
        if (thread_index() % kShare != 0 || real != e || rank >= a.used) continue;
        shared.chosen[rank] = a.gating == kSparseMixer ? share_of_near(a, shared, e) : shared.chances[e];
        shared.ids[rank] = int32_t(e);
    }
}

// The `used` best experts of a row by its logits, best first, or those of its token, and their weights. The
// whole block chooses, and has their ids in shared memory; where it `writes`, ids and weights go to memory.
template <uint32_t kBlockThreads>
RL_DEVICE void choose_experts(const args::RouteArgs& a, size_t row, RouteShared& shared, bool writes) {
    route_chances<kBlockThreads>(a, a.logits + row * a.apart, shared);
    if (a.table)
        take_from_table<kBlockThreads>(a, row, shared);
    else
        take_best<kBlockThreads>(a, shared);
    sync_block();
    if (!writes) return;
    const bool of_selected = a.gating == kSoftmaxOfSelected;
    const float first = shared.chosen[0];
    const auto weight = [&](uint32_t place) {
        return of_selected ? exp_of(shared.chosen[place] - first) : shared.chosen[place];
    };
    const uint32_t used = lesser(a.used, args::kMostUsed);  // as it is: so a thread has one at most
    float total = 0.0f;
    RL_FEW_TURNS
    for (uint32_t i = 0; i < used; ++i) total += weight(i);
    // Those of the selected add up to one already.
    const float divisor = of_selected ? total : a.normalise ? larger(total, 6.103515625e-5f) : 1.0f;
    RL_FEW_TURNS
    for (uint32_t i = thread_index(); i < used; i += kBlockThreads) {
        a.ids[row * a.used + i] = shared.ids[i];
        a.scales[row * a.used + i] = weight(i) / divisor * a.scale;
    }
}

// The weight of the expert that every row goes to, by the logit behind those of the others.
RL_DEVICE void weigh_shared(const args::RouteArgs& a, size_t row) {
    if (a.shared_scale && thread_index() == 0)
        a.shared_scale[row] = sigmoid(a.logits[row * a.apart + a.experts]);
}

// As a kernel of its own, or the end of one.
RL_DEVICE void choose_and_write(const args::RouteArgs& a, size_t row) {
    RL_SHARED RouteShared shared;
    choose_experts<kThreads>(a, row, shared, true);
}

// The first loads of one row of a router's weight by a lane, ahead of their use.
template <typename F>
struct RouterRow {
    static constexpr uint32_t kAtOnce = kWave == 32 ? 16 : 8;  // all of 2048 columns
    const args::RouteRowArgs& a;
    const float* x;
    uint32_t fours = a.cols / 4;
    Float4 w[kAtOnce] = {};

    RL_DEVICE void fetch(uint32_t expert, uint32_t first) {
        RL_UNROLL
        for (uint32_t n = 0; n < kAtOnce; ++n)
            w[n] = F::elements(expert < a.choice.experts ? a.w : a.shared,
                               size_t(expert < a.choice.experts ? expert : 0) * fours +
                                   lesser(first + n * kWave, fours - 1));
    }
    // What was fetched, times the row of activations.
    RL_DEVICE float product(uint32_t first, float scale, float sum) const {
        RL_UNROLL
        for (uint32_t n = 0; n < kAtOnce; ++n) {
            const uint32_t i = lesser(first + n * kWave, fours - 1);
            auto four = load<Float4>(x, i);
            if (a.gain) {
                const auto by = load<Float4>(a.gain, i);
                RL_UNROLL
                for (uint32_t e = 0; e < 4; ++e) four.d[e] = four.d[e] * scale * by.d[e];
            }
            float more = sum;
            RL_UNROLL
            for (uint32_t e = 0; e < 4; ++e) more = fused(w[n].d[e], four.d[e], more);
            sum = first + n * kWave < fours ? more : sum;
        }
        return sum;
    }
};

// Each row of a step, y of the grid: its logits as linear_vec makes them, a wave per expert, and the choice
// by them, made by the block that is the last to come to it, if it is made here. Where there is a gain, each
// block norms the row by itself.
template <typename F>
RL_DEVICE void route_row(const args::RouteRowArgs& a) {
    RL_SHARED float parts[kWaves];
    RL_SHARED uint32_t flag;
    const uint32_t own = block_index().x * kWaves + wave_index();
    const uint32_t all = a.choice.experts + (a.shared.data ? 1 : 0);
    const uint32_t token = block_index().y;
    if (token > 0 && token >= a.choice.step->rows) return;
    float* const logits = a.logits + size_t(token) * a.choice.apart;
    RouterRow<F> row = {a, a.x + size_t(token) * a.cols};
    row.fetch(lesser(own, all - 1), lane_index());
    wait_for_inputs();
    let_next_start();  // not before: the next launch reads what this one has waited for
    const float scale = a.gain ? a.factor * norm_scale<kThreads>(row.x, a.cols / 32, a.eps, parts) : 1.0f;
    for (uint32_t expert = own; expert < all; expert += grid_blocks() * kWaves) {
        float sum = 0.0f;
        for (uint32_t first = lane_index(); first < row.fours; first += row.kAtOnce * kWave) {
            if (expert != own || first != lane_index()) row.fetch(expert, first);
            sum = row.product(first, scale, sum);
        }
        sum = wave_sum(sum);
        if (lane_index() == 0) logits[expert] = sum;
    }
    if (!a.counter || !is_last_block(a.counter + token, grid_blocks(), flag)) return;
    choose_and_write(a.choice, token);
    weigh_shared(a.choice, token);
}

}  // namespace redline::hip
