// Features of the Vulkan backend alone: tensors in parts, failures in the middle, the pipeline cache in a
// file.
#ifdef RL_VULKAN
#include "args.h"
#include "backends/vulkan/runtime/stopwatch.h"
#include "devices/device_choice.h"
#include "memory/budget.h"
#include "support/at_end.h"
#include "support/vulkan_case.h"

#include <chrono>
#include <filesystem>
#include <fstream>
#include <thread>

using namespace redline;
using namespace redline::test;

namespace {

std::vector<float> logits_of(Backend& backend, const std::string& name) {
    const Model model = must(Model::load(golden("models/" + name + ".gguf"), backend, {64, {}}));
    return all_logits(model, golden_tokens(), {64, 16, 16});
}

// A device that takes `buffer_time` longer for each command buffer, and what is handed to it.
struct SlowQueue {
    static inline PFN_vkQueueSubmit real = nullptr;
    static inline std::chrono::milliseconds buffer_time{0};
    static inline uint32_t most_buffers = 0, submissions = 0;

    static VkResult VKAPI_CALL submit(VkQueue queue, uint32_t count, const VkSubmitInfo* infos,
                                      VkFence fence) {
        most_buffers = std::max(most_buffers, infos->commandBufferCount);
        ++submissions;
        std::this_thread::sleep_for(buffer_time * infos->commandBufferCount);
        return real(queue, count, infos, fence);
    }
    explicit SlowQueue(int ms) {
        buffer_time = std::chrono::milliseconds(ms);
        real = std::exchange(vkQueueSubmit, submit);
        forget();
    }
    ~SlowQueue() { vkQueueSubmit = real; }
    static void forget() { most_buffers = submissions = 0; }
};

}  // namespace

TEST_CASE("vulkan: tensors in parts of a few rows give the logits of whole tensors") {
    const auto backend = open_vulkan();
    if (!backend) RL_SKIP("there is no Vulkan device with what this needs");
    for (const char* const name : {"llama3", "mixtral", "qwen3moe", "phi4-mini-short"}) {
        const std::vector<float> whole = logits_of(*backend, name);
        backend->opened().most_per_buffer = 16384;
        const std::vector<float> parts = logits_of(*backend, name);
        // Experts' parts are added in another order; a last bit may round to another half in the cache.
        const Model model =
            must(Model::load(golden("models/" + std::string(name) + ".gguf"), *backend, {64, {}}));
        CHECK(relative_error(parts, whole) < chunk_bound(model, {64, 16, 16}, golden_tokens()));
        backend->opened().most_per_buffer = UINT64_MAX;
    }
}

TEST_CASE("vulkan: the largest context is one that the device has buffers for") {
    const auto backend = open_vulkan();
    if (!backend) RL_SKIP("there is no Vulkan device with what this needs");
    const Model model = must(Model::inspect(golden("models/llama3.gguf"), 256));
    const SessionOptions options{256, 64};
    constexpr uint64_t kMost = 100'000;
    CHECK(must(largest_context(model, *backend, options, kMost)) == kMost);
    backend->opened().most_per_buffer = 256 << 10;
    const uint64_t largest = must(largest_context(model, *backend, options, kMost));
    CHECK(largest >= 256);
    CHECK(largest < kMost);
    const auto need = [&](uint64_t context) {
        SessionOptions with_context = options;
        with_context.context = context;
        return memory_need(model, *backend, with_context);
    };
    CHECK(need(largest).ok());
    CHECK_FALSE(need(largest + 256).ok());
    backend->opened().most_per_buffer = 16;
    CHECK_FALSE(largest_context(model, *backend, options, kMost).ok());
}

