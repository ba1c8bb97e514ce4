// Vulkan's launches are noted where the recorder calls the driver: volk's pointers are replaced.
#include "amd_pipelines.h"
#include "step_kernels.h"

#include "backends/vulkan/runtime/executable.h"
#include "backends/vulkan/vulkan_backend.h"
#include "base/hash.h"

#include <atomic>
#include <map>
#include <set>

namespace redline {

namespace {

using namespace vulkan;

struct Seen {
    VkPipeline pipeline = VK_NULL_HANDLE;
    uint32_t x = 0, y = 0, z = 0, barriers = 0;
    uint64_t arguments = 0;  // a hash of the buffers that are bound and of the push constants
};
VkPipeline bound = VK_NULL_HANDLE;
uint32_t barriers = 0;  // since the last dispatch
Hash64 arguments;       // since then
std::vector<Seen> seen;
// In the order in which a step binds them: handles differ from run to run.
std::map<VkBuffer, uint64_t> buffers;
PFN_vkCmdBindPipeline bind_pipeline = nullptr;
PFN_vkCmdDispatch dispatch = nullptr;
PFN_vkCmdPushConstants push_constants = nullptr;
PFN_vkCmdPipelineBarrier pipeline_barrier = nullptr;
PFN_vkUpdateDescriptorSets update_sets = nullptr;

VKAPI_ATTR void VKAPI_CALL note_pipeline(VkCommandBuffer commands, VkPipelineBindPoint point,
                                         VkPipeline pipeline) {
    bound = pipeline;
    if (bind_pipeline) bind_pipeline(commands, point, pipeline);
}
VKAPI_ATTR void VKAPI_CALL note_dispatch(VkCommandBuffer commands, uint32_t x, uint32_t y, uint32_t z) {
    seen.push_back({bound, x, y, z, std::exchange(barriers, 0), std::exchange(arguments, {}).value()});
    if (dispatch) dispatch(commands, x, y, z);
}
VKAPI_ATTR void VKAPI_CALL note_constants(VkCommandBuffer commands, VkPipelineLayout layout,
                                          VkShaderStageFlags stages, uint32_t offset, uint32_t bytes,
                                          const void* values) {
    arguments.add({static_cast<const std::byte*>(values), bytes});
    push_constants(commands, layout, stages, offset, bytes, values);
}
VKAPI_ATTR void VKAPI_CALL note_barrier(VkCommandBuffer commands, VkPipelineStageFlags from,
                                        VkPipelineStageFlags to, VkDependencyFlags flags, uint32_t count,
                                        const VkMemoryBarrier* all, uint32_t buffer_count,
                                        const VkBufferMemoryBarrier* of_buffers, uint32_t image_count,
                                        const VkImageMemoryBarrier* of_images) {
    ++barriers;
    pipeline_barrier(commands, from, to, flags, count, all, buffer_count, of_buffers, image_count, of_images);
}
VKAPI_ATTR void VKAPI_CALL note_sets(VkDevice device, uint32_t count, const VkWriteDescriptorSet* writes,
                                     uint32_t copies, const VkCopyDescriptorSet* copied) {
    for (const VkWriteDescriptorSet& write : std::span(writes, count)) {
        const VkDescriptorBufferInfo& info = *write.pBufferInfo;
        arguments.add(buffers.try_emplace(info.buffer, buffers.size()).first->second);
        arguments.add(info.offset);
        arguments.add(info.range);
    }
    update_sets(device, count, writes, copies, copied);
}
// In place of the compiler's: numbers.
VKAPI_ATTR VkResult VKAPI_CALL number_pipelines(VkDevice, VkPipelineCache, uint32_t count,
                                                const VkComputePipelineCreateInfo*,
                                                const VkAllocationCallbacks*, VkPipeline* made) {
    static std::atomic<uintptr_t> last = 0;
    for (VkPipeline& one : std::span(made, count)) one = reinterpret_cast<VkPipeline>(++last);
    return VK_SUCCESS;
}
VKAPI_ATTR void VKAPI_CALL forget_pipeline(VkDevice, VkPipeline, const VkAllocationCallbacks*) {}

class NotedVulkan : public Noted {
public:
    explicit NotedVulkan(std::unique_ptr<VulkanBackend> backend) : backend_(std::move(backend)) {}
    Backend& backend() const override { return *backend_; }

    Json take() override {
        Json out = Json::array();
        buffers.clear();
        for (const Seen& one : std::exchange(seen, {})) {
            const std::string name = name_of(one.pipeline);
            used_.insert(name);
            out.push_back({{"kernel", name},
                           {"groups", {one.x, one.y, one.z}},
                           {"barriers", one.barriers},
                           {"arguments", fmt::format("{:016x}", one.arguments)}});
        }
        return out;
    }
    uint64_t scratch(const Kernel& kernel, const Plan& plan) const override {
        return static_cast<const VulkanKernel&>(kernel).scratch(plan);
    }

    Status write_code(std::FILE* to) override {
        for (const auto& [name, pipeline] : backend_->pipelines().all()) {
            if (!used_.contains(pipeline.name)) continue;
            const PipelineFacts facts = facts_of(backend_->opened(), pipeline);
            std::fprintf(to, "== %s%s\n%s\n", pipeline.name.c_str(), facts.line.c_str(), facts.code.c_str());
        }
        return {};
    }

private:
    std::string name_of(VkPipeline handle) {
        for (const auto& [name, pipeline] : backend_->pipelines().all())
            if (pipeline.handle == handle) return pipeline.name;
        return "?";
    }

    std::unique_ptr<VulkanBackend> backend_;
    std::set<std::string> used_;
};

}  // namespace

Result<std::unique_ptr<Noted>> noted_vulkan(uint32_t units, bool fragments, bool compiles) {
    std::unique_ptr<VulkanBackend> backend = RL_TRY(open_vulkan_backend({}));
    Device& device = backend->opened();
    if (compiles && !device.report().pipeline_facts)
        return error("{} says nothing about its pipelines", device.report().name);
    if (compiles) backend->pipelines().keep_facts();
    if (device.report().vendor == kAmd && device.use_matrix() && narrow_shape(device.report()))
        device.fragments = fragments_of_amd(device);
    device.always_fragments = fragments;
    const_cast<DeviceReport&>(device.report()).units = units;
    bind_pipeline = std::exchange(vkCmdBindPipeline, note_pipeline);
    dispatch = std::exchange(vkCmdDispatch, note_dispatch);
    push_constants = std::exchange(vkCmdPushConstants, note_constants);
    pipeline_barrier = std::exchange(vkCmdPipelineBarrier, note_barrier);
    update_sets = std::exchange(vkUpdateDescriptorSets, note_sets);
    if (!compiles) {
        bind_pipeline = nullptr;
        dispatch = nullptr;
        vkCreateComputePipelines = number_pipelines;
        vkDestroyPipeline = forget_pipeline;
    }
    return std::unique_ptr<Noted>(std::make_unique<NotedVulkan>(std::move(backend)));
}

}  // namespace redline
