#include "plan/rank_link.h"

namespace redline {

std::string_view sum_way_name(SumWay way) {
    constexpr std::string_view kNames[] = {"peer memory", "pinned host memory"};
    return kNames[size_t(way)];
}

}  // namespace redline
