// A NaN among activations must neither vanish where they are rounded nor reach other rows.
#ifdef RL_VULKAN
#include "backends/vulkan/ops/steps.h"
#include "support/vulkan_case.h"

using namespace redline;
using namespace redline::test;

// A NaN in one row of the first weight, the input.
struct PoisonedFixture : Fixture {
    uint64_t at;  // in bytes
    PoisonedFixture(uint64_t rows, uint64_t row, uint64_t width)
        : Fixture(1, rows), at(row * width * 4 + 20) {}
    Status read(size_t tensor, uint64_t offset, std::span<std::byte> out) override {
        RL_TRY(Fixture::read(tensor, offset, out));
        const float poison = NAN;
        if (tensor == 0 && offset <= at && at + 4 <= offset + out.size())
            std::memcpy(&out[at - offset], &poison, 4);
        return {};
    }
};

// Results that should be NaN and are none, or are not what they are without the NaN in row `bad`.
static size_t wrong_of(const OpCase& c, Backend& backend, uint32_t bad, uint32_t width) {
    const std::vector<float> clean = output_of(c, backend);
    PoisonedFixture fixture(c.rows, bad, width);
    const std::vector<float> got = output_of(c, backend, fixture, false);
    size_t wrong = 0;
    for (size_t i = 0; i < got.size(); ++i)
        wrong += i / (got.size() / c.rows) == bad ? !std::isnan(got[i]) : got[i] != clean[i];
    return wrong;
}

TEST_CASE("vulkan: a NaN in a row of many that go to experts stays in its row") {
    const auto backend = open_vulkan();
    if (!backend) RL_SKIP("there is no Vulkan device with what this needs");
    for (const char* const format : {"Q8_0", "BF16"}) {
        CAPTURE(format);
        CHECK(wrong_of(many_rows_case(*find_format(format), {9, 2, 96, 160}, 70), *backend, 33, 96) == 0);
    }
}

TEST_CASE("vulkan: a NaN in a row that goes to int8 stays in its row, and reaches what comes of it") {
    const auto backend = open_vulkan("", "dot");
    if (!backend) RL_SKIP("there is no Vulkan device with what this needs");
    constexpr uint32_t kWidth = 288;
    const Format& q4 = *find_format("Q4_0");
    OpCase two;  // the first product leaves its row in int8 for the second
    two.name = "two products";
    two.declare = [&](Fixture& f) -> OpCase::Build {
        const Weight x = f.input(kWidth), up = f.matrix(q4, 320, kWidth), down = f.matrix(q4, 96, 320);
        return [=](PlanBuilder& p) { return p.linear(p.linear(p.embed(x), up), down); };
    };
    for (const OpCase& c :
         {linear_case(q4, 1, 96, kWidth, {}), two, linear_case(q4, 4, 96, kWidth, {true, false, false})}) {
        CAPTURE(c.name);
        CHECK(wrong_of(c, *backend, c.rows / 2, kWidth) == 0);
    }
}

TEST_CASE("vulkan: a NaN in a row of many in int8 stays in its row") {
    for (const std::string level : {"matrix", "dot"}) {
        const auto backend = open_vulkan("", level);
        const Format& q4 = *find_format("Q4_0");
        if (!backend || vulkan::int8_module(backend->opened(), "linear_coop", *weight_layout(q4)).empty())
            RL_SKIP("there is no Vulkan device with what this needs");
        CAPTURE(level);
        backend->opened().always_int8 = true;
        CHECK(wrong_of(linear_case(q4, 40, 70, 288, {}), *backend, 17, 288) == 0);
        CHECK(wrong_of(many_rows_case(q4, {9, 2, 96, 160}, 70), *backend, 33, 96) == 0);
    }
}
#endif
