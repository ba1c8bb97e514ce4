#include "weights.h"

#include "backends/shared/load_planes.h"

namespace redline::vulkan {

namespace {

// Host memory that the device copies from, with the fence of the copy that last used it.
struct Staging {
    Buffer buffer;
    VkCommandBuffer commands = VK_NULL_HANDLE;
    VkFence fence = VK_NULL_HANDLE;
    bool busy = false;
};

}  // namespace

// What readers of weights have each.
class WeightReaders {
public:
    struct Reader {
        std::vector<std::byte> file;
        Staging staging[2];
        uint32_t turn = 0;
        VkCommandPool pool = VK_NULL_HANDLE;
    };

    WeightReaders(Device& device, Memory& memory)
        : device_(device), memory_(memory), all_(reader_count(kMostReaders)) {}
    ~WeightReaders();

    size_t count() const { return all_.size(); }
    Reader& operator[](size_t reader) { return all_[reader]; }
    // Of the reader, free memory of kStagingBytes.
    Result<std::byte*> staging(size_t reader);
    // Until all that was sent is there.
    Status finish();

private:
    Status prepare(Reader& reader);
    Status finish(Staging& staging);

    Device& device_;
    Memory& memory_;
    std::vector<Reader> all_;
};

// Readers take items in turn: read from the file, take the blocks apart into the mapped weight itself or into
// staging, whose copy to the device overlaps the next read. The first error ends all.
class WeightLoader {
public:
    WeightLoader(Device& device, Memory& memory, std::span<const WeightInfo> weights, ByteSource& source,
                 const Progress& progress)
        : device_(device), memory_(memory), weights_(weights), source_(source), progress_(progress) {}

    Status place_all();
    Result<std::unique_ptr<WeightStore>> run();
    // Into weights that are placed, by the readers that were left there the last time.
    Status refill(VulkanWeights& store, std::span<const uint32_t> at);
    std::unique_ptr<WeightStore> take() { return std::move(store_); }

    // As load_item() asks for them.
    static constexpr bool kBooks = true;
    std::byte* mapped(const LoadItem& item) const { return part(item).buffer.mapped(); }
    Result<std::byte*> staging(size_t reader) { return readers_->staging(reader); }
    Status send(size_t reader, const LoadItem& item, std::span<const CopyRegion> regions);

private:
    Status place(uint32_t index);
    void add_items(uint32_t index, const PlacedWeight& placed);
    Status read_all();
    const PlacedWeight& placed(size_t weight) const {
        return to_->placed_[at_.empty() ? weight : at_[weight]];
    }
    const WeightPart& part(const LoadItem& item) const { return placed(item.weight).parts[item.part]; }

