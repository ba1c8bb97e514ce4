// The program as a user meets it: what it prints where, its exit codes, and every kind of bad input.
#include "support/chain_model.h"
#include "support/material.h"
#include "support/process.h"

#include <doctest/doctest.h>
#include <nlohmann/json.hpp>

#include <sstream>

using namespace redline;
using namespace redline::test;
using Json = nlohmann::json;

namespace {

struct TemporaryFolder {
    std::filesystem::path path;
    TemporaryFolder() {
        std::string name = (std::filesystem::temp_directory_path() / "redline_cli_XXXXXX").string();
        path = ::mkdtemp(name.data());
    }
    ~TemporaryFolder() { std::filesystem::remove_all(path); }
};

std::string file(const std::string& name) {
    static const TemporaryFolder folder;
    return folder.path / name;
}

void write_file(const std::string& path, const std::string& text) {
    std::ofstream(path, std::ios::binary) << text;
}

std::string read_file(const std::string& path) {
    std::ostringstream text;
    text << std::ifstream(path, std::ios::binary).rdbuf();
    return text.str();
}

// The chain model: "a" is followed by "b", "c", ..., "z", the euro sign, "!", and the end.
std::string chain_model() {
    static const std::string path = [] {
        ChainModel().build().save(file("chain.gguf"));
        return file("chain.gguf");
    }();
    return path;
}

// After "z" comes "a" again, for ever.
std::string ring_model() {
    static const std::string path = [] {
        ChainModel chain;
        chain.next[ChainModel::kLetterA + 25] = ChainModel::kLetterA;
        chain.build().save(file("ring.gguf"));
        return file("ring.gguf");
    }();
    return path;
}

std::string chat_model() {
    static const std::string path = [] {
        ChainModel chain;
        chain.chat = true;
        chain.build().save(file("chat.gguf"));
        return file("chat.gguf");
    }();
    return path;
}

Launch command(std::vector<std::string> arguments) {
    arguments.insert(arguments.begin(), RL_REDLINE);
    Launch what;
    what.arguments = std::move(arguments);
    return what;
}

Outcome redline_(std::vector<std::string> arguments, std::optional<std::string> input = {}) {
    Launch what = command(std::move(arguments));
    what.input = std::move(input);
    return launch(what);
}

// `run` on the chain model, greedy, on one thread.
std::vector<std::string> greedy(std::vector<std::string> more) {
    std::vector<std::string> all = {"run", "-m", chain_model(), "--temp", "0", "-t", "1"};
    all.insert(all.end(), more.begin(), more.end());
    return all;
}

bool has(const std::string& text, const std::string& part) {
    return text.find(part) != std::string::npos;
}

// An error is one line on standard error, nothing on standard output, and an exit code.
void check_refused(const std::vector<std::string>& arguments, int code,
                   const std::vector<std::string>& words) {
    const Outcome got = redline_(arguments);
    INFO("redline ", fmt::format("{}", fmt::join(arguments, " ")), "\n", got.err);
    CHECK(got.code == code);
    CHECK(got.out.empty());
    CHECK(got.err.starts_with("redline: "));
    CHECK(std::count(got.err.begin(), got.err.end(), '\n') == 1);
    for (const std::string& word : words) CHECK_MESSAGE(has(got.err, word), "expected: ", word);
}

}  // namespace

TEST_CASE("cli: the overview, the help of every command, and the version") {
    const Outcome alone = redline_({});
    CHECK(alone.code == 2);
    CHECK(has(alone.out, "usage: redline COMMAND"));
    const Outcome help = redline_({"--help"});
    CHECK(help.code == 0);
    const Outcome version = redline_({"--version"});
    CHECK(version.code == 0);
    CHECK(has(version.out, "built with"));
    CHECK(has(version.out, "cpu"));
    for (const std::string name : {"run", "chat", "bench", "info", "eval", "quantize"}) {
        INFO(name);
        CHECK(has(help.out, "\n  " + name + " "));
        const Outcome own = redline_({name, "--help"});
        CHECK(own.code == 0);
        CHECK(own.err.empty());
        CHECK(has(own.out, "usage: redline " + name));
        CHECK(has(own.out, "examples"));
        std::istringstream lines(own.out);
        for (std::string line; std::getline(lines, line);) CHECK_MESSAGE(line.size() <= 110, line);
    }
}