TEST_CASE("vulkan: more work-groups than the device takes are an error, unless the kernel strides") {
    const auto backend = open_vulkan();
    if (!backend) RL_SKIP("there is no Vulkan device with what this needs");
    const vulkan::Buffer any = must(backend->memory().allocate(256, vulkan::Use::scratch, "a test"));
    vulkan::Recorder recorder(backend->opened(), backend->pipelines());
    const uint32_t* most = backend->opened().report().limits.maxComputeWorkGroupCount;
    const auto record = [&](vulkan::Groups groups) {
        return recorder.dispatch({"add", 3, 1, {128}}, {any, any, any}, vulkan::args::EachArgs{}, groups);
    };
    const uint64_t too_many = uint64_t(most[0]) + 1;
    for (const vulkan::Groups groups : {vulkan::Groups{too_many}, vulkan::Groups{1, uint64_t(most[1]) + 1},
                                        vulkan::Groups{1, 1, uint64_t(most[2]) + 1}}) {
        const Status refused = record(groups);
        REQUIRE(!refused);
        CHECK(refused.error().message.starts_with(
            fmt::format("add needs {} x {} x {} work-groups; ", groups.x, groups.y, groups.z)));
        CHECK(refused.error().message.ends_with("A smaller batch would fit"));
    }
    CHECK(record(vulkan::striding(too_many)));
}

TEST_CASE("vulkan: what is written behind a guarded buffer is found, and named") {
    BackendOptions options;
    options.guarded = true;
    const auto backend = vulkan::open_vulkan_backend(options);
    if (!backend) RL_SKIP("there is no Vulkan device with what this needs");
    vulkan::Memory& memory = backend.value()->memory();
    const vulkan::Buffer buffer = must(memory.allocate(256, vulkan::Use::scratch, "a test"));
    const auto fill = [&](uint64_t bytes, uint32_t word) {
        must(backend.value()->opened().run_once(
            [&](VkCommandBuffer commands) { vkCmdFillBuffer(commands, buffer.handle(), 0, bytes, word); },
            "filling"));
    };
    fill(256, 7);
    must(memory.check_guards());
    fill(260, 7);
    const Status found = memory.check_guards();
    REQUIRE(!found);
    CHECK(found.error().message ==
          "a kernel wrote to byte 256 of the 256 bytes for a test, where nothing belongs");
}

TEST_CASE("vulkan: activations become bfloat16 as the host rounds them, NaN and infinities included") {
    const auto backend = open_vulkan();
    if (!backend) RL_SKIP("there is no Vulkan device with what this needs");
    // Every upper half of a float, with lower halves on both sides of where rounding changes its way.
    constexpr uint32_t kWidth = 256;
    std::vector<float> values;
    for (uint32_t upper = 0; upper < 0x10000; ++upper)
        for (const uint32_t lower : {0u, 1u, 0x7FFFu, 0x8000u, 0x8001u, 0xFFFFu})
            values.push_back(bits_to_float(upper << 16 | lower));
    const uint32_t rows = uint32_t(values.size()) / kWidth;
    vulkan::Memory& memory = backend->memory();
    const auto buffer = [&](size_t bytes, vulkan::Use use) {
        return must(memory.allocate(bytes, use, "a test"));
    };
    const vulkan::Buffer x = buffer(values.size() * 4, vulkan::Use::upload),
                         step = buffer(256, vulkan::Use::upload),
                         halves = buffer(values.size() * 2, vulkan::Use::readback),
                         scales = buffer(rows * 4, vulkan::Use::readback);
    std::memcpy(x.mapped(), values.data(), values.size() * 4);
    std::memcpy(step.mapped(), &rows, 4);
    must(x.flush());
    must(step.flush());
    vulkan::Recorder recorder(backend->opened(), backend->pipelines());
    const vulkan::args::HalvesArgs push = {kWidth, 1, RL_ROWS_ALL, 0, 0.0f};
    must(
        recorder.dispatch({"prepare_halves", 5, 1, {128, 1}}, {x, halves, scales, step, step}, push, {rows}));
    const vulkan::Recording recording = must(std::move(recorder).finish());
    must(must(vulkan::Stopwatch::create(backend->opened()))->run(recording.segments));
    must(halves.invalidate());
    must(scales.invalidate());
    const auto* const got = reinterpret_cast<const uint16_t*>(halves.mapped());
    size_t wrong = 0;
    for (size_t i = 0; i < values.size(); ++i) {
        // Some devices take numbers below the smallest normal one for zero.
        const bool tiny = std::fabs(values[i]) < 0x1p-126f && (got[i] & 0x7FFF) == 0;
        wrong += got[i] != float_to_bfloat(values[i]) && !tiny &&
                 !(std::isnan(values[i]) && std::isnan(bfloat_to_float(got[i])));
    }
    CHECK(wrong == 0);
    for (uint32_t row = 0; row < rows; ++row)
        REQUIRE(reinterpret_cast<const float*>(scales.mapped())[row] == 1.0f);
}

