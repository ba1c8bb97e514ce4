#include "plan/plan.h"

#include "plan/passes/waits.h"

#include <algorithm>
#include <limits>

namespace redline {

// Larger blocks of values lose more (llama.cpp, pull request 21038).
constexpr uint32_t kValueRotation = 64;

std::string_view cache_type_name(CacheType type) {
    switch (type) {
        case CacheType::f16:
            return "f16";
        case CacheType::q8_0:
            return "q8_0";
        case CacheType::f32:
            return "f32";
        case CacheType::bf16:
            return "bf16";
        case CacheType::q5_1:
            return "q5_1";
        case CacheType::q5_0:
            return "q5_0";
        case CacheType::q4_1:
            return "q4_1";
        case CacheType::q4_0:
            return "q4_0";
        case CacheType::iq4_nl:
            return "iq4_nl";
    }
    return "";
}

std::string cache_types_name(CacheTypes types) {
    const std::string keys(cache_type_name(types.keys));
    return types.are(types.keys) ? keys : keys + "/" + std::string(cache_type_name(types.values));
}

// Codes of 8 bits would diverge from f16 by 40 to 69 % less of the little that they do, and what rotates is
// not done together with rope, store and attention: an H200 decodes Llama-3.1-8B at 518 tok/s without and
// at 410 with rotation (tools/bench/2026-11-30-cache-types.md).
static bool is_rotated(const CacheInfo& cache, CacheType type, bool widened) {
    const CacheCode code = cache_code(type);
    return cache.types.rotate && !cache.is_state() && cache.rank == 0 && code.is_quantized() &&
           (code.bits < 8 || widened) && cache.head_dim % kValueRotation == 0;
}

uint32_t CacheInfo::key_rotation() const {
    return is_rotated(*this, types.keys, keys_widened) ? std::min(head_dim & (~head_dim + 1), kMostHadamard)
                                                       : 0;
}

uint32_t CacheInfo::value_rotation() const {
    return is_rotated(*this, types.values, false) ? kValueRotation : 0;
}

static std::array<uint64_t, 3> side_planes(CacheType type, uint64_t elements) {
    const CacheCode code = cache_code(type);
    return {elements * code.bits / 8, code.highs ? elements / 8 : 0,
            elements / kCacheBlock * code.scales * 2};
}

std::array<uint64_t, 6> CacheInfo::planes() const {
    if (is_state()) return {state_floats * sizeof(float), 0, 0, 0, 0, 0};
    const auto [keys, key_highs, key_scales] = side_planes(types.keys, head_dim);
    const auto [values, value_highs, value_scales] = side_planes(types.values, rank > 0 ? 0 : head_dim);
    return {keys, key_highs, key_scales, values, value_highs, value_scales};
}

uint64_t CacheInfo::row_bytes() const {
    uint64_t sum = 0;
    for (const uint64_t bytes : planes()) sum += bytes;
    return sum;
}

uint32_t page_entries(std::span<const CacheInfo> caches) {
    uint32_t entries = 0;
    for (const CacheInfo& cache : caches) entries = std::max(entries, cache.first_page + cache.pages());
    return entries;
}

uint64_t cache_bytes(std::span<const CacheInfo> caches) {
    uint64_t sum = 0;
    for (const CacheInfo& cache : caches) sum += cache.bytes();
    return sum;
}

PlanBuilder::PlanBuilder(std::vector<WeightInfo> weights, CacheSizing sizing, uint32_t max_rows,
                         uint32_t max_outputs) {
    plan_.weights = std::move(weights);
    plan_.sizing = sizing;
    plan_.max_rows = max_rows;
    plan_.max_outputs = max_outputs;
}

PlanBuilder PlanBuilder::like(const Plan& plan) {
    PlanBuilder builder;
    builder.plan_ = plan;
    builder.plan_.steps.clear();
    builder.has_rotations_ = true;
    return builder;
}

uint32_t PlanBuilder::add_rope(RopeSpec spec) {
    plan_.ropes.push_back(std::move(spec));
    return uint32_t(plan_.ropes.size() - 1);
}

static uint64_t whole_pages(uint64_t rows) {
    return (rows + kPageRows - 1) / kPageRows * kPageRows;
}

// A ring has room for a window and a whole step: the first row of a step must still find its window when the
// last is stored.
Cache PlanBuilder::cache(uint32_t kv_heads, uint32_t head_dim, uint64_t window) {
    const CacheSizing& sizing = plan_.sizing;
    const uint64_t ring = whole_pages(window + sizing.batch);
    const bool is_ring = window > 0 && ring < sizing.context;
    CacheInfo cache = {kv_heads, head_dim, 0, sizing.types, window};
    cache.sequence_rows = is_ring ? ring : sizing.pages > 0 ? whole_pages(sizing.context) : sizing.context;
    cache.capacity = sizing.pages == 0 ? cache.sequence_rows
                     : is_ring         ? sizing.sequences * ring
                                       : sizing.pages * kPageRows;
    const auto same = std::find_if(plan_.caches.begin(), plan_.caches.end(), [&](const CacheInfo& other) {
        return other.sequence_rows == cache.sequence_rows && other.tokens() == cache.capacity;
    });
    cache.first_page = same == plan_.caches.end() ? page_entries(plan_.caches) : same->first_page;
    plan_.caches.push_back(cache);
    return {int32_t(plan_.caches.size() - 1)};
}

Cache PlanBuilder::state(uint64_t floats) {
    CacheInfo cache{.kv_heads = 1, .types = CacheType::f32, .state_floats = floats};
    cache.capacity = std::max(plan_.sizing.sequences, plan_.sizing.states);
    plan_.caches.push_back(cache);
    return {int32_t(plan_.caches.size() - 1)};
}

Cache PlanBuilder::latents(uint32_t width, uint32_t rank, uint64_t window) {
    const Cache made = cache(1, width, window);
    plan_.caches.back().rank = rank;
    return made;
}

// A single sequence's tokens are rounded up to whole blocks; pages are whole blocks anyway.
Cache PlanBuilder::entries(uint32_t width, uint32_t ratio) {
    RL_CHECK(ratio > 0 && kPageRows % ratio == 0, "blocks of {} tokens in pages of {}", ratio, kPageRows);
    const Cache made = latents(width, width);
    CacheInfo& cache = plan_.caches.back();
    const auto rows = [&](uint64_t tokens) { return (tokens + ratio - 1) / ratio; };
    cache.sequence_rows = rows(cache.sequence_rows) * ratio;
    cache.capacity = rows(cache.capacity);
    cache.ratio = ratio;
    return made;
}

Slot PlanBuilder::slot(uint32_t width, bool of_outputs) {
    plan_.slots.push_back({width, of_outputs, 0});
    return {int32_t(plan_.slots.size() - 1)};
}

static uint32_t rows_of(const Plan& plan, Weight w) {
    return w ? uint32_t(plan.weight(w).tensor.shape.rows) : 0;
}

Slot PlanBuilder::input(uint32_t width) {
    plan_.input = slot(width);
    append(Input{plan_.input});
    return plan_.input;
}

Slot PlanBuilder::embed(Weight table, float scale) {
    const Slot y = slot(table ? uint32_t(plan_.weight(table).tensor.shape.cols) : 0);
    append(Embed{table, y, scale});
    return y;
}

Slot PlanBuilder::look_up(uint32_t width) {
    plan_.lookup = slot(width);
    append(Lookup{plan_.lookup});
    return plan_.lookup;
}

Slot PlanBuilder::rms_norm(Slot x, Norm norm, float scale) {
    const SlotInfo info = plan_.slot(x);
    const Slot y = slot(info.width, info.of_outputs);
    append(RmsNorm{x, norm, info.width, y, {}, Act::silu, scale});
    return y;
}

Slot PlanBuilder::centered(Slot x) {
    const SlotInfo info = plan_.slot(x);
    const Slot y = slot(info.width, info.of_outputs);
    append(Center{x, info.width, y});
    return y;
}

Slot PlanBuilder::layer_norm(Slot x, Norm norm, Weight bias) {
    const Slot y = centered(x);
    append(RmsNorm{y, norm, plan_.slot(y).width, y});
    if (bias) append(each::add_bias(y, bias));
    return y;
}

Slot PlanBuilder::linear(Slot x, Weight w, Norm norm, Weight bias, std::optional<Function> function) {
    const Slot y = slot(rows_of(plan_, w), plan_.slot(x).of_outputs);
    append(products::linear(x, w, y, norm, bias, false, function));
    return y;
}

void PlanBuilder::linear_add(Slot into, Slot x, Weight w, Weight bias) {
    append(products::linear(x, w, into, {}, bias, true));
}

template <size_t kCount>
std::array<Slot, kCount> PlanBuilder::group_of(Slot x, const std::array<Matrix, kCount>& parts, Norm norm) {
    std::array<Product::Part, kCount> all;
    std::array<Slot, kCount> slots;
    for (size_t i = 0; i < kCount; ++i) {
        slots[i] = slot(rows_of(plan_, parts[i].w));
        all[i] = {parts[i].w, parts[i].bias, slots[i]};
    }
    append(products::group(x, all, norm));
    return slots;
}

std::array<Slot, 3> PlanBuilder::group(Slot x, std::array<Matrix, 3> parts, Norm norm) {
    return group_of(x, parts, norm);
}

std::array<Slot, 2> PlanBuilder::group(Slot x, Matrix first, Matrix second, Norm norm) {
    return group_of(x, std::array{first, second}, norm);
}

std::array<Slot, 4> PlanBuilder::group(Slot x, Matrix first, Matrix second, Matrix third, Matrix last,
                                       Norm norm) {
    return group_of(x, std::array{first, second, third, last}, norm);
}

void PlanBuilder::rope_store(Cache cache, Slot q, Slot k, Slot v, HeadShape shape, uint32_t rope, Norm q_norm,
                             Norm k_norm) {
    append(RopeStore{q, k, v, cache, shape, rope, q_norm, k_norm});
}

Slot PlanBuilder::attention(Cache cache, Slot q, HeadShape shape, float scale, float softcap, Weight sinks) {
    const Slot y = slot(shape.heads * shape.head_dim);
    const uint32_t window = uint32_t(plan_.cache(cache).window);
    append(Attention{q, y, cache, shape, scale, softcap, window, sinks});
    return y;
}

Slot PlanBuilder::attend(Cache cache, const std::array<Slot, 3>& qkv, HeadShape shape, uint32_t rope,
                         float scale, Norm q_norm, Norm k_norm, float softcap, Weight sinks, float v_eps) {
    const auto [q, k, v] = qkv;
    if (rope == kNoRope) {
        if (v_eps > 0.0f) append(RmsNorm{v, {{}, v_eps}, shape.head_dim, v});
        if (q_norm) append(RmsNorm{q, q_norm, shape.head_dim, q});
        if (k_norm) append(RmsNorm{k, k_norm, shape.head_dim, k});
        append(KvStore{k, v, cache, shape});
        return attention(cache, q, shape, scale, softcap, sinks);
    }
    const Slot y = slot(shape.heads * shape.head_dim);
    const uint32_t window = uint32_t(plan_.cache(cache).window);
    append(Attend{{q, k, v, cache, shape, rope, q_norm, k_norm},
                  {q, y, cache, shape, scale, softcap, window, sinks},
                  v_eps});
    return y;
}

Slot PlanBuilder::head_linear(Slot x, Weight w, uint32_t x_stride, uint32_t y_stride) {
    const Slot y = slot(w ? uint32_t(plan_.weight(w).tensor.shape.count) * y_stride : 0);
    append(products::by_head(x, w, y, {x_stride, y_stride}));
    return y;
}

Slot PlanBuilder::latent_attention(Cache cache, Slot q, uint32_t heads, float scale) {
    const Slot y = slot(heads * plan_.cache(cache).rank);
    append(Attention{.q = q,
                     .y = y,
                     .cache = cache,
                     .shape = {heads, 1, plan_.cache(cache).head_dim},
                     .scale = scale,
                     .keys = {Keys::latents}});
    return y;
}

Slot PlanBuilder::convolve(Cache state, Slot x, Weight w, uint32_t taps, bool silu, Slot before, Slot behind,
                           uint32_t apart) {
    const Slot y = slot(plan_.slot(x).width);
    append(Convolve{x, w, y, state, taps, silu, before, behind, apart});
    return y;
}

Slot PlanBuilder::parts_of(Slot x, uint32_t parts, uint32_t width, uint32_t first, uint32_t stride) {
    const Slot y = slot(parts * width, plan_.slot(x).of_outputs);
    append(CopyParts{x, y, parts, width, first, stride, 0, width});
    return y;
}

void PlanBuilder::add(Slot into, Slot x, float scale, Norm norm) {
    if (norm)
        append(RmsNorm{x, norm, plan_.slot(x).width, into, {}, Act::silu, scale, true});
    else
        append(each::add(into, x, scale));
}

Slot PlanBuilder::gated(Slot x, Weight gate, Weight up, Act act, Norm norm) {
    const Slot y = slot(rows_of(plan_, gate));
    append(products::gated(x, gate, up, y, act, norm));
    return y;
}

PlanBuilder::Routing PlanBuilder::route(Slot x, Weight w, uint32_t used, Gating gating, bool normalise,
                                        float scale, Weight bias, BiasOf bias_of, ExpertGroups groups,
                                        Weight table, Norm norm, float x_scale) {
    const Routing routing{slot(used), slot(used), used};
    append(Route{x, w, routing.ids, routing.scales, used, gating, normalise, scale, bias, bias_of, groups,
                 table, norm, x_scale});
    return routing;
}

void PlanBuilder::experts_add(Slot into, Slot x, const Routing& routing, const Experts& e) {
    const Slot hidden = slot(rows_of(plan_, e.gate) * routing.used);
    append(products::gated_by_expert(x, e.gate, e.up, hidden, {routing.ids, routing.used}, e.act, e.gate_bias,
                                     e.up_bias));
    add_experts(into, hidden, e.down, routing, e.down_bias);
}

Slot PlanBuilder::experts(Slot x, Weight w, const Routing& routing, std::optional<Function> function) {
    const Slot y = slot(rows_of(plan_, w) * routing.used);
    append(products::by_expert(x, w, y, {routing.ids, routing.used}, {}, function));
    return y;
}

void PlanBuilder::add_experts(Slot into, Slot x, Weight w, const Routing& routing, Weight bias) {
    append(products::by_expert(x, w, into, {routing.ids, routing.used, true, routing.scales}, bias));
}

void PlanBuilder::expert_block(Slot x, Norm norm, const Router& r, const Experts& e, SharedExpert shared) {
    const uint32_t width = plan_.slot(x).width;
    const Slot normed = slot(width), ids = slot(r.used), scales = slot(r.used),
               hidden = slot(rows_of(plan_, e.gate) * r.used);
    if (shared.router) shared.ids = slot(1), shared.scale = slot(1);
    if (shared) shared.hidden = slot(rows_of(plan_, shared.gate));
    append(ExpertBlock{
        {x, norm, width, normed},
        {normed, r.w, ids, scales, r.used, r.gating, r.normalise, r.scale, r.bias, r.bias_of, r.groups},
        products::gated_by_expert(normed, e.gate, e.up, hidden, {ids, r.used}, e.act, e.gate_bias, e.up_bias),
        products::by_expert(hidden, e.down, x, {ids, r.used, true, scales}, e.down_bias),
        shared});
}

void PlanBuilder::logits(Slot x, Weight w, Norm norm, float scale, float softcap) {
    const Slot selected = slot(plan_.slot(x).width, true);
    append(SelectRows{x, selected});
    plan_.output = linear(selected, w, norm);
    if (softcap > 0.0f)
        append(each::softcap(plan_.output, scale, softcap));
    else if (scale != 1.0f)
        append(each::scale(plan_.output, scale));
}

void PlanBuilder::output(Slot x) {
    if (plan_.slot(x).of_outputs) {
        plan_.output = x;
        return;
    }
    plan_.output = slot(plan_.slot(x).width, true);
    append(SelectRows{x, plan_.output});
}

Result<Plan> PlanBuilder::finish() && {
    if (!plan_.output) return error("the plan has no output");
    std::vector<bool> undefined(plan_.slots.size());  // had a step's intermediate results last
    for (const Step& step : plan_.steps) {
        Status fits = check(step.op, plan_);
        if (!fits) return error("layer {}: {}", step.layer, fits.error().message);
        const Access used = access(step.op);
        for (const Slot s : used.reads)
            if (undefined[size_t(s.index)])
                return error("layer {}: {} reads a slot in which a fused op has left nothing", step.layer,
                             op_name(step.op));
        for (const Slot s : used.scratch) undefined[size_t(s.index)] = true;
        for (const Slot s : used.writes) undefined[size_t(s.index)] = false;
    }
    for (WeightInfo& weight : plan_.weights) weight.scale = 1.0f, weight.scales = {};
    assign_arena(plan_);
    return std::move(plan_);
}

namespace {

constexpr uint64_t kSlotAlign = 256;

struct Life {
    size_t first = std::numeric_limits<size_t>::max();
    size_t last = 0;
    uint64_t bytes = 0;
    uint32_t slot = 0;

