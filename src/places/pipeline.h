// A model's plan cut into parts on several backends, which run one after another: only activations move
// between them.
#pragma once

#include "places/model.h"
#include "places/stream_watch.h"
#include "plan/passes/cut.h"

#include <map>
#include <memory>

namespace redline {

struct Placement {
    Backend* backend = nullptr;
    // Steps [first, last) of a plan as divided() has it. The last placement may have none: it then names a
    // device without a part of the model, through which weights are streamed.
    size_t first = 0, last = 0;
    bool empty() const { return first == last; }
};
// The placements that have steps.
std::span<const Placement> with_steps(std::span<const Placement> placements);

// The backends of placements, each once, in the order of their first steps.
std::vector<Backend*> backends_of(std::span<const Placement> placements);

// The MTP heads that run where the last part of a model's plan does: of the same model, whose weights are
// loaded there, or of another one that is placed there.
struct HeadsBeside {
    const Model* model = nullptr;  // null: there are none
    size_t count = 0;
    uint32_t outputs = 1;  // of a step of them
};

// Runs parts one after another; all but the last output the rows of the whole step. Parts of several places
// can work on several steps at a time.
class Pipeline : public Executable {
public:
    // A slot of the whole plan whose rows move from part to part.
    struct Crossing {
        Slot slot;
        uint32_t width = 0;
        bool operator==(const Crossing&) const = default;
    };
    struct Part {
        std::shared_ptr<Executable> executable;
        std::vector<Crossing> takes, leaves;  // see PlanPart
        size_t place = 0;                     // of parts of one place one runs at a time
    };
    explicit Pipeline(std::vector<Part> parts);
    ~Pipeline() override;
    Status run(const StepParams& params) override;
    Status run_traced(const StepParams& params, const TraceSink& sink) override;
    std::span<const float> output() const override;
    uint32_t most_best() const override { return parts_.back().executable->most_best(); }
    std::span<const Scored> best() const override;
    std::span<const float> hidden() const override;
    bool mixes() const override {
        return std::all_of(parts_.begin(), parts_.end(),
                           [](const Part& part) { return part.executable->mixes(); });
    }

    // The number of places: so many steps can be in flight, which are begun and not finished.
    size_t places() const { return places_; }
    // Begins a step that needs no output of those in flight. What `params` names stays until it is finished.
    Status begin(const StepParams& params);
    // Waits for the first step in flight, whose output(), best() and hidden() stay until the next call. After
    // an error no step is in flight any more.
    Status finish();

private:
    using RunPart = std::function<Status(Executable&, const StepParams&)>;
    // Rows of a step that have left a part, by slot index, and those of the part that runs.
    struct Rows {
        std::map<int32_t, std::vector<float>> of_slots;
        std::vector<float> input;
    };
    class Flights;

    Status run_parts(const StepParams& params, const RunPart& run);
    // The input rows of a part, from those that were kept.
    std::span<const float> gathered(size_t part, size_t rows, Rows& from) const;
    // Keeps the outputs of a part: all of them, or those alone that the next part cannot read in place.
    void keep_output_of(size_t part, size_t rows, bool all, Rows& to) const;
    bool hands_on(size_t part) const;  // the next part reads the output in place

    std::vector<Part> parts_;
    size_t places_ = 1;
    std::vector<std::vector<Crossing>> kept_;  // for each part: its outputs that are copied in run()
    Rows rows_;                                // of run()
    std::unique_ptr<Flights> flights_;         // null: no step was begun
    bool flew_ = false;                        // the last step was in flight, and not one of run()
};

// A model's weights and caches on each backend where parts of its plan run. Must outlive the executables that
// it records.
class Places {
public:
    // `placements` cover all steps of the model's plan, in order; heads add none. The model need not be
    // placed itself.
    static Result<Places> load(const Model& model, const CacheSizing& sizing,
                               std::span<const Placement> placements, const Progress& progress = {},
                               const HeadsBeside& heads = {});
    // The memory that load(), make_caches() and record() of steps of 1 and of `rows` rows would take, one
    // entry for each of backends_of(placements).
    static Result<std::vector<MemoryNeed>> measure(const Model& model, const CacheSizing& sizing,
                                                   std::span<const Placement> placements, uint32_t rows,
                                                   uint32_t outputs, bool fuse, bool streamed = false,
                                                   const HeadsBeside& heads = {});

    // The lowered plans for one token, one for each placement that has steps.
    static Result<std::vector<Plan>> lowered_plans(const Model& model, const CacheSizing& sizing,
                                                   std::span<const Placement> placements, bool fuse);

    // Makes the caches of the whole plan, each where its layers are. At most one such store lives at a time.
    Result<std::unique_ptr<CacheStore>> make_caches();
    // Records steps of at most so many rows and outputs, which use the caches that were made last.
    Result<std::unique_ptr<Pipeline>> record(uint32_t rows, uint32_t outputs, Record mode, bool fuse = true);
    // Like record(), but in steps of many rows the CPU's weights are streamed through the device: see
    // places/stream.h. Where no weights can be, it is record(). measure() counts this when told `streamed`.
    // `watch` decides for each step whether weights are streamed.
    Result<std::unique_ptr<Executable>> record_streamed(uint32_t rows, uint32_t outputs, Record mode,
                                                        std::shared_ptr<StreamWatch> watch, bool fuse = true);
    // Records steps of a head, likewise.
    Result<std::unique_ptr<Executable>> record_head(size_t which, uint32_t rows, Record mode,
                                                    bool fuse = true);
    // True when a device was lost, or has been let go and not come back.
    bool lost() const;
    // Lets go of the lost devices, once the caches and executables are gone. reload() then loads their
    // weights onto the backends that `placements` name in their place; the other weights stay.
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
                                std::span<const Placement> placements, const HeadsBeside& heads = {});
    // The whole plan, with weights in the file's formats: each backend decides how it stores them.
    Result<Plan> file_plan(uint32_t rows, uint32_t outputs) const;
    // With the weights and caches of the heads.
    Result<std::vector<PlanPart>> parts(uint32_t rows, uint32_t outputs) const;
    Result<PlanPart> head_part(size_t which, uint32_t rows, const PlanPart& last) const;
    Result<std::vector<Pipeline::Part>> record_parts(uint32_t rows, uint32_t outputs, Record mode, bool fuse);
    std::vector<Placement> placements() const;
    size_t place_of(const Backend& backend) const;
    Result<Pipeline::Part> pipeline_part(const PlanPart& part, std::shared_ptr<Executable> executable,
                                         size_t place) const;

    friend class StreamedPlaces;
    // Adds what record_streamed() records and places in addition; returns the device through which weights
    // are streamed.
    Result<Backend*> add_streamed(std::vector<PlanPart>& by_place,
                                  std::vector<std::vector<PlanGroup>>& groups, uint32_t rows,
                                  uint32_t outputs, bool fuse) const;
    // For each place, the lowered plans of its parts, in order.
    Result<std::vector<PlanGroup>> lowered(const std::vector<PlanPart>& parts, bool fuse) const;
    // One part for each place; parts of a place share their weights and caches.
    std::vector<PlanPart> one_of_each(std::vector<PlanPart> parts) const;

    const Model* model_;
    CacheSizing sizing_;
    HeadsBeside heads_;
    size_t steps_ = 0;  // number of steps of the whole plan
    std::vector<size_t> cuts_;
    std::vector<size_t> place_of_;  // of each part: index into places_
    std::vector<Place> places_;
};

}  // namespace redline
