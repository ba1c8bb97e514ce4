#include "measure/op_alone.h"

#include <cmath>
#include <map>
#include <set>

namespace redline {

namespace {

constexpr uint64_t kRouterWidth = 32;
constexpr uint64_t kFewColumns = 512;   // for the first op of a pair
constexpr uint32_t kMostSequences = 3;  // that share pages

// Shapes of weights and slots that are smaller than in the plan, by the plan's indices.
class ShrunkShapes {
public:
    ShrunkShapes(const Plan& plan, const AloneSize& size) : plan_(plan), size_(size) {}

    Shape shape(Weight w) const {
        const auto found = shapes_.find(w.index);
        return found == shapes_.end() ? plan_.weight(w).tensor.shape : found->second;
    }
    uint32_t width(Slot s) const {
        const auto found = widths_.find(s.index);
        return found == widths_.end() ? plan_.slot(s).width : found->second;
    }

    void operator()(const Product& op) {
        if (op.by() == By::head) return;
        for (const Product::Part& part : op.all()) {
            const Shape full = plan_.weight(part.w).tensor.shape;
            shrink(op, part, {few(full.count, op), rows_of(full), full.cols});
        }
    }
    void operator()(const ExpertBlock& op) {
        const Shape inner = plan_.weight(op.gated.w()).tensor.shape,
                    outer = plan_.weight(op.linear.w()).tensor.shape;
        const uint64_t count = op.route.groups.count > 1 ? inner.count : few(inner.count, op.gated),
                       width = std::min(inner.rows, size_.inner);
        for (const Product::Part& part : op.gated.all()) shrink(op.gated, part, {count, width, inner.cols});
        shrink(op.linear, op.linear.parts[0], {count, outer.rows, width});
        shapes_[op.route.w.index] = {1, count, inner.cols};
        if (op.route.bias) shapes_[op.route.bias.index] = {1, 1, count};
        if (op.shared) shared(op.shared, outer.rows, inner.cols);
    }
    void operator()(const auto&) {}

    // Keeps all rows, and shrinks the columns.
    void few_columns(const Product& op) {
        if (op.by() == By::head || (op.count > 1 && !op.act)) return (*this)(op);
        for (const Product::Part& part : op.all()) {
            const Shape full = plan_.weight(part.w).tensor.shape;
            const uint64_t cols = std::min(full.cols, kFewColumns);
            shrink(op, part, {few(full.count, op), full.rows, cols});
            widths_[op.x.index] = uint32_t(cols * op.x_rows());
            if (op.norm) shapes_[op.norm.gain.index] = {1, 1, cols};
        }
    }
    void few_columns(const auto& op) { (*this)(op); }

private:
    uint64_t few(uint64_t count, const Product& op) const {
        const uint64_t used = op.experts.used;
        return used == 0 ? count : std::min(count, used + std::min(size_.further_experts, count));
    }
    uint64_t rows_of(const Shape& full) const {
        return std::min(full.rows, std::max(size_.rows, size_.elements / full.cols));
    }
    void shrink(const Product& op, const Product::Part& part, const Shape& small) {
        shapes_[part.w.index] = small;
        if (part.bias) shapes_[part.bias.index] = {1, 1, small.count * small.rows};
        widths_[op.target(part).index] = uint32_t(small.rows * op.y_rows());
    }
    void shared(const SharedExpert& op, uint64_t rows, uint64_t cols) {
        const uint64_t width = std::min(plan_.weight(op.gate).tensor.shape.rows, size_.inner);
        shapes_[op.gate.index] = shapes_[op.up.index] = {1, width, cols};
        shapes_[op.down.index] = {1, rows, width};
        widths_[op.hidden.index] = uint32_t(width);
    }

