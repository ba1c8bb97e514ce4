#include "stopwatch.h"

#include <chrono>

namespace redline::vulkan {

Result<std::unique_ptr<Stopwatch>> Stopwatch::create(Device& device) {
    std::unique_ptr<Stopwatch> made(new Stopwatch(device));
    made->fence_ = RL_TRY(device.make_fence());
    if (!device.report().limits.timestampComputeAndGraphics) return made;
    VkQueryPoolCreateInfo create = {VK_STRUCTURE_TYPE_QUERY_POOL_CREATE_INFO};
    create.queryType = VK_QUERY_TYPE_TIMESTAMP;
    create.queryCount = 2;
    RL_TRY(checked(vkCreateQueryPool(device.handle(), &create, nullptr, &made->queries_), "making a clock"));
    VkCommandBufferAllocateInfo allocate = {VK_STRUCTURE_TYPE_COMMAND_BUFFER_ALLOCATE_INFO};
    allocate.commandPool = device.pool();
    allocate.commandBufferCount = 2;
    RL_TRY(checked(vkAllocateCommandBuffers(device.handle(), &allocate, made->marks_),
                   "making a command buffer"));
    for (uint32_t i = 0; i < 2; ++i) {
        VkCommandBufferBeginInfo begin = {VK_STRUCTURE_TYPE_COMMAND_BUFFER_BEGIN_INFO};
        RL_TRY(checked(vkBeginCommandBuffer(made->marks_[i], &begin), "beginning a command buffer"));
        if (i == 0) vkCmdResetQueryPool(made->marks_[i], made->queries_, 0, 2);
        vkCmdWriteTimestamp(made->marks_[i],
                            i == 0 ? VK_PIPELINE_STAGE_TOP_OF_PIPE_BIT : VK_PIPELINE_STAGE_BOTTOM_OF_PIPE_BIT,
                            made->queries_, i);
        RL_TRY(checked(vkEndCommandBuffer(made->marks_[i]), "ending a command buffer"));
    }
    return made;
}

Stopwatch::~Stopwatch() {
    if (fence_) vkDestroyFence(device_.handle(), fence_, nullptr);
    if (marks_[0]) vkFreeCommandBuffers(device_.handle(), device_.pool(), 2, marks_);
    if (queries_) vkDestroyQueryPool(device_.handle(), queries_, nullptr);
}

Result<double> Stopwatch::run(std::span<const VkCommandBuffer> buffers) {
    std::vector<VkCommandBuffer> all(buffers.begin(), buffers.end());
    if (queries_) {
        all.insert(all.begin(), marks_[0]);
        all.push_back(marks_[1]);
    }
    const auto begin = std::chrono::steady_clock::now();
    RL_TRY(device_.submit(all, fence_));
    RL_TRY(device_.wait(fence_, "running a step"));
    const std::chrono::duration<double> took = std::chrono::steady_clock::now() - begin;
    if (!queries_) return took.count();
    uint64_t ticks[2] = {};
    RL_TRY(checked(vkGetQueryPoolResults(device_.handle(), queries_, 0, 2, sizeof(ticks), ticks,
                                         sizeof(uint64_t), VK_QUERY_RESULT_64_BIT | VK_QUERY_RESULT_WAIT_BIT),
                   "reading the device's clock"));
    return double(ticks[1] - ticks[0]) * double(device_.report().limits.timestampPeriod) * 1e-9;
}

}  // namespace redline::vulkan
