#include "measure/kernel_trials.h"

#include "base/control_group.h"
#include "measure/comparison.h"
#include "measure/op_alone.h"
#include "measure/pages.h"
#include "measure/work_threads.h"
#include "plan/kernel_key.h"

#include <algorithm>
#include <bit>
#include <latch>
#include <memory>
#include <numeric>
#include <set>

namespace redline {

namespace {

// The rows of the steps to compare. Kernels differ for few rows, for tiles of them, and for tiles of very
// many.
constexpr uint32_t kRows[] = {3, 33, 160};
constexpr uint64_t kMostFlops = 100'000'000;  // of a step: the reference is 1000 times slower than a device
constexpr double kMostNoise = 1e-2;  // relative to the results' power: the bound alone covers the worst case
constexpr double kByChance = 3.0;    // times the limits of the op tests, for drivers that these have not met
constexpr uint32_t kHistory = 257;   // positions before the compared one, in steps of one row
constexpr size_t kTogether = 32;     // trials whose weights are on the device at a time
constexpr uint64_t kVariantElements = 1u << 24;  // of a matrix of one row's, so that its variant applies

struct Written {
    Slot slot;
    std::vector<float> values;
};

// A step of an op alone, and the results of the device.
struct StepRun {
    std::vector<int32_t> tokens;
    std::vector<Row> rows;
    std::vector<uint32_t> outputs;
    std::vector<std::span<const uint32_t>> pages;  // for each sequence; empty: one sequence, without pages
    std::vector<Precision> precisions;
    std::vector<Written> written;  // empty: nothing is compared

    StepParams params() const { return {tokens, rows, outputs, pages}; }
};

struct Trial {
    TrialOf of;
    Result<OpAlone> made = error("there is not enough memory to check kernels");
    Plan plan;                  // lowered
    size_t from = 0, step = 0;  // indices of a pair's steps in the lowered plan
    std::vector<std::vector<uint32_t>> pages;
    std::vector<StepRun> runs;
    std::unique_ptr<CacheStore> caches;  // separate caches, where they have pages
    std::unique_ptr<Executable> executable;
    uint32_t first_weight = 0, first_cache = 0;  // offsets among the weights and caches of all trials
    std::string wrong;

    const OpAlone& alone() const { return made.value(); }
};

using Trials = std::vector<std::unique_ptr<Trial>>;

uint32_t seed_of(const TrialOf& of) {
    return uint32_t(std::hash<std::string>()(of.key));
}

void make(Trial& trial) {
    const Plan& plan = *trial.of.plan;
    const Op& op = plan.steps[trial.of.step].op;
    const uint32_t seed = seed_of(trial.of);
    if (!trial.of.variants[size_t(RowClass::one)].empty()) trial.of.size.elements = kVariantElements;
    trial.made = trial.of.is_pair() ? pair_alone(plan.steps[trial.of.from].op, op, plan, seed, true)
                                    : op_alone(op, plan, seed, trial.of.size);
}

// Finds the steps of which one hands rows to the other.
bool find_pair(Trial& trial) {
    const std::vector<Step>& steps = trial.plan.steps;
    for (trial.step = 0; trial.step < steps.size(); ++trial.step)
        for (trial.from = 0; trial.from < trial.step; ++trial.from)
            if (steps[trial.step].takes && steps[trial.from].leaves == steps[trial.step].takes) return true;
    return false;
}

// Plans the steps of a trial.
class StepPlanner {
public:
    explicit StepPlanner(Trial& trial) : trial_(trial), plan_(trial.alone().plan) {
        const uint32_t sequences = trial.alone().sequences;
        trial.pages = scattered_pages(plan_.caches, sequences);
        positions_.resize(std::max(1u, sequences));
    }

