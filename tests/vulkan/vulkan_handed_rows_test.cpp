// Rows of a step of few that a kernel leaves as halfs for the product that takes them.
#ifdef RL_VULKAN
#include "backends/vulkan/runtime/fragments.h"
#include "measure/comparison.h"
#include "support/vulkan_case.h"

using namespace redline;
using namespace redline::test;

namespace {

std::unique_ptr<vulkan::VulkanBackend> open_with_fragments() {
    auto backend = open_vulkan("", "matrix");
    if (!backend || !backend->opened().fragments) return nullptr;
    backend->opened().always_fragments = true;
    return backend;
}

// Some rows of an input are times a power of two.
struct ScaledFixture : Fixture {
    size_t input;
    uint64_t width;
    std::vector<float> factors;  // of rows
    ScaledFixture(uint64_t rows, size_t of_input, uint64_t of_width, std::vector<float> of_rows)
        : Fixture(1, rows), input(of_input), width(of_width), factors(std::move(of_rows)) {}
    Status read(size_t tensor, uint64_t offset, std::span<std::byte> out) override {
        RL_TRY(Fixture::read(tensor, offset, out));
        if (tensor != input) return {};
        for (size_t i = 0; i + 4 <= out.size(); i += 4) {
            float value = 0.0f;
            std::memcpy(&value, &out[i], 4);
            value *= factors[(offset + i) / 4 / width % factors.size()];
            std::memcpy(&out[i], &value, 4);
        }
        return {};
    }
};

// Each fixture is for one plan.
double off_reference_with(const OpCase& c, Backend& backend, ScaledFixture fixture, ScaledFixture same) {
    const BoundPlan bound = must(lower(must(case_plan(c, fixture, c.rows, c.rows)), backend));
    std::vector<int32_t> tokens(c.rows);
    std::iota(tokens.begin(), tokens.end(), 0);
    const SequenceStep step(tokens, 0, c.rows);
    Reference reference(bound.plan, fixture.decoded(backend));
    reference.run(step, precisions(bound, step));
    return compare(output_of(c, backend, same, false), reference.output()).worst_fraction;
}

bool same_rows(std::span<const float> few, std::span<const float> more) {
    return std::equal(few.begin(), few.end(), more.begin());
}

}  // namespace

TEST_CASE("vulkan: rows of few are left as halfs for the next product, and no dispatch prepares them") {
    const auto backend = open_with_fragments();
    if (!backend) RL_SKIP("there is no Vulkan device with what this needs");
    for (const uint32_t rows : {2u, 7u}) {
        CAPTURE(rows);
        const Dispatches counted;
        output_of(layer_case(*find_format("Q4_K"), rows), *backend);
        // Two inputs, halfs of the first product's, that product, gate and up, down, three products of a
        // group, two sums, and two copies of the results.
        CHECK(counted.count == 13);
    }
}

TEST_CASE("vulkan: a row that is handed on has the same bits beside any others") {
    const auto backend = open_with_fragments();
    if (!backend) RL_SKIP("there is no Vulkan device with what this needs");
    const HeadShape shape = {4, 2, 64};
    const auto made = [&](const OpCase& c) {
        Fixture fixture(1, 16);  // weights of as many rows' inputs, so that all steps have the same
        return output_of(c, *backend, fixture, false);
    };
    const Format &q4k = *find_format("Q4_K"), &q6k = *find_format("Q6_K");
    const std::vector<float> two = made(layer_case(q4k, 2, &q6k));
    for (const uint32_t rows : {3u, 8u}) {
        CAPTURE(rows);
        const OpCase c = layer_case(q4k, rows, &q6k);
        CHECK(same_rows(two, made(c)));
        CHECK(off_reference(c, *backend) <= 1.0);
    }
    for (const uint32_t rows : {2u, 7u})
        for (const bool norm : {false, true}) {
            const OpCase c = into_product(attention_case(shape, rows, 0, {}), shape, q4k, norm);
            CAPTURE(c.name);
            CHECK(off_reference(c, *backend) <= 1.0);
        }
}

TEST_CASE("vulkan: rows whose halfs would lose bits are made anew, and others beside them stay as they are") {
    const auto backend = open_with_fragments();
    if (!backend) RL_SKIP("there is no Vulkan device with what this needs");
    constexpr uint32_t kRows = 5;
    const OpCase c = layer_case(*find_format("Q4_K"), kRows);
    const auto with = [](std::vector<float> factors) {
        return ScaledFixture(kRows, 0, 256, std::move(factors));
    };
    const std::vector<float> some = {1, 0x1p40f, 1, 0x1p-40f, 0};
    CHECK(off_reference_with(c, *backend, with(some), with(some)) <= 1.0);
    ScaledFixture usual = with({1, 1, 1, 1, 1}), scaled = with(some);
    const std::vector<float> before = output_of(c, *backend, usual, false),
                             after = output_of(c, *backend, scaled, false);
    const size_t width = before.size() / kRows;
    for (const uint32_t row : {0u, 2u}) {
        CAPTURE(row);
        CHECK(
            same_rows(std::span(before).subspan(row * width, width), std::span(after).subspan(row * width)));
    }
}

#endif
