// Agreement of devices: the comparison of logits, the place where traces diverge, and the command that does
// both.
#include "cli/demo_model.h"
#include "json/json.h"
#include "measure/agreement.h"
#include "measure/batch_agreement.h"
#include "support/backends.h"
#include "support/models.h"
#include "support/program.h"

using namespace redline;
using namespace redline::test;

namespace {

// The demo model with other weights in one tensor.
std::string damaged_demo(const std::string& tensor) {
    const Gguf gguf = must(Gguf::open(demo()));
    const std::string path = file("damaged.gguf");
    write_file(path, read_file(demo()));
    std::fstream out(path, std::ios::binary | std::ios::in | std::ios::out);
    for (const GgufTensor& t : gguf.tensors()) {
        if (t.tensor.name != tensor) continue;
        // Q8_0 blocks: a scale, then 32 codes, of which each is negated.
        REQUIRE(t.bytes % 34 == 0);
        std::vector<char> blocks(t.bytes);
        REQUIRE(gguf.read(t, 0, std::as_writable_bytes(std::span(blocks))).ok());
        for (size_t i = 0; i < blocks.size(); ++i)
            if (i % 34 >= 2) blocks[i] = char(-blocks[i]);
        out.seekp(std::streamoff(t.offset));
        out.write(blocks.data(), std::streamsize(blocks.size()));
    }
    return path;
}

struct Read {
    std::vector<std::vector<float>> logits;
    std::vector<double> roundings;
    std::vector<TracedWrite> trace;
};

Read read_on(const std::string& path, Backend& backend, size_t traced_text, size_t traced_token) {
    const Model model = must(Model::load(path, backend, {256, {}}));
    const std::vector<CheckText> texts = check_texts(model);
    const SessionOptions options = check_session(texts, {});
    return {must(check_logits_of(model, texts, options)), must(roundings(model, options)),
            must(trace_token(model, texts[traced_text], traced_token, options))};
}

}  // namespace

TEST_CASE("agreement: every backend computes what the CPU's plain kernels do") {
    const auto plain = test::cpu(2, "portable");
    const Read want = read_on(demo(), *plain, 0, 20);
    const size_t vocab = must(Model::inspect(demo())).usable_vocab();
    for (const auto& backend : all_test_backends(false)) {
        INFO(backend->device().name, ", ", backend->device().detail);
        const Read got = read_on(demo(), *backend, 0, 20);
        const double bound = rounding_bound(want.roundings, got.roundings);
        const Agreement a = compare_logits(want.logits, got.logits, vocab, bound, false);
        MESSAGE(backend->device().detail << ": " << a.same << " of " << a.tokens << ", error "
                                         << a.worst_error << " of " << a.bound << ", KL " << a.worst_kl);
        CHECK(a.agrees);
        CHECK(a.tokens > 200);
        CHECK(a.worst_kl < 0.05);
        CHECK(bound < 1.0);
        const std::optional<Parting> parting = first_parting(want.trace, got.trace, bound);
        REQUIRE(parting);
        INFO("layer ", parting->layer, ", ", parting->op, " of ", parting->tensors, ", ", parting->error);
        CHECK(!parting->beyond);
    }
}

TEST_CASE("agreement: where weights differ the logits do, and the trace names the tensor") {
    const auto backend = test::cpu(2);
    for (const size_t token : {size_t(20), size_t(155)}) {  // in the chunk, and of those read one by one
        const Read want = read_on(demo(), *backend, 0, token);
        for (const char* tensor : {"blk.1.ffn_down.weight", "blk.2.attn_output.weight"}) {
            const Read got = read_on(damaged_demo(tensor), *backend, 0, token);
            const double bound = rounding_bound(want.roundings, got.roundings);
            const size_t vocab = must(Model::inspect(demo())).usable_vocab();
            CHECK_FALSE(compare_logits(want.logits, got.logits, vocab, bound, false).agrees);
            const std::optional<Parting> parting = first_parting(want.trace, got.trace, bound);
            REQUIRE(parting);
            CHECK(parting->beyond);
            CHECK(has(parting->tensors, tensor));
        }
    }
}

