// One model over the ranks of an MPI job, as mpirun starts it. Skipped where no MPI is installed, or the
// build has no plug-in for it.
#include "json/json.h"
#include "support/at_end.h"
#include "support/http_client.h"
#include "support/models.h"
#include "support/program.h"

#include <charconv>
#include <thread>

using namespace redline;
using namespace redline::test;

namespace {

namespace fs = std::filesystem;

struct Launcher {
    std::string path;
    std::vector<std::string> options;
    std::string rank;  // the variable that has a process's rank
};

// The launchers here for which there is a plug-in beside the program.
std::vector<Launcher> found_launchers() {
    std::vector<Launcher> all;
    const auto has_plugin = [](const std::string& name) {
        return fs::exists(fs::path(program()).parent_path() / ("redline-mpi-" + name + ".so"));
    };
    if (fs::exists("/usr/bin/mpirun.openmpi") && has_plugin("openmpi"))
        all.push_back(
            {"/usr/bin/mpirun.openmpi", {"--oversubscribe", "--bind-to", "none"}, "OMPI_COMM_WORLD_RANK"});
    if (fs::exists("/usr/bin/mpirun.mpich") && has_plugin("mpich"))
        all.push_back({"/usr/bin/mpirun.mpich", {}, "PMI_RANK"});
    return all;
}

const std::vector<Launcher>& launchers() {
    static const std::vector<Launcher> all = found_launchers();
    return all;
}

constexpr const char* kNoMpi = "neither OpenMPI nor MPICH is here, or this build has no plug-in for it";

Launch of_ranks(const Launcher& launcher, int ranks, std::vector<std::string> arguments) {
    Launch what;
    what.arguments = {launcher.path};
    const auto add = [&](const std::vector<std::string>& more) {
        what.arguments.insert(what.arguments.end(), more.begin(), more.end());
    };
    add(launcher.options);
    add({"-n", std::to_string(ranks), program()});
    add(arguments);
    static const std::string cache = "XDG_CACHE_HOME=" + file("mpi_cache");
    what.environment = {"OMPI_ALLOW_RUN_AS_ROOT=1", "OMPI_ALLOW_RUN_AS_ROOT_CONFIRM=1", cache};
    what.input = "";
    return what;
}

Json bench(const Outcome& outcome) {
    CHECK_MESSAGE(outcome.code == 0, outcome.err);
    const Json all = read_json(outcome.out);
    return all.is_array() && !all.empty() ? all[0] : Json::object();
}

// A process of this job by its rank: one of those that have the launcher among their parents.
pid_t process_of(const Launcher& launcher, const std::string& model, int rank) {
    for (const auto& entry : fs::directory_iterator("/proc")) {
        const std::string name = entry.path().filename();
        pid_t process = 0;
        if (std::from_chars(name.data(), name.data() + name.size(), process).ec != std::errc()) continue;
        const auto content = [&](const char* what) {
            std::ifstream in(entry.path() / what, std::ios::binary);
            return std::string(std::istreambuf_iterator<char>(in), {});
        };
        if (content("environ").find(fmt::format("{}={}", launcher.rank, rank) + '\0') == std::string::npos)
            continue;
        if (content("cmdline").starts_with(program()) && has(content("cmdline"), model)) return process;
    }
    return 0;
}

// Serves the model until `use` has returned, which gets the port once requests are answered. Then the
// launcher gets a signal; `late`: the ranks end without one.
Outcome serve(const Launcher& launcher, std::vector<std::string> arguments,
              const std::function<void(uint16_t)>& use, bool late = false) {
    std::vector<std::string> all = {"serve", "--port", "0", "--device", "cpu"};
    all.insert(all.end(), arguments.begin(), arguments.end());
    Launch what = of_ranks(launcher, 2, all);
    if (launcher.rank.starts_with("OMPI"))
        what.arguments.insert(what.arguments.begin() + 1, {"--mca", "odls_base_sigkill_timeout", "20"});
    what.signal = late ? 0 : SIGTERM;
    what.interrupt_when = [&use](const std::string& out) {
        const size_t colon = out.rfind(':');
        if (out.empty() || out.back() != '\n' || colon == out.npos) return false;
        const auto port = uint16_t(std::atoi(out.c_str() + colon + 1));
        for (int i = 0; i < 600 && http_get(port, "/health").status != 200; ++i)
            std::this_thread::sleep_for(std::chrono::milliseconds(50));
        use(port);
        return true;
    };
    return launch(what);
}

Json completion(uint16_t port, const Json& more) {
    Json body = {{"prompt", "a"}, {"temperature", 0}};
    body.update(more);
    return read_json(http_post(port, "/v1/completions", body.dump()).body);
}

}  // namespace

