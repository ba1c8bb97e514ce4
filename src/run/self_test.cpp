#include "run/self_test.h"

#include "cases/comparison.h"
#include "run/op_alone.h"

#include <algorithm>
#include <bit>
#include <chrono>
#include <cmath>
#include <map>
#include <new>
#include <numeric>
#include <thread>

namespace redline {

namespace {

// So many rows a step has. Kernels differ by few rows, tiles of them, and tiles of very many.
constexpr uint32_t kRows[] = {3, 33, 160};
constexpr uint64_t kMostFlops = 100'000'000;  // of a step: the reference is a thousandth as fast as a device
constexpr double kMostNoise = 1e-2;           // of the results' power: a bound is for the worst case
constexpr uint32_t kHistory = 257;            // positions before the compared one, of steps of one row

struct Written {
    Slot slot;
    std::vector<float> values;
};

// A step of an op alone: what the device made of it.
struct StepRun {
    std::vector<int32_t> tokens;
    uint64_t position = 0;
    std::vector<Precision> precisions;
    std::vector<Written> written;  // empty: nothing is compared
};

// An op alone, as the device ran it.
struct Trial {
    std::string key;
    OpAlone alone;
    Plan plan;  // lowered
    std::vector<std::vector<float>> weights;
    std::vector<StepRun> runs;
    std::string wrong;  // what is; empty: nothing
};

class Device {
public:
    Device(Backend& backend, const std::atomic<bool>* cancel) : backend_(backend), cancel_(cancel) {}

    Status run(Trial& trial, const Op& op) {
        BoundPlan bound = RL_TRY(lower(trial.alone.plan, backend_));
        trial.plan = bound.plan;
        trial.weights = trial.alone.fixture.decoded(backend_);
        plan_steps(trial, op);
        for (StepRun& run : trial.runs)
            run.precisions = precisions(bound, SequenceStep(run.tokens, run.position, rows(run)));
        const auto weights = RL_TRY(backend_.load(trial.alone.fixture.weights(), trial.alone.fixture, {}));
        const auto caches = RL_TRY(backend_.make_caches(trial.plan.caches));
        const auto executable = RL_TRY(backend_.record(std::move(bound), *weights, *caches, Record::direct));
        for (StepRun& run : trial.runs) RL_TRY(this->run(trial, run, *executable));
        return {};
    }

private:
    static uint32_t rows(const StepRun& run) { return uint32_t(run.tokens.size()); }

    void plan_steps(Trial& trial, const Op& op) {
        const Plan& plan = trial.alone.plan;
        uint64_t position = 0;
        const auto add = [&](uint32_t count, bool compared) {
            StepRun& run = trial.runs.emplace_back();
            for (uint32_t i = 0; i < count; ++i)
                run.tokens.push_back(int32_t((position + i) * 7 % OpAlone::kTokens));
            run.position = position;
            if (compared)
                for (const Slot s : trial.alone.written) run.written.push_back({s, {}});
            position += count;
        };
        const bool has_states = has_history(op) && std::ranges::all_of(plan.caches, [](const CacheInfo& c) {
                                    return c.is_state();
                                });
        if (plan.max_rows == 1) {
            const uint32_t before = has_history(op) && !has_states ? kHistory : 1;
            for (uint32_t i = 0; i < before; ++i) add(1, i == 0);
            add(1, true);
            return;
        }
        for (const uint32_t count : kRows) {
            const uint32_t most = std::min(count, plan.max_rows);
            if (position > 0 && flops(trial, {most, most, position + most}) > kMostFlops) break;
            add(most, true);
        }
    }

    // Of the op and what stands behind it so that its results are seen.
    static uint64_t flops(const Trial& trial, const StepShape& shape) {
        const Plan& plan = trial.alone.plan;
        uint64_t sum = 0;
        for (size_t i = trial.alone.step; i < plan.steps.size(); ++i)
            sum += cost(plan.steps[i].op, plan, shape).flops;
        return sum;
    }

    Status run(const Trial& trial, StepRun& run, Executable& executable) {
        const SequenceStep step(run.tokens, run.position, rows(run));
        StepParams params = step;
        params.cancel = cancel_;
        if (run.written.empty()) return executable.run(params);
        return executable.run_traced(params, [&](const TraceStep& traced) {
            const std::vector<Slot> slots = access(traced.step->op).writes;
            for (size_t i = 0; i < slots.size(); ++i)
                for (Written& w : run.written) {
                    if (w.slot != slots[i]) continue;
                    w.values.assign(traced.written[i].begin(), traced.written[i].end());
                    if (w.slot == trial.alone.ids)
                        for (float& id : w.values) id = float(std::bit_cast<int32_t>(id));
                }
        });
    }