    const Plan& plan_;
    const AloneSize size_;
    std::map<int32_t, Shape> shapes_;
    std::map<int32_t, uint32_t> widths_;
};

// The slot of expert ids that an op reads, and the number of experts; without a slot: it reads none.
struct Ids {
    Slot slot;
    uint64_t experts = 0;
};
Ids ids_of(const Product& op, const ShrunkShapes& sizes) {
    return {op.experts.ids, sizes.shape(op.w()).count};
}
Ids ids_of(const AddExpertBias& op, const ShrunkShapes& sizes) {
    return {op.ids, sizes.shape(op.bias).elements() / (sizes.width(op.y) / (op.scales ? 1 : op.used))};
}
Ids ids_of(const ScaleByExpert& op, const ShrunkShapes& sizes) {
    return {op.ids, sizes.shape(op.factor).elements()};
}
Ids ids_of(const auto&, const ShrunkShapes&) {
    return {};
}

// The weight, if any, that sets how fast a state decays, and must not be above 0.
Weight decays(const Op& op) {
    if (const auto* o = std::get_if<DeltaNet>(&op)) return o->a;
    if (const auto* o = std::get_if<StateScan>(&op)) return o->a;
    return {};
}

// One op of a plan, renumbered to the slots and weights of a plan that is made for it.
class Part {
public:
    Part(const Op& op, const Plan& plan, const AloneSize& size, bool few_columns = false)
        : op_(op), made_(op), plan_(plan), sizes_(plan, size) {
        if (few_columns)
            std::visit([this](const auto& o) { sizes_.few_columns(o); }, op);
        else
            std::visit(sizes_, op);
        ids_ = std::visit([this](const auto& o) { return ids_of(o, sizes_); }, op);
    }

    const Op& op() const { return made_; }
    Slot ids() const {
        const auto* o = std::get_if<Route>(&made_);
        return o ? o->ids : Slot();
    }

    // Without rotations, which are separate ops.
    std::optional<CacheTypes> cache_types() {
        std::optional<CacheTypes> types;
        visit([&](Cache& c) {
            if (c && !plan_.cache(c).is_state())
                types = {plan_.cache(c).types.keys, plan_.cache(c).types.values, false};
        });
        return types;
    }

    void add_weights(Fixture& fixture) {
        visit([&](Weight& w) {
            if (w && !weights_.contains(w.index)) weights_[w.index] = weight(fixture, w);
        });
        for (const Slot s : access(op_).reads) inputs_[s.index] = fixture.input(sizes_.width(s));
        const Format& f32 = *find_format("F32");
        if (ids_.slot) {
            inputs_[ids_.slot.index] = fixture.input(kRouterWidth);
            router_ = fixture.matrix(f32, ids_.experts, kRouterWidth);
        }
        if (const auto* o = std::get_if<Attention>(&op_)) {
            const bool latents = o->keys.kind == Keys::latents;
            const uint32_t width = o->shape.kv_heads * o->shape.head_dim, rank = o->value_dim(plan_);
            stored_[0] = fixture.input(latents ? rank : width);
            stored_[1] = fixture.input(latents ? width - rank : width);
        }
        if (const auto* o = std::get_if<BlockScores>(&op_))
            stored_[0] = fixture.input(plan_.cache(o->cache).head_dim);
    }

    // `given` replaces `of`, one of the slots that the op reads.
    void append(PlanBuilder& builder, Slot of = {}, Slot given = {}) {
        add_caches(builder);
        if (of) slots_[of.index] = given;
        for (const Slot s : access(op_).reads)
            if (!slots_.contains(s.index)) slots_[s.index] = read(builder, s);
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
        builder.append(made_);
    }

    // Bytes of the op's weights and of its caches with so many positions.
    uint64_t bytes(const Fixture& fixture, uint64_t positions) {
        uint64_t sum = 0;
        for (const auto& [number, w] : weights_) {
            const Tensor& tensor = fixture.weights()[size_t(w.index)].tensor;
            sum += tensor.shape.elements() / tensor.format->block * tensor.format->block_bytes;
        }
        visit([&](Cache& c) {
            if (!c) return;
            const CacheInfo& info = plan_.cache(c);
            sum += info.is_state() ? info.state_floats * 4 : positions * info.row_bytes() * info.kv_heads;
        });
        return sum;
    }

    // Prepares another append(), with copies of the first one's weights.
    void begin_again(Fixture& fixture) {
        made_ = op_;
        caches_.clear();
        for (auto& [number, w] : weights_) w = fixture.copy(w);
    }
    void use_again(const std::map<int32_t, Weight>& weights, const std::map<int32_t, Cache>& caches) {
        made_ = op_;
        weights_ = weights;
        caches_ = caches;
    }
    const std::map<int32_t, Weight>& weights() const { return weights_; }
    const std::map<int32_t, Cache>& caches() const { return caches_; }
    // After a fused op the content of its scratch slots is undefined, so they are not read again.
    void renew_slots() {
        if (!access(op_).scratch.empty()) slots_.clear();
    }