TEST_CASE("mpi: prompts and tokens over two to four ranks have the logits of one process, bit for bit") {
    if (launchers().empty()) RL_SKIP(kNoMpi);
    for (const std::string name : {"llama3", "qwen3moe", "mamba2"}) {
        const std::vector<std::string> arguments = {
            "bench", "--device", "cpu", "-m", golden("models/" + name + ".gguf"),
            "-p",    "0",        "-n",  "0",  "-pg",
            "40,5",  "-b",       "16",  "-r", "1",
            "-o",    "json"};
        Launch alone;
        alone.arguments = {program()};
        alone.arguments.insert(alone.arguments.end(), arguments.begin(), arguments.end());
        alone.environment = of_ranks({}, 1, {}).environment;
        const Json want = bench(launch(alone));
        for (const Launcher& launcher : launchers())
            for (const int ranks : {2, 4}) {
                // One of each kind is enough: a job takes a second and more to measure its devices.
                if (ranks == 4 && name != "llama3") continue;
                if (&launcher != &launchers()[0] && (ranks == 4 || name != "llama3")) continue;
                INFO(name, " over ", ranks, " ranks of ", launcher.path);
                const Json got = bench(launch(of_ranks(launcher, ranks, arguments)));
                CHECK(got["logits_hash"] == want["logits_hash"]);
                REQUIRE(got["ranks"].size() == size_t(ranks));
                CHECK(got["ranks"].back()["rank"] == 0);
                CHECK(got["ranks"][0]["hop_seconds"].is_number());
            }
    }
}

TEST_CASE(
    "mpi: each layer divided over two to four ranks gives the same logits each time, and says its parts") {
    if (launchers().empty()) RL_SKIP(kNoMpi);
    const Launcher& launcher = launchers()[0];
    for (const std::string name : {"llama3", "qwen3moe", "qwen35", "deepseek2-v3"})
        for (const int ranks : {2, 3, 4}) {
            if (ranks > 2 && name != "llama3") continue;
            INFO(name, " over ", ranks, " ranks");
            const auto run = [&] {
                return bench(launch(of_ranks(
                    launcher, ranks,
                    {"bench", "--device", "cpu", "-sm", "tensor", "-m", golden("models/" + name + ".gguf"),
                     "-p", "0", "-n", "0", "-pg", "40,5", "-b", "16", "-r", "1", "-o", "json"})));
            };
            const Json first = run(), second = run();
            REQUIRE(first.contains("logits_hash"));
            CHECK(first["logits_hash"] == second["logits_hash"]);
            REQUIRE(first["ranks"].size() == size_t(ranks));
            double shares = 0.0;
            for (const Json& rank : first["ranks"]) {
                REQUIRE(rank["share"].is_number());
                shares += rank["share"].get<double>();
                CHECK(rank["first_layer"].is_null());
                CHECK(rank["sum_seconds"].is_number());
            }
            CHECK(shares == doctest::Approx(1.0));
        }
}

