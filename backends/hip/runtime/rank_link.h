// The sums over ranks of several devices of this machine, made by a kernel on each: rows and flags go through
// the devices' memory where these reach each other's, and through pinned memory of the host elsewhere.
#pragma once

#include "device.h"
#include "kernels/rank_args.h"
#include "launcher.h"
#include "memory.h"
#include "plan/rank_link.h"

namespace redline::hip {

class HipRankLink : public RankLink {
public:
    // `floats`: of one sum at most. An error says what the devices lack, or what they added up wrongly.
    static Result<std::shared_ptr<HipRankLink>> create(const Runtime& runtime,
                                                       std::vector<std::pair<Device*, Memory*>> ranks,
                                                       uint64_t floats);
    ~HipRankLink() override;

    Status begin() override;
    void give_up() override;
    Status waited() override;
    std::string text() const override;
    double sum_seconds() const override { return sum_seconds_; }

    // Each rank calls this in a step before its first launch, and goes on when all have, or one gave up:
    // while a device waits for rows, another must not load kernels or make a graph, for which a driver may
    // wait for it.
    void meet();
    // Sums the rows of y. `most` is the most elements that this launch may sum; all ranks say the same.
    Status launch(Launcher& launcher, size_t rank, const args::Step* step, float* y, uint32_t width,
                  uint64_t most) const;

private:
    struct Rank {
        Device* device;
        Memory* memory;
        Buffer exchange = {};  // where rows and flags of the others come to; in the host's memory: none
        Buffer turns = {};
    };

    HipRankLink() = default;
    Status allocate(const Runtime& runtime);
    bool reach_each_other(const Runtime& runtime) const;
    Status clear();
    // Each rank adds known numbers, several times, in a thread.
    Status prove();
    Status prove(size_t rank);
    uint64_t flag_floats() const { return args::kMostRankBlocks * args::kRankFlagStride; }
    uint64_t slot_floats() const { return 2 * floats_ + flag_floats(); }
    float* slot(size_t reader, size_t writer) const;
    uint32_t* trouble() const { return reinterpret_cast<uint32_t*>(host_); }

    std::vector<Rank> ranks_;
    uint64_t floats_ = 0;
    bool peers_ = false;
    void* host_ = nullptr;  // trouble, then what the devices do not have
    uint64_t host_bytes_ = 0;
    std::atomic<bool> dirty_{true};
    std::atomic<uint32_t> ready_{0};  // ranks, in this step
    double sum_seconds_ = 0.0;
};

}  // namespace redline::hip
