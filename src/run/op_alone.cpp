#include "run/op_alone.h"

#include <cmath>
#include <map>
#include <set>

namespace redline {

namespace {

constexpr uint64_t kMatrixRows = 64;     // that are left of a matrix
constexpr uint64_t kInnerWidth = 256;    // of the experts of a block: a multiple of every format's block
constexpr uint64_t kFurtherExperts = 2;  // that no row takes
constexpr uint64_t kRouterWidth = 32;

// What is smaller than in the plan, by the plan's numbers.
class Smaller {
public:
    explicit Smaller(const Plan& plan) : plan_(plan) {}

    Shape shape(Weight w) const {
        const auto found = shapes_.find(w.index);
        return found == shapes_.end() ? plan_.weight(w).tensor.shape : found->second;
    }
    uint32_t width(Slot s) const {
        const auto found = widths_.find(s.index);
        return found == widths_.end() ? plan_.slot(s).width : found->second;
    }

    void operator()(const Linear& op) { few_rows(op.w, op.y, op.bias); }
    void operator()(const LinearGroup& op) {
        for (uint32_t i = 0; i < op.count; ++i) few_rows(op.parts[i].w, op.parts[i].y, op.parts[i].bias);
    }
    void operator()(const Gated& op) {
        few_rows(op.gate, op.y, {});
        few_rows(op.up, op.y, {});
    }
    void operator()(const ExpertLinear& op) {
        const Shape full = plan_.weight(op.w).tensor.shape;
        experts(op.w, op.bias, {few(full.count, op.used), std::min(full.rows, kMatrixRows), full.cols});
        widths_[op.y.index] = uint32_t(shape(op.w).rows * (op.scales ? 1 : op.used));
    }
    void operator()(const ExpertGated& op) {
        const Shape full = plan_.weight(op.gate).tensor.shape;
        gated(op, {few(full.count, op.used), std::min(full.rows, kMatrixRows), full.cols});
    }
    void operator()(const ExpertBlock& op) {
        const Shape inner = plan_.weight(op.gated.gate).tensor.shape,
                    outer = plan_.weight(op.linear.w).tensor.shape;
        const uint64_t count = op.route.groups.count > 1 ? inner.count : few(inner.count, op.route.used),
                       width = std::min(inner.rows, kInnerWidth);
        gated(op.gated, {count, width, inner.cols});
        experts(op.linear.w, op.linear.bias, {count, outer.rows, width});
        shapes_[op.route.w.index] = {1, count, inner.cols};
        if (op.route.bias) shapes_[op.route.bias.index] = {1, 1, count};
    }
    void operator()(const auto&) {}

private:
    static uint64_t few(uint64_t count, uint64_t used) { return std::min(count, used + kFurtherExperts); }
    void few_rows(Weight w, Slot y, Weight bias) {
        Shape& small = shapes_[w.index] = plan_.weight(w).tensor.shape;
        small.rows = std::min(small.rows, kMatrixRows);
        widths_[y.index] = uint32_t(small.rows);
        if (bias) shapes_[bias.index] = {1, 1, small.rows};
    }
    void experts(Weight w, Weight bias, const Shape& small) {
        shapes_[w.index] = small;
        if (bias) shapes_[bias.index] = {1, 1, small.count * small.rows};
    }
    void gated(const ExpertGated& op, const Shape& small) {
        experts(op.gate, op.gate_bias, small);
        experts(op.up, op.up_bias, small);
        widths_[op.y.index] = uint32_t(small.rows * op.used);
    }

    const Plan& plan_;
    std::map<int32_t, Shape> shapes_;
    std::map<int32_t, uint32_t> widths_;
};

// Ids of experts that an op reads, and how many experts there are; none: no slot.
struct Ids {
    Slot slot;
    uint64_t experts = 0;
};
Ids ids_of(const ExpertLinear& op, const Smaller& sizes) {
    return {op.ids, sizes.shape(op.w).count};
}
Ids ids_of(const ExpertGated& op, const Smaller& sizes) {
    return {op.ids, sizes.shape(op.gate).count};
}
Ids ids_of(const AddExpertBias& op, const Smaller& sizes) {
    return {op.ids, sizes.shape(op.bias).elements() / (sizes.width(op.y) / (op.scales ? 1 : op.used))};
}
Ids ids_of(const ScaleByExpert& op, const Smaller& sizes) {
    return {op.ids, sizes.shape(op.factor).elements()};
}
Ids ids_of(const auto&, const Smaller&) {
    return {};
}

// Weights that must not be above 0: by how much a state decays.
Weight decays(const Op& op) {
    if (const auto* o = std::get_if<DeltaNet>(&op)) return o->a;
    if (const auto* o = std::get_if<StateScan>(&op)) return o->a;
    return {};
}

class Maker {
public:
    Maker(const Op& op, const Plan& plan, uint32_t seed)
        : op_(op), own_(op), plan_(plan), sizes_(plan), fixture_(seed, OpAlone::kTokens) {
        std::visit(sizes_, op);
        ids_ = std::visit([this](const auto& o) { return ids_of(o, sizes_); }, op);
    }

