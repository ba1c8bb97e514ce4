// Finds the fastest variants of the kernels that a model uses on a device: each op of its plans is timed by
// itself on made-up weights, larger than the device's caches, and what wins is held to the reference.
#pragma once

#include "run/engine.h"

namespace redline {

// What is timed: an op, in steps of so many rows, computed so.
struct TimedStep {
    std::string key;  // see kernel_key()
    RowClass rows = RowClass::one;
    Variant variant;
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
    double gain() const { return seconds > 0.0 ? default_seconds / seconds - 1.0 : 0.0; }
};

struct TuneOptions {
    double seconds = 0.0;                       // at most, about; 0: as long as it takes
    bool prompts = true;                        // steps of many rows, too
    uint64_t copy_bytes = uint64_t(512) << 20;  // of weights or caches that an op reads in turn
    const std::atomic<bool>* cancel = nullptr;  // what was found until then is kept
};

struct Tuning {
    std::vector<TunedKernel> kernels;
    bool complete = true;  // there was time for all
    double seconds = 0.0;
};

// Those that decide most of a step come first. `found` is called as soon as one is done. The backend uses
// what was found from then on, and nothing that it used before.
Result<Tuning> tune(const Model& model, Backend& backend, const EngineOptions& options, TuneClock& clock,
                    const TuneOptions& how, const std::function<Status(const TunedKernel&)>& found);

// Whether a step of a lowered plan is computed within the reference's bound so: what is wrong, or nothing.
Result<std::string> wrong_variant(const Plan& plan, size_t step, RowClass rows, const Variant& variant,
                                  Backend& backend, const std::atomic<bool>* cancel = nullptr);

// How much less of a step's time the tuned ops of a class take, all of them together: 0.1 is a tenth.
double saved_share(std::span<const TunedKernel> kernels, RowClass rows);

// What is kept of it in a file of the folder, by device_key(), kernel_key() and class of rows.
Status keep_tuned(const std::string& folder, const Backend& backend, const TunedKernel& kernel);
// Empty where nothing is known; `problem`: why a file is ignored.
Variants tuned_variants(const std::string& folder, const Backend& backend, std::string* problem = nullptr);

}  // namespace redline
