// Lists of devices, as users give them: texts are those of one device, and what is wrong is one line.
#include "json/json.h"
#include "support/models.h"
#include "support/program.h"

#include <algorithm>
#include <cstdlib>

using namespace redline;
using namespace redline::test;

namespace {

constexpr const char* kPrompt = "abcdefghijklmnopqrstuvwxyzabcdefghijklmnop";

// A model whose every token depends on all before, with a prompt of several chunks.
std::vector<std::string> run_on(const std::string& devices, const std::string& model = "llama3",
                                const std::vector<std::string>& more = {}) {
    std::vector<std::string> arguments = {"run",
                                          "-m",
                                          golden("models/" + model + ".gguf"),
                                          "--device",
                                          devices,
                                          "-p",
                                          kPrompt,
                                          "-n",
                                          "8",
                                          "-c",
                                          "128",
                                          "--temp",
                                          "0",
                                          "--cache-type",
                                          "f32",
                                          "--ignore-eos",
                                          "--json",
                                          "-v",
                                          "-b",
                                          "8",
                                          "-t",
                                          "2",
                                          "--raw"};
    arguments.insert(arguments.end(), more.begin(), more.end());
    return arguments;
}

Json answer(const Outcome& got) {
    REQUIRE_MESSAGE(got.code == 0, got.err);
    return parse_json(got.out);
}

// "vulkan:0,vulkan:0": the first device of each kind, twice.
std::vector<std::string> twice() {
    std::vector<std::string> lists;
    for (const std::string& name : device_names()) {
        const std::string one = name == "cpu" || name.find(':') != std::string::npos ? name : name + ":0";
        lists.push_back(one + "," + one);
    }
    return lists;
}

std::string first_of(const std::string& list) {
    return list.substr(0, list.find(','));
}

}  // namespace

TEST_CASE("device list: a text over one device twice is that of it alone, and a note says what it is") {
    for (const std::string& list : twice())
        for (const std::string model : {"llama3", "qwen35"}) {
            INFO(list, " with ", model);
            const Outcome alone = redline_(run_on(first_of(list), model)),
                          both = redline_(run_on(list, model));
            const Json want = answer(alone), got = answer(both);
            CHECK(got["text"] == want["text"]);
            CHECK(has(both.err, "these are one device"));
            CHECK(has(both.err, " layers on " + first_of(list) + " ("));
            CHECK(has(both.err, "crossings of a token: 1 KiB from " + first_of(list)));
            REQUIRE(got["device"]["list"].size() == 2);
            CHECK(got["device"]["list"][0]["layers"] == got["device"]["list"][1]["layers"]);
            CHECK(got["device"]["list"][1]["id"] == first_of(list) + " (2)");
        }
}

TEST_CASE("device list: a GPU and the CPU share layers, in any order") {
    for (const std::string& name : device_names()) {
        if (name == "cpu") continue;
        const std::string gpu = name.find(':') != std::string::npos ? name : name + ":0";
        for (const std::string& list : {gpu + ",cpu", "cpu," + gpu}) {
            INFO(list);
            const Outcome got = redline_(run_on(list, "llama3", {"-ts", "1,1"}));
            CHECK(answer(got)["text"] == answer(redline_(run_on("cpu")))["text"]);
            CHECK(has(got.err, " layers on "));
        }
    }
}

TEST_CASE("device list: shares go as they are given, and info shows them and what crosses") {
    const auto info = [](const std::vector<std::string>& more) {
        std::vector<std::string> arguments = {"info", golden("models/llama3.gguf"), "--json"};
        arguments.insert(arguments.end(), more.begin(), more.end());
        return answer(redline_(arguments));
    };
    const Json memory = info({"--device", "cpu,cpu"})["memory"];
    CHECK(memory["device"] == "cpu, cpu (2)");
    CHECK(memory["fits"] == true);
    const Json& split = memory["split"];
    REQUIRE(split["places"].size() == 2);
    CHECK(split["places"][0]["layers"] == 1);
    CHECK(split["places"][1]["id"] == "cpu (2)");
    REQUIRE(split["crossings"].size() == 1);
    CHECK(split["crossings"][0]["bytes_per_token"].get<uint64_t>() > 0);
    CHECK(split["device_layers"] == 2);
    const Json uneven = info({"--device", "cpu,cpu,cpu", "-ts", "2,0,1"})["memory"]["split"];
    CHECK(uneven["places"].size() == 2);
    CHECK(has(redline_({"info", golden("models/llama3.gguf"), "--device", "cpu,cpu"}).out,
              "run splits it: 1/2 layers on cpu, 1 on cpu (2); crossings of a token: "));
}

