#include "weights.h"

#include "backends/shared/load_items.h"

#include <algorithm>
#include <cstring>

namespace redline::hip {

namespace {

constexpr uint64_t kChunk = uint64_t(4) << 20;  // bytes of the file read and taken apart at a time
constexpr uint32_t kMostReaders = 4;            // each with two chunks pinned: 32 MiB in all
constexpr uint64_t kStagingBytes = kChunk + 4096;

// Some blocks of a matrix, or a whole vector.
struct LoadItem {
    uint32_t weight;
    uint64_t first_block;
    uint64_t blocks;
};

// Pinned memory that the device copies from, with the event behind the copy that last used it.
struct Staging {
    Buffer buffer;
    Event event = nullptr;
    bool busy = false;
};

}  // namespace

// Readers take items in turn: read from the file, take the blocks apart into pinned memory, whose copy to the
// device overlaps the next read. Pages of the file itself are never copied from: ROCm pins them one by one.
// The first error ends all.
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
        Stream stream = nullptr;
    };

    Status place(uint32_t index);
    Status prepare(Reader& reader);
    Result<uint64_t> load(Reader& reader, const LoadItem& item);
    Result<uint64_t> load_vector(Reader& reader, const LoadItem& item);
    Status sent(Reader& reader, Staging& staging);
    Status finish(Staging& staging);
    Result<Staging*> free_staging(Reader& reader);

    Device& device_;
    Memory& memory_;
    std::span<const WeightInfo> weights_;
    ByteSource& source_;
    const Progress& progress_;
    std::unique_ptr<HipWeights> store_ = std::make_unique<HipWeights>();
    std::vector<LoadItem> items_;
    std::vector<Reader> readers_;
};

// The buffer of a weight, and the items that fill it.
Status WeightLoader::place(uint32_t index) {
    const Tensor& tensor = weights_[index].tensor;
    PlacedWeight placed;
    placed.elements = tensor.shape.elements();
    const std::string what = "tensor " + tensor.name;
    if (weights_[index].role == WeightRole::vector) {
        placed.buffer = RL_TRY(memory_.allocate(placed.elements * 4, Use::weights, what));
        items_.push_back({index, 0, 0});
    } else {
        placed.layout = weight_layout(*tensor.format);
        if (!placed.layout) return error("{} has no HIP kernels", tensor.format->name);
        placed.buffer = RL_TRY(memory_.allocate(tensor.bytes(), Use::weights, what));
        const uint64_t blocks = placed.elements / tensor.format->block;
        // Multiples of 8 blocks keep the planes of a chunk aligned.
        const uint64_t chunk = std::max<uint64_t>(8, kChunk / tensor.format->block_bytes / 8 * 8);
        for (uint64_t b = 0; b < blocks; b += chunk)
            items_.push_back({index, b, std::min(chunk, blocks - b)});
    }
    store_->bytes_ += placed.buffer.size();
    store_->placed_.push_back(std::move(placed));
    return {};
}

Status WeightLoader::prepare(Reader& reader) {
    constexpr unsigned kNonBlocking = 1, kNoTiming = 2;
    const Functions& call = device_.call();
    RL_TRY(device_.use());
    RL_TRY(device_.checked(call.stream_create(&reader.stream, kNonBlocking), "making a stream"));
    for (Staging& staging : reader.staging) {
        staging.buffer = RL_TRY(memory_.allocate(kStagingBytes, Use::pinned, "staging"));
        RL_TRY(device_.checked(call.event_create(&staging.event, kNoTiming), "making an event"));
    }
    return {};
}

WeightLoader::~WeightLoader() {
    const Functions& call = device_.call();
    call.set_device(device_.report().index);
    for (Reader& reader : readers_) {
        for (Staging& staging : reader.staging) {
            if (staging.busy) call.event_synchronize(staging.event);
            if (staging.event) call.event_destroy(staging.event);
        }
        if (reader.stream) call.stream_destroy(reader.stream);
    }
}

