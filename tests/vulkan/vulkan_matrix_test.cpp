// Products and attention on matrix units, in the ways that only some devices or some sizes go.
#ifdef RL_VULKAN
#include "backends/vulkan/ops/steps.h"
#include "backends/vulkan/runtime/fragments.h"
#include "measure/comparison.h"
#include "support/at_end.h"
#include "support/share.h"
#include "support/vulkan_case.h"

using namespace redline;
using namespace redline::test;

// The matrices, which come after the input, times 2^60.
struct LargeFixture : Fixture {
    using Fixture::Fixture;
    Status read(size_t tensor, uint64_t offset, std::span<std::byte> out) override {
        RL_TRY(Fixture::read(tensor, offset, out));
        if (weights()[tensor].tensor.format->name != "BF16") return {};
        for (size_t i = 0; i + 2 <= out.size(); i += 2) {
            uint16_t bits = 0;
            std::memcpy(&bits, &out[i], 2);
            bits = float_to_bfloat(bfloat_to_float(bits) * 0x1p60f);
            std::memcpy(&out[i], &bits, 2);
        }
        return {};
    }
};

TEST_CASE("vulkan: on bfloat16 matrices weights far beyond the range of halfs are as exact as others") {
    const auto backend = open_vulkan();
    if (!backend) RL_SKIP("there is no Vulkan device with what this needs");
    if (!backend->opened().use_bfloat16()) {
        not_tested("bfloat16 matrices: the device has none, or redline was built without them");
        return;
    }
    const Format& bf16 = *find_format("BF16");
    for (const OpCase& c : {linear_case(bf16, 70, 43, 96, {}), expert_linear_case(bf16, 65, false, false)}) {
        CAPTURE(c.name);
        const std::vector<float> small = output_of(c, *backend);
        LargeFixture fixture(1, c.rows);
        const std::vector<float> large = output_of(c, *backend, fixture, false);
        size_t wrong = 0;
        for (size_t i = 0; i < small.size(); ++i) wrong += large[i] != small[i] * 0x1p60f;
        CHECK(wrong == 0);
    }
}

// No more than matrices of subgroups.
static std::unique_ptr<vulkan::VulkanBackend> open_with_matrices() {
    auto backend = open_vulkan("", "matrix");
    if (!backend || (backend->opened().use_matrix() && vulkan::Pipelines::exists("linear_coop.f16")))
        return backend;
    not_tested("matrices: the device has none, or redline was built without them");
    return nullptr;
}

TEST_CASE(
    "vulkan: weights that are unpacked, at once or in pieces, give what weights decoded in tiles give") {
    const auto backend = open_with_matrices();
    if (!backend) RL_SKIP("there is no Vulkan device with what this needs");
    vulkan::Device& device = backend->opened();
    const Format &q8 = *find_format("Q8_0"), &q4k = *find_format("Q4_K");
    for (const OpCase& c :
         {linear_case(q8, 150, 300, 352, {true, true, true}), linear_case(q4k, 130, 513, 512, {}),
          gated_case(q8, Act::silu, true, 150, 300, 352),
          gated_case(q4k, Act::gelu_tanh, false, 129, 70, 256), group_case(q8, q4k, 140)}) {
        CAPTURE(c.name);
        device.always_unpack = false;
        CHECK(off_reference(c, *backend) <= 1.0);
        device.always_unpack = true;
        device.unpacked_bytes = 0;
        const std::vector<float> at_once = output_of(c, *backend);
        CHECK(off_reference(c, *backend) <= 1.0);
        // 128 and 256 rows of 352 at a time.
        for (const uint64_t bytes : {uint64_t(1), uint64_t(256 * 2 * 352)}) {
            CAPTURE(bytes);
            device.unpacked_bytes = bytes;
            CHECK(output_of(c, *backend) == at_once);
        }
    }
    CHECK(backend->pipelines().all().count("unpack.q8_0/2/1/256") == 1);
}

