// The USED best experts of a row by its logits, best first, ties to the lower id, and their weights. A whole subgroup
// chooses, each invocation among its own experts; those of groups that are not among the GROUPS_USED best of GROUPS are
// taken before. With a table a row's token has its experts there. Wants TOKENS, EXPERTS, USED, SUBGROUP, GROUPS, GROUPS_USED,
// BY_TWO, GATING, BIAS_OF, logits[], scales[], route_bias[], args.normalise and args.scale; CHOOSER, the subgroup's number among
// those that choose; keep_choice(row, place, expert), which one invocation calls; with CAN_BY_TABLE, BY_TABLE, experts_by_token[]
// and step.glsl.
const uint EACH = (EXPERTS + SUBGROUP - 1) / SUBGROUP;
const uint GROUP_SIZE = EXPERTS / GROUPS, GROUPS_EACH = (GROUPS + SUBGROUP - 1) / SUBGROUP;
// Few experts of an invocation are in its registers. Where they are more NVIDIA's driver 580 computes wrongly with those and
// with bits in shared memory: there each has a word of its own, and as many subgroups choose as have room for that.
const bool FEW = EACH <= 8;
const uint OWN_GROUPS = FEW || GROUPS == 1 ? 0 : GROUPS_EACH;  // in shared memory
const uint BYTES = 8 * SUBGROUP * (EACH + OWN_GROUPS), ROOM = 2;
const uint WORKING = gl_WorkGroupSize.x / SUBGROUP < TOKENS ? gl_WorkGroupSize.x / SUBGROUP : TOKENS;
const uint CHOOSERS = WORKING < ROOM ? WORKING : ROOM;
float few_chances[FEW ? EACH : 1], few_worths[FEW ? GROUPS_EACH : 1];
uint few_taken, few_over;  // a bit for each
shared float many_chances[FEW ? 1 : CHOOSERS * EACH * SUBGROUP];
shared bool many_taken[FEW ? 1 : CHOOSERS * EACH * SUBGROUP];
shared float many_worths[OWN_GROUPS == 0 ? 1 : CHOOSERS * OWN_GROUPS * SUBGROUP];
shared bool many_over[OWN_GROUPS == 0 ? 1 : CHOOSERS * OWN_GROUPS * SUBGROUP];
const uint kSoftmax = 0, kSigmoid = 1, kSoftmaxOfSelected = 2, kSparseMixer = 3, kSqrtSoftplus = 4;
const float kMixerReach = 0.02;  // as in src/plan/ops/experts.h
const uint kOfChoice = 1, kOfLogits = 2;  // what a bias is added to
shared float chosen_all[CHOOSERS * USED];  // of each subgroup its own

const float kNone = -1.0 / 0.0;

// Where an invocation has number i of its own values, of so many.
uint own_at(uint i, uint count) {
    return (CHOOSER * count + i) * SUBGROUP + gl_SubgroupInvocationID;
}
// Of an invocation's expert number k.
float chance_of(uint k) {
    return FEW ? few_chances[FEW ? k : 0] : many_chances[FEW ? 0 : own_at(k, EACH)];
}
void set_chance(uint k, float chance) {
    if (FEW) few_chances[k] = chance;
    else many_chances[own_at(k, EACH)] = chance;
}
bool is_taken(uint k) {
    return FEW ? (few_taken >> k & 1u) != 0u : many_taken[FEW ? 0 : own_at(k, EACH)];
}
void set_taken(uint k, bool taken) {
    if (FEW) few_taken = taken ? few_taken | 1u << k : few_taken & ~(1u << k);
    else many_taken[own_at(k, EACH)] = taken;
}
// Of an invocation's group number i, and whether it is one of the best, or not there.
float worth_of(uint i) {
    return FEW ? few_worths[FEW ? i : 0] : many_worths[FEW ? 0 : own_at(i, GROUPS_EACH)];
}
void set_worth(uint i, float worth) {
    if (FEW) few_worths[i] = worth;
    else many_worths[own_at(i, GROUPS_EACH)] = worth;
}
bool is_over(uint i) {
    return FEW ? (few_over >> i & 1u) != 0u : many_over[FEW ? 0 : own_at(i, GROUPS_EACH)];
}
void set_over(uint i, bool over) {
    if (FEW) few_over = over ? few_over | 1u << i : few_over & ~(1u << i);
    else many_over[own_at(i, GROUPS_EACH)] = over;
}

// What the choice of an invocation's expert number k goes by.
float score_of(uint k) {
    return chance_of(k) + (BIAS_OF == kOfChoice ? route_bias[min(k * SUBGROUP + gl_SubgroupInvocationID, EXPERTS - 1u)] : 0.0);
}

