#include "measure/tune.h"

#include "measure/kernel_trials.h"
#include "plan/kernel_key.h"
#include "plan/stored_weights.h"

#include <algorithm>
#include <array>
#include <chrono>
#include <cmath>
#include <numeric>
#include <set>

namespace redline {

namespace {

// The least gain for which a variant is taken. In steps of one row ops overlap with their neighbours, which
// timing an op alone does not show: on an H100 gains of 2 to 5 % there made Llama-2-7B Q4_0 generate 1 %
// slower, with HIP and with Vulkan.
double least_gain(RowClass rows) {
    return rows == RowClass::one ? 0.05 : 0.02;
}
constexpr uint32_t kRepeats = 16, kManyRepeats = 4;
constexpr uint64_t kFewBefore = 256;  // tokens
constexpr double kMostNoise = 1e-2;   // relative to the results' power, between variants
// A time is the minimum of several steps: other load of the machine only ever makes one slower.
constexpr uint32_t kLeastSteps = 3, kMostSteps = 50;
constexpr double kMostSeconds = 0.3;
constexpr uint32_t kRounds = 6, kLeastRounds = 2;  // of the winner and the default, alternating

class SteadyClock : public TuneClock {
public:
    double now() override {
        return std::chrono::duration<double>(std::chrono::steady_clock::now().time_since_epoch()).count();
    }
    Result<double> time(const TimedStep&, const std::function<Status()>& step) override {
        const double start = now();
        RL_TRY(step());
        return now() - start;
    }
};

// An op of the model's plans, in steps of a row class.
struct Task {
    const Plan* plan;
    size_t step;
    std::string key;
    RowClass rows;
    uint64_t count, work;  // of all of them in a step: bytes, or operations
};

uint32_t timed_rows(RowClass rows, const Plan& plan) {
    constexpr uint32_t kTrialRows[] = {1, 4, 64, 512};
    return std::min(kTrialRows[size_t(rows)], plan.max_rows);
}

// Where a crossover lies within the class, one number of rows would say nothing about the others.
std::vector<uint32_t> timed_widths(RowClass rows, const Plan& plan, const Choices& choices) {
    if (std::ranges::none_of(choices, &Choice::crossover)) return {timed_rows(rows, plan)};
    std::vector<uint32_t> widths;
    for (const uint32_t width : widths_of(rows))
        if (width <= plan.max_rows) widths.push_back(width);
    return widths.empty() ? std::vector<uint32_t>{timed_rows(rows, plan)} : widths;
}

// The tasks that are not in `known`, the most important first.
class Tasks {
public:
    Tasks(Backend& backend, bool prompts) : backend_(backend), prompts_(prompts) {}

    // A temporary is refused, since tasks point to the plan.
    void add(Plan&&) = delete;
    void add(const Plan& plan) {
        for (size_t i = 0; i < plan.steps.size(); ++i) {
            const Op& op = plan.steps[i].op;
            if (!stands_alone(op)) continue;
            if (plan.max_rows == 1) add(plan, i, RowClass::one);
            // Only one row has an output, so that wider classes do not occur.
            if (plan.max_rows == 1 || !prompts_ || plan.slot(access(op).writes[0]).of_outputs) continue;
            for (const RowClass rows : {RowClass::few, RowClass::some, RowClass::many})
                if (row_class_of(timed_rows(rows, plan)) == rows) add(plan, i, rows);
        }
    }

