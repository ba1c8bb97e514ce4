// Plans: checks, liveness, hazards, decomposition, cost.
#include "devices/device_choice.h"
#include "plan/backend.h"
#include "support/weight_infos.h"

#include <doctest/doctest.h>

#include <functional>

using namespace redline;
using namespace redline::test;

namespace {

constexpr CacheSizing kPlanSizing{16, 4, CacheType::f16};

using Names = std::vector<std::string_view>;

// The names of the core ops that an op decomposes into, in order; checks it and its parts.
Names core_ops(Op op, PlanBuilder& p) {
    CHECK(check(op, p.plan()).ok());
    std::vector<Op> pending{std::move(op)};
    Names names;
    while (!pending.empty()) {
        const Op next = pending.back();
        pending.pop_back();
        const size_t before = p.plan().steps.size();
        if (!decompose(next, p)) {
            CHECK(check(next, p.plan()).ok());
            names.push_back(op_name(next));
            continue;
        }
        for (size_t i = p.plan().steps.size(); i > before; --i) pending.push_back(p.plan().steps[i - 1].op);
    }
    return names;
}

}  // namespace

TEST_CASE("plan: a matrix of the wrong shape is an error that names the op and the shapes") {
    PlanBuilder p({matrix(10, 8), matrix(6, 9)}, kPlanSizing, 4, 1);
    p.output(p.linear(p.embed({0}), {1}));
    const Result<Plan> plan = std::move(p).finish();
    REQUIRE_FALSE(plan.ok());
    CHECK(plan.error().message.find("linear") != std::string::npos);
    CHECK(plan.error().message.find("(1, 6, 9)") != std::string::npos);
}

TEST_CASE("plan: a missing weight is an error, not a crash") {
    PlanBuilder p({matrix(10, 8)}, kPlanSizing, 4, 1);
    p.output(p.linear(p.embed({0}), Weight{}));
    CHECK_FALSE(std::move(p).finish().ok());
}

TEST_CASE("plan: two steps that only read the same slot need no barrier, a reader of what was written does") {
    PlanBuilder p({matrix(10, 8), matrix(8, 8), matrix(8, 8)}, kPlanSizing, 4, 1);
    const Slot x = p.embed({0});
    const Slot a = p.linear(x, {1});
    const Slot b = p.linear(x, {2});
    p.append(each::add(b, a, 1.0f));
    p.output(b);
    const Plan plan = std::move(std::move(p).finish()).value();
    CHECK_FALSE(plan.steps[0].barrier);
    CHECK(plan.steps[1].barrier);
    CHECK_FALSE(plan.steps[2].barrier);
    CHECK(plan.steps[3].barrier);
}

TEST_CASE("plan: a block of experts decomposes into its norm, router and products, which do as much work") {
    PlanBuilder p({matrix(10, 8), matrix(5, 8), matrix(6, 8, 5), matrix(8, 6, 5), vector(8)}, kPlanSizing, 4,
                  1);
    const Slot x = p.embed({0});
    p.expert_block(x, {{4}, 1e-5f}, {{1}, 2}, {{2}, {2}, {3}});
    const Op block = p.plan().steps.back().op;
    REQUIRE(check(block, p.plan()).ok());
    CHECK(op_text(block, p.plan()) ==
          "expert_block F32 5 x 8, F32 6 x 8, F32 6 x 8, F32 8 x 6 best 2 +norm +add");
    REQUIRE(decompose(block, p));
    Cost parts;
    std::vector<std::string_view> names;
    for (size_t i = 2; i < p.plan().steps.size(); ++i) {
        const Op& part = p.plan().steps[i].op;
        REQUIRE(check(part, p.plan()).ok());
        names.push_back(op_name(part));
        parts = parts + cost(part, p.plan(), {3, 1, 10});
    }
    CHECK(names == std::vector<std::string_view>{"rms_norm", "route", "expert_gated", "expert_linear"});
    const Cost whole = cost(block, p.plan(), {3, 1, 10});
    CHECK(whole.weight_bytes == parts.weight_bytes);
    CHECK(whole.flops == parts.flops);
    const Slot other = p.embed({0});
    Op apart = block;
    std::get<ExpertBlock>(apart).linear.parts[0].y = other;
    CHECK_FALSE(check(apart, p.plan()).ok());
}

