// The program as a user meets it: what it prints where, its exit codes, and every kind of bad input.
#include "cli/terminal/word_wrap.h"
#include "cli/version.h"
#include "devices/device_choice.h"
#include "json/json.h"
#include "support/machines.h"
#include "support/material.h"
#include "support/program.h"
#include "support/small_llama.h"

using namespace redline;
using namespace redline::test;

static void check_width(const std::string& text) {
    std::istringstream lines(text);
    for (std::string line; std::getline(lines, line);) CHECK_MESSAGE(line.size() <= 80, line);
}

static void check_screen(const std::string& text) {
    check_width(text);
    CHECK_MESSAGE(std::count(text.begin(), text.end(), '\n') <= 40, text);
}

TEST_CASE("cli: the overview and the help of every command are one screen, and --help-all has the rest") {
    const Outcome alone = redline_({});
    CHECK(alone.code == 2);
    CHECK(has(alone.out, "usage: redline COMMAND"));
    const Outcome help = redline_({"--help"});
    CHECK(help.code == 0);
    check_screen(help.out);
    for (const std::string name :
         {"run", "chat", "serve", "bench", "info", "eval", "quantize", "imatrix", "tokenize", "devices",
          "models", "pull", "doctor", "verify", "tune", "report", "completion"}) {
        INFO(name);
        CHECK(has(help.out, "\n  " + name + " "));
        const Outcome of_command = redline_({name, "--help"});
        CHECK(of_command.code == 0);
        CHECK(of_command.err.empty());
        CHECK(has(of_command.out, "usage: redline " + name));
        CHECK(has(of_command.out, "-h, "));
        check_screen(of_command.out);
        CHECK(redline_({"help", name}).out == of_command.out);
        const std::string all = redline_({name, "--help-all"}).out;
        CHECK(has(all, "usage: redline " + name));
        CHECK(has(all, "--help-all"));
        check_width(all);
    }
    const std::string run = redline_({"run", "--help"}).out;
    CHECK(has(run, "--json-schema"));
    CHECK_FALSE(has(run, "--mirostat"));
    CHECK(has(run, "redline run --help-all"));
    CHECK(has(redline_({"run", "--help-all"}).out, "--mirostat-lr"));
    check_refused({"help", "rum"}, 2, {"did you mean run"});
}

TEST_CASE("cli: the version lists the devices, formats and architectures that work, the overview none") {
    const Outcome version = redline_({"--version"});
    CHECK(version.code == 0);
    CHECK(has(version.out, "built with"));
    CHECK(has(version.out, "devices: "));
    CHECK(has(version.out, "cpu"));
    CHECK(has(version.out, " architectures: "));
    CHECK(has(version.out, "llama, "));
    CHECK(has(version.out, " formats of tensors: "));
    CHECK(has(version.out, "Q4_K"));
    check_width(version.out.substr(version.out.find(" formats of tensors")));
    CHECK_FALSE(has(redline_({"--help"}).out, "qwen3moe"));
}

TEST_CASE("cli: the version and the devices name what this build lacks, and what that costs") {
    const std::string version = redline_({"--version"}).out, devices = redline_({"devices"}).out;
    const Json listed = parse_json(redline_({"devices", "--json"}).out);
    for (const BackendEntry* entry : all_backends()) {
        INFO(entry->name);
        const std::string lacks(build_lacks(entry->name));
        if (entry->name == "hip") CHECK(!lacks.empty());  // the tests' double is no GPU
        for (const Json& backend : listed["backends"])
            if (backend["backend"] == entry->name) CHECK(backend["lacks"] == lacks);
        if (lacks.empty()) continue;
        const std::string few = cli::short_lacks(lacks);
        CHECK(has(version, cli::wrapped("this build lacks " + few, 80) + "\n"));
        CHECK(has(devices, fmt::format("{}: this build lacks {}\n", entry->name, few)));
        CHECK(has(lacks, ", so that "));
    }
}