TEST_CASE("device list: what cannot be is one line with the way out") {
    const auto refused = [](const std::string& devices, const std::vector<std::string>& more, int code) {
        const Outcome got = redline_(run_on(devices, "llama3", more));
        CHECK(got.code == code);
        CHECK(got.out.empty());
        return got.err;
    };
    CHECK(has(refused("cpu,nowhere", {}, 3), "no device is called nowhere"));
    CHECK(has(refused("cpu,cpu", {"-ts", "1"}, 2), "1 share for the 2 devices of --device cpu,cpu"));
    CHECK(has(refused("cpu,cpu", {"--mem-budget", "1M"}, 1), "fit"));
    for (const char* command : {"verify", "tune", "imatrix"}) {
        std::vector<std::string> arguments = {command, "-m", golden("models/llama3.gguf"), "--device",
                                              "cpu,cpu"};
        if (command == std::string("imatrix")) arguments.insert(arguments.end(), {"-f", "/dev/null"});
        const Outcome got = redline_(arguments);
        CHECK(got.code == 2);
        CHECK(has(got.err, fmt::format("redline {} computes on one device", command)));
    }
}

// The calls of HIP's double, on either of its two devices. A device that is lost is opened again.
TEST_CASE("device list: a call that fails on one of two devices is one error line, or the text is the same") {
    const std::vector<std::string>& names = device_names();
    if (std::ranges::count(names, "hip") == 0 || !std::getenv("RL_HIP_DOUBLE_ARCH"))
        return not_tested("failing calls on two devices: HIP's double is not here");
    ::setenv("RL_HIP_DOUBLE_COUNT", "2", 1);
    const std::vector<std::string> arguments =
        run_on("hip:0,hip:1", "llama3", {"--no-self-test", "--no-tune"});
    const Json want = answer(redline_(arguments))["text"];
    struct Fault {
        const char* function;
        int code;
    };
    size_t failed = 0, rescued = 0;
    for (const Fault& fault :
         {Fault{"hipMalloc", 2}, Fault{"hipHostMalloc", 2}, Fault{"hipMemcpyHtoDAsync", 1},
          Fault{"hipMemcpyDtoHAsync", 719}, Fault{"hipMemcpyDtoHAsync", 1},
          Fault{"hipStreamSynchronize", 719}, Fault{"hipStreamCreateWithFlags", 2}})
        for (const int call : {1, 2, 3, 5, 8, 13, 21, 34, 55}) {
            const std::string what = fmt::format("{} {} {}", fault.function, call, fault.code);
            CAPTURE(what);
            ::setenv("RL_HIP_DOUBLE_FAIL", what.c_str(), 1);
            const Outcome got = redline_(arguments);
            ::unsetenv("RL_HIP_DOUBLE_FAIL");
            if (got.code == 0) {
                CHECK(answer(got)["text"] == want);
                rescued += has(got.err, "was lost");
                continue;
            }
            ++failed;
            CHECK((got.code == 1 || got.code == 3));
            // Behind the lines of the plan.
            const std::string last = got.err.substr(got.err.find("redline: "));
            CHECK_MESSAGE(std::ranges::count(last, '\n') == 1, got.err);
        }
    ::unsetenv("RL_HIP_DOUBLE_COUNT");
    CHECK(failed > 10);
    CHECK(rescued > 0);
}