TEST_CASE("vulkan: products of 9 to 64 rows on matrix units are within the bound, however wide they are") {
    const auto backend = open_with_matrices();
    if (!backend) RL_SKIP("there is no Vulkan device with what this needs");
    const Format &q8 = *find_format("Q8_0"), &q4k = *find_format("Q4_K");
    for (const uint32_t rows : {9u, 50u})
        for (const OpCase& c :
             {linear_case(q8, rows, 37, 64, {}), linear_case(q8, rows, 70, 1056, {true, true, true}),
              gated_case(q4k, Act::silu, true, rows, 37, 1024)}) {
            CAPTURE(c.name);
            CHECK(off_reference(c, *backend) <= 1.0);
        }
    size_t linear = 0, gated = 0;
    for (const auto& [name, pipeline] : backend->pipelines().all()) {
        linear += name.starts_with("linear_few.") ? 1 : 0;
        gated += name.starts_with("gated_few.") ? 1 : 0;
    }
    CHECK(linear == 2);
    CHECK(gated == 2);
}

TEST_CASE(
    "vulkan: few rows of formats of many bytes go by tiles of matrices, like more rows, and are within the bound") {
    const auto backend = open_with_matrices();
    if (!backend) RL_SKIP("there is no Vulkan device with what this needs");
    backend->opened().fragments.reset();
    const Format &f16 = *find_format("F16"), &q8 = *find_format("Q8_0");
    for (const OpCase& c :
         {linear_case(f16, 3, 37, 96, {true, true, true}), gated_case(f16, Act::silu, true, 8, 37, 64),
          linear_case(q8, 5, 70, 1056, {}), group_case(q8, f16, 6), linear_case(q8, 4, 37, 64, {})}) {
        CAPTURE(c.name);
        CHECK(off_reference(c, *backend) <= 1.0);
    }
    const auto made = [&](std::string_view kernel) {
        const auto& all = backend->pipelines().all();
        return std::any_of(all.begin(), all.end(),
                           [&](const auto& one) { return one.first.starts_with(kernel); });
    };
    CHECK(made("linear_few.f16"));
    CHECK(made("gated_few.f16"));
    CHECK(made("linear_few.q8_0"));
    CHECK(made("linear_dot.q8_0"));
}

// A driver that computes on the CPU takes minutes to compile the tiles of more tokens.
static uint32_t most_rows(const vulkan::Device& device) {
    return device.report().hardware() ? 60 : 16;
}

// Steps of 2 to 64 rows whose invocations fill matrices by themselves.
TEST_CASE(
    "vulkan: products of 2 to 64 rows by elements of matrices are within the bound, whatever their size") {
    const auto backend = open_with_matrices();
    if (!backend) RL_SKIP("there is no Vulkan device with what this needs");
    vulkan::Device& device = backend->opened();
    if (!device.fragments) RL_SKIP("matrices have their elements elsewhere on this device");
    device.always_fragments = true;
    const Share share = share_of_cases();
    size_t number = 0;
    for (const Format* format : all_formats()) {
        const WeightLayout* layout = weight_layout(*format);
        if (!layout || !vulkan::Pipelines::exists(fmt::format("linear_fragments.{}", layout->name))) continue;
        // Drivers take seconds to compile one of these.
        const uint32_t sizes[] = {2u, most_rows(device), 7u, 12u}, rows = sizes[number % 4];
        const OpCase cases[] = {linear_case(*format, rows, 37, 256, {true, true, true}),
                                linear_case(*format, rows, 70, 1280, {}),
                                gated_case(*format, Act::silu, true, rows, 37, 1024)};
        const OpCase& c = cases[number % 3];
        if (!share.takes(number++)) continue;
        CAPTURE(c.name);
        CHECK(off_reference(c, *backend) <= 1.0);
    }
    const Format &q8 = *find_format("Q8_0"), &q4k = *find_format("Q4_K");
    // Groups of units that are not whole, and a group of products.
    for (const OpCase& c : {linear_case(q8, 5, 65, 96, {}), gated_case(q8, Act::silu, true, 9, 40, 1056),
                            group_case(q8, q4k, 6)}) {
        CAPTURE(c.name);
        CHECK(off_reference(c, *backend) <= 1.0);
    }
    size_t linear = 0;
    for (const auto& [name, pipeline] : backend->pipelines().all())
        linear += name.starts_with("linear_fragments.") ? 1 : 0;
    CHECK(linear > 0);
}

