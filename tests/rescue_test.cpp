// A device that is lost while run or chat make text: it is opened again, and the text is the same.
#include "cli/command.h"
#include "support/models.h"
#include "support/program.h"
#ifdef RL_VULKAN
#include "backends/vulkan/device.h"
#include "support/vulkan_faults.h"
#endif

#include <nlohmann/json.hpp>

using namespace redline;
using namespace redline::test;

namespace {

using Json = nlohmann::json;

size_t count(const std::string& text, const std::string& part) {
    size_t found = 0;
    for (size_t at = text.find(part); at != std::string::npos; at = text.find(part, at + 1)) ++found;
    return found;
}

constexpr const char* kRescued = "was lost; it is opened again";

}  // namespace

#ifdef RL_VULKAN
namespace {

// Kept open, so that the wrapped functions stay in place; false where there is no device.
bool vulkan_is_there() {
    static const auto one = vulkan::Instance::get();
    static const bool opens = open_backend("vulkan", {}).ok();
    if (opens)
        wrap_vulkan();
    else
        MESSAGE("Vulkan is not tested: it opens no device");
    return opens;
}

// A command in this process, whose calls of Vulkan can be made to fail.
Outcome in_process(const cli::Command& what, const std::vector<std::string>& arguments,
                   const std::string& input = {}) {
    write_file(file("input"), input);
    std::fflush(nullptr);
    int kept[3];
    const std::string paths[3] = {file("input"), file("output"), file("errors")};
    for (int handle = 0; handle < 3; ++handle) {
        kept[handle] = ::dup(handle);
        const int opened =
            ::open(paths[handle].c_str(), handle == 0 ? O_RDONLY : O_WRONLY | O_CREAT | O_TRUNC, 0600);
        ::dup2(opened, handle);
        ::close(opened);
    }
    Outcome outcome;
    outcome.code = what.run(arguments);
    std::fflush(nullptr);
    for (int handle = 0; handle < 3; ++handle) {
        ::dup2(kept[handle], handle);
        ::close(kept[handle]);
    }
    outcome.out = read_file(paths[1]);
    outcome.err = read_file(paths[2]);
    return outcome;
}

// Every token of its text depends on all before.
std::vector<std::string> tiny_run() {
    return {"-m",           golden("models/llama3.gguf"),
            "--device",     "vulkan",
            "-p",           "abcdefgh",
            "-n",           "6",
            "-c",           "64",
            "--temp",       "0",
            "-ctk",         "f32",
            "--ignore-eos", "--json",
            "-b",           "4"};
}

// How many of the calls of tiny_run() can find a lost device. That depends on the time that they take: most
// when kernels are compiled first.
int64_t calls_of_run() {
    int64_t fewest = INT64_MAX;
    for (int run = 0; run < 2; ++run) {
        faults().lose({INT64_MAX});
        const Outcome got = in_process(cli::run_command, tiny_run());
        REQUIRE_MESSAGE(got.code == 0, got.err);
        fewest = std::min(fewest, INT64_MAX - faults().left());
    }
    faults().disarm();
    return fewest;
}

}  // namespace

TEST_CASE(
    "run: wherever the Vulkan device is lost, the text is the same and one line says it, or nothing is "
    "made") {
    if (!vulkan_is_there()) return;
    const Outcome unbroken = in_process(cli::run_command, tiny_run());
    REQUIRE_MESSAGE(unbroken.code == 0, unbroken.err);
    const auto alive = faults().alive();
    int rescued = 0;
    std::string struck = "none yet";
    for (int64_t after = 0; !struck.empty(); ++after) {
        faults().lose({after});
        const Outcome got = in_process(cli::run_command, tiny_run());
        struck = faults().struck();
        faults().disarm();
        CAPTURE(after);
        CAPTURE(got.err);
        CHECK(faults().alive() == alive);
        if (got.code != 0) {
            // While the model was loaded: there is nothing to go on with.
            CHECK(got.code == 1);
            CHECK(got.out.empty());
            CHECK(has(got.err, "device was lost while"));
            CHECK(rescued == 0);
            continue;
        }
        CHECK(Json::parse(got.out)["token_ids"] == Json::parse(unbroken.out)["token_ids"]);
        CHECK(count(got.err, kRescued) <= 1);
        rescued += int(count(got.err, kRescued));
    }
    // Submissions of at least three steps of the prompt and five tokens.
    CHECK(rescued >= 8);
}