TEST_CASE("cli: without a model named, the demo model answers") {
    const Outcome ran = redline_({"run", "-v", "--chat", "-p", "What is GGUF?", "--temp", "0"});
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
    std::filesystem::copy_file(program(), root / "bin/redline");
    std::filesystem::create_symlink(root / "bin/redline", file("link"));
    std::filesystem::copy_file(source_file("models/demo/redline-demo-q8_0.gguf"),
                               root / "share/redline/redline-demo-q8_0.gguf");
    for (const std::string& installed : {(root / "bin/redline").string(), file("link")}) {
        Launch what;
        what.arguments = {installed, "run", "-v", "--chat", "-p", "hi", "-n", "2", "--device", "cpu"};
        const Outcome got = launch(what);
        CHECK(got.code == 0);
        CHECK(has(got.err, (root / "share/redline").string()));
    }
}

TEST_CASE("cli: quantize writes a smaller file and says what it lost") {
    const std::string demo = source_file("models/demo/redline-demo-q8_0.gguf");
    const std::string out = file("quantized.gguf");
    check_refused({"quantize"}, 2, {"IN.gguf OUT.gguf TYPE"});
    check_refused({"quantize", demo, out}, 2, {"IN.gguf OUT.gguf TYPE"});
    check_refused({"quantize", demo, out, "Q9_0"}, 2, {"Q9_0", "Q4_K_M"});
    check_refused({"quantize", demo, out, "Q4_0"}, 1, {"Q8_0 already", "--allow-requantize"});
    check_refused({"quantize", demo, demo, "Q8_0", "--allow-requantize"}, 1, {"the source itself"});
    check_refused({"quantize", file("nowhere.gguf"), out, "Q4_0"}, 1, {"nowhere.gguf"});
    check_refused({"quantize", demo, file("no/folder.gguf"), "Q8_0", "--allow-requantize"}, 1,
                  {"no/folder.gguf"});
    check_refused({"quantize", demo, "/tmp", "Q8_0", "--overwrite", "--allow-requantize"}, 1,
                  {"/tmp is a folder"});
    const Outcome got = redline_({"quantize", demo, out, "Q4_K_M", "--allow-requantize", "--json"});
    CHECK(got.code == 0);
    CHECK(has(got.err, "bits per weight"));
    const Json report = parse_json(got.out);
    CHECK(report["file_bytes"] == std::filesystem::file_size(out));
    CHECK(report["tensors"][0]["to"] == "Q6_K");
    CHECK(report["tensors"][0]["rmse"] > 0.0);
    check_refused({"quantize", demo, out, "Q4_0", "--allow-requantize"}, 1, {"exists", "--overwrite"});
    const Outcome again =
        redline_({"quantize", demo, out, "Q8_0", "--allow-requantize", "--overwrite", "-q"});
    CHECK(again.code == 0);
    CHECK(again.err.empty());
    CHECK(redline_({"run", "-m", out, "-p", "a", "-n", "1"}).code == 0);
}

TEST_CASE("cli: an unknown command or option gets the nearest known one as a hint") {
    check_refused({"rum"}, 2, {"rum", "did you mean run"});
    check_refused({"--versio"}, 2, {"unknown option --versio; did you mean --version?"});
    check_refused({"run", "--versio"}, 2, {"did you mean --version?"});
    check_refused({"versio"}, 2, {"did you mean version?"});
    check_refused({"-verison"}, 2, {"did you mean --version?"});
    check_refused({"frobnicate"}, 2, {"these are: run"});
    check_refused({"run", "--tmep", "1"}, 2, {"--tmep", "--temp"});
    check_refused({"run", "--no-such-thing-at-all"}, 2, {"--no-such-thing-at-all", "--help"});
    check_refused({"run", "-z"}, 2, {"-z"});
    check_refused({"run", "--frob"}, 2, {"unknown option --frob; redline run --help"});
    check_refused({"run", "--jsn"}, 2, {"did you mean --json?"});
    check_refused({"run", "--samp"}, 2, {"did you mean --samplers?"});
    check_refused({"run", "model.gguf"}, 2, {"no prompt", "-p TEXT"});
    for (const char* name : {"info", "chat", "bench"})
        check_refused({name, "model.gguf"}, 1, {"cannot open model.gguf"});
    check_refused({"devices", "model.gguf"}, 2, {"is not an option, and nothing else is expected there"});
    check_refused({"run", "one", "two"}, 2, {"\"one\" and \"two\" are two texts"});
    check_refused({"run", "qwen3:8b"}, 1, {"redline models lists them, redline pull fetches more"});
    check_refused({"run", "-m"}, 2, {"-m/--model needs a value"});
    check_refused({"run", "--json=yes"}, 2, {"yes"});
}

