// Steps of many rows of a split model: what the CPU's parts would compute slowly the device computes, through
// whose memory their weights flow, a layer at a time: one half of a staging area is filled while the device
// computes with the other. Rows of caches come back to where steps of one row want them.
#pragma once

#include "places/pipeline.h"

namespace redline {

// A plan cut for that, and the staging that it takes on the device.
struct StreamedPlan {
    enum class Place : uint8_t { device, cpu, streamed };
    struct Part {
        Place place;
        size_t first = 0, last = 0;  // steps of the whole plan
        PlanPart plan;
        // Of a streamed one: which of the staged weights and caches its own are.
        std::vector<uint32_t> weights, caches;
    };
    std::vector<Part> parts;
    std::vector<WeightInfo> weights;  // staged, those of both halves, as in the file
    std::vector<CacheInfo> caches;    // staged, of one part at a time

    std::map<const Format*, uint64_t> streamed_formats() const;  // bytes of weights per step, of each
    uint64_t streamed_flops(uint64_t rows) const;
};

// `plan` has the weights as in the file. Nothing: no device of the placements can be filled anew, or there
// are no layers for which it could, or what they share keeps them from being parted.
std::optional<StreamedPlan> plan_stream(const Plan& plan, std::span<const Placement> placements);

// Other numbers for a part's weights and caches: those of `weights` and `caches` that these are.
Plan renumbered(Plan plan, std::span<const uint32_t> weight_at, std::span<const uint32_t> cache_at,
                std::span<const WeightInfo> weights, std::span<const CacheInfo> caches);

// The staging on a device, and the order in which it is filled.
class Staging {
public:
    static Result<std::shared_ptr<Staging>> create(const Model& model, Backend& device,
                                                   const StreamedPlan& plan);
    ~Staging();

    WeightStore& weights() { return *weights_; }
    CacheStore& caches() { return *caches_; }
    // Waits until the weights of the streamed part of this number are there, and begins with the next one's.
    Status take(size_t number);

private:
    struct Content {
        std::vector<Weight> which;  // of the model's
        std::vector<uint32_t> at;
    };
    class Filling;

    Staging(const Model& model, Backend& device);
    Status fill(size_t number) const;

    const Model& model_;
    Backend& device_;
    std::vector<Content> contents_;  // of each streamed part
    std::unique_ptr<WeightStore> weights_;
    std::unique_ptr<CacheStore> caches_;
    std::unique_ptr<Filling> filling_;  // what is in work, or was last
};

// A part on the device whose caches are at home elsewhere.
class StreamedPart : public Executable {
public:
    struct Home {
        CacheStore* store = nullptr;
        Cache cache;          // there
        uint32_t staged = 0;  // which of the staged ones it is meanwhile
        CacheInfo info;
    };
    StreamedPart(std::shared_ptr<Staging> staging, size_t number, std::unique_ptr<Executable> executable,
                 std::vector<Home> homes, std::shared_ptr<StreamWatch> watch);
    Status run(const StepParams& params) override;
    Status run_traced(const StepParams& params, const TraceSink& sink) override;
    std::span<const float> output() const override { return executable_->output(); }

private:
    Status run_on(const StepParams& params, const std::function<Status(Executable&)>& run);

    std::shared_ptr<Staging> staging_;
    size_t number_;
    std::unique_ptr<Executable> executable_;
    std::vector<Home> homes_;
    std::shared_ptr<StreamWatch> watch_;
};

// One executable for steps of many rows of one sequence without pages, another for all others.
class ByRows : public Executable {
public:
    // Both for steps of at most so many rows.
    ByRows(std::unique_ptr<Executable> few, std::unique_ptr<Executable> many, uint32_t most_rows,
           std::shared_ptr<StreamWatch> watch)
        : few_(std::move(few)),
          many_(std::move(many)),
          most_rows_(most_rows),
          watch_(std::move(watch)),
          last_(few_.get()) {}
    Status run(const StepParams& params) override;
    // What it takes is not the step's, and says nothing.
    Status run_traced(const StepParams& params, const TraceSink& sink) override {
        return choose(params).run_traced(params, sink);
    }
    std::span<const float> output() const override { return last_->output(); }
    uint32_t most_best() const override { return few_->most_best(); }
    std::span<const Scored> best() const override { return last_->best(); }

private:
    Executable& choose(const StepParams& params) {
        const bool many = kind_of(params) == StepKind::alone && watch_->begin(uint32_t(params.tokens.size()));
        last_ = many ? many_.get() : few_.get();
        // What the device keeps for the weights to flow through is of no more use.
        if (watch_->is_over(most_rows_)) many_.reset();
        return *last_;
    }

    std::unique_ptr<Executable> few_, many_;
    uint32_t most_rows_;
    std::shared_ptr<StreamWatch> watch_;
    Executable* last_;
};

}  // namespace redline
