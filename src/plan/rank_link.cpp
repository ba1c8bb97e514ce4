#include "plan/rank_link.h"

#include <mutex>

namespace redline {

namespace {

std::mutex path_mutex;
std::string path_of_collectives;

}  // namespace

std::string_view sum_way_name(SumWay way) {
    constexpr std::string_view kNames[] = {"peer memory", "pinned host memory", "NCCL or RCCL"};
    return kNames[size_t(way)];
}

void use_collectives(std::string path) {
    const std::lock_guard lock(path_mutex);
    path_of_collectives = std::move(path);
}

std::string collectives() {
    const std::lock_guard lock(path_mutex);
    return path_of_collectives;
}

}  // namespace redline
