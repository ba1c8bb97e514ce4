// Vulkan devices: what each reports, which one is taken and why, and the opened one.
#pragma once

#include "pace.h"

#include "plan/backend.h"

#include <atomic>
#include <memory>
#include <mutex>
#include <optional>

namespace redline::vulkan {

struct MatrixShape {
    uint32_t m, n, k;
    VkComponentTypeKHR a, b, c, result;
};

// A matrix that a work-group of so many invocations holds has multiples of these as dimensions.
struct GroupMatrix {
    uint32_t m, n, k;
    VkComponentTypeKHR factors;  // sums are f32
    uint32_t threads;
};

// Which elements of matrices an invocation holds, as the device said it: see fragments.h. Columns of a factor
// are dealt out to `owners` invocations, which have the same ones of the weights' factor and of the tokens'.
// An invocation's first row, and its first token, is invocation >> place_shift & place_mask, its owner's
// number invocation >> owner_shift & (owners - 1).
struct Fragments {
    struct Lines {
        uint32_t each, step;  // rows or tokens of an invocation, so far apart
        uint32_t bits;        // of an element's number, which say the row or token; the others say the column
    };
    MatrixShape shape;
    uint32_t owners, owner_shift, place_shift, place_mask;
    Lines rows, tokens;
    // True where no two invocations of a subgroup hold the same elements: none decodes what another does,
    // too.
    bool apart(uint32_t subgroup) const { return owners * (place_mask + 1) == subgroup; }
};

struct Heap {
    uint64_t size;
    bool local;
    uint64_t budget;  // of this process; the size when the driver does not say
    uint64_t used;
};

// What a physical device reports.
struct DeviceReport {
    VkPhysicalDevice handle = VK_NULL_HANDLE;
    std::string name;
    std::string driver;  // "radv, Mesa 26.2.6"
    std::string pci;     // "0000:c3:00.0"; empty when the driver does not say
    std::string uuid;    // of the device and driver, for the pipeline cache
    VkPhysicalDeviceType type = VK_PHYSICAL_DEVICE_TYPE_OTHER;
    uint32_t api = 0;
    uint32_t vendor = 0;
    VkPhysicalDeviceLimits limits = {};
    uint64_t max_allocation = 0;
    std::vector<Heap> heaps;
    uint32_t queue_family = 0;
    uint32_t subgroup = 0, min_subgroup = 0, max_subgroup = 0;
    uint32_t units = 0;  // compute units (AMD) or multiprocessors (NVIDIA); 0: the driver does not say
    bool subgroup_control = false;  // a size can be required of a compute pipeline
    bool full_subgroups = false;
    bool clustered = false;  // sums over parts of a subgroup, and what any of its invocations has
    bool float16 = false;
    bool int8 = false;             // arithmetic with it in shaders, and so matrices of it
    bool dot = false;              // packed 8-bit dot products
    bool dot_accelerated = false;  // ... in hardware
    bool bfloat16 = false;
    bool bfloat16_matrices = false;  // their use in cooperative matrices; of which shapes, `matrices` says
    bool budget = false;             // VK_EXT_memory_budget
    bool pipeline_facts = false;     // VK_KHR_pipeline_executable_properties
    bool shader_clock = false;       // a clock that all shaders of the device read
    std::vector<MatrixShape> matrices;
    std::vector<GroupMatrix> group_matrices;
    uint32_t group_matrix_shared = 0;  // bytes of shared memory that they keep to themselves
    std::string missing;               // what redline needs and this lacks; empty when usable

