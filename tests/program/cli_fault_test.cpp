// Faults while the program runs: devices that compute nothing, files that cannot be written, memory that
// cannot be had, and signals.
#include "base/file.h"
#include "cli/terminal/terminal.h"
#include "json/json.h"
#include "support/program.h"

#include <sys/stat.h>

using namespace redline;
using namespace redline::test;

namespace fs = std::filesystem;

TEST_CASE("fault: logits that are all the same are an error in every command that makes some") {
    ChainModel flat;
    flat.chat = true;
    flat.next.clear();
    flat.build().save(file("flat.gguf"));
    write_file(file("letters.txt"), "abcdefghijklmnopqrst");
    const std::vector<std::vector<std::string>> commands = {
        {"run", "-p", "a"},
        {"eval", "-f", file("letters.txt"), "-c", "8"},
        {"eval", "-f", file("letters.txt"), "--logits", file("flat.npy")},
        {"bench", "-p", "8", "-n", "0", "-r", "1", "-o", "json"}};
    for (std::vector<std::string> arguments : commands) {
        arguments.insert(arguments.end(), {"-m", file("flat.gguf"), "--device", "cpu", "-q"});
        check_refused(arguments, 1, {"all 290 logits are 0", "the model file is damaged"});
    }
    CHECK_FALSE(fs::exists(file("flat.npy")));
    const Outcome chat = redline_({"chat", "-m", file("flat.gguf"), "--device", "cpu", "-q"}, "hello\n");
    CHECK(chat.code == 1);
    CHECK(chat.out.empty());
    CHECK(has(chat.err, "all 290 logits are 0"));
}

TEST_CASE("fault: what cannot be a model's output ends the answer, which is kept, with status 1") {
    ChainModel chain;
    chain.chat = true;
    chain.broken = ChainModel::kLetterA + 3;
    chain.next[ChainModel::kNewline] = ChainModel::kLetterA + 1;
    chain.build().save(file("breaks.gguf"));
    const std::vector<std::string> words = {
        "run", "-m", file("breaks.gguf"), "--raw", "-p", "a", "--temp", "0", "-t", "1", "-q"};
    const Outcome ran = redline_(words);
    CHECK(ran.code == 1);
    CHECK(ran.out == "bcd");
    CHECK(has(ran.err, " is nan: the model file is damaged"));
    CHECK(std::count(ran.err.begin(), ran.err.end(), '\n') <= 2);
    std::vector<std::string> for_programs = words;
    for_programs.push_back("--json");
    const Outcome json = redline_(for_programs);
    CHECK(json.code == 1);
    const auto report = parse_json(json.out);
    CHECK(report["text"] == "bcd");
    CHECK(report["stop_reason"] == "broken");
    CHECK(has(report["error"].get<std::string>(), " is nan: "));

    const Outcome chat = redline_({"chat", "-m", file("breaks.gguf"), "-t", "1", "--temp", "0", "-q"},
                                  "hello\n/show\nhello\n");
    INFO(chat.out, chat.err);
    CHECK(chat.code == 1);

    write_file(file("abc.txt"), "abcabcabcabcabcabcabcabcabdabcab");
    const Outcome eval =
        redline_({"eval", "-m", file("breaks.gguf"), "-f", file("abc.txt"), "-c", "16", "-q"});
    CHECK(eval.code == 1);
    CHECK(has(eval.err, "chunk 2: after token 12: logit "));
}

TEST_CASE("fault: a device that was asked for and is not there is exit status 3 in every command") {
    write_file(file("letters.txt"), "abcdefghijklmnopqrst");
    const std::vector<std::vector<std::string>> commands = {
        {"run", "-p", "a", "-m", chain_model()},
        {"chat", "-m", chat_model()},
        {"eval", "-f", file("letters.txt"), "-c", "8", "-m", chain_model()},
        {"bench", "-p", "8", "-n", "0", "-m", chain_model()},
        {"info", "--json", "-m", chain_model()},
        {"models"}};
    for (std::vector<std::string> arguments : commands)
        for (const std::string name : {"abacus", "vulkan:99", "hip:99", "gpu:99"}) {
            std::vector<std::string> all = arguments;
            all.insert(all.end(), {"--device", name, "-q"});
            check_refused(all, 3, {});
        }
}

TEST_CASE("fault: a driver that does not load is named when the default is another device") {
    write_file(file("broken_icd.json"),
               R"({"file_format_version": "1.0.0", "ICD": {"library_path": "./no_such_driver.so"}})");
    Launch what;  // names no device
    what.arguments = {program(), "run", "-m", chain_model(), "-p", "ab", "-t", "1", "-n", "1", "--raw"};
    what.environment = {"VK_DRIVER_FILES=" + file("broken_icd.json"), "HIP_VISIBLE_DEVICES=-1"};
    const Outcome got = launch(what);
    INFO(got.err);
    CHECK(got.code == 0);
    CHECK(has(got.err, "note: Vulkan's driver file " + file("broken_icd.json") + " names "));
    CHECK(has(got.err, "no_such_driver.so, which does not exist"));
}

