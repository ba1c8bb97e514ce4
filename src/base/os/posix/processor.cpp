#include "base/os/processor.h"

#include <fstream>
#include <map>
#include <string>

#include <sched.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

namespace redline::os {

std::vector<uint32_t> usable_processors() {
    std::vector<uint32_t> numbers;
    cpu_set_t set;
    CPU_ZERO(&set);
    if (::sched_getaffinity(0, sizeof(set), &set) != 0) return numbers;
    for (uint32_t number = 0; number < CPU_SETSIZE; ++number)
        if (CPU_ISSET(number, &set)) numbers.push_back(number);
    return numbers;
}

std::vector<std::vector<uint32_t>> usable_cores() {
    std::map<std::string, std::vector<uint32_t>> cores;
    std::vector<std::string> order;
    for (const uint32_t number : usable_processors()) {
        std::ifstream in("/sys/devices/system/cpu/cpu" + std::to_string(number) +
                         "/topology/thread_siblings_list");
        std::string siblings;
        if (!(in >> siblings)) siblings = std::to_string(number);
        if (cores[siblings].empty()) order.push_back(siblings);
        cores[siblings].push_back(number);
    }
    std::vector<std::vector<uint32_t>> all;
    for (const std::string& siblings : order) all.push_back(std::move(cores[siblings]));
    return all;
}

bool bind_thread(std::span<const uint32_t> processors) {
    cpu_set_t set;
    CPU_ZERO(&set);
    for (const uint32_t number : processors)
        if (number < CPU_SETSIZE) CPU_SET(number, &set);
    return ::sched_setaffinity(0, sizeof(set), &set) == 0;
}

uint64_t thread_nanoseconds() {
    timespec time = {};
    ::clock_gettime(CLOCK_THREAD_CPUTIME_ID, &time);
    return uint64_t(time.tv_sec) * 1000000000 + uint64_t(time.tv_nsec);
}

// Linux hands out the tile registers on request only.
bool request_tile_registers() {
#if defined(__linux__) && defined(__x86_64__) && defined(SYS_arch_prctl)
    constexpr long kRequestPermission = 0x1023;  // ARCH_REQ_XCOMP_PERM
    constexpr long kTileData = 18;               // XFEATURE_XTILEDATA
    return ::syscall(SYS_arch_prctl, kRequestPermission, kTileData) == 0;
#else
    return false;
#endif
}

}  // namespace redline::os
