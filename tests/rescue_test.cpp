// A device that is lost while run or chat make text: it is opened again, and the text is the same.
#include "cli/command.h"
#include "support/backends.h"
#include "support/models.h"
#include "support/program.h"
#ifdef RL_VULKAN
#include "backends/vulkan/runtime/device.h"
#include "support/vulkan_faults.h"
#endif

#include <nlohmann/json.hpp>

#include <chrono>
#include <functional>

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
    static const bool opens = open_wanted("vulkan") != nullptr;
    if (opens) wrap_vulkan();
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

// The plan is said when the model is loaded and a lost device is going to be opened again.
constexpr const char* kPlan = "plan: ";

bool has_loaded() {
    return has(read_file(file("errors")), kPlan);
}

// A run that nothing happens to.
struct Unbroken {
    Outcome outcome;
    int64_t calls;  // that could find a lost device, about: submissions go by the time that they take
    double seconds;
};

Unbroken unbroken(const cli::Command& what, const std::vector<std::string>& arguments,
                  const std::string& input = {}) {
    Unbroken run = {};
    // The first may compile kernels.
    for (int turn = 0; turn < 2; ++turn) {
        faults().lose({INT64_MAX});
        const auto begin = std::chrono::steady_clock::now();
        run.outcome = in_process(what, arguments, input);
        run.seconds = std::chrono::duration<double>(std::chrono::steady_clock::now() - begin).count();
        run.calls = INT64_MAX - faults().left();
        faults().disarm();
        REQUIRE_MESSAGE(run.outcome.code == 0, run.outcome.err);
    }
    return run;
}

// Of how many calls one is struck, so that a case takes about so many seconds at most: each strike is a run
// that opens a device twice.
int64_t stride(const Unbroken& run, double seconds) {
    const auto step = int64_t(2.0 * run.seconds * double(run.calls) / seconds) + 1;
    if (step > 1)
        MESSAGE("a run takes ", run.seconds, " s here: one of ", step, " calls is struck, of about ",
                run.calls);
    return step;
}

// Whether a run was rescued whose device was lost at most once. A loss that nobody met while the model was
// loaded or the text made came when the device was closed.
bool check_loss(const Outcome& got, const std::string& struck, bool same) {
    CAPTURE(struck);
    CAPTURE(got.err);
    const size_t rescues = count(got.err, kRescued);
    if (!has(got.err, kPlan)) {
        // There is nothing to go on with.
        CHECK(got.code == 1);
        CHECK(got.out.empty());
        CHECK(has(got.err, "device was lost while"));
        CHECK(rescues == 0);
        return false;
    }
    CHECK(got.code == 0);
    CHECK(same);
    const bool met = !struck.empty() && struck != "vkDeviceWaitIdle";
    CHECK(rescues == (met ? 1 : 0));
    return rescues > 0;
}

// Loses the device at one call after the other, until a run has none left; the number of rescues.
int64_t lose_everywhere(const Unbroken& run, int64_t step, const cli::Command& what,
                        const std::vector<std::string>& arguments, const std::string& input,
                        const std::function<bool(const Outcome&)>& same) {
    const auto alive = faults().alive();
    int64_t rescued = 0;
    std::string struck = "none yet";
    for (int64_t after = 0; !struck.empty(); after += step) {
        REQUIRE(after < 10 * run.calls);
        faults().lose({after});
        const Outcome got = in_process(what, arguments, input);
        struck = faults().struck();
        faults().disarm();
        CAPTURE(after);
        rescued += int64_t(check_loss(got, struck, got.code == 0 && same(got)));
        CHECK(faults().alive() == alive);
    }
    return rescued;
}

// In the middle of eight steps that each have a submission and a wait at least.
constexpr int64_t kMiddle = 8;

}  // namespace

TEST_CASE(
    "run: wherever the Vulkan device is lost, the text is the same and one line says it, or nothing is "
    "made") {
    if (!vulkan_is_there()) return;
    const Unbroken run = unbroken(cli::run_command, tiny_run());
    const auto ids = [](const Outcome& got) { return Json::parse(got.out)["token_ids"]; };
    const int64_t step = stride(run, 40.0);
    const int64_t rescued = lose_everywhere(run, step, cli::run_command, tiny_run(), {},
                                            [&](const Outcome& got) { return ids(got) == ids(run.outcome); });
    // Submissions of at least three steps of the prompt and five tokens.
    CHECK(rescued * step >= 8);
}

TEST_CASE("run: a Vulkan device that is lost again soon after is an error") {
    if (!vulkan_is_there()) return;
    const Unbroken run = unbroken(cli::run_command, tiny_run());
    const auto alive = faults().alive();
    // However slow: one that comes after the tokens were read again must be among them.
    const int64_t step = std::min<int64_t>(stride(run, 20.0), 4);
    int64_t again = 0, refused = 0;
    bool broken = true;
    for (int64_t second = 0; broken; second += step) {
        REQUIRE(second < 10 * run.calls);
        faults().lose({kMiddle, second});
        faults().count_from(has_loaded);
        const Outcome got = in_process(cli::run_command, tiny_run());
        const std::vector<std::string> found = faults().found();
        faults().disarm();
        CAPTURE(second);
        CAPTURE(got.err);
        CHECK(count(got.err, kRescued) == 1);
        CHECK(faults().alive() == alive);
        REQUIRE(!found.empty());
        broken = found.size() > 1 && found[1] != "vkDeviceWaitIdle";
        CHECK(got.code == (broken ? 1 : 0));
        if (!broken) continue;
        ++again;
        CHECK(got.out.empty());
        CHECK(has(got.err, "device was lost while"));
        refused += int64_t(count(got.err, "opened again just before"));
    }
    CHECK(again * step >= 3);
    CHECK(refused >= 1);
}

TEST_CASE("run: a Vulkan device that cannot be opened again is an error that says both") {
    if (!vulkan_is_there()) return;
    unbroken(cli::run_command, tiny_run());
    const auto alive = faults().alive();
    faults().arm("", kMiddle, VK_ERROR_DEVICE_LOST, true);
    faults().count_from(has_loaded);
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
    const Unbroken run = unbroken(cli::chat_command, talk, input);
    const int64_t step = stride(run, 30.0);
    const int64_t rescued = lose_everywhere(run, step, cli::chat_command, talk, input,
                                            [&](const Outcome& got) { return got.out == run.outcome.out; });
    // Of three turns.
    CHECK(rescued * step >= 3);
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
