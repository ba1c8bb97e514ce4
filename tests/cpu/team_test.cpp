// The CPU's threads where other programs use the CPU, too: how many of them compute, and that those do it
// all.
#include "backends/cpu/runtime/threads.h"
#include "devices/device_choice.h"
#include "support/backends.h"
#include "support/models.h"

#include <random>

using namespace redline;
using namespace redline::test;
using cpu::RunTime;
using cpu::Team;
using cpu::TeamSize;
using cpu::Worker;

namespace {

// A machine as a team of n threads finds it: how many runs a second, and how many processors it gets.
struct Machine {
    std::function<double(uint32_t)> speed, processors;
};

// Each thread has a processor, and two are 1.4 times as fast as one.
Machine quiet(uint32_t cores = 2) {
    return {[=](uint32_t n) { return 200.0 * std::min(n, cores) / (0.7 + 0.3 * std::min(n, cores)); },
            [=](uint32_t n) { return double(std::min(n, cores)); }};
}

// Two cores, as measured beside so many busy programs.
Machine two_cores(double one, double both, uint32_t busy) {
    return {[=](uint32_t n) { return n == 1 ? one : both; },
            [=](uint32_t n) { return n * std::min(1.0, 2.0 / (n + busy)); }};
}

// So many cores, on `busy` of which another program computes: all threads wait for one that shares its core.
Machine many_cores(uint32_t cores, uint32_t busy) {
    const auto shared = [=](uint32_t n) { return n + busy > cores ? n + busy - cores : 0; };
    return {[=](uint32_t n) { return 20.0 * n * (shared(n) > 0 ? 0.5 : 1.0); },
            [=](uint32_t n) { return n - 0.5 * shared(n); }};
}

struct Passed {
    double seconds = 0.0, work = 0.0, trials = 0.0;  // seconds in trials
    double speed() const { return work / seconds; }
};

// The passes that a team makes in so many seconds.
Passed pass(TeamSize& size, const Machine& machine, double seconds) {
    Passed passed;
    while (passed.seconds < seconds) {
        const uint32_t n = size.threads();
        const double took = 1.0 / machine.speed(n);
        passed.seconds += took;
        passed.work += 1.0;
        if (n != size.settled()) passed.trials += took;
        size.ran({took, took * machine.processors(n), 1.0});
    }
    return passed;
}

}  // namespace

TEST_CASE("team: on a quiet machine all threads compute, and nothing else is tried") {
    for (const uint32_t cores : {1u, 2u, 16u}) {
        TeamSize size(cores);
        CHECK(pass(size, quiet(cores), 60.0).trials == 0.0);
        CHECK(size.threads() == cores);
    }
}

TEST_CASE("team: beside busy programs it is nearly as fast as the best number of threads") {
    struct Beside {
        double one, both;
        uint32_t busy;
    };
    for (const Beside& each : {Beside{200, 109, 1}, {150, 133, 2}, {75, 68, 4}, {13, 3, 30}, {60, 75, 1}}) {
        CAPTURE(each.busy);
        TeamSize size(2);
        const Machine machine = two_cores(each.one, each.both, each.busy);
        CHECK(pass(size, machine, 3.0).speed() > 0.9 * std::max(each.one, each.both));
        CHECK(pass(size, machine, 20.0).speed() > 0.95 * std::max(each.one, each.both));
    }
}

TEST_CASE("team: all threads compute again within a second after the other programs have ended") {
    for (const Machine& machine : {two_cores(200, 109, 1), two_cores(75, 50, 4), two_cores(13, 3, 30)}) {
        TeamSize size(2);
        pass(size, machine, 5.0);
        CHECK(size.settled() == 1);
        pass(size, quiet(), 1.0);
        CHECK(size.settled() == 2);
        CHECK(pass(size, quiet(), 10.0).trials == 0.0);
    }
}

TEST_CASE("team: time without runs brings the next trial nearer") {
    TeamSize size(2);
    pass(size, two_cores(13, 3, 30), 5.0);
    REQUIRE(size.settled() == 1);
    size.rested(60.0);
    pass(size, quiet(), 0.1);
    CHECK(size.settled() == 2);
}

TEST_CASE("team: of many threads as many compute as there are free cores, and all when these are free") {
    for (const uint32_t busy : {1u, 3u, 7u}) {
        CAPTURE(busy);
        TeamSize size(16);
        pass(size, many_cores(16, busy), 5.0);
        CHECK(size.settled() == 16 - busy);
        CHECK(pass(size, many_cores(16, busy), 10.0).speed() > 0.95 * 20.0 * (16 - busy));
        pass(size, many_cores(16, busy - 1), 5.0);
        CHECK(size.settled() == 16 - busy + 1);
        pass(size, quiet(16), 2.0);
        CHECK(size.settled() == 16);
    }
}