    Result<OpAlone> make() && {
        add_weights();
        const Access uses = access(op_);
        PlanBuilder builder(fixture_.weights(), {OpAlone::kPositions, plan_.max_rows, cache_type()},
                            plan_.max_rows, plan_.max_rows);
        add_caches(builder);
        for (const Slot s : uses.reads) slots_[s.index] = read(builder, s);
        visit([&](Slot& s) {
            if (s && !slots_.contains(s.index))
                slots_[s.index] = builder.slot(sizes_.width(s), plan_.slot(s).of_outputs);
        });
        const auto renumber = [](auto& index, const auto& to) {
            if (index) index = to.at(index.index);
        };
        visit([&](Slot& s) { renumber(s, slots_); });
        visit([&](Weight& w) { renumber(w, weights_); });
        visit([&](Cache& c) { renumber(c, caches_); });
        visit([&](uint32_t& rope) { rope = builder.add_rope(plan_.ropes[rope]); });
        store_before(builder);
        const size_t step = builder.plan().steps.size();
        builder.append(own_);
        OpAlone made{std::move(fixture_), {}, step, access(own_).writes, {}};
        if (const auto* o = std::get_if<Route>(&own_)) made.ids = o->ids;
        attend_behind(builder, made.written);
        builder.output(made.written.at(0));
        made.plan = RL_TRY(std::move(builder).finish());
        return made;
    }

private:
    // Calls `each` with every index of its type.
    template <typename Each>
    void visit(Each each) {
        const auto take = [&](auto& index) {
            if constexpr (requires { each(index); }) each(index);
        };
        std::visit([&](auto& o) { o.visit_indices([&](auto&... all) { (take(all), ...); }); }, own_);
    }

    CacheType cache_type() {
        CacheType type = CacheType::f16;
        visit([&](Cache& c) {
            if (!plan_.cache(c).is_state()) type = plan_.cache(c).type;
        });
        return type;
    }

    void add_weights() {
        visit([&](Weight& w) {
            if (w && !weights_.contains(w.index)) weights_[w.index] = weight(w);
        });
        for (const Slot s : access(op_).reads) inputs_[s.index] = fixture_.input(sizes_.width(s));
        const Format& f32 = *find_format("F32");
        if (ids_.slot) {
            inputs_[ids_.slot.index] = fixture_.input(kRouterWidth);
            router_ = fixture_.matrix(f32, ids_.experts, kRouterWidth);
        }
        if (const auto* o = std::get_if<Attention>(&op_))
            for (Weight& w : stored_) w = fixture_.input(o->shape.kv_heads * o->shape.head_dim);
        if (const auto* o = std::get_if<BlockAttention>(&op_))
            for (Weight& w : stored_) w = fixture_.input(o->shape.kv_heads * o->shape.head_dim);
        if (const auto* o = std::get_if<BlockScores>(&op_))
            stored_[0] = fixture_.input(plan_.cache(o->cache).head_dim);
        if (const auto* o = std::get_if<EntryAttention>(&op_))
            for (Weight& w : stored_) w = fixture_.input(plan_.cache(o->cache).head_dim);
        if (const auto* o = std::get_if<LatentAttention>(&op_)) {
            const CacheInfo& cache = plan_.cache(o->cache);
            stored_[0] = fixture_.input(cache.rank);
            stored_[1] = fixture_.input(cache.head_dim - cache.rank);
        }
    }

