// What kernels of attention share. A work-group takes QUERIES queries, (row, head) with heads of one kv head: z of the
// grid over kv heads, y over groups of queries, x over splits of the keys. Wants args of AttentionArgs and step.glsl.
const float kNone = -1.0 / 0.0;
const uint LEAST_KEYS = 64;  // of a split: fewer are not worth a work-group

uint heads_per_kv() { return args.heads / args.kv_heads; }
uint query_row(uint query) { return args.first_row + query / heads_per_kv(); }
uint query_head(uint query) { return gl_WorkGroupID.z * heads_per_kv() + query % heads_per_kv(); }
uint own_query(uint i) { return gl_WorkGroupID.y * QUERIES + i; }

bool sees(uint query, uint key) {
    const uint row = query_row(query), position = step_position + row;
    return row < step_rows && key <= position && (args.window == 0u || key + args.window > position);
}
