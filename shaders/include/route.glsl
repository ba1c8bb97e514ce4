// The USED best experts of a row by its logits, best first, ties to the lower id, and their weights. A whole subgroup
// chooses, each invocation among its own experts; those of groups that are not among the GROUPS_USED best of GROUPS are
// taken before. With a table a row's token has its experts there. Wants EXPERTS, USED, SUBGROUP, GROUPS, GROUPS_USED, BY_TWO,
// logits[], ids[], scales[], bias[], experts_by_token[] and what RouteArgs has of the choice.
const uint EACH = (EXPERTS + SUBGROUP - 1) / SUBGROUP;
const uint kSoftmax = 0, kSigmoid = 1, kSoftmaxOfSelected = 2, kSparseMixer = 3, kSqrtSoftplus = 4;
const float kMixerReach = 0.02;  // as in src/plan/ops/experts.h
const uint kOfChoice = 1, kOfLogits = 2;  // what a bias is added to
shared float chosen_all[gl_WorkGroupSize.x / SUBGROUP * USED];  // written and read by one invocation of each subgroup

const float kNone = -1.0 / 0.0;
const uint GROUP_SIZE = EXPERTS / GROUPS, GROUPS_EACH = (GROUPS + SUBGROUP - 1) / SUBGROUP;

// What the choice of an invocation's expert number k goes by.
float score_of(uint k, float chance) {
    return chance + (args.bias_of == kOfChoice ? bias[min(k * SUBGROUP + gl_SubgroupInvocationID, EXPERTS - 1u)] : 0.0);
}

// Takes all experts but those of the best groups; ties go to the lower group. A NaN is as good as nothing.
void leave_best_groups(float chances[EACH], inout bool taken[EACH]) {
    const uint lane = gl_SubgroupInvocationID;
    float worths[GROUPS_EACH];  // of groups lane, lane + SUBGROUP, ...
    bool over[GROUPS_EACH];     // or not there
    [[unroll]] for (uint i = 0; i < GROUPS_EACH; ++i) {
        worths[i] = kNone;
        over[i] = i * SUBGROUP + lane >= GROUPS;
    }
    [[dont_unroll]] for (uint group = 0; group < GROUPS; ++group) {
        float best = kNone, second = kNone;
        [[unroll]] for (uint k = 0; k < EACH; ++k) {
            const uint e = k * SUBGROUP + lane;
            const float score = e < EXPERTS && e / GROUP_SIZE == group ? score_of(k, chances[k]) : kNone;
            second = score > best ? best : score > second ? score : second;
            best = score > best ? score : best;
        }
        float worth = subgroupMax(best);
        if (BY_TWO) {
            const uint holder = subgroupMin(best == worth ? lane : SUBGROUP);
            worth += subgroupMax(lane == holder ? second : best);
        }
        [[unroll]] for (uint i = 0; i < GROUPS_EACH; ++i)
            if (i * SUBGROUP + lane == group) worths[i] = worth;
    }
    [[unroll]] for (uint k = 0; k < EACH; ++k) taken[k] = true;
    [[dont_unroll]] for (uint place = 0; place < GROUPS_USED; ++place) {
        float best = kNone;
        uint own = GROUPS;
        [[unroll]] for (uint i = 0; i < GROUPS_EACH; ++i)
            if (!over[i] && (own == GROUPS || worths[i] > best)) {
                best = worths[i];
                own = i * SUBGROUP + lane;
            }
        const float most = subgroupMax(own < GROUPS ? best : kNone);
        uint winner = subgroupMin(own < GROUPS && best == most ? own : GROUPS);
        if (winner == GROUPS) winner = subgroupMin(own);  // any that is left
        [[unroll]] for (uint i = 0; i < GROUPS_EACH; ++i)
            if (i * SUBGROUP + lane == winner) over[i] = true;
        [[unroll]] for (uint k = 0; k < EACH; ++k) {
            const uint e = k * SUBGROUP + lane;
            if (e < EXPERTS && e / GROUP_SIZE == winner) taken[k] = false;
        }
    }
}

// Of the best logit that is left, by those that are near.
float share_of_near(float chances[EACH], bool taken[EACH], float best) {
    float sum = 0.0;
    [[unroll]] for (uint k = 0; k < EACH; ++k)
        if (!taken[k] && !(best - chances[k] > kMixerReach * max(abs(chances[k]), best))) sum += exp(chances[k] - best);
    return 1.0 / subgroupAdd(sum);
}