    bool usable() const { return missing.empty(); }
    bool integrated() const {
        return type == VK_PHYSICAL_DEVICE_TYPE_INTEGRATED_GPU || type == VK_PHYSICAL_DEVICE_TYPE_CPU;
    }
    bool hardware() const { return type != VK_PHYSICAL_DEVICE_TYPE_CPU; }
};

// The shape of `factors` x `factors` + f32 that products are cut into; null when the device has none that
// fits.
const MatrixShape* matrix_shape(const DeviceReport& report,
                                VkComponentTypeKHR factors = VK_COMPONENT_TYPE_FLOAT16_KHR);

// The shape of int8 x int8 + int32 that products are cut into; null when the device has none that fits, and
// none that has sums of the same size in f32.
const MatrixShape* int8_shape(const DeviceReport& report);

constexpr const char* kCompilerTooOld = "redline was built by a shader compiler that does not know them";
// Why products do not use bfloat16 matrices; empty when they can.
std::string why_not_bfloat16(const DeviceReport& report);
// Likewise matrices that a whole work-group holds.
std::string why_no_group_matrices(const DeviceReport& report);

std::string_view type_name(VkPhysicalDeviceType type);
std::string_view component_name(VkComponentTypeKHR type);

// One per process while anything uses it: drivers dislike several.
class Instance {
public:
    static Result<std::shared_ptr<Instance>> get();
    ~Instance();
    VkInstance handle() const { return handle_; }
    // In the order of the driver, those that cannot be used included.
    Result<std::vector<DeviceReport>> devices() const;

private:
    Instance() = default;
    Result<DeviceReport> describe(VkPhysicalDevice device) const;
    VkInstance handle_ = VK_NULL_HANDLE;
};

// The device that `wanted` names (a number, or part of a name), or the best one; `why` gets the reason.
Result<size_t> choose_device(const std::vector<DeviceReport>& devices, const std::string& wanted,
                             std::string& why);

// Which kernels may be used: everything up to this of what the device has.
enum class Level : uint8_t { plain, dot, matrix, bfloat16, workgroup };

// An opened device with its one queue. When a submit or a wait fails nothing is in flight any more, so that
// what the work used may go.
class Device {
public:
    static Result<std::unique_ptr<Device>> open(std::shared_ptr<Instance> instance, DeviceReport report,
                                                Level level, bool forced);
    ~Device();
    Device(const Device&) = delete;
    Device& operator=(const Device&) = delete;

    VkDevice handle() const { return handle_; }
    const DeviceReport& report() const { return report_; }
    VkCommandPool pool() const { return pool_; }
    uint32_t subgroup() const { return report_.subgroup; }
    // Sums over eight neighbours in a subgroup.
    bool use_clustered() const { return use_clustered_; }
    bool use_dot() const { return use_dot_; }
    bool use_matrix() const { return use_matrix_; }
    // In matrices: of products whose weights are bfloat16.
    bool use_bfloat16() const { return use_bfloat16_; }
    // Whether a product's tile may be one matrix of the whole work-group.
    bool use_group_matrices() const { return use_group_matrices_; }
    // Whether products of many rows decode a weight once, before they multiply.
    bool unpacks() const { return use_group_matrices_ || always_unpack; }
    VkInstance instance() const;
    Pace& pace() { return pace_; }

    // The fence may be one that was waited for, or none.
    Status submit(std::span<const VkCommandBuffer> buffers, VkFence fence);
    Result<VkFence> make_fence() const;
    Status wait(VkFence fence, std::string_view doing);
    // Waits for all that was submitted, whatever becomes of it.
    void settle();
    // A lost device does nothing any more: close the backend and open it again.
    bool lost() const { return lost_; }
    // Of one buffer that a kernel is to see whole.
    uint64_t largest_buffer() const;
    // Empty where matrices are not used, or where their elements have no such form.
    std::optional<Fragments> fragments;
    // For tests: matrices are filled by their elements wherever that is possible.
    bool always_fragments = false;
    // For tests: products of many rows are in int8 wherever that is possible.
    bool always_int8 = false;
    // For tests: weights are unpacked whatever matrices there are; bytes that are at a time, and work-groups
    // that fill the device with attention (0: as it likes); the most along x of kernels that stride; the
    // largest buffer.
    bool always_unpack = false;
    uint64_t unpacked_bytes = 0, attention_groups = 0;
    uint64_t most_groups = UINT64_MAX, most_per_buffer = UINT64_MAX;
    // Records commands, runs them and waits.
    Status run_once(const std::function<void(VkCommandBuffer)>& record, std::string_view doing);

private:
    Device(std::shared_ptr<Instance> instance, DeviceReport report)
        : instance_(std::move(instance)), report_(std::move(report)) {}

    std::shared_ptr<Instance> instance_;
    DeviceReport report_;
    Pace pace_;
    VkDevice handle_ = VK_NULL_HANDLE;
    VkQueue queue_ = VK_NULL_HANDLE;
    VkCommandPool pool_ = VK_NULL_HANDLE;
    VkFence once_ = VK_NULL_HANDLE;
    // Errors are seen here first.
    Status settled(VkResult result, std::string_view doing);

    std::mutex queue_mutex_;
    std::atomic<bool> lost_{false};
    bool use_clustered_ = false;
    bool use_dot_ = false;
    bool use_matrix_ = false;
    bool use_bfloat16_ = false;
    bool use_group_matrices_ = false;
};

}  // namespace redline::vulkan