TEST_CASE("mpi: ranks that divide each layer answer as one process does, and tell what is summed") {
    if (launchers().empty()) RL_SKIP(kNoMpi);
    for (const std::vector<std::string>& more :
         {std::vector<std::string>{"-sm", "tensor"},
          {"-sm", "tensor", "-ts", "3,1", "--spec-type", "ngram-simple"}}) {
        std::vector<std::string> arguments = {"run",           "-v", "--device", "cpu", "-m",
                                              mixture_model(), "-p", "a"};
        arguments.insert(arguments.end(), more.begin(), more.end());
        const Outcome outcome = launch(of_ranks(launchers()[0], 2, arguments));
        CHECK_MESSAGE(outcome.code == 0, outcome.err);
        CHECK(outcome.out == ChainModel::kWholeText);
        CHECK_MESSAGE(has(outcome.err, "layers over rank 0's cpu ("), outcome.err);
        CHECK_MESSAGE(has(outcome.err, "over 2 devices, over MPI"), outcome.err);
    }
    const Outcome open = launch(of_ranks(
        launchers()[0], 2, {"run", "-v", "--device", "cpu", "-m", chain_model(), "-p", "a", "-sm", "auto"}));
    CHECK_MESSAGE(open.code == 0, open.err);
    CHECK_MESSAGE(has(open.err, "whole layers are shared out: the speed of the ranks is not known"),
                  open.err);
    const Outcome info = launch(of_ranks(
        launchers()[0], 2, {"info", "--json", "--device", "cpu", "-m", mixture_model(), "-sm", "tensor"}));
    const Json all = read_json(info.out);
    REQUIRE_MESSAGE(all["memory"].contains("tensors"), info.err);
    CHECK(all["memory"]["tensors"]["ranks"].size() == 2);
    CHECK(all["memory"]["tensors"]["sum_seconds"].is_number());
}

TEST_CASE("mpi: rank 0 answers and tells the plan, the others print nothing; guesses change no text") {
    if (launchers().empty()) RL_SKIP(kNoMpi);
    for (const Launcher& launcher : launchers())
        for (const std::string guesses : {"none", "ngram-simple"}) {
            INFO(launcher.path, " ", guesses);
            const Outcome outcome = launch(of_ranks(
                launcher, 2,
                {"run", "-v", "--device", "cpu", "-m", mixture_model(), "-p", "a", "--spec-type", guesses}));
            CHECK_MESSAGE(outcome.code == 0, outcome.err);
            CHECK(outcome.out == ChainModel::kWholeText);
            CHECK(has(outcome.err, "rank 1: layer"));
            CHECK(has(outcome.err, "crossings of a token: "));
        }
}

TEST_CASE(
    "mpi: a server of two ranks has the texts of one process for two users, one that leaves, and a drain") {
    if (launchers().empty()) RL_SKIP(kNoMpi);
    for (const Launcher& launcher : launchers())
        for (const std::string mode : {"layer", "tensor"}) {
            INFO(launcher.path, " ", mode);
            std::vector<std::string> texts(2);
            std::string last;
            const Outcome outcome = serve(launcher, {"-m", chain_model(), "-sm", mode}, [&](uint16_t port) {
                {
                    HttpConnection leaves(port);
                    leaves.send(http_text(
                        "POST", "/v1/completions",
                        R"({"prompt": "a", "stream": true, "ignore_eos": true, "max_tokens": 2000})"));
                    CHECK(leaves.receive());
                }
                std::vector<std::thread> clients;
                for (std::string& text : texts)
                    clients.emplace_back([&text, port] {
                        const Json got = completion(port, {{"max_tokens", 100}});
                        text = got.is_object() ? got["choices"][0].value("text", "") : "no answer";
                    });
                for (std::thread& client : clients) client.join();
                const Json got = completion(port, {{"max_tokens", 5}});
                last = got.is_object() ? got["choices"][0].value("text", "") : "no answer";
            });
            CHECK(has(outcome.err, "the server ends"));
            for (const std::string& text : texts) CHECK(text == ChainModel::kWholeText);
            CHECK(last == std::string(ChainModel::kWholeText).substr(0, 5));
        }
}

