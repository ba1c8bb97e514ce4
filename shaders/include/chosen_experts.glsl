// The experts that one token goes to, for kernels of ExpertRowArgs. Wants TOKEN, PLACES, EXPERT_ROWS (how many rows an expert
// has) and ids[]; where they are WEIGHTED scales[] as well.
shared uint first_rows[PLACES];  // of the experts
#ifdef WEIGHTED
shared float factors[PLACES];
#endif

// By the last invocations of the work-group, while the first ones take the row; what follows that may read it.
void read_chosen() {
    for (uint p = gl_WorkGroupSize.x - 1u - gl_LocalInvocationID.x; p < PLACES; p += gl_WorkGroupSize.x) {
        // An id that is no expert (the router saw NaN) counts as expert 0, whose NaN scale carries the trouble on.
        const uint id = uint(ids[TOKEN * PLACES + p]);
        first_rows[p] = (id < args.experts ? id : 0u) * EXPERT_ROWS;
#ifdef WEIGHTED
        factors[p] = scales[TOKEN * PLACES + p];
#endif
    }
}
