// Devices that add the rows of ranks by themselves, inside of a step: then the host waits for none of the
// sums. A backend that can do so implements LinksRanks.
#pragma once

#include "plan/backend.h"
#include "plan/passes/shard.h"

namespace redline {

// The memory and flags that the devices of some ranks share. It outlives the executables recorded with it,
// and the backends outlive it.
class RankLink {
public:
    virtual ~RankLink() = default;
    // Before each step, when none is in flight.
    virtual Status begin() = 0;
    // When a rank fails within a step: the devices of the others no longer wait for its rows, and that step's
    // results mean nothing.
    virtual void give_up() = 0;
    // Behind a step: an error where a device waited for rows that did not come.
    virtual Status waited() = 0;
    // "the devices' memory"
    virtual std::string text() const = 0;
    // The time of a sum of a few thousand floats, as measured when the devices were linked.
    virtual double sum_seconds() const = 0;
};

class LinksRanks {
public:
    virtual ~LinksRanks() = default;
    // True where these backends, of which this is one, may be linked. Nothing is tried.
    virtual bool may_link(std::span<Backend* const> ranks) const = 0;
    // Links them, for sums of at most so many floats, and has them add known numbers. An error says what
    // they lack, or computed wrongly.
    virtual Result<std::shared_ptr<RankLink>> link(std::span<Backend* const> ranks, uint64_t floats) = 0;
    // Records the plan of a rank, with sums before these steps. The ranks of a link run each step at the same
    // time, in threads.
    virtual Result<std::unique_ptr<Executable>> record_rank(BoundPlan plan, std::vector<RankSum> sums,
                                                            std::shared_ptr<RankLink> link, size_t rank,
                                                            WeightStore& weights, CacheStore& caches,
                                                            Record mode) = 0;
};

// Like lower(), of the whole plan of a rank. `sums` are made those before steps of the lowered plan.
Result<BoundPlan> lower_rank(const Plan& plan, Backend& backend, bool fuse, std::vector<RankSum>& sums);

}  // namespace redline
