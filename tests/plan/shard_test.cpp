// Plans divided over ranks.
#include "plan/passes/shard.h"
#include "support/must.h"
#include "support/weight_infos.h"

#include <doctest/doctest.h>

using namespace redline;

namespace {

constexpr uint32_t kWidth = 64, kHeads = 8, kKvHeads = 4, kHeadDim = 16, kHidden = 1024, kWords = 512;

// A layer of attention and an FFN, whose last products have weights in these formats.
Plan layer_plan(const char* down_format, uint32_t kv_heads = kKvHeads, uint32_t hidden = kHidden,
                const char* o_format = "F32") {
    std::vector<WeightInfo> weights;
    const auto add = [&](const char* name, uint64_t rows, uint64_t cols, const char* of,
                         WeightRole role = WeightRole::matrix) {
        weights.push_back({{name, find_format(of), {1, rows, cols}}, role});
        return Weight{int32_t(weights.size() - 1)};
    };
    const uint64_t q = kHeads * kHeadDim, kv = uint64_t(kv_heads) * kHeadDim;
    const Weight table = add("token_embd", kWords, kWidth, "F32"), wq = add("q", q, kWidth, "F32"),
                 wk = add("k", kv, kWidth, "F32"), wv = add("v", kv, kWidth, "F32"),
                 bias = add("q.bias", 1, q, "F32", WeightRole::vector), o = add("o", kWidth, q, o_format),
                 gate = add("gate", hidden, kWidth, "F32"), up = add("up", hidden, kWidth, "F32"),
                 down = add("down", kWidth, hidden, down_format), head = add("head", kWords, kWidth, "F32"),
                 gain = add("gain", 1, kWidth, "F32", WeightRole::vector);
    PlanBuilder p(weights, {64, 1, CacheType::f32}, 1, 1);
    const HeadShape heads{kHeads, kv_heads, kHeadDim};
    const uint32_t rope = p.add_rope({true, std::vector<double>(kHeadDim / 2, 0.1)});
    const Slot x = p.embed(table);
    const auto qkv = p.group(x, {{{wq, bias}, {wk}, {wv}}}, {gain, 1e-5f});
    p.linear_add(x, p.attend(p.cache(kv_heads, kHeadDim), qkv, heads, rope, 0.25f), o);
    p.linear_add(x, p.gated(x, gate, up, Act::silu, {gain, 1e-5f}), down);
    p.next_layer();
    p.logits(x, head, {gain, 1e-5f});
    return test::must(std::move(p).finish());
}

Shape shape_of(const RankPlan& rank, std::string_view name) {
    for (const WeightInfo& weight : rank.plan.weights)
        if (weight.tensor.name == name) return weight.tensor.shape;
    return {0, 0, 0};
}

std::vector<RankPlan> divided(const Plan& plan, std::vector<double> shares) {
    return test::must(shard(plan, shares));
}

}  // namespace

TEST_CASE("shard: rows of q, k, v, gate and up, and columns of o and down, with a sum behind each of those") {
    const Plan plan = layer_plan("F32");
    const std::vector<RankPlan> ranks = divided(plan, {1, 1});
    REQUIRE(ranks.size() == 2);
    for (const RankPlan& rank : ranks) {
        CHECK(shape_of(rank, "q") == Shape{1, kHeads * kHeadDim / 2, kWidth});
        CHECK(shape_of(rank, "k") == Shape{1, kKvHeads * kHeadDim / 2, kWidth});
        CHECK(shape_of(rank, "q.bias") == Shape{1, 1, kHeads * kHeadDim / 2});
        CHECK(shape_of(rank, "o") == Shape{1, kWidth, kHeads * kHeadDim / 2});
        CHECK(shape_of(rank, "gate") == Shape{1, kHidden / 2, kWidth});
        CHECK(shape_of(rank, "down") == Shape{1, kWidth, kHidden / 2});
        CHECK(shape_of(rank, "head") == Shape{1, kWords / 2, kWidth});
        CHECK(shape_of(rank, "token_embd") == Shape{1, kWords, kWidth});
        CHECK(rank.plan.caches[0].kv_heads == kKvHeads / 2);
        CHECK(rank.sums.size() == 2);
        CHECK(rank.sums[0].slots == ranks[0].sums[0].slots);
    }
    CHECK(ranks[1].outputs == Run{kWords / 2, kWords / 2});
    // The first rank alone keeps what the residual had before.
    const auto adds = [](const RankPlan& rank) {
        return std::ranges::count_if(rank.plan.steps, [](const Step& step) {
            const auto* product = std::get_if<Product>(&step.op);
            return product && product->accumulate;
        });
    };
    CHECK(adds(ranks[0]) == 2);
    CHECK(adds(ranks[1]) == 0);
}

