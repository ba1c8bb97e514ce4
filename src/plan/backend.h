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
    bool on_cpu = false;   // the driver of a GPU interface that computes on the CPU
    uint32_t wave = 1;     // lanes per subgroup the kernels are built for
    uint32_t threads = 0;  // CPU: threads in the team
    // Name, driver and kinds of kernels: measurements and verdicts stay valid while this is the same.
    std::string identity = {};
};

// The rounding of an operand before it is multiplied, beyond that of 32-bit floats: an element x by up to
// `unit` times |x| and `block` times the largest of the `group` elements around it.
struct Rounding {
    double unit = 0.0;
    double block = 0.0;
    uint32_t group = 32;
    auto operator<=>(const Rounding&) const = default;
};
constexpr Rounding kToHalf{0x1p-11}, kToBfloat{0x1p-8};
// Rounding of a row to halves after scaling its largest element to 2^exponent or more. Halves below 2^-14
// lose bits.
constexpr Rounding to_half(int exponent) {
    const double scale = exponent < 0 ? 1.0 / double(1 << -exponent) : double(1 << exponent);
    return {kToHalf.unit, 0x1p-25 / scale, UINT32_MAX};
}
// Rounding to 127 levels: half of a step, whose size and its reciprocal are rounded floats.
constexpr Rounding to_int8(uint32_t group) {
    return {0.0, (1.0 + 1e-4) / 254, group};
}

// The roundings that a kernel's results are held to; src/reference computes the bounds.
struct Precision {
    Rounding weights = {};            // of matrices; for an attention: of the softmax weights
    Rounding activations = {};        // for an attention: queries
    Rounding keys = {}, values = {};  // as read from the cache
    auto operator<=>(const Precision&) const = default;
};
// The looser rounding of two kernels, for each operand.
Precision loosest(const Precision& a, const Precision& b);

// One op matched to one device. Holds no addresses yet.
class Kernel {
public:
    virtual ~Kernel() = default;
    // The precision in a step in which the op has so many rows.
    virtual Precision precision(uint64_t /* rows */) const { return {}; }
    // In a step of one row: whether the kernel can read its operand's row as int8, and whether it can write
    // the row of its first written slot as int8, too. The plan pairs them: Step::takes and Step::leaves.
    virtual bool takes_int8() const { return false; }
    virtual bool leaves_int8() const { return false; }
    // The same of the rows of a step of few, in the form that the backend's products of few rows take.
    virtual bool takes_few() const { return false; }
    virtual bool leaves_few() const { return false; }
    // True for attention that in a mixed step reads keys once for a tile of a sequence's rows.
    virtual bool mixes() const { return false; }
    // The choices that a kernel offers for steps of this class. A plan for one row has RowClass::one.
    virtual Choices choices(RowClass) const { return {}; }
    // Called before the kernel is used. Values that are not among its choices are ignored.
    virtual void take(RowClass rows, const Variant& variant) {
        taken_[size_t(rows)] = allowed(variant, choices(rows));
    }
    const TakenVariants& taken() const { return taken_; }
    // True when this kernel is to compute the op; false: the kernels of its decomposition.
    virtual bool wanted() const { return true; }

protected:
    // The value taken for a choice; `first` when none was.
    uint32_t chosen(RowClass rows, std::string_view name, uint32_t first) const {
        const Variant& taken = taken_[size_t(rows)];
        const auto found = taken.empty() ? taken.end() : taken.find(std::string(name));
        return found == taken.end() ? first : found->second;
    }

private:
    TakenVariants taken_;
};

// A plan whose every op has a kernel; made by lower().
struct BoundPlan {
    Plan plan;  // steps in the order of `kernels`
    std::vector<std::unique_ptr<Kernel>> kernels;
    bool picks_best = true;  // false: the backend was told that it picks wrongly
};

// True where a mixed step costs no more than one of as many rows of one sequence.
bool mixes(const BoundPlan& bound);

// Keys beside kernel_key(): one for the picking of Executable::best(), one for a row that an op writes as
// int8 for another.
constexpr const char* kBestKey = "the best outputs";
std::string handed_key(const Op& from, const Op& to, const Plan& plan);
// The keys of verdicts on a step's kernel, and on the row that one hands to another: a variant of a kernel
// may be right where another is wrong (see verdict_key()).
std::string step_verdict(const BoundPlan& bound, size_t step);
std::string handed_verdict(const BoundPlan& bound, size_t from, size_t to);

