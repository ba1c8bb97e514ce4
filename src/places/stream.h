// Streamed prefill of a split model: in steps of many rows the device computes the CPU's layers, too, whose
// weights are copied to it layer by layer. One half of a staging area is filled while the device computes
// with the other. New cache rows are copied back to where steps of one row read them.
#pragma once

#include "places/pipeline.h"

namespace redline {

// A plan cut for streamed prefill, and the staging that it takes on the device.
struct StreamedPlan {
    enum class Place : uint8_t { device, cpu, streamed };
    struct Part {
        Place place;
        size_t first = 0, last = 0;  // steps of the whole plan
        PlanPart plan;
        // For a streamed part: the indices of its weights and caches among the staged ones.
        std::vector<uint32_t> weights, caches;
    };
    std::vector<Part> parts;
    std::vector<WeightInfo> weights;  // staged, those of both halves, as in the file
    std::vector<CacheInfo> caches;    // staged, for one part at a time

    std::map<const Format*, uint64_t> streamed_formats()
        const;  // bytes of weights streamed per step, by format
    uint64_t streamed_flops(uint64_t rows) const;
};

// `plan` has the weights in the file's formats. Empty when no device of the placements can be refilled, no
// layer can be streamed, or what layers share keeps them from being cut apart.
std::optional<StreamedPlan> plan_stream(const Plan& plan, std::span<const Placement> placements);

// Rewrites a part's weight and cache indices: index i becomes weight_at[i] (cache_at[i]) in the lists
// `weights` (`caches`).
Plan renumbered(Plan plan, std::span<const uint32_t> weight_at, std::span<const uint32_t> cache_at,
                std::span<const WeightInfo> weights, std::span<const CacheInfo> caches);

// The staging weights and caches on a device, and the order in which they are filled.
class Staging {
public:
    static Result<std::shared_ptr<Staging>> create(const Model& model, Backend& device,
                                                   const StreamedPlan& plan);
    ~Staging();

    WeightStore& weights() { return *weights_; }
    CacheStore& caches() { return *caches_; }
    // Waits until the weights of streamed part `number` are there, and starts filling those of the next one.
    Status take(size_t number);

private:
    struct Content {
        std::vector<Weight> which;  // of the model's weights
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
    std::unique_ptr<Filling> filling_;  // the fill in progress, or the last one
};

// A part that runs on the device with staged caches, which it copies from and back to their home store.
class StreamedPart : public Executable {
public:
    struct Home {
        CacheStore* store = nullptr;
        Cache cache;          // in `store`
        uint32_t staged = 0;  // index of the staged cache that stands in for it
        CacheInfo info;
    };
    StreamedPart(std::shared_ptr<Staging> staging, size_t number, std::unique_ptr<Executable> executable,
                 std::vector<Home> homes, std::shared_ptr<StreamWatch> watch);
    Status run(const StepParams& params) override;
    Status run_traced(const StepParams& params, const TraceSink& sink) override;
    std::span<const float> output() const override { return executable_->output(); }
    std::span<const float> hidden() const override { return executable_->hidden(); }

private:
    Status run_on(const StepParams& params, const std::function<Status(Executable&)>& run);

    std::shared_ptr<Staging> staging_;
    size_t number_;
    std::unique_ptr<Executable> executable_;
    std::vector<Home> homes_;
    std::shared_ptr<StreamWatch> watch_;
};

// Uses one executable for steps of many rows of one sequence without pages, another for all others.
class ByRows : public Executable {
public:
    // Both executables are for steps of at most so many rows.
    ByRows(std::unique_ptr<Executable> few, std::unique_ptr<Executable> many, uint32_t most_rows,
           std::shared_ptr<StreamWatch> watch)
        : few_(std::move(few)),
          many_(std::move(many)),
          most_rows_(most_rows),
          watch_(std::move(watch)),
          last_(few_.get()) {}
    Status run(const StepParams& params) override;
    // Not timed: tracing would distort the decision.
    Status run_traced(const StepParams& params, const TraceSink& sink) override {
        return choose(params).run_traced(params, sink);
    }
    std::span<const float> output() const override { return last_->output(); }
    std::span<const float> hidden() const override { return last_->hidden(); }
    uint32_t most_best() const override { return few_->most_best(); }
    bool mixes() const override { return few_->mixes(); }
    std::span<const Scored> best() const override { return last_->best(); }

private:
    Executable& choose(const StepParams& params) {
        const bool many = kind_of(params) == StepKind::alone && watch_->begin(uint32_t(params.tokens.size()));
        last_ = many ? many_.get() : few_.get();
        // Weights will never be streamed again, so the staging memory on the device is freed.
        if (watch_->is_over(most_rows_)) many_.reset();
        return *last_;
    }

    std::unique_ptr<Executable> few_, many_;
    uint32_t most_rows_;
    std::shared_ptr<StreamWatch> watch_;
    Executable* last_;
};

}  // namespace redline
