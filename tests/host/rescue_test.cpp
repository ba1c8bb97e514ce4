// A device that is lost while run or chat make text: it is opened again, and the text is the same.
#include "cli/command.h"
#include "json/json.h"
#include "support/backends.h"
#include "support/models.h"
#include "support/program.h"
#ifdef RL_VULKAN
#include "backends/vulkan/runtime/device.h"
#include "support/vulkan_faults.h"
#endif

#include <chrono>
#include <functional>

using namespace redline;
using namespace redline::test;

namespace {

size_t count(const std::string& text, const std::string& part) {
    size_t found = 0;
    for (size_t at = text.find(part); at != std::string::npos; at = text.find(part, at + 1)) ++found;
    return found;
}

constexpr const char* kRescued = "was lost; it is opened again";

// Every token of its text depends on all before.
std::vector<std::string> tiny_run(const std::string& device) {
    return {"-m",
            golden("models/llama3.gguf"),
            "--device",
            device,
            "-p",
            "abcdefgh",
            "-n",
            "6",
            "-c",
            "64",
            "--temp",
            "0",
            "--cache-type",
            "f32",
            "--ignore-eos",
            "--json",
            "-v",
            "-b",
            "4"};
}

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

// The seed is said when the session is open and a lost device is going to be opened again.
constexpr const char* kOpen = "seed ";

bool has_loaded() {
    return has(read_file(file("errors")), kOpen);
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

// The distance between the calls that are struck, so that a case takes about so many seconds at most: each
// strike is a run that opens a device twice.
int64_t stride(const Unbroken& run, double seconds) {
    const auto step = int64_t(2.0 * run.seconds * double(run.calls) / seconds) + 1;
    if (step > 1)
        MESSAGE("a run takes ", run.seconds, " s here: one of ", step, " calls is struck, of about ",
                run.calls);
    return step;
}

// True when a run was rescued whose device was lost at most once. A loss that neither loading nor generating
// met came while the device was closed.
bool check_loss(const Outcome& got, const std::string& struck, bool same) {
    CAPTURE(struck);
    CAPTURE(got.err);
    const size_t rescues = count(got.err, kRescued);
    if (!has(got.err, kOpen)) {
        // There is nothing to go on with; 3: it was lost while it was opened.
        CHECK((got.code == 1 || got.code == 3));
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
    if (!vulkan_is_there()) RL_SKIP("there is no Vulkan device");
    const Unbroken run = unbroken(cli::run_command, tiny_run("vulkan"));
    const auto ids = [](const Outcome& got) { return parse_json(got.out)["token_ids"]; };
    const int64_t step = stride(run, 20.0);
    const int64_t rescued = lose_everywhere(run, step, cli::run_command, tiny_run("vulkan"), {},
                                            [&](const Outcome& got) { return ids(got) == ids(run.outcome); });
    // Submissions of at least three steps of the prompt and five tokens.
    CHECK(rescued * step >= 8);
}

TEST_CASE("run: a Vulkan device that is lost again soon after is an error") {
    if (!vulkan_is_there()) RL_SKIP("there is no Vulkan device");
    const Unbroken run = unbroken(cli::run_command, tiny_run("vulkan"));
    const auto alive = faults().alive();
    // However slow: one that comes after the tokens were read again must be among them.
    const int64_t step = std::min<int64_t>(stride(run, 10.0), 4);
    int64_t again = 0, refused = 0;
    bool broken = true;
    for (int64_t second = 0; broken; second += step) {
        REQUIRE(second < 10 * run.calls);
        faults().lose({kMiddle, second});
        faults().count_from(has_loaded);
        const Outcome got = in_process(cli::run_command, tiny_run("vulkan"));
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
    if (!vulkan_is_there()) RL_SKIP("there is no Vulkan device");
    unbroken(cli::run_command, tiny_run("vulkan"));
    const auto alive = faults().alive();
    faults().arm("", kMiddle, VK_ERROR_DEVICE_LOST, true);
    faults().count_from(has_loaded);
    const Outcome got = in_process(cli::run_command, tiny_run("vulkan"));
    faults().disarm();
    CAPTURE(got.err);
    CHECK(got.code == 1);
    CHECK(has(got.err, "device was lost while"));
    CHECK(has(got.err, "opening it again: opening "));
    CHECK(faults().alive() == alive);
}

TEST_CASE("chat: turns go on after a lost Vulkan device") {
    if (!vulkan_is_there()) RL_SKIP("there is no Vulkan device");
    const std::vector<std::string> talk = {"-m", chat_model(), "--device", "vulkan", "--temp",
                                           "0",  "-n",         "3",        "-v"};
    const std::string input = "hello\nagain\nand again\n";
    const Unbroken run = unbroken(cli::chat_command, talk, input);
    const int64_t step = stride(run, 15.0);
    const int64_t rescued = lose_everywhere(run, step, cli::chat_command, talk, input,
                                            [&](const Outcome& got) { return got.out == run.outcome.out; });
    // There are three turns.
    CHECK(rescued * step >= 3);
}
#endif

namespace {

// The double of HIP's runtime, whose calls fail when the environment says so.
bool hip_double_is_there() {
    static const bool there = [] {
        const std::unique_ptr<Backend> hip = open_wanted("hip");
        const bool is_double = hip && hip->device().detail.find("gfxhost") != std::string::npos;
        if (hip && !is_double) not_tested("losses of a HIP device: only the test double can be made to");
        return is_double;
    }();
    return there;
}

Outcome on_hip(const std::vector<std::string>& arguments, const std::string& fail,
               const std::string& input = {}) {
    Launch what = command(arguments);
    what.environment = {"RL_HIP_DOUBLE_FAIL=" + fail};
    what.input = input;
    return launch(what);
}

std::vector<std::string> hip_run() {
    std::vector<std::string> arguments = tiny_run("hip");
    arguments.insert(arguments.begin(), "run");
    return arguments;
}

std::string lost_at(const char* function, int call) {
    return fmt::format("{} {} 719 ", function, call);
}

// Loses the device at one of `step` calls of each function, until a run has none left; the number of rescues.
int lose_on_hip(const std::vector<std::string>& arguments, const std::string& input, int step,
                const std::function<bool(const Outcome&)>& same) {
    int rescued = 0;
    for (const char* function : {"hipStreamSynchronize", "hipGraphLaunch", "hipMemcpyDtoHAsync"})
        for (int call = 1;; call += step) {
            REQUIRE(call < 60 + step);
            const Outcome got = on_hip(arguments, lost_at(function, call), input);
            CAPTURE(function);
            CAPTURE(call);
            CAPTURE(got.err);
            if (got.code != 0) {
                // While the model was loaded: there is nothing to go on with.
                CHECK(has(got.err, "was lost while"));
                CHECK(count(got.err, kRescued) == 0);
                continue;
            }
            CHECK(same(got));
            if (count(got.err, kRescued) == 0) break;
            CHECK(count(got.err, kRescued) == 1);
            ++rescued;
        }
    return rescued;
}

}  // namespace

TEST_CASE("run: wherever a HIP device is lost, the text is the same and one line says it") {
    if (!hip_double_is_there()) RL_SKIP("HIP's double is not what runs here");
    const auto ids = [](const Outcome& got) { return parse_json(got.out)["token_ids"]; };
    const Outcome unbroken = on_hip(hip_run(), "");
    REQUIRE_MESSAGE(unbroken.code == 0, unbroken.err);
    CHECK(lose_on_hip(hip_run(), {}, 1, [&](const Outcome& got) { return ids(got) == ids(unbroken); }) >= 12);
}

TEST_CASE("run, chat: a split model goes on after a lost HIP device, wherever that was") {
    if (!hip_double_is_there()) RL_SKIP("HIP's double is not what runs here");
    const auto ids = [](const Outcome& got) { return parse_json(got.out)["token_ids"]; };
    std::vector<std::string> split = hip_run();
    split.insert(split.end(), {"-ngl", "1"});
    const Outcome unbroken = on_hip(split, "");
    REQUIRE_MESSAGE(unbroken.code == 0, unbroken.err);
    CHECK(has(unbroken.err, "plan: 1/2 layers on hip"));
    CHECK(lose_on_hip(split, {}, 1, [&](const Outcome& got) { return ids(got) == ids(unbroken); }) >= 12);

    const std::vector<std::string> talk = {"chat", "-m",     chat_model(), "--device", "hip", "-ngl",
                                           "1",    "--temp", "0",          "-n",       "3",   "-v"};
    const std::string input = "hello\nagain\nand again\n";
    const Outcome whole = on_hip(talk, "", input);
    REQUIRE_MESSAGE(whole.code == 0, whole.err);
    const auto same = [&](const Outcome& got) { return got.out == whole.out; };
    CHECK(lose_on_hip(talk, input, 3, same) >= 4);

    // One that cannot be opened again is an error that says both.
    Outcome shut;
    for (int stream = 2; stream < 100 && count(shut.err, kRescued) == 0; ++stream)
        shut = on_hip(
            split, lost_at("hipStreamSynchronize", 5) + fmt::format("hipStreamCreateWithFlags {} 2", stream));
    CAPTURE(shut.err);
    CHECK(shut.code == 1);
    CHECK(has(shut.err, "opening it again: "));
}

TEST_CASE("chat: turns go on after a lost HIP device") {
    if (!hip_double_is_there()) RL_SKIP("HIP's double is not what runs here");
    const std::vector<std::string> talk = {"chat",   "-m", chat_model(), "--device", "hip",
                                           "--temp", "0",  "-n",         "3",        "-v"};
    const std::string input = "hello\nagain\nand again\n";
    const Outcome unbroken = on_hip(talk, "", input);
    REQUIRE_MESSAGE(unbroken.code == 0, unbroken.err);
    const auto same = [&](const Outcome& got) { return got.out == unbroken.out; };
    CHECK(lose_on_hip(talk, input, 3, same) >= 4);
}

TEST_CASE("run: a HIP device that is lost again soon after, or cannot be opened again, is an error") {
    if (!hip_double_is_there()) RL_SKIP("HIP's double is not what runs here");
    // In the middle of eight steps, behind the wait for the weights.
    constexpr int kCall = 5;
    int refused = 0;
    for (int later = 1; later < 9; ++later) {
        const Outcome got = on_hip(hip_run(), lost_at("hipStreamSynchronize", kCall) +
                                                  lost_at("hipStreamSynchronize", kCall + later));
        CAPTURE(later);
        CAPTURE(got.err);
        CHECK(count(got.err, kRescued) == 1);
        if (got.code == 0) continue;  // it came while the lost device was closed
        CHECK(got.code == 1);
        CHECK(got.out.empty());
        CHECK(has(got.err, "was lost while"));
        refused += int(count(got.err, "opened again just before"));
    }
    CHECK(refused >= 1);
    // Streams are made by the device and by those who load; the first that fails after the loss.
    Outcome shut;
    for (int stream = 2; stream < 100 && count(shut.err, kRescued) == 0; ++stream)
        shut = on_hip(hip_run(), lost_at("hipStreamSynchronize", kCall) +
                                     fmt::format("hipStreamCreateWithFlags {} 2", stream));
    CAPTURE(shut.err);
    CHECK(shut.code == 1);
    CHECK(has(shut.err, "was lost while"));
    CHECK(has(shut.err, "opening it again: "));
}
