// Every Vulkan call may fail: what is said then, what is left behind, and that the next try works.
#ifdef RL_VULKAN
#include "backends/vulkan/vulkan_backend.h"
#include "devices/device_choice.h"
#include "host/split.h"
#include "support/backends.h"
#include "support/material.h"
#include "support/models.h"
#include "support/share.h"
#include "support/vulkan_faults.h"

#include <filesystem>
#include <sstream>

using namespace redline;
using namespace redline::test;

namespace {

// Kept open, so that the wrapped functions stay in place; null where there is no device.
std::shared_ptr<vulkan::Instance> instance() {
    static const auto one = vulkan::Instance::get();
    static const bool opens = open_wanted("vulkan") != nullptr;
    if (!opens) return nullptr;
    wrap_vulkan();
    return one.value();
}

const SessionOptions kOptions = {64, 16, 16};

// A tiny model from file to logits, and one token more, which may be traced; closes what it opened.
Result<std::vector<float>> load_and_run(Backend& backend, bool traced = false) {
    const Model model = RL_TRY(Model::load(golden("models/llama3.gguf"), backend, {64, {}}));
    Session session = RL_TRY(Session::create(model, kOptions));
    RL_TRY(session.feed(golden_tokens()));
    const std::vector<Token> last = {golden_tokens()[0]};
    RL_TRY(traced ? session.feed_traced(last, [](const TraceStep&) {}) : session.feed(last));
    return std::vector<float>(session.logits().begin(), session.logits().end());
}

BackendOptions with_cache(const std::string& folder) {
    BackendOptions options;
    options.cache_folder = folder;
    return options;
}

// All of it: the device opened and closed as well.
Result<std::vector<float>> open_and_run(const std::string& folder) {
    const auto backend = RL_TRY(vulkan::open_vulkan_backend(with_cache(folder)));
    return load_and_run(*backend, true);
}

// A failure here costs time or memory, no more, or another way is found.
bool may_fail_quietly(const std::string& call) {
    for (const char* const one : {"vkCreatePipelineCache", "vkGetPipelineCacheData", "vkDeviceWaitIdle",
                                  "vkAllocateMemory", "vkMapMemory"})
        if (call == one) return true;
    return false;
}

struct Folder {
    std::string path = std::filesystem::temp_directory_path() / "redline_vulkan_failure_test";
    Folder() { std::filesystem::remove_all(path); }
    ~Folder() { std::filesystem::remove_all(path); }
};

void check_message(const Error& error, const std::string& call, VkResult result) {
    CAPTURE(call);
    CAPTURE(error.message);
    CHECK(error.message.size() > 20);
    // The memory allocator has one name for all that went wrong.
    const bool says = error.message.find(vulkan::result_name(result)) != std::string::npos ||
                      error.message.find("cannot allocate") != std::string::npos;
    CHECK(says);
}

}  // namespace

// The last layer on the device, through which the weights of the first flow for many tokens.
static Result<std::vector<float>> load_and_stream(Backend& backend) {
    static const std::unique_ptr<Backend> cpu = must(open_backend("cpu", {.threads = 1}));
    const Model model = RL_TRY(Model::inspect(golden("models/llama3.gguf"), kOptions.context));
    SessionOptions options = kOptions;
    options.placements = RL_TRY(split_model(model, options, {cpu.get(), {&backend}}, {1})).placements;
    options.stream_rows = 4;
    Session session = RL_TRY(Session::create(model, options));
    RL_TRY(session.feed(golden_tokens()));
    return std::vector<float>(session.logits().begin(), session.logits().end());
}

using LoadAndRun = std::function<Result<std::vector<float>>(Backend&)>;

