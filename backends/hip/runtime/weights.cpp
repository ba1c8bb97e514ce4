#include "weights.h"

#include "backends/shared/load_planes.h"

namespace redline::hip {

namespace {

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

    // As load_item() asks for them.
    static constexpr bool kBooks = false;  // they are in the kernels' modules
    std::byte* mapped(const LoadItem&) const { return nullptr; }
    Result<std::byte*> staging(size_t reader);
    Status send(size_t reader, const LoadItem& item, std::span<const CopyRegion> regions);

private:
    struct Reader {
        std::vector<std::byte> file;
        Staging staging[2];
        uint32_t turn = 0;
        Stream stream = nullptr;
    };

    Status place(uint32_t index);
    Status prepare(Reader& reader);
    Status finish(Staging& staging);

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
        items_.push_back({.weight = index});
    } else {
        placed.layout = weight_layout(*tensor.format);
        if (!placed.layout) return error("{} has no HIP kernels", tensor.format->name);
        placed.buffer = RL_TRY(memory_.allocate(tensor.bytes(), Use::weights, what));
        add_items(items_, *tensor.format,
                  {.weight = index, .part_blocks = placed.elements / tensor.format->block});
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

Result<std::byte*> WeightLoader::staging(size_t reader) {
    Reader& own = readers_[reader];
    if (!own.stream) RL_TRY(prepare(own));
    Staging& staging = own.staging[++own.turn % 2];
    RL_TRY(finish(staging));
    return staging.buffer.data();
}

Status WeightLoader::send(size_t reader, const LoadItem& item, std::span<const CopyRegion> regions) {
    Reader& own = readers_[reader];
    Staging& staging = own.staging[own.turn % 2];
    std::byte* const to = store_->placed_[item.weight].buffer.data();
    for (const CopyRegion& region : regions)
        RL_TRY(device_.checked(device_.call().copy_in(to + region.to, staging.buffer.data() + region.from,
                                                      region.bytes, own.stream),
                               "copying weights to the device"));
    staging.busy = true;
    return device_.checked(device_.call().event_record(staging.event, own.stream),
                           "copying weights to the device");
}

Status WeightLoader::place_all() {
    RL_TRY(device_.use());
    for (uint32_t i = 0; i < weights_.size(); ++i) RL_TRY(place(i));
    return {};
}

Result<std::unique_ptr<WeightStore>> WeightLoader::run() {
    RL_TRY(place_all());
    readers_.resize(reader_count(kMostReaders));
    RL_TRY(load_items<LoadItem>(weights_, items_, readers_.size(), progress_,
                                [this](size_t reader, const LoadItem& item) {
                                    return load_item(*this, reader, item, weights_[item.weight].tensor,
                                                     source_, readers_[reader].file);
                                }));
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
