// Vulkan's launches are noted where the recorder calls the driver: volk's pointers are replaced.
#include "amd_pipelines.h"
#include "step_kernels.h"

#include "backends/vulkan/vulkan_backend.h"

#include <set>

namespace redline {

namespace {

using namespace vulkan;

struct Seen {
    VkPipeline pipeline = VK_NULL_HANDLE;
    uint32_t x = 0, y = 0, z = 0;
};
VkPipeline bound = VK_NULL_HANDLE;
std::vector<Seen> seen;
PFN_vkCmdBindPipeline bind_pipeline = nullptr;
PFN_vkCmdDispatch dispatch = nullptr;

VKAPI_ATTR void VKAPI_CALL note_pipeline(VkCommandBuffer commands, VkPipelineBindPoint point,
                                         VkPipeline pipeline) {
    bound = pipeline;
    bind_pipeline(commands, point, pipeline);
}
VKAPI_ATTR void VKAPI_CALL note_dispatch(VkCommandBuffer commands, uint32_t x, uint32_t y, uint32_t z) {
    seen.push_back({bound, x, y, z});
    dispatch(commands, x, y, z);
}

class NotedVulkan : public Noted {
public:
    explicit NotedVulkan(std::unique_ptr<VulkanBackend> backend) : backend_(std::move(backend)) {}
    Backend& backend() override { return *backend_; }

    Json take() override {
        Json out = Json::array();
        for (const Seen& one : std::exchange(seen, {})) {
            const std::string name = name_of(one.pipeline);
            used_.insert(name);
            out.push_back({{"kernel", name}, {"groups", {one.x, one.y, one.z}}});
        }
        return out;
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

Result<std::unique_ptr<Noted>> noted_vulkan(uint32_t units, bool fragments) {
    std::unique_ptr<VulkanBackend> backend = RL_TRY(open_vulkan_backend({}));
    Device& device = backend->opened();
    if (!device.report().pipeline_facts)
        return error("{} says nothing about its pipelines", device.report().name);
    backend->pipelines().keep_facts();
    if (device.report().vendor == kAmd && device.use_matrix() && narrow_shape(device.report()))
        device.fragments = fragments_of_amd(device);
    device.always_fragments = fragments;
    const_cast<DeviceReport&>(device.report()).units = units;
    bind_pipeline = std::exchange(vkCmdBindPipeline, note_pipeline);
    dispatch = std::exchange(vkCmdDispatch, note_dispatch);
    return std::unique_ptr<Noted>(std::make_unique<NotedVulkan>(std::move(backend)));
}

}  // namespace redline