    // `crossings`: further numbers of rows, so that steps on both sides of a crossover are compared.
    void plan(const Op& op, std::span<const uint32_t> crossings) {
        const bool has_states = has_history(op) && std::ranges::all_of(plan_.caches, [](const CacheInfo& c) {
                                    return c.is_state();
                                });
        if (plan_.max_rows > 1) return plan_many(crossings);
        const uint32_t before = has_history(op) && !has_states ? kHistory : 1;
        for (uint32_t i = 0; i < before; ++i) add({1}, i == 0);
        add({1}, true);
        if (positions_.size() < 2) return;
        add({0, 1}, false);
        add({0, 1}, true);
    }

private:
    void plan_many(std::span<const uint32_t> crossings) {
        std::vector<uint32_t> counts(crossings.begin(), crossings.end());
        counts.insert(counts.end(), std::begin(kRows), std::end(kRows));
        for (size_t i = 0; i < counts.size(); ++i) {
            const uint32_t most = std::min(counts[i], plan_.max_rows);
            const bool first = i <= crossings.size();
            if (!first && flops({most, most, positions_[0] + most}) > kMostFlops) return;
            add({most}, true);
            if (positions_.size() < 2) continue;
            // One sequence has one row, the others share the rest.
            std::vector<uint32_t> each(positions_.size(), most / uint32_t(positions_.size()));
            each.back() = 1;
            add(each, true);
        }
    }

    // Adds a step with so many rows of each sequence.
    void add(const std::vector<uint32_t>& counts, bool compared) {
        StepRun& run = trial_.runs.emplace_back();
        for (uint32_t s = 0; s < counts.size(); ++s)
            for (uint32_t i = 0; i < counts[s]; ++i, ++positions_[s]) {
                run.tokens.push_back(int32_t((positions_[s] * 7 + 13 * s) % OpAlone::kTokens));
                run.rows.push_back({s, uint32_t(positions_[s])});
            }
        run.outputs.resize(run.rows.size());
        std::iota(run.outputs.begin(), run.outputs.end(), 0u);
        run.pages.assign(trial_.pages.begin(), trial_.pages.end());
        if (!compared) return;
        if (trial_.of.is_pair())
            run.written.push_back({access(trial_.plan.steps[trial_.from].op).writes[0], {}});
        for (const Slot s : trial_.alone().written) run.written.push_back({s, {}});
    }

    // The work of the op and of the ops behind it that make its results visible.
    uint64_t flops(const StepShape& shape) const {
        uint64_t sum = 0;
        for (size_t i = trial_.alone().step; i < plan_.steps.size(); ++i)
            sum += cost(plan_.steps[i].op, plan_, shape).flops;
        return sum;
    }

    Trial& trial_;
    const Plan& plan_;
    std::vector<uint64_t> positions_;  // of each sequence
};

// The numbers of rows below and above each crossover that differs from the default in the backend's variants.
std::vector<uint32_t> crossings_of(const Plan& plan, Backend& backend) {
    std::set<uint32_t> rows;
    for (const Step& step : plan.steps)
        for (const RowClass size : kRowClassList) {
            const auto found = backend.variants().find({kernel_key(step.op, plan), size});
            if (found == backend.variants().end()) continue;
            for (const Choice& one : backend.choices_for(step.op, plan, size)) {
                const auto value = found->second.find(one.name);
                if (!one.crossover || value == found->second.end()) continue;
                for (const uint32_t count : {value->second, value->second + 1})
                    if (row_class_of(count) == size) rows.insert(count);
            }
        }
    return {rows.begin(), rows.end()};
}

// The weights of all trials, one after another.
class AllWeights : public ByteSource {
public:
    explicit AllWeights(const Trials& trials) {
        for (const auto& trial : trials) {
            trial->first_weight = uint32_t(infos.size());
            const Fixture& fixture = trial->alone().fixture;
            infos.insert(infos.end(), fixture.weights().begin(), fixture.weights().end());
            owners_.resize(infos.size(), trial.get());
        }
    }
    Status read(size_t tensor, uint64_t offset, std::span<std::byte> out) override {
        Trial& owner = *owners_[tensor];
        return owner.made.value().fixture.read(tensor - owner.first_weight, offset, out);
    }

