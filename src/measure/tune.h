// Finds the fastest variants of the kernels that a model uses on a device: each op of its plans is timed by
// itself on made-up weights, larger than the device's caches, and what wins is held to the reference.
#pragma once

#include "engine/engine.h"

#include <set>

namespace redline {

// What is timed: an op, in steps of so many rows, computed so.
struct TimedStep {
    std::string key;  // see kernel_key()
    RowClass rows = RowClass::one;
    Variant variant;
    uint64_t position = 0;  // tokens before
};

// Tests have one of their own, with which nothing depends on the machine.
class TuneClock {
public:
    virtual ~TuneClock() = default;
    virtual double now() = 0;  // seconds since any moment
    // Seconds that one step took.
    virtual Result<double> time(const TimedStep& what, const std::function<Status()>& step) = 0;
};
std::unique_ptr<TuneClock> steady_clock();

struct TunedKernel {
    std::string key, op;  // the latter for people
    RowClass rows = RowClass::one;
    uint64_t count = 0;                           // in a step of the model
    double default_seconds = 0.0, seconds = 0.0;  // of one
    Variant variant;                              // empty: the default is the best
    uint32_t tried = 0;                           // variants beside the default
    std::vector<std::string> wrong;               // of these, what they computed
    bool quick = false;                           // timed in a hurry, or not at all yet: see quick_tune.h
    double gain() const { return seconds > 0.0 ? default_seconds / seconds - 1.0 : 0.0; }
};

struct TuneOptions {
    double seconds = 0.0;                       // at most, about; 0: as long as it takes
    bool prompts = true;                        // steps of many rows, too
    uint64_t copy_bytes = uint64_t(512) << 20;  // of weights or caches that an op reads in turn
    uint64_t elements = uint64_t(1) << 27;      // of a matrix, at most
    double steps_seconds = 0.02;                // of the steps that a variant is timed in
    bool nearest = false;                       // a choice's values from its first on, while they are faster
    const std::atomic<bool>* cancel = nullptr;  // what was found until then is kept
    // What is not timed: the backend goes on with what it uses for them.
    std::set<Variants::key_type> known = {};
    // Told of what will be timed, before it is.
    std::function<Status(std::span<const TunedKernel>)> planned = {};
};

struct Tuning {
    std::vector<TunedKernel> kernels;
    bool complete = true;  // there was time for all
    double seconds = 0.0;
};

// Those that decide most of a step come first. `found` is called as soon as one is done. The backend uses
// what was found from then on, and of what it used before only what is known.
Result<Tuning> tune(const Model& model, Backend& backend, const EngineOptions& options, TuneClock& clock,
                    const TuneOptions& how, const std::function<Status(const TunedKernel&)>& found);

// Whether a step of a lowered plan is computed within the reference's bound so: what is wrong, or nothing.
Result<std::string> wrong_variant(const Plan& plan, size_t step, RowClass rows, const Variant& variant,
                                  Backend& backend, const std::atomic<bool>* cancel = nullptr);

// How much less of a step's time the tuned ops of a class take, all of them together: 0.1 is a tenth.
double saved_share(std::span<const TunedKernel> kernels, RowClass rows);

// What is kept of them in a file of the folder, by device_key(), kernel_key() and class of rows. What was
// timed quickly leaves what was not as it is.
Status keep_tuned(const std::string& folder, const Backend& backend, std::span<const TunedKernel> kernels);
// Empty where nothing is known; `problem`: why a file is ignored.
Variants tuned_variants(const std::string& folder, const Backend& backend, std::string* problem = nullptr);
// Of which anything is kept, if only that the default is the best.
std::set<Variants::key_type> tuned_keys(const std::string& folder, const Backend& backend, bool quick_ones);

}  // namespace redline
