// Options of other programs, and the shape of the help, without running anything.
#include "cli/commands/run_options.h"
#include "cli/options/foreign.h"
#include "sample/chain.h"
#include "support/material.h"

#include <doctest/doctest.h>

#include <algorithm>
#include <fstream>
#include <sstream>

using namespace redline;
using namespace redline::cli;

static std::vector<std::string> llama_options() {
    std::ifstream list(test::golden("cli/llama_options.txt"));
    std::vector<std::string> names;
    for (std::string line; std::getline(list, line);)
        if (line.starts_with("-")) names.push_back(line);
    return names;
}

// The names that the help lists.
static std::set<std::string> own_options(const Options& options) {
    std::set<std::string> names;
    std::istringstream text(options.help_all());
    for (std::string line; std::getline(text, line);) {
        if (!line.starts_with("  -")) continue;
        std::istringstream words(line);
        for (std::string word; words >> word && word.starts_with("-");) {
            const bool more = word.ends_with(",");
            if (more) word.pop_back();
            names.insert(word);
            if (!more) break;
        }
    }
    return names;
}

TEST_CASE("options: each of llama.cpp's is taken, noted, or refused by its whole name") {
    const std::vector<std::string> names = llama_options();
    REQUIRE(names.size() > 300);
    RunOptions run;
    Options options = declare(run);
    options.flag("-h --usage --help", "", run.json);  // parse() adds them
    const std::set<std::string> declared = own_options(options);
    for (const std::string& name : names) {
        CAPTURE(name);
        CHECK((declared.count(name) > 0 || find_foreign(name) != nullptr));
    }
}

TEST_CASE("options: those that are noted take their values with them") {
    RunOptions run;
    Options options = declare(run);
    const std::optional<int> code =
        options.parse({"--mlock", "-fa",     "on",    "--jinja", "-sm", "none", "-tb", "8",
                       "-np=4",   "-fa",     "hello", "-ngl",    "99",  "-ub",  "256", "-b",
                       "2048",    "--color", "off",   "-dev",    "CPU", "-st",  "-q"});
    CHECK_FALSE(code.has_value());
    CHECK(run.words == std::vector<std::string>{"hello"});
    CHECK(run.model.gpu_layers == 99);
    CHECK(run.model.batch == 256);
    CHECK(run.model.device == "cpu");
}

TEST_CASE("options: devices by llama.cpp's names, in any case, and never by a bare number") {
    const auto named = [](const std::string& text) {
        const Result<std::string> name = device_name(text);
        return name ? name.value() : "error: " + name.error().message;
    };
    CHECK(named("CPU") == "cpu");
    CHECK(named("none") == "cpu");
    CHECK(named("Auto") == "");
    CHECK(named("GPU") == "gpu");
    CHECK(named("Vulkan0") == "vulkan:0");
    CHECK(named("VULKAN:1") == "vulkan:1");
    CHECK(named("ROCm1") == "hip:1");
    CHECK(named("Radeon 8060S") == "radeon 8060s");
    CHECK(named("780") == "error: 780: a number alone names no device; vulkan:780 may be meant");
}

TEST_CASE("options: a size has a unit, of 1024 to the power") {
    CHECK(parse_bytes("12G").value() == uint64_t(12) << 30);
    CHECK(parse_bytes("1.5GiB").value() == uint64_t(3) << 29);
    CHECK(parse_bytes("800m").value() == uint64_t(800) << 20);
    CHECK(parse_bytes("4KB").value() == 4096);
    for (const char* wrong :
         {"", "12", "G", "-1G", "0G", "12X", "12GG", "12 G", "nanG", "99999999T", "1e300G"}) {
        INFO(wrong);
        CHECK(!parse_bytes(wrong).ok());
    }
}