// Plans of which one runs at a time; each one's output has been read when the next begins. They share the
// memory of slots and scratch.
using PlanGroup = std::vector<BoundPlan>;

struct TraceStep {
    const Step* step = nullptr;
    double seconds = 0.0;
    Cost cost;
    // The slots that the step wrote, (rows, width) each; valid during the callback.
    std::vector<std::span<const float>> written;
};
using TraceSink = std::function<void(const TraceStep&)>;
// The rows of a slot in a step of this shape.
uint64_t rows_of(const Plan& plan, Slot slot, const StepShape& shape);
uint64_t most_written_bytes(const Plan& plan, const StepShape& shape);

// Measured operations per second of a device's matrix units on factors that need not be fetched; a
// multiply-add counts as two. 0: the device has no such units.
struct MatrixPeak {
    double halfs = 0.0;
    double bytes = 0.0;
    std::string_view instruction = {};  // the instruction that was timed; another may be faster
};

class WeightStore {
public:
    virtual ~WeightStore() = default;
    virtual uint64_t bytes() const = 0;
};

// All caches of a plan.
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
    // (rows of the last run, width of Plan::hidden); empty where the plan leaves none.
    virtual std::span<const float> hidden() const { return {}; }
    // The number of largest outputs that the device can pick of each row; 0: none.
    virtual uint32_t most_best() const { return 0; }
    // The largest outputs of the last run that asked for them, row after row of as many, each in the order of
    // comes_first(); there may be more than were asked for.
    virtual std::span<const Scored> best() const { return {}; }
    // See mixes() of plans.
    virtual bool mixes() const { return false; }
};

enum class Record : uint8_t { replay, direct };

// Memory that a model takes on a device, in bytes.
struct MemoryNeed {
    uint64_t weights = 0;
    uint64_t cache = 0;
    uint64_t scratch = 0;  // activations, scratch that kernels share, inputs and results of steps
    uint64_t staging = 0;  // only while weights are loaded, before cache and scratch are made

    uint64_t total() const { return weights + std::max(cache + scratch, staging); }
};

using Progress = std::function<void(uint64_t done, uint64_t total)>;

// Its virtual functions are what every backend has; plan/backend_parts.h has the parts of some.
class Backend {
public:
    virtual ~Backend() = default;
    virtual const DeviceInfo& device() const = 0;
    // True when the device was lost: all that was made on it has to go, and the backend has to be opened
    // again.
    virtual bool lost() const { return false; }
    // True when matrices in this format have kernels; those of F16 always do: see plan/stored_weights.h.
    virtual bool has_kernels(const Format& format) const = 0;
    // Places the weights in the formats of stored_weights().
    Result<std::unique_ptr<WeightStore>> load(std::span<const WeightInfo> weights, ByteSource& source,
                                              const Progress& progress);
    virtual Result<std::unique_ptr<CacheStore>> make_caches(std::span<const CacheInfo> caches) = 0;
    // The memory that load(), make_caches() and record() would allocate, computed by the same code without
    // allocating. `weights` are stored_weights().
    virtual Result<MemoryNeed> measure(std::span<const WeightInfo> weights, std::span<const CacheInfo> caches,
                                       std::vector<PlanGroup> groups) = 0;
    // Bytes allocated on the device now.
    virtual uint64_t allocated() const = 0;
    // Null: the op is to be decomposed. Null for a core op is an error of lower(). The kernel has the variant
    // that is in use; where that is refused it has the default, and where that is, too, another one.
    std::unique_ptr<Kernel> kernel_for(const Op& op, const Plan& plan);
    // The choices of a kernel that the op has, or would have with another variant.
    Choices choices_for(const Op& op, const Plan& plan, RowClass rows);
    // Sets the variants of kernels that differ from their defaults from now on.
    void use(Variants variants) { variants_ = std::move(variants); }
    const Variants& variants() const { return variants_; }
    // Kernels with these keys of verdicts (or "the best outputs of WIDTH") are not offered any more, and rows
    // with these are not written as int8: they were found to be computed wrongly.
    void refuse(std::set<std::string> keys) { refused_ = std::move(keys); }
    const std::set<std::string>& refused() const { return refused_; }
    // True of a kernel whose default is refused.
    bool refuses(const Op& op, const Plan& plan) const {
        return !refused_.empty() && refused_.contains(kernel_key(op, plan));
    }
    // True when steps that do not depend on each other run at the same time.
    bool overlaps() const;
    // A hash of the kernels' code that the build has embedded; 0: they are compiled into this program.
    uint64_t kernels_hash() const;
    Result<std::unique_ptr<Executable>> record(BoundPlan plan, WeightStore& weights, CacheStore& cache,
                                               Record mode);
    // Records several plans; returns one executable for each.
    virtual Result<std::vector<std::unique_ptr<Executable>>> record_group(PlanGroup plans,
                                                                          WeightStore& weights,
                                                                          CacheStore& cache, Record mode) = 0;
    // Compiles, in threads, all pipelines that steps of so many rows need and that are not ready yet.
    Status prepare(std::span<Executable* const> executables, std::span<const uint32_t> rows);
    // True when refill() works.
    bool refills() const;
    // Overwrites some weights of a store with others of the same shapes and formats: the content of
    // weights[i] goes to number at[i]. Steps that use none of these may run meanwhile, in another thread.
    Status refill(WeightStore& store, std::span<const uint32_t> at, std::span<const WeightInfo> weights,
                  ByteSource& source);
    // Bytes per second of plain reading with this device's settings: the peak that shares refer to. Measured
    // on first use; takes about a second.
    virtual double measure_read_bandwidth() = 0;
    // Measures the peak of matrix units. Empty: this backend does not measure it. An error when the results
    // are wrong or the measurement is not possible.
    Result<std::optional<MatrixPeak>> measure_matrix_peak();
    // Seconds of the longest single submission to the device since the last call; 0 where work is not
    // submitted.
    double take_longest_submission();
    // True when the device is kept busy between the parts of a step while it waits for the CPU, because its
    // clocks would fall.
    bool kept_awake() const;
    // CPU: the fewest threads that computed in any step so far, since others lost their processors to other
    // programs. 0: all of them computed.
    uint32_t fewest_threads() const;

private:
    virtual std::unique_ptr<Kernel> make_kernel(const Op& op, const Plan& plan) = 0;
    // `weights` are in formats that this backend has kernels for.
    virtual Result<std::unique_ptr<WeightStore>> load_stored(std::span<const WeightInfo> weights,
                                                             ByteSource& source,
                                                             const Progress& progress) = 0;
    Status refill_stored(WeightStore& store, std::span<const uint32_t> at,
                         std::span<const WeightInfo> weights, ByteSource& source);