    std::vector<WeightInfo> infos;

private:
    std::vector<Trial*> owners_;
};

// A trial's plan, renumbered to its weights and caches among those of all trials.
Plan among_all(const Trial& trial, std::span<const WeightInfo> weights, std::span<const CacheInfo> caches) {
    Plan plan = trial.alone().plan;
    const auto move = [&](auto& index) {
        using Index = std::remove_cvref_t<decltype(index)>;
        if constexpr (std::is_same_v<Index, Weight>)
            if (index) index.index += int32_t(trial.first_weight);
        if constexpr (std::is_same_v<Index, Cache>)
            if (index) index.index += int32_t(trial.first_cache);
    };
    for (Step& step : plan.steps)
        std::visit([&](auto& o) { o.visit_indices([&](auto&... all) { (move(all), ...); }); }, step.op);
    plan.weights.assign(weights.begin(), weights.end());
    if (!caches.empty()) plan.caches.assign(caches.begin(), caches.end());
    return plan;
}

// The backend has the variants of a trial in use for as long as this lives. The reduced ops have other keys
// than the model's.
class TrialVariants {
public:
    TrialVariants(Backend& backend, const Trial& trial) : backend_(backend), before_(backend.variants()) {
        const TrialOf& of = trial.of;
        const OpAlone& alone = trial.alone();
        Variants all = before_;
        const auto set = [&](const Op& op, const TakenVariants& taken) {
            const std::string key = kernel_key(op, alone.plan);
            for (const RowClass rows : kRowClassList) {
                all.erase({key, rows});
                if (!taken[size_t(rows)].empty()) all[{key, rows}] = taken[size_t(rows)];
            }
        };
        if (of.is_pair())
            for (size_t i = 0; i < alone.step; ++i)
                if (alone.plan.steps[i].op.index() == of.plan->steps[of.from].op.index())
                    set(alone.plan.steps[i].op, of.from_variants);
        set(alone.plan.steps[alone.step].op, of.variants);
        backend_.use(std::move(all));
    }
    ~TrialVariants() { backend_.use(std::move(before_)); }
    TrialVariants(const TrialVariants&) = delete;
    TrialVariants& operator=(const TrialVariants&) = delete;

private:
    Backend& backend_;
    Variants before_;
};

class Device {
public:
    Device(Backend& backend, const std::atomic<bool>* cancel) : backend_(backend), cancel_(cancel) {}

    // `ran` is called for each trial as soon as it has run.
    Status run(const Trials& trials, const std::function<void(Trial&)>& ran) {
        for (const auto& trial : trials) RL_TRY(prepare(*trial));
        for (const auto& trial : trials) {
            const TrialVariants variants(backend_, *trial);
            const Plan& plan = *trial->of.plan;
            StepPlanner(*trial).plan(plan.steps[trial->of.step].op, crossings_of(trial->plan, backend_));
            const BoundPlan bound = RL_TRY(lower(trial->alone().plan, backend_));
            for (StepRun& run : trial->runs) run.precisions = precisions(bound, run.params());
        }
        AllWeights source(trials);
        const auto weights = RL_TRY(backend_.load(source.infos, source, {}));
        const auto caches = RL_TRY(record(trials, source.infos, *weights));
        std::vector<Executable*> executables;
        for (const auto& trial : trials) executables.push_back(trial->executable.get());
        RL_TRY(backend_.prepare(executables, kRows));
        for (const auto& trial : trials) {
            for (StepRun& run : trial->runs) RL_TRY(this->run(*trial, run));
            ran(*trial);
        }
        for (const auto& trial : trials) {
            trial->executable.reset();
            trial->caches.reset();
        }
        return {};
    }

private:
    // Fewer columns are enough, unless rows would then not be handed over.
    Status prepare(Trial& trial) {
        RL_TRY(lower_alone(trial));
        if (!trial.of.is_pair() || find_pair(trial)) return {};
        const Plan& plan = *trial.of.plan;
        trial.made = pair_alone(plan.steps[trial.of.from].op, plan.steps[trial.of.step].op, plan,
                                seed_of(trial.of), false);
        RL_TRY(lower_alone(trial));
        if (find_pair(trial)) return {};
        return error("{} is not computed by these two alone", trial.of.key);
    }
    Status lower_alone(Trial& trial) {
        if (!trial.made) return trial.made.error();
        const TrialVariants variants(backend_, trial);
        trial.plan = RL_TRY(lower(trial.alone().plan, backend_)).plan;
        return {};
    }