TEST_CASE("options: experts and tensors have their places as llama.cpp's users write them") {
    const auto taken = [](const std::vector<std::string>& arguments) {
        RunOptions run;
        Options options = declare(run);
        if (options.parse(arguments)) return std::string("refused");
        std::string text = run.model.cpu_experts ? fmt::format("{}", *run.model.cpu_experts) : "unset";
        for (const TensorPlace& place : run.model.tensors)
            text += fmt::format(" {} on {}", place.pattern, place.device);
        return text + fmt::format("; {}", fmt::join(run.words, ","));
    };
    const std::string all = fmt::format("{}; ", std::numeric_limits<int32_t>::max());
    CHECK(taken({}) == "unset; ");
    CHECK(taken({"--cpu-moe"}) == all);
    CHECK(taken({"-cmoe", "hello"}) == all + "hello");
    CHECK(taken({"--cpu-moe", "-q"}) == all);
    CHECK(taken({"--cpu-moe", "all"}) == all);
    CHECK(taken({"--cpu-moe=12"}) == "12; ");
    CHECK(taken({"--cpu-moe", "12", "hello"}) == "12; hello");
    CHECK(taken({"--cpu-moe", "auto"}) == "-1; ");
    CHECK(taken({"--cpu-moe", "off"}) == "0; ");
    CHECK(taken({"-ncmoe", "3"}) == "3; ");
    CHECK(taken({"--n-cpu-moe", "3", "--cpu-moe", "5"}) == "5; ");
    CHECK(taken({"-ot", "exps=CPU,blk\\.1\\.=Vulkan0", "--override-tensor", "x=y=ROCm0"}) ==
          "unset exps on cpu blk\\.1\\. on vulkan:0 x=y on hip:0; ");
    for (const char* wrong : {"exps", "=CPU", "exps=", "a=CPU,", ""})
        CHECK(taken({"-ot", wrong}) == "refused");
    CHECK(taken({"--cpu-moe=some"}) == "refused");
}

TEST_CASE("options: a value named by two words is two values, in either form, and one is too few") {
    const auto taken = [](const std::vector<std::string>& arguments) {
        std::vector<std::string> texts;
        Options options("test", "", {"test"});
        options.each("--fim", "PREFIX SUFFIX", "", [&texts](const std::string& text) -> Status {
            texts.push_back(text);
            return {};
        });
        const std::optional<int> code = options.parse(arguments);
        return code ? fmt::format("ends with {}", *code) : fmt::format("{}", fmt::join(texts, "|"));
    };
    CHECK(taken({"--fim", "a b", "-c"}) == "a b|-c");
    CHECK(taken({"--fim=a", ""}) == "a|");
    CHECK(taken({"--fim", "a"}) == "ends with 2");
    CHECK(taken({"--fim"}) == "ends with 2");
}

TEST_CASE("options: -ngl 0 is the CPU, and -mg a number of the GPU") {
    ModelOptions options;
    options.gpu_layers = 0;
    CHECK(settle_device(options).ok());
    CHECK(options.device == "cpu");
    ModelOptions second;
    second.main_gpu = 1;
    CHECK(settle_device(second).ok());
    CHECK(second.device == "gpu:1");
    ModelOptions both;
    both.gpu_layers = 0;
    both.device = "vulkan";
    CHECK_FALSE(settle_device(both).ok());
    both.streams = true;  // prompts are computed there
    CHECK(settle_device(both).ok());
    CHECK(both.device == "vulkan");
}

namespace {

// "vulkan:0 vulkan:1; 3 1" of a list and its options, or why it is refused.
std::string settled(const std::vector<std::string>& arguments) {
    ModelOptions target;
    Options options("test", "", {"test"});
    add_device_options(options, target);
    if (options.parse(arguments)) return "refused";
    if (const Status done = settle_device(target); !done) return done.error().message;
    std::string all = target.device;
    for (const std::string& other : target.others) all += " " + other;
    return target.shares.empty() ? all : fmt::format("{}; {}", all, fmt::join(target.shares, " "));
}

}  // namespace

