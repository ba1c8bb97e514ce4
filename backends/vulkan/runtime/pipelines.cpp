#include "pipelines.h"

#include "base/control_group.h"
#include "base/file.h"
#include "base/hash.h"
#include "shader_table.h"

#include <atomic>
#include <cstring>
#include <filesystem>
#include <set>
#include <system_error>
#include <thread>

namespace redline::vulkan {

namespace {

const Shader* find_shader(std::string_view name) {
    for (const Shader& shader : all_shaders())
        if (shader.name == name) return &shader;
    return nullptr;
}

uint64_t shaders_hash() {
    static const uint64_t value = [] {
        Hash64 hash;
        for (const Shader& shader : all_shaders()) {
            hash.add(shader.name);
            hash.add(std::as_bytes(shader.code));
        }
        return hash.value();
    }();
    return value;
}

// What stands before the driver's data in a cache file. The driver checks its own header as well, but not all
// drivers survive damaged data behind it.
struct CacheHeader {
    char magic[8] = {'R', 'L', 'P', 'I', 'P', 'E', '0', '1'};
    uint64_t bytes = 0;
    uint64_t hash = 0;
};

}  // namespace

bool Pipelines::exists(std::string_view shader) {
    return find_shader(shader) != nullptr;
}

Pipelines::Pipelines(Device& device, const std::string& cache_folder) : device_(device) {
    if (!cache_folder.empty())
        cache_file_ =
            fmt::format("{}/vulkan-{}-{:016x}.pipelines", cache_folder, device.report().uuid, shaders_hash());
    read_cache();
}

void Pipelines::read_cache() {
    std::string text;
    if (!cache_file_.empty()) {
        constexpr uint64_t kMost = uint64_t(256) << 20;
        if (Result<std::string> file = read_text_file(cache_file_, kMost)) text = std::move(file).value();
    }
    std::span<const std::byte> data;
    CacheHeader header;
    if (text.size() >= sizeof(header)) {
        const CacheHeader want;
        std::memcpy(&header, text.data(), sizeof(header));
        const auto body = std::as_bytes(std::span(text)).subspan(sizeof(header));
        Hash64 hash;
        hash.add(body);
        if (std::memcmp(header.magic, want.magic, sizeof(want.magic)) == 0 && header.bytes == body.size() &&
            header.hash == hash.value())
            data = body;
    }
    VkPipelineCacheCreateInfo create = {VK_STRUCTURE_TYPE_PIPELINE_CACHE_CREATE_INFO};
    create.initialDataSize = data.size();
    create.pInitialData = data.data();
    cached_bytes_ = data.size();
    if (vkCreatePipelineCache(device_.handle(), &create, nullptr, &cache_) != VK_SUCCESS)
        cache_ = VK_NULL_HANDLE;
}

// Best effort: a folder that cannot be written costs time at the next start, no more.
void Pipelines::write_cache() {
    if (cache_file_.empty() || !cache_) return;
    size_t bytes = 0;
    if (vkGetPipelineCacheData(device_.handle(), cache_, &bytes, nullptr) != VK_SUCCESS ||
        bytes == cached_bytes_)
        return;
    std::vector<std::byte> data(bytes);
    if (vkGetPipelineCacheData(device_.handle(), cache_, &bytes, data.data()) != VK_SUCCESS) return;
    data.resize(bytes);
    std::error_code ignored;
    std::filesystem::create_directories(std::filesystem::path(cache_file_).parent_path(), ignored);
    Result<AtomicWriter> file = AtomicWriter::create(cache_file_);
    if (!file) return;
    CacheHeader header;
    header.bytes = bytes;
    Hash64 hash;
    hash.add(std::span<const std::byte>(data));
    header.hash = hash.value();
    if (file->write(std::as_bytes(std::span(&header, 1))) && file->write(data)) (void)file->commit();
}

Pipelines::~Pipelines() {
    write_cache();
    for (const auto& [key, pipeline] : made_) vkDestroyPipeline(device_.handle(), pipeline.handle, nullptr);
    for (const auto& [key, layout] : layouts_) {
        vkDestroyPipelineLayout(device_.handle(), layout.layout, nullptr);
        vkDestroyDescriptorSetLayout(device_.handle(), layout.set, nullptr);
    }
    if (cache_) vkDestroyPipelineCache(device_.handle(), cache_, nullptr);
}

Result<VkPipelineLayout> Pipelines::layout_of(Pipeline& pipeline) {
    const auto key = std::make_pair(pipeline.matrices, pipeline.bindings);
    if (const auto found = layouts_.find(key); found != layouts_.end()) {
        pipeline.set = found->second.set;
        return found->second.layout;
    }
    std::vector<VkDescriptorSetLayoutBinding> bindings;
    for (uint32_t i = 0; i < pipeline.bindings; ++i)
        bindings.push_back({i, VK_DESCRIPTOR_TYPE_STORAGE_BUFFER, i == 0 ? pipeline.matrices : 1,
                            VK_SHADER_STAGE_COMPUTE_BIT, nullptr});
    VkDescriptorSetLayoutCreateInfo set = {VK_STRUCTURE_TYPE_DESCRIPTOR_SET_LAYOUT_CREATE_INFO};
    set.bindingCount = uint32_t(bindings.size());
    set.pBindings = bindings.data();
    Layout made = {};
    RL_TRY(checked(vkCreateDescriptorSetLayout(device_.handle(), &set, nullptr, &made.set),
                   "making a set layout"));
    const VkPushConstantRange push = {VK_SHADER_STAGE_COMPUTE_BIT, 0, kPushBytes};
    VkPipelineLayoutCreateInfo create = {VK_STRUCTURE_TYPE_PIPELINE_LAYOUT_CREATE_INFO};
    create.setLayoutCount = 1;
    create.pSetLayouts = &made.set;
    create.pushConstantRangeCount = 1;
    create.pPushConstantRanges = &push;
    const VkResult result = vkCreatePipelineLayout(device_.handle(), &create, nullptr, &made.layout);
    if (result != VK_SUCCESS) vkDestroyDescriptorSetLayout(device_.handle(), made.set, nullptr);
    RL_TRY(checked(result, "making a pipeline layout"));
    layouts_[key] = made;
    pipeline.set = made.set;
    return made.layout;
}

std::string PipelineSpec::key() const {
    return fmt::format("{}/{}/{}/{}{}{}", shader, bindings, matrices, fmt::join(constants, ","),
                       subgroup > 0 ? fmt::format("/{}", subgroup) : "",
                       cache.empty() ? "" : fmt::format("/cache {}", fmt::join(cache, ",")));
}

Result<Pipeline> Pipelines::begun(const PipelineSpec& spec) {
    Pipeline pipeline;
    pipeline.name = spec.key();
    pipeline.matrices = spec.matrices;
    pipeline.bindings = spec.bindings;
    pipeline.layout = RL_TRY(layout_of(pipeline));
    return pipeline;
}

Result<const Pipeline*> Pipelines::get(const PipelineSpec& spec) {
    if (const auto found = made_.find(spec.key()); found != made_.end()) return &found->second;
    Pipeline pipeline = RL_TRY(begun(spec));
    RL_TRY(compile(spec, pipeline));
    std::string key = pipeline.name;
    return &made_.emplace(std::move(key), std::move(pipeline)).first->second;
}

Status Pipelines::make(std::span<const PipelineSpec> specs) {
    struct Missing {
        const PipelineSpec* spec;
        Pipeline pipeline;
        Status done;
    };
    std::vector<Missing> missing;
    std::set<std::string> met;
    for (const PipelineSpec& spec : specs)
        if (!made_.contains(spec.key()) && met.insert(spec.key()).second)
            missing.push_back({&spec, RL_TRY(begun(spec)), {}});
    std::atomic<size_t> next = 0;
    const auto work = [&] {
        for (size_t i = next++; i < missing.size(); i = next++)
            missing[i].done = compile(*missing[i].spec, missing[i].pipeline);
    };
    {
        std::vector<std::jthread> others;
        const size_t most = std::min<size_t>(missing.size(), usable_cpus());
        try {
            for (size_t i = 1; i < most; ++i) others.emplace_back(work);
        } catch (const std::system_error&) {  // the system refused one: the others do its work
        }
        work();
    }
    Status all;
    for (Missing& one : missing) {
        if (one.done) made_.emplace(one.spec->key(), std::move(one.pipeline));
        if (!one.done && all) all = one.done;
    }
    return all;
}

Status Pipelines::compile(const PipelineSpec& spec, Pipeline& pipeline) const {
    const Shader* shader = find_shader(spec.shader);
    RL_CHECK(shader, "no shader is called {}", spec.shader);
    VkShaderModuleCreateInfo module_create = {VK_STRUCTURE_TYPE_SHADER_MODULE_CREATE_INFO};
    module_create.codeSize = shader->code.size_bytes();
    module_create.pCode = shader->code.data();
    VkShaderModule module = VK_NULL_HANDLE;
    RL_TRY(checked(vkCreateShaderModule(device_.handle(), &module_create, nullptr, &module),
                   "loading shader " + pipeline.name));
    std::vector<VkSpecializationMapEntry> entries;
    std::vector<uint32_t> values = spec.constants;
    values.insert(values.end(), spec.cache.begin(), spec.cache.end());
    const auto plain = uint32_t(spec.constants.size());
    for (uint32_t i = 0; i < values.size(); ++i)
        entries.push_back({i < plain ? i : kFirstCacheConstant + i - plain, i * 4, 4});
    const VkSpecializationInfo constants = {uint32_t(entries.size()), entries.data(), values.size() * 4,
                                            values.data()};
    VkPipelineShaderStageRequiredSubgroupSizeCreateInfo required = {
        VK_STRUCTURE_TYPE_PIPELINE_SHADER_STAGE_REQUIRED_SUBGROUP_SIZE_CREATE_INFO};
    required.requiredSubgroupSize = spec.subgroup > 0 ? spec.subgroup : device_.subgroup();
    VkComputePipelineCreateInfo create = {VK_STRUCTURE_TYPE_COMPUTE_PIPELINE_CREATE_INFO};
    create.stage = {VK_STRUCTURE_TYPE_PIPELINE_SHADER_STAGE_CREATE_INFO};
    create.stage.stage = VK_SHADER_STAGE_COMPUTE_BIT;
    create.stage.module = module;
    create.stage.pName = "main";
    create.stage.pSpecializationInfo = &constants;
    if (device_.report().subgroup_control) create.stage.pNext = &required;
    if (device_.report().full_subgroups)
        create.stage.flags |= VK_PIPELINE_SHADER_STAGE_CREATE_REQUIRE_FULL_SUBGROUPS_BIT;
    create.layout = pipeline.layout;
    if (keep_facts_)
        create.flags = VK_PIPELINE_CREATE_CAPTURE_STATISTICS_BIT_KHR |
                       VK_PIPELINE_CREATE_CAPTURE_INTERNAL_REPRESENTATIONS_BIT_KHR;
    const VkResult result =
        vkCreateComputePipelines(device_.handle(), cache_, 1, &create, nullptr, &pipeline.handle);
    vkDestroyShaderModule(device_.handle(), module, nullptr);
    return checked(result, "compiling shader " + pipeline.name);
}

}  // namespace redline::vulkan
