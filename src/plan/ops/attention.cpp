#include "plan/ops/attention.h"

#include "plan/plan.h"

#include <algorithm>
#include <cmath>

namespace redline {

double RopeSpec::magnitude_at(uint64_t position) const {
    return growth > 0.0 ? magnitude * (1.0 + growth * std::log1p(double((position + ahead) / period)))
                        : magnitude;
}

void RopeSpec::fill_table(uint64_t position, float* table) const {
    position -= position % block;
    const size_t pairs = inverse_frequency.size();
    const double longer = magnitude_at(position);
    for (size_t i = 0; i < pairs; ++i) {
        const double angle = double(position) * inverse_frequency[i];
        table[i] = float(std::cos(angle) * longer);
        table[pairs + i] = float(std::sin(angle) * longer);
    }
}

static void list_heads(OpFacts& f, const HeadShape& s, Cache index) {
    f.that(s.heads > 0 && s.kv_heads > 0 && s.head_dim > 0, "head counts must not be zero");
    f.that(s.kv_heads == 0 || s.heads % s.kv_heads == 0, "heads must be a multiple of kv heads");
    const CacheInfo* cache = f.cache(index);
    f.that(!cache || (s.kv_heads == cache->kv_heads && s.head_dim == cache->head_dim),
           "the cache has other heads");
    f.note(fmt::format(" {} heads of {}, {} kv", s.heads, s.head_dim, s.kv_heads));
}

static void list_rope(OpFacts& f, uint32_t rope, uint64_t head_dim, uint64_t first = 0) {
    const auto& ropes = f.plan.ropes;
    f.that(rope < ropes.size(), "no such rope");
    f.that(rope >= ropes.size() || first + ropes[rope].inverse_frequency.size() * 2 <= head_dim,
           "the rope rotates more dimensions than a head has");
}

void Rope::list(OpFacts& f) const {
    f.slot("x", x, uint64_t(heads) * head_dim);
    list_rope(f, rope, head_dim, first);
    f.note(fmt::format(" {} heads of {}", heads, head_dim));
    if (first > 0) f.note(fmt::format(" from {}", first));
}

void KvStore::list(OpFacts& f) const {
    list_heads(f, shape, cache);
    f.slot("k", k, uint64_t(shape.kv_heads) * shape.head_dim);
    f.slot("v", v, uint64_t(shape.kv_heads) * shape.head_dim);
}

void RopeStore::list(OpFacts& f) const {
    list_heads(f, shape, cache);
    f.slot("q", q, uint64_t(shape.heads) * shape.head_dim);
    f.slot("k", k, uint64_t(shape.kv_heads) * shape.head_dim);
    f.slot("v", v, uint64_t(shape.kv_heads) * shape.head_dim);
    f.vector("q norm", q_norm.gain, shape.head_dim, " +norm");
    f.vector("k norm", k_norm.gain, shape.head_dim, " +norm");
    list_rope(f, rope, shape.head_dim);
}

bool RopeStore::decompose(PlanBuilder& out) const {
    if (q_norm) out.append(RmsNorm{q, q_norm, shape.head_dim, q});
    if (k_norm) out.append(RmsNorm{k, k_norm, shape.head_dim, k});
    out.append(Rope{q, shape.heads, shape.head_dim, rope});
    out.append(Rope{k, shape.kv_heads, shape.head_dim, rope});
    out.append(KvStore{k, v, cache, shape});
    return true;
}

void Attention::list(OpFacts& f) const {
    list_heads(f, shape, cache);
    const CacheInfo* keeps = f.cache(cache);
    f.that(!keeps || keeps->window == 0 || (window > 0 && window <= keeps->window),
           "the cache keeps less than the window");
    f.slot("q", q, uint64_t(shape.heads) * shape.head_dim);
    f.slot("y", y, uint64_t(shape.heads) * shape.head_dim);
    f.that(!chunks || window > 0, "chunks have no length");
    if (window > 0) f.note(fmt::format(" {} {}", chunks ? "chunks of" : "window", window));
    f.vector("sinks", sinks, shape.heads, " +sinks");
}

Cost Attention::cost(const Plan& plan, const StepShape& step) const {
    // Row r sees kv_len - rows + r + 1 keys, at most `window`.
    const uint64_t keys = window > 0 ? std::min<uint64_t>(window, step.kv_len) : step.kv_len;
    const uint64_t skipped = window > 0 ? 0 : step.rows * (step.rows - 1) / 2;
    const uint64_t scores = step.rows * keys - std::min(skipped, step.rows * keys);
    return {0, plan.cache(cache).row_bytes() * shape.kv_heads * keys,
            4 * scores * shape.heads * shape.head_dim};
}

void Attend::list(OpFacts& f) const {
    store.list(f);
    f.notes.clear();
    attention.list(f);
    if (store.q_norm || store.k_norm) f.note(" +norm");
    f.that(v_eps == 0.0f || store.v != store.k, "values that are normed must be in a separate slot");
    if (v_eps > 0.0f) f.note(" +norm of values");
    f.that(attention.q == store.q && attention.cache == store.cache,
           "q and cache must be those that are stored");
}

bool Attend::decompose(PlanBuilder& out) const {
    if (v_eps > 0.0f) {
        out.append(RmsNorm{store.v, {{}, v_eps}, store.shape.head_dim, store.v});
        out.append(Attend{store, attention});
        return true;
    }
    out.append(store);
    out.append(attention);
    return true;
}

}  // namespace redline