TEST_CASE("plan: a block with a shared expert is what its norm, routers and products are, and as much work") {
    for (const bool weighted : {false, true}) {
        const auto builder = [] {
            return PlanBuilder({matrix(10, 8), matrix(5, 8), matrix(6, 8, 5), matrix(8, 6, 5), vector(8),
                                matrix(1, 8), matrix(4, 8), matrix(8, 4)},
                               kPlanSizing, 4, 1);
        };
        PlanBuilder p = builder(), apart = builder();
        const Slot x = p.embed({0});
        p.expert_block(x, {{4}, 1e-5f}, {{1}, 2}, {{2}, {2}, {3}},
                       {weighted ? Weight{5} : Weight{}, {6}, {6}, {7}});
        p.output(x);
        const Slot y = apart.embed({0}), h = apart.rms_norm(y, {{4}, 1e-5f});
        apart.experts_add(y, h, apart.route(h, {1}, 2, Gating::softmax, true), {{2}, {2}, {3}});
        if (weighted)
            apart.experts_add(y, h, apart.route(h, {5}, 1, Gating::sigmoid, false), {{6}, {6}, {7}});
        else
            apart.linear_add(y, apart.gated(h, {6}, {6}, Act::silu), {7});
        apart.output(y);
        const Plan plan = std::move(std::move(p).finish()).value(),
                   want = std::move(std::move(apart).finish()).value();
        const Op& block = plan.steps[1].op;
        CHECK(op_text(block, plan)
                  .ends_with(weighted ? "best 2 and a weighted one for all +norm +add"
                                      : "best 2 and one for all +norm +add"));
        PlanBuilder parts = PlanBuilder::like(plan);
        REQUIRE(decompose(block, parts));
        REQUIRE(parts.plan().steps.size() == want.steps.size() - 2);
        Cost sum;
        for (size_t i = 0; i < parts.plan().steps.size(); ++i) {
            const Op& part = parts.plan().steps[i].op;
            CHECK(kernel_key(part, plan) == kernel_key(want.steps[i + 1].op, want));
            CHECK(access(part).reads == access(want.steps[i + 1].op).reads);
            CHECK(access(part).writes == access(want.steps[i + 1].op).writes);
            sum = sum + cost(part, plan, {3, 1, 10});
        }
        CHECK(cost(block, plan, {3, 1, 10}).weight_bytes == sum.weight_bytes);
        CHECK(cost(block, plan, {3, 1, 10}).flops == sum.flops);
    }
}

TEST_CASE("plan: attention waits for the cache to be written") {
    PlanBuilder p({matrix(10, 32), matrix(10, 16)}, kPlanSizing, 4, 1);
    const Slot q = p.embed({0});
    const Slot k = p.embed({1}), v = p.embed({1});
    const HeadShape shape{4, 2, 8};
    const Cache cache = p.cache(2, 8);
    p.append(KvStore{k, v, cache, shape});
    p.output(p.attention(cache, q, shape, 1.0f));
    const Plan plan = std::move(std::move(p).finish()).value();
    CHECK(plan.steps[4].barrier);
}

TEST_CASE("plan: q and k hold nothing behind an attention with rope and store: to read them is an error") {
    for (const bool again : {false, true}) {
        PlanBuilder p({matrix(10, 32), matrix(10, 16)}, kPlanSizing, 4, 1);
        const uint32_t rope = p.add_rope({false, {1.0, 0.5}, 1.0});
        const std::array<Slot, 3> qkv = {p.embed({0}), p.embed({1}), p.embed({1})};
        const Slot y = p.attend(p.cache(2, 8), qkv, {4, 2, 8}, rope, 1.0f);
        if (again) p.append(Embed{{0}, qkv[0]});
        p.append(each::add(y, qkv[0], 1.0f));
        p.output(y);
        const Result<Plan> plan = std::move(p).finish();
        CHECK(plan.ok() == again);
        if (!plan.ok()) CHECK(plan.error().message.find("add reads a slot") != std::string::npos);
    }
}