TEST_CASE("device list: uneven devices of HIP have the layers that they have room for") {
    const std::vector<std::string>& names = device_names();
    if (std::ranges::count(names, "hip") == 0 || !std::getenv("RL_HIP_DOUBLE_ARCH"))
        return not_tested("uneven devices: HIP's double is not here");
    ::setenv("RL_HIP_DOUBLE_COUNT", "2", 1);
    // The second has room for nothing beside its reserve.
    ::setenv("RL_HIP_DOUBLE_MEMORY", "8589934592,268500000", 1);
    const Outcome small = redline_(run_on("hip:0,hip:1"));
    const Outcome none = redline_(run_on("hip:1,hip:1"));
    ::setenv("RL_HIP_DOUBLE_MEMORY", "8589934592", 1);
    const Outcome all = redline_(run_on("hip", "llama3", {"-sm", "layer"}));
    ::unsetenv("RL_HIP_DOUBLE_MEMORY");
    ::unsetenv("RL_HIP_DOUBLE_COUNT");
    CHECK(small.code == 0);
    CHECK(has(small.err, "plan: 2/2 layers on hip:0"));
    CHECK(has(small.err, "hip:1 has no layer"));
    CHECK(has(none.err, "2 on cpu ("));
    CHECK(has(all.err, "plan: 1/2 layers on hip:0"));
    CHECK(has(all.err, ", 1 on hip:1 ("));
}

TEST_CASE(
    "device list: with -sm tensor each device has a part of every layer, and the text is the same each time") {
    for (const std::string& list : twice())
        for (const std::string model : {"llama3", "qwen35", "qwen3moe"}) {
            INFO(list, " with ", model);
            const auto arguments = run_on(list, model, {"-sm", "tensor"});
            const Outcome first = redline_(arguments);
            const Json got = answer(first);
            CHECK(answer(redline_(arguments))["text"] == got["text"]);
            CHECK(has(first.err, " layers over " + first_of(list) + " ("));
            CHECK(has(first.err, "sums of a token: "));
            REQUIRE(got["device"]["list"].size() == 2);
            if (list == "cpu,cpu") CHECK(answer(redline_(run_on("cpu", model)))["text"] == got["text"]);
        }
}

TEST_CASE("device list: -sm auto has whole layers of a small model, whose speeds nobody measures") {
    for (const std::string& list : twice()) {
        INFO(list);
        const Outcome got = redline_(run_on(list, "llama3", {"-sm", "auto"}));
        CHECK(answer(got)["text"] == answer(redline_(run_on(first_of(list))))["text"]);
        CHECK(!has(got.err, "each layer is divided"));
    }
}

TEST_CASE("device list: bench --sums compares sums over devices with the CPU's, on each way that there is") {
    const auto bench = [](std::vector<std::string> more) {
        more.insert(more.begin(), {"bench", "--sums", "--sum-sizes", "8196,65536", "--repeats", "16"});
        return redline_(more);
    };
    for (const std::string& list : twice()) {
        INFO(list);
        const Json got = answer(bench({"--device", list, "--json"}));
        CHECK(got["wrong_elements"] == 0);
        REQUIRE(got["sums"].size() == 2);
        CHECK(got["sums"][0]["floats"] == 2049);
        CHECK(got["sums"][0]["ways"].back()["way"] == "the host");
        CHECK(got["sums"][0]["ways"].back()["seconds"] >= 0.0);
        CHECK(got["absent"][0]["why"] == "these devices do not add rows by themselves");
    }
    CHECK(has(bench({"--device", "cpu"}).err, "--sums is about several devices, and there is one, cpu"));
    CHECK(has(bench({"--device", "cpu,cpu", "-p", "5"}).err, "--n-prompt means nothing with --sums"));
    CHECK(has(redline_({"bench", "--repeats", "5"}).err, "--repeats is for --sums"));
}

