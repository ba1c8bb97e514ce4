// Op cases run on a Vulkan device of this machine.
#pragma once

#include "backends/vulkan/vulkan_backend.h"
#include "cases/op_cases.h"
#include "measure/comparison.h"
#include "support/backends.h"
#include "support/models.h"

#include <numeric>

namespace redline::test {

// Null where there is no device, which the end of the program reports.
inline std::unique_ptr<vulkan::VulkanBackend> open_vulkan(const std::string& cache_folder = "",
                                                          const std::string& level = "") {
    if (!wanted("vulkan")) return nullptr;
    BackendOptions options;
    options.cache_folder = cache_folder;
    options.level = level;
    options.device = wanted_device("vulkan");
    Result<std::unique_ptr<vulkan::VulkanBackend>> backend = vulkan::open_vulkan_backend(options);
    if (!backend) {
        not_tested("vulkan: " + backend.error().message);
        return nullptr;
    }
    const DeviceInfo& device = backend.value()->device();
    tested_on(fmt::format("vulkan: {}, {}", device.name, device.detail));
    return std::move(backend).value();
}

// Counts dispatches as they are recorded, and barriers between them.
struct Dispatches {
    static inline PFN_vkCmdDispatch real = nullptr;
    static inline PFN_vkCmdPipelineBarrier real_barrier = nullptr;
    static inline int count = 0, barriers = 0;

    static void VKAPI_CALL dispatch(VkCommandBuffer commands, uint32_t x, uint32_t y, uint32_t z) {
        ++count;
        real(commands, x, y, z);
    }
    template <typename... Rest>
    static void VKAPI_CALL barrier(VkCommandBuffer commands, VkPipelineStageFlags from,
                                   VkPipelineStageFlags to, Rest... rest) {
        barriers += from == to;  // others are with the host or with copies
        real_barrier(commands, from, to, rest...);
    }
    Dispatches() {
        real = std::exchange(vkCmdDispatch, dispatch);
        real_barrier = std::exchange(vkCmdPipelineBarrier, barrier);
        count = barriers = 0;
    }
    ~Dispatches() {
        vkCmdDispatch = real;
        vkCmdPipelineBarrier = real_barrier;
    }
};

// The output of a case of one step.
inline std::vector<float> output_of(const OpCase& c, Backend& backend, Fixture& fixture, bool traced) {
    const Plan plan = must(case_plan(c, fixture, c.rows, c.rows));
    const auto weights = must(backend.load(fixture.weights(), fixture, {}));
    const auto cache = must(backend.make_caches(plan.caches));
    const auto executable =
        must(backend.record(must(lower(plan, backend, true)), *weights, *cache, Record::replay));
    std::vector<int32_t> tokens(c.rows);
    std::iota(tokens.begin(), tokens.end(), 0);
    const SequenceStep step(tokens, 0, c.rows);
    must(traced ? executable->run_traced(step, [](const TraceStep&) {}) : executable->run(step));
    return {executable->output().begin(), executable->output().end()};
}

inline std::vector<float> output_of(const OpCase& c, Backend& backend, bool traced = false) {
    Fixture fixture(1, c.rows);
    return output_of(c, backend, fixture, traced);
}

// The distance of this output from the reference, as a share of the bound.
inline double off_reference(const OpCase& c, Backend& backend) {
    Fixture fixture(1, c.rows);
    const BoundPlan bound = must(lower(must(case_plan(c, fixture, c.rows, c.rows)), backend));
    std::vector<int32_t> tokens(c.rows);
    std::iota(tokens.begin(), tokens.end(), 0);
    const SequenceStep step(tokens, 0, c.rows);
    Reference reference(bound.plan, fixture.decoded(backend));
    reference.run(step, precisions(bound, step));
    return compare(output_of(c, backend), reference.output()).worst_fraction;
}

}  // namespace redline::test