TEST_CASE("plan: a cache with a window keeps the window and a step's rows, not the whole context") {
    PlanBuilder p({matrix(10, 32)}, {131072, 512, CacheType::f16}, 512, 1);
    const Cache whole = p.cache(2, 8), ring = p.cache(2, 8, 1024), wide = p.cache(2, 8, 131000);
    CHECK(p.plan().cache(whole).capacity == 131072);
    CHECK(p.plan().cache(ring).capacity == 1024 + 512);
    CHECK(p.plan().cache(wide).capacity == 131072);
    Slot q = p.embed({0});
    p.append(Attention{q, p.slot(32), ring, {4, 2, 8}, 1.0f, 0.0f, 1025, {}});
    p.output(q);
    const Result<Plan> plan = std::move(p).finish();
    REQUIRE_FALSE(plan.ok());
    CHECK(plan.error().message.find("keeps less than the window") != std::string::npos);
}

TEST_CASE("plan: attention has a set of keys, which sets its name, its cost and what it can have") {
    PlanBuilder p({vector(4)}, {512, 4, CacheType::f16}, 4, 1);
    const Slot q = p.slot(32), y = p.slot(32), half = p.slot(16), chosen = p.slot(2);
    const Cache cache = p.cache(2, 8), ring = p.latents(8, 8, 16), latents = p.latents(8, 4),
                blocks = p.entries(8, 4);
    const Attention all{q, y, cache, {4, 2, 8}, 1.0f};
    Attention of_blocks = all, of_entries{q, y, ring, {4, 1, 8}, 1.0f, 0.0f, 16, {0}},
              of_latents{q, half, latents, {4, 1, 8}, 1.0f};
    of_blocks.keys = {Keys::blocks, chosen, 4};
    of_entries.keys = {Keys::entries, chosen, 0, blocks};
    of_latents.keys = {Keys::latents};
    CHECK(op_text(all, p.plan()) == "attention 4 heads of 8, 2 kv");
    CHECK(op_text(of_blocks, p.plan()) == "block_attention 4 heads of 8, 2 kv, 2 blocks of 4");
    CHECK(op_text(of_entries, p.plan()) ==
          "entry_attention 4 heads of 8, window 16, blocks of 4, 2 of them +sinks");
    CHECK(op_text(of_latents, p.plan()) == "latent_attention latents of 4 of 8, 4 heads");
    CHECK(access(Op(of_entries)).reads == std::vector<Slot>{q, chosen});
    CHECK(access(Op(of_latents)).reads == std::vector<Slot>{q});

    // Rows of the cache, and pairs of a query and a key, of three rows, the last of which sees 100 tokens.
    const auto costs = [&](const Attention& op, uint64_t rows, uint64_t pairs, uint64_t width) {
        REQUIRE(check(op, p.plan()).ok());
        const Cost c = cost(op, p.plan(), {3, 1, 100});
        CHECK(c.cache_bytes == rows * op.shape.kv_heads * p.plan().cache(op.cache).row_bytes());
        CHECK(c.flops == 2 * pairs * op.shape.heads * width);
    };
    costs(all, 100, 98 + 99 + 100, 16);
    costs(of_blocks, 36, 3 * 12, 16);
    costs(of_entries, 18 + 6, 3 * 18, 16);
    of_entries.keys.chosen = {};
    costs(of_entries, 18 + 25, 3 * (16 + 25), 16);
    of_entries.keys.entries = {};
    costs(of_entries, 18, 3 * 16, 16);
    costs(of_latents, 100, 98 + 99 + 100, 12);

    const auto refused = [&](Attention op, const std::function<void(Attention&)>& change) {
        change(op);
        return check(op, p.plan()).error().message;
    };
    CHECK(refused(all, [&](Attention& a) { a.keys.chosen = chosen; }) ==
          "attention: the set of keys has parts of another");
    CHECK(refused(all, [&](Attention& a) { a.cache = latents; }) == "attention: the cache has other heads");
    CHECK(refused(of_blocks, [](Attention& a) { a.softcap = 30.0f; }) ==
          "block_attention: such keys have neither a softcap nor chunks");
    CHECK(refused(of_blocks, [](Attention& a) { a.keys.chosen = {}; }) ==
          "block_attention: no blocks are chosen");
    CHECK(refused(of_entries, [&](Attention& a) { a.keys.chosen = chosen; }) ==
          "entry_attention: there are no entries to choose from");
    CHECK(refused(of_entries, [](Attention& a) { a.window = 8; }) ==
          "entry_attention: the cache holds no latents with a window");
    CHECK(refused(of_latents, [](Attention& a) { a.window = 8; }) ==
          "latent_attention: such keys have neither a window nor sinks");
    CHECK(refused(all, [](Attention& a) { a.keys = {Keys::latents}; }) ==
          "latent_attention: the cache holds no latents");
}

