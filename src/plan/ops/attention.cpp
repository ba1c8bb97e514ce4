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
}
static std::string heads_note(const HeadShape& s) {
    return fmt::format(" {} heads of {}, {} kv", s.heads, s.head_dim, s.kv_heads);
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
    f.note(heads_note(shape));
    f.slot("k", k, uint64_t(shape.kv_heads) * shape.head_dim);
    f.slot("v", v, uint64_t(shape.kv_heads) * shape.head_dim);
}

void RopeStore::list(OpFacts& f) const {
    list_heads(f, shape, cache);
    f.note(heads_note(shape));
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

std::string_view Attention::name() const {
    static constexpr std::string_view kNames[] = {"attention", "block_attention", "entry_attention",
                                                  "latent_attention"};
    return kNames[size_t(keys.kind)];
}

uint32_t Attention::value_dim(const Plan& plan) const {
    const uint32_t rank = plan.cache(cache).rank;
    return rank > 0 ? rank : shape.head_dim;
}

uint64_t Attention::most_keys(const Plan& plan, uint64_t tokens) const {
    const uint64_t last = window > 0 ? std::min<uint64_t>(window, tokens) : tokens;
    const uint64_t chosen = keys.chosen ? plan.slot(keys.chosen).width : UINT32_MAX;
    switch (keys.kind) {
        case Keys::blocks:
            return std::min(tokens, (chosen + 1) * keys.ratio);
        case Keys::entries:
            return last + (keys.entries ? std::min(tokens / plan.cache(keys.entries).ratio, chosen) : 0);
        case Keys::all:
        case Keys::latents:
            break;
    }
    return last;
}

// The text says what sets the kernels of such keys apart.
static void list_keys(OpFacts& f, const Attention& op, const CacheInfo& keeps) {
    const KeySet& keys = op.keys;
    const uint64_t chosen = f.width(keys.chosen);
    const CacheInfo* entries = keys.entries ? f.cache(keys.entries) : nullptr;
    switch (keys.kind) {
        case Keys::all:
            f.that(keeps.window == 0 || (op.window > 0 && op.window <= keeps.window),
                   "the cache keeps less than the window");
            f.that(!op.chunks || op.window > 0, "chunks have no length");
            f.note(heads_note(op.shape));
            if (op.window > 0) f.note(fmt::format(" {} {}", op.chunks ? "chunks of" : "window", op.window));
            break;
        case Keys::blocks:
            f.that(keeps.window == 0, "the cache keeps less than all tokens");
            f.that(keys.ratio > 0, "blocks must not be empty");
            f.that(chosen > 0, "no blocks are chosen");
            f.note(fmt::format("{}, {} blocks of {}", heads_note(op.shape), chosen, keys.ratio));
            break;
        case Keys::entries:
            f.that(keeps.rank == keeps.head_dim && keeps.ratio == 1 && op.window > 0 &&
                       op.window == keeps.window,
                   "the cache holds no latents with a window");
            f.that(op.q != op.y, "y must be a separate slot");
            f.that(keys.entries || !keys.chosen, "there are no entries to choose from");
            f.that(!entries || (entries->rank == keeps.rank && entries->head_dim == keeps.rank &&
                                entries->window == 0 && entries->types == keeps.types &&
                                kPageRows % entries->ratio == 0),
                   "the entries are of another kind");
            f.that(!keys.chosen || chosen > 0, "no blocks are chosen");
            f.note(
                fmt::format(" {} heads of {}, window {}", op.shape.heads, op.shape.head_dim, keeps.window));
            if (entries) f.note(fmt::format(", blocks of {}", entries->ratio));
            if (keys.chosen) f.note(fmt::format(", {} of them", chosen));
            break;
        case Keys::latents:
            f.note(fmt::format(" latents of {} of {}, {} heads", keeps.rank, keeps.head_dim, op.shape.heads));
            break;
    }
}

void Attention::list(OpFacts& f) const {
    list_heads(f, shape, cache);
    const CacheInfo* keeps = f.cache(cache);
    if (!keeps) return;
    const bool all = keys.kind == Keys::all, blocks = keys.kind == Keys::blocks,
               entries = keys.kind == Keys::entries;
    if (all || blocks)
        f.that(keeps->rank == 0, "the cache holds latents");
    else
        f.that(keeps->rank > 0, "the cache holds no latents");
    f.slot("q", q, uint64_t(shape.heads) * shape.head_dim);
    f.slot("y", y, uint64_t(shape.heads) * value_dim(f.plan));
    f.that(all || (softcap == 0.0f && !chunks), "such keys have neither a softcap nor chunks");
    f.that(all || entries || (window == 0 && !sinks), "such keys have neither a window nor sinks");
    f.that((blocks || keys.ratio == 0) && (entries || !keys.entries) && (blocks || entries || !keys.chosen),
           "the set of keys has parts of another");
    list_keys(f, *this, *keeps);
    f.vector("sinks", sinks, shape.heads, " +sinks");
}

Cost Attention::cost(const Plan& plan, const StepShape& step) const {
    const uint64_t keys_of_row = most_keys(plan, step.kv_len), scores = step.rows * keys_of_row;
    // Without a window, row r of those that see all keys sees kv_len - rows + r + 1 of them.
    const bool grows = window == 0 && keys.kind != Keys::blocks;
    const uint64_t skipped = grows ? step.rows * (step.rows - 1) / 2 : 0;
    // Each row chooses for itself, but rows of the cache that several of them see are read once.
    uint64_t read = keys_of_row;
    if (keys.kind == Keys::blocks) read = std::min(step.kv_len, keys_of_row * step.rows);
    if (keys.kind == Keys::entries) {
        const uint64_t tokens = std::min<uint64_t>(step.kv_len, window), entries = keys_of_row - tokens;
        read = std::min(step.kv_len, tokens + step.rows - 1) + entries;
        if (keys.chosen)
            read += std::min(step.kv_len / plan.cache(keys.entries).ratio, entries * step.rows) - entries;
    }
    return {0, plan.cache(cache).row_bytes() * shape.kv_heads * read,
            2 * (scores - std::min(skipped, scores)) * shape.heads * (shape.head_dim + value_dim(plan))};
}

void Attend::list(OpFacts& f) const {
    store.list(f);
    f.notes.clear();
    attention.list(f);
    if (store.q_norm || store.k_norm) f.note(" +norm");
    f.that(v_eps == 0.0f || store.v != store.k, "values that are normed must be in a separate slot");
    if (v_eps > 0.0f) f.note(" +norm of values");
    f.that(attention.q == store.q && attention.cache == store.cache && attention.keys.kind == Keys::all,
           "q and cache must be those that are stored, and all keys be seen");
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
