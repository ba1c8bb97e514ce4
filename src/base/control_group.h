// The limits that the control groups of this process (version 1 or 2) set, as containers and services do.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

namespace redline {

// The folders of this process's groups under a controller ("memory", "cpu"), the innermost first. `root` is
// put before /proc and /sys, for tests. Not all of the folders need exist: a container sees a part of its
// host's.
std::vector<std::string> group_folders(std::string_view controller, const std::string& root = "");

// The number of CPUs that may be kept busy: those in the affinity mask, or fewer where a group has a quota of
// CPU time; at least 1.
uint32_t usable_cpus(const std::string& root = "");
// The number by the quota alone; UINT32_MAX without one.
uint32_t quota_cpus(const std::string& root = "");

}  // namespace redline