TEST_CASE("plan: slots that are alive together never overlap, and slots that are not may share") {
    PlanBuilder p({matrix(10, 64), matrix(64, 64)}, kPlanSizing, 4, 1);
    Slot x = p.embed({0});
    for (int i = 0; i < 20; ++i) x = p.linear(x, {1});
    p.output(x);
    const Plan plan = std::move(std::move(p).finish()).value();
    CHECK(plan.arena_bytes <= 3 * 4 * 64 * 4 + 1024);
    for (const Step& step : plan.steps) {
        const Access used = access(step.op);
        for (const Slot r : used.reads)
            for (const Slot w : used.writes)
                CHECK((plan.slot(r).offset + plan.slot_bytes(r) <= plan.slot(w).offset ||
                       plan.slot(w).offset + plan.slot_bytes(w) <= plan.slot(r).offset));
    }
}

TEST_CASE("plan: sizes above 4 GiB are kept in 64 bits") {
    const WeightInfo huge{{"huge", find_format("F32"), {128, 65536, 65536}}, WeightRole::matrix};
    CHECK(huge.tensor.bytes() == uint64_t(128) * 65536 * 65536 * 4);
    PlanBuilder p({matrix(10, 1u << 20)}, {131072, 4096, CacheType::f16}, 4096, 1);
    for (int layer = 0; layer < 80; ++layer) p.cache(8, 128);
    p.output(p.embed({0}));
    const Plan plan = std::move(std::move(p).finish()).value();
    CHECK(plan.arena_bytes >= (uint64_t(4096) << 20) * 4);
    CHECK(cache_bytes(plan.caches) == uint64_t(80) * 8 * 131072 * 512);
}

TEST_CASE("plan: a decode step costs every matrix once, and the cache up to its position") {
    PlanBuilder p({matrix(10, 32), matrix(16, 32)}, kPlanSizing, 1, 1);
    const Slot q = p.embed({0});
    const HeadShape shape{4, 2, 8};
    p.output(p.attention(p.cache(2, 8), q, shape, 1.0f));
    const Plan plan = std::move(std::move(p).finish()).value();
    const Cost attention = cost(plan.steps[1].op, plan, {1, 1, 10});
    CHECK(attention.cache_bytes == 10 * 2 * 2 * 8 * 2);
    CHECK(attention.flops == 4 * 10 * 4 * 8);
    CHECK(cost(products::linear(q, {1}, q), plan, {1, 1, 1}).weight_bytes == 16 * 32 * 4);
    CHECK(cost(products::linear(q, {1}, q), plan, {3, 1, 1}).flops == 2 * 3 * 16 * 32);
}

TEST_CASE("plan: decomposing peels norm, accumulation and bias until core ops are left") {
    PlanBuilder p({matrix(10, 8), matrix(8, 8), vector(8), vector(8)}, kPlanSizing, 4, 1);
    const Slot x = p.embed({0}), y = p.embed({0});
    CHECK(core_ops(products::linear(x, {1}, y, {{2}, 1e-5f}, {3}, true), p) ==
          Names{"rms_norm", "linear", "add_bias", "add"});
}