TEST_CASE("cli: without a model named, the demo model answers") {
    const Outcome ran = redline_({"run", "--chat", "-p", "What is GGUF?", "--temp", "0"});
    CHECK(ran.code == 0);
    CHECK(has(ran.out, "file"));
    CHECK(has(ran.err, "demo model"));
    CHECK(has(ran.err, "tok/s"));
    const Outcome talked = redline_({"chat", "--temp", "0"}, "How much is 2 plus 3?\n");
    CHECK(talked.code == 0);
    CHECK(has(talked.out, "5"));
    const Outcome measured = redline_({"bench", "-p", "8", "-n", "2", "-r", "1"});
    CHECK(measured.code == 0);
    CHECK(has(measured.out, "pp8"));
}

TEST_CASE("cli: an installed program finds the demo model beside it, from any folder") {
    const std::filesystem::path root = file("installed");
    std::filesystem::create_directories(root / "bin");
    std::filesystem::create_directories(root / "share/redline");
    std::filesystem::copy_file(RL_REDLINE, root / "bin/redline");
    std::filesystem::create_symlink(root / "bin/redline", file("link"));
    std::filesystem::copy_file(std::string(RL_SOURCE_DIR) + "/models/demo/redline-demo-q8_0.gguf",
                               root / "share/redline/redline-demo-q8_0.gguf");
    for (const std::string& program : {(root / "bin/redline").string(), file("link")}) {
        Launch what;
        what.arguments = {program, "run", "-v", "--chat", "-p", "hi", "-n", "2"};
        const Outcome got = launch(what);
        CHECK(got.code == 0);
        CHECK(has(got.err, (root / "share/redline").string()));
    }
}

TEST_CASE("cli: quantize writes a smaller file and says what it lost") {
    const std::string demo = std::string(RL_SOURCE_DIR) + "/models/demo/redline-demo-q8_0.gguf";
    const std::string out = file("quantized.gguf");
    check_refused({"quantize"}, 2, {"IN.gguf OUT.gguf TYPE"});
    check_refused({"quantize", demo, out}, 2, {"IN.gguf OUT.gguf TYPE"});
    check_refused({"quantize", demo, out, "Q9_0"}, 2, {"Q9_0", "Q4_K_M"});
    check_refused({"quantize", demo, out, "Q4_0"}, 1, {"Q8_0 already", "--allow-requantize"});
    check_refused({"quantize", demo, demo, "Q8_0"}, 1, {"the source itself"});
    check_refused({"quantize", file("nowhere.gguf"), out, "Q4_0"}, 1, {"nowhere.gguf"});
    check_refused({"quantize", demo, file("no/folder.gguf"), "Q8_0"}, 1, {"no/folder.gguf"});
    check_refused({"quantize", demo, "/tmp", "Q8_0", "--overwrite"}, 1, {"/tmp is a folder"});
    const Outcome got = redline_({"quantize", demo, out, "Q4_K_M", "--allow-requantize", "--json"});
    CHECK(got.code == 0);
    CHECK(has(got.err, "bits per weight"));
    const Json report = Json::parse(got.out);
    CHECK(report["file_bytes"] == std::filesystem::file_size(out));
    CHECK(report["tensors"][0]["to"] == "Q6_K");
    CHECK(report["tensors"][0]["rmse"] > 0.0);
    check_refused({"quantize", demo, out, "Q4_0", "--allow-requantize"}, 1, {"exists", "--overwrite"});
    const Outcome again = redline_({"quantize", demo, out, "Q8_0", "--overwrite", "-q"});
    CHECK(again.code == 0);
    CHECK(again.err.empty());
    CHECK(redline_({"run", "-m", out, "-p", "a", "-n", "1"}).code == 0);
}

TEST_CASE("cli: an unknown command or option gets the nearest known one as a hint") {
    check_refused({"rum"}, 2, {"rum", "did you mean run"});
    check_refused({"frobnicate"}, 2, {"these are: run"});
    check_refused({"run", "--tmep", "1"}, 2, {"--tmep", "--temp"});
    check_refused({"run", "--no-such-thing-at-all"}, 2, {"--no-such-thing-at-all", "--help"});
    check_refused({"run", "-z"}, 2, {"-z"});
    check_refused({"run", "model.gguf"}, 2, {"model.gguf"});
    check_refused({"run", "-m"}, 2, {"-m/--model needs a value"});
    check_refused({"run", "--json=yes"}, 2, {"yes"});
}