TEST_CASE("device list: info shows what is where with -sm tensor, and what cannot be is one line") {
    const auto info = [](const std::vector<std::string>& more) {
        std::vector<std::string> arguments = {"info", golden("models/llama3.gguf"), "-sm", "tensor"};
        arguments.insert(arguments.end(), more.begin(), more.end());
        return redline_(arguments);
    };
    const Json tensors = answer(info({"--device", "cpu,cpu", "-ts", "3,1", "--json"}))["memory"]["tensors"];
    REQUIRE(tensors["ranks"].size() == 2);
    CHECK(tensors["ranks"][0]["bytes_per_token"] > tensors["ranks"][1]["bytes_per_token"]);
    CHECK(tensors["ranks"][1]["id"] == "cpu (2)");
    CHECK(tensors["sums_per_token"] == 4);
    CHECK(tensors["sum_bytes_per_token"].get<uint64_t>() > 0);
    const Outcome shown = info({"--device", "cpu,cpu", "--plan"});
    CHECK(has(shown.out, "run divides it: each of 2 layers over cpu ("));
    CHECK(has(shown.out, "on cpu (2):"));
    const auto refused = [](const std::string& model, const std::vector<std::string>& more, int code) {
        std::vector<std::string> all = {"-sm", "tensor"};
        all.insert(all.end(), more.begin(), more.end());
        const Outcome got = redline_(run_on("cpu,cpu", model, all));
        CHECK(got.code == code);
        CHECK(got.out.empty());
        return got.err;
    };
    CHECK(has(refused("olmo2", {}, 1),
              "rms_norm cannot be divided over devices: a norm of whole rows needs "
              "those of all ranks; -sm/--split-mode layer shares whole layers out"));
    CHECK(has(refused("llama3", {"-ngl", "1"}, 2), "each device has a part of every layer"));
    CHECK(has(refused("llama3", {"--mem-budget", "100K"}, 1), "; -sm/--split-mode layer shares whole"));
    CHECK(has(redline_(run_on("cpu", "llama3", {"-sm", "tensor"})).err, "there is one device, cpu"));
}

TEST_CASE(
    "device list: a call that fails on one of two linked devices is one error line, or the text is the same") {
    const std::vector<std::string>& names = device_names();
    if (std::ranges::count(names, "hip") == 0 || !std::getenv("RL_HIP_DOUBLE_ARCH"))
        return not_tested("failing calls on two linked devices: HIP's double is not here");
    ::setenv("RL_HIP_DOUBLE_COUNT", "2", 1);
    const std::vector<std::string> arguments =
        run_on("hip:0,hip:1", "llama3", {"--no-self-test", "--no-tune", "-sm", "tensor"});
    const Outcome whole = redline_(arguments);
    const Json want = answer(whole)["text"];
    CHECK(has(whole.err, "which add by themselves"));
    size_t failed = 0, rescued = 0;
    for (const std::string fault : {"hipMalloc 2", "hipHostMalloc 2", "hipMemcpyDtoHAsync 719",
                                    "hipMemcpyDtoHAsync 1", "hipStreamSynchronize 719", "hipGraphLaunch 1"})
        for (const int call : {1, 2, 3, 5, 8, 13, 21, 34, 55}) {
            const size_t space = fault.find(' ');
            const std::string what =
                fmt::format("{} {}{}", fault.substr(0, space), call, fault.substr(space));
            CAPTURE(what);
            ::setenv("RL_HIP_DOUBLE_FAIL", what.c_str(), 1);
            const Outcome got = redline_(arguments);
            ::unsetenv("RL_HIP_DOUBLE_FAIL");
            if (got.code == 0) {
                CHECK(answer(got)["text"] == want);
                rescued += has(got.err, "was lost");
                continue;
            }
            ++failed;
            CHECK((got.code == 1 || got.code == 3));
            const std::string last = got.err.substr(got.err.rfind("redline: "));
            CHECK_MESSAGE(std::ranges::count(last, '\n') == 1, got.err);
        }
    ::unsetenv("RL_HIP_DOUBLE_COUNT");
    CHECK(failed > 10);
    CHECK(rescued > 0);
}