TEST_CASE("vulkan: attend does rope and store of one row in the dispatch of attention") {
    const auto backend = open_vulkan();
    if (!backend) RL_SKIP("there is no Vulkan device with what this needs");
    struct Want {
        uint32_t head_dim, rows;
        bool keys_read;
        int dispatches;
    };
    // Three inputs, the attention, the choice of rows and the result's copy; RopeStore and an Add are more.
    for (const auto [head_dim, rows, keys_read, dispatches] :
         {Want{64, 1, false, 6}, Want{64, 2, false, 7}, Want{8, 1, false, 7}, Want{64, 1, true, 8}}) {
        const HeadShape s = {2, 2, head_dim};
        OpCase c;
        c.rows = rows;
        c.context = 16;
        c.declare = [=](Fixture& f) -> OpCase::Build {
            const uint32_t width = s.heads * s.head_dim;
            const Weight q = f.input(width), k = f.input(width), v = f.input(width);
            return [=](PlanBuilder& p) {
                const Slot queries = p.embed(q), keys = p.embed(k);
                const Cache cache = p.cache(s.kv_heads, s.head_dim);
                const Slot values = p.embed(v);
                const uint32_t rope = p.add_rope(test_rope(s.head_dim, true));
                if (!keys_read) return p.attend(cache, {queries, keys, values}, s, rope, 0.125f);
                p.rope_store(cache, queries, keys, values, s, rope);
                const Slot y = p.attention(cache, queries, s, 0.125f);
                p.append(each::add(keys, y, 1.0f));
                return y;
            };
        };
        CAPTURE(head_dim);
        CAPTURE(rows);
        CAPTURE(keys_read);
        const Dispatches counted;
        output_of(c, *backend);
        // One row is recorded twice: the best outputs are picked by two dispatches in place of the copy.
        CHECK(counted.count == (rows == 1 ? 2 * dispatches + 1 : dispatches));
    }
}

// The distance of the last of five tokens from the reference as a share of the bound, fed one by one or at
// once.
static double fifth_off(const OpCase& c, Backend& backend, bool one_by_one) {
    Fixture fixture(1, c.rows);
    const Plan plan = must(case_plan(c, fixture, c.rows, 1));
    const auto weights = must(backend.load(fixture.weights(), fixture, {}));
    const auto cache = must(backend.make_caches(plan.caches));
    BoundPlan bound = must(lower(plan, backend, true));
    std::vector<int32_t> tokens(c.rows);
    std::iota(tokens.begin(), tokens.end(), 0);
    const uint32_t rows = one_by_one ? 1 : c.rows;
    Reference reference(bound.plan, fixture.decoded(backend));
    std::vector<SequenceStep> steps;
    for (uint32_t p = 0; p < c.rows; p += rows) {
        steps.emplace_back(std::span(tokens).subspan(p, rows), p, 1);
        reference.run(steps.back(), precisions(bound, steps.back()));
    }
    const auto executable = must(backend.record(std::move(bound), *weights, *cache, Record::replay));
    for (const SequenceStep& step : steps) must(executable->run(step));
    return compare(executable->output(), reference.output()).worst_fraction;
}