    // Trials without pages share caches and scratch.
    Result<std::unique_ptr<CacheStore>> record(const Trials& trials, std::span<const WeightInfo> weights,
                                               WeightStore& store) {
        std::vector<CacheInfo> infos;
        for (const auto& trial : trials) {
            if (trial->alone().sequences > 0) continue;
            trial->first_cache = uint32_t(infos.size());
            infos.insert(infos.end(), trial->plan.caches.begin(), trial->plan.caches.end());
        }
        auto caches = RL_TRY(backend_.make_caches(infos));
        PlanGroup group;
        for (const auto& trial : trials) {
            const TrialVariants variants(backend_, *trial);
            const bool paged = trial->alone().sequences > 0;
            const Plan plan = among_all(*trial, weights, paged ? std::span<const CacheInfo>() : infos);
            BoundPlan bound = RL_TRY(lower(plan, backend_));
            if (!paged) {
                group.push_back(std::move(bound));
                continue;
            }
            trial->caches = RL_TRY(backend_.make_caches(trial->plan.caches));
            trial->executable =
                RL_TRY(backend_.record(std::move(bound), store, *trial->caches, Record::direct));
        }
        if (group.empty()) return caches;
        auto recorded = RL_TRY(backend_.record_group(std::move(group), store, *caches, Record::direct));
        auto next = recorded.begin();
        for (const auto& trial : trials)
            if (!trial->executable) trial->executable = std::move(*next++);
        return caches;
    }

    Status run(const Trial& trial, StepRun& run) {
        StepParams params = run.params();
        params.cancel = cancel_;
        const bool is_output = run.written.size() == 1 && run.written[0].slot == trial.alone().plan.output &&
                               run.written[0].slot != trial.alone().ids;
        if (run.written.empty() || is_output) {
            RL_TRY(trial.executable->run(params));
            const std::span<const float> output = trial.executable->output();
            if (is_output) run.written[0].values.assign(output.begin(), output.end());
            return {};
        }
        size_t next = 0;
        return trial.executable->run_traced(params, [&](const TraceStep& traced) {
            const std::vector<Slot> slots = access(traced.step->op).writes;
            const size_t step = next++;
            for (size_t i = 0; i < slots.size(); ++i)
                for (Written& w : run.written) {
                    if (w.slot != slots[i]) continue;
                    // The second op of a pair may write to the same slot as the first.
                    const bool of_first = trial.of.is_pair() && &w == &run.written[0];
                    if (of_first && step != trial.from) continue;
                    w.values.assign(traced.written[i].begin(), traced.written[i].end());
                    if (w.slot == trial.alone().ids)
                        for (float& id : w.values) id = float(std::bit_cast<int32_t>(id));
                }
        });
    }