TEST_CASE("shard: one rank has the whole plan") {
    const Plan plan = layer_plan("Q8_0");
    const RankPlan one = divided(plan, {1})[0];
    REQUIRE(one.plan.steps.size() == plan.steps.size());
    for (size_t i = 0; i < plan.steps.size(); ++i)
        CHECK(op_text(one.plan.steps[i].op, one.plan) == op_text(plan.steps[i].op, plan));
    for (const WeightSlice& slice : one.weights) CHECK(slice.is_whole());
}

TEST_CASE("shard: shares go by whole grains, and blocks of a format stay whole") {
    const std::vector<RankPlan> whole = divided(layer_plan("Q4_K", kKvHeads, 1280), {1, 1});
    CHECK(shape_of(whole[0], "down").cols + shape_of(whole[1], "down").cols == 1280);
    CHECK(shape_of(whole[0], "down").cols % 256 == 0);
    CHECK(shape_of(whole[1], "gate").rows == shape_of(whole[1], "down").cols);
    // A head's columns of o are half of a block: heads stay together in pairs.
    const std::vector<RankPlan> pairs = divided(layer_plan("F32", 8, kHidden, "Q8_0"), {3, 1});
    CHECK(pairs[0].plan.caches[0].kv_heads == 6);
    CHECK(pairs[1].plan.caches[0].kv_heads == 2);
    const std::vector<RankPlan> uneven = divided(layer_plan("Q8_0"), {3, 1});
    CHECK(uneven[0].plan.caches[0].kv_heads == 3);
    CHECK(uneven[1].plan.caches[0].kv_heads == 1);
    CHECK(shape_of(uneven[0], "down").cols == 768);
    CHECK(shape_of(uneven[1], "o").cols == kHeads / kKvHeads * kHeadDim);
    // No rank with a share is without heads where there are enough.
    CHECK(divided(layer_plan("Q8_0"), {100, 1})[1].plan.caches[0].kv_heads == 1);
}

// With a shared expert beside four, of which two are used; `weighted`: by a router for it alone.
static Plan expert_plan(bool weighted) {
    constexpr uint32_t kExperts = 4, kExpertHidden = 768, kSharedHidden = 512;
    std::vector<WeightInfo> weights;
    const auto add = [&](const char* name, Shape shape, const char* of,
                         WeightRole role = WeightRole::matrix) {
        weights.push_back({{name, find_format(of), shape}, role});
        return Weight{int32_t(weights.size() - 1)};
    };
    const Weight table = add("token_embd", {1, kWords, kWidth}, "F32"),
                 gain = add("gain", {1, 1, kWidth}, "F32", WeightRole::vector),
                 router = add("router", {1, kExperts, kWidth}, "F32"),
                 gate = add("gate", {kExperts, kExpertHidden, kWidth}, "F32"),
                 up = add("up", {kExperts, kExpertHidden, kWidth}, "F32"),
                 down = add("down", {kExperts, kWidth, kExpertHidden}, "Q4_K"),
                 head = add("head", {1, kWords, kWidth}, "F32"),
                 of_one = add("of_one", {1, 1, kWidth}, "F32"),
                 shared_gate = add("shared_gate", {1, kSharedHidden, kWidth}, "F32"),
                 shared_up = add("shared_up", {1, kSharedHidden, kWidth}, "F32"),
                 shared_down = add("shared_down", {1, kWidth, kSharedHidden}, "Q4_K");
    PlanBuilder p(weights, {64, 1, CacheType::f32}, 1, 1);
    const Slot x = p.embed(table);
    p.expert_block(x, {gain, 1e-5f}, {router, 2}, {gate, up, down},
                   {weighted ? of_one : Weight{}, shared_gate, shared_up, shared_down});
    p.next_layer();
    p.logits(x, head, {gain, 1e-5f});
    return test::must(std::move(p).finish());
}

