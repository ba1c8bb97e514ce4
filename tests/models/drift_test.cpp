// Long generations of models that keep states or windows: what step after step leaves there is what a prompt
// of the same tokens does.
#include "support/backends.h"
#include "support/models.h"

#include <fmt/format.h>

#include <random>

using namespace redline;
using namespace redline::test;

namespace {

// RL_TEST_TOKENS asks for another length, and for what came out.
uint32_t tokens_to_generate() {
    const char* const given = std::getenv("RL_TEST_TOKENS");
    return given ? uint32_t(std::max(100, std::atoi(given))) : 300;
}

// One thread has a tiny model's step done sooner than several have met.
Backends backends_to_try() {
    Backends made;
    if (wanted("cpu")) made.push_back(open_wanted("cpu", {1, ""}));
    add_devices(made, false);
    return made;
}

// Neither all keys nor all values of a text stay in its caches.
bool forgets(const std::string& name) {
    const Model model = must(Model::inspect(golden("models/" + name + ".gguf"), 64));
    // One of 64 layers has those of another.
    if (model.config().layers > 32) return false;
    const Plan plan = must(model.plan(1, 1, {64, 64, CacheType::f32}));
    return std::any_of(plan.caches.begin(), plan.caches.end(),
                       [](const CacheInfo& cache) { return cache.is_state() || cache.window > 0; });
}

// By softmax(logits), so that a text does not turn in circles.
Token sampled(std::span<const float> logits, size_t usable, std::mt19937& random) {
    std::extreme_value_distribution<float> noise;
    size_t best = 0;
    float most = -INFINITY;
    for (size_t i = 0; i < usable; ++i)
        if (const float value = logits[i] + noise(random); value > most) most = value, best = i;
    return Token(best);
}

// The error of logits at marks along a text, where they come of single steps, against those of chunks.
std::vector<double> drift(const Model& model, uint32_t tokens, uint32_t marks) {
    const SessionOptions options{tokens + 64, 64, 1, CacheType::f32};
    Session steps = must(Session::create(model, options)), chunks = must(Session::create(model, options));
    std::mt19937 random(7);
    must(steps.feed(golden_tokens()));
    const uint64_t first = steps.position();
    std::vector<double> errors;
    for (uint32_t mark = 1; mark <= marks; ++mark) {
        while (steps.position() < first + uint64_t(tokens) * mark / marks) {
            const Token next = sampled(steps.logits(), model.usable_vocab(), random);
            must(steps.feed(std::span(&next, 1)));
        }
        must(chunks.feed(std::span(steps.tokens()).subspan(size_t(chunks.position()))));
        errors.push_back(relative_error(steps.logits(), chunks.logits()));
    }
    return errors;
}

}  // namespace

TEST_CASE("models with states or windows generate without drifting from a fresh evaluation") {
    const uint32_t tokens = tokens_to_generate();
    for (const auto& backend : backends_to_try())
        for (const std::string& name : tiny_models(*backend)) {
            if (!forgets(name)) continue;
            const Model model =
                must(Model::load(golden("models/" + name + ".gguf"), *backend, {tokens + 64, {}}));
            const double bound = golden_bound(*backend, name);
            std::vector<double> errors = drift(model, tokens, 20);
            const double last = errors.back();
            std::sort(errors.begin(), errors.end());
            INFO(name, " on ", backend->device().detail, ", median ", errors[10], ", largest ",
                 errors.back());
            if (std::getenv("RL_TEST_TOKENS")) {
                fmt::print("{} {} {}: median {:.1e}, largest {:.1e}, last {:.1e}, bound {:.1e}\n",
                           backend->device().name, name, tokens, errors[10], errors.back(), last, bound);
                std::fflush(stdout);
            }
            // A nearly tied choice of experts may differ at single tokens.
            CHECK((model.config().experts ? errors[10] : errors.back()) < bound);
        }
}