TEST_CASE("vulkan: by elements of matrices a row of 2 to 64 has the same bits beside any others") {
    const auto backend = open_with_matrices();
    if (!backend) RL_SKIP("there is no Vulkan device with what this needs");
    vulkan::Device& device = backend->opened();
    if (!device.fragments) RL_SKIP("matrices have their elements elsewhere on this device");
    device.always_fragments = true;
    const Format& q4k = *find_format("Q4_K");
    const auto made = [&](uint32_t rows) {
        Fixture fixture(1, 64);  // weights of as many tokens' inputs, so that all steps have the same
        return output_of(linear_case(q4k, rows, 70, 2304, {}), *backend, fixture, false);
    };
    const std::vector<float> two = made(2);
    for (const uint32_t rows : {5u, 16u, most_rows(device)}) {
        CAPTURE(rows);
        const std::vector<float> more = made(rows);
        CHECK(std::equal(two.begin(), two.end(), more.begin()));
    }
}

// Numbers as show_fragments.comp leaves them, by which row and column each element has.
template <typename Weight, typename Token>
static std::vector<uint32_t> shown(uint32_t lanes, uint32_t k, uint32_t weights, uint32_t tokens,
                                   Weight weight, Token token) {
    std::vector<uint32_t> found(lanes * 64, 0xFFFF);
    const auto at = [&](std::pair<uint32_t, uint32_t> place) { return place.first * k + place.second; };
    for (uint32_t lane = 0; lane < lanes; ++lane) {
        for (uint32_t i = 0; i < weights; ++i) found[lane * 64 + i] = at(weight(lane, i));
        for (uint32_t i = 0; i < tokens; ++i) found[lane * 64 + 32 + i] = at(token(lane, i));
    }
    return found;
}

TEST_CASE("vulkan: where elements of matrices lie is recognised, or it is left alone") {
    using Place = std::pair<uint32_t, uint32_t>;
    const auto half = vulkan::VK_COMPONENT_TYPE_FLOAT16_KHR, full = vulkan::VK_COMPONENT_TYPE_FLOAT32_KHR;
    const vulkan::MatrixShape narrow = {16, 8, 16, half, half, full, full},
                              square = {16, 16, 16, half, half, full, full};
    // m16n8k16 of NVIDIA.
    const auto w = [](uint32_t lane, uint32_t i) {
        return Place(lane / 4 + (i / 2 % 2) * 8, lane % 4 * 2 + i % 2 + i / 4 * 8);
    };
    const auto x = [](uint32_t lane, uint32_t i) {
        return Place(lane / 4, lane % 4 * 2 + i % 2 + i / 2 * 8);
    };
    const auto nvidia = vulkan::fragments_of(narrow, shown(32, 16, 8, 4, w, x));
    REQUIRE(nvidia);
    CHECK(nvidia->owners == 4);
    CHECK(nvidia->place_shift == 2);
    CHECK(nvidia->place_mask == 7);
    CHECK(nvidia->rows.each == 2);
    CHECK(nvidia->rows.step == 8);
    CHECK(nvidia->rows.bits == 2);
    CHECK(nvidia->tokens.each == 1);
    CHECK(nvidia->apart(32));
    // A row for each invocation, and those of the upper half again, as RDNA 3 has them; RDNA 4 deals the
    // columns out.
    const auto whole = [](uint32_t lane, uint32_t i) { return Place(lane % 16, i); };
    const auto rdna3 = vulkan::fragments_of(square, shown(64, 16, 16, 16, whole, whole));
    REQUIRE(rdna3);
    CHECK(rdna3->owners == 1);
    CHECK(rdna3->place_mask == 15);
    CHECK(rdna3->rows.each == 1);
    CHECK(!rdna3->apart(64));
    const auto dealt = [](uint32_t lane, uint32_t i) { return Place(lane % 16, lane / 16 * 8 + i); };
    const auto rdna4 = vulkan::fragments_of(square, shown(32, 16, 8, 8, dealt, dealt));
    REQUIRE(rdna4);
    CHECK(rdna4->owners == 2);
    CHECK(rdna4->owner_shift == 4);
    CHECK(rdna4->rows.bits == 0);
    CHECK(rdna4->apart(32));
    // A column for each invocation, as lavapipe has them.
    const vulkan::MatrixShape small = {8, 8, 8, half, half, full, full};
    const auto columns = [](uint32_t lane, uint32_t i) { return Place(i, lane); };
    const auto lavapipe = vulkan::fragments_of(small, shown(8, 8, 8, 8, columns, columns));
    REQUIRE(lavapipe);
    CHECK(lavapipe->owners == 8);
    CHECK(lavapipe->place_mask == 0);
    CHECK(lavapipe->rows.bits == 7);
    // Columns of rows that tokens have elsewhere, some that nobody has, and a device that wrote nothing.
    CHECK(!vulkan::fragments_of(
        small, shown(8, 8, 8, 8, columns, [](uint32_t lane, uint32_t i) { return Place(lane, i); })));
    const auto twice = [](uint32_t lane, uint32_t i) { return Place(lane % 16, i / 2); };
    CHECK(!vulkan::fragments_of(square, shown(64, 16, 16, 16, twice, twice)));
    CHECK(!vulkan::fragments_of(square, std::vector<uint32_t>(64 * 64, 0)));
}

