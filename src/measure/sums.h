// Times how devices add their rows: on each way on which they can do it by themselves, and by the host.
#pragma once

#include "plan/rank_link.h"

namespace redline {

// The results are compared with the CPU's sums in the order of the ranks, bit for bit.
struct SumTime {
    double seconds = 0.0;
    uint64_t compared = 0;  // sums, on all devices
    uint64_t wrong = 0;     // elements of these
};

class SumMeter {
public:
    struct Way {
        std::string name;     // "peer memory", "the host"
        std::string text;     // more about it; may be empty
        std::string problem;  // why there are no times of it; empty: there are
    };

    // The backends outlive the meter.
    static SumMeter create(std::vector<Backend*> ranks);
    const std::vector<Way>& ways() const { return ways_; }
    // `repeats` sums of so many floats each.
    Result<SumTime> time(size_t way, uint64_t floats, uint32_t repeats);

private:
    Result<SumTime> time_host(uint64_t floats, uint32_t repeats) const;

    std::vector<Backend*> ranks_;
    std::vector<Way> ways_;
};

}  // namespace redline