// Takes all experts but those of the best groups; ties go to the lower group. A NaN is as good as nothing.
void leave_best_groups() {
    const uint lane = gl_SubgroupInvocationID;
    [[unroll]] for (uint i = 0; i < GROUPS_EACH; ++i) {
        set_worth(i, kNone);
        set_over(i, i * SUBGROUP + lane >= GROUPS);
    }
    [[dont_unroll]] for (uint group = 0; group < GROUPS; ++group) {
        float best = kNone, second = kNone;
        [[unroll]] for (uint k = 0; k < EACH; ++k) {
            const uint e = k * SUBGROUP + lane;
            const float score = e < EXPERTS && e / GROUP_SIZE == group ? score_of(k) : kNone;
            second = score > best ? best : score > second ? score : second;
            best = score > best ? score : best;
        }
        float worth = subgroupMax(best);
        if (BY_TWO) {
            const uint holder = subgroupMin(best == worth ? lane : SUBGROUP);
            worth += subgroupMax(lane == holder ? second : best);
        }
        [[unroll]] for (uint i = 0; i < GROUPS_EACH; ++i)
            if (i * SUBGROUP + lane == group) set_worth(i, worth);
    }
    [[unroll]] for (uint k = 0; k < EACH; ++k) set_taken(k, true);
    [[dont_unroll]] for (uint place = 0; place < GROUPS_USED; ++place) {
        float best = kNone;
        uint own = GROUPS;
        [[unroll]] for (uint i = 0; i < GROUPS_EACH; ++i)
            if (!is_over(i) && (own == GROUPS || worth_of(i) > best)) {
                best = worth_of(i);
                own = i * SUBGROUP + lane;
            }
        const float most = subgroupMax(own < GROUPS ? best : kNone);
        uint winner = subgroupMin(own < GROUPS && best == most ? own : GROUPS);
        if (winner == GROUPS) winner = subgroupMin(own);  // any that is left
        [[unroll]] for (uint i = 0; i < GROUPS_EACH; ++i)
            if (i * SUBGROUP + lane == winner) set_over(i, true);
        [[unroll]] for (uint k = 0; k < EACH; ++k) {
            const uint e = k * SUBGROUP + lane;
            if (e < EXPERTS && e / GROUP_SIZE == winner) set_taken(k, false);
        }
    }
}

// Of the best logit that is left, by those that are near.
float share_of_near(float best) {
    float sum = 0.0;
    [[unroll]] for (uint k = 0; k < EACH; ++k)
        if (!is_taken(k) && !(best - chance_of(k) > kMixerReach * max(abs(chance_of(k)), best)))
            sum += exp(chance_of(k) - best);
    return 1.0 / subgroupAdd(sum);
}

#ifdef CAN_BY_TABLE
// The row's token has it at a place.
uint expert_of_table(uint row, uint place) {
    const float expert = experts_by_token[uint(step_tokens[row]) * USED + place];
    return min(uint(max(expert, 0.0)), EXPERTS - 1u);
}
#endif

void choose(uint row) {
    const uint lane = gl_SubgroupInvocationID;
    // As Route::chosen_by_logits() says; `chances` are logits then.
    const bool by_logits = GATING == kSigmoid && GROUPS <= 1 && BIAS_OF != kOfChoice;
    float top = kNone, sum = 0.0;
    [[unroll]] for (uint k = 0; k < EACH; ++k) {
        const uint e = k * SUBGROUP + lane;
        set_taken(k, e >= EXPERTS);
        float chance = e < EXPERTS ? logits[row * EXPERTS + e] : kNone;
        if (BIAS_OF == kOfLogits) chance += route_bias[min(e, EXPERTS - 1u)];
        set_chance(k, chance);
        top = max(top, chance);
    }
    top = subgroupMax(top);
    [[unroll]] for (uint k = 0; k < EACH; ++k) {
        float chance = chance_of(k);
        if (GATING == kSoftmax) chance = exp(chance - top);
        if (GATING == kSigmoid && !by_logits) chance = 1.0 / (1.0 + exp(-chance));
        if (GATING == kSqrtSoftplus) chance = sqrt(softplus(chance));
        set_chance(k, chance);
        if (!is_taken(k)) sum += chance;
    }
    sum = subgroupAdd(sum);
    if (GATING == kSoftmax)
        [[unroll]] for (uint k = 0; k < EACH; ++k) set_chance(k, chance_of(k) / sum);
    if (GROUPS > 1) leave_best_groups();
    const uint own = CHOOSER * USED;
    [[dont_unroll]] for (uint place = 0; place < USED; ++place) {
        float best = kNone, chance = 0.0;
        uint id = EXPERTS;
        [[unroll]] for (uint k = 0; k < EACH; ++k) {
            const uint e = k * SUBGROUP + lane;
            const float score = score_of(k);
            if (!is_taken(k) && (id == EXPERTS || score > best)) {
                best = score;
                chance = chance_of(k);
                id = e;
            }
        }
        const float most = subgroupMax(id < EXPERTS ? best : kNone);
        uint winner = subgroupMin(id < EXPERTS && best == most ? id : EXPERTS);
        if (winner == EXPERTS) winner = subgroupMin(id);  // NaN everywhere: any that is left
#ifdef CAN_BY_TABLE
        if (BY_TABLE) {
            winner = expert_of_table(row, place);
            id = winner % SUBGROUP == lane ? winner : EXPERTS;
            chance = chance_of(0);
            [[unroll]] for (uint k = 1; k < EACH; ++k)
                if (k == winner / SUBGROUP) chance = chance_of(k);
        }
#endif
        if (GATING == kSparseMixer) chance = share_of_near(subgroupAdd(winner == id ? chance : 0.0));
        [[unroll]] for (uint k = 0; k < EACH; ++k)
            if (k * SUBGROUP + lane == winner) set_taken(k, true);
        if (winner == id) {  // in one invocation
            chosen_all[own + place] = by_logits ? 1.0 / (1.0 + exp(-chance)) : chance;
            keep_choice(row, place, winner);
        }
    }
}

// What the experts that a subgroup has chosen count, by one invocation.
void weigh(uint row) {
    const uint own = CHOOSER * USED;
    float total = 0.0;
    const float first = chosen_all[own];
    if (GATING == kSoftmaxOfSelected) {
        for (uint i = 0; i < USED; ++i) total += exp(chosen_all[own + i] - first);
        for (uint i = 0; i < USED; ++i) chosen_all[own + i] = exp(chosen_all[own + i] - first) / total;
    }
    total = 0.0;
    for (uint i = 0; i < USED; ++i) total += chosen_all[own + i];
    const float divisor = args.normalise != 0u ? max(total, 6.103515625e-5) : 1.0;
    for (uint i = 0; i < USED; ++i) scales[row * USED + i] = chosen_all[own + i] / divisor * args.scale;
}
