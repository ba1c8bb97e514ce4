// Devices that add the rows of ranks by themselves, inside of a step: then the host waits for none of the
// sums. A backend that can do so implements LinksRanks.
#pragma once

#include "plan/backend.h"
#include "plan/passes/shard.h"

namespace redline {

// The ways on which rows of linked devices come to each other.
enum class SumWay : uint8_t {
    peer_memory,  // the devices write to each other's memory
    host_memory,  // pinned memory of the host
    library,      // NCCL or RCCL does it, in an order of its choice
};
constexpr SumWay kSumWays[] = {SumWay::peer_memory, SumWay::host_memory, SumWay::library};
std::string_view sum_way_name(SumWay way);  // "peer memory"
// Elements of a sum that can be left for a product, see RankSum::leaves.
constexpr uint32_t kMostHandedSum = 1 << 16;

// Sums of made-up rows over linked devices, to be timed and compared.
struct SumTrial {
    uint64_t floats = 0;
    uint32_t repeats = 1;  // that are timed, and as many again whose results are compared
};
struct SumTrialResult {
    double seconds = 0.0;   // of one of many in a row
    uint64_t compared = 0;  // sums, on all devices
    // Elements of these that are not the CPU's sums in the order of the ranks, or for a library beyond the
    // roundings of another order.
    uint64_t wrong = 0;
};

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
    // Why the library that was to be used is not; empty: it is, or none was to be.
    virtual std::string problem() const { return ""; }
    // The time of a sum of a few thousand floats, as measured when the devices were linked.
    virtual double sum_seconds() const = 0;
    // When no step is in flight. An error: a device failed, or waited for rows that did not come.
    virtual Result<SumTrialResult> try_sums(const SumTrial& trial) = 0;
};

// NCCL or RCCL, for links that are made from then on: its path; empty: by its usual names, where that should
// be faster than kernels; "none": never. Like the library, which is opened once, it is for the whole process.
void use_collectives(std::string path);
std::string collectives();

class LinksRanks {
public:
    virtual ~LinksRanks() = default;
    // True where these backends, of which this is one, may be linked. Nothing is tried.
    virtual bool may_link(std::span<Backend* const> ranks) const = 0;
    // Links them, for sums of at most so many floats, and has them add known numbers: on this way, or on the
    // best there is. An error says what they lack, or computed wrongly.
    virtual Result<std::shared_ptr<RankLink>> link(std::span<Backend* const> ranks, uint64_t floats,
                                                   std::optional<SumWay> way = {}) = 0;
    // The memory that a link takes on each of so many devices.
    virtual uint64_t link_bytes(size_t ranks, uint64_t floats) const = 0;
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