TEST_CASE("shard: blocks of a format stay whole in a block of experts") {
    const std::vector<RankPlan> ranks = divided(expert_plan(false), {1, 1});
    CHECK(shape_of(ranks[0], "down").cols == 512);
    CHECK(shape_of(ranks[1], "down").cols == 256);
    for (const RankPlan& rank : ranks) {
        CHECK(shape_of(rank, "gate").rows == shape_of(rank, "down").cols);
        CHECK(shape_of(rank, "shared_down").cols == 256);
        CHECK(shape_of(rank, "shared_gate").rows == 256);
        CHECK(shape_of(rank, "shared_up").rows == 256);
    }
}

TEST_CASE("shard: the first rank has a block with a shared expert as one op where it has a part of both") {
    for (const bool weighted : {false, true})
        for (const std::vector<double>& shares : {std::vector<double>{1}, {1, 1}, {1, 9, 9}}) {
            CAPTURE(weighted);
            CAPTURE(shares.size());
            const std::vector<RankPlan> ranks = divided(expert_plan(weighted), shares);
            for (size_t i = 0; i < ranks.size(); ++i) {
                const bool has_block = std::ranges::any_of(ranks[i].plan.steps, [](const Step& step) {
                    return std::holds_alternative<ExpertBlock>(step.op);
                });
                // The columns of the shared expert are two blocks of their format, which go by the shares.
                const bool has_shared = shape_of(ranks[i], "shared_down").cols > 0;
                CHECK(has_shared == (i > 0 || shares.size() < 3));
                CHECK(has_block == (i == 0 && has_shared));
            }
        }
}

TEST_CASE("shard: a rank without heads has no attention, and still a part of each sum") {
    const std::vector<RankPlan> ranks = divided(layer_plan("F32", 1), {1, 1, 1});
    size_t with = 0;
    for (const RankPlan& rank : ranks) {
        CHECK(rank.sums.size() == 2);
        with += shape_of(rank, "q").rows > 0;
        CHECK(shape_of(rank, "gate").rows > 0);
    }
    CHECK(with == 1);
}

TEST_CASE("shard: what needs whole rows is refused by name") {
    std::vector<WeightInfo> weights = {{{"w", find_format("F32"), {1, 64, 64}}, WeightRole::matrix},
                                       {{"gain", find_format("F32"), {1, 1, 64}}, WeightRole::vector}};
    PlanBuilder p(weights, {64, 1, CacheType::f32}, 1, 1);
    const Slot x = p.embed({0});
    const auto [q, k, v] = p.group(x, {{{Weight{0}}, {Weight{0}}, {Weight{0}}}}, Norm{});
    p.append(RmsNorm{q, {{1}, 1e-5f}, 64, q});
    p.linear_add(x, p.attend(p.cache(4, 16), {q, k, v}, {4, 4, 16}, kNoRope, 1.0f), {0});
    p.logits(x, {0}, {{1}, 1e-5f});
    const Plan plan = test::must(std::move(p).finish());
    const std::vector<double> shares = {1, 1};
    const auto refused = shard(plan, shares);
    REQUIRE_FALSE(refused.ok());
    CHECK(refused.error().message ==
          "layer 0: rms_norm cannot be divided over devices: a norm of whole rows needs those of all ranks");
}