TEST_CASE("options: a list of devices shares layers out, and shares of 0 leave some of them out") {
    CHECK(settled({"--device", "hip:0,hip:1"}) == "hip:0 hip:1");
    CHECK(settled({"-dev", "Vulkan0,ROCm1,CUDA2,none"}) == "vulkan:0 hip:1 hip:2 cpu");
    CHECK(settled({"-dev", "hip:0,hip:0", "-sm", "layer", "-ts", "3,1"}) == "hip:0 hip:0; 3 1");
    CHECK(settled({"-dev", "hip:0,hip:1,cpu", "-ts", "3/0/0.5"}) == "hip:0 cpu; 3 0.5");
    CHECK(settled({"-dev", "hip:0,hip:1,cpu", "-ts", "0,0,1"}) == "cpu; 1");
    CHECK(settled({"-dev", "hip:0,hip:1", "-sm", "none"}) == "hip:0");
    CHECK(settled({"-dev", "hip:0,hip:1", "-sm", "none", "-mg", "1"}) == "hip:1");
    CHECK(settled({"-sm", "none", "-mg", "1"}) == "gpu:1");
    CHECK(settled({"-dev", "cpu,cpu", "--cpu-level", "avx2"}) == "cpu cpu");
    CHECK(settled({"-dev", "vulkan:0,cpu", "--vulkan-level", "dot", "--cpu-level", "avx2"}) ==
          "vulkan:0 cpu");
    CHECK(settled({"-dev", "hip:0,hip:1", "-ngl", "7"}) == "hip:0 hip:1");
}

TEST_CASE("options: a list of devices that cannot be is one line, which says what would work") {
    for (const char* wrong : {"", ",", "hip:0,", ",hip:0", "hip:0,,hip:1", "0,1", "auto,hip:0"})
        CHECK_MESSAGE(settled({"--device", wrong}) == "refused", wrong);
    for (const char* wrong : {"", "a", "3,,1", "-1,1", "0,0", "nan,1", "3;1", "1e99"})
        CHECK_MESSAGE(settled({"-ts", wrong}) == "refused", wrong);
    for (const char* wrong : {"row", "graph", ""}) CHECK(settled({"-sm", wrong}) == "refused");
    CHECK(settled({"-dev", "hip:0,hip:1", "-ts", "1,1,1"}) ==
          "-ts/--tensor-split: 3 shares for the 2 devices of --device hip:0,hip:1");
    CHECK(settled({"-dev", "hip:0", "-ts", "1,1"}) ==
          "-ts/--tensor-split: 2 shares for the 1 device of --device hip:0");
    CHECK(settled({"-dev", "hip:0,hip:1", "-sm", "none", "-mg", "2"}) ==
          "-mg/--main-gpu 2: --device hip:0,hip:1 has devices 0 to 1");
    CHECK(
        settled({"-dev", "hip:0,hip:1", "-mg", "1"}) ==
        "-mg/--main-gpu 1: several devices have layers; with -sm/--split-mode none it says which of them is "
        "used alone");
    CHECK(settled({"-sm", "none", "-ts", "1,1"}) ==
          "-ts/--tensor-split: -sm/--split-mode none has the model on one device: leave one of them out");
    CHECK(settled({"-dev", "hip:0,hip:1", "-sm", "tensor", "-ngl", "7"}) ==
          "-ngl: with -sm/--split-mode tensor each device has a part of every layer: leave it out, or share "
          "layers out with -sm/--split-mode layer");
    CHECK(
        settled({"-dev", "hip:0,hip:1", "-sm", "tensor", "-mg", "1"}) ==
        "-mg/--main-gpu 1: several devices have layers; with -sm/--split-mode none it says which of them is "
        "used alone");
    CHECK(settled({"-dev", "hip:0,cpu:1"}) == "--device hip:0,cpu:1: the CPU is one device, called cpu");
    CHECK(settled({"-dev", "hip:0,vulkan:"}) ==
          "--device hip:0,vulkan:: a number, or part of a device's name, belongs behind the colon");
    CHECK(settled({"-dev", "hip:0,cpu", "-ngl", "7"}) ==
          "-ngl: --device hip:0,cpu says what the CPU has, too: leave it out, or share layers out with "
          "-ts/--tensor-split");
    CHECK(
        settled({"-dev", "hip:0,hip:1", "-ngl", "0"}) ==
        "-ngl 0 means the CPU, --device hip:0,hip:1 another: leave one of them out, or have prompts computed "
        "there with --op-offload");
}