TEST_CASE("agreement: another likeliest token is a near tie within the bound, and a disagreement beyond it") {
    const std::vector<std::vector<float>> want = {{1.0f, 0.99f, -1.0f, -1.0f, 0.0f, 0.0f}};
    const std::vector<std::vector<float>> tied = {{0.99f, 1.0f, -1.0f, -1.0f, 0.0f, 0.0f}};
    const Agreement near = compare_logits(want, tied, 6, 0.02, false);
    CHECK(near.same == 0);
    CHECK(near.near_ties == 1);
    CHECK(near.agrees);
    CHECK(near.worst_kl > 0.0);
    CHECK_FALSE(compare_logits(want, tied, 6, 0.001, false).agrees);
    const Agreement equal = compare_logits(want, want, 6, 0.0, false);
    CHECK(equal.agrees);
    CHECK(equal.worst_kl == 0.0);
    const std::vector<std::vector<float>> broken = {{0.99f, NAN, -1.0f, -1.0f, 0.0f, 0.0f}};
    const Agreement none = compare_logits(want, broken, 6, 0.5, false);
    CHECK_FALSE(none.agrees);
    CHECK(std::isinf(none.worst_error));
}

TEST_CASE("agreement: of a model with experts the median is judged") {
    std::vector<float> rows, moved;
    for (int token = 0; token < 20; ++token)
        for (const float x : {1.0f, 0.0f, -1.0f, 0.5f}) {
            rows.push_back(x);
            moved.push_back(token == 7 ? -x : x);
        }
    const std::vector<std::vector<float>> want = {rows}, got = {moved};
    CHECK(compare_logits(want, got, 4, 0.01, true).agrees);
    CHECK_FALSE(compare_logits(want, got, 4, 0.01, false).agrees);
}

TEST_CASE("agreement: the bound is the sum of few roundings, and four deviations of many") {
    CHECK(rounding_bound(std::vector{0.01}, std::vector{0.02}) == doctest::Approx(0.03));
    CHECK(rounding_bound(std::vector<double>(400, 0.01), {}) == doctest::Approx(0.8));
}

TEST_CASE("batches: the prompt is longer than a step of each size, as far as the context goes") {
    const Model longer = must(Model::inspect(demo())),
                shorter = must(Model::inspect(golden("models/llama3.gguf")));
    const LongPrompt all = long_prompt(longer, check_texts(longer)),
                     some = long_prompt(shorter, check_texts(shorter));
    REQUIRE(longer.config().train_context == 2048);
    CHECK(all.tokens.size() == 2048);
    CHECK(all.batches == std::vector<uint32_t>{64, 512, 1984});
    REQUIRE(shorter.config().train_context == 256);
    CHECK(some.tokens.size() == 256);
    CHECK(some.batches == std::vector<uint32_t>{64, 192});
    CHECK(long_prompt(longer, {}).batches.empty());
}

TEST_CASE("batches: on every backend steps of each size give what the CPU gives one by one") {
    const std::string path = golden("models/llama3.gguf");
    const auto read_in = [&](Backend& backend, uint32_t batch, std::vector<double>& rounds) {
        const Model model = must(Model::load(path, backend, {256, {}}));
        const LongPrompt prompt = long_prompt(model, check_texts(model));
        const SessionOptions options = long_session(prompt, batch, {});
        rounds = must(roundings(model, options));
        return must(read_long(model, prompt, options, Deadline::max()));
    };
    const auto plain = test::cpu(2, "portable");
    std::vector<double> plainly, other;
    const LongRead want = read_in(*plain, 1, plainly);
    CHECK(want.positions.size() == 256);
    for (const auto& backend : all_test_backends(false))
        for (const uint32_t batch : {64u, 192u}) {
            INFO(backend->device().name, ", ", backend->device().detail, " in steps of ", batch);
            const LongRead got = read_in(*backend, batch, other);
            CHECK(got.read == 256);
            const Agreement a = compare_reads(want, got, rounding_bound(plainly, other), false);
            CHECK(a.tokens == LongPrompt::kEnd + 192 / batch);
            CHECK(a.agrees);
        }
}