// The row's token has it at a place.
uint expert_of_table(uint row, uint place) {
    const float expert = experts_by_token[uint(step_tokens[row]) * USED + place];
    return min(uint(max(expert, 0.0)), EXPERTS - 1u);
}

void choose(uint row) {
    const uint lane = gl_SubgroupInvocationID;
    // As Route::chosen_by_logits() says; `chances` are logits then.
    const bool by_logits = args.gating == kSigmoid && GROUPS <= 1 && args.bias_of != kOfChoice;
    float chances[EACH];
    bool taken[EACH];
    float top = kNone, sum = 0.0;
    [[unroll]] for (uint k = 0; k < EACH; ++k) {
        const uint e = k * SUBGROUP + lane;
        taken[k] = e >= EXPERTS;
        chances[k] = e < EXPERTS ? logits[row * EXPERTS + e] : kNone;
        if (args.bias_of == kOfLogits) chances[k] += bias[min(e, EXPERTS - 1u)];
        top = max(top, chances[k]);
    }
    top = subgroupMax(top);
    [[unroll]] for (uint k = 0; k < EACH; ++k) {
        if (args.gating == kSoftmax) chances[k] = exp(chances[k] - top);
        if (args.gating == kSigmoid && !by_logits) chances[k] = 1.0 / (1.0 + exp(-chances[k]));
        if (args.gating == kSqrtSoftplus) chances[k] = sqrt(softplus(chances[k]));
        if (!taken[k]) sum += chances[k];
    }
    sum = subgroupAdd(sum);
    if (args.gating == kSoftmax)
        [[unroll]] for (uint k = 0; k < EACH; ++k) chances[k] /= sum;
    if (GROUPS > 1) leave_best_groups(chances, taken);
    const uint own = gl_SubgroupID * USED;
    [[dont_unroll]] for (uint place = 0; place < USED; ++place) {
        float best = kNone, chance = 0.0;
        uint id = EXPERTS;
        [[unroll]] for (uint k = 0; k < EACH; ++k) {
            const uint e = k * SUBGROUP + lane;
            const float score = score_of(k, chances[k]);
            if (!taken[k] && (id == EXPERTS || score > best)) {
                best = score;
                chance = chances[k];
                id = e;
            }
        }
        const float most = subgroupMax(id < EXPERTS ? best : kNone);
        uint winner = subgroupMin(id < EXPERTS && best == most ? id : EXPERTS);
        if (winner == EXPERTS) winner = subgroupMin(id);  // NaN everywhere: any that is left
        if (args.has_table != 0u) {
            winner = expert_of_table(row, place);
            id = winner % SUBGROUP == lane ? winner : EXPERTS;
            chance = chances[0];
            [[unroll]] for (uint k = 1; k < EACH; ++k)
                if (k == winner / SUBGROUP) chance = chances[k];
        }
        // One invocation has it; a NaN goes on.
        float value = subgroupAdd(winner == id ? chance : 0.0);
        if (by_logits) value = 1.0 / (1.0 + exp(-value));
        if (args.gating == kSparseMixer) value = share_of_near(chances, taken, value);
        [[unroll]] for (uint k = 0; k < EACH; ++k)
            if (k * SUBGROUP + lane == winner) taken[k] = true;
        if (subgroupElect()) {
            chosen_all[own + place] = value;
            ids[row * USED + place] = int(winner);
        }
    }
    if (!subgroupElect()) return;
    float total = 0.0;
    const float first = chosen_all[own];
    if (args.gating == kSoftmaxOfSelected) {
        for (uint i = 0; i < USED; ++i) total += exp(chosen_all[own + i] - first);
        for (uint i = 0; i < USED; ++i) chosen_all[own + i] = exp(chosen_all[own + i] - first) / total;
    }
    total = 0.0;
    for (uint i = 0; i < USED; ++i) total += chosen_all[own + i];
    const float divisor = args.normalise != 0u ? max(total, 6.103515625e-5) : 1.0;
    for (uint i = 0; i < USED; ++i) scales[row * USED + i] = chosen_all[own + i] / divisor * args.scale;
}
