#include "base/control_group.h"

#include "base/os/processor.h"

#include <algorithm>
#include <fstream>
#include <limits>
#include <thread>

namespace redline {

// True when a line like "4:cpu,cpuacct:/docker/1f" of version 1 lists `controller`.
static bool names_controller(std::string_view line, std::string_view controller) {
    const size_t first = line.find(':');
    const size_t second = line.find(':', first + 1);
    if (second == std::string_view::npos) return false;
    std::string_view list = line.substr(first + 1, second - first - 1);
    while (!list.empty()) {
        const size_t end = std::min(list.find(','), list.size());
        if (list.substr(0, end) == controller) return true;
        list.remove_prefix(std::min(end + 1, list.size()));
    }
    return false;
}

std::vector<std::string> group_folders(std::string_view controller, const std::string& root) {
    std::ifstream in(root + "/proc/self/cgroup");
    std::string line, group, mount;
    while (std::getline(in, line)) {
        const bool v1 = names_controller(line, controller);
        const size_t path = line.find('/');
        if (path == std::string::npos) continue;
        if (!v1 && (!line.starts_with("0::") || !mount.empty())) continue;
        mount = root + "/sys/fs/cgroup" + (v1 ? "/" + std::string(controller) : "");
        group = line.substr(path);
        if (v1) break;  // where both versions are mounted, a controller belongs to one of them
    }
    std::vector<std::string> folders;
    if (mount.empty()) return folders;
    if (group.find("/..") != std::string::npos) group = "/";  // outside of the part that this process can see
    for (; group.size() > 1; group.resize(group.rfind('/'))) folders.push_back(mount + group);
    folders.push_back(mount);
    return folders;
}

uint32_t quota_cpus(const std::string& root) {
    uint32_t least = std::numeric_limits<uint32_t>::max();
    for (const std::string& folder : group_folders("cpu", root)) {
        // Microseconds of CPU time per period; "max" or -1: no limit.
        int64_t quota = 0, period = 0;
        std::ifstream both(folder + "/cpu.max");
        if (!(both >> quota >> period)) {
            std::ifstream first(folder + "/cpu.cfs_quota_us"), second(folder + "/cpu.cfs_period_us");
            if (!(first >> quota) || !(second >> period)) continue;
        }
        // Rounded down: when the quota is used up, threads that wait for each other are all held up.
        if (quota > 0 && period > 0) least = uint32_t(std::clamp<int64_t>(quota / period, 1, int64_t(least)));
    }
    return least;
}

uint32_t usable_cpus(const std::string& root) {
    const auto known = uint32_t(os::usable_processors().size());
    const uint32_t cpus = known > 0 ? known : std::thread::hardware_concurrency();
    return std::min(std::max(1u, cpus), quota_cpus(root));
}

}  // namespace redline
