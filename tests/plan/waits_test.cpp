#include "plan/passes/waits.h"

#include <doctest/doctest.h>

#include <algorithm>
#include <random>

using namespace redline;

namespace {

constexpr CacheSizing kWaitsSizing{64, 8, CacheType::f16, 1, 0, 0};

PlanBuilder builder() {
    WeightInfo table;
    table.tensor.name = "table";
    table.tensor.shape = {8, 8, 1};
    return PlanBuilder({table}, kWaitsSizing, 8, 1);
}

// The steps of `plan` in this order.
Plan reordered(const Plan& plan, const std::vector<size_t>& order) {
    Plan out = plan;
    for (size_t i = 0; i < order.size(); ++i) out.steps[i] = plan.steps[order[i]];
    return out;
}

bool share(const std::vector<Slot>& a, const std::vector<Slot>& b) {
    return std::any_of(a.begin(), a.end(),
                       [&](Slot slot) { return std::find(b.begin(), b.end(), slot) != b.end(); });
}

bool conflict(const Step& a, const Step& b) {
    const Access x = access(a), y = access(b);
    return share(x.writes, y.writes) || share(x.writes, y.reads) || share(x.reads, y.writes);
}

}  // namespace

TEST_CASE("waits: branches run side by side, and what they share is waited for") {
    PlanBuilder p = builder();
    const Slot x = p.embed({0});
    const Slot a = p.slot(8), b = p.slot(8);
    for (const Slot branch : {a, b}) {
        p.append(RmsNorm{x, {}, 8, branch});
        p.append(each::scale(branch, 2.0f));
        p.append(each::scale(branch, 3.0f));
    }
    p.add(x, a);
    p.add(x, b);
    const Plan& plan = p.plan();
    CHECK((waits_before(plan) == std::vector<size_t>{0, 1, 2, 3, 3, 4, 5, 5, 6}));
    const std::vector<size_t> order = order_of_fewest_waits(plan);
    CHECK((order == std::vector<size_t>{0, 1, 4, 2, 5, 3, 6, 7, 8}));
    CHECK((waits_before(reordered(plan, order)) == std::vector<size_t>{0, 1, 1, 2, 2, 3, 3, 4, 5}));
}

TEST_CASE("waits: layers of what is timed wait for those before them, and their steps where they must") {
    PlanBuilder p = builder();
    for (int layer = 0; layer < 3; ++layer) {
        p.next_layer();
        for (int branch = 0; branch < 2; ++branch) p.append(RmsNorm{p.embed({0}), {}, 8, p.slot(8)});
    }
    Plan plan = p.plan();
    plan.overlaps = true;
    CHECK((waits_before(plan) == std::vector<size_t>{0, 1, 1, 2, 2, 3, 3, 4, 4, 5, 5, 6}));
    plan = reordered(plan, order_of_fewest_waits(plan));
    CHECK((waits_before(plan) == std::vector<size_t>{0, 0, 1, 1, 1, 1, 2, 2, 2, 2, 3, 3}));
    plan.layers_wait = true;
    CHECK((waits_before(plan) == std::vector<size_t>{0, 0, 1, 1, 2, 2, 3, 3, 4, 4, 5, 5}));
    assign_arena(plan);
    for (size_t i = 0; i < plan.steps.size(); ++i) CHECK(plan.steps[i].barrier == (i > 0 && i % 2 == 0));
}

TEST_CASE("waits: random plans keep the order of what depends on each other, layer by layer") {
    std::mt19937 random(5);
    for (int round = 0; round < 200; ++round) {
        PlanBuilder p = builder();
        std::vector<Slot> slots = {p.embed({0})};
        for (int i = 0; i < 5; ++i) {
            slots.push_back(p.slot(8));
            p.append(RmsNorm{slots[0], {}, 8, slots.back()});
        }
        const auto any = [&] { return slots[random() % slots.size()]; };
        for (int i = 0; i < 40; ++i) {
            if (random() % 8 == 0) p.next_layer();
            switch (random() % 3) {
                case 0:
                    p.append(each::scale(any(), 0.5f));
                    break;
                case 1:
                    p.append(RmsNorm{any(), {}, 8, any()});
                    break;
                default: {
                    const Slot from = any();
                    Slot to = any();
                    if (to != from) p.add(to, from);
                }
            }
        }
        const Plan& plan = p.plan();
        const std::vector<size_t> order = order_of_fewest_waits(plan);
        std::vector<size_t> place(order.size());
        for (size_t i = 0; i < order.size(); ++i) place[order[i]] = i;
        for (size_t i = 0; i < order.size(); ++i)
            for (size_t j = 0; j < i; ++j)
                if (plan.steps[i].layer != plan.steps[j].layer || conflict(plan.steps[i], plan.steps[j]))
                    CHECK(place[j] < place[i]);

        Plan ordered = reordered(plan, order);
        ordered.output = slots[0];
        CHECK(waits_before(ordered).back() <= waits_before(plan).back());
        ordered.overlaps = true;
        assign_arena(ordered);
        // The waits are those of the slots: none is for memory that two that run together would share.
        const std::vector<size_t> number = waits_before(ordered);
        for (size_t i = 1; i < number.size(); ++i)
            CHECK(ordered.steps[i].barrier == (number[i] != number[i - 1]));
    }
}
