// Plans in parts: what each has of the whole, and what crosses.
#include "support/cuts.h"

using namespace redline;
using namespace redline::test;

TEST_CASE("cut: parts have the plan's steps, and only the weights, caches and slots that those use") {
    for (const std::string& name : tiny_models()) {
        const Model model = tiny(name);
        const Plan plan = must(model.plan(kBatch, 2, kSizing));
        for (const size_t at : layer_ends(plan)) {
            CAPTURE(name);
            CAPTURE(at);
            if (shares_caches(plan, at)) {
                CHECK_FALSE(cut(plan, {at}).ok());
                continue;
            }
            const std::vector<PlanPart> parts = must(cut(plan, {at}));
            REQUIRE(parts.size() == 2);
            // Rows of several slots are copied to one, and from there.
            const size_t slots = parts[0].leaves.size(), copies = slots > 1 ? slots : 0;
            CHECK(parts[1].takes == parts[0].leaves);
            const bool inner = at > 1 && at < layer_ends(plan).back();
            CHECK(slots == (inner && model.config().layer_input > 0 ? 2 : 1));
            CHECK(parts[0].plan.steps.size() == at + copies);
            CHECK(parts[1].plan.steps.size() == plan.steps.size() - at + 1 + copies);
            CHECK(op_name(parts[1].plan.steps[0].op) == "input");
            CHECK(parts[0].plan.max_outputs == kBatch);
            CHECK(parts[1].plan.max_outputs == 2);
            CHECK(parts[0].plan.caches.size() + parts[1].plan.caches.size() == plan.caches.size());
            CHECK(parts[0].plan.slots.size() < plan.slots.size());
            std::set<int32_t> weights;
            for (size_t p = 0; p < 2; ++p)
                for (size_t i = 0; i < parts[p].weights.size(); ++i) {
                    CHECK(parts[p].plan.weights[i].tensor.name ==
                          plan.weight(parts[p].weights[i]).tensor.name);
                    weights.insert(parts[p].weights[i].index);
                }
            CHECK(weights.size() == plan.weights.size());
            for (size_t i = 0; i < plan.steps.size(); ++i) {
                const Plan& part = parts[i < at ? 0 : 1].plan;
                const Op& op = part.steps[i < at ? i : i - at + 1 + copies].op;
                CHECK(op_text(op, part) == op_text(plan.steps[i].op, plan));
                CHECK(op_tensors(op, part) == op_tensors(plan.steps[i].op, plan));
            }
        }
    }
}

TEST_CASE("cut: where a slot of outputs alone crosses is an error that names the step") {
    const Plan plan = must(tiny("qwen3moe").plan(kBatch, 1, kSizing));
    const std::vector<size_t> ends = layer_ends(plan);
    const auto message = [&](size_t before) {
        const auto parts = cut(plan, {before});
        REQUIRE_FALSE(parts.ok());
        return parts.error().message;
    };
    CHECK(message(plan.steps.size() - 1) ==
          "a plan cannot be cut before step 10 (linear of layer 2): step 9 (select_rows of layer 2) leaves "
          "the rows of outputs only");
    CHECK(message(0) == "a plan of 11 steps can be cut before steps 1 to 10, not before step 0");
    CHECK(message(plan.steps.size()) ==
          "a plan of 11 steps can be cut before steps 1 to 10, not before step 11");
    CHECK_FALSE(cut(plan, {ends[1], ends[1]}).ok());
    CHECK_FALSE(cut(plan, {ends[2], ends[1]}).ok());
    CHECK(must(cut(plan, {ends[0], ends[1], ends[2]})).size() == 4);
}

TEST_CASE("cut: parts of one place have the weights and caches of all of them, once") {
    const Plan plan = must(tiny("llama-tied").plan(kBatch, 1, kSizing));
    const std::vector<size_t> ends = layer_ends(plan);
    const std::vector<PlanPart> parts = must(cut(plan, {ends[1], ends[2]}, {0, 1, 0}));
    REQUIRE(parts.size() == 3);
    CHECK(parts[0].weights == parts[2].weights);
    CHECK(parts[0].caches == parts[2].caches);
    CHECK(parts[0].plan.weights.size() == parts[0].weights.size());
    // The embedding, which is the head's matrix, too, is there once.
    CHECK(parts[0].weights.size() + parts[1].weights.size() == plan.weights.size());
    CHECK(parts[0].caches.size() + parts[1].caches.size() == plan.caches.size());
    CHECK(parts[2].plan.max_outputs == 1);
}

TEST_CASE("cut: little crosses between blocks, and every cut between them can be made") {
    for (const std::string& name : tiny_models()) {
        CAPTURE(name);
        const Plan plan = must(tiny(name).plan(kBatch, 1, kSizing));
        const std::vector<Block> all = blocks(plan);
        std::vector<size_t> between;
        size_t end = 0;
        for (const Block& block : all) {
            CHECK(block.first == end);
            if (block.first > 0) between.push_back(block.first);
            end = block.last;
        }
        CHECK(end == plan.steps.size());
        if (between.empty()) continue;
        const std::vector<PlanPart> parts = must(cut(plan, between, std::vector<size_t>(all.size(), 0)));
        REQUIRE(parts.size() == all.size());
        // The rows of the layers, and what each of these gets of its token.
        for (const PlanPart& part : parts) CHECK(part.leaves.size() <= 2);
    }
}

TEST_CASE(
    "cut: blocks with a shared expert are divided where a cut is within them, and stay whole elsewhere") {
    const auto blocks_of = [](const Plan& plan) {
        return std::ranges::count_if(plan.steps, [](const Step& step) {
            const auto* block = std::get_if<ExpertBlock>(&step.op);
            return block && block->shared;
        });
    };
    for (const std::string name : {"glm4moe", "qwen35moe"}) {
        CAPTURE(name);
        const Plan plan = must(tiny(name).plan(kBatch, 1, kSizing)), all = divided(plan);
        REQUIRE(blocks_of(plan) > 1);
        CHECK(blocks_of(all) == 0);
        size_t within = 0;
        for (size_t at = 1; at < all.steps.size(); ++at) {
            CAPTURE(at);
            std::vector<size_t> cuts = {at};
            const Plan whole = divided(plan, &cuts);
            within += blocks_of(whole) < blocks_of(plan);
            CHECK(blocks_of(whole) >= blocks_of(plan) - 1);
            CHECK(whole.steps[cuts[0]].layer == all.steps[at].layer);
            Plan front = whole;
            front.steps.resize(cuts[0]);
            CHECK(divided(front).steps.size() == at);
        }
        CHECK(within == all.steps.size() - plan.steps.size());
    }
}

TEST_CASE("cut: a cache that layers share cannot be on both sides") {
    const auto matrix = [](uint64_t cols) {
        return WeightInfo{{"m", find_format("F32"), {1, 10, cols}}, WeightRole::matrix};
    };
    PlanBuilder p({matrix(32)}, kSizing, 1, 1);
    const HeadShape shape{4, 2, 8};
    const Cache cache = p.cache(2, 8);
    const Slot x = p.attention(cache, p.embed({0}), shape, 1.0f);
    p.output(p.attention(cache, x, shape, 1.0f));
    const Plan plan = must(std::move(p).finish());
    const auto parts = cut(plan, {2});
    REQUIRE_FALSE(parts.ok());
    CHECK(parts.error().message.find("cache 0 is used on both sides") != std::string::npos);
    CHECK(cut(plan, {1}).ok());
    CHECK(cut(plan, {2}, {0, 0}).ok());
    CHECK_FALSE(cut(plan, {1, 2}, {0, 1, 0}).ok());
}