TEST_CASE("run: a Vulkan device that is lost again soon after is an error") {
    if (!vulkan_is_there()) return;
    const int64_t late = calls_of_run() * 3 / 4;
    const auto alive = faults().alive();
    int again = 0, refused = 0;
    for (int64_t second = 0; again == second; ++second) {
        faults().lose({late, second});
        const Outcome got = in_process(cli::run_command, tiny_run());
        faults().disarm();
        CAPTURE(second);
        CAPTURE(got.err);
        CHECK(count(got.err, kRescued) == 1);
        CHECK(faults().alive() == alive);
        if (got.code == 0) continue;
        ++again;
        CHECK(got.code == 1);
        CHECK(got.out.empty());
        CHECK(has(got.err, "device was lost while"));
        refused += int(count(got.err, "opened again just before"));
    }
    CHECK(again >= 3);
    CHECK(refused >= 1);
}

TEST_CASE("run: a Vulkan device that cannot be opened again is an error that says both") {
    if (!vulkan_is_there()) return;
    const int64_t late = calls_of_run() * 3 / 4;
    const auto alive = faults().alive();
    faults().arm("", late, VK_ERROR_DEVICE_LOST, true);
    const Outcome got = in_process(cli::run_command, tiny_run());
    faults().disarm();
    CAPTURE(got.err);
    CHECK(got.code == 1);
    CHECK(has(got.err, "device was lost while"));
    CHECK(has(got.err, "opening it again: opening "));
    CHECK(faults().alive() == alive);
}

TEST_CASE("chat: turns go on after a lost Vulkan device") {
    if (!vulkan_is_there()) return;
    const std::vector<std::string> talk = {"-m",     chat_model(), "--device", "vulkan",
                                           "--temp", "0",          "-n",       "3"};
    const std::string input = "hello\nagain\nand again\n";
    const Outcome unbroken = in_process(cli::chat_command, talk, input);
    REQUIRE_MESSAGE(unbroken.code == 0, unbroken.err);
    size_t rescued = 0;
    std::string struck = "none yet";
    for (int64_t after = 0; !struck.empty(); after += 3) {
        faults().lose({after});
        const Outcome got = in_process(cli::chat_command, talk, input);
        struck = faults().struck();
        faults().disarm();
        CAPTURE(after);
        CAPTURE(got.err);
        const size_t here = count(got.err, kRescued);
        CHECK(here <= 1);
        rescued += here;
        // Not while the model was loaded.
        if (got.code != 0) CHECK(rescued == 0);
        if (got.code == 0) CHECK(got.out == unbroken.out);
    }
    CHECK(rescued >= 3);
}
#endif

// The double of HIP's runtime, where the tests have one.
TEST_CASE("run: a lost HIP device is opened again") {
    const Result<std::unique_ptr<Backend>> hip = open_backend("hip", {});
    if (!hip || hip.value()->device().detail.find("gfxhost") == std::string::npos) {
        MESSAGE("HIP is not tested: its test double is not there");
        return;
    }
    const auto run = [](const std::string& fail) {
        Launch what =
            command({"run", "-m", golden("models/llama3.gguf"), "--device", "hip", "-p", "abcdefgh", "-n",
                     "6", "-c", "64", "--temp", "0", "-ctk", "f32", "--ignore-eos", "--json"});
        what.environment = {"RL_HIP_DOUBLE_FAIL=" + fail};
        return launch(what);
    };
    const Outcome unbroken = run("");
    REQUIRE_MESSAGE(unbroken.code == 0, unbroken.err);
    int rescued = 0;
    for (int call = 1; call < 40; ++call) {
        const Outcome got = run(fmt::format("hipStreamSynchronize {} 719", call));
        CAPTURE(call);
        CAPTURE(got.err);
        if (got.code != 0) {
            CHECK(has(got.err, "was lost while"));
            CHECK(rescued == 0);
            continue;
        }
        CHECK(Json::parse(got.out)["token_ids"] == Json::parse(unbroken.out)["token_ids"]);
        CHECK(count(got.err, kRescued) <= 1);
        rescued += int(count(got.err, kRescued));
    }
    CHECK(rescued >= 6);
}