TEST_CASE("vulkan: attention gives the same however many queries share a work-group, and the keys or not") {
    const auto backend = open_with_matrices();
    if (!backend) RL_SKIP("there is no Vulkan device with what this needs");
    vulkan::Device& device = backend->opened();
    const AttentionFlags window = {true, true, true, 70, 0.0f, CacheType::f16, true};
    for (const OpCase& c :
         {attention_case({8, 2, 32}, 150, 0, window), attention_case({3, 3, 64}, 131, 0, {}),
          attention_case({4, 1, 160}, 70, 150, window),
          attention_case({6, 1, 32}, 70, 0, {false, false, true, 0, 20.0f, CacheType::q8_0})}) {
        CAPTURE(c.name);
        for (const uint64_t groups : {uint64_t(1000), uint64_t(12), uint64_t(1)}) {
            device.attention_groups = groups;
            CHECK(off_reference(c, *backend) <= 1.0);
        }
    }
    size_t cuts = 0;
    for (const auto& [name, pipeline] : backend->pipelines().all())
        cuts += name.starts_with("attention_coop.f16") ? 1 : 0;
    // Three sizes of heads, each with few and, where subgroups are small enough, many queries.
    const uint32_t lanes = device.subgroup() / vulkan::matrix_shape(device.report())->m;
    CHECK(cuts == (lanes <= 2 ? 6 : lanes <= 4 ? 3 : 0));
}

TEST_CASE("vulkan: attention to latents is as exact however many splits are used") {
    const auto backend = open_vulkan();
    if (!backend) RL_SKIP("there is no Vulkan device with what this needs");
    for (const LatentCase& latents : {LatentCase{32, 16, 3}, LatentCase{24, 8, 5, CacheType::f32}}) {
        const OpCase c = latent_case(latents, 40, 4600);  // up to 73
        CAPTURE(c.name);
        for (const uint64_t groups : {uint64_t(10000), uint64_t(12), uint64_t(1)}) {
            backend->opened().attention_groups = groups;
            CHECK(off_reference(c, *backend) <= 1.0);
        }
    }
}

TEST_CASE("vulkan: tiles of products are cut until half of the processors have one, and no further") {
    struct Want {
        uint32_t processors;
        uint64_t rows, tokens;
        uint32_t tile_rows, tile_tokens;
    };
    for (const auto& [processors, rows, tokens, tile_rows, tile_tokens] :
         {Want{132, 2048, 64, 64, 32}, Want{132, 4096, 9, 64, 32}, Want{132, 8192, 128, 128, 32},
          Want{132, 16384, 64, 128, 64}, Want{40, 4096, 64, 128, 64}, Want{12, 1024, 20, 128, 64},
          Want{1, 1, 64, 128, 64}, Want{96, 4096, 512, 128, 128}, Want{96, 1024, 129, 128, 64}}) {
        CAPTURE(processors);
        CAPTURE(rows);
        CAPTURE(tokens);
        const vulkan::ProductCut cut = vulkan::filling_cut(processors, {}, rows, tokens);
        CHECK(cut.tile_rows == tile_rows);
        CHECK(cut.tile_tokens == tile_tokens);
    }
    vulkan::ProductCut chosen;
    chosen.tile_tokens = 128;
    const vulkan::ProductCut kept = vulkan::filling_cut(132, chosen, 2048, 64);
    CHECK(kept.tile_tokens == 128);
    CHECK(kept.tile_rows == 64);
}
#endif
