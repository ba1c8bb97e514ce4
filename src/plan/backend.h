// The boundary between what a model is and what a device does. A backend offers kernels for ops; asking for
// one is the support test. Lifetimes nest: Backend, then WeightStore and CacheStore, then Executable.
#pragma once

#include "base/scored.h"
#include "memory/budget.h"
#include "plan/step_params.h"
#include "plan/variants.h"

#include <algorithm>
#include <array>
#include <functional>
#include <memory>
#include <optional>
#include <set>

namespace redline {

struct DeviceInfo {
    std::string name;      // "AMD Ryzen 7 7840U"
    std::string detail;    // "avx512, 8 threads"
    bool unified = false;  // host and device share the same memory
    MemoryBudget memory;   // what may be planned with, measured at open
    bool on_cpu = false;   // a driver of a GPU's interface that computes on the CPU
    uint32_t wave = 1;     // lanes per subgroup the kernels are built for
    uint32_t threads = 0;  // CPU: of the team
    // What is measured or found on it holds as long as this is the same: name, driver, kinds of kernels.
    std::string identity = {};
};

// How far a kernel rounds an operand before it multiplies, beyond 32-bit floats: an element x by up to `unit`
// times |x| and `block` times the largest of the `group` elements around it.
struct Rounding {
    double unit = 0.0;
    double block = 0.0;
    uint32_t group = 32;
    auto operator<=>(const Rounding&) const = default;
};
constexpr Rounding kToHalf{0x1p-11}, kToBfloat{0x1p-8};
// Halfs below 2^-14 lose bits: of a row whose largest element is brought to 2^exponent or more.
constexpr Rounding to_half(int exponent) {
    return {kToHalf.unit, 0x1p-25 / double(1 << exponent), UINT32_MAX};
}
// Half of a step of 127 levels, whose size is a float, and so is what divides by it.
constexpr Rounding to_int8(uint32_t group) {
    return {0.0, (1.0 + 1e-4) / 254, group};
}

// What a kernel's results are held to; src/reference computes the bounds.
struct Precision {
    Rounding weights = {};            // of matrices; of an attention: of the softmax
    Rounding activations = {};        // of an attention: queries
    Rounding keys = {}, values = {};  // as read from the cache
    auto operator<=>(const Precision&) const = default;
};
// Of two kernels, for each operand the looser.
Precision loosest(const Precision& a, const Precision& b);

// One op matched to one device. Holds no addresses yet.
class Kernel {
public:
    virtual ~Kernel() = default;
    // In a step in which the op has so many rows.
    virtual Precision precision(uint64_t /* rows */) const { return {}; }
    // In a step of one row: whether it can take the row of its operand in int8, and whether it can leave that
    // of the first slot that it writes so. What comes of it is the plan's: Step::takes and Step::leaves.
    virtual bool takes_int8() const { return false; }
    virtual bool leaves_int8() const { return false; }
    // What it may do otherwise in steps of this class. Those of a plan for one row are RowClass::one.
    virtual Choices choices(RowClass) const { return {}; }
    // Before anything is made of the kernel. What is not among its choices is left out.
    virtual void take(RowClass rows, const Variant& variant) {
        taken_[size_t(rows)] = allowed(variant, choices(rows));
    }
    // Whether the op is computed by it, and not by the kernels of its decomposition.
    virtual bool wanted() const { return true; }

protected:
    // The value of a choice: `first` unless another was taken.
    uint32_t chosen(RowClass rows, std::string_view name, uint32_t first) const {
        const Variant& taken = taken_[size_t(rows)];
        const auto found = taken.empty() ? taken.end() : taken.find(std::string(name));
        return found == taken.end() ? first : found->second;
    }

private:
    std::array<Variant, std::size(kRowClassList)> taken_;
};

// A plan whose every op has a kernel; made by lower().
struct BoundPlan {
    Plan plan;  // steps in the order of `kernels`
    std::vector<std::unique_ptr<Kernel>> kernels;
    bool picks_best = true;  // unless the backend was told that it does so wrongly
};

// In place of a kernel_key(): what Executable::best() is picked by, and a row that one op leaves in int8 for
// another.
constexpr const char* kBestKey = "the best outputs";
std::string int8_key(const Op& from, const Op& to, const Plan& plan);

// Plans of which one runs at a time: what each leaves in its output has been read when the next begins. They
// share the memory that steps work in.
using PlanGroup = std::vector<BoundPlan>;

struct TraceStep {
    const Step* step = nullptr;
    double seconds = 0.0;
    Cost cost;
    // The slots that the step wrote, (rows, width) each; valid during the callback.
    std::vector<std::span<const float>> written;
};
using TraceSink = std::function<void(const TraceStep&)>;
// Of a slot, in a step of this shape; and the bytes of all slots that the step writes that writes most.
uint64_t rows_of(const Plan& plan, Slot slot, const StepShape& shape);
uint64_t most_written_bytes(const Plan& plan, const StepShape& shape);

// Operations per second of a device's matrix units on factors that need not be fetched; a multiply-add is
// two. 0: the device has no such units.
struct MatrixPeak {
    double halfs = 0.0;
    double bytes = 0.0;
    std::string_view instruction = {};  // that did it: another may do more
};

class WeightStore {
public:
    virtual ~WeightStore() = default;
    virtual uint64_t bytes() const = 0;
};

// The caches of a plan, all of them.
class CacheStore {
public:
    virtual ~CacheStore() = default;
    virtual uint64_t bytes() const = 0;
    // Rows [first, first + count) of a cache, as stored: per kv head their keys, then their values. Each is
    // (count, head_dim), with q8_0 all codes and then all scales. The span has count * row_bytes * kv_heads;
    // whoever wants to be interrupted asks for a few megabytes at a time.
    virtual Status read(Cache cache, uint64_t first, uint64_t count, std::span<std::byte> out) = 0;
    virtual Status write(Cache cache, uint64_t first, uint64_t count, std::span<const std::byte> in) = 0;
};

class Executable {
public:
    virtual ~Executable() = default;
    // Returns when output() can be read.
    virtual Status run(const StepParams& params) = 0;
    virtual Status run_traced(const StepParams& params, const TraceSink& sink) = 0;
    // (outputs of the last run, width of the plan's output slot).
    virtual std::span<const float> output() const = 0;
    // How many of the largest outputs of a step of one row the device can pick; 0: none.
    virtual uint32_t most_best() const { return 0; }
    // Of the last run that wanted them, in the order of comes_first(); more than were wanted, perhaps.
    virtual std::span<const Scored> best() const { return {}; }
};

enum class Record : uint8_t { replay, direct };

// What a model takes on a device, in bytes.
struct MemoryNeed {
    uint64_t weights = 0;
    uint64_t cache = 0;
    uint64_t scratch = 0;  // activations, what kernels share, inputs and results of steps
    uint64_t staging = 0;  // only while weights are loaded, before the other two