    std::vector<Task> sorted(std::set<Variants::key_type>& known) && {
        std::erase_if(tasks_, [&](const Task& task) { return known.contains({task.key, task.rows}); });
        for (const Task& task : tasks_) known.insert({task.key, task.rows});
        const auto place = [](RowClass rows) {
            return rows == RowClass::one ? 0 : rows == RowClass::many ? 1 : rows == RowClass::some ? 2 : 3;
        };
        std::stable_sort(tasks_.begin(), tasks_.end(), [&](const Task& a, const Task& b) {
            return std::pair(place(a.rows), b.work) < std::pair(place(b.rows), a.work);
        });
        return std::move(tasks_);
    }

private:
    void add(const Plan& plan, size_t step, RowClass rows) {
        const Op& op = plan.steps[step].op;
        std::string key = kernel_key(op, plan);
        const uint64_t n = timed_rows(rows, plan);
        const Cost one = cost(op, plan, {n, 1, n});
        const uint64_t work = rows == RowClass::one ? one.weight_bytes + one.cache_bytes : one.flops;
        const auto same = std::find_if(tasks_.begin(), tasks_.end(), [&](const Task& task) {
            return task.key == key && task.rows == rows;
        });
        if (same != tasks_.end()) {
            ++same->count;
            same->work += work;
            return;
        }
        const Choices choices = backend_.choices_for(op, plan, rows);
        if (std::ranges::none_of(choices, [](const Choice& each) { return each.values.size() > 1; })) return;
        tasks_.push_back({&plan, step, std::move(key), rows, 1, work});
    }

    Backend& backend_;
    bool prompts_;
    std::vector<Task> tasks_;
};

uint32_t seed_of(const std::string& key) {
    return uint32_t(std::hash<std::string>()(key));
}

// An op on the device, repeated in a step, which is timed in one variant after the other.
class OpBench {
public:
    OpBench(const Task& task, Backend& backend, const TuneOptions& how, TuneClock& clock)
        : task_(task), backend_(backend), how_(how), clock_(clock), base_(backend.variants()) {}
    ~OpBench() { backend_.use(base_); }

    Status make() {
        const bool one = task_.rows == RowClass::one;
        const AloneSize size = {64, how_.elements, UINT64_MAX,
                                one ? AloneSize().further_experts : UINT64_MAX};
        repeats_ = one ? kRepeats : kManyRepeats;
        const uint64_t bytes = std::min(how_.copy_bytes, backend_.device().memory.bytes / 8);
        alone_.emplace(RL_TRY(op_repeated(task_.plan->steps[task_.step].op, *task_.plan, seed_of(task_.key),
                                          size, repeats_, one ? bytes : bytes / 4)));
        const Plan& plan = alone_->plan;
        key_ = kernel_key(plan.steps[alone_->step].op, plan);
        const Op& op = task_.plan->steps[task_.step].op;
        const std::vector<uint32_t> widths =
            timed_widths(task_.rows, *task_.plan, backend_.choices_for(op, *task_.plan, task_.rows));
        // A state starts as zeros at position 0: further on a variant's results would depend on the states
        // left by others.
        const bool has_state =
            std::ranges::any_of(plan.caches, [](const CacheInfo& cache) { return cache.is_state(); });
        // An op that reads a cache may be fastest in one way after few tokens, and in another after many.
        const uint64_t behind = one && !has_state && !plan.caches.empty() ? plan.sizing.context / 2 : 0;
        for (const uint32_t width : widths) points_.push_back({behind, width});
        if (behind > kFewBefore) points_.push_back({kFewBefore, widths.back()});
        for (uint32_t i = 0; i < widths.back(); ++i) tokens_.push_back(int32_t(i % OpAlone::kTokens));
        weights_ = RL_TRY(backend_.load(alone_->fixture.weights(), alone_->fixture, {}));
        caches_ = RL_TRY(backend_.make_caches(plan.caches));
        return fill_caches();
    }

