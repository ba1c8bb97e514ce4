#include "recorder.h"

#include <algorithm>
#include <cstring>

namespace redline::vulkan {

namespace {

constexpr uint32_t kSetsPerPool = 256;
// Of what one dispatch may take, what a command buffer may: cuts cost little, and fewer pieces cannot be made
// of it later.
constexpr double kSegment = 0.2;

}  // namespace

Recording::~Recording() {
    if (!device_) return;
    if (!segments.empty())
        vkFreeCommandBuffers(device_->handle(), device_->pool(), uint32_t(segments.size()), segments.data());
    for (const VkDescriptorPool pool : pools) vkDestroyDescriptorPool(device_->handle(), pool, nullptr);
}

Status Recorder::begin() {
    VkCommandBufferAllocateInfo allocate = {VK_STRUCTURE_TYPE_COMMAND_BUFFER_ALLOCATE_INFO};
    allocate.commandPool = device_.pool();
    allocate.commandBufferCount = 1;
    RL_TRY(
        checked(vkAllocateCommandBuffers(device_.handle(), &allocate, &current_), "making a command buffer"));
    recording_.segments.push_back(current_);
    VkCommandBufferBeginInfo create = {VK_STRUCTURE_TYPE_COMMAND_BUFFER_BEGIN_INFO};
    RL_TRY(checked(vkBeginCommandBuffer(current_, &create), "beginning a command buffer"));
    seconds_ = 0.0;
    // The copy of the step's inputs, or the buffer before this one.
    const VkMemoryBarrier before = {VK_STRUCTURE_TYPE_MEMORY_BARRIER, nullptr,
                                    VK_ACCESS_TRANSFER_WRITE_BIT | VK_ACCESS_SHADER_WRITE_BIT,
                                    VK_ACCESS_SHADER_READ_BIT | VK_ACCESS_SHADER_WRITE_BIT};
    vkCmdPipelineBarrier(current_, VK_PIPELINE_STAGE_TRANSFER_BIT | VK_PIPELINE_STAGE_COMPUTE_SHADER_BIT,
                         VK_PIPELINE_STAGE_COMPUTE_SHADER_BIT, 0, 1, &before, 0, nullptr, 0, nullptr);
    barrier_wanted_ = false;
    return {};
}

Status Recorder::cut() {
    if (!current_) return {};
    const VkMemoryBarrier after = {VK_STRUCTURE_TYPE_MEMORY_BARRIER, nullptr, VK_ACCESS_SHADER_WRITE_BIT,
                                   VK_ACCESS_HOST_READ_BIT | VK_ACCESS_TRANSFER_READ_BIT};
    vkCmdPipelineBarrier(current_, VK_PIPELINE_STAGE_COMPUTE_SHADER_BIT,
                         VK_PIPELINE_STAGE_HOST_BIT | VK_PIPELINE_STAGE_TRANSFER_BIT, 0, 1, &after, 0,
                         nullptr, 0, nullptr);
    const VkCommandBuffer done = current_;
    current_ = VK_NULL_HANDLE;
    recording_.seconds.push_back(seconds_);
    return checked(vkEndCommandBuffer(done), "ending a command buffer");
}

Result<Recording> Recorder::finish() && {
    RL_TRY(cut());
    return std::move(recording_);
}

Result<VkDescriptorSet> Recorder::make_set(const Pipeline& pipeline, std::span<const Binding> bindings) {
    VkDescriptorSetAllocateInfo allocate = {VK_STRUCTURE_TYPE_DESCRIPTOR_SET_ALLOCATE_INFO};
    allocate.descriptorSetCount = 1;
    allocate.pSetLayouts = &pipeline.set;
    VkDescriptorSet set = VK_NULL_HANDLE;
    VkResult result = VK_ERROR_OUT_OF_POOL_MEMORY;
    if (!recording_.pools.empty()) {
        allocate.descriptorPool = recording_.pools.back();
        result = vkAllocateDescriptorSets(device_.handle(), &allocate, &set);
    }
    if (result == VK_ERROR_OUT_OF_POOL_MEMORY || result == VK_ERROR_FRAGMENTED_POOL) {
        const VkDescriptorPoolSize size = {VK_DESCRIPTOR_TYPE_STORAGE_BUFFER, kSetsPerPool * 10};
        VkDescriptorPoolCreateInfo create = {VK_STRUCTURE_TYPE_DESCRIPTOR_POOL_CREATE_INFO};
        create.maxSets = kSetsPerPool;
        create.poolSizeCount = 1;
        create.pPoolSizes = &size;
        VkDescriptorPool pool = VK_NULL_HANDLE;
        RL_TRY(checked(vkCreateDescriptorPool(device_.handle(), &create, nullptr, &pool),
                       "making a descriptor pool"));
        recording_.pools.push_back(pool);
        allocate.descriptorPool = pool;
        result = vkAllocateDescriptorSets(device_.handle(), &allocate, &set);
    }
    RL_TRY(checked(result, "making a descriptor set"));
    std::vector<VkDescriptorBufferInfo> buffers;
    for (const Binding& b : bindings) buffers.push_back({b.buffer, b.offset, b.bytes + b.guard});
    std::vector<VkWriteDescriptorSet> writes;
    for (uint32_t i = 0; i < bindings.size(); ++i) {
        VkWriteDescriptorSet write = {VK_STRUCTURE_TYPE_WRITE_DESCRIPTOR_SET};
        write.dstSet = set;
        write.dstBinding = i < pipeline.matrices ? 0 : i - pipeline.matrices + 1;
        write.dstArrayElement = i < pipeline.matrices ? i : 0;
        write.descriptorCount = 1;
        write.descriptorType = VK_DESCRIPTOR_TYPE_STORAGE_BUFFER;
        write.pBufferInfo = &buffers[i];
        writes.push_back(write);
    }
    vkUpdateDescriptorSets(device_.handle(), uint32_t(writes.size()), writes.data(), 0, nullptr);
    return set;
}

Result<Groups> Recorder::fitted(const PipelineSpec& spec, Groups groups) const {
    const uint32_t* most = device_.report().limits.maxComputeWorkGroupCount;
    if (groups.strides) groups.x = std::min<uint64_t>({groups.x, most[0], device_.most_groups});
    if (groups.x <= most[0] && groups.y <= most[1] && groups.z <= most[2]) return groups;
    return error(
        "{} needs {} x {} x {} work-groups; {} takes at most {} x {} x {}. A smaller batch would fit",
        spec.shader, groups.x, groups.y, groups.z, device_.report().name, most[0], most[1], most[2]);
}

Status Recorder::add(const PipelineSpec& spec, std::span<const Binding> bindings, const void* push,
                     uint32_t push_bytes, Groups groups, double flops) {
    groups = RL_TRY(fitted(spec, groups));
    if (wanted_) {
        wanted_->add(spec);
        return {};
    }
    const Pipeline& pipeline = *RL_TRY(pipelines_.get(spec));
    RL_CHECK(bindings.size() == spec.bindings + spec.matrices - 1, "{} buffers for {}", bindings.size(),
             pipeline.name);
    const uint64_t range = device_.report().limits.maxStorageBufferRange;
    double bytes = 0.0;  // at most
    for (const Binding& b : bindings) {
        bytes += double(b.bytes);
        if (b.bytes > range)
            return error(
                "{} needs a buffer of {} bytes; {} binds at most {}. A smaller batch, context or number of "
                "outputs would fit",
                spec.shader, b.bytes, device_.report().name, range);
    }
    const double seconds = device_.pace().assumed(flops, bytes);
    if (current_ && seconds_ > 0.0 && seconds_ + seconds > kSegment * dispatch_seconds_) RL_TRY(cut());
    if (!current_) RL_TRY(begin());
    seconds_ += seconds;
    if (barrier_wanted_) {
        const VkMemoryBarrier all = {VK_STRUCTURE_TYPE_MEMORY_BARRIER, nullptr, VK_ACCESS_SHADER_WRITE_BIT,
                                     VK_ACCESS_SHADER_READ_BIT | VK_ACCESS_SHADER_WRITE_BIT};
        vkCmdPipelineBarrier(current_, VK_PIPELINE_STAGE_COMPUTE_SHADER_BIT,
                             VK_PIPELINE_STAGE_COMPUTE_SHADER_BIT, 0, 1, &all, 0, nullptr, 0, nullptr);
        barrier_wanted_ = false;
    }
    const VkDescriptorSet set = RL_TRY(make_set(pipeline, bindings));
    vkCmdBindPipeline(current_, VK_PIPELINE_BIND_POINT_COMPUTE, pipeline.handle);
    vkCmdBindDescriptorSets(current_, VK_PIPELINE_BIND_POINT_COMPUTE, pipeline.layout, 0, 1, &set, 0,
                            nullptr);
    std::byte padded[kPushBytes] = {};
    std::memcpy(padded, push, push_bytes);
    vkCmdPushConstants(current_, pipeline.layout, VK_SHADER_STAGE_COMPUTE_BIT, 0, kPushBytes, padded);
    vkCmdDispatch(current_, uint32_t(groups.x), uint32_t(groups.y), uint32_t(groups.z));
    return {};
}

}  // namespace redline::vulkan