TEST_CASE("plan: what runs beside or behind an op in one dispatch peels off it in its order") {
    PlanBuilder p({matrix(10, 8), matrix(8, 8), vector(8), vector(24), matrix(8, 8, 5), vector(4)},
                  kPlanSizing, 4, 1);
    const Slot x = p.embed({0}), y = p.embed({0}), gate = p.embed({0}), ids = p.slot(2), scales = p.slot(2);
    const Norm norm{{2}, 1e-5f};
    CHECK(core_ops(products::linear(x, {1}, y, norm, {2}, false, Function::gelu_tanh), p) ==
          Names{"rms_norm", "linear", "add_bias", "gelu"});
    CHECK_FALSE(check(products::linear(x, {1}, y, {}, {}, true, Function::silu), p.plan()).ok());
    const Product expert = products::by_expert(x, {4}, p.slot(16), {ids, 2}, {}, Function::squared_relu);
    CHECK(core_ops(expert, p) == Names{"expert_linear", "squared_relu"});
    Convolve convolve{x, {3}, y, p.state(16), 3, true, {}, {}, 1, {2}};
    CHECK(core_ops(convolve, p) == Names{"convolve", "add_bias", "silu"});
    convolve.behind = gate;
    CHECK_FALSE(check(convolve, p.plan()).ok());
    Route route{x, {1}, ids, scales, 2};
    route.norm = norm;
    route.x_scale = 0.5f;
    CHECK(core_ops(route, p) == Names{"rms_norm", "scale", "route"});
    route.norm = {};
    CHECK_FALSE(check(route, p.plan()).ok());
    // Its gain is of the row, each group has four elements.
    RmsNorm of_gated{x, norm, 4, y, gate};
    CHECK(of_gated.gain_of_row(p.plan()));
    of_gated.gates_x = true;
    CHECK(core_ops(of_gated, p) == Names{"silu_times", "rms_norm", "multiply"});
    of_gated.gate = {};
    CHECK_FALSE(check(of_gated, p.plan()).ok());
    CHECK(core_ops(NormedSum{x, gate, norm, norm, norm, y, 0.5f}, p) ==
          Names{"rms_norm", "rms_norm", "add", "rms_norm", "add", "scale"});
    CHECK_FALSE(check(NormedSum{x, y, norm, norm, norm, y}, p.plan()).ok());
    const Cache cache = p.cache(1, 8);
    const uint32_t rope = p.add_rope({true, {1.0}, 1.0});
    const HeadShape heads{1, 1, 8};
    Attend attend{{x, gate, p.embed({0}), cache, heads, rope}, {x, y, cache, heads, 1.0f}, 1e-6f};
    CHECK(core_ops(attend, p) == Names{"rms_norm", "rope", "rope", "kv_store", "attention"});
    attend.store.v = attend.store.k;
    CHECK_FALSE(check(attend, p.plan()).ok());
}

TEST_CASE("plan: a gated norm decomposes into norm and gate, and wants a gate as wide as y and not y") {
    PlanBuilder p({matrix(10, 8), matrix(10, 12), vector(4)}, kPlanSizing, 4, 1);
    const Slot x = p.embed({0}), gate = p.embed({0}), wide = p.embed({1}), y = p.slot(8);
    for (const Slot to : {x, y}) {
        const RmsNorm gated{x, {{2}, 1e-5f}, 4, to, gate, Act::gelu_tanh};
        REQUIRE(check(gated, p.plan()).ok());
        CHECK(op_text(gated, p.plan()) == "rms_norm 4 +gate");
        CHECK(access(Op(gated)).reads == std::vector<Slot>{x, gate});
        const size_t before = p.plan().steps.size();
        REQUIRE(decompose(gated, p));
        REQUIRE(p.plan().steps.size() == before + 2);
        const Op &norm = p.plan().steps[before].op, &product = p.plan().steps[before + 1].op;
        CHECK(check(norm, p.plan()).ok());
        CHECK(check(product, p.plan()).ok());
        CHECK(op_text(norm, p.plan()) == "rms_norm 4");
        CHECK_FALSE(decompose(norm, p));
        CHECK(access(norm).reads == std::vector<Slot>{x});
        CHECK(std::get<Each>(product).row == EachRow::gelu_times);
        CHECK(std::get<Each>(product).x == gate);
        CHECK(std::get<Each>(product).z == to);
        CHECK(std::get<Each>(product).y == to);
    }
    CHECK_FALSE(check(RmsNorm{x, {{2}, 1e-5f}, 4, y, wide}, p.plan()).ok());
    CHECK_FALSE(check(RmsNorm{x, {{2}, 1e-5f}, 4, y, y}, p.plan()).ok());
}

