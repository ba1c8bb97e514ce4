// A model's plan in parts on several backends, which run one after another: only activations move between
// them.
#pragma once

#include "places/model.h"
#include "places/stream_watch.h"
#include "plan/passes/cut.h"

#include <map>

namespace redline {

struct Placement {
    Backend* backend = nullptr;
    // Steps [first, last) of a plan that was not lowered. None, of the last placement: a device that has no
    // part of the model, through which weights flow.
    size_t first = 0, last = 0;
    bool empty() const { return first == last; }
};
// Those with steps.
std::span<const Placement> with_steps(std::span<const Placement> placements);

// The backends of placements, each once, in the order of their first steps.
std::vector<Backend*> backends_of(std::span<const Placement> placements);

// Parts one after another; all but the last give the rows of the whole step.
class Pipeline : public Executable {
public:
    // A slot of the whole plan, of which rows move from part to part.
    struct Crossing {
        Slot slot;
        uint32_t width = 0;
        bool operator==(const Crossing&) const = default;
    };
    struct Part {
        std::shared_ptr<Executable> executable;
        std::vector<Crossing> takes, leaves;  // see PlanPart
    };
    explicit Pipeline(std::vector<Part> parts);
    Status run(const StepParams& params) override;
    Status run_traced(const StepParams& params, const TraceSink& sink) override;
    std::span<const float> output() const override { return parts_.back().executable->output(); }
    uint32_t most_best() const override { return parts_.back().executable->most_best(); }
    std::span<const Scored> best() const override { return parts_.back().executable->best(); }

private:
    using RunPart = std::function<Status(Executable&, const StepParams&)>;
    Status run_parts(const StepParams& params, const RunPart& run);
    // What the part takes of those before it.
    std::span<const float> input_of(size_t part, size_t rows);
    // Copies what the part has left and what not only the next part takes as it is.
    void keep_output_of(size_t part, size_t rows);
    bool hands_on(size_t part) const;  // to the next as it is

    std::vector<Part> parts_;
    std::vector<std::vector<Crossing>> kept_;     // of each part: what is copied
    std::map<int32_t, std::vector<float>> rows_;  // of the copied slots
    std::vector<float> input_;
};

// What a model has where its parts are: weights and caches. Outlives what it records.
class Places {
public:
    // `placements` are all steps of the model's plan, in order. The model need not be placed itself.
    static Result<Places> load(const Model& model, const CacheSizing& sizing,
                               std::span<const Placement> placements, const Progress& progress = {});
    // What load(), make_caches() and record() of steps of 1 and of `rows` rows would take, one for each
    // of backends_of(placements).
    static Result<std::vector<MemoryNeed>> measure(const Model& model, const CacheSizing& sizing,
                                                   std::span<const Placement> placements, uint32_t rows,
                                                   uint32_t outputs, bool fuse, bool streamed = false);

    // The lowered plan of one token, of each placement that has steps.
    static Result<std::vector<Plan>> lowered_plans(const Model& model, const CacheSizing& sizing,
                                                   std::span<const Placement> placements, bool fuse);

    // The caches of the whole plan, each where its layers are. At most one of these lives at a time.
    Result<std::unique_ptr<CacheStore>> make_caches();
    // For steps of at most so many rows, and outputs of so many, with the caches that were made last.
    Result<std::unique_ptr<Executable>> record(uint32_t rows, uint32_t outputs, Record mode,
                                               bool fuse = true);
    // The same, where steps of many rows have the CPU's weights flow through the device: see
    // run/stream.h. Where no weights can, that of record(). measure() counts it when it is told `streamed`.
    // `watch` says of each step whether it does.
    Result<std::unique_ptr<Executable>> record_streamed(uint32_t rows, uint32_t outputs, Record mode,
                                                        std::shared_ptr<StreamWatch> watch, bool fuse = true);
    // Whether one of its devices was lost, or was and is not there again.
    bool lost() const;
    // Lets go of the lost devices, once the caches and what was recorded are gone. Then loads the weights
    // that were there to what `placements` name in their place; the others stay.
    void let_go();
    Status reload(std::span<const Placement> placements, const Progress& progress);

private:
    struct Place {
        Backend* backend;
        std::unique_ptr<WeightStore> weights;
        CacheStore* caches = nullptr;
    };

    Places(const Model& model, const CacheSizing& sizing) : model_(&model), sizing_(sizing) {}
    static Result<Places> empty(const Model& model, const CacheSizing& sizing,
                                std::span<const Placement> placements);
    // The whole plan, with weights as the file has them: each backend decides how it stores its own.
    Result<Plan> file_plan(uint32_t rows, uint32_t outputs) const;
    Result<std::vector<PlanPart>> parts(uint32_t rows, uint32_t outputs) const;
    Result<std::vector<Pipeline::Part>> record_parts(uint32_t rows, uint32_t outputs, Record mode, bool fuse);
    std::vector<Placement> placements() const;
    size_t place_of(const Backend& backend) const;
    Result<Pipeline::Part> pipeline_part(const PlanPart& part, std::shared_ptr<Executable> executable) const;

    friend class StreamedPlaces;
    // Adds what record_streamed() records and places beside; then the device through which weights flow.
    Result<Backend*> add_streamed(std::vector<PlanPart>& own, std::vector<std::vector<PlanGroup>>& groups,
                                  uint32_t rows, uint32_t outputs, bool fuse) const;
    // Of each place, the plans of its parts, in order.
    Result<std::vector<PlanGroup>> lowered(const std::vector<PlanPart>& parts, bool fuse) const;
    // One for each place: a part of those that are there.
    std::vector<PlanPart> one_of_each(std::vector<PlanPart> parts) const;

    const Model* model_;
    CacheSizing sizing_;
    size_t steps_ = 0;  // of the whole plan
    std::vector<size_t> cuts_;
    std::vector<size_t> place_of_;  // of each part
    std::vector<Place> places_;
};

}  // namespace redline