    // Null: the device cannot compute this variant, or its results differ from the default's.
    struct Runnable {
        std::unique_ptr<Executable> executable;
        Variant variant;
    };
    Result<std::unique_ptr<Runnable>> runnable(const Variant& variant, std::vector<std::string>* wrong) {
        Variants all = base_;
        all[{key_, task_.rows}] = variant;
        backend_.use(std::move(all));
        Result<BoundPlan> bound = lower(alone_->plan, backend_);
        if (!bound) return std::unique_ptr<Runnable>();
        auto made = backend_.record(std::move(bound).value(), *weights_, *caches_, Record::replay);
        if (!made && backend_.lost()) return made.error();
        if (!made) return std::unique_ptr<Runnable>();
        auto out = std::make_unique<Runnable>(Runnable{std::move(made).value(), variant});
        // Each leaves its keys and values at all positions before it is compared, since the variant before it
        // has been timed there.
        if (!wrong) want_.resize(points_.size());
        for (size_t i = points_.size(); i-- > 0;) {
            RL_TRY(step(*out, points_[i]));
            const std::span<const float> got = out->executable->output();
            if (points_[i].position != points_[0].position) continue;
            if (!wrong) want_[i].assign(got.begin(), got.end());
            if (!wrong || alike(got, want_[i])) continue;
            wrong->push_back(variant_text(variant) + ": its results are not those of the default variant");
            return std::unique_ptr<Runnable>();
        }
        return out;
    }

    uint32_t repeats() const { return repeats_; }  // the op's number in a step
    // Seconds per op: the mean over positions and widths, weighted so that the default, which is timed first,
    // takes as long at each.
    Result<double> time(Runnable& runnable, uint32_t steps = 0) {
        std::vector<double> seconds;
        for (const Point& point : points_) seconds.push_back(RL_TRY(time_at(point, runnable, steps)));
        const double mean = std::accumulate(seconds.begin(), seconds.end(), 0.0) / double(seconds.size());
        if (scales_.empty())
            for (const double each : seconds) scales_.push_back(mean / each);
        return std::inner_product(seconds.begin(), seconds.end(), scales_.begin(), 0.0) /
               double(seconds.size());
    }

private:
    // A step's tokens before it, and its rows.
    struct Point {
        uint64_t position;
        uint32_t width;
    };

    // The minimum of several steps, or of `steps`, per op.
    Result<double> time_at(const Point& point, Runnable& runnable, uint32_t steps) {
        double least = INFINITY, all = 0.0;
        const TimedStep what = {task_.key, task_.rows, runnable.variant, point.position, point.width};
        for (uint32_t i = 0;
             steps > 0 ? i < steps : i < kLeastSteps || (i < kMostSteps && all < how_.steps_seconds); ++i) {
            const double seconds = RL_TRY(clock_.time(what, [&] { return step(runnable, point); }));
            least = std::min(least, seconds);
            all += seconds;
            if (all > kMostSeconds) break;
        }
        return least / repeats_;
    }
    Status step(Runnable& runnable, const Point& point) {
        const std::span<const int32_t> tokens = std::span(tokens_).first(point.width);
        const SequenceStep rows(tokens, point.position, 1);
        StepParams params = rows;
        const std::vector<float> lookups(alone_->plan.lookup_floats(point.width), 1.0f);
        params.lookups = lookups;
        params.cancel = how_.cancel;
        return runnable.executable->run(params);
    }

    static bool alike(std::span<const float> got, std::span<const float> want) {
        if (got.size() != want.size()) return false;
        double noise = 0.0, signal = 0.0;
        for (size_t i = 0; i < got.size(); ++i) {
            noise += (double(got[i]) - want[i]) * (double(got[i]) - want[i]);
            signal += double(want[i]) * want[i];
        }
        return noise <= kMostNoise * signal;
    }

    // Writes to the caches, since memory that was never written may be cheaper to read than a cache in use.
    Status fill_caches() {
        const std::vector<CacheInfo>& caches = alone_->plan.caches;
        for (int32_t i = 0; size_t(i) < caches.size(); ++i) {
            const CacheInfo& cache = caches[size_t(i)];
            if (cache.is_state()) continue;
            const uint64_t count = std::min(points_[0].position / cache.ratio, cache.capacity);
            const std::vector<std::byte> zeros(count * cache.row_bytes() * cache.kv_heads);
            RL_TRY(caches_->write({i}, 0, count, zeros));
        }
        return {};
    }