    std::set<std::string> refused_;
    Variants variants_;
};

struct BackendOptions {
    uint32_t threads = 0;           // CPU: 0 means one per physical core; beside a GPU one is left free
    std::string level = {};         // highest level of kernels to use; empty: the device's best
    std::string device = {};        // which of several: a number, or part of a name; empty: the best
    std::string cache_folder = {};  // keeps compiled kernels between runs; empty: none are kept
    uint64_t memory = 0;            // bytes to plan with; 0: all that are there
    bool beside_gpu = false;  // CPU: a GPU computes a part of each step, and its driver needs a processor
    bool keep_awake = true;   // a GPU: where that helps, see Backend::kept_awake()
    // For tests. Memory has guards (plan/guard.h), and all of its bits are ones at first; a step that wrote
    // to a guard ends with an error.
    bool guarded = false;
    // For tests. The most work-groups along x of kernels that stride; 0: the best number.
    uint32_t most_groups = 0;
};

// A device that a backend finds, and facts about it.
struct DeviceListing {
    struct Fact {
        std::string name;
        std::variant<std::string, uint64_t, bool> value;
    };
    std::string id;         // as --device takes it: "cpu", "vulkan:1"
    std::string name;       // "AMD Radeon 8060S (RADV)"
    bool preferred = true;  // false: a driver that computes on the CPU, used only when asked for
    std::string missing;    // the feature whose absence makes it unusable; empty when it is usable
    std::vector<Fact> facts;
};

struct BackendEntry {
    std::string_view name;
    int preference;  // higher first
    Result<std::unique_ptr<Backend>> (*open)(const BackendOptions& options);
    // An error says why there are no devices.
    Result<std::vector<DeviceListing>> (*list)();
};

// The build writes both functions, into the library rl_backends.
std::span<const BackendEntry* const> all_backends();
// The parts left out of the backend when this program was built, and what that costs; empty when nothing was.
std::string_view build_lacks(std::string_view backend);

// Matches each op to a kernel, decomposing what the backend refuses; `fuse` false decomposes everything it
// can.
Result<BoundPlan> lower(const Plan& plan, Backend& backend, bool fuse = true);

}  // namespace redline
