#include "weights.h"

#include "backends/shared/load_items.h"

#include <algorithm>
#include <cstring>

namespace redline::vulkan {

namespace {

constexpr uint64_t kChunk = uint64_t(4) << 20;  // bytes of the file read and taken apart at a time
constexpr uint32_t kMostReaders = 4;            // each with a chunk read, and staging for two
constexpr uint64_t kStagingBytes = kChunk + 4096;

// Some blocks of a part, or a whole vector.
struct LoadItem {
    uint32_t weight;
    uint32_t part;
    uint64_t first_block;  // in the part
    uint64_t blocks;
};

// Host memory that the device copies from, with the fence of the copy that last used it.
struct Staging {
    Buffer buffer;
    VkCommandBuffer commands = VK_NULL_HANDLE;
    VkFence fence = VK_NULL_HANDLE;
    bool busy = false;
};

}  // namespace

// Readers take items in turn: read from the file, take the blocks apart into the mapped weight itself or into
// staging, whose copy to the device overlaps the next read. The first error ends all.
class WeightLoader {
public:
    WeightLoader(Device& device, Memory& memory, std::span<const WeightInfo> weights, ByteSource& source,
                 const Progress& progress)
        : device_(device), memory_(memory), weights_(weights), source_(source), progress_(progress) {}
    ~WeightLoader();

    Status place_all();
    Result<std::unique_ptr<WeightStore>> run();
    std::unique_ptr<WeightStore> take() { return std::move(store_); }

private:
    struct Reader {
        std::vector<std::byte> file;
        Staging staging[2];
        uint32_t turn = 0;
        VkCommandPool pool = VK_NULL_HANDLE;
    };

    Status place(uint32_t index);
    Status prepare(Reader& reader);
    Result<uint64_t> load(Reader& reader, const LoadItem& item);
    Result<uint64_t> load_vector(Reader& reader, const LoadItem& item);
    Status stage(Reader& reader, const LoadItem& item, const PlacedWeight& placed, const WeightPart& part);
    Status copy(Staging& staging, VkBuffer to, std::span<const VkBufferCopy> regions);
    Result<Staging*> free_staging(Reader& reader);

