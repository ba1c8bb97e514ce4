// How the keys that a group of queries of attention to latents sees are shared out to splits, alike where they are read and
// where results are brought together. Wants attention_parts.glsl.
struct Splits {
    uint end;    // of the keys
    uint share;  // of a split
    uint used;
};

// Of the group whose first query is in step_rows.
Splits splits_of(uint first) {
    Splits s;
    if (BY_ROW)
        s.end = step_word(step_places + 2u * query_row(first)) + 1u;
    else
        s.end = step_position + min(query_row(first + QUERIES - 1u), step_rows - 1u) + 1u;
    // Two splits of the least keys are not worth bringing together.
    const uint wanted = s.end <= 2u * LEAST_KEYS ? 1u : min((s.end + LEAST_KEYS - 1u) / LEAST_KEYS, args.splits);
    s.share = ((s.end + wanted - 1u) / wanted + 31u) / 32u * 32u;
    s.used = (s.end + s.share - 1u) / s.share;
    return s;
}
