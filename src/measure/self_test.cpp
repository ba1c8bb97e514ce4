#include "measure/self_test.h"

#include "measure/kernel_trials.h"
#include "measure/op_alone.h"
#include "measure/op_case.h"
#include "plan/kernel_key.h"

#include <algorithm>
#include <chrono>
#include <map>

namespace redline {

namespace {

// The ops that the backend would run, and the rows handed between them, without a known verdict.
std::vector<TrialOf> unknown_trials(std::span<const BoundPlan> plans, const std::set<std::string>& known,
                                    const SelfTest& test, const Variants& tested) {
    std::vector<TrialOf> trials;
    std::set<std::string> met;
    const auto add = [&](std::string key, const BoundPlan& bound, size_t from, size_t step) {
        if (known.contains(key) || test.right.contains(key) || !met.insert(key).second) return;
        trials.push_back({std::move(key), &bound.plan, from, step, bound.kernels[from]->taken(),
                          bound.kernels[step]->taken()});
    };
    // In the variant that is in use, and was tested when it was tuned.
    const auto was_tested = [&](const BoundPlan& bound, size_t step) {
        const TakenVariants& taken = bound.kernels[step]->taken();
        if (tested.empty() || taken_text(taken).empty()) return false;
        const std::string key = kernel_key(bound.plan.steps[step].op, bound.plan);
        return std::ranges::all_of(kRowClassList, [&](RowClass rows) {
            const auto found = tested.find({key, rows});
            return taken[size_t(rows)].empty() ||
                   (found != tested.end() && found->second == taken[size_t(rows)]);
        });
    };
    for (const BoundPlan& bound : plans) {
        const std::vector<Step>& steps = bound.plan.steps;
        std::map<int32_t, size_t> leaving;  // steps that write it, by the handed slot
        for (size_t i = 0; i < steps.size(); ++i) {
            if (stands_alone(steps[i].op) && !was_tested(bound, i)) add(step_verdict(bound, i), bound, i, i);
            if (steps[i].leaves) leaving[steps[i].leaves.index] = i;
            if (!steps[i].takes) continue;
            // A plan of more rows is used for steps of more rows.
            if (bound.plan.max_rows > 1 && !bound.plan.slot(steps[i].takes).handed_few) continue;
            const size_t from = leaving.at(steps[i].takes.index);
            add(handed_verdict(bound, from, i), bound, from, i);
        }
    }
    return trials;
}

// Adds the verdicts of the trials. Rows handed between kernels that are wrong by themselves are not judged.
bool add_verdicts(std::span<const TrialOf> trials, std::vector<std::string> wrong, SelfTest& test,
                  std::set<std::string>& refused) {
    const auto is_wrong = [&](const Plan& plan, size_t step, const TakenVariants& taken) {
        return refused.contains(verdict_key(kernel_key(plan.steps[step].op, plan), taken_text(taken)));
    };
    bool found = false;
    for (const bool pairs : {false, true})
        for (size_t i = 0; i < trials.size(); ++i) {
            const TrialOf& trial = trials[i];
            if (trial.is_pair() != pairs) continue;
            if (pairs && (is_wrong(*trial.plan, trial.from, trial.from_variants) ||
                          is_wrong(*trial.plan, trial.step, trial.variants)))
                continue;
            if (wrong[i].empty()) {
                test.right.insert(trial.key);
                continue;
            }
            found = true;
            refused.insert(trial.key);
            test.wrong.push_back({trial.key, std::move(wrong[i])});
        }
    return found;
}

// Compares the outputs that the device picks from a row with those picked here; empty where it picks none.
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
    const std::string key = fmt::format("{} of {}", kBestKey, outputs);  // the key that lower() asks for
    if (known.contains(key) || backend.refused().contains(key)) return {};
    std::optional<std::string> wrong = RL_TRY(wrong_best(outputs, backend));
    if (!wrong) return {};
    if (wrong->empty()) {
        test.right.insert(key);
        return {};
    }
    test.wrong.push_back({key, std::move(*wrong)});
    std::set<std::string> refused = backend.refused();
    refused.insert(key);
    backend.refuse(std::move(refused));
    return {};
}

}  // namespace

Result<SelfTest> self_test(const Model& model, Backend& backend, const EngineOptions& options,
                           const std::set<std::string>& known, bool tuned, const std::atomic<bool>* cancel) {
    const auto start = std::chrono::steady_clock::now();
    const std::vector<Plan> plans = RL_TRY(kernel_plans(model, options, backend));
    SelfTest test;
    for (bool again = true; again;) {
        again = false;
        std::vector<BoundPlan> bound;
        for (const Plan& plan : plans) {
            Result<BoundPlan> lowered = lower(plan, backend, options.fuse);
            if (!lowered && backend.refused().empty())
                return SelfTest();  // loading the model reports the error
            if (!lowered) test.lost = lowered.error();
            if (lowered) bound.push_back(std::move(lowered).value());
        }
        if (test.lost) break;
        const std::vector<TrialOf> trials =
            unknown_trials(bound, known, test, tuned ? Variants() : backend.variants());
        std::vector<std::string> wrong = RL_TRY(wrong_of(trials, backend, cancel));
        std::set<std::string> refused = backend.refused();
        again = add_verdicts(trials, std::move(wrong), test, refused);
        if (again) backend.refuse(std::move(refused));
    }
    if (!test.lost) RL_TRY(check_best(plans[0].slot(plans[0].output).width, backend, known, test));
    const std::chrono::duration<double> took = std::chrono::steady_clock::now() - start;
    test.seconds = took.count();
    return test;
}

}  // namespace redline