TEST_CASE("vulkan: keys that attention stores by itself are those that later steps find") {
    const auto backend = open_vulkan();
    if (!backend) RL_SKIP("there is no Vulkan device with what this needs");
    for (const CacheType type : {CacheType::f32, CacheType::f16, CacheType::q8_0})
        // Queries of one kv head in one work-group, and in two.
        for (const HeadShape shape : {HeadShape{4, 2, 32}, HeadShape{12, 1, 64}}) {
            const OpCase c = attention_case(shape, 5, 0, {true, true, false, 0, 0.0f, type});
            CAPTURE(c.name);
            CHECK(fifth_off(c, *backend, false) <= 1.0);
            CHECK(fifth_off(c, *backend, true) <= 1.0);
        }
}

TEST_CASE("vulkan: many rows of experts give the same from tensors in parts and in small dispatches") {
    const auto backend = open_vulkan();
    if (!backend) RL_SKIP("there is no Vulkan device with what this needs");
    const OpCase c = many_rows_case(*find_format("Q8_0"), {9, 2, 96, 160}, 150);
    CHECK(off_reference(c, *backend) <= 1.0);
    backend->opened().most_per_buffer = 8192;
    CHECK(off_reference(c, *backend) <= 1.0);
    backend->opened().most_per_buffer = UINT64_MAX;
    backend->opened().pace().rates = {1e6, 1e6};
    CHECK(off_reference(c, *backend) <= 1.0);
}

TEST_CASE("vulkan: few rows by elements of matrices may have weights in parts") {
    const auto backend = open_vulkan("", "matrix");
    if (!backend || !backend->opened().fragments) RL_SKIP("there is no Vulkan device with what this needs");
    backend->opened().always_fragments = true;
    backend->opened().most_per_buffer = 16384;
    CHECK(off_reference(linear_case(*find_format("Q8_0"), 6, 300, 352, {true, true, true}), *backend) <= 1.0);
}

TEST_CASE("vulkan: products in int8 may have weights in parts") {
    const Format &q8 = *find_format("Q8_0"), &q4 = *find_format("Q4_0");
    for (const std::string level : {"matrix", "dot"}) {
        const auto backend = open_vulkan("", level);
        if (!backend) RL_SKIP("there is no Vulkan device with what this needs");
        CAPTURE(level);
        backend->opened().always_int8 = true;
        backend->opened().most_per_buffer = 16384;
        CHECK(off_reference(linear_case(q8, 70, 300, 352, {true, true, true}), *backend) <= 1.0);
        CHECK(off_reference(gated_case(q4, Act::silu, true, 20, 100, 352), *backend) <= 1.0);
        CHECK(off_reference(many_rows_case(q8, {9, 2, 96, 160}, 150), *backend) <= 1.0);
    }
}

TEST_CASE("vulkan: states go over many rows to the same in dispatches of one row each") {
    const auto backend = open_vulkan();
    if (!backend) RL_SKIP("there is no Vulkan device with what this needs");
    // The delta rule takes eight rows of a dispatch at once, and sums in another order then.
    const OpCase delta = delta_case({2, 1, 32, 32, true}, 40, 0, true);
    CHECK(off_reference(delta, *backend) <= 1.0);
    const OpCase space = state_space_case({4, 2, 24, 36}, 40, 0);
    const std::vector<float> whole = output_of(space, *backend);
    backend->opened().pace().rates = {1e3, 1e6};
    CHECK(off_reference(delta, *backend) <= 1.0);
    CHECK(output_of(space, *backend) == whole);
}