    uint64_t total() const { return weights + std::max(cache + scratch, staging); }
};

using Progress = std::function<void(uint64_t done, uint64_t total)>;

class Backend {
public:
    virtual ~Backend() = default;
    virtual const DeviceInfo& device() const = 0;
    // Nothing works on it any more: to go on, all that was made on it has to go, and it has to be opened
    // again.
    virtual bool lost() const { return false; }
    // For matrices in this format, those of F16 being the least: see plan/stored_weights.h.
    virtual bool has_kernels(const Format& format) const = 0;
    // Places the weights as stored_weights() has them.
    Result<std::unique_ptr<WeightStore>> load(std::span<const WeightInfo> weights, ByteSource& source,
                                              const Progress& progress);
    virtual Result<std::unique_ptr<CacheStore>> make_caches(std::span<const CacheInfo> caches) = 0;
    // What load(), make_caches() and record() would allocate, by the code that does it, with nothing
    // allocated. `weights` are stored_weights().
    virtual Result<MemoryNeed> measure(std::span<const WeightInfo> weights, std::span<const CacheInfo> caches,
                                       std::vector<PlanGroup> groups) = 0;
    // Bytes allocated on the device now.
    virtual uint64_t allocated() const = 0;
    // Null: please decompose. Null for a core op is an error of lower().
    std::unique_ptr<Kernel> kernel_for(const Op& op, const Plan& plan);
    // The choices of a kernel that the op has, or would have if its variant were another.
    Choices choices_for(const Op& op, const Plan& plan, RowClass rows);
    // How kernels are computed from now on, where it is not the way that they take by themselves.
    void use(Variants variants) { variants_ = std::move(variants); }
    const Variants& variants() const { return variants_; }
    // Kernels of these ops, by kernel_key() (or "the best outputs of WIDTH"), are not offered any more, and
    // rows in int8, by int8_key(), are not left: they were found to be computed wrongly.
    void refuse(std::set<std::string> keys) { refused_ = std::move(keys); }
    const std::set<std::string>& refused() const { return refused_; }
    bool refuses(const Op& op, const Plan& plan) const {
        return !refused_.empty() && refused_.contains(kernel_key(op, plan));
    }
    // Whether steps that do not wait for each other run at the same time.
    virtual bool overlaps() const { return false; }
    // Of the kernels' code, as the build has embedded it; 0: they are this program's own.
    virtual uint64_t kernels_hash() const { return 0; }
    Result<std::unique_ptr<Executable>> record(BoundPlan plan, WeightStore& weights, CacheStore& cache,
                                               Record mode);
    // One for each plan.
    virtual Result<std::vector<std::unique_ptr<Executable>>> record_group(PlanGroup plans,
                                                                          WeightStore& weights,
                                                                          CacheStore& cache, Record mode) = 0;
    // Makes ready, all at once, what steps of so many rows run and is not ready yet: pipelines are compiled,
    // in threads.
    virtual Status prepare(std::span<Executable* const> /* executables */,
                           std::span<const uint32_t> /* rows */) {
        return {};
    }
    // Whether refill() is to be had.
    virtual bool refills() const { return false; }
    // Other content for some weights of a store, of their shapes and formats: that of weights[i] goes to
    // number at[i]. Steps that use none of these may run meanwhile, in another thread.
    Status refill(WeightStore& store, std::span<const uint32_t> at, std::span<const WeightInfo> weights,
                  ByteSource& source);
    // Bytes per second of plain reading with this device's settings: the peak that shares are given of.
    // Measured on first use; takes about a second.
    virtual double measure_read_bandwidth() = 0;
    // The same for arithmetic. None: this backend does not measure it. An error when its results are wrong,
    // or it cannot be done.
    virtual Result<std::optional<MatrixPeak>> measure_matrix_peak() { return std::optional<MatrixPeak>(); }
    // Seconds that the longest piece of work handed to the device at once took, since the last call; 0 where
    // there is no such thing.
    virtual double take_longest_submission() { return 0.0; }
    // Whether it is kept busy between the parts of a step while it waits for the CPU, since its clocks fall
    // otherwise.
    virtual bool kept_awake() const { return false; }
    // The CPU: the fewest of its threads that have computed so far, where others lost their processors to
    // other programs. 0: all of them computed.
    virtual uint32_t fewest_threads() const { return 0; }

private:
    virtual std::unique_ptr<Kernel> make_kernel(const Op& op, const Plan& plan) = 0;
    // `weights` are in formats that it has kernels for.
    virtual Result<std::unique_ptr<WeightStore>> load_stored(std::span<const WeightInfo> weights,
                                                             ByteSource& source,
                                                             const Progress& progress) = 0;
    virtual Status refill_stored(WeightStore& /* store */, std::span<const uint32_t> /* at */,
                                 std::span<const WeightInfo> /* weights */, ByteSource& /* source */) {
        return error("weights of {} keep their content", device().name);
    }