    const Task& task_;
    Backend& backend_;
    const TuneOptions& how_;
    TuneClock& clock_;
    Variants base_;
    std::optional<OpAlone> alone_;
    std::string key_;
    uint32_t repeats_ = 1;
    std::vector<Point> points_;   // that steps are timed at, those behind the most tokens first
    std::vector<double> scales_;  // weights of their times
    std::vector<int32_t> tokens_;
    std::unique_ptr<WeightStore> weights_;
    std::unique_ptr<CacheStore> caches_;
    std::vector<std::vector<float>> want_;  // the default's results at each point
};

// The values of a choice besides the first: those below and those above it, the nearest first.
std::array<std::vector<uint32_t>, 2> ways_of(const Choice& choice) {
    std::array<std::vector<uint32_t>, 2> ways;
    for (size_t i = 1; i < choice.values.size(); ++i)
        ways[choice.values[i] > choice.values[0] ? 1 : 0].push_back(choice.values[i]);
    std::sort(ways[0].rbegin(), ways[0].rend());
    std::sort(ways[1].begin(), ways[1].end());
    return ways;
}

TunedKernel untimed(const Task& task) {
    TunedKernel out;
    out.key = task.key;
    out.op = op_text(task.plan->steps[task.step].op, *task.plan);
    out.rows = task.rows;
    out.count = task.count;
    return out;
}

class Tuner {
public:
    Tuner(Backend& backend, TuneClock& clock, const TuneOptions& how)
        : backend_(backend), clock_(clock), how_(how), start_(clock.now()) {}

    // True when the time limit would be passed in so many seconds.
    bool over(double more = 0.0) const {
        return (how_.cancel && how_.cancel->load()) ||
               (how_.seconds > 0.0 && seconds() + more > how_.seconds);
    }
    // Assumes that another task takes as long as the last one.
    bool has_time_for_another() const { return !over(making_ + finishing_); }
    double seconds() const { return clock_.now() - start_; }

    // Empty where there is no time left to finish.
    Result<std::optional<TunedKernel>> tune(const Task& task) {
        TunedKernel out = untimed(task);
        {
            OpBench bench(task, backend_, how_, clock_);
            const double start = seconds();
            RL_TRY(bench.make());
            making_ = finishing_ = seconds() - start;
            if (!RL_TRY(race(task, bench, out))) return std::optional<TunedKernel>();
        }
        if (!out.variant.empty()) {
            std::string wrong =
                RL_TRY(wrong_variant(*task.plan, task.step, task.rows, out.variant, backend_, how_.cancel));
            if (!wrong.empty()) {
                out.wrong.push_back(variant_text(out.variant) + ": " + wrong);
                out.variant.clear();
                out.seconds = out.default_seconds;
            }
        }
        return std::optional(std::move(out));
    }

private:
    // Tries one choice after the other, with the best values so far for the others. False: the time was over.
    Result<bool> race(const Task& task, OpBench& bench, TunedKernel& out) {
        auto by_default = RL_TRY(bench.runnable({}, nullptr));
        if (!by_default) return false;
        out.default_seconds = out.seconds = RL_TRY(bench.time(*by_default));
        finishing_ += kLeastRounds * 2 * kLeastSteps * out.seconds * bench.repeats();
        std::unique_ptr<OpBench::Runnable> best;
        const Op& op = task.plan->steps[task.step].op;
        for (const Choice& choice : backend_.choices_for(op, *task.plan, task.rows))
            for (const std::vector<uint32_t>& way : ways_of(choice))
                for (const uint32_t value : way) {
                    if (over(finishing_)) break;
                    Variant variant = best ? best->variant : Variant();
                    variant[choice.name] = value;
                    const bool faster = RL_TRY(is_faster(bench, variant, best, out));
                    if (how_.nearest && !faster) break;
                }
        if (best) RL_TRY(confirm(bench, *by_default, *best, out));
        return out.tried > 0;
    }