TEST_CASE("fault: a prompt cache of a model with other metadata or weights is refused") {
    const auto model = [](const std::string& name, float rope_base, float gain) {
        ChainModel chain;
        chain.gain = gain;
        chain.extra.add("llama.rope.freq_base", rope_base);
        chain.build().save(file(name));
        return file(name);
    };
    const auto arguments = [](const std::string& path) {
        return std::vector<std::string>{"run",
                                        "-m",
                                        path,
                                        "-p",
                                        "abc",
                                        "-n",
                                        "2",
                                        "--temp",
                                        "0",
                                        "-q",
                                        "--device",
                                        "cpu",
                                        "--prompt-cache",
                                        file("model.cache")};
    };
    const std::string first = model("first.gguf", 10000.0f, 1.0f);
    CHECK(redline_(arguments(first)).out == "de");
    CHECK(redline_(arguments(first)).code == 0);
    check_refused(arguments(model("rope.gguf", 20000.0f, 1.0f)), 1, {"another model"});
    check_refused(arguments(model("gain.gguf", 10000.0f, 2.0f)), 1, {"another model"});
}

TEST_CASE("fault: a prompt cache that cannot be written costs a message, not the answer") {
    const Outcome got = redline_(
        greedy({"-p", "a", "-n", "3", "-q", "--device", "cpu", "--prompt-cache", "/nowhere/x.cache"}));
    CHECK(got.code == 0);
    CHECK(got.out == "bcd");
    CHECK(has(got.err, "the prompt cache is not kept: cannot create /nowhere/x.cache: "));
}

TEST_CASE("fault: a prompt cache is for its user only, other files are as the umask says") {
    const auto permissions = [](const std::string& path) { return unsigned(fs::status(path).permissions()); };
    write_file(file("ids.txt"), "3 4 5 6");
    const auto write = [&](mode_t mask) {
        const mode_t before = ::umask(mask);
        CHECK(
            redline_(greedy({"-p", "ab", "-n", "1", "--device", "cpu", "--prompt-cache", file("mine.cache")}))
                .code == 0);
        CHECK(redline_({"eval", "-m", chain_model(), "--ids", file("ids.txt"), "--logits", file("mode.npy"),
                        "--device", "cpu"})
                  .code == 0);
        ::umask(before);
    };
    write(022);
    CHECK(permissions(file("mine.cache")) == 0600);
    CHECK(permissions(file("mode.npy")) == 0644);
    fs::remove(file("mine.cache"));
    write(0277);
    CHECK(permissions(file("mine.cache")) == 0400);
    CHECK(permissions(file("mode.npy")) == 0400);
}

static const std::pair<int, int> kEnds[] = {
    {SIGINT, 130}, {SIGTERM, 143}, {SIGHUP, 129}};  // signal, exit code

TEST_CASE("fault: SIGTERM and SIGHUP end a text as Ctrl-C does") {
    for (const auto& [signal, code] : kEnds) {
        Launch endless = command({"run", "-v", "-m", ring_model(), "-p", "a", "--temp", "0",
                                  "--context-shift", "--device", "cpu"});
        endless.signal = signal;
        endless.interrupt_when = [](const std::string& out) { return out.size() > 100; };
        const Outcome got = launch(endless);
        CHECK(got.code == code);
        CHECK(has(got.err, "interrupted"));
        CHECK(has(got.err, "decode:"));
    }
}

// The exit code of a separate process that runs `work`, which does not return by itself.
static int code_of(const std::function<void()>& work) {
    std::fflush(nullptr);
    const pid_t child = ::fork();
    if (child == 0) {
        cli::catch_signals();
        work();
        ::_exit(0);
    }
    int status = 0;
    ::waitpid(child, &status, 0);
    return WIFEXITED(status) ? WEXITSTATUS(status) : -WTERMSIG(status);
}

TEST_CASE("fault: a signal leaves no partial file, and a second one ends what hangs") {
    fs::create_directories(file("partial"));
    const auto write = [] { return AtomicWriter::create(file("partial/file")); };
    for (const auto& [signal, code] : kEnds) {
        INFO(signal);
        CHECK(code_of([&, number = signal] {
                  const Result<AtomicWriter> file = write();
                  std::raise(number);
              }) == code);
        CHECK(fs::is_empty(file("partial")));
        CHECK(code_of([&, number = signal] {
                  const Result<AtomicWriter> file = write();
                  const cli::Interrupts interrupts;
                  std::raise(number);
                  std::raise(number);  // at once: the same wish
                  if (!interrupts.raised()) ::_exit(1);
                  ::usleep(200000);
                  std::raise(number);
              }) == code);
        CHECK(fs::is_empty(file("partial")));
    }
    // Under nohup the end of the terminal is no matter.
    CHECK(code_of([] {
              std::signal(SIGHUP, SIG_IGN);
              cli::catch_signals();
              std::raise(SIGHUP);
          }) == 0);
    {
        Result<AtomicWriter> whole = write();
        REQUIRE(whole.ok());
        CHECK(whole->commit().ok());
    }
    CHECK(fs::exists(file("partial/file")));
}