TEST_CASE("cli: a bad value names the option, what it takes, and what it got") {
    for (const std::string bad : {"", "x", "1.5", "1x", "0x10", "99999999999999999999", "-3", " 3", "\xFF"}) {
        INFO(bad);
        check_refused({"run", "-n", bad}, 2, {"-n/--n-predict", "-2"});
    }
    for (const std::string bad : {"-5", "100000", "two"})
        check_refused({"run", "-t", bad}, 2, {"--threads", bad});
    for (const std::string bad : {"hot", "", "1,5", "nan", "inf", "1e999"})
        check_refused({"run", "--temp", bad}, 2, {"--temp", "number"});
    check_refused({"run", "-b", "0"}, 2, {"--batch-size"});
    check_refused({"run", "--seed", "4294967296"}, 2, {"--seed"});
    check_refused({"run", "-ctk", "q3_0"}, 2, {"--cache-type-k", "q8_0", "iq4_nl"});
    check_refused({"run", "-ctv", "Q8_0"}, 2, {"--cache-type-v", "q8_0"});
    check_refused({"run", "--cpu-level", "sse9"}, 2, {"avx2"});
    check_refused({"run", "-l", "12"}, 2, {"15043+1"});
    check_refused({"run", "-l", "12+inf"}, 2, {"12+inf"});
    check_refused({"run", "--stop", ""}, 2, {"--stop"});
    check_refused({"run", "-sys", "x", "-p", "y", "--raw"}, 2, {"--raw"});
    check_refused({"bench", "-p", "1,,2"}, 2, {"--n-prompt"});
    check_refused({"bench", "-m", chain_model(), "-p", "0", "-n", "0"}, 2, {"nothing to measure"});
    check_refused({"bench", "-m", chain_model(), "-t", "5000"}, 2, {"--threads"});
}

TEST_CASE("cli: a model that is missing, a folder, cut short, or of another kind") {
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
    check_refused({"run", "-p", "a", "-m", chain_model(), "--device", "abacus"}, 3, {"abacus", "cpu"});
}

TEST_CASE("cli: closed standard streams are not taken for files that are opened later") {
    Launch what = command(greedy({"-p", "a"}));
    what.close_output = true;
    const Outcome got = launch(what);
    CHECK(got.code == 1);
    CHECK(has(got.err, "standard output"));
}