TEST_CASE("cli: a bad value names the option, what it takes, and what it got") {
    for (const std::string bad : {"", "x", "1.5", "1x", "0x10", "99999999999999999999", "-2", " 3", "\xFF"}) {
        INFO(bad);
        check_refused({"run", "-n", bad}, 2, {"-n/--n-predict", "-1"});
    }
    for (const std::string bad : {"-5", "100000", "two"})
        check_refused({"run", "-t", bad}, 2, {"--threads", bad});
    for (const std::string bad : {"hot", "", "1,5", "nan", "inf", "1e999"})
        check_refused({"run", "--temp", bad}, 2, {"--temp", "number"});
    check_refused({"run", "-b", "0"}, 2, {"--batch-size"});
    check_refused({"run", "--seed", "4294967296"}, 2, {"--seed"});
    check_refused({"run", "-ctk", "q4_0"}, 2, {"--cache-type-k", "q8_0"});
    check_refused({"run", "-ctk", "f16", "-ctv", "q8_0"}, 2, {"one type"});
    check_refused({"run", "--cpu-level", "sse9"}, 2, {"avx2"});
    check_refused({"run", "-l", "12"}, 2, {"15043+1"});
    check_refused({"run", "-l", "12+inf"}, 2, {"12+inf"});
    check_refused({"run", "--stop", ""}, 2, {"--stop"});
    check_refused({"run", "-sys", "x", "-p", "y", "-m", chain_model()}, 2, {"--chat"});
    check_refused({"bench", "-p", "1,,2"}, 2, {"--n-prompt"});
    check_refused({"bench", "-m", chain_model(), "-p", "0", "-n", "0"}, 2, {"nothing to measure"});
    check_refused({"bench", "-m", chain_model(), "-t", "5000"}, 2, {"--threads"});
}

TEST_CASE("cli: a model that is missing, a folder, cut short, or of another kind") {
    check_refused({"info"}, 2, {"-m FILE"});
    check_refused({"eval", "-f", "x"}, 2, {"-m FILE"});
    check_refused({"run", "-p", "a", "-m", file("nowhere.gguf")}, 1, {"nowhere.gguf", "No such file"});
    check_refused({"run", "-p", "a", "-m", "/"}, 1, {"folder"});
    write_file(file("text.gguf"), "this is a text and no model, though it is longer than a header would be");
    check_refused({"run", "-p", "a", "-m", file("text.gguf")}, 1, {"text.gguf"});
    write_file(file("empty.gguf"), "");
    check_refused({"info", "-m", file("empty.gguf")}, 1, {"empty.gguf"});
    const std::string whole = read_file(chain_model());
    for (const size_t size : {size_t(3), size_t(24), size_t(1000), whole.size() / 2, whole.size() - 1}) {
        INFO(size, " bytes");
        write_file(file("cut.gguf"), whole.substr(0, size));
        check_refused({"run", "-p", "a", "-m", file("cut.gguf")}, 1, {"cut.gguf"});
    }
    check_refused({"run", "-p", "a", "-m", chain_model(), "--device", "abacus"}, 1, {"abacus", "cpu"});
}

TEST_CASE("run: only the text goes to standard output") {
    const Outcome got = redline_(greedy({"-p", "a", "-n", "5"}));
    CHECK(got.code == 0);
    CHECK(got.out == "bcdef");
    CHECK(has(got.err, "plan: 2/2 layers on cpu"));
    CHECK(has(got.err, "KV cache f16 256 tokens"));
    CHECK(has(got.err, "tok/s"));
    CHECK(has(got.err, "GB/s"));
    CHECK_FALSE(has(got.err, "\x1b"));

    const Outcome whole = redline_(greedy({"-p", "a", "-q"}));
    CHECK(whole.code == 0);
    CHECK(whole.out == ChainModel::kWholeText);
    CHECK(whole.err.empty());
    CHECK(redline_(greedy({"-p", "a", "-q", "--display-prompt", "-n", "2"})).out == "abc");
    CHECK(redline_(greedy({"-p", "a", "-q", "-n", "0"})).out.empty());
}

