// The limits of control groups, read from trees as systems have them.
#include "base/control_group.h"

#include "support/tree.h"

#include <doctest/doctest.h>

#include <sched.h>

using namespace redline;
using namespace redline::test;

namespace {

constexpr uint32_t kNoQuota = UINT32_MAX;

}  // namespace

TEST_CASE("control groups: a quota of version 2, of the group or of one around it") {
    const Tree limited(Files{{"/proc/self/cgroup", "0::/user.slice/run.scope\n"},
                             {"/sys/fs/cgroup/user.slice/run.scope/cpu.max", "400000 100000\n"},
                             {"/sys/fs/cgroup/user.slice/cpu.max", "max 100000\n"}});
    CHECK(quota_cpus(limited) == 4);
    CHECK(usable_cpus(limited) <= 4);
    const Tree around(Files{{"/proc/self/cgroup", "0::/user.slice/run.scope\n"},
                            {"/sys/fs/cgroup/user.slice/run.scope/cpu.max", "max 100000\n"},
                            {"/sys/fs/cgroup/user.slice/cpu.max", "250000 100000\n"}});
    CHECK(quota_cpus(around) == 2);
    const Tree half(Files{{"/proc/self/cgroup", "0::/\n"},  // a container, as it sees itself
                          {"/sys/fs/cgroup/cpu.max", "50000 100000\n"}});
    CHECK(quota_cpus(half) == 1);
    CHECK(usable_cpus(half) == 1);
    const Tree outside(
        Files{{"/proc/self/cgroup", "0::/../other\n"}, {"/sys/fs/cgroup/cpu.max", "300000 100000\n"}});
    CHECK(quota_cpus(outside) == 3);
}

TEST_CASE("control groups: a quota of version 1, where a container sees the host's names") {
    const std::string groups =
        "12:memory:/docker/1f2e\n5:cpu,cpuacct:/docker/1f2e\n4:cpuset:/docker/1f2e\n0::/docker/1f2e\n";
    const Tree host(Files{{"/proc/self/cgroup", groups},
                          {"/sys/fs/cgroup/cpu/docker/1f2e/cpu.cfs_quota_us", "300000\n"},
                          {"/sys/fs/cgroup/cpu/docker/1f2e/cpu.cfs_period_us", "100000\n"},
                          {"/sys/fs/cgroup/cpu/cpu.cfs_quota_us", "-1\n"},
                          {"/sys/fs/cgroup/cpu/cpu.cfs_period_us", "100000\n"}});
    CHECK(quota_cpus(host) == 3);
    CHECK(group_folders("memory", host).front() == host.root + "/sys/fs/cgroup/memory/docker/1f2e");
    const Tree inside(Files{{"/proc/self/cgroup", groups},
                            {"/sys/fs/cgroup/cpu/cpu.cfs_quota_us", "150000\n"},
                            {"/sys/fs/cgroup/cpu/cpu.cfs_period_us", "100000\n"}});
    CHECK(quota_cpus(inside) == 1);
}

TEST_CASE("control groups: without a quota, or without groups, the affinity mask decides") {
    const Tree free(Files{{"/proc/self/cgroup", "1:cpu:/\n0::/\n"},
                          {"/sys/fs/cgroup/cpu/cpu.cfs_quota_us", "-1\n"},
                          {"/sys/fs/cgroup/cpu/cpu.cfs_period_us", "100000\n"}});
    CHECK(quota_cpus(free) == kNoQuota);
    const Tree none(Files{{"/proc/self/status", "x"}});
    CHECK(quota_cpus(none) == kNoQuota);
    CHECK(group_folders("cpu", none).empty());
    const Tree torn(Files{{"/proc/self/cgroup", "x\n:\n0::\n0::/a\n"}, {"/sys/fs/cgroup/a/cpu.max", "no\n"}});
    CHECK(quota_cpus(torn) == kNoQuota);

    cpu_set_t before, one;
    REQUIRE(::sched_getaffinity(0, sizeof(before), &before) == 0);
    CPU_ZERO(&one);
    for (int cpu = 0; cpu < CPU_SETSIZE && CPU_COUNT(&one) == 0; ++cpu)
        if (CPU_ISSET(cpu, &before)) CPU_SET(cpu, &one);
    REQUIRE(::sched_setaffinity(0, sizeof(one), &one) == 0);
    CHECK(usable_cpus(none) == 1);
    ::sched_setaffinity(0, sizeof(before), &before);
}
