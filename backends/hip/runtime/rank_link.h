// The sums over ranks of several devices of this machine, made by a kernel on each: rows and flags go through
// the devices' memory where these reach each other's, and through pinned memory of the host elsewhere. NCCL
// or RCCL makes those sums for which it is faster.
#pragma once

#include "collectives.h"
#include "device.h"
#include "kernels/rank_args.h"
#include "launcher.h"
#include "memory.h"
#include "plan/rank_link.h"

#include <thread>

namespace redline::hip {

class HipRankLink : public RankLink {
public:
    using Members = std::vector<std::pair<Device*, Memory*>>;
    // `floats`: of one sum at most. An error says what the devices lack, or what they added up wrongly.
    static Result<std::shared_ptr<HipRankLink>> create(const Runtime& runtime, const Members& ranks,
                                                       uint64_t floats, std::optional<SumWay> way);
    // Rows in a device's memory that others write are seen by its kernels where these do not cache them: on
    // NVIDIA's cards.
    static bool writes_to_peers(const DeviceReport& report);
    // That it takes of each device.
    static uint64_t bytes(size_t ranks, uint64_t floats);
    ~HipRankLink() override;

    Status begin() override;
    void give_up() override;
    Status waited() override;
    std::string text() const override;
    std::string problem() const override { return problem_; }
    double sum_seconds() const override { return sum_seconds_; }
    Result<SumTrialResult> try_sums(const SumTrial& trial) override;

    // Each rank calls this in a step before its first launch, and goes on when all have, or one gave up:
    // while a device waits for rows, another must not load kernels or make a graph, for which a driver may
    // wait for it.
    void meet();

    // Rows to be added; `y` may be `x`.
    struct Rows {
        const float* x;
        float* y;
        uint32_t width;
        bool of_outputs = false;
        uint64_t most;             // elements at most; all ranks say the same
        args::HandOver hand = {};  // of a step of one row: where its sum is left in int8, too
    };
    Status launch(Launcher& launcher, size_t rank, const args::Step* step, const Rows& rows) const;
    // Graphs with sums are of no use any more once this is another number.
    uint64_t generation() const { return generation_; }

private:
    struct Rank {
        Device* device;
        Memory* memory;
        Buffer exchange = {};  // where rows and flags of the others come to; in the host's memory: none
        Buffer turns = {};
    };
    struct Trial;

    explicit HipRankLink(const Runtime& runtime) : runtime_(runtime) {}
    bool adds_in_library(const Rows& rows) const {
        return library_ && !rows.hand.row && rows.most >= library_from_;
    }
    Status open_library();
    Status warm_up_library();
    // Takes the library for the sums for which it is faster, where it may be.
    void choose_library();
    Result<uint64_t> faster_from();
    Status restart_library();
    Result<double> try_some(uint64_t floats, uint32_t repeats);
    Status allocate(std::optional<SumWay> way);
    bool reach_each_other() const;
    Status clear();
    // Each rank's part in a separate thread, after which none waits for another.
    Status in_threads(const std::function<Status(size_t rank)>& work);
    // Known numbers are added, several times, and left for a product.
    Status prove();
    Status prove(size_t rank);
    Status prove_left(size_t rank, const Buffer& left, std::span<const float> want);
    Status prepare(Trial& trial, size_t rank, uint64_t floats) const;
    Result<double> launch_graphs(std::span<const std::unique_ptr<Trial>> trials, bool compares,
                                 uint32_t launches);
    Result<SumTrialResult> run(std::span<const std::unique_ptr<Trial>> trials, uint32_t repeats);
    static uint64_t flag_floats() { return args::kMostRankBlocks * args::kRankFlagStride; }
    // For one rank's rows at another: two halves of rows, flags, and two of words of short sums.
    static uint64_t slot_floats(uint64_t floats) { return 2 * floats + flag_floats() + 4 * args::kMostShort; }
    float* slot(size_t reader, size_t writer) const;
    uint32_t* trouble() const { return reinterpret_cast<uint32_t*>(host_); }

    const Runtime& runtime_;
    const std::string library_path_ = collectives();
    std::shared_ptr<Collectives> library_;
    uint64_t library_from_ = 0;  // floats of a sum that it makes
    std::string problem_;
    uint64_t generation_ = 0;
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