TEST_CASE("run: llama.cpp's ways to write an option are taken, and negative numbers are numbers") {
    for (const std::vector<std::string>& form :
         {std::vector<std::string>{"-n", "3"}, {"-n3"}, {"--predict", "3"}, {"--n-predict=3"}, {"-n=3"}}) {
        INFO(form[0]);
        std::vector<std::string> more = {"-q", "-p", "a"};
        more.insert(more.end(), form.begin(), form.end());
        CHECK(redline_(greedy(more)).out == "bcd");
    }
    CHECK(
        redline_(greedy({"-q", "-p", "a", "--seed", "-1", "-n", "-1", "--temp", "0", "--top-k", "0"})).out ==
        ChainModel::kWholeText);
    CHECK(redline_(greedy({"-q", "-p", "a", "-ctk", "q8_0", "-ctv", "q8_0", "-n-1"})).out ==
          ChainModel::kWholeText);
    CHECK(redline_(greedy({"-q", "-p", "a", "-r", "e", "--stop", "xyz"})).out == "bcd");
    CHECK(redline_(greedy({"-q", "-p", "-q", "-n", "1"})).code == 0);  // a value that looks like an option
    CHECK(redline_(greedy({"-q", "-p", "a", "-n", "2", "-l", "4-inf"})).out[0] != 'b');
}

TEST_CASE("run: the prompt comes from an argument, a file, standard input, or several of them") {
    write_file(file("prompt.txt"), "ab\n");
    const auto text = [](std::vector<std::string> more, std::optional<std::string> input = {}) {
        more.insert(more.end(), {"-n", "1", "--display-prompt", "-q"});
        return redline_(greedy(more), std::move(input)).out;
    };
    CHECK(text({"-f", file("prompt.txt")}) == "abc");
    CHECK(text({}, "xy\n") == "xyz");
    CHECK(text({"-f", "-"}, "x") == "xy");
    CHECK(text({"-p", "k"}, "xy") == "k\nxyz");
    CHECK(text({"-p", "k", "-f", file("prompt.txt")}) == "k\nabc");
    CHECK(text({"-p", "k"}, "") == "kl");
    CHECK(text({"-p", "a\\nb"}) == "a\nbc");
    CHECK(text({"-p", "a\\nb", "--no-escape"}) == "a\\nbc");
    CHECK(text({"-p", ""}) == "a");  // BOS alone

    const Outcome none = redline_(greedy({}));
    CHECK(none.code == 2);
    CHECK(has(none.err, "no prompt"));
    CHECK(redline_(greedy({}), "").code == 2);
    CHECK(redline_(greedy({"-f", file("nowhere.txt")})).code == 1);
    const Outcome empty = redline_(greedy({"-p", "", "--no-bos"}));
    CHECK(empty.code == 1);
    CHECK(has(empty.err, "empty"));
}

TEST_CASE("run: a long prompt is no trouble as an argument, and too long a one says what the context is") {
    const std::string long_text(50000, 'a');
    const Outcome got = redline_(greedy({"--prompt=" + long_text}));
    CHECK(got.code == 1);
    CHECK(has(got.err, "50001 tokens"));
    CHECK(has(got.err, "-c"));
    CHECK(redline_({"run", long_text}).code == 2);
}

TEST_CASE("run: contexts of all sizes") {
    const Outcome full = redline_(greedy({"-p", "a", "-c", "6"}));
    CHECK(full.code == 0);
    CHECK(full.out == "bcdef");
    CHECK(has(full.err, "context of 6 tokens is full"));
    CHECK(redline_(greedy({"-p", "a", "-c", "6", "--context-shift", "-q"})).out == ChainModel::kWholeText);
    CHECK(redline_(greedy({"-p", "", "-c", "1", "-q"})).out == "a");
    CHECK(redline_(greedy({"-p", "a", "-c", "0", "-q"})).out == ChainModel::kWholeText);
    const Outcome huge = redline_(greedy({"-p", "a", "-c", "4294967296"}));
    CHECK(huge.code == 1);
    CHECK(huge.out.empty());
    CHECK(has(huge.err, "weights need"));
    CHECK(has(huge.err, "trained for 256"));
}

TEST_CASE("run: --json gives one object, and the same seed the same text") {
    const std::vector<std::string> hot = {"run",    "-m", chain_model(), "-p",     "a",       "-n", "12",
                                          "--temp", "20", "--top-k",     "0",      "--top-p", "1",  "--min-p",
                                          "0",      "-s", "11",          "--json", "-q"};
    const Outcome got = redline_(hot);
    REQUIRE(got.code == 0);
    const Json all = Json::parse(got.out);
    CHECK(all["seed"] == 11);
    CHECK(all["prompt_tokens"] == 2);
    CHECK(all["generated_tokens"] == all["token_ids"].size());
    CHECK(all["timings"]["predicted_per_second"].is_number());
    CHECK(all["device"]["backend"] == "cpu");
    CHECK(all["model"]["architecture"] == "llama");
    CHECK(Json::parse(redline_(hot).out)["text"] == all["text"]);

    const Json greedy_one = Json::parse(redline_(greedy({"-p", "x", "--json", "-q"})).out);
    CHECK(greedy_one["text"] == "yz\xE2\x82\xAC!");
    CHECK(greedy_one["stop_reason"] == "end_of_generation");
    CHECK(Json::parse(redline_(greedy({"-p", "a", "--stop", "e", "--json", "-q"})).out)["stop"] == "e");
}