TEST_CASE("vulkan: a few rows' experts in int8 give the same from tensors in parts") {
    const Format& q8 = *find_format("Q8_0");
    for (const uint32_t rows : {1u, 3u})
        for (const OpCase& c :
             {many_rows_case(q8, {9, 4, 96, 160}, rows), biased_experts_case(q8, {9, 4, 96, 160}, rows)}) {
            auto backend = vulkan::open_vulkan_backend({0, "dot"});
            if (!backend) return;
            CAPTURE(c.name);
            CHECK(off_reference(c, **backend) <= 1.0);
            (*backend)->opened().most_per_buffer = 8192;
            CHECK(off_reference(c, **backend) <= 1.0);
        }
}

TEST_CASE("vulkan: each of few rows of a block of experts is normed without a separate dispatch") {
    auto backend = vulkan::open_vulkan_backend({0, "dot"});
    if (!backend) RL_SKIP("there is no Vulkan device with what this needs");
    const auto dispatches = [&](uint32_t rows, bool apart) {
        const Dispatches counted;
        output_of(experts_layer_case(*find_format("Q8_0"), {9, 4, 96, 160}, rows, apart), **backend);
        return counted.count;
    };
    // Apart there is an Add as well; one row is recorded twice.
    CHECK(dispatches(1, true) - dispatches(1, false) == 2 * 2);
    CHECK(dispatches(3, true) - dispatches(3, false) == 2);
    CHECK(dispatches(9, true) - dispatches(9, false) == 1);  // so many share experts
}

TEST_CASE("vulkan: a shared expert runs beside the experts that are chosen") {
    auto backend = vulkan::open_vulkan_backend({0, "dot"});
    if (!backend) RL_SKIP("there is no Vulkan device with what this needs");
    // The shared expert of a layer, in the way that its second one is added.
    const auto of_layer = [&](uint32_t rows, bool weighted) {
        const auto all = [&](uint32_t layers) {
            const Dispatches counted;
            output_of(shared_expert_case(*find_format("Q8_0"), {9, 4, 96, 160},
                                         {224, "Q4_0", weighted, false, false, layers}, rows),
                      **backend);
            return std::pair(counted.count, counted.barriers);
        };
        const auto [dispatches, barriers] = all(2);
        const auto [first_dispatches, first_barriers] = all(1);
        const int times = rows == 1 ? 2 : 1;  // recorded
        return fmt::format("{} dispatches, {} barriers", (dispatches - first_dispatches) / times,
                           (barriers - first_barriers) / times);
    };
    CHECK(of_layer(1, true) == "6 dispatches, 3 barriers");
    CHECK(of_layer(1, false) == "5 dispatches, 3 barriers");
    CHECK(of_layer(3, true) == of_layer(1, true));
    CHECK(of_layer(3, false) == of_layer(1, false));
    CHECK(of_layer(9, true) == "7 dispatches, 5 barriers");
    CHECK(of_layer(9, false) == "8 dispatches, 7 barriers");
}

// A block of experts whose rows come from the host's table and are the output, so that none is passed on in
// int8.
static OpCase lone_experts_case(const Format& format, uint64_t experts, uint32_t used, uint64_t shared,
                                uint32_t rows) {
    OpCase c;
    c.name = fmt::format("{} of {} experts of {}, rows {}", used, experts, format.name, rows);
    c.rows = rows;
    c.declare = [=, &format](Fixture& f) -> OpCase::Build {
        constexpr uint32_t kDim = 256, kHidden = 512;
        const Format& f32 = *find_format("F32");
        const Weight x0 = f.input(kDim), gain = f.vector(kDim), router = f.matrix(f32, experts, kDim),
                     shared_router = f.matrix(f32, 1, kDim);
        const Weight gate = f.matrix(format, kHidden, kDim, experts),
                     up = f.matrix(format, kHidden, kDim, experts),
                     down = f.matrix(format, kDim, kHidden, experts);
        const Weight shared_gate = f.matrix(format, kHidden, kDim),
                     shared_up = f.matrix(format, kHidden, kDim),
                     shared_down = f.matrix(format, kDim, kHidden);
        return [=](PlanBuilder& p) {
            const Slot x = p.embed(x0), h = p.rms_norm(x, {gain, 1e-5f});
            p.experts_add(x, h, p.route(h, router, used, Gating::softmax, true), {gate, up, down});
            if (shared > 0)
                p.experts_add(x, h, p.route(h, shared_router, 1, Gating::sigmoid, false),
                              {shared_gate, shared_up, shared_down});
            return x;
        };
    };
    return c;
}

