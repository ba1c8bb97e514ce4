// Adds the parts that ranks have of the same rows, so that all ranks go on with the same bits.
#pragma once

#include "base/result.h"

#include <atomic>
#include <memory>
#include <span>
#include <vector>

namespace redline {

// Rows of one rank, `stride` floats apart.
struct RankRows {
    const float* first = nullptr;
    size_t stride = 0;
};

class Reducer {
public:
    virtual ~Reducer() = default;
    // Before the ranks of a step begin.
    virtual void begin() = 0;
    // Each rank calls this in a separate thread, and all of them for the same rows: `into` is one vector for
    // all. A rank that failed has no rows; then it is false for all ranks, and the step is over. The rows and
    // the sums stay until the next call returns.
    virtual bool sum(size_t rank, const RankRows& mine, size_t rows, size_t width,
                     std::vector<float>& into) = 0;
};

// The sums are made by the ranks' threads in memory of the host, each for a part of the elements, and in the
// order of the ranks.
std::unique_ptr<Reducer> host_reducer(size_t ranks);

// Elements [first, last) of the sums of all rows, in the order of the ranks.
void add_rows(std::span<const RankRows> ranks, size_t width, size_t first, size_t last,
              std::span<float> into);

}  // namespace redline
