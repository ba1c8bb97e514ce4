// What the control groups of this process (version 1 or 2), as set by containers and services, leave to it.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

namespace redline {

// The folders of its groups under a controller ("memory", "cpu"), its own first, then those around it. `root`
// stands before /proc and /sys, for tests. Not all of them need exist: a container sees a part of its host's.
std::vector<std::string> group_folders(std::string_view controller, const std::string& root = "");

// CPUs that may be kept busy: those that the affinity mask names, or fewer where a group has a quota of time;
// at least 1.
uint32_t usable_cpus(const std::string& root = "");
// By the quota alone; UINT32_MAX without one.
uint32_t quota_cpus(const std::string& root = "");

}  // namespace redline