TEST_CASE("run: a full disk is an error, a reader that goes away is not, and Ctrl-C keeps the text") {
    Launch full = command(greedy({"-p", "a", "-q"}));
    full.output_path = "/dev/full";
    const Outcome no_space = launch(full);
    CHECK(no_space.code == 1);
    CHECK(has(no_space.err, "standard output"));

    const std::vector<std::string> endless = {"run", "-m",     ring_model(), "-p",
                                              "a",   "--temp", "0",          "--context-shift"};
    Launch head = command(endless);
    head.close_after = 1;
    const Outcome gone = launch(head);
    CHECK(gone.code == 0);
    CHECK_FALSE(has(gone.err, "redline:"));

    Launch interrupted = command(endless);
    interrupted.interrupt_when = [](const std::string& out) { return out.size() > 100; };
    const Outcome stopped = launch(interrupted);
    CHECK(stopped.code == 130);
    CHECK(stopped.out.size() > 100);
    CHECK(has(stopped.err, "interrupted"));
    CHECK(has(stopped.err, "decode:"));
}

TEST_CASE("cli: closed standard streams are not taken for files that are opened later") {
    Launch what = command(greedy({"-p", "a"}));
    what.close_output = true;
    const Outcome got = launch(what);
    CHECK(got.code == 1);
    CHECK(has(got.err, "standard output"));
}

TEST_CASE("run: a prompt cache is read less the second time, and no other file is ever overwritten") {
    const std::string cache = file("prompt.cache");
    const auto run = [&](const std::string& prompt, std::vector<std::string> more = {}) {
        more.insert(more.end(), {"-p", prompt, "-n", "3", "--prompt-cache", cache, "--json", "-q"});
        const Outcome got = redline_(greedy(more));
        REQUIRE_MESSAGE(got.code == 0, got.err);
        return Json::parse(got.out);
    };
    const Json first = run("abcdefgh");
    CHECK(first["cached_tokens"] == 0);
    const Json second = run("abcdefgh");
    CHECK(second["cached_tokens"] == 8);  // all but the last
    CHECK(second["text"] == first["text"]);
    CHECK(run("abcxyz", {"--prompt-cache-ro"})["cached_tokens"] == 4);
    CHECK(run("abcdefgh")["cached_tokens"] == 8);
    CHECK(run("abcxyz")["cached_tokens"] == 4);
    CHECK(run("abcxyz")["cached_tokens"] == 6);

    write_file(cache, "something else");
    const Outcome refused = redline_(greedy({"-p", "a", "--prompt-cache", cache}));
    CHECK(refused.code == 1);
    CHECK(has(refused.err, "prompt.cache"));
    CHECK(read_file(cache) == "something else");
}

TEST_CASE("run: the file's sampling defaults count where the user says nothing, and are told with -v") {
    ChainModel chain;
    chain.extra.add("general.sampling.temp", 0.0f);
    chain.extra.add("general.sampling.top_k", int32_t(7));
    chain.build().save(file("defaults.gguf"));
    const std::vector<std::string> base = {"run", "-m", file("defaults.gguf"), "-p", "a", "-n", "5",
                                           "-s",  "3"};
    const Outcome got = redline_(base);
    CHECK(got.out == "bcdef");
    CHECK_FALSE(has(got.err, "top_k"));
    std::vector<std::string> loud = base;
    loud.push_back("-v");
    CHECK(has(redline_(loud).err, "sampling defaults of the file: top_k 7 temp 0"));
    std::vector<std::string> own = base;
    own.insert(own.end(), {"--temp", "1.5", "--json", "-q"});
    CHECK(Json::parse(redline_(own).out)["temperature"] == 1.5);

    ChainModel wrong;
    wrong.extra.add("general.sampling.top_k", std::string("many"));
    wrong.build().save(file("wrong.gguf"));
    check_refused({"run", "-m", file("wrong.gguf"), "-p", "a", "-q"}, 1, {"general.sampling.top_k"});
}