TEST_CASE("options: values that llama.cpp and ollama take mean the same here") {
    const auto parsed = [](const std::vector<std::string>& arguments) {
        RunOptions run;
        Options options = declare(run);
        CAPTURE(arguments.front());
        CHECK_FALSE(options.parse(arguments).has_value());
        return run;
    };
    CHECK(parsed({"-t", "-1"}).model.threads == 0);
    CHECK(parsed({"-n", "-2"}).generate.max_tokens < 0);
    CHECK(parsed({"-c", "0"}).model.context == 0);
    CHECK(parsed({"-ngl", "-1"}).model.gpu_layers == -1);
    CHECK(parsed({"-ngl", "-2"}).model.gpu_layers == parsed({"-ngl", "all"}).model.gpu_layers);
    CHECK(parsed({"--seed", "-1"}).sampling.sampler.seed == 0xFFFFFFFFu);
    CHECK(parsed({"--format", "json"}).sampling.grammar.has_value());
    CHECK(parsed({"--keepalive", "5m", "--nowordwrap", "--verbose", "Hi"}).words.size() == 1);
    CHECK(parsed({"-hf", "a/b", "-hff", "c.gguf", "-hft", "t", "--offline"}).model.remote.offline);
}

TEST_CASE("options: samplers by every name and letter that llama.cpp has for them") {
    const auto chain = [](const std::string& names) { return parse_chain(names).value(); };
    CHECK(chain("top-k;typ-p;top-p;min-p;temp;top-n-sigma;dry;xtc;penalties") ==
          chain("top_k;typ_p;top_p;min_p;temperature;top_n_sigma;dry;xtc;penalties"));
    CHECK(chain("nucleus;typical;top-nsigma") == chain("top_p;typical-p;top_n_sigma"));
    CHECK(chain("typ") == chain("y"));
    CHECK(chain("temp") == chain("t"));
    CHECK(!parse_chain("top-q").ok());
}

TEST_CASE("options: the help of run is at most 80 columns wide") {
    RunOptions run;
    std::istringstream text(declare(run).help() + declare(run).help_all());
    for (std::string line; std::getline(text, line);) CHECK_MESSAGE(line.size() <= 80, line);
}

TEST_CASE("run: words are a model's file and a prompt") {
    const auto taken = [](std::vector<std::string> words) {
        RunOptions run;
        run.words = std::move(words);
        int code = 0;
        const Status done = take_words(run, code);
        return done ? run.model.model + "|" + run.prompt.text
                    : fmt::format("{}: {}", code, done.error().message);
    };
    CHECK(taken({"What is GGUF?"}) == "|What is GGUF?");
    CHECK(taken({"a.gguf"}) == "a.gguf|");
    CHECK(taken({"a.GGUF", "Hi"}) == "a.GGUF|Hi");
    CHECK(taken({"llama3.2:3b"}).starts_with("1: \"llama3.2:3b\" looks like"));
    CHECK(taken({"nobody/Nothing-GGUF:Q4_K_M"}).starts_with("1: \"nobody/Nothing-GGUF:Q4_K_M\" looks like"));
    CHECK(taken({"nobody/nothing", "Hi"}).starts_with("1: \"nobody/nothing\" looks like"));
    CHECK(taken({"either/or"}) == "|either/or");
    CHECK(taken({"say", "hello"}).starts_with("2: \"say\" and \"hello\" are two texts"));
    CHECK(taken({"Translate: Hallo"}) == "|Translate: Hallo");
}