    bool overlaps(const Life& other) const { return first <= other.last && other.first <= last; }
};

}  // namespace

Access access(const Step& step) {
    Access used = access(step.op);
    if (step.takes) used.reads.push_back(step.takes);
    if (step.leaves) used.scratch.push_back(step.leaves);
    return used;
}

size_t last_writer(const Plan& plan, size_t before, Slot slot) {
    for (size_t i = before; i-- > 0;)
        for (const Slot written : access(plan.steps[i].op).writes)
            if (written == slot) return i;
    return before;
}

namespace {

std::vector<Life> lifetimes(const Plan& plan, uint64_t gap) {
    std::vector<Life> lives(plan.slots.size());
    for (size_t i = 0; i < lives.size(); ++i) {
        lives[i].slot = uint32_t(i);
        lives[i].bytes = (plan.slot_bytes({int32_t(i)}) + gap + kSlotAlign - 1) / kSlotAlign * kSlotAlign;
    }
    const std::vector<size_t> waits = plan.overlaps ? waits_before(plan) : std::vector<size_t>();
    for (size_t i = 0; i < plan.steps.size(); ++i) {
        const size_t step = plan.overlaps ? waits[i] : i;
        const Access used = access(plan.steps[i]);
        for (const auto* list : {&used.reads, &used.writes, &used.scratch})
            for (const Slot s : *list) {
                Life& life = lives[size_t(s.index)];
                life.first = std::min(life.first, step);
                life.last = std::max(life.last, step);
            }
    }
    for (const Slot left : {plan.output, plan.hidden})
        if (left) lives[size_t(left.index)].last = plan.steps.size();
    return lives;
}

// Memory ranges that steps since the last barrier have read or written.
struct Hazards {
    struct Range {
        uint64_t begin, end;
    };
    std::vector<Range> read, written;
    bool cache_read = false, cache_written = false;