TEST_CASE("batches: behind its deadline a prompt is read no further, and what was read is compared") {
    const auto backend = test::cpu(2);
    const Model model = must(Model::load(golden("models/llama3.gguf"), *backend, {256, {}}));
    const LongPrompt prompt = long_prompt(model, check_texts(model));
    const SessionOptions options = long_session(prompt, 64, {});
    CHECK(must(read_long(model, prompt, options, std::chrono::steady_clock::now())).read == 0);
    const LongRead part = must(read_long(model, prompt, options, Deadline::max()));
    LongRead two = part;
    two.positions.resize(2);
    two.logits.resize(2);
    CHECK(compare_reads(part, two, 0.0, false).tokens == 2);
    CHECK(compare_reads(part, two, 0.0, false).agrees);
    CHECK(compare_reads(part, {}, 0.0, false).tokens == 0);
}

TEST_CASE("batches: the reads that part from the others are named") {
    const auto odd_of = [](std::vector<int> results) {
        return odd_reads(results.size(), [&](size_t a, size_t b) { return results[a] == results[b]; });
    };
    CHECK(odd_of({1, 1, 1}).empty());
    CHECK(odd_of({1, 2, 1}) == std::vector<size_t>{1});
    CHECK(odd_of({3, 1, 1}) == std::vector<size_t>{0});
    CHECK(odd_of({1, 2}) == std::vector<size_t>{0, 1});
    CHECK(odd_of({1, 2, 3}) == std::vector<size_t>{0, 1, 2});
    CHECK(odd_of({}).empty());
    const LongRead want = {{63, 64, 65}, {{1.0f, 0.0f, -1.0f}, {0.0f, 1.0f, -1.0f}, {1.0f, 0.5f, -2.0f}}, 66};
    LongRead got = {{64, 65, 70}, {{0.0f, 1.0f, -1.0f}, {-2.0f, 1.0f, 0.5f}, {9.0f, 9.0f, 0.0f}}, 71};
    const Agreement wrong = compare_reads(want, got, 0.01, false);
    CHECK(wrong.tokens == 2);
    CHECK(wrong.worst_token == 65);
    CHECK_FALSE(wrong.agrees);
    got.logits[1] = want.logits[2];
    CHECK(compare_reads(want, got, 0.01, false).agrees);
}

TEST_CASE("verify: the demo model agrees on every device here, and a device that is not here is status 3") {
    const Outcome text = redline_({"verify", "--device", "cpu", "-t", "2"});
    INFO(text.out, text.err);
    CHECK(text.code == 0);
    CHECK(has(text.out, "agrees"));
    CHECK(has(text.err, "demo model"));
    const Outcome all = redline_({"verify", "-t", "2", "-q", "--json"});
    CHECK(all.code == 0);
    const Json report = parse_json(all.out);
    for (const Json& device : report["devices"]) {
        CHECK(device["agrees"] == true);
        CHECK(device["parting"].is_null());
        CHECK(device["kl_worst"].get<double>() < 0.05);
        CHECK(device["put_aside"].empty());
        CHECK(device["batches"]["agrees"] == true);
        CHECK(device["batches"]["sizes"].size() + device["batches"]["left_out"].size() >= 3);
    }
    check_refused({"verify", "--device", "abacus", "-q"}, 3, {"abacus"});
    check_refused({"verify", "-m", file("nowhere.gguf"), "-q"}, 1, {"nowhere.gguf"});
    check_refused({"verify", "--frobnicate"}, 2, {"--frobnicate"});
}