TEST_CASE("plan: an element-wise op has the operands of its row, and values that hold for it") {
    PlanBuilder p({matrix(10, 8), vector(8), vector(4)}, kPlanSizing, 4, 1);
    const Slot x = p.embed({0}), y = p.embed({0}), narrow = p.slot(4);
    for (const Each& op : {each::add(y, x, 0.5f), each::multiply(y, {1}), each::clamp(y, -1.0f, 1.0f),
                           each::gelu_times(y, x, y), each::xielu(y, 1.0f, 1.0f, 1.0f, 0.0f)})
        CHECK(check(op, p.plan()).ok());
    CHECK(op_name(each::add(y, x, 0.5f)) == "add");
    CHECK(op_text(each::softcap(y, 1.0f, 30.0f), p.plan()) == "softcap 8");
    CHECK(access(Op(each::add(y, x, 0.5f))).reads == std::vector<Slot>{x, y});
    CHECK(access(Op(each::silu_times(y, x, y))).reads == std::vector<Slot>{x, y});
    CHECK(access(Op(each::silu_times(y, x, x))).reads == std::vector<Slot>{x, x});
    CHECK(access(Op(each::silu(y))).reads == std::vector<Slot>{y});
    const auto refused = [&](const Each& op) { return check(op, p.plan()).error().message; };
    CHECK(refused(each::clamp(y, 1.0f, -1.0f)) == "clamp: its values must have low <= high");
    CHECK(refused(each::scale(y, 0.0f)) == "scale: its values must have factor != 0.0f");
    CHECK(refused(each::add(y, narrow, 1.0f)) == "add: x is 4 wide, 8 expected");
    CHECK(refused(each::add(y, {}, 1.0f)) == "add: x is missing");
    CHECK(refused(each::multiply(y, {})) == "multiply: a vector is missing, or is too many");
    CHECK(refused(each::multiply(y, {2})) == "multiply: column v has 4 elements, 8 expected");
    CHECK(refused({EachRow::silu, y, x}) == "silu: a slot is too many");
}

TEST_CASE("plan: products of streams take weights of their kind, and no values of another") {
    PlanBuilder p({matrix(10, 8)}, kPlanSizing, 4, 1);
    const Slot x = p.slot(8), y = p.slot(8), one = p.slot(4), two = p.slot(2), four = p.slot(4);
    using enum StreamKind;
    for (const StreamProduct& op : {StreamProduct{mix, x, y, one, 2}, StreamProduct{mix, x, two, one, 2},
                                    StreamProduct{mix, x, y, x, 1}, StreamProduct{add, one, two, y, 2},
                                    StreamProduct{add, one, {}, y, 2, 1.0f, false, 1.0f, 1},
                                    StreamProduct{dot, x, x, two, 2}, StreamProduct{turn, x, four, y, 2}})
        CHECK(check(op, p.plan()).ok());
    CHECK(op_text(StreamProduct{mix, x, two, one, 2}, p.plan()) == "stream_mix 2 of 4 by stream");
    CHECK(op_text(StreamProduct{add, one, {}, y, 2, 1.0f, false, 1.0f, 1}, p.plan()) ==
          "stream_add 2 of 4 alike +offset from 1 on");
    CHECK(access(Op(StreamProduct{add, one, two, y, 2})).reads == std::vector<Slot>{one, two, y});
    CHECK(access(Op(StreamProduct{add, one, two, y, 2, 1.0f, true})).reads == std::vector<Slot>{one, two});
    CHECK(access(Op(StreamProduct{dot, x, y, two, 2})).reads == std::vector<Slot>{x, y});
    const auto refused = [&](const StreamProduct& op) { return check(op, p.plan()).error().message; };
    CHECK(refused({mix, x, four, one, 2}) == "stream_mix: weights is 4 wide, 8 expected");
    CHECK(refused({mix, x, y, x, 2}) == "stream_mix: x is 8 wide, 16 expected");
    CHECK(refused({mix, x, {}, one, 2}) == "stream_mix: weights is missing");
    CHECK(refused({dot, x, y, two, 3}) == "stream_dot: the row is not a multiple of the streams");
    CHECK(refused({turn, x, y, y, 2}) == "stream_turn: weights is 8 wide, 4 expected");
    CHECK(refused({turn, x, four, y, 2, 0.5f}) == "stream_turn: such a product has no scale");
    CHECK(refused({dot, x, y, two, 2, 1.0f, true}) == "stream_dot: no streams are added to");
    CHECK(refused({add, one, two, y, 2, 1.0f, true, 0.0f, 1}) ==
          "stream_add: no stream is left, or those before it are not set");
}

