// Memory that is not to be had: in the threads of the CPU's team, in those that load, and in the whole
// program.
#include "backends/cpu/runtime/threads.h"
#include "backends/shared/load_items.h"
#include "support/program.h"

#include <filesystem>

using namespace redline;
using namespace redline::test;

TEST_CASE("memory: a thread of the team that has none ends the run with an error, and the team goes on") {
    for (const uint32_t count : {1u, 3u})
        for (uint32_t failing = 0; failing < count; ++failing) {
            CAPTURE(count);
            CAPTURE(failing);
            cpu::Team team(count);
            std::atomic<uint32_t> beyond = 0;
            const Status broken = team.run([&](const cpu::Worker& worker) {
                worker.barrier();
                if (worker.index == failing) throw std::bad_alloc();
                worker.barrier();
                ++beyond;
            });
            REQUIRE_FALSE(broken.ok());
            CHECK(has(broken.error().message, "not enough memory"));
            CHECK(beyond == 0);
            const Status sound = team.run([&](const cpu::Worker& worker) {
                worker.barrier();
                ++beyond;
                worker.barrier();
            });
            CHECK(sound.ok());
            CHECK(beyond == count);
        }
}

TEST_CASE("memory: a thread that loads and has none is an error with the tensor's name") {
    struct Item {
        uint32_t weight = 0;
    };
    const std::vector<Item> items(8);
    const std::vector<WeightInfo> weights = {{{"blk.0.up", find_format("F32"), {1, 1, 32}}}};
    const Status loaded = load_items<Item>(
        weights, items, 3, {}, [](size_t, const Item&) -> Result<uint64_t> { throw std::bad_alloc(); });
    REQUIRE_FALSE(loaded.ok());
    CHECK(loaded.error().message == "tensor blk.0.up: not enough memory to load it");
}

TEST_CASE("memory: whatever the limit, the program ends by itself, with its answer or an error") {
#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
    MESSAGE("not tested: sanitizers reserve more addresses than any of these limits");
    return;
#endif
    const std::string demo = std::string(RL_SOURCE_DIR) + "/models/demo/redline-demo-q8_0.gguf";
    const std::string quantized = file("small.gguf");
    const std::vector<std::string> commands = {
        fmt::format("run -m {} -p hello -n 2 -t 3 --device cpu", demo),
        fmt::format("quantize {} {} Q4_0 -t 3 --allow-requantize --overwrite", demo, quantized)};
    // The kernel ends a program whose file does not fit.
    const int least = (int(std::filesystem::file_size(RL_REDLINE) >> 20) / 8 + 1) * 8;
    for (const std::string& arguments : commands) {
        bool refused = false, done = false;
        for (int mib = least; mib <= 1024; mib += mib < 160 ? 8 : 96) {
            Launch what;
            what.arguments = {"/bin/sh", "-c",
                              fmt::format("ulimit -v {}; exec {} {}", mib * 1024, RL_REDLINE, arguments)};
            const Outcome got = launch(what);
            INFO(mib, " MiB: ", arguments, "\n", got.err);
            // 3: the device takes threads that there is no room for; 127: the loader of programs.
            CHECK((got.code == 0 || got.code == 1 || got.code == 3 || got.code == 127));
            refused |= got.code == 1 && got.err.starts_with("redline: ");
            done |= got.code == 0;
        }
        CHECK(refused);
        CHECK(done);
    }
}
