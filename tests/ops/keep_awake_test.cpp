#include "backends/shared/keep_awake.h"

#include <doctest/doctest.h>

#include <algorithm>
#include <vector>

using namespace redline;

namespace {

// A device whose clock falls to `lowest` of its highest within seconds in which it has little to do, and
// comes back at once when it has. A step is parts of it and of the CPU in turn.
struct Machine {
    KeepAwake awake;
    std::vector<KeepAwake::Part> parts = std::vector<KeepAwake::Part>(4);
    double lowest = 0.2, part_seconds = 40e-6, cpu_seconds = 400e-6;
    double slows_cpu = 1.0;  // while the device is busy
    double now = 100.0, clock = 1.0, busy = 0.0, at_work = 0.0;

    void step() {
        for (KeepAwake::Part& part : parts) {
            awake.begins(part, now);
            const double took = part_seconds / clock;
            now += took;
            awake.ends(now);
            const double kept = awake.busy_seconds(part);
            const double pause = cpu_seconds * (kept > 0.0 ? slows_cpu : 1.0);
            busy += kept;
            at_work += took;
            now += std::max(pause, kept);
            const double share = (took + kept) / (took + pause);
            clock = share > 0.5 ? 1.0 : std::max(lowest, clock - 0.3 * (took + pause));
        }
    }
    double run(double seconds) {
        const double begin = now;
        size_t steps = 0;
        for (; now - begin < seconds; ++steps) step();
        return (now - begin) / double(steps);
    }
};

}  // namespace

TEST_CASE("a device whose clocks fall while it waits for the CPU is kept busy") {
    Machine machine;
    machine.run(0.2);
    CHECK(machine.busy == 0.0);  // not before it has waited for a while
    machine.run(60.0);
    CHECK(machine.awake.helps());
    CHECK(machine.clock == 1.0);
    const double step = machine.run(1.0);
    CHECK(step == doctest::Approx(4 * (machine.part_seconds + machine.cpu_seconds)).epsilon(0.01));
}

TEST_CASE("a device whose clocks stay is left alone but for trials that become rare") {
    Machine machine;
    machine.lowest = 1.0;
    machine.run(300.0);
    CHECK_FALSE(machine.awake.helps());
    CHECK(machine.busy > 0.0);
    CHECK(machine.busy < 15.0);
}

TEST_CASE("a device that slows the CPU more than it gains is left alone") {
    Machine machine;
    machine.slows_cpu = 1.6;
    machine.run(120.0);
    CHECK_FALSE(machine.awake.helps());
}

TEST_CASE("a device that has no long waits is never kept busy") {
    Machine machine;
    machine.part_seconds = 4e-3;
    machine.cpu_seconds = 100e-6;
    machine.run(60.0);
    CHECK(machine.busy == 0.0);
}

TEST_CASE("waits for a reader, and parts that go, are no part of a step") {
    Machine machine;
    for (int turn = 0; turn < 40; ++turn) {
        machine.run(0.7);
        machine.now += 30.0;
        machine.clock = 1.0;
    }
    for (KeepAwake::Part& part : machine.parts) machine.awake.forget(part);
    machine.parts = std::vector<KeepAwake::Part>(3);
    machine.lowest = 0.2;
    machine.run(60.0);
    CHECK(machine.awake.helps());
    // The longest it is kept busy is less than the shortest wait.
    for (const KeepAwake::Part& part : machine.parts) {
        CHECK(machine.awake.busy_seconds(part) > 0.0);
        CHECK(machine.awake.busy_seconds(part) < machine.cpu_seconds);
    }
}