    std::set<std::string> refused_;
    Variants variants_;
};

struct BackendOptions {
    uint32_t threads = 0;           // CPU: 0 means one per physical core; beside a GPU one is left free
    std::string level = {};         // highest level of kernels to use; empty means what the device is good at
    std::string device = {};        // of several: its number, or part of its name; empty means the best
    std::string cache_folder = {};  // for compiled kernels between runs; empty: none are kept
    uint64_t memory = 0;            // bytes to plan with; 0: as many as there are
    bool beside_gpu = false;        // CPU: a GPU computes a part of each step, and its driver takes time
    bool keep_awake = true;         // a GPU: where that helps, see Backend::kept_awake()
    // For tests. Memory has guards (plan/guard.h) and is all ones at first; a step that wrote to them ends
    // with an error.
    bool guarded = false;
    // For tests. The most work-groups along x of kernels that stride; 0: as many as is best.
    uint32_t most_groups = 0;
};

// A device that a backend finds, and what there is to know about it.
struct DeviceListing {
    struct Fact {
        std::string name;
        std::variant<std::string, uint64_t, bool> value;
    };
    std::string id;         // as --device takes it: "cpu", "vulkan:1"
    std::string name;       // "AMD Radeon 8060S (RADV)"
    bool preferred = true;  // false: a driver that computes on the CPU, taken only when asked for
    std::string missing;    // what it lacks to be used; empty when it can be
    std::vector<Fact> facts;
};

struct BackendEntry {
    std::string_view name;
    int preference;  // higher first
    Result<std::unique_ptr<Backend>> (*open)(const BackendOptions& options);
    // An error says why there are none.
    Result<std::vector<DeviceListing>> (*list)();
};

// Both are written by the build, into the library rl_backends.
std::span<const BackendEntry* const> all_backends();
// Left out of the backend when this program was built, and what that costs; empty when nothing was.
std::string_view build_lacks(std::string_view backend);

// Matches each op to a kernel, decomposing what the backend refuses; `fuse` false decomposes everything it
// can.
Result<BoundPlan> lower(const Plan& plan, Backend& backend, bool fuse = true);

}  // namespace redline