TEST_CASE("vulkan: each of few rows that go to experts has the bits that it has alone") {
    auto backend = vulkan::open_vulkan_backend({0, "dot"});
    if (!backend) RL_SKIP("there is no Vulkan device with what this needs");
    struct Way {
        uint64_t experts;
        uint32_t used;
        uint64_t shared;
        uint32_t rows;
    };
    for (const char* name : {"Q4_K", "Q6_K", "IQ2_S"})
        for (const Way& way : {Way{9, 2, 0, 3}, Way{40, 3, 1, 8}, Way{130, 8, 1, 13}}) {
            const OpCase c =
                lone_experts_case(*find_format(name), way.experts, way.used, way.shared, way.rows);
            CAPTURE(c.name);
            CHECK(off_reference(c, **backend) <= 1.0);
            Fixture fixture(1, c.rows);
            const Plan plan = must(case_plan(c, fixture, c.rows, c.rows));
            const auto weights = must((*backend)->load(fixture.weights(), fixture, {}));
            const auto cache = must((*backend)->make_caches(plan.caches));
            const auto executable = must(
                (*backend)->record(must(lower(plan, **backend, true)), *weights, *cache, Record::replay));
            const auto output_from = [&](int32_t first, uint32_t rows) {
                std::vector<int32_t> tokens(rows);
                std::iota(tokens.begin(), tokens.end(), first);
                must(executable->run(SequenceStep(tokens, 0, rows)));
                return std::vector<float>(executable->output().begin(), executable->output().end());
            };
            const std::vector<float> all = output_from(0, c.rows);
            size_t wrong = 0;
            for (uint32_t row = 0; row < c.rows; ++row) {
                const std::vector<float> alone = output_from(int32_t(row), 1);
                wrong += !std::equal(alone.begin(), alone.end(), all.begin() + ptrdiff_t(row * alone.size()));
            }
            CHECK(wrong == 0);
        }
}

TEST_CASE("vulkan: weights that go through staging give the logits of weights written in place") {
    const auto backend = open_vulkan();
    if (!backend) RL_SKIP("there is no Vulkan device with what this needs");
    const std::vector<float> want = logits_of(*backend, "phi4-mini-short");
    backend->memory().always_stage = true;
    CHECK(logits_of(*backend, "phi4-mini-short") == want);
}

TEST_CASE("vulkan: every part of a weight has its code book, written in place or through staging") {
    const auto backend = open_vulkan();
    if (!backend) RL_SKIP("there is no Vulkan device with what this needs");
    const OpCase c = many_rows_case(*find_format("IQ2_S"), {9, 4, 256, 256}, 3);
    CHECK(off_reference(c, *backend) <= 1.0);
    backend->opened().most_per_buffer = 16384;
    CHECK(off_reference(c, *backend) <= 1.0);
    backend->memory().always_stage = true;
    CHECK(off_reference(c, *backend) <= 1.0);
}