    // Times a variant; if it is faster than the best so far it becomes the best.
    Result<bool> is_faster(OpBench& bench, const Variant& variant, std::unique_ptr<OpBench::Runnable>& best,
                           TunedKernel& out) {
        auto next = RL_TRY(bench.runnable(variant, &out.wrong));
        ++out.tried;
        if (!next) return false;
        const double seconds = RL_TRY(bench.time(*next));
        if (seconds >= out.seconds) return false;
        out.seconds = seconds;
        best = std::move(next);
        return true;
    }

    // Alternates the two, since a machine's speed drifts.
    Status confirm(OpBench& bench, OpBench::Runnable& by_default, OpBench::Runnable& best, TunedKernel& out) {
        out.default_seconds = out.seconds = INFINITY;
        for (uint32_t round = 0; round < kRounds; ++round) {
            out.default_seconds = std::min(out.default_seconds, RL_TRY(bench.time(by_default, kLeastSteps)));
            out.seconds = std::min(out.seconds, RL_TRY(bench.time(best, kLeastSteps)));
            if (round + 1 >= kLeastRounds && over(making_)) break;
        }
        if (out.gain() >= least_gain(out.rows)) {
            out.variant = best.variant;
        } else {
            out.seconds = out.default_seconds;
        }
        return {};
    }