static void check_every_call(bool always_stage, const LoadAndRun& load_and_run) {
    if (!instance()) return;
    auto backend = vulkan::open_vulkan_backend({});
    if (!backend) RL_SKIP("there is no Vulkan device with what this needs");
    (*backend)->memory().always_stage = always_stage;
    const std::vector<float> want = must(load_and_run(**backend));
    const auto alive = faults().alive();
    const uint64_t allocated = (*backend)->memory().allocated();
    const Share share = share_of_cases();
    for (int64_t after = 0;; ++after) {
        if (!share.takes(size_t(after))) continue;
        faults().arm("", after, VK_ERROR_OUT_OF_DEVICE_MEMORY, false);
        const auto got = load_and_run(**backend);
        const std::string struck = faults().struck();
        faults().disarm();
        CAPTURE(after);
        CAPTURE(struck);
        if (!got)
            check_message(got.error(), struck, VK_ERROR_OUT_OF_DEVICE_MEMORY);
        else {
            CHECK((struck.empty() || may_fail_quietly(struck)));
            CHECK(got.value() == want);
        }
        CHECK(faults().alive() == alive);
        CHECK((*backend)->memory().allocated() == allocated);
        if (struck.empty()) {
            CHECK(after > 100);
            break;
        }
    }
    CHECK(must(load_and_run(**backend)) == want);
}

TEST_CASE("vulkan: a call that fails on an open device is an error, and leaves nothing behind") {
    check_every_call(false, [](Backend& backend) { return load_and_run(backend); });
}

TEST_CASE("vulkan: a call that fails while weights are staged is an error, and leaves nothing behind") {
    check_every_call(true, [](Backend& backend) { return load_and_run(backend); });
}

TEST_CASE("vulkan: a call that fails while weights flow through the device leaves nothing behind") {
    check_every_call(false, load_and_stream);
}

TEST_CASE(
    "vulkan: a call that fails while a session is saved or restored is an error, and the next try works") {
    if (!instance()) return;
    auto backend = vulkan::open_vulkan_backend({});
    if (!backend) RL_SKIP("there is no Vulkan device with what this needs");
    const Folder folder;
    std::filesystem::create_directories(folder.path);
    const std::string sound = folder.path + "/sound", broken = folder.path + "/broken";
    const Model model = must(Model::load(golden("models/llama3.gguf"), **backend, {64, {}}));
    Session session = must(Session::create(model, kOptions));
    const std::vector<Token> tokens = golden_tokens(), three(tokens.begin(), tokens.begin() + 3);
    must(session.feed(three));
    must(session.save(sound));
    const std::string want = read_file(sound);
    const auto logits_after = [&] {
        must(session.feed(std::span(tokens).subspan(3, 1)));
        const std::vector<float> out(session.logits().begin(), session.logits().end());
        session.rewind(3);
        return out;
    };
    const std::vector<float> logits = logits_after();
    const auto alive = faults().alive();
    const uint64_t allocated = (*backend)->memory().allocated();
    for (const bool saves : {true, false})
        for (int64_t after = 0;; ++after) {
            faults().arm("", after, VK_ERROR_OUT_OF_DEVICE_MEMORY, false);
            const Status done = saves ? session.save(broken) : session.restore(sound);
            const std::string struck = faults().struck();
            faults().disarm();
            CAPTURE(saves);
            CAPTURE(after);
            CAPTURE(struck);
            CHECK(done.ok() == struck.empty());
            if (!done) check_message(done.error(), struck, VK_ERROR_OUT_OF_DEVICE_MEMORY);
            CHECK(std::filesystem::exists(broken) == (!saves || done.ok()));
            // One that was read in part is as good as none.
            CHECK(session.position() == (saves || done.ok() ? 3 : 0));
            CHECK(faults().alive() == alive);
            CHECK((*backend)->memory().allocated() == allocated);
            must(saves ? session.save(folder.path + "/again") : session.restore(sound));
            CHECK(read_file(folder.path + "/again") == want);
            CHECK(logits_after() == logits);
            if (!struck.empty()) continue;
            CHECK(after > 10);  // two layers of which each is one copy
            break;
        }
}