    // A cache's content is compared through an attention that reads it.
    void attend_behind(PlanBuilder& builder, std::vector<Slot>& written) const {
        const auto* o = std::get_if<RopeStore>(&made_);
        if (!o) return;
        const float scale = 1.0f / std::sqrt(float(o->shape.head_dim));
        written.push_back(builder.attention(o->cache, o->q, o->shape, scale));
    }

private:
    // Calls `each` with every index of its type.
    template <typename Each>
    void visit(Each each) {
        const auto take = [&](auto& index) {
            if constexpr (requires { each(index); }) each(index);
        };
        std::visit([&](auto& o) { o.visit_indices([&](auto&... all) { (take(all), ...); }); }, made_);
    }

    Weight weight(Fixture& fixture, Weight w) {
        const WeightInfo& info = plan_.weight(w);
        const Shape shape = sizes_.shape(w);
        if (w == decays(op_)) {
            std::vector<float> rates(shape.elements());
            for (size_t i = 0; i < rates.size(); ++i) rates[i] = -0.02f * float(1 << (i % 6));
            return fixture.vector(rates);
        }
        if (const auto* o = std::get_if<Route>(&op_); o && w == o->table) {
            std::vector<float> experts(size_t(OpAlone::kTokens) * o->used);
            const uint64_t count = sizes_.shape(o->w).rows;
            for (size_t i = 0; i < experts.size(); ++i) experts[i] = float((i + i / o->used * 5) % count);
            return fixture.vector(experts);
        }
        if (info.role == WeightRole::vector) return fixture.vector(shape.elements());
        const bool embeds = std::holds_alternative<Embed>(op_);
        return fixture.matrix(*info.tensor.format, embeds ? OpAlone::kTokens : shape.rows, shape.cols,
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
        if (const auto* o = std::get_if<Attention>(&op_); o && s == o->keys.chosen) {
            const Slot chosen = builder.slot(sizes_.width(s));
            const Cache entries = o->keys.entries;
            builder.append(ChooseBlocks{x, chosen, entries ? plan_.cache(entries).ratio : o->keys.ratio});
            return chosen;
        }
        if (!plan_.slot(s).of_outputs) return x;
        const Slot y = builder.slot(sizes_.width(s), true);
        builder.append(SelectRows{x, y});
        return y;
    }

    // Stores keys and values for an op that reads a cache.
    void store_before(PlanBuilder& builder) {
        const auto stored = [&](size_t i) { return builder.embed(stored_[i]); };
        if (const auto* o = std::get_if<BlockScores>(&made_))
            builder.append(LatentStore{stored(0), {}, o->cache});
        const auto* o = std::get_if<Attention>(&made_);
        if (!o) return;
        switch (o->keys.kind) {
            case Keys::all:
            case Keys::blocks:
                builder.append(KvStore{stored(0), stored(1), o->cache, o->shape});
                break;
            case Keys::entries:
                builder.append(LatentStore{stored(0), {}, o->cache});
                if (o->keys.entries) builder.append(LatentStore{stored(1), {}, o->keys.entries});
                break;
            case Keys::latents:
                builder.append(LatentStore{stored(0), stored(1), o->cache});
                break;
        }
    }

    const Op& op_;
    Op made_;
    const Plan& plan_;
    ShrunkShapes sizes_;
    Ids ids_;
    std::map<int32_t, Weight> weights_, inputs_;
    std::map<int32_t, Slot> slots_;
    std::map<int32_t, Cache> caches_;
    Weight router_;
    Weight stored_[2];
};

// The sizing of the whole plan's batch, with fewer positions and sequences.
CacheSizing small_sizing(const Plan& plan, CacheTypes types) {
    CacheSizing sizing{OpAlone::kPositions, plan.max_rows, types};
    if (plan.sizing.pages == 0) return sizing;
    sizing.sequences = std::min(plan.sizing.sequences, kMostSequences);
    sizing.pages = sizing.sequences * (OpAlone::kPositions / kPageRows) + 1;  // plus one unused page
    return sizing;
}

Result<OpAlone> made(Fixture fixture, const Plan& whole, Part* before, Part& part, Slot handed) {
    CacheTypes types = part.cache_types().value_or(CacheTypes());
    if (before) types = before->cache_types().value_or(types);
    const CacheSizing sizing = small_sizing(whole, types);
    PlanBuilder builder(fixture.weights(), sizing, whole.max_rows, whole.max_rows);
    Slot given;
    if (before) {
        before->append(builder);
        given = access(before->op()).writes.at(0);
    }
    part.append(builder, handed, given);
    OpAlone alone{std::move(fixture), {}, builder.plan().steps.size() - 1, access(part.op()).writes, {}, 0};
    alone.ids = part.ids();
    alone.sequences = sizing.pages > 0 ? sizing.sequences : 0;
    part.attend_behind(builder, alone.written);
    builder.output(alone.written.at(0));
    alone.plan = RL_TRY(std::move(builder).finish());
    return alone;
}

}  // namespace

bool has_history(const Op& op) {
    const Access uses = access(op);
    return uses.reads_cache || uses.writes_cache;
}

bool stands_alone(const Op& op) {
    const bool from_host = std::holds_alternative<Input>(op) || std::holds_alternative<Lookup>(op);
    return !access(op).writes.empty() && !from_host;
}

Result<OpAlone> op_alone(const Op& op, const Plan& plan, uint32_t seed, const AloneSize& size) {
    Fixture fixture(seed, OpAlone::kTokens);
    Part part(op, plan, size);
    part.add_weights(fixture);
    return made(std::move(fixture), plan, nullptr, part, {});
}

Result<OpAlone> op_repeated(const Op& op, const Plan& plan, uint32_t seed, const AloneSize& size,
                            uint32_t times, uint64_t bytes) {
    struct Round {
        std::map<int32_t, Weight> weights;
        std::map<int32_t, Cache> caches;
    };
    Fixture fixture(seed, OpAlone::kTokens, OpAlone::kDistinct);
    Part part(op, plan, size);
    part.add_weights(fixture);
    const CacheTypes types = part.cache_types().value_or(CacheTypes());
    const uint64_t positions = std::min(plan.sizing.context, OpAlone::kMostPositions);
    const uint64_t each = std::max<uint64_t>(1, part.bytes(fixture, positions)),
                   copies = std::clamp<uint64_t>((bytes + each - 1) / each, 1, times);
    std::vector<Round> rounds = {{part.weights(), {}}};
    for (uint64_t i = 1; i < copies; ++i) {
        part.begin_again(fixture);
        rounds.push_back({part.weights(), {}});
    }
    PlanBuilder builder(fixture.weights(), {positions, plan.max_rows, types}, plan.max_rows, 1);
    for (uint32_t i = 0; i < times; ++i) {
        Round& round = rounds[i % copies];
        part.use_again(round.weights, round.caches);
        part.renew_slots();
        builder.next_layer();
        part.append(builder);
        round.caches = part.caches();
    }
    OpAlone alone{std::move(fixture),       {},         builder.plan().steps.size() - 1,
                  access(part.op()).writes, part.ids(), 0};
    builder.output(alone.written.at(0));
    alone.plan = RL_TRY(std::move(builder).finish());
    alone.plan.layers_wait = true;
    return alone;
}

Result<OpAlone> pair_alone(const Op& from, const Op& to, const Plan& plan, uint32_t seed, bool few_columns) {
    Fixture fixture(seed, OpAlone::kTokens);
    // A router that reads the row in int8 may choose another of two nearly equal experts, so that all experts
    // are used.
    AloneSize taken;
    taken.further_experts = 0;
    Part before(from, plan, {}, few_columns), part(to, plan, taken);
    before.add_weights(fixture);
    part.add_weights(fixture);
    return made(std::move(fixture), plan, &before, part, access(from).writes.at(0));
}

Result<OpAlone> ops_together(std::span<const Op> ops, const Plan& plan, uint32_t seed) {
    Fixture fixture(seed, OpAlone::kTokens, OpAlone::kDistinct);
    std::vector<std::unique_ptr<Part>> parts;
    CacheTypes types;
    for (const Op& op : ops) {
        parts.push_back(std::make_unique<Part>(op, plan, AloneSize()));
        parts.back()->add_weights(fixture);
        types = parts.back()->cache_types().value_or(types);
    }
    const uint64_t positions = std::min(plan.sizing.context, OpAlone::kMostPositions);
    PlanBuilder builder(fixture.weights(), {positions, plan.max_rows, types}, plan.max_rows, 1);
    Slot last;
    for (const auto& part : parts) {
        builder.next_layer();
        part->append(builder);
        last = access(part->op()).writes.at(0);
    }
    OpAlone together{std::move(fixture), {}, builder.plan().steps.size() - 1, {last}, {}, 0};
    builder.output(last);
    together.plan = RL_TRY(std::move(builder).finish());
    together.plan.layers_wait = true;
    return together;
}

}  // namespace redline