TEST_CASE("team: all threads compute where they share most cores, and fewer would be slower") {
    TeamSize size(16);
    const Machine machine = many_cores(16, 12);
    CHECK(pass(size, machine, 20.0).speed() > 0.95 * machine.speed(16));
    CHECK(size.settled() == 16);
}

TEST_CASE("team: a short disturbance costs one trial") {
    TeamSize size(2);
    pass(size, quiet(), 1.0);
    pass(size, two_cores(200, 150, 1), 0.05);
    CHECK(pass(size, quiet(), 10.0).trials < 0.05);
    CHECK(size.settled() == 2);
}

TEST_CASE("team: steps that last long are compared one by one") {
    TeamSize size(2);
    const Machine machine = two_cores(2.0, 1.1, 1);
    pass(size, machine, 3.0);
    CHECK(size.settled() == 1);
    CHECK(pass(size, machine, 200.0).speed() > 0.95 * 2.0);
}

// Time slices make single steps fast or slow by chance.
TEST_CASE("team: times that differ by chance do not keep it from what is best on average") {
    std::mt19937 random(3);
    std::uniform_real_distribution<double> factor(0.4, 1.6);
    TeamSize size(2);
    const Machine machine = two_cores(150, 80, 2);
    double seconds = 0.0, work = 0.0;
    for (; seconds < 30.0; work += 1.0) {
        const uint32_t n = size.threads();
        const double took = factor(random) / machine.speed(n);
        seconds += took;
        size.ran({took, took * machine.processors(n), 1.0});
    }
    CHECK(work / seconds > 0.9 * 150);
}

TEST_CASE("team: runs of any number of threads after one another are done by as many, each once") {
    Team team(5);
    std::mt19937 random(8);
    std::atomic<uint32_t> before = 0, behind = 0;
    for (int run = 0; run < 2000; ++run) {
        const auto threads = uint32_t(1 + random() % 5);
        before = behind = 0;
        std::atomic<uint32_t> seen = 0, early = 0;
        must(team.run_on(threads, [&](const Worker& worker) {
            if (worker.count != threads || worker.index >= threads) ++early;
            seen |= 1u << worker.index;
            ++before;
            worker.barrier();
            if (before != threads) ++early;
            ++behind;
        }));
        CHECK(behind == threads);
        CHECK(seen == (1u << threads) - 1);
        CHECK(early == 0);
    }
}

TEST_CASE("team: where other programs were found to use the CPU, a sized run has fewer threads") {
    Team team(2);
    TeamSize size(2);
    const auto count = [&] {
        uint32_t threads = 0;
        must(team.run_sized(
            size, [] { return 1.0; },
            [&](const Worker& worker) {
                if (worker.index == 0) threads = worker.count;
            }));
        return threads;
    };
    CHECK(count() == 2);
    CHECK(team.fewest() == 2);
    pass(size, two_cores(200, 109, 1), 0.2);
    REQUIRE(size.settled() == 1);
    CHECK(count() == 1);
    CHECK(team.fewest() == 1);
    uint32_t all = 0;
    must(team.run([&](const Worker& worker) {
        if (worker.index == 0) all = worker.count;
    }));
    CHECK(all == 2);
}

TEST_CASE("team: the logits are the same bit for bit with any number of threads") {
    for (const std::string level : {"portable", "avx2", "avx512", "amx"}) {
        if (!open_backend("cpu", {.threads = 1, .level = level})) continue;
        CAPTURE(level);
        std::map<std::string, std::vector<float>> wanted;
        for (const uint32_t threads : {1u, 2u, 3u, 5u}) {
            CAPTURE(threads);
            const auto backend = test::cpu(threads, level);
            for (const std::string& name : tiny_models(*backend)) {
                CAPTURE(name);
                const Model model = must(Model::load(golden("models/" + name + ".gguf"), *backend, {64, {}}));
                if (model.config().layers > 32) continue;
                std::vector<float> got = all_logits(model, golden_tokens(), {64, 24, 24});
                const std::vector<float> singly = all_logits(model, golden_tokens(), {64, 1, 1});
                got.insert(got.end(), singly.begin(), singly.end());
                if (threads == 1)
                    wanted[name] = got;
                else
                    CHECK(std::equal(got.begin(), got.end(), wanted[name].begin(), wanted[name].end()));
            }
        }
    }
}
