// The scheduler on every backend, and a device that is lost under it.
#include "serving.h"
#include "support/backends.h"
#ifdef RL_VULKAN
#include "backends/vulkan/runtime/device.h"
#include "support/vulkan_faults.h"
#endif

using namespace redline;
using namespace redline::serve;
using namespace redline::test;

namespace {

std::string rest_after(char letter) {
    return std::string(ChainModel::kWholeText).substr(size_t(letter - 'a'));
}

}  // namespace

TEST_CASE("scheduler: six requests of which four run at a time get their texts, on every backend") {
    for (const std::string& device : device_names()) {
        INFO(device);
        const auto s = serving_chain(serve_options(4, 700), {}, device);
        std::vector<std::unique_ptr<Asked>> asked;
        for (const char letter : {'a', 'f', 'k', 'p', 'u', 'z'}) {
            asked.push_back(std::make_unique<Asked>());
            // Prompts of one step and of several, some with a common beginning.
            std::string prompt(letter == 'k' ? 300 : letter == 'p' ? 280 : 3, 'q');
            prompt.back() = letter;
            AnswerRequest request = request_of(s->tokenizer().encode(prompt));
            if (letter == 'f') request.logprobs = 2;
            ask(*s->scheduler, *asked.back(), std::move(request));
        }
        size_t at = 0;
        for (const char letter : {'a', 'f', 'k', 'p', 'u', 'z'}) {
            const AnswerEnd end = asked[at]->end();
            CHECK(end.reason == StopReason::end_of_generation);
            CHECK(asked[at++]->text == rest_after(letter));
        }
        CHECK(s->scheduler->statistics().cached_tokens >= 279);
    }
}

#ifdef RL_VULKAN
TEST_CASE("scheduler: a lost device ends what runs, is opened again, and serves what waits") {
    const auto instance = vulkan::Instance::get();
    if (!open_wanted("vulkan")) RL_SKIP("there is no Vulkan device");
    wrap_vulkan();
    faults().disarm();
    const auto s = serving_chain(serve_options(1, 2000), {}, "vulkan");
    Asked runs, waits, later;
    std::promise<void> ready;
    runs.at_piece = [&, armed = false, go = ready.get_future().share()]() mutable {
        if (armed) return;
        armed = true;
        go.wait();
        faults().lose({3});
    };
    AnswerRequest endless = request_of(s->tokenizer().encode("a"));
    endless.ignore_eos = true;
    ask(*s->scheduler, runs, endless);
    ask(*s->scheduler, waits, request_of(s->tokenizer().encode("c")));
    ready.set_value();
    const AnswerEnd end = runs.end();
    CHECK(end.device_lost);
    CHECK(end.reason == StopReason::broken);
    REQUIRE_FALSE(end.problem.ok());
    CHECK(end.problem.error().message.find("lost") != std::string::npos);
    CHECK(waits.end().reason == StopReason::end_of_generation);
    CHECK(waits.text == rest_after('c'));
    wait_until([&] { return s->scheduler->health() == Health::serving; });
    ask(*s->scheduler, later, request_of(s->tokenizer().encode("d")));
    CHECK(later.end().reason == StopReason::end_of_generation);
    CHECK(later.text == rest_after('d'));
    CHECK(s->scheduler->statistics().losses == 1);
    CHECK(s->scheduler->statistics().ended_error == 1);
    faults().disarm();
}
#endif