    Backend& backend_;
    TuneClock& clock_;
    const TuneOptions& how_;
    double start_;
    // Seconds to make the op, and seconds still needed to confirm the winner and to compare it with the
    // reference, which takes about as long as making it.
    double making_ = 0.0, finishing_ = 0.0;
};

}  // namespace

std::unique_ptr<TuneClock> steady_clock() {
    return std::make_unique<SteadyClock>();
}

Result<std::string> wrong_variant(const Plan& plan, size_t step, RowClass rows, const Variant& variant,
                                  Backend& backend, const std::atomic<bool>* cancel) {
    TrialOf trial = {kernel_key(plan.steps[step].op, plan), &plan, step, step};
    trial.variants[size_t(rows)] = variant;
    return std::move(RL_TRY(wrong_of(std::span(&trial, 1), backend, cancel))[0]);
}

static Variants known_variants(const Backend& backend, const std::set<Variants::key_type>& known) {
    Variants kept = backend.variants();
    std::erase_if(kept, [&](const auto& one) { return !known.contains(one.first); });
    return kept;
}

// Tunes one round's tasks, until the time is over.
static Status tune_all(std::span<const Task> tasks, Tuner& tuner, Backend& backend, const TuneOptions& how,
                       const std::function<Status(const TunedKernel&)>& found, Tuning& tuning) {
    if (how.planned && !tasks.empty()) {
        std::vector<TunedKernel> all;
        for (const Task& task : tasks) all.push_back(untimed(task));
        RL_TRY(how.planned(all));
    }
    for (const Task& task : tasks) {
        tuning.complete = tuner.has_time_for_another();
        if (!tuning.complete) break;
        Result<std::optional<TunedKernel>> tuned = tuner.tune(task);
        if (!tuned && how.cancel && how.cancel->load()) continue;
        if (!tuned) return tuned.error();
        if (!tuned.value()) continue;
        TunedKernel& kernel = *tuned.value();
        Variants all = backend.variants();
        if (!kernel.variant.empty()) all[{kernel.key, kernel.rows}] = kernel.variant;
        backend.use(std::move(all));
        RL_TRY(found(kernel));
        tuning.kernels.push_back(std::move(kernel));
    }
    return {};
}

// The plans that have all of a model's kernels, for one row and for many. Results are kept for sessions with
// a longer context, too.
static Result<std::vector<Plan>> roomy_plans(const Model& model, Backend& backend,
                                             const EngineOptions& options) {
    EngineOptions roomy = options;
    roomy.context = std::max(roomy.context, std::min(model.config().train_context, OpAlone::kMostPositions));
    std::vector<Plan> plans = RL_TRY(kernel_plans(model, roomy, backend));
    for (Plan& plan : plans) plan.weights = stored_weights(plan.weights, backend);
    return plans;
}

static Result<std::vector<BoundPlan>> lower_all(std::span<const Plan> plans, Backend& backend, bool fuse) {
    std::vector<BoundPlan> all;
    for (const Plan& plan : plans) all.push_back(RL_TRY(lower(plan, backend, fuse)));
    return all;
}

// Ops as they are run, and as one where they could be.
static void add_all(Tasks& tasks, std::span<const BoundPlan> lowered, std::span<const Plan> plans,
                    bool fuse) {
    for (const BoundPlan& bound : lowered) tasks.add(bound.plan);
    for (const Plan& plan : plans)
        if (fuse) tasks.add(plan);
}

static std::string family_of(const Op& op) {
    const std::string_view name = op_name(op);
    if (name.find("expert") != std::string_view::npos) return "experts";
    if (name.starts_with("linear") || name.starts_with("gated")) return "products";
    return std::string(name.starts_with("att") ? "attention" : name);
}

Result<std::vector<KernelChoices>> kernel_choices(const Model& model, Backend& backend,
                                                  const EngineOptions& options, bool prompts) {
    const std::vector<Plan> plans = RL_TRY(roomy_plans(model, backend, options));
    const std::vector<BoundPlan> lowered = RL_TRY(lower_all(plans, backend, options.fuse));
    Tasks tasks(backend, prompts);
    add_all(tasks, lowered, plans, options.fuse);
    const Variants used = backend.variants();
    std::set<Variants::key_type> known;
    std::vector<KernelChoices> out;
    for (const Task& task : std::move(tasks).sorted(known)) {
        const Op& op = task.plan->steps[task.step].op;
        const auto kept = used.find({task.key, task.rows});
        out.push_back({task.key, op_text(op, *task.plan), family_of(op), task.rows, task.count,
                       backend.choices_for(op, *task.plan, task.rows),
                       kept != used.end() ? kept->second : Variant()});
    }
    return out;
}

Result<Tuning> tune(const Model& model, Backend& backend, const EngineOptions& options, TuneClock& clock,
                    const TuneOptions& how, const std::function<Status(const TunedKernel&)>& found) {
    const std::vector<Plan> plans = RL_TRY(roomy_plans(model, backend, options));
    backend.use(known_variants(backend, how.known));
    Tuner tuner(backend, clock, how);
    Tuning tuning;
    std::set<Variants::key_type> known = how.known;
    // When an op is faster decomposed, its parts are tuned as well.
    for (bool again = true; again;) {
        const std::vector<BoundPlan> lowered = RL_TRY(lower_all(plans, backend, options.fuse));
        Tasks tasks(backend, how.prompts);
        add_all(tasks, lowered, plans, options.fuse);
        const std::vector<Task> list = std::move(tasks).sorted(known);
        RL_TRY(tune_all(list, tuner, backend, how, found, tuning));
        again = !list.empty() && tuning.complete;
    }
    tuning.complete = tuning.complete && !tuner.over();
    tuning.seconds = tuner.seconds();
    return tuning;
}

double saved_share(std::span<const TunedKernel> kernels, RowClass rows) {
    double before = 0.0, after = 0.0;
    for (const TunedKernel& kernel : kernels) {
        if (kernel.rows != rows) continue;
        before += double(kernel.count) * kernel.default_seconds;
        after += double(kernel.count) * kernel.seconds;
    }
    return before > 0.0 ? 1.0 - after / before : 0.0;
}

}  // namespace redline