TEST_CASE("plan: a norm that is scaled or added decomposes, and does neither with a gate") {
    PlanBuilder p({matrix(10, 8), vector(8)}, kPlanSizing, 4, 1);
    const Slot x = p.embed({0}), y = p.embed({0});
    const RmsNorm added{x, {{1}, 1e-5f}, 8, y, {}, Act::silu, 0.5f, true},
        scaled{x, {{1}, 1e-5f}, 8, y, {}, Act::silu, 0.5f};
    REQUIRE(check(added, p.plan()).ok());
    CHECK(op_text(added, p.plan()) == "rms_norm 8 scaled +add");
    CHECK(access(Op(added)).reads == std::vector<Slot>{x, y});
    CHECK(access(Op(scaled)).reads == std::vector<Slot>{x});
    size_t before = p.plan().steps.size();
    REQUIRE(decompose(added, p));
    REQUIRE(p.plan().steps.size() == before + 2);
    const auto& add = std::get<Each>(p.plan().steps[before + 1].op);
    CHECK(add.row == EachRow::add);
    CHECK(add.x == std::get<RmsNorm>(p.plan().steps[before].op).y);
    CHECK(add.x != y);
    CHECK(add.y == y);
    CHECK(add.values[0] == 0.5f);
    before = p.plan().steps.size();
    REQUIRE(decompose(scaled, p));
    CHECK(std::get<RmsNorm>(p.plan().steps[before].op).y == y);
    CHECK(std::get<Each>(p.plan().steps[before + 1].op).row == EachRow::scale);
    CHECK(std::get<Each>(p.plan().steps[before + 1].op).values[0] == 0.5f);
    CHECK_FALSE(check(RmsNorm{x, {{1}, 1e-5f}, 8, y, p.embed({0}), Act::silu, 0.5f}, p.plan()).ok());
    // A norm and an addition behind it become one op.
    before = p.plan().steps.size();
    p.add(y, x, 2.0f, {{1}, 1e-5f});
    CHECK(p.plan().steps.size() == before + 1);
}

TEST_CASE("plan: a group of two is one op of two parts") {
    PlanBuilder p({matrix(10, 8), matrix(6, 8), matrix(4, 8), vector(8)}, kPlanSizing, 4, 1);
    const auto [a, b] = p.group(p.embed({0}), {{1}}, {{2}}, {{3}, 1e-5f});
    const Op group = p.plan().steps.back().op;
    REQUIRE(check(group, p.plan()).ok());
    CHECK(op_text(group, p.plan()) == "linear_group F32 6 x 8, F32 4 x 8 +norm");
    CHECK(access(group).writes == std::vector<Slot>{a, b});
    CHECK(core_ops(group, p) == Names{"rms_norm", "linear", "linear"});
}

TEST_CASE("plan: a product is named by its matrices, and loses one fusion at a time") {
    PlanBuilder p({matrix(10, 8), matrix(6, 8), matrix(6, 8), vector(8), vector(6), matrix(6, 8, 5),
                   vector(30), matrix(8, 6, 5), vector(40)},
                  kPlanSizing, 4, 1);
    const Slot x = p.embed({0}), y = p.slot(6), z = p.slot(6), ids = p.slot(2), scales = p.slot(2),
               wide = p.slot(12), heads = p.slot(40), of_heads = p.slot(30);
    const Norm norm{{3}, 1e-5f};
    const auto text = [&](const Op& op) {
        CHECK(check(op, p.plan()).ok());
        return op_text(op, p.plan());
    };
    CHECK(text(products::linear(x, {1}, y, norm, {4}, true)) == "linear F32 6 x 8 +norm +bias +add");
    CHECK(text(products::by_head(heads, {5}, of_heads, {8, 6})) == "head_linear F32 6 x 8 of 5 heads");
    const Product gated = products::gated_by_expert(x, {5}, {5}, wide, {ids, 2}, Act::silu, {6}, {6}),
                  sum = products::by_expert(wide, {7}, x, {ids, 2, true, scales}, {8});
    CHECK(text(gated) == "expert_gated F32 6 x 8, F32 6 x 8 of 2 experts +bias");
    CHECK(text(sum) == "expert_linear F32 8 x 6 of 2 experts +bias +add");
    CHECK(access(Op(sum)).reads == std::vector<Slot>{wide, ids, scales, x});
    CHECK(core_ops(gated, p) ==
          Names{"expert_linear", "add_expert_bias", "expert_linear", "add_expert_bias", "silu_times"});
    CHECK(core_ops(sum, p) == Names{"expert_linear", "add_expert_bias"});
    // Without the norm it is a gated product yet, which a backend may have a kernel for.
    const size_t before = p.plan().steps.size();
    REQUIRE(decompose(products::gated(x, {1}, {2}, y, Act::silu, norm), p));
    REQUIRE(p.plan().steps.size() == before + 2);
    CHECK(text(p.plan().steps[before + 1].op) == "gated F32 6 x 8, F32 6 x 8");
    const std::array<Product::Part, 2> parts = {{{{1}, {4}, y}, {{2}, {}, z}}};
    CHECK(core_ops(products::group(x, parts, norm), p) == Names{"rms_norm", "linear", "add_bias", "linear"});
    const Cost one = cost(products::linear(x, {1}, y), p.plan(), {3, 1, 1}),
               both = cost(products::group(x, parts), p.plan(), {3, 1, 1});
    CHECK(both.flops == 2 * one.flops);
    CHECK(both.weight_bytes == 2 * one.weight_bytes);
}

