// A model's plan divided over ranks, each on a separate backend: all of them compute a part of each layer.
// The backends are all of this process, or one is, and each of the others of another process of a job.
#pragma once

#include "places/ranked_step.h"

namespace redline {

struct RankPlace {
    Backend* backend = nullptr;
    double share = 1.0;  // of the work, in proportion
};

// The parts of a model that its ranks have, for those who ask before it is loaded.
struct RankSharing {
    struct Rank {
        uint64_t weight_bytes = 0;  // in the file's formats
        uint64_t whole_bytes = 0;   // of weights that each rank has all of
        uint64_t read_bytes = 0;    // by a step of one token
        uint64_t head_layers = 0;   // layers of whose attention it has heads
        Plan plan;                  // of one token, not lowered
    };
    std::vector<Rank> ranks;
    uint32_t sums = 0;       // over all ranks, in a step
    uint64_t sum_bytes = 0;  // of a token, all of them together
};

// Weights and caches of the parts that the ranks have. Must outlive the executables that it records.
class Ranks {
public:
    static Result<Ranks> load(const Model& model, const CacheSizing& sizing,
                              std::span<const RankPlace> places, const Progress& progress = {});
    // The memory that load(), make_caches() and record() of steps of 1 and of `rows` rows would take, for
    // each rank.
    static Result<std::vector<MemoryNeed>> measure(const Model& model, const CacheSizing& sizing,
                                                   std::span<const RankPlace> places, uint32_t rows,
                                                   uint32_t outputs, bool fuse);
    // The ranks of a job that these places are at; empty: all of them are here.
    static std::vector<uint32_t> job_ranks(std::span<const RankPlace> places);
    // True where the devices should add rows by themselves, without the host.
    static bool may_link(std::span<const RankPlace> places);
    // Seconds of a sum of so many floats over linked devices or ranks of a job, which is tried now; 0: it is
    // neither.
    static double sum_seconds(std::span<const RankPlace> places, uint64_t floats);
    // `position`: tokens before the one whose reads are counted.
    static Result<RankSharing> sharing(const Model& model, const CacheSizing& sizing,
                                       std::span<const RankPlace> places, uint64_t position);

    // The plans of steps of 1 and of `rows` rows of the ranks on a backend; not lowered.
    static Result<std::vector<Plan>> plans_of(const Model& model, const CacheSizing& sizing,
                                              std::span<const RankPlace> places, uint32_t rows,
                                              uint32_t outputs, const Backend& backend);

    // The caches of the whole plan, of which each rank has its part. At most one such store lives at a time.
    Result<std::unique_ptr<CacheStore>> make_caches();
    Result<std::unique_ptr<Executable>> record(uint32_t rows, uint32_t outputs, Record mode, bool fuse);
    // A sentence where the host adds rows though the devices should do so, or these without the library that
    // was to do it. Empty: they add as they should, or nothing else was tried.
    const std::string& link_problem() const { return link_problem_; }
    // True when a device was lost, or has been let go and not come back.
    bool lost() const;
    // Lets go of the lost devices, once the caches and executables are gone. reload() then loads their
    // weights onto the backends that `places` name in their place; the other weights stay.
    void let_go();
    Status reload(std::span<const RankPlace> places, const Progress& progress);

private:
    struct Place {
        Backend* backend;
        double share;
        std::unique_ptr<WeightStore> weights = nullptr;
        CacheStore* caches = nullptr;
    };
    // The plan of a rank, cut before its sums.
    struct Divided {
        RankPlan rank;
        std::vector<PlanPart> parts;
    };

    Ranks(const Model& model, const CacheSizing& sizing, std::span<const RankPlace> places);
    Result<std::vector<RankPlan>> plans(uint32_t rows, uint32_t outputs) const;
    Result<std::vector<Divided>> divided(uint32_t rows, uint32_t outputs) const;
    Result<std::unique_ptr<WeightStore>> load_rank(const Divided& rank, Backend& backend,
                                                   const Progress& progress) const;
    Result<PlanGroup> lowered(const Divided& rank, Backend& backend, bool fuse) const;
    // Links the devices where they may be.
    Status link();
    Result<std::unique_ptr<Executable>> record_linked(uint32_t rows, uint32_t outputs, Record mode,
                                                      bool fuse);
    Result<std::vector<RankedStep::Rank>> record_parts(uint32_t rows, uint32_t outputs, Record mode,
                                                       bool fuse);
    // Floats of the largest sum of a step.
    Result<uint64_t> most_floats() const;

    const Model* model_;
    CacheSizing sizing_;
    std::vector<Place> places_;
    std::shared_ptr<RankTeam> team_;
    std::shared_ptr<RankLink> link_;
    std::string link_problem_;
};

}  // namespace redline