    Weight weight(Weight w) {
        const WeightInfo& info = plan_.weight(w);
        const Shape shape = sizes_.shape(w);
        if (w == decays(op_)) {
            std::vector<float> rates(shape.elements());
            for (size_t i = 0; i < rates.size(); ++i) rates[i] = -0.02f * float(1 << (i % 6));
            return fixture_.vector(rates);
        }
        if (const auto* o = std::get_if<Route>(&op_); o && w == o->table) {
            std::vector<float> experts(size_t(OpAlone::kTokens) * o->used);
            const uint64_t count = sizes_.shape(o->w).rows;
            for (size_t i = 0; i < experts.size(); ++i) experts[i] = float((i + i / o->used * 5) % count);
            return fixture_.vector(experts);
        }
        if (info.role == WeightRole::vector) return fixture_.vector(shape.elements());
        const bool embeds = std::holds_alternative<Embed>(op_);
        return fixture_.matrix(*info.tensor.format, embeds ? OpAlone::kTokens : shape.rows, shape.cols,
                               shape.count);
    }

    void add_caches(PlanBuilder& builder) {
        visit([&](Cache& c) {
            if (!c || caches_.contains(c.index)) return;
            const CacheInfo& info = plan_.cache(c);
            caches_[c.index] = info.is_state()  ? builder.state(info.state_floats)
                               : info.ratio > 1 ? builder.entries(info.head_dim, info.ratio)
                               : info.rank > 0  ? builder.latents(info.head_dim, info.rank, info.window)
                                                : builder.cache(info.kv_heads, info.head_dim, info.window);
        });
    }

    Slot read(PlanBuilder& builder, Slot s) {
        const Slot x = builder.embed(inputs_.at(s.index));
        if (s == ids_.slot) return builder.route(x, router_, plan_.slot(s).width, Gating::softmax, true).ids;
        const auto chosen_of = [&](uint32_t ratio) {
            const Slot chosen = builder.slot(sizes_.width(s));
            builder.append(ChooseBlocks{x, chosen, ratio});
            return chosen;
        };
        if (const auto* o = std::get_if<BlockAttention>(&op_); o && s == o->chosen)
            return chosen_of(o->ratio);
        if (const auto* o = std::get_if<EntryAttention>(&op_); o && s == o->chosen)
            return chosen_of(plan_.cache(o->entries).ratio);
        if (!plan_.slot(s).of_outputs) return x;
        const Slot y = builder.slot(sizes_.width(s), true);
        builder.append(SelectRows{x, y});
        return y;
    }

    // An attention reads what another op has stored.
    void store_before(PlanBuilder& builder) {
        if (const auto* o = std::get_if<Attention>(&own_))
            builder.append(KvStore{builder.embed(stored_[0]), builder.embed(stored_[1]), o->cache, o->shape});
        if (const auto* o = std::get_if<LatentAttention>(&own_))
            builder.append(LatentStore{builder.embed(stored_[0]), builder.embed(stored_[1]), o->cache});
        if (const auto* o = std::get_if<BlockAttention>(&own_))
            builder.append(KvStore{builder.embed(stored_[0]), builder.embed(stored_[1]), o->cache, o->shape});
        if (const auto* o = std::get_if<BlockScores>(&own_))
            builder.append(LatentStore{builder.embed(stored_[0]), {}, o->cache});
        if (const auto* o = std::get_if<EntryAttention>(&own_)) {
            builder.append(LatentStore{builder.embed(stored_[0]), {}, o->cache});
            if (o->entries) builder.append(LatentStore{builder.embed(stored_[1]), {}, o->entries});
        }
    }

    // What is in a cache is seen by what an attention makes of it.
    void attend_behind(PlanBuilder& builder, std::vector<Slot>& written) {
        const auto* o = std::get_if<RopeStore>(&own_);
        if (!o) return;
        const float scale = 1.0f / std::sqrt(float(o->shape.head_dim));
        written.push_back(builder.attention(o->cache, o->q, o->shape, scale));
    }

    const Op& op_;
    Op own_;
    const Plan& plan_;
    Smaller sizes_;
    Ids ids_;
    Fixture fixture_;
    std::map<int32_t, Weight> weights_, inputs_;
    std::map<int32_t, Slot> slots_;
    std::map<int32_t, Cache> caches_;
    Weight router_;
    Weight stored_[2];
};

}  // namespace

bool has_history(const Op& op) {
    const Access uses = access(op);
    return uses.reads_cache || uses.writes_cache;
}

Result<std::optional<OpAlone>> op_alone(const Op& op, const Plan& plan, uint32_t seed) {
    const bool from_host = std::holds_alternative<Input>(op) || std::holds_alternative<Lookup>(op);
    if (access(op).writes.empty() || from_host) return std::optional<OpAlone>();
    return std::optional(RL_TRY(Maker(op, plan, seed).make()));
}

}  // namespace redline