TEST_CASE("plan: a product has no parts of another kind") {
    PlanBuilder p({matrix(10, 8), matrix(6, 8), vector(8), vector(6), matrix(6, 8, 5)}, kPlanSizing, 4, 1);
    const Slot x = p.embed({0}), y = p.slot(6), ids = p.slot(2), wide = p.slot(12), heads = p.slot(40),
               of_heads = p.slot(30);
    const auto refused = [&](Product op, const std::function<void(Product&)>& change) {
        REQUIRE(check(op, p.plan()).ok());
        change(op);
        return check(op, p.plan()).error().message;
    };
    const Product linear = products::linear(x, {1}, y), gated = products::gated(x, {1}, {1}, y),
                  by_head = products::by_head(heads, {4}, of_heads, {8, 6}),
                  by_expert = products::by_expert(x, {4}, wide, {ids, 2});
    CHECK(refused(linear, [](Product& o) { o.count = 5; }) == "linear_group: a product has 1 to 4 matrices");
    CHECK(refused(linear, [](Product& o) { o.parts[0].y = {}; }) ==
          "linear: w m is (1, 6, 8), (1, 0, 8) expected");
    CHECK(refused(linear, [&](Product& o) { o.experts.ids = ids; }) ==
          "linear: there are no experts to choose from");
    CHECK(refused(gated, [](Product& o) { o.parts[0].bias = {3}; }) ==
          "gated: such a gated product has no biases");
    CHECK(refused(gated, [](Product& o) { o.count = 1; }) ==
          "gated: a gated product has two matrices and one slot");
    CHECK(refused(gated, [](Product& o) { o.accumulate = true; }) ==
          "gated: several matrices have neither a function nor add into y");
    CHECK(refused(by_head, [](Product& o) { o.function = Function::silu; }) ==
          "head_linear: products with heads have nothing fused");
    CHECK(refused(by_head, [](Product& o) { o.strides.y = 5; }) == "head_linear: the parts of heads overlap");
    CHECK(refused(by_expert, [](Product& o) {
              o.norm = {{2}, 1e-5f};
          }) == "expert_linear: only whole rows are normed");
    CHECK(refused(by_expert, [](Product& o) { o.experts.ids = {}; }) == "expert_linear: ids is missing");
    const Slot wide_x = p.slot(16);
    CHECK(refused(products::gated_by_expert(x, {4}, {4}, wide, {ids, 2}), [&](Product& o) {
              o.x = wide_x;
              o.experts.per_expert = true;
          }) == "expert_gated: a gated product reads one row for all experts");
    CHECK(refused(by_expert, [](Product& o) { o.accumulate = true; }) ==
          "expert_linear: products with experts are of one matrix, or gated, and add into y by scales");
}

TEST_CASE("backend: an unknown name is an error that lists the known ones") {
    const auto backend = open_backend("abacus", {});
    REQUIRE_FALSE(backend.ok());
    CHECK(backend.error().message.find("cpu") != std::string::npos);
}

TEST_CASE("devices: one that was asked for and is not there says so, and behind the CPU there is no other") {
    const auto chosen = choose_device("abacus");
    REQUIRE_FALSE(chosen.ok());
    CHECK(chosen.error().cause == Cause::no_device);
    const std::optional<DeviceChoice> next = next_choice({"vulkan", "", "the best device"});
    REQUIRE(next);
    CHECK(next->backend != "vulkan");
    CHECK(next->why == "vulkan cannot be used");
    CHECK_FALSE(next_choice({"cpu", "", "the best device"}));
    CHECK(passed_over({"vulkan", "", "the best device"}).empty());
}

TEST_CASE("backend: an unknown CPU level and too many threads are errors") {
    CHECK_FALSE(open_backend("cpu", {1, "sse9"}).ok());
    CHECK_FALSE(open_backend("cpu", {100000, ""}).ok());
}