    Backend& backend_;
    const std::atomic<bool>* cancel_;
};

// For ids of experts: of two nearly equal experts either may be chosen, which is rare among random ones.
bool mostly_the_same(const Comparison& c) {
    return c.outside * 50 <= c.count;
}

// Says what is wrong; empty when nothing is.
std::string wrong_with(const Written& w, const Reference& reference, size_t rows, bool ids) {
    const std::span<const Bounded> want = reference.slot(w.slot);
    const Comparison c = compare(w.values, want.first(w.values.size()));
    const bool within = c.worst_fraction <= 1.0 || (ids && mostly_the_same(c));
    if (within && (ids || (c.nmse < kMostNoise && by_chance(c, kByChance)))) return {};
    std::string text = fmt::format("with {} row{} ", rows, rows == 1 ? "" : "s");
    if (within && c.nmse < kMostNoise)
        return text + fmt::format(
                          "results have {:.3g} times the error that rounding is likely to cause, "
                          "the largest {:.3g} times",
                          c.spread, c.farthest);
    if (within) return text + fmt::format("results are {:.2g} % noise", 100 * std::sqrt(c.nmse));
    return text + fmt::format(
                      "{} of {} results are wrong, the worst {:.4g} in place of {:.4g}, which may be {:.2g} "
                      "off",
                      c.outside, c.count, c.got, c.want, c.bound);
}

// The first op of a pair is tested separately, so that its result in floats is taken over as the second's
// input.
void evaluate(Reference& reference, const Trial& trial, const StepRun& run) {
    const StepParams params = run.params();
    if (!trial.of.is_pair() || run.written.empty())
        return reference.run(params, run.precisions, !run.written.empty());
    for (size_t i = 0; i < trial.plan.steps.size(); ++i) {
        if (i != trial.from) reference.run_step(params, i, run.precisions[i]);
        if (i == trial.from) reference.assign(run.written[0].slot, run.written[0].values);
    }
}

void judge(Trial& trial, const Backend& backend) {
    Reference reference(trial.plan, trial.alone().fixture.decoded(backend));
    for (const StepRun& run : trial.runs) {
        evaluate(reference, trial, run);
        for (const Written& w : run.written) {
            if (trial.of.is_pair() && &w == &run.written[0]) continue;
            trial.wrong = wrong_with(w, reference, run.rows.size(), trial.alone().ids == w.slot);
            if (!trial.wrong.empty()) return;
        }
    }
}

// Trials in groups, of which the device holds one at a time.
struct Group {
    Trials trials;
    std::unique_ptr<std::latch> made;
};

std::vector<Group> groups_of(std::span<const TrialOf> trials) {
    std::vector<Group> groups;
    for (size_t i = 0; i < trials.size(); ++i) {
        if (i % kTogether == 0) groups.emplace_back();
        groups.back().trials.push_back(std::make_unique<Trial>());
        groups.back().trials.back()->of = trials[i];
    }
    for (Group& group : groups) group.made = std::make_unique<std::latch>(ptrdiff_t(group.trials.size()));
    return groups;
}

void make_all(Group& group, WorkThreads& threads) {
    for (const auto& trial : group.trials)
        threads.give([&group, one = trial.get()] {
            struct Done {
                std::latch& latch;
                ~Done() { latch.count_down(); }
            } const done{*group.made};
            make(*one);
        });
}

}  // namespace

Result<std::vector<std::string>> wrong_of(std::span<const TrialOf> trials, Backend& backend,
                                          const std::atomic<bool>* cancel) {
    std::vector<Group> groups = groups_of(trials);
    WorkThreads threads(usable_cpus() - 1);
    Device device(backend, cancel);
    if (!groups.empty()) make_all(groups[0], threads);
    for (size_t i = 0; i < groups.size(); ++i) {
        groups[i].made->wait();
        if (i + 1 < groups.size()) make_all(groups[i + 1], threads);
        RL_TRY(device.run(groups[i].trials,
                          [&](Trial& trial) { threads.give([&] { judge(trial, backend); }); }));
    }
    if (!threads.finish()) return error("there is no memory left to check kernels with");
    std::vector<std::string> wrong;
    for (const Group& group : groups)
        for (const auto& trial : group.trials) wrong.push_back(std::move(trial->wrong));
    return wrong;
}

}  // namespace redline