Status WeightLoader::finish(Staging& staging) {
    if (!staging.busy) return {};
    staging.busy = false;
    return device_.checked(device_.call().event_synchronize(staging.event), "copying weights to the device");
}

Result<Staging*> WeightLoader::free_staging(Reader& reader) {
    if (!reader.stream) RL_TRY(prepare(reader));
    Staging& staging = reader.staging[reader.turn++ % 2];
    RL_TRY(finish(staging));
    return &staging;
}

Status WeightLoader::sent(Reader& reader, Staging& staging) {
    staging.busy = true;
    return device_.checked(device_.call().event_record(staging.event, reader.stream),
                           "copying weights to the device");
}

Result<uint64_t> WeightLoader::load_vector(Reader& reader, const LoadItem& item) {
    const Tensor& tensor = weights_[item.weight].tensor;
    const PlacedWeight& placed = store_->placed_[item.weight];
    reader.file.resize(tensor.bytes());
    RL_TRY(source_.read(item.weight, 0, reader.file));
    std::vector<float> values(placed.elements);
    tensor.format->decode(reader.file.data(), values.data(), values.size());
    const auto bytes = std::as_bytes(std::span(values));
    for (uint64_t at = 0; at < bytes.size(); at += kChunk) {
        Staging& staging = *RL_TRY(free_staging(reader));
        const uint64_t size = std::min<uint64_t>(kChunk, bytes.size() - at);
        std::memcpy(staging.buffer.data(), bytes.data() + at, size);
        RL_TRY(device_.checked(
            device_.call().copy_in(placed.buffer.data() + at, staging.buffer.data(), size, reader.stream),
            "copying weights to the device"));
        RL_TRY(sent(reader, staging));
    }
    return tensor.bytes();
}

Result<uint64_t> WeightLoader::load(Reader& reader, const LoadItem& item) {
    if (item.blocks == 0) return load_vector(reader, item);
    const Tensor& tensor = weights_[item.weight].tensor;
    const PlacedWeight& placed = store_->placed_[item.weight];
    reader.file.resize(item.blocks * tensor.format->block_bytes);
    RL_TRY(source_.read(item.weight, item.first_block * tensor.format->block_bytes, reader.file));
    Staging& staging = *RL_TRY(free_staging(reader));
    std::array<std::byte*, 4> out = {};
    uint64_t at = 0;
    for (uint32_t p = 0; p < placed.layout->planes; ++p) {
        out[p] = staging.buffer.data() + at;
        at += item.blocks * placed.layout->bytes[p];
    }
    placed.layout->pack(reader.file.data(), item.blocks, out);
    uint64_t plane = 0;
    for (uint32_t p = 0; p < placed.layout->planes; ++p) {
        const uint64_t bytes = placed.layout->bytes[p];
        RL_TRY(device_.checked(device_.call().copy_in(placed.buffer.data() + plane + item.first_block * bytes,
                                                      out[p], item.blocks * bytes, reader.stream),
                               "copying weights to the device"));
        plane += placed.elements / tensor.format->block * bytes;
    }
    RL_TRY(sent(reader, staging));
    return uint64_t(reader.file.size());
}

Status WeightLoader::place_all() {
    RL_TRY(device_.use());
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
        for (Staging& staging : reader.staging) RL_TRY(finish(staging));
    return std::unique_ptr<WeightStore>(std::move(store_));
}

Result<std::unique_ptr<WeightStore>> place_weights(Device& device, Memory& memory,
                                                   std::span<const WeightInfo> weights) {
    NoSource source;
    const Progress progress;
    WeightLoader loader(device, memory, weights, source, progress);
    RL_TRY(loader.place_all());
    return loader.take();
}

uint64_t staging_bytes() {
    return reader_count(kMostReaders) * 2 * kStagingBytes;
}

Result<std::unique_ptr<WeightStore>> load_weights(Device& device, Memory& memory,
                                                  std::span<const WeightInfo> weights, ByteSource& source,
                                                  const Progress& progress) {
    WeightLoader loader(device, memory, weights, source, progress);
    return loader.run();
}

}  // namespace redline::hip
