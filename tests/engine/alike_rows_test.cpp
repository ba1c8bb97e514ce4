// Engines whose rows are to be alike: on GPUs, too, a row of a step has the logits that it would have alone,
// bit for bit, whatever rows of its sequence or of others are beside it.
#include "plan/alike_rows.h"
#include "plan/kernel_key.h"
#include "support/backends.h"
#include "support/models.h"
#include "support/share.h"

#include <doctest/doctest.h>

#include <cstring>

using namespace redline;
using namespace redline::test;

namespace {

constexpr size_t kText = 200, kCompared = 24;

std::vector<Token> some_text(size_t count, size_t seed) {
    std::vector<Token> text;
    for (size_t i = 0; i < count; ++i)
        text.push_back(Token((i * i * 7 + i * 13 * seed + 5 + seed) % 250 + 1));
    return text;
}

struct Texts {
    std::vector<Token> first, other;
    size_t from;  // where the compared tokens begin
};

// Logits behind each compared token of the first text, read by so many at a time. With `beside`, each step
// reads tokens of the other text, too.
std::vector<float> logits_by(const Model& model, const EngineOptions& options, const Texts& texts,
                             size_t rows, bool beside) {
    const auto engine = must(Engine::create(model, options));
    Sequence one = must(engine->open_sequence()), other = must(engine->open_sequence());
    const auto drop = [](size_t, std::span<const float>) {};
    const std::span<const Token> text = texts.first;
    const Feed begin[] = {{&one, text.first(texts.from)}, {&other, std::span(texts.other).first(texts.from)}};
    must(engine->feed(std::span(begin).first(1), drop));
    must(engine->feed(std::span(begin).last(1), drop));
    std::vector<float> all;
    const size_t vocab = model.config().vocab;
    for (size_t at = texts.from; at < text.size(); at += rows) {
        const auto some = text.subspan(at, std::min(rows, text.size() - at));
        const uint32_t outputs = uint32_t(some.size());
        std::vector<Feed> feeds;
        if (beside) feeds.push_back({&other, std::span(texts.other).subspan(at, 1), 1});
        feeds.push_back({&one, some, outputs});
        must(engine->step(feeds, {.outputs = outputs}));
        const std::span<const float> logits = engine->output().last(outputs * vocab);
        all.insert(all.end(), logits.begin(), logits.end());
    }
    return all;
}

EngineOptions alike_options() {
    EngineOptions options{256, 32, 32};
    options.sequences = 2;
    options.drafts = kFewAlike - 1;
    options.alike_rows = true;
    return options;
}

bool same_bits(std::span<const float> a, std::span<const float> b) {
    return a.size() == b.size() && std::memcmp(a.data(), b.data(), a.size_bytes()) == 0;
}

// In which numbers of rows a row has other logits than alone; empty: in none.
std::string wrong_rows(const Model& model, EngineOptions options, size_t length = kText) {
    if (!Engine::create(model, options).ok()) {
        options.context = 128;
        length = 110;
    }
    const Texts texts = {some_text(length, 1), some_text(length, 3), length - kCompared};
    const std::vector<float> want = logits_by(model, options, texts, 1, false);
    std::string wrong;
    for (const size_t rows : {2u, 3u, 5u, 8u})
        if (!same_bits(want, logits_by(model, options, texts, rows, false)))
            wrong += fmt::format(" {}", rows);
    for (const size_t rows : {1u, 4u})
        if (!same_bits(want, logits_by(model, options, texts, rows, true)))
            wrong += fmt::format(" {} beside one of another", rows);
    return wrong;
}

// All crossovers of a model's kernels at their first values beside the default, or at their last.
Variants crossovers_at(const Model& model, Backend& backend, bool last) {
    Variants all;
    for (const Plan& recorded : must(engine_plans(model, alike_options()))) {
        const Plan plan = must(lower(recorded, backend, true)).plan;
        for (const Step& step : plan.steps)
            for (const RowClass rows : {RowClass::few, RowClass::some})
                for (const Choice& one : backend.choices_for(step.op, plan, rows))
                    if (one.crossover && one.values.size() > 1)
                        all[{kernel_key(step.op, plan), rows}][one.name] =
                            last ? one.values.back() : one.values[1];
    }
    return all;
}

}  // namespace

TEST_CASE("alike rows: rows of few have the logits that each has alone, on every device that promises it") {
    const Share share = share_of_cases();
    size_t number = 0;
    std::string others;
    for (const auto& backend : session_test_backends()) {
        for (const std::string& name : tiny_models()) {
            if (!share.takes(number++) || !runs_on(*backend, name)) continue;
            const Model model = tiny(*backend, name);
            const EngineOptions options = alike_options();
            bool promised = true;
            for (const Plan& plan : must(engine_plans(model, options)))
                promised = promised && alike_rows(*backend, must(lower(plan, *backend, true))) >= kFewAlike;
            const std::string wrong = wrong_rows(model, options);
            INFO(backend->device().name, " ", backend->device().detail, ": ", name, wrong);
            if (promised) CHECK(wrong.empty());
            if (!promised) others += fmt::format(" {} ({})", name, backend->device().name);
        }
    }
    if (!others.empty()) MESSAGE("nothing is promised of:", others);
}

TEST_CASE("alike rows: they have the same logits wherever the crossovers between ways are tuned to lie") {
    const Share share = share_of_cases();
    size_t number = 0;
    for (const auto& backend : session_test_backends()) {
        const Model model = must(Model::load(demo(), *backend, {64, {}}));
        for (const bool last : {false, true}) {
            const Variants variants = crossovers_at(model, *backend, last);
            // The CPU has none. HIP's double takes minutes.
            if (variants.empty() || !share.takes(number++)) continue;
            INFO(backend->device().name, " ", backend->device().detail,
                 std::string(last ? ": last" : ": first"), " values");
            backend->use(variants);
            CHECK(wrong_rows(model, alike_options(), 40) == "");
            backend->use({});
        }
    }
}