TEST_CASE("bench: a record for every test, with llama-bench's names") {
    on_each_device([] {
        const Outcome got = redline_({"bench", "-m", chain_model(), "-p", "16", "-n", "4", "-pg", "8,2", "-d",
                                      "0,5", "-r", "2", "-t", "1", "--json", "-q"});
        REQUIRE_MESSAGE(got.code == 0, got.err);
        const Json all = parse_json(got.out);
        REQUIRE(all.size() == 6);
        for (const Json& one : all) {
            CHECK(one["samples_ns"].size() == 2);
            CHECK(one["avg_ts"].get<double>() > 0.0);
            CHECK(one["gb_per_s"].get<double>() > 0.0);
            CHECK(one["n_threads"] == (backend() == "cpu" ? 1 : 0));
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
    });
}

TEST_CASE("bench: what -ngl and --n-cpu-moe leave runs on the CPU, and the report says so") {
    on_each_device([] {
        if (backend() == "cpu") return;
        const auto record = [](const std::vector<std::string>& more) {
            std::vector<std::string> all = {"bench", "-m", mixture_model(), "-p", "8", "-n", "0", "-r",
                                            "1",     "-o", "json"};
            all.insert(all.end(), more.begin(), more.end());
            const Outcome got = redline_(all);
            REQUIRE_MESSAGE(got.code == 0, got.err);
            const Json one = parse_json(got.out)[0];
            CHECK(one["bandwidth_share"].get<double>() > 0.0);
            return fmt::format("{} {}", one["n_gpu_layers"].get<int>(), one["n_cpu_moe"].get<int>());
        };
        CHECK(record({}) == "2 0");
        CHECK(record({"-ngl", "1"}) == "1 0");
        CHECK(record({"--n-cpu-moe", "1"}) == "2 1");
        CHECK(record({"-ngl", "1", "--cpu-moe"}) == "1 1");
        const Outcome table =
            redline_({"bench", "-m", mixture_model(), "-p", "8", "-n", "2", "-r", "1", "--cpu-moe"});
        CHECK(has(table.out, fmt::format("| {}+cpu", backend())));
        CHECK(has(table.err, ", the experts of 2 on cpu ("));
    });
}

TEST_CASE("bench: --devices measures every device that can run the model, in one table") {
    Launch what;  // names no device
    what.arguments = {program(), "bench", "-m", chain_model(), "--devices", "-p",  "8",
                      "-n",      "2",     "-r", "1",           "-o",        "json"};
    const Outcome bench = launch(what);
    REQUIRE_MESSAGE(bench.code == 0, bench.err);
    std::vector<std::string> measured;
    for (const Json& record : parse_json(bench.out)) measured.push_back(record["device_id"]);
    const Json listed = parse_json(redline_({"devices", "--json"}).out);
    for (const Json& backend : listed["backends"])
        for (const Json& device : backend["devices"]) {
            const std::string id = device["id"];
            const auto times = std::count(measured.begin(), measured.end(), id);
            if (times == 0)  // then it is said why
                CHECK_MESSAGE(has(bench.err, id + " ("), bench.err);
            else
                CHECK(times == 2);  // pp8 and tg2
        }
    CHECK(std::count(measured.begin(), measured.end(), "cpu") == 2);
    check_refused({"bench", "-m", chain_model(), "--devices"}, 2, {"--devices measures all"});
}

TEST_CASE("cli: devices explains the choice of the default") {
    const Outcome devices = redline_({"devices"});
    CHECK(has(devices.out, "by default: "));
    CHECK(has(devices.out, "in this order: vulkan, hip, cpu"));
    CHECK(has(devices.out, "bench --devices"));
}

// The CPU has one way to run a step; there only the report is tested.
TEST_CASE("bench: --soak finds no difference between replayed steps and those launched anew") {
    const std::vector<std::string>& devices = device_names();
    if (std::count(devices.begin(), devices.end(), "cpu") == int64_t(devices.size()))
        not_tested("replayed steps beside those launched anew: there is no device but the CPU");
    on_each_device([] {
        const Outcome soak =
            redline_({"bench", "-m", golden("models/llama3.gguf"), "--soak", "300", "-o", "json", "-q"});
        REQUIRE_MESSAGE(soak.code == 0, soak.err);
        const Json compared = parse_json(soak.out);
        CHECK(compared["device"]["backend"] == backend());
        CHECK(compared["steps"] == 300);
        CHECK(compared["logits_differ"] == 0);
        CHECK(compared["replayed_ms"].get<double>() > 0.0);
        CHECK(compared["text_tokens"].get<uint64_t>() < 300);  // several texts
    });
}

TEST_CASE("bench: --ops times every op of a step, and says what a CPU has no figure for") {
    const Outcome ops = redline_({"bench", "-m", chain_model(), "--ops", "-r", "1", "-q"});
    CHECK(ops.code == 0);
    CHECK(has(ops.out, "1 row,"));
    CHECK(has(ops.out, "512 rows"));
    CHECK(has(ops.out, "attention"));
    CHECK(has(ops.out, "matrix units not measured"));  // on a CPU
}

TEST_CASE("bench: a kind of run takes what it has a use for and refuses the rest") {
    const auto run = [](std::vector<std::string> more) {
        std::vector<std::string> all = {"bench", "-r", "1", "-q"};
        all.insert(all.end(), more.begin(), more.end());
        return redline_(all);
    };
    const Outcome sizes = run({"-m", chain_model(), "--ops", "-p", "3,7", "-n", "0", "-d", "0,5"});
    REQUIRE_MESSAGE(sizes.code == 0, sizes.err);
    for (const char* step :
         {"3 rows, cache of 3:", "7 rows, cache of 7:", "3 rows, cache of 8:", "7 rows, cache of 12:"})
        CHECK(has(sizes.out, step));
    CHECK_FALSE(has(sizes.out, "1 row,"));
    const std::vector<std::pair<std::vector<std::string>, const char*>> refused = {
        {{"--soak", "3", "--ops"}, "two kinds of run"},
        {{"--ops", "-o", "csv"}, "use md, json or jsonl"},
        {{"--ops", "-pg", "8,8"}, "--prompt-gen means nothing with --ops"},
        {{"--ops", "-b", "8"}, "--batch-size means nothing with --ops"},
        {{"--ops", "-ctk", "f16,q8_0"}, "one cache type"},
        {{"--ops", "--no-warmup"}, "--no-warmup means nothing with --ops"},
        {{"--ops", "-p", "0", "-n", "0"}, "name no tokens"},
        {{"--ops", "-p", "70000"}, "up to 65536"},
    };
    for (const auto& [flags, said] : refused) {
        std::vector<std::string> all = {"-m", chain_model()};
        all.insert(all.end(), flags.begin(), flags.end());
        const Outcome no = run(all);
        CHECK_MESSAGE(no.code == 2, no.out);
        CHECK_MESSAGE(has(no.err, said), no.err);
    }
    const std::vector<std::pair<std::vector<std::string>, const char*>> without_model = {
        {{"--ops", "-p", "8"}, "--n-prompt means nothing with --ops without -m"},
        {{"--ops", "-ctk", "q8_0"}, "--cache-type-k means nothing with --ops without -m"},
        {{"--ops", "-t", "1,2"}, "one number of threads"},
    };
    for (const auto& [flags, said] : without_model) {
        const Outcome no = run(flags);
        CHECK_MESSAGE(no.code == 2, no.out);
        CHECK_MESSAGE(has(no.err, said), no.err);
    }
    const Outcome soak = redline_({"bench", "-m", chain_model(), "--soak", "3", "-n", "8", "-q"});
    CHECK(soak.code == 2);
    CHECK(has(soak.err, "--n-gen means nothing with --soak"));
}

TEST_CASE("eval: the perplexity of a text that the model knows, as can be worked out by hand") {
    on_each_device([] {
        // Every scored token follows its predecessor in the chain: one logit is sqrt(dim), all others are 0.
        std::string ids;
        for (int i = 0; i < 64; ++i) ids += fmt::format("{} ", i % 26 == 25 ? 28 : 3 + i % 26);
        write_file(file("ids.txt"), ids);
        const Outcome got =
            redline_({"eval", "-m", ring_model(), "--ids", file("ids.txt"), "-c", "16", "--json", "-q"});
        REQUIRE_MESSAGE(got.code == 0, got.err);
        const Json all = parse_json(got.out);
        const double want = 1.0 + (ChainModel::kVocab - 1) * std::exp(-std::sqrt(double(ChainModel::kDim)));
        CHECK(all["perplexity"].get<double>() == doctest::Approx(want).epsilon(1e-5));
        CHECK(all["chunks"] == 4);
        CHECK(all["tokens_scored"] == 4 * 7);
        const Outcome text =
            redline_({"eval", "-m", ring_model(), "--ids", file("ids.txt"), "-c", "16", "-q"});
        CHECK(text.out.starts_with("[1]1.0000,[2]"));
        CHECK(has(text.out, "Final estimate: PPL = 1.0000 +/- "));
    });
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
    write_file(file("last.txt"), "3 4 5 99999 3 4 5 6");
    check_refused({"eval", "-m", chain_model(), "--ids", file("last.txt"), "-c", "4", "-q"}, 1,
                  {"chunk 1: token id 99999 is outside the model's vocabulary of 290"});
    write_file(file("none.txt"), " \n");
    check_refused({"eval", "-m", chain_model(), "--ids", file("none.txt"), "-q"}, 1, {"no token ids"});
}

TEST_CASE("eval: --logits writes what NumPy reads, of as many tokens as the context holds") {
    on_each_device([] {
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
        CHECK(has(bytes.substr(0, header),
                  fmt::format("'descr': '<f4', 'fortran_order': False, 'shape': (4, {})",
                              int(ChainModel::kVocab))));
        REQUIRE(bytes.size() == header + 4 * size_t(ChainModel::kVocab) * 4);
        float value = 0.0f;
        std::memcpy(&value, bytes.data() + header + 4 * 4, 4);  // of "b" after "a"
        CHECK(value == doctest::Approx(std::sqrt(double(ChainModel::kDim))).epsilon(1e-3));
        check_refused(
            {"eval", "-m", chain_model(), "--ids", file("five.txt"), "--logits", "/nowhere/x.npy", "-q"}, 1,
            {"/nowhere/x.npy"});
        // Before the text is read, which may come slowly.
        check_refused({"eval", "-m", chain_model(), "-f", "/nowhere/text", "--logits", "/nowhere/x.npy"}, 1,
                      {"/nowhere/x.npy"});
    });
}

TEST_CASE("info: what is in a file, with nothing in it that could steer a terminal") {
    on_each_device([] {
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
        CHECK(has(got.out, " 10 heads of 32, 2 kv"));
        CHECK(has(got.out, "290 elements"));
        CHECK_FALSE(has(got.out, std::string(1000, 'x')));
        CHECK(has(redline_({"info", "-m", file("evil.gguf"), "--all"}).out, std::string(5000, 'x')));

        const Json all = parse_json(redline_({"info", "-m", file("evil.gguf"), "--json", "--plan"}).out);
        CHECK(all["runs"] == true);
        CHECK(all["shape"]["layers"] == 2);
        CHECK(all["memory"]["fits"] == true);
        CHECK(all["plan"]["steps"].size() == all["plan"]["ops"]);
        CHECK(all["metadata"]["llama.attention.layer_norm_rms_epsilon"] == 1e-6);
    });
}

TEST_CASE("a format that a device has no kernels for is said to be decoded, with the memory that it takes") {
    small_llama_in(*find_format("F64")).save(file("wide.gguf"));
    // 24, 256, 128, 128, 256, 256, 256 and 256 rows of 256 columns.
    const std::string said = "8 tensors in F64 are decoded to F16 while loading: 780 KiB instead of 3.0 MiB";
    const Outcome info = redline_({"info", "-m", file("wide.gguf"), "--device", "cpu"});
    CHECK(has(info.out, said));
    CHECK(has(info.out, "weights 788 KiB"));
    CHECK(has(redline_({"run", "-v", "-m", file("wide.gguf"), "-p", "a", "-n", "1", "--device", "cpu"}).err,
              said));
}

TEST_CASE("notes about a file are shown by info, and by run, chat and bench pointed to once for each file") {
    const std::string model = file("noted.gguf"), cache = file("noted-cache");
    small_llama_in(*find_format("F64")).save(model);
    const auto told = [&](std::vector<std::string> arguments) {
        Launch what = command(std::move(arguments));
        what.environment = {"XDG_CACHE_HOME=" + cache};
        what.input = "";
        const Outcome got = launch(what);
        CHECK_MESSAGE(got.code == 0, got.err);
        return got.err;
    };
    const std::vector<std::string> run = {"run", "-m", model, "-p", "a", "-n", "1", "--device", "cpu"};
    const std::string first = told(run);
    CHECK_MESSAGE(has(first, " about this file: redline info " + model + " shows it; this line comes once"),
                  first);
    CHECK(std::count(first.begin(), first.end(), '\n') == 1);
    CHECK(told(run).empty());
    CHECK_FALSE(has(told({"bench", "-m", model, "-p", "4", "-n", "0", "-r", "1", "--device", "cpu"}),
                    "about this file"));
    // A file that has changed is another one; with -v all is said each time.
    std::filesystem::last_write_time(model, std::filesystem::last_write_time(model) - std::chrono::hours(1));
    CHECK(has(told(run), "about this file"));
    std::vector<std::string> loud = run;
    loud.emplace_back("-v");
    CHECK(has(told(loud), "are decoded to F16 while loading"));
    CHECK(has(told(loud), "are decoded to F16 while loading"));
    // Where nothing can be stored it always prints the note.
    write_file(file("no-folder"), "");
    for (int time = 0; time < 2; ++time) {
        Launch what = command(run);
        what.environment = {"XDG_CACHE_HOME=" + file("no-folder")};
        CHECK(has(launch(what).err, "about this file"));
    }
}

TEST_CASE("a context of 0 or auto is the most that fits into the memory to plan with") {
    const std::string model = RL_SOURCE_DIR "/models/demo/redline-demo-q8_0.gguf";
    // With one thread, so that the cache counts for more than the staging of loading.
    const auto info = [&](std::vector<std::string> more) {
        std::vector<std::string> words = {"info", "-m", model, "--device", "cpu", "-t", "1", "--json"};
        words.insert(words.end(), more.begin(), more.end());
        return parse_json(redline_(words).out)["memory"];
    };
    const Json whole = info({"-c", "0"});
    const uint64_t trained = whole["context"];
    CHECK(whole["fits"] == true);
    CHECK(whole["largest_context"] == trained);
    // Room for the weights, and for half of the rest.
    const uint64_t total = whole["total"], cache = whole["cache"];
    const std::string budget = fmt::format("{}K", (total - cache / 2) / 1024);
    const Json half = info({"-c", "auto", "--mem-budget", budget});
    CHECK(half["fits"] == true);
    CHECK(half["context"] < trained);
    CHECK(half["context"] == half["largest_context"]);
    CHECK(half["limit"].get<std::string>().find("as asked for") != std::string::npos);
    const Outcome run = redline_({"run", "-m", model, "--device", "cpu", "-t", "1", "-c", "0", "--mem-budget",
                                  budget, "--raw", "-p", "ab", "-n", "3", "--spec-type", "none"});
    CHECK(run.code == 0);
    CHECK(has(run.err,
              fmt::format("a context of {} tokens is the most that fits", half["context"].get<uint64_t>())));
    check_refused(
        {"run", "-m", model, "--device", "cpu", "-c", "0", "--mem-budget", "1K", "--raw", "-p", "ab"}, 1,
        {"no context fits", "as asked for"});
    check_refused({"run", "-m", model, "--mem-budget", "12"}, 2, {"12G"});
    // A model that does not fit is still described.
    CHECK(info({"-c", "0", "--mem-budget", "1K"})["fits"] == false);
}

TEST_CASE("doctor: says what it finds, for people and for programs, and changes nothing") {
    const Outcome text = redline_({"doctor", "--no-measure"});
    CHECK(text.code <= 1);
    CHECK(has(text.out, "by default models run on"));
    const Json all = parse_json(redline_({"doctor", "--no-measure", "--json"}).out);
    CHECK(all["machine"]["memory_total"] > 0);
    for (const Json& finding : all["findings"]) CHECK(!finding["what"].get<std::string>().empty());
    // A machine whose GPU has another kernel driver: a problem, with what mends it and status 1.
    Files files = rx_7900_xtx();
    files["/sys/class/drm/card0/device/uevent"] = "DRIVER=radeon\nPCI_SLOT_NAME=0000:03:00.0\n";
    const Tree tree(files);
    const Outcome wrong = redline_({"doctor", "--no-measure", "--root", tree.root});
    INFO(wrong.out);
    CHECK(wrong.code == 1);
    CHECK(has(wrong.out, "problem  GPU 0000:03:00.0"));
    CHECK(has(wrong.out, "-> load amdgpu"));
    const Json found = parse_json(redline_({"doctor", "--no-measure", "--json", "--root", tree.root}).out);
    CHECK(found["machine"]["gpus"][0]["target"] == "gfx1100");
    CHECK(found["findings"][0]["severity"] == "problem");
    check_refused({"doctor", "--frobnicate"}, 2, {"--frobnicate"});
}

TEST_CASE("info: a file that cannot run is described all the same, with the reason") {
    GgufBuilder other;
    other.add("general.architecture", std::string("spaceship"));
    other.tensor_f32("hull.weight", {4, 4}, std::vector<float>(16));
    other.save(file("other.gguf"));
    const Outcome got = redline_({"info", "-m", file("other.gguf")});
    CHECK(got.code == 0);
    CHECK(has(got.out, "cannot run"));
    CHECK(has(got.out, "architecture spaceship is not known to redline"));
    CHECK(parse_json(redline_({"info", "-m", file("other.gguf"), "--json"}).out)["runs"] == false);
    // Its tokenizer and how a conversation is written are shown, too.
    GgufBuilder later = small_llama();
    std::erase_if(later.keys, [](const auto& key) { return key.name == "general.architecture"; });
    later.add("general.architecture", std::string("llama9"));
    later.save(file("later.gguf"));
    const Json shown = parse_json(redline_({"info", "-m", file("later.gguf"), "--json"}).out);
    CHECK(shown["runs"] == false);
    CHECK(shown["tokenizer"]["kind"] == "SPM");
    CHECK(shown.contains("chat_template"));
}