TEST_CASE("vulkan: each kind of call may fail while a device is opened, used and closed") {
    if (!instance()) return;
    const Folder folder;
    const auto first = open_and_run(folder.path);
    if (!first) return;
    faults().forget_calls();
    const std::vector<float> want = must(open_and_run(folder.path));
    const auto calls = faults().calls();
    const auto alive = faults().alive();
    CHECK(alive.empty());
    CHECK(calls.size() > 20);
    const Share share = share_of_cases();
    size_t index = 0;
    for (const auto& [call, count] : calls)
        for (const int64_t after : {int64_t(0), count / 2, count - 1})
            for (const bool forever : {false, true}) {
                if (forever && !may_fail_quietly(call)) continue;  // as the single failure
                if (!share.takes(index++)) continue;
                faults().arm(call, after, VK_ERROR_OUT_OF_HOST_MEMORY, forever);
                const auto got = open_and_run(folder.path);
                const std::string struck = faults().struck();
                faults().disarm();
                CAPTURE(call);
                CAPTURE(after);
                CAPTURE(forever);
                // The number of submissions depends on the time that they take.
                CHECK((struck == call || after > 0));
                if (!got)
                    check_message(got.error(), struck, VK_ERROR_OUT_OF_HOST_MEMORY);
                else {
                    CHECK((struck.empty() || may_fail_quietly(struck)));
                    CHECK(got.value() == want);
                }
                CHECK(faults().alive() == alive);
            }
    CHECK(must(open_and_run(folder.path)) == want);
}

TEST_CASE("vulkan: a device lost anywhere is said to be, and opened again it goes on from where it was") {
    if (!instance()) return;
    auto unbroken = vulkan::open_vulkan_backend({});
    if (!unbroken) return;
    const std::vector<Token> tokens = golden_tokens();
    const auto half = std::span(tokens).first(tokens.size() / 2);
    const auto rest = std::span(tokens).subspan(tokens.size() / 2);
    const Model sound = must(Model::load(golden("models/llama3.gguf"), **unbroken, {64, {}}));
    const auto logits_of = [&](const Model& model, size_t read) {
        Session session = must(Session::create(model, kOptions));
        must(session.feed(std::span(tokens).first(read)));
        if (read < tokens.size()) must(session.feed(std::span(tokens).subspan(read)));
        return std::vector<float>(session.logits().begin(), session.logits().end());
    };
    std::vector<std::vector<float>> want;  // by the tokens behind half of them that the first step reads
    for (size_t read = half.size(); read <= tokens.size(); ++read) want.push_back(logits_of(sound, read));
    const auto alive = faults().alive();
    int lost = 0;
    for (int64_t after = 0; lost == after; ++after) {
        std::vector<Token> read;
        {
            const auto backend = must(vulkan::open_vulkan_backend({}));
            const Model model = must(Model::load(golden("models/llama3.gguf"), *backend, {64, {}}));
            Session session = must(Session::create(model, kOptions));
            must(session.feed(half));
            faults().arm("", after, VK_ERROR_DEVICE_LOST, true);
            const Status status = session.feed(rest);
            if (!status) {
                ++lost;
                CAPTURE(after);
                CAPTURE(status.error().message);
                CHECK(status.error().message.find("device was lost while") != std::string::npos);
                CHECK(status.error().message.find("--batch-size") != std::string::npos);
                CHECK(backend->opened().lost());
                CHECK(session.position() >= half.size());
                // Requests to a lost device are errors meanwhile, too.
                CHECK_FALSE(session.feed(rest));
            }
            read = session.tokens();
        }
        faults().disarm();
        CHECK(faults().alive() == alive);
        const auto again = must(vulkan::open_vulkan_backend({}));
        const Model model = must(Model::load(golden("models/llama3.gguf"), *again, {64, {}}));
        REQUIRE(std::ranges::equal(read, std::span(tokens).first(read.size())));
        CHECK(logits_of(model, read.size()) == want[read.size() - half.size()]);
    }
    CHECK(lost >= 2);
}
#endif