TEST_CASE("run: what is not sound in a model's numbers is an error, not a text") {
    ChainModel chain;
    chain.gain = std::numeric_limits<float>::quiet_NaN();
    chain.build().save(file("nan.gguf"));
    check_refused({"run", "-m", file("nan.gguf"), "-p", "a", "-q"}, 1, {"logit"});
    check_refused({"bench", "-m", file("nan.gguf"), "-p", "8", "-n", "0", "-r", "1", "-o", "json", "-q"}, 1,
                  {"no figure", "nan"});
    ChainModel flat;
    flat.next.clear();
    flat.build().save(file("flat.gguf"));
    check_refused({"bench", "-m", file("flat.gguf"), "-p", "8", "-n", "0", "-r", "1", "-o", "json", "-q"}, 1,
                  {"no figure", "all"});
}

TEST_CASE("bench: a record for every test, with llama-bench's names") {
    const Outcome got = redline_({"bench", "-m", chain_model(), "-p", "16", "-n", "4", "-pg", "8,2", "-d",
                                  "0,5", "-r", "2", "-t", "1", "-o", "json", "-q"});
    REQUIRE_MESSAGE(got.code == 0, got.err);
    const Json all = Json::parse(got.out);
    REQUIRE(all.size() == 6);
    for (const Json& one : all) {
        CHECK(one["samples_ns"].size() == 2);
        CHECK(one["avg_ts"].get<double>() > 0.0);
        CHECK(one["gb_per_s"].get<double>() > 0.0);
        CHECK(one["n_threads"] == 1);
        CHECK(one["type_k"] == "f16");
        CHECK(one["logits_hash"].get<std::string>().size() == 16);
        const double tokens = one["n_prompt"].get<double>() + one["n_gen"].get<double>();
        CHECK(one["samples_ts"][0].get<double>() ==
              doctest::Approx(1e9 * tokens / one["samples_ns"][0].get<double>()).epsilon(1e-6));
    }
    CHECK(all[2]["n_prompt"] == 8);
    CHECK(all[2]["n_gen"] == 2);
    CHECK(all[5]["n_depth"] == 5);

    const Outcome csv =
        redline_({"bench", "-m", chain_model(), "-p", "8", "-n", "0", "-r", "1", "-o", "csv", "-q"});
    CHECK(std::count(csv.out.begin(), csv.out.end(), '\n') == 2);
    CHECK(has(csv.out, "build_commit,"));
    const Outcome table = redline_({"bench", "-m", chain_model(), "-p", "8", "-n", "2", "-r", "1", "-q"});
    CHECK(has(table.out, " pp8 |"));
    CHECK(has(table.out, " tg2 |"));
    const Outcome ops = redline_({"bench", "-m", chain_model(), "--ops", "-r", "1", "-q"});
    CHECK(ops.code == 0);
    CHECK(has(ops.out, "512 rows"));
    CHECK(has(ops.out, "attention"));
}

TEST_CASE("eval: the perplexity of a text that the model knows, as can be worked out by hand") {
    // Every scored token follows its predecessor in the chain: one logit is sqrt(dim), all others are 0.
    std::string ids;
    for (int i = 0; i < 64; ++i) ids += fmt::format("{} ", i % 26 == 25 ? 28 : 3 + i % 26);
    write_file(file("ids.txt"), ids);
    const Outcome got =
        redline_({"eval", "-m", ring_model(), "--ids", file("ids.txt"), "-c", "16", "--json", "-q"});
    REQUIRE_MESSAGE(got.code == 0, got.err);
    const Json all = Json::parse(got.out);
    const double want = 1.0 + (ChainModel::kVocab - 1) * std::exp(-std::sqrt(double(ChainModel::kDim)));
    CHECK(all["perplexity"].get<double>() == doctest::Approx(want).epsilon(1e-5));
    CHECK(all["chunks"] == 4);
    CHECK(all["tokens_scored"] == 4 * 7);
    const Outcome text = redline_({"eval", "-m", ring_model(), "--ids", file("ids.txt"), "-c", "16", "-q"});
    CHECK(text.out.starts_with("[1]1.0000,[2]"));
    CHECK(has(text.out, "Final estimate: PPL = 1.0000 +/- "));
}