TEST_CASE("vulkan: an allocation that fails anywhere is an error with numbers, and leaves nothing behind") {
    const auto backend = open_vulkan();
    if (!backend) RL_SKIP("there is no Vulkan device with what this needs");
    const std::vector<float> want = logits_of(*backend, "llama3");
    const uint64_t before = backend->memory().allocated();
    const auto try_all = [&]() -> Status {
        const Model model = RL_TRY(Model::load(golden("models/llama3.gguf"), *backend, {64, {}}));
        Session session = RL_TRY(Session::create(model, {64, 16, 16}));
        return session.feed(golden_tokens());
    };
    int failures = 0;
    for (int64_t after = 0;; ++after) {
        backend->memory().fail_after = after;
        const Status status = try_all();
        if (status) break;
        ++failures;
        CHECK(status.error().message.find("cannot allocate") != std::string::npos);
        CHECK(status.error().message.find("heap 0") != std::string::npos);
        CHECK(backend->memory().allocated() == before);
    }
    backend->memory().fail_after = -1;
    CHECK(failures > 10);
    CHECK(logits_of(*backend, "llama3") == want);
}

TEST_CASE("vulkan: submissions are as long as the device's measured speed allows") {
    const auto backend = open_vulkan();
    if (!backend) RL_SKIP("there is no Vulkan device with what this needs");
    const std::vector<float> want = logits_of(*backend, "llama3");
    // Rates that make the tiny model appear large: a command buffer for every few dispatches.
    backend->opened().pace().rates = {1e9, 1e7};
    CHECK(logits_of(*backend, "llama3") == want);
    const Model model = must(Model::load(golden("models/llama3.gguf"), *backend, {64, {}}));
    const std::vector<Token> tokens(16, golden_tokens()[0]);
    // Much faster than assumed: fewer submissions, once that is known. Where other programs run a step can be
    // slow: one attempt of several must do.
    bool fewer = false;
    for (int attempt = 0; attempt < 20 && !fewer; ++attempt) {
        Session session = must(Session::create(model, {64, 16, 1}));
        const SlowQueue queue(0);
        must(session.feed(tokens));
        const uint32_t first = queue.submissions;
        CHECK(first > 1);
        queue.forget();
        must(session.feed(tokens));
        fewer = queue.submissions < first;
    }
    CHECK(fewer);
    {
        // 30 ms for every command buffer: a whole step would take many times as long as a submission may.
        Session session = must(Session::create(model, {64, 16, 1}));
        backend->take_longest_submission();
        const SlowQueue queue(30);
        for (int step = 0; step < 3; ++step) must(session.feed(tokens));
        CHECK(queue.most_buffers <= 3);
        CHECK(queue.submissions > 9);
        // About 0.1; no more is said of a machine where other programs run.
        CHECK(backend->take_longest_submission() > 0.03);
    }
}

TEST_CASE("vulkan: traced steps and the bandwidth measurement keep to short submissions, too") {
    const auto backend = open_vulkan();
    if (!backend) RL_SKIP("there is no Vulkan device with what this needs");
    // Rates that make the product appear large: a dispatch, and a command buffer, for every few rows.
    backend->opened().pace().rates = {1e6, 1e6};
    const OpCase c = linear_case(*find_format("Q8_0"), 1000, 64, 64, {});
    const std::vector<float> want = output_of(c, *backend);
    {
        const SlowQueue queue(30);
        CHECK(output_of(c, *backend, true) == want);
        // The clock has a command buffer before and after.
        CHECK(queue.most_buffers <= 2 + 3);
        CHECK(queue.submissions > 8);
    }
    backend->take_longest_submission();
    CHECK(backend->measure_read_bandwidth() > 1e8);
    // 0.08 is aimed at; no more is said of a machine where other programs run.
    CHECK(backend->take_longest_submission() < 1.0);
}