TEST_CASE("mpi: rank 0 reads the prompt from standard input") {
    if (launchers().empty()) RL_SKIP(kNoMpi);
    for (const Launcher& launcher : launchers()) {
        Launch what = of_ranks(launcher, 2, {"run", "--device", "cpu", "-m", chain_model()});
        what.input = "a";
        const Outcome outcome = launch(what);
        CHECK_MESSAGE(outcome.code == 0, outcome.err);
        CHECK(outcome.out == ChainModel::kWholeText);
    }
}

TEST_CASE("mpi: a rank that is killed ends the job with a message that names it") {
    if (launchers().empty()) RL_SKIP(kNoMpi);
    for (const Launcher& launcher : launchers())
        for (const std::string mode : {"layer", "tensor"}) {
            INFO(launcher.path, " ", mode);
            const Outcome outcome = serve(
                launcher, {"-m", ring_model(), "-sm", mode},
                [&](uint16_t port) {
                    HttpConnection waits(port);
                    waits.send(http_text(
                        "POST", "/v1/completions",
                        R"({"prompt": "a", "stream": true, "ignore_eos": true, "max_tokens": 100000})"));
                    CHECK(waits.receive());
                    const pid_t victim = process_of(launcher, ring_model(), 1);
                    REQUIRE(victim > 0);
                    ::kill(victim, SIGKILL);
                },
                true);
            CHECK(outcome.code != 0);
            CHECK_MESSAGE(has(outcome.err, "rank 1"), outcome.err);
        }
}

TEST_CASE("mpi: ranks with other files or options are named, and what runs in one process is refused") {
    if (launchers().empty()) RL_SKIP(kNoMpi);
    const Launcher launcher = launchers()[0];
    const auto two = [&](std::vector<std::string> second) {
        Launch what = of_ranks(launcher, 1, {"run", "--device", "cpu", "-m", chain_model(), "-p", "a"});
        second.insert(second.begin(), {":", "-n", "1", program(), "run", "--device", "cpu", "-p", "a"});
        what.arguments.insert(what.arguments.end(), second.begin(), second.end());
        return launch(what);
    };
    const Outcome file = two({"-m", mixture_model()}), option = two({"-m", chain_model(), "-c", "64"}),
                  missing = two({"-m", "/nowhere/model.gguf"});
    CHECK(file.code == 1);
    CHECK_MESSAGE(has(file.err, "rank 1: its model has "), file.err);
    CHECK(option.code == 1);
    CHECK_MESSAGE(has(option.err, "rank 1 was started with -c 64 (rank 0: -c -1)"), option.err);
    CHECK(missing.code == 1);
    CHECK_MESSAGE(has(missing.err, "rank 1: cannot open /nowhere/model.gguf"), missing.err);
    const Outcome command = launch(of_ranks(launcher, 2, {"tokenize", "-m", chain_model(), "abc"})),
                  tensor = launch(of_ranks(launcher, 3,
                                           {"run", "--device", "cpu", "-sm", "tensor", "-ts", "0,1,1", "-m",
                                            chain_model(), "-p", "a"})),
                  several = launch(of_ranks(
                      launcher, 2,
                      {"run", "--device", "cpu,cpu", "-sm", "tensor", "-m", chain_model(), "-p", "a"})),
                  whole = launch(of_ranks(launcher, 2,
                                          {"run", "--device", "cpu", "-sm", "tensor", "-m",
                                           golden("models/olmo2.gguf"), "-p", "a"}));
    CHECK(command.code != 0);
    CHECK_MESSAGE(has(command.err, "tokenize runs in one process"), command.err);
    CHECK(tensor.code == 1);
    CHECK_MESSAGE(has(tensor.err, "rank 0, which computes with all others, has no share"), tensor.err);
    CHECK(several.code == 1);
    CHECK_MESSAGE(has(several.err, "has several devices"), several.err);
    CHECK(whole.code == 1);
    CHECK_MESSAGE(has(whole.err, "rms_norm cannot be divided over devices"), whole.err);
}
