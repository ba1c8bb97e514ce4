// Finds the fastest variants of the kernels that a model uses on a device: each op of its plans is timed
// alone on made-up weights, larger than the device's caches, and the winner is compared with the reference.
#pragma once

#include "engine/engine.h"

#include <set>

namespace redline {

// A step to time: an op with so many rows in a variant.
struct TimedStep {
    std::string key;  // see kernel_key()
    RowClass rows = RowClass::one;
    Variant variant;
    uint64_t position = 0;  // tokens before it
    uint32_t width = 1;     // its number of rows
};

// Tests replace the clock, so that nothing depends on the machine.
class TuneClock {
public:
    virtual ~TuneClock() = default;
    virtual double now() = 0;  // seconds since any moment
    // Runs a step; returns its seconds.
    virtual Result<double> time(const TimedStep& what, const std::function<Status()>& step) = 0;
};
std::unique_ptr<TuneClock> steady_clock();

struct TunedKernel {
    std::string key, op;  // `op` is for people
    RowClass rows = RowClass::one;
    uint64_t count = 0;                           // in a step of the model
    double default_seconds = 0.0, seconds = 0.0;  // of one op
    Variant variant;                              // empty: the default is the best
    uint32_t tried = 0;                           // number of variants, without the default
    std::vector<std::string> wrong;               // the wrong variants, with their results
    bool quick = false;                           // timed in a hurry, or not yet: see quick_tune.h
    double gain() const { return seconds > 0.0 ? default_seconds / seconds - 1.0 : 0.0; }
};

struct TuneOptions {
    double seconds = 0.0;                       // an approximate limit; 0: none
    bool prompts = true;                        // includes steps of many rows
    uint64_t copy_bytes = uint64_t(512) << 20;  // of weights or caches that an op cycles through
    uint64_t elements = uint64_t(1) << 27;      // most elements of a matrix
    double steps_seconds = 0.02;                // total time of the steps that time a variant
    bool nearest = false;  // tries a choice's values from its first on, while they get faster
    const std::atomic<bool>* cancel = nullptr;  // keeps the results until then
    // Kernels that are not timed: the backend keeps using its current variants for them.
    std::set<Variants::key_type> known = {};
    // Called with all kernels to time, before the first.
    std::function<Status(std::span<const TunedKernel>)> planned = {};
};

struct Tuning {
    std::vector<TunedKernel> kernels;
    bool complete = true;  // there was time for all
    double seconds = 0.0;
};

// Tunes the ops that decide most of a step first. `found` is called after each. From then on the backend uses
// the results, and of its earlier variants only those in how.known.
Result<Tuning> tune(const Model& model, Backend& backend, const EngineOptions& options, TuneClock& clock,
                    const TuneOptions& how, const std::function<Status(const TunedKernel&)>& found);

// A kernel that has choices, in steps of a class of rows.
struct KernelChoices {
    std::string key, op;  // `op` is for people
    std::string family;   // "products", "experts", "attention", or the name of another op
    RowClass rows = RowClass::one;
    uint64_t count = 0;  // in a step of the model
    Choices choices;
    Variant variant;  // that the backend uses; empty: the defaults
};
// Those of the model's plans on a device, in the order in which tune() times them. Nothing is measured.
Result<std::vector<KernelChoices>> kernel_choices(const Model& model, Backend& backend,
                                                  const EngineOptions& options, bool prompts);

// Compares a step of a lowered plan in a variant with the reference: says what is wrong, or nothing.
Result<std::string> wrong_variant(const Plan& plan, size_t step, RowClass rows, const Variant& variant,
                                  Backend& backend, const std::atomic<bool>* cancel = nullptr);

// The share of a step's time that the tuned ops of a class save together: 0.1 is a tenth.
double saved_share(std::span<const TunedKernel> kernels, RowClass rows);

// Keeps results in a file of the folder, by device_key(), kernel_key() and row class. Quick results do not
// replace full ones.
Status keep_tuned(const std::string& folder, const Backend& backend, std::span<const TunedKernel> kernels);
// The variants in the file; empty where nothing is known. `problem`: why a file is ignored.
Variants tuned_variants(const std::string& folder, const Backend& backend, std::string* problem = nullptr);
// The times in the file, from full tuning and from quick; 0: there was none left to measure.
struct KeptTimes {
    double default_seconds = 0.0, seconds = 0.0;  // of one op, in the variant that was found
    bool quick = false;
};
std::map<Variants::key_type, KeptTimes> tuned_times(const std::string& folder, const Backend& backend);
// The keys of all kernels in the file, including those whose default is the best.
std::set<Variants::key_type> tuned_keys(const std::string& folder, const Backend& backend, bool quick_ones);

}  // namespace redline