    static bool meets(const std::vector<Range>& ranges, Range r) {
        return std::any_of(ranges.begin(), ranges.end(),
                           [&](Range other) { return r.begin < other.end && other.begin < r.end; });
    }
};

}  // namespace

static void set_barriers(Plan& plan) {
    Hazards since;
    for (size_t i = 0; i < plan.steps.size(); ++i) {
        Access used = access(plan.steps[i]);
        const auto range = [&](Slot s) {
            return Hazards::Range{plan.slot(s).offset, plan.slot(s).offset + plan.slot_bytes(s)};
        };
        bool wait = (used.reads_cache && since.cache_written) ||
                    (used.writes_cache && (since.cache_read || since.cache_written)) ||
                    begins_waiting_layer(plan, i);
        for (const Slot s : used.reads) wait |= Hazards::meets(since.written, range(s));
        used.writes.insert(used.writes.end(), used.scratch.begin(), used.scratch.end());
        for (const Slot s : used.writes)
            wait |= Hazards::meets(since.written, range(s)) || Hazards::meets(since.read, range(s));
        plan.steps[i].barrier = wait;
        if (wait) since = {};
        for (const Slot s : used.reads) since.read.push_back(range(s));
        for (const Slot s : used.writes) since.written.push_back(range(s));
        since.cache_read |= used.reads_cache;
        since.cache_written |= used.writes_cache;
    }
}

void assign_arena(Plan& plan, bool reuse, uint64_t gap) {
    std::vector<Life> lives = lifetimes(plan, gap);
    // Big slots first, each at the lowest offset that no slot alive at the same time occupies.
    std::stable_sort(lives.begin(), lives.end(),
                     [](const Life& a, const Life& b) { return a.bytes > b.bytes; });
    std::vector<const Life*> placed;
    plan.arena_bytes = 0;
    for (const Life& life : lives) {
        if (life.first == std::numeric_limits<size_t>::max()) continue;
        uint64_t offset = reuse ? 0 : plan.arena_bytes;
        std::sort(placed.begin(), placed.end(), [&](const Life* a, const Life* b) {
            return plan.slots[a->slot].offset < plan.slots[b->slot].offset;
        });
        for (const Life* other : placed) {
            const uint64_t begin = plan.slots[other->slot].offset;
            if (!reuse || !life.overlaps(*other)) continue;
            if (offset + life.bytes <= begin) break;
            offset = std::max(offset, begin + other->bytes);
        }
        plan.slots[life.slot].offset = offset;
        plan.arena_bytes = std::max(plan.arena_bytes, offset + life.bytes);
        placed.push_back(&life);
    }
    set_barriers(plan);
}

}  // namespace redline
