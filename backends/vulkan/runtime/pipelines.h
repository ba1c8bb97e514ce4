// Compute pipelines by shader and specialisation, made when first asked for, kept in a cache file between
// runs.
#pragma once

#include "device.h"

#include <map>
#include <span>

namespace redline::vulkan {

struct Pipeline {
    std::string name;
    VkPipeline handle = VK_NULL_HANDLE;
    VkPipelineLayout layout = VK_NULL_HANDLE;
    VkDescriptorSetLayout set = VK_NULL_HANDLE;
    uint32_t matrices = 0;  // buffers at binding 0
    uint32_t bindings = 0;  // buffers in all
};

constexpr uint32_t kPushBytes = 80;
constexpr uint32_t kFirstCacheConstant = 30;

struct PipelineSpec {
    std::string key() const;

    std::string_view shader;
    uint32_t bindings = 1;             // numbers used, binding 0 counted once
    uint32_t matrices = 1;             // descriptors of binding 0
    std::vector<uint32_t> constants;   // specialisation constants 0, 1, ...
    uint32_t subgroup = 0;             // its size; 0: that of the device's kernels
    std::vector<uint32_t> cache = {};  // constants from kFirstCacheConstant on: see shaders/caches/mixed.glsl
};

class Pipelines {
public:
    // `cache_folder` may be empty: nothing is kept.
    Pipelines(Device& device, const std::string& cache_folder);
    ~Pipelines();
    Pipelines(const Pipelines&) = delete;
    Pipelines& operator=(const Pipelines&) = delete;

    Result<const Pipeline*> get(const PipelineSpec& spec);
    // Those that are not there yet, compiled in as many threads as the machine has.
    Status make(std::span<const PipelineSpec> specs);
    static bool exists(std::string_view shader);
    // Pipelines made from now on keep what their compiler knows of them, for reports.
    void keep_facts() { keep_facts_ = true; }
    const std::map<std::string, Pipeline>& all() const { return made_; }

private:
    // Without its code.
    Result<Pipeline> begun(const PipelineSpec& spec);
    // May be called by several threads, each with a pipeline of its own.
    Status compile(const PipelineSpec& spec, Pipeline& pipeline) const;
    Result<VkPipelineLayout> layout_of(Pipeline& pipeline);
    void read_cache();
    void write_cache();

    struct Layout {
        VkDescriptorSetLayout set;
        VkPipelineLayout layout;
    };
    Device& device_;
    bool keep_facts_ = false;
    std::string cache_file_;
    size_t cached_bytes_ = 0;
    VkPipelineCache cache_ = VK_NULL_HANDLE;
    std::map<std::pair<uint32_t, uint32_t>, Layout> layouts_;  // by matrices, bindings
    std::map<std::string, Pipeline> made_;
};

}  // namespace redline::vulkan