    Device& device_;
    Memory& memory_;
    std::span<const WeightInfo> weights_;
    ByteSource& source_;
    const Progress& progress_;
    std::unique_ptr<VulkanWeights> store_ = std::make_unique<VulkanWeights>();
    std::vector<LoadItem> items_;
    std::vector<Reader> readers_;
};

// Buffers of a weight, and the items that fill them.
Status WeightLoader::place(uint32_t index) {
    const Tensor& tensor = weights_[index].tensor;
    PlacedWeight placed;
    placed.cols = tensor.shape.cols;
    const uint64_t rows = tensor.shape.rows * tensor.shape.count;
    if (weights_[index].role == WeightRole::vector) {
        placed.parts.push_back(
            {0, 1,
             RL_TRY(memory_.allocate(tensor.shape.elements() * 4, Use::weights, "tensor " + tensor.name))});
        items_.push_back({index, 0, 0, 0});
    } else {
        placed.layout = weight_layout(*tensor.format);
        if (!placed.layout)
            return error("tensor {}: {} has no Vulkan kernels", tensor.name, tensor.format->name);
        const uint64_t row_blocks = tensor.shape.cols / tensor.format->block;
        const uint64_t step = rows_per_part(device_, tensor);
        for (uint64_t first = 0; first < rows; first += step) {
            const uint64_t count = std::min(step, rows - first), part = placed.parts.size();
            placed.parts.push_back({first, count,
                                    RL_TRY(memory_.allocate(count * tensor.row_bytes(), Use::weights,
                                                            "tensor " + tensor.name))});
            const uint64_t blocks = count * row_blocks;
            // Multiples of 8 blocks keep the planes of a chunk aligned.
            const uint64_t chunk = std::max<uint64_t>(8, kChunk / tensor.format->block_bytes / 8 * 8);
            for (uint64_t b = 0; b < blocks; b += chunk)
                items_.push_back({index, uint32_t(part), b, std::min(chunk, blocks - b)});
        }
    }
    for (const WeightPart& part : placed.parts) store_->bytes_ += part.buffer.size();
    store_->placed_.push_back(std::move(placed));
    return {};
}

Status WeightLoader::prepare(Reader& reader) {
    VkCommandPoolCreateInfo pool = {VK_STRUCTURE_TYPE_COMMAND_POOL_CREATE_INFO};
    pool.flags = VK_COMMAND_POOL_CREATE_RESET_COMMAND_BUFFER_BIT;
    pool.queueFamilyIndex = device_.report().queue_family;
    RL_TRY(checked(vkCreateCommandPool(device_.handle(), &pool, nullptr, &reader.pool),
                   "making a command pool"));
    for (Staging& staging : reader.staging) {
        staging.buffer = RL_TRY(memory_.allocate(kStagingBytes, Use::upload, "staging"));
        staging.fence = RL_TRY(device_.make_fence());
        VkCommandBufferAllocateInfo allocate = {VK_STRUCTURE_TYPE_COMMAND_BUFFER_ALLOCATE_INFO};
        allocate.commandPool = reader.pool;
        allocate.commandBufferCount = 1;
        RL_TRY(checked(vkAllocateCommandBuffers(device_.handle(), &allocate, &staging.commands),
                       "making a command buffer"));
    }
    return {};
}

WeightLoader::~WeightLoader() {
    for (Reader& reader : readers_) {
        for (Staging& staging : reader.staging) {
            if (staging.busy) device_.settle();
            if (staging.fence) vkDestroyFence(device_.handle(), staging.fence, nullptr);
        }
        if (reader.pool) vkDestroyCommandPool(device_.handle(), reader.pool, nullptr);
    }
}

Result<Staging*> WeightLoader::free_staging(Reader& reader) {
    if (!reader.pool) RL_TRY(prepare(reader));
    Staging& staging = reader.staging[reader.turn++ % 2];
    if (staging.busy) RL_TRY(device_.wait(staging.fence, "copying weights to the device"));
    staging.busy = false;
    return &staging;
}

Status WeightLoader::copy(Staging& staging, VkBuffer to, std::span<const VkBufferCopy> regions) {
    RL_TRY(staging.buffer.flush());
    VkCommandBufferBeginInfo begin = {VK_STRUCTURE_TYPE_COMMAND_BUFFER_BEGIN_INFO};
    begin.flags = VK_COMMAND_BUFFER_USAGE_ONE_TIME_SUBMIT_BIT;
    RL_TRY(checked(vkBeginCommandBuffer(staging.commands, &begin), "copying weights to the device"));
    vkCmdCopyBuffer(staging.commands, staging.buffer.handle(), to, uint32_t(regions.size()), regions.data());
    RL_TRY(checked(vkEndCommandBuffer(staging.commands), "copying weights to the device"));
    RL_TRY(device_.submit(std::span(&staging.commands, 1), staging.fence));
    staging.busy = true;
    return {};
}

Result<uint64_t> WeightLoader::load_vector(Reader& reader, const LoadItem& item) {
    const Tensor& tensor = weights_[item.weight].tensor;
    const WeightPart& part = store_->placed_[item.weight].parts[0];
    reader.file.resize(tensor.bytes());
    RL_TRY(source_.read(item.weight, 0, reader.file));
    std::vector<float> values(tensor.shape.elements());
    tensor.format->decode(reader.file.data(), values.data(), values.size());
    const auto bytes = std::as_bytes(std::span(values));
    if (part.buffer.mapped()) {
        std::memcpy(part.buffer.mapped(), bytes.data(), bytes.size());
        RL_TRY(part.buffer.flush());
        return tensor.bytes();
    }
    for (uint64_t at = 0; at < bytes.size(); at += kChunk) {
        Staging& staging = *RL_TRY(free_staging(reader));
        const uint64_t size = std::min<uint64_t>(kChunk, bytes.size() - at);
        std::memcpy(staging.buffer.mapped(), bytes.data() + at, size);
        const VkBufferCopy region = {0, at, size};
        RL_TRY(copy(staging, part.buffer.handle(), std::span(&region, 1)));
    }
    return tensor.bytes();
}

Status WeightLoader::stage(Reader& reader, const LoadItem& item, const PlacedWeight& placed,
                           const WeightPart& part) {
    Staging& staging = *RL_TRY(free_staging(reader));
    const Tensor& tensor = weights_[item.weight].tensor;
    const uint64_t part_blocks = part.rows * placed.cols / tensor.format->block;
    std::array<std::byte*, 4> out = {};
    std::array<VkBufferCopy, 4> regions = {};
    uint64_t at = 0, plane = 0;
    for (uint32_t p = 0; p < placed.layout->planes; ++p) {
        const uint64_t bytes = placed.layout->bytes[p];
        out[p] = staging.buffer.mapped() + at;
        regions[p] = {at, plane + item.first_block * bytes, item.blocks * bytes};
        at += item.blocks * bytes;
        plane += part_blocks * bytes;
    }
    placed.layout->pack(reader.file.data(), item.blocks, out);
    return copy(staging, part.buffer.handle(), std::span(regions).first(placed.layout->planes));
}

Result<uint64_t> WeightLoader::load(Reader& reader, const LoadItem& item) {
    if (item.blocks == 0) return load_vector(reader, item);
    const Tensor& tensor = weights_[item.weight].tensor;
    const PlacedWeight& placed = store_->placed_[item.weight];
    const WeightPart& part = placed.parts[item.part];
    const uint64_t row_blocks = placed.cols / tensor.format->block;
    reader.file.resize(item.blocks * tensor.format->block_bytes);
    RL_TRY(source_.read(
        item.weight, (part.first * row_blocks + item.first_block) * tensor.format->block_bytes, reader.file));
    const uint64_t bytes_read = reader.file.size();
    if (!part.buffer.mapped()) {
        RL_TRY(stage(reader, item, placed, part));
        return bytes_read;
    }
    std::array<std::byte*, 4> out = {};
    uint64_t plane = 0;
    for (uint32_t p = 0; p < placed.layout->planes; ++p) {
        const uint64_t bytes = placed.layout->bytes[p];
        out[p] = part.buffer.mapped() + plane + item.first_block * bytes;
        plane += part.rows * row_blocks * bytes;
    }
    placed.layout->pack(reader.file.data(), item.blocks, out);
    return bytes_read;
}

Status WeightLoader::place_all() {
    for (uint32_t i = 0; i < weights_.size(); ++i) RL_TRY(place(i));
    return {};
}

Result<std::unique_ptr<WeightStore>> WeightLoader::run() {
    RL_TRY(place_all());
    readers_.resize(reader_count(kMostReaders));
    RL_TRY(load_items<LoadItem>(
        weights_, items_, readers_.size(), progress_,
        [this](size_t reader, const LoadItem& item) { return load(readers_[reader], item); }));
    for (Reader& reader : readers_)
        for (Staging& staging : reader.staging)
            if (staging.busy) {
                RL_TRY(device_.wait(staging.fence, "copying weights to the device"));
                staging.busy = false;
            }
    for (const PlacedWeight& placed : store_->placed_)
        for (const WeightPart& part : placed.parts)
            if (part.buffer.mapped()) RL_TRY(part.buffer.flush());
    return std::unique_ptr<WeightStore>(std::move(store_));
}

// Rows go by eights, so that packed planes of every part begin aligned.
uint64_t rows_per_part(const Device& device, const Tensor& tensor) {
    const uint64_t most = std::max<uint64_t>(1, device.largest_buffer() / tensor.row_bytes());
    return most >= 8 ? most / 8 * 8 : most;
}

Result<std::unique_ptr<WeightStore>> place_weights(Device& device, Memory& memory,
                                                   std::span<const WeightInfo> weights) {
    NoSource source;
    const Progress progress;
    WeightLoader loader(device, memory, weights, source, progress);
    RL_TRY(loader.place_all());
    return loader.take();
}

uint64_t staging_bytes(const Memory& memory) {
    return memory.unified() ? 0 : reader_count(kMostReaders) * 2 * kStagingBytes;
}

Result<std::unique_ptr<WeightStore>> load_weights(Device& device, Memory& memory,
                                                  std::span<const WeightInfo> weights, ByteSource& source,
                                                  const Progress& progress) {
    WeightLoader loader(device, memory, weights, source, progress);
    return loader.run();
}

}  // namespace redline::vulkan
