#include "weights.h"

namespace redline::vulkan {

// Rows go by eights, so that packed planes of every part begin aligned.
uint64_t rows_per_part(const Device& device, const Tensor& tensor) {
    const WeightLayout* const layout = weight_layout(*tensor.format);
    const uint64_t book = layout && !layout->book.empty() ? kMostBookBytes : 0;
    const uint64_t most = std::max<uint64_t>(1, (device.largest_buffer() - book) / tensor.row_bytes());
    return most >= 8 ? most / 8 * 8 : most;
}

Result<PlacedWeight> Loading::place(Device& device, Memory& memory, const WeightInfo& weight) {
    const Tensor& tensor = weight.tensor;
    PlacedWeight placed;
    placed.cols = tensor.shape.cols;
    const auto allocate = [&](uint64_t bytes) {
        return memory.allocate(bytes, Use::weights, "tensor " + tensor.name);
    };
    if (weight.role == WeightRole::vector) {
        placed.parts.push_back({0, 1, RL_TRY(allocate(tensor.shape.elements() * 4))});
        return placed;
    }
    placed.layout = weight_layout(*tensor.format);
    if (!placed.layout) return error("tensor {}: {} has no Vulkan kernels", tensor.name, tensor.format->name);
    const uint64_t rows = tensor.shape.rows * tensor.shape.count, step = rows_per_part(device, tensor);
    for (uint64_t first = 0; first < rows; first += step) {
        const uint64_t count = std::min(step, rows - first);
        placed.parts.push_back(
            {first, count, RL_TRY(allocate(bytes_with_book(*placed.layout, count * tensor.row_bytes())))});
    }
    return placed;
}

uint64_t Loading::bytes(const PlacedWeight& placed) {
    uint64_t all = 0;
    for (const WeightPart& part : placed.parts) all += part.buffer.size();
    return all;
}

bool Loading::fits(const PlacedWeight& placed, const WeightInfo& weight) {
    const Shape& shape = weight.tensor.shape;
    const WeightPart& last = placed.parts.back();
    return weight.role == WeightRole::vector
               ? last.buffer.size() >= shape.elements() * 4
               : placed.cols == shape.cols && last.first + last.rows == shape.rows * shape.count;
}

void Loading::add_items(std::vector<LoadItem>& items, uint32_t index, const Tensor& tensor,
                        const PlacedWeight& placed) {
    const uint64_t row_blocks = tensor.shape.cols / tensor.format->block;
    for (uint32_t part = 0; part < placed.parts.size(); ++part)
        redline::add_items(
            items, *tensor.format,
            {index, part, placed.parts[part].first * row_blocks, placed.parts[part].rows * row_blocks, 0, 0});
}

Status Loading::written(const PlacedWeight& placed) {
    for (const WeightPart& part : placed.parts)
        if (part.buffer.mapped()) RL_TRY(part.buffer.flush());
    return {};
}

Status Loading::Upload::prepare() {
    VkCommandPoolCreateInfo pool = {VK_STRUCTURE_TYPE_COMMAND_POOL_CREATE_INFO};
    pool.flags = VK_COMMAND_POOL_CREATE_RESET_COMMAND_BUFFER_BIT;
    pool.queueFamilyIndex = device_.report().queue_family;
    RL_TRY(checked(vkCreateCommandPool(device_.handle(), &pool, nullptr, &pool_), "making a command pool"));
    for (const size_t i : {0, 1}) {
        buffers_[i] = RL_TRY(memory_.allocate(kStagingBytes, Use::upload, "staging"));
        fences_[i] = RL_TRY(device_.make_fence());
        VkCommandBufferAllocateInfo allocate = {VK_STRUCTURE_TYPE_COMMAND_BUFFER_ALLOCATE_INFO};
        allocate.commandPool = pool_;
        allocate.commandBufferCount = 1;
        RL_TRY(checked(vkAllocateCommandBuffers(device_.handle(), &allocate, &commands_[i]),
                       "making a command buffer"));
    }
    return {};
}

Loading::Upload::~Upload() {
    for (const size_t i : {0, 1}) {
        if (busy[i]) device_.settle();
        if (fences_[i]) vkDestroyFence(device_.handle(), fences_[i], nullptr);
    }
    if (pool_) vkDestroyCommandPool(device_.handle(), pool_, nullptr);
}

Status Loading::Upload::send(size_t i, std::span<const CopyRegion> regions, const PlacedWeight& to,
                             uint32_t part) {
    std::vector<VkBufferCopy> copies;
    for (const CopyRegion& region : regions) copies.push_back({region.from, region.to, region.bytes});
    RL_TRY(buffers_[i].flush());
    VkCommandBufferBeginInfo begin = {VK_STRUCTURE_TYPE_COMMAND_BUFFER_BEGIN_INFO};
    begin.flags = VK_COMMAND_BUFFER_USAGE_ONE_TIME_SUBMIT_BIT;
    RL_TRY(checked(vkBeginCommandBuffer(commands_[i], &begin), "copying weights to the device"));
    vkCmdCopyBuffer(commands_[i], buffers_[i].handle(), to.parts[part].buffer.handle(),
                    uint32_t(copies.size()), copies.data());
    RL_TRY(checked(vkEndCommandBuffer(commands_[i]), "copying weights to the device"));
    return device_.submit(std::span(&commands_[i], 1), fences_[i]);
}

}  // namespace redline::vulkan