TEST_CASE("eval: too short a text, no text and bad ids are errors") {
    write_file(file("short.txt"), "abcdef");
    check_refused({"eval", "-m", chain_model(), "-f", file("short.txt"), "-c", "8", "-q"}, 1,
                  {"7 tokens", "longer"});
    check_refused({"eval", "-m", chain_model()}, 2, {"-f FILE", "--ids"});
    write_file(file("bad.txt"), "3 4 x");
    check_refused({"eval", "-m", chain_model(), "--ids", file("bad.txt"), "-q"}, 1, {"entry 3", "x"});
    write_file(file("outside.txt"), "3 4 99999 3 3 3 3 3 3");
    check_refused({"eval", "-m", chain_model(), "--ids", file("outside.txt"), "-c", "4", "-q"}, 1, {"99999"});
    write_file(file("none.txt"), " \n");
    check_refused({"eval", "-m", chain_model(), "--ids", file("none.txt"), "-q"}, 1, {"no token ids"});
}

TEST_CASE("eval: --logits writes what NumPy reads, of as many tokens as the context holds") {
    write_file(file("five.txt"), "3 4 5 6 7");
    const std::string path = file("logits.npy");
    const Outcome got =
        redline_({"eval", "-m", chain_model(), "--ids", file("five.txt"), "--logits", path, "-c", "4"});
    REQUIRE_MESSAGE(got.code == 0, got.err);
    CHECK(has(got.err, "first 4 of 5 tokens"));
    const std::string bytes = read_file(path);
    CHECK(bytes.starts_with(std::string("\x93NUMPY\x01\x00", 8)));
    const size_t header =
        10 + static_cast<unsigned char>(bytes[8]) + 256u * static_cast<unsigned char>(bytes[9]);
    CHECK(header % 64 == 0);
    CHECK(bytes[header - 1] == '\n');
    CHECK(has(bytes.substr(0, header), fmt::format("'descr': '<f4', 'fortran_order': False, 'shape': (4, {})",
                                                   int(ChainModel::kVocab))));
    REQUIRE(bytes.size() == header + 4 * size_t(ChainModel::kVocab) * 4);
    float value = 0.0f;
    std::memcpy(&value, bytes.data() + header + 4 * 4, 4);  // of "b" after "a"
    CHECK(value == doctest::Approx(std::sqrt(double(ChainModel::kDim))).epsilon(1e-3));
    check_refused(
        {"eval", "-m", chain_model(), "--ids", file("five.txt"), "--logits", "/nowhere/x.npy", "-q"}, 1,
        {"/nowhere/x.npy"});
}

TEST_CASE("info: what is in a file, with nothing in it that could steer a terminal") {
    ChainModel chain;
    chain.name = "evil\x1b[2Jname";
    chain.extra.add("note.long", std::string(5000, 'x'));
    chain.build().save(file("evil.gguf"));
    const Outcome got = redline_({"info", "-m", file("evil.gguf"), "--tensors", "--plan"});
    REQUIRE_MESSAGE(got.code == 0, got.err);
    CHECK_FALSE(has(got.out, "\x1b"));
    CHECK(has(got.out, "evil"));
    CHECK(has(got.out, "2 layers of 320"));
    CHECK(has(got.out, "SPM"));
    CHECK(has(got.out, "fits"));
    CHECK(has(got.out, "blk.1.ffn_down.weight"));
    CHECK(has(got.out, "attention 10 heads of 32, 2 kv"));
    CHECK(has(got.out, "290 elements"));
    CHECK_FALSE(has(got.out, std::string(1000, 'x')));
    CHECK(has(redline_({"info", "-m", file("evil.gguf"), "--all"}).out, std::string(5000, 'x')));

    const Json all = Json::parse(redline_({"info", "-m", file("evil.gguf"), "--json", "--plan"}).out);
    CHECK(all["runs"] == true);
    CHECK(all["shape"]["layers"] == 2);
    CHECK(all["memory"]["fits"] == true);
    CHECK(all["plan"]["steps"].size() == all["plan"]["ops"]);
    CHECK(all["metadata"]["llama.attention.layer_norm_rms_epsilon"] == 1e-6);
}

TEST_CASE("info: a file that cannot run is described all the same, with the reason") {
    GgufBuilder other;
    other.add("general.architecture", std::string("spaceship"));
    other.tensor_f32("hull.weight", {4, 4}, std::vector<float>(16));
    other.save(file("other.gguf"));
    const Outcome got = redline_({"info", "-m", file("other.gguf")});
    CHECK(got.code == 0);
    CHECK(has(got.out, "cannot run"));
    CHECK(has(got.out, "spaceship"));
    CHECK(Json::parse(redline_({"info", "-m", file("other.gguf"), "--json"}).out)["runs"] == false);
}