TEST_CASE("vulkan: the device is kept busy for as long as it was asked, and computes the same behind it") {
    const auto backend = open_vulkan();
    if (!backend) RL_SKIP("there is no Vulkan device with what this needs");
    if (!vulkan::KeepBusy::possible(backend->opened().report()))
        RL_SKIP("shaders of " + backend->device().name + " read no clock");
    using Clock = std::chrono::steady_clock;
    vulkan::KeepBusy busy(backend->opened(), backend->memory(), backend->pipelines());
    const auto took = [&](double seconds) {
        const auto begin = Clock::now();
        must(busy.submit(seconds));
        must(backend->opened().run_once([](VkCommandBuffer) {}, "waiting"));
        return std::chrono::duration<double>(Clock::now() - begin).count();
    };
    took(1e-4);
    const double shorter = took(0.005), longer = took(0.02);
    // For shaders of Mesa 22's driver on the CPU the clock stands still: the rounds end it.
    const std::string& driver = backend->opened().report().driver;
    if (backend->device().on_cpu && driver.find("Mesa 22.") != std::string::npos) {
        MESSAGE("the clock that shaders of " << driver << " read stands still");
    } else {
        CHECK(shorter >= 0.99 * 0.005);
        CHECK(longer >= 0.99 * 0.02);
    }
    CHECK(longer < 5.0);
    const OpCase c = linear_case(*find_format("Q8_0"), 100, 64, 64, {});
    const std::vector<float> want = output_of(c, *backend);
    must(busy.submit(0.02));
    CHECK(output_of(c, *backend) == want);
}

TEST_CASE("vulkan: loading takes little memory beside the weights themselves") {
    // Rows of a file that is nowhere.
    struct Zeros : ByteSource {
        Status read(size_t, uint64_t, std::span<std::byte> out) override {
            std::fill(out.begin(), out.end(), std::byte(0));
            return {};
        }
    } source;
    const auto backend = open_vulkan();
    if (!backend) RL_SKIP("there is no Vulkan device with what this needs");
    std::vector<WeightInfo> weights(2);
    weights[0].tensor = {"matrix", find_format("Q4_K"), {1, 32768, 8192}};
    weights[1].tensor = {"experts", find_format("Q8_0"), {8, 2048, 4096}};
    for (const bool staged : {false, true}) {
        backend->memory().always_stage = staged;
        std::ofstream("/proc/self/clear_refs") << 5;  // forgets the peak so far
        const uint64_t before = peak_resident();
        const auto store = must(backend->load(weights, source, {}));
        CAPTURE(staged);
        CHECK(store->bytes() > (uint64_t(200) << 20));
        // The device's memory belongs to this process here.
        CHECK(peak_resident() < before + store->bytes() + (uint64_t(100) << 20));
    }
}

TEST_CASE("vulkan: the pipeline cache is kept, and a damaged one is not believed") {
    const std::string folder = std::filesystem::temp_directory_path() / "redline_vulkan_test";
    std::filesystem::remove_all(folder);
    std::vector<float> want;
    {
        const auto backend = open_vulkan(folder);
        if (!backend) return;
        want = logits_of(*backend, "qwen2");
    }
    for (const auto& entry : std::filesystem::directory_iterator(folder)) {
        const std::string path = entry.path();
        const std::string sound = must(read_text_file(path));
        CHECK(path.ends_with(".pipelines"));
        for (const size_t size : {sound.size(), sound.size() / 2, size_t(9), size_t(0)}) {
            std::string bytes = sound.substr(0, size);
            if (size == sound.size() && size > 40) bytes[40] = char(bytes[40] ^ 1);
            std::ofstream(path, std::ios::binary) << bytes;
            const auto backend = open_vulkan(folder);
            CHECK(logits_of(*backend, "qwen2") == want);
        }
    }
    std::filesystem::remove_all(folder);
}

TEST_CASE("vulkan: a device that is not there is an error that lists those that are") {
    if (!open_vulkan()) RL_SKIP("there is no Vulkan device");
    const auto refused = open_backend("vulkan", {0, "", "no such device"});
    REQUIRE_FALSE(refused.ok());
    CHECK(refused.error().message.find("vulkan:0") != std::string::npos);
    CHECK_FALSE(open_backend("vulkan", {0, "", "99"}).ok());
    CHECK_FALSE(open_backend("vulkan", {0, "fast"}).ok());
}
#endif