    Backend& backend_;
    const std::atomic<bool>* cancel_;
};

// Of experts that are about as likely either may be taken; there are few of them among random ones.
bool mostly_the_same(const Comparison& c) {
    return c.outside * 50 <= c.count;
}

void judge(Trial& trial) {
    Reference reference(trial.plan, std::move(trial.weights));
    for (const StepRun& run : trial.runs) {
        const auto rows = uint32_t(run.tokens.size());
        reference.run(SequenceStep(run.tokens, run.position, rows), run.precisions, !run.written.empty());
        for (const Written& w : run.written) {
            const std::span<const Bounded> want = reference.slot(w.slot);
            const bool ids = trial.alone.ids == w.slot;
            const Comparison c = compare(w.values, want.first(w.values.size()));
            const bool within = c.worst_fraction <= 1.0 || (ids && mostly_the_same(c));
            if (within && (ids || c.nmse < kMostNoise)) continue;
            trial.wrong = fmt::format("with {} row{} ", rows, rows == 1 ? "" : "s");
            trial.wrong += within ? fmt::format("results are {:.2g} % noise", 100 * std::sqrt(c.nmse))
                                  : fmt::format(
                                        "{} of {} results are wrong, the worst {:.4g} in place of "
                                        "{:.4g}, which may be {:.2g} off",
                                        c.outside, c.count, c.got, c.want, c.bound);
            return;
        }
    }
}

// In threads, one trial each at a time.
Status judge_all(std::vector<Trial>& trials) {
    std::atomic<size_t> next = 0;
    std::atomic<bool> full = false;
    const auto work = [&] {
        try {
            for (size_t i = next++; i < trials.size(); i = next++) judge(trials[i]);
        } catch (const std::bad_alloc&) {
            full = true;
        }
    };
    {
        std::vector<std::jthread> others;
        const size_t most = std::min<size_t>(trials.size(), std::thread::hardware_concurrency());
        for (size_t i = 1; i < most; ++i) others.emplace_back(work);
        work();
    }
    return full ? error("there is no memory left to check kernels with") : Status();
}

// The ops that the backend would run and that nothing is known of.
Result<std::vector<Trial>> run_unknown(std::span<const BoundPlan> plans, Backend& backend,
                                       const std::set<std::string>& known, const SelfTest& test,
                                       const std::atomic<bool>* cancel) {
    std::vector<Trial> trials;
    std::set<std::string> met;
    Device device(backend, cancel);
    for (const BoundPlan& bound : plans)
        for (const Step& step : bound.plan.steps) {
            const std::string key = kernel_key(step.op, bound.plan);
            if (known.contains(key) || test.right.contains(key) || !met.insert(key).second) continue;
            std::optional<OpAlone> alone =
                RL_TRY(op_alone(step.op, bound.plan, uint32_t(std::hash<std::string>()(key))));
            if (!alone) continue;
            trials.push_back({key, std::move(*alone), {}, {}, {}, {}});
            RL_TRY(device.run(trials.back(), step.op));
        }
    return trials;
}

// What the device picks of a row of outputs, beside what is picked here; nothing where it picks none.
Result<std::optional<std::string>> wrong_best(uint32_t outputs, Backend& backend) {
    Fixture fixture(3, 2);
    const Weight table = fixture.input(outputs);
    PlanBuilder builder(fixture.weights(), {1, 1, CacheType::f16}, 1, 1);
    builder.output(builder.embed(table));
    const Plan plan = RL_TRY(std::move(builder).finish());
    const auto weights = RL_TRY(backend.load(fixture.weights(), fixture, {}));
    const auto caches = RL_TRY(backend.make_caches(plan.caches));
    BoundPlan bound = RL_TRY(lower(plan, backend));
    const auto executable = RL_TRY(backend.record(std::move(bound), *weights, *caches, Record::direct));
    const int32_t token = 1;
    const SequenceStep step({&token, 1}, 0, 1);
    StepParams params = step;
    RL_TRY(executable->run(params));
    std::vector<Scored> want;
    for (const float logit : executable->output()) want.push_back({logit, int32_t(want.size())});
    std::sort(want.begin(), want.end(), comes_first);
    params.best = std::min(executable->most_best(), outputs);
    params.best_among = outputs;
    if (params.best == 0) return std::optional<std::string>();
    RL_TRY(executable->run(params));
    const std::span<const Scored> got = executable->best();
    for (size_t i = 0; i < params.best; ++i)
        if (i >= got.size() || got[i].id != want[i].id || got[i].logit != want[i].logit)
            return std::optional(fmt::format("number {} of {} outputs is picked wrongly", i + 1, outputs));
    return std::optional(std::string());
}

Status check_best(uint32_t outputs, Backend& backend, const std::set<std::string>& known, SelfTest& test) {
    if (known.contains(kBestKey) || backend.refused().contains(kBestKey)) return {};
    std::optional<std::string> wrong = RL_TRY(wrong_best(outputs, backend));
    if (!wrong) return {};
    if (wrong->empty()) {
        test.right.insert(kBestKey);
        return {};
    }
    test.wrong.push_back({kBestKey, std::move(*wrong)});
    std::set<std::string> refused = backend.refused();
    refused.insert(kBestKey);
    backend.refuse(std::move(refused));
    return {};
}

}  // namespace

Result<SelfTest> self_test(const Model& model, Backend& backend, const EngineOptions& options,
                           const std::set<std::string>& known, const std::atomic<bool>* cancel) {
    const auto start = std::chrono::steady_clock::now();
    const std::vector<Plan> plans = RL_TRY(engine_plans(model, options));
    SelfTest test;
    for (bool again = true; again;) {
        again = false;
        std::vector<BoundPlan> bound;
        for (const Plan& plan : plans) {
            Result<BoundPlan> lowered = lower(plan, backend, options.fuse);
            if (!lowered && backend.refused().empty()) return SelfTest();  // who loads the model says why
            if (!lowered) test.lost = lowered.error();
            if (lowered) bound.push_back(std::move(lowered).value());
        }
        if (test.lost) break;
        std::vector<Trial> trials = RL_TRY(run_unknown(bound, backend, known, test, cancel));
        RL_TRY(judge_all(trials));
        std::set<std::string> refused = backend.refused();
        for (Trial& trial : trials) {
            if (trial.wrong.empty()) {
                test.right.insert(trial.key);
                continue;
            }
            again = true;
            refused.insert(trial.key);
            test.wrong.push_back({trial.key, std::move(trial.wrong)});
        }
        if (again) backend.refuse(std::move(refused));
    }
    if (!test.lost) RL_TRY(check_best(plans[0].slot(plans[0].output).width, backend, known, test));
    const std::chrono::duration<double> took = std::chrono::steady_clock::now() - start;
    test.seconds = took.count();
    return test;
}

}  // namespace redline