    Device& device_;
    Memory& memory_;
    std::span<const WeightInfo> weights_;
    ByteSource& source_;
    const Progress& progress_;
    std::unique_ptr<VulkanWeights> store_ = std::make_unique<VulkanWeights>();
    VulkanWeights* to_ = store_.get();  // which is filled,
    std::vector<uint32_t> at_;          // these of its weights; none: all
    std::vector<LoadItem> items_;
    std::shared_ptr<WeightReaders> readers_;
};

// The items that fill a weight.
void WeightLoader::add_items(uint32_t index, const PlacedWeight& placed) {
    if (!placed.layout) return items_.push_back({.weight = index});
    const Tensor& tensor = weights_[index].tensor;
    const uint64_t row_blocks = tensor.shape.cols / tensor.format->block;
    for (uint32_t part = 0; part < placed.parts.size(); ++part)
        redline::add_items(
            items_, *tensor.format,
            {index, part, placed.parts[part].first * row_blocks, placed.parts[part].rows * row_blocks, 0, 0});
}

// Buffers of a weight, too.
Status WeightLoader::place(uint32_t index) {
    const Tensor& tensor = weights_[index].tensor;
    PlacedWeight placed;
    placed.cols = tensor.shape.cols;
    const uint64_t rows = tensor.shape.rows * tensor.shape.count;
    if (weights_[index].role == WeightRole::vector) {
        placed.parts.push_back(
            {0, 1,
             RL_TRY(memory_.allocate(tensor.shape.elements() * 4, Use::weights, "tensor " + tensor.name))});
    } else {
        placed.layout = weight_layout(*tensor.format);
        if (!placed.layout)
            return error("tensor {}: {} has no Vulkan kernels", tensor.name, tensor.format->name);
        const uint64_t step = rows_per_part(device_, tensor);
        for (uint64_t first = 0; first < rows; first += step) {
            const uint64_t count = std::min(step, rows - first);
            placed.parts.push_back(
                {first, count,
                 RL_TRY(memory_.allocate(bytes_with_book(*placed.layout, count * tensor.row_bytes()),
                                         Use::weights, "tensor " + tensor.name))});
        }
    }
    add_items(index, placed);
    for (const WeightPart& part : placed.parts) store_->bytes_ += part.buffer.size();
    store_->placed_.push_back(std::move(placed));
    return {};
}

Status WeightReaders::prepare(Reader& reader) {
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

WeightReaders::~WeightReaders() {
    for (Reader& reader : all_) {
        for (Staging& staging : reader.staging) {
            if (staging.busy) device_.settle();
            if (staging.fence) vkDestroyFence(device_.handle(), staging.fence, nullptr);
        }
        if (reader.pool) vkDestroyCommandPool(device_.handle(), reader.pool, nullptr);
    }
}

Status WeightReaders::finish(Staging& staging) {
    if (!staging.busy) return {};
    RL_TRY(device_.wait(staging.fence, "copying weights to the device"));
    staging.busy = false;
    return {};
}

Status WeightReaders::finish() {
    for (Reader& reader : all_)
        for (Staging& staging : reader.staging) RL_TRY(finish(staging));
    return {};
}

Result<std::byte*> WeightReaders::staging(size_t reader) {
    Reader& own = all_[reader];
    if (!own.pool) RL_TRY(prepare(own));
    Staging& staging = own.staging[++own.turn % 2];
    RL_TRY(finish(staging));
    return staging.buffer.mapped();
}

Status WeightLoader::send(size_t reader, const LoadItem& item, std::span<const CopyRegion> regions) {
    WeightReaders::Reader& own = (*readers_)[reader];
    Staging& staging = own.staging[own.turn % 2];
    std::vector<VkBufferCopy> copies;
    for (const CopyRegion& region : regions) copies.push_back({region.from, region.to, region.bytes});
    RL_TRY(staging.buffer.flush());
    VkCommandBufferBeginInfo begin = {VK_STRUCTURE_TYPE_COMMAND_BUFFER_BEGIN_INFO};
    begin.flags = VK_COMMAND_BUFFER_USAGE_ONE_TIME_SUBMIT_BIT;
    RL_TRY(checked(vkBeginCommandBuffer(staging.commands, &begin), "copying weights to the device"));
    vkCmdCopyBuffer(staging.commands, staging.buffer.handle(), part(item).buffer.handle(),
                    uint32_t(copies.size()), copies.data());
    RL_TRY(checked(vkEndCommandBuffer(staging.commands), "copying weights to the device"));
    RL_TRY(device_.submit(std::span(&staging.commands, 1), staging.fence));
    staging.busy = true;
    return {};
}

Status WeightLoader::place_all() {
    for (uint32_t i = 0; i < weights_.size(); ++i) RL_TRY(place(i));
    return {};
}

Status WeightLoader::read_all() {
    RL_TRY(load_items<LoadItem>(weights_, items_, readers_->count(), progress_,
                                [this](size_t reader, const LoadItem& item) {
                                    return load_item(*this, reader, item, weights_[item.weight].tensor,
                                                     source_, (*readers_)[reader].file);
                                }));
    RL_TRY(readers_->finish());
    for (size_t i = 0; i < weights_.size(); ++i)
        for (const WeightPart& part : placed(i).parts)
            if (part.buffer.mapped()) RL_TRY(part.buffer.flush());
    return {};
}

Result<std::unique_ptr<WeightStore>> WeightLoader::run() {
    RL_TRY(place_all());
    readers_ = std::make_shared<WeightReaders>(device_, memory_);
    RL_TRY(read_all());
    return std::unique_ptr<WeightStore>(std::move(store_));
}

Status WeightLoader::refill(VulkanWeights& store, std::span<const uint32_t> at) {
    to_ = &store;
    at_.assign(at.begin(), at.end());
    for (uint32_t i = 0; i < weights_.size(); ++i) {
        const Tensor& tensor = weights_[i].tensor;
        const bool vector = weights_[i].role == WeightRole::vector;
        const WeightPart& last = placed(i).parts.back();
        const bool fits = vector ? last.buffer.size() >= tensor.shape.elements() * 4
                                 : placed(i).cols == tensor.shape.cols &&
                                       last.first + last.rows == tensor.shape.rows * tensor.shape.count;
        RL_CHECK(fits && placed(i).layout == (vector ? nullptr : weight_layout(*tensor.format)),
                 "tensor {} is put where another of other size or format is", tensor.name);
        add_items(i, placed(i));
    }
    if (!store.readers_) store.readers_ = std::make_shared<WeightReaders>(device_, memory_);
    readers_ = store.readers_;
    return read_all();
}

// Rows go by eights, so that packed planes of every part begin aligned.
uint64_t rows_per_part(const Device& device, const Tensor& tensor) {
    const WeightLayout* const layout = weight_layout(*tensor.format);
    const uint64_t book = layout && !layout->book.empty() ? kMostBookBytes : 0;
    const uint64_t most = std::max<uint64_t>(1, (device.largest_buffer() - book) / tensor.row_bytes());
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

Status refill_weights(Device& device, Memory& memory, WeightStore& store, std::span<const uint32_t> at,
                      std::span<const WeightInfo> weights, ByteSource& source) {
    const Progress progress;
    WeightLoader loader(device, memory, weights, source, progress);
    return loader.refill(static_cast<VulkanWeights&>(store), at);
}

}  // namespace redline::vulkan