TEST_CASE("chat: each line of a pipe is a turn, and only the answers are printed") {
    const std::vector<std::string> base = {"chat", "-m", chat_model(), "--temp", "0", "-t", "1"};
    const Outcome got = redline_(base, "hello\nagain\n");
    REQUIRE_MESSAGE(got.code == 0, got.err);
    const std::string answer = std::string("a") + ChainModel::kWholeText + "\n";
    CHECK(got.out == answer + answer);
    // The last line needs no line end; blank lines are no turns; closed input is no turn at all.
    CHECK(redline_(base, "hello\n\n  \nagain").out == answer + answer);
    CHECK(redline_(base).code == 0);
    CHECK(redline_(base).out.empty());
    // Two lines as one message, in either way.
    CHECK(redline_(base, "one\\\ntwo\n").out == answer);
    CHECK(redline_(base, "\"\"\"one\ntwo\"\"\"\n\"\"\"\nthree\n\"\"\"\n").out == answer + answer);
}

TEST_CASE("chat: commands, and messages that only look like one") {
    const std::vector<std::string> base = {"chat", "-m", chat_model(), "--temp", "0", "-n", "2"};
    const Outcome got = redline_(
        base, "/help\n/stats\nhello\n/regen\n/system be brief\n/stats\n/clear\n/what\n /what\n/exit\nno\n");
    CHECK(got.code == 0);
    CHECK(got.out == "ab\nab\nab\n");
    CHECK(has(got.err, "/regen"));
    CHECK(has(got.err, "/what is not a command"));
    CHECK(has(got.err, "1 turn"));
    const Outcome early = redline_(base, "/regen\n");
    CHECK(early.code == 1);
    CHECK(has(early.err, "no answer yet"));
}

TEST_CASE("chat: when the context is full the oldest turns go, or the turn is refused") {
    std::string many;
    for (int i = 0; i < 12; ++i) many += "abcdefgh\n";
    const std::vector<std::string> base = {"chat", "-m", chat_model(), "--temp", "0", "-n", "3", "-c", "128"};
    const Outcome dropped = redline_(base, many);
    CHECK(dropped.code == 0);
    CHECK(std::count(dropped.out.begin(), dropped.out.end(), '\n') == 12);
    CHECK(has(dropped.err, "oldest turns"));
    std::vector<std::string> strict = base;
    strict.insert(strict.end(), {"--context-policy", "stop"});
    const Outcome stopped = redline_(strict, many);
    CHECK(stopped.code == 1);
    CHECK(has(stopped.err, "/clear"));
    const Outcome too_long = redline_(base, std::string(500, 'a') + "\nb\n");
    CHECK(has(too_long.err, "has no room"));
    CHECK(std::count(too_long.out.begin(), too_long.out.end(), '\n') == 1);  // the next message is answered
}

TEST_CASE("chat: a model without a known format is an error unless one is chosen") {
    check_refused({"chat", "-m", chain_model(), "-q"}, 1, {"--chat-format"});
    check_refused({"chat", "-m", chain_model(), "--chat-format", "morse", "-q"}, 1, {"morse"});
    const Outcome list = redline_({"chat", "--list-chat-formats"});
    CHECK(list.code == 0);
    CHECK(std::count(list.out.begin(), list.out.end(), '\n') >= 3);
}

TEST_CASE("run: --chat puts the prompt into the model's format") {
    const Outcome got = redline_({"run", "-m", chat_model(), "--chat", "-sys", "be brief", "-p", "hello",
                                  "--temp", "0", "-n", "3", "-q"});
    CHECK_MESSAGE(got.code == 0, got.err);
    CHECK(got.out == "abc");
}

TEST_CASE("run: the known beginning of a real small model") {
    RL_NEED_MATERIAL(stories, "models/stories260K.gguf");
    const Outcome got =
        redline_({"run", "-m", stories, "-p", "Once upon a time", "-n", "60", "--temp", "0", "-q"});
    CHECK(got.code == 0);
    CHECK(got.out ==
          ", there was a little girl named Lily. She loved to play outside in the park. One day, she saw a "
          "big, red "
          "ball. She wanted to play with it, but it was too high.\nLily");
}
