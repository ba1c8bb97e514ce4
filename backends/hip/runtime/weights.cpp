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

// What readers of weights have each.
class WeightReaders {
public:
    struct Reader {
        std::vector<std::byte> file;
        Staging staging[2];
        uint32_t turn = 0;
        Stream stream = nullptr;
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

// Readers take items in turn: read from the file, take the blocks apart into pinned memory, whose copy to the
// device overlaps the next read. Pages of the file itself are never copied from: ROCm pins them one by one.
// The first error ends all.
class WeightLoader {
public:
    WeightLoader(Device& device, Memory& memory, std::span<const WeightInfo> weights, ByteSource& source,
                 const Progress& progress)
        : device_(device), memory_(memory), weights_(weights), source_(source), progress_(progress) {}

    Status place_all();
    Result<std::unique_ptr<WeightStore>> run();
    // Into weights that are placed, by the readers that were left there the last time.
    Status refill(HipWeights& store, std::span<const uint32_t> at);
    std::unique_ptr<WeightStore> take() { return std::move(store_); }

    // As load_item() asks for them.
    static constexpr bool kBooks = false;  // they are in the kernels' modules
    std::byte* mapped(const LoadItem&) const { return nullptr; }
    Result<std::byte*> staging(size_t reader) { return readers_->staging(reader); }
    Status send(size_t reader, const LoadItem& item, std::span<const CopyRegion> regions);

private:
    Status place(uint32_t index);
    void add_items(uint32_t index, const PlacedWeight& placed);
    Status read_all();

    Device& device_;
    Memory& memory_;
    std::span<const WeightInfo> weights_;
    ByteSource& source_;
    const Progress& progress_;
    std::unique_ptr<HipWeights> store_ = std::make_unique<HipWeights>();
    HipWeights* to_ = store_.get();  // which is filled,
    std::vector<uint32_t> at_;       // these of its weights; none: all
    std::vector<LoadItem> items_;
    std::shared_ptr<WeightReaders> readers_;
};

// The items that fill a weight.
void WeightLoader::add_items(uint32_t index, const PlacedWeight& placed) {
    if (!placed.layout) return items_.push_back({.weight = index});
    const Format& format = *weights_[index].tensor.format;
    redline::add_items(items_, format, {.weight = index, .part_blocks = placed.elements / format.block});
}

// The buffer of a weight, too.
Status WeightLoader::place(uint32_t index) {
    const Tensor& tensor = weights_[index].tensor;
    PlacedWeight placed;
    placed.elements = tensor.shape.elements();
    const std::string what = "tensor " + tensor.name;
    if (weights_[index].role == WeightRole::vector) {
        placed.buffer = RL_TRY(memory_.allocate(placed.elements * 4, Use::weights, what));
    } else {
        placed.layout = weight_layout(*tensor.format);
        if (!placed.layout) return error("{} has no HIP kernels", tensor.format->name);
        placed.buffer = RL_TRY(memory_.allocate(tensor.bytes(), Use::weights, what));
    }
    add_items(index, placed);
    store_->bytes_ += placed.buffer.size();
    store_->placed_.push_back(std::move(placed));
    return {};
}

Status WeightReaders::prepare(Reader& reader) {
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

WeightReaders::~WeightReaders() {
    const Functions& call = device_.call();
    call.set_device(device_.report().index);
    for (Reader& reader : all_) {
        for (Staging& staging : reader.staging) {
            if (staging.busy) call.event_synchronize(staging.event);
            if (staging.event) call.event_destroy(staging.event);
        }
        if (reader.stream) call.stream_destroy(reader.stream);
    }
}

Status WeightReaders::finish(Staging& staging) {
    if (!staging.busy) return {};
    staging.busy = false;
    return device_.checked(device_.call().event_synchronize(staging.event), "copying weights to the device");
}

Status WeightReaders::finish() {
    for (Reader& reader : all_)
        for (Staging& staging : reader.staging) RL_TRY(finish(staging));
    return {};
}

Result<std::byte*> WeightReaders::staging(size_t reader) {
    Reader& own = all_[reader];
    RL_TRY(device_.use());
    if (!own.stream) RL_TRY(prepare(own));
    Staging& staging = own.staging[++own.turn % 2];
    RL_TRY(finish(staging));
    return staging.buffer.data();
}

Status WeightLoader::send(size_t reader, const LoadItem& item, std::span<const CopyRegion> regions) {
    WeightReaders::Reader& own = (*readers_)[reader];
    Staging& staging = own.staging[own.turn % 2];
    const size_t number = at_.empty() ? item.weight : at_[item.weight];
    std::byte* const to = to_->placed_[number].buffer.data();
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

Status WeightLoader::read_all() {
    RL_TRY(load_items<LoadItem>(weights_, items_, readers_->count(), progress_,
                                [this](size_t reader, const LoadItem& item) {
                                    return load_item(*this, reader, item, weights_[item.weight].tensor,
                                                     source_, (*readers_)[reader].file);
                                }));
    return readers_->finish();
}

Result<std::unique_ptr<WeightStore>> WeightLoader::run() {
    RL_TRY(place_all());
    readers_ = std::make_shared<WeightReaders>(device_, memory_);
    RL_TRY(read_all());
    return std::unique_ptr<WeightStore>(std::move(store_));
}

Status WeightLoader::refill(HipWeights& store, std::span<const uint32_t> at) {
    RL_TRY(device_.use());
    to_ = &store;
    at_.assign(at.begin(), at.end());
    for (uint32_t i = 0; i < weights_.size(); ++i) {
        const PlacedWeight& placed = store.placed_[at_[i]];
        const Tensor& tensor = weights_[i].tensor;
        const bool vector = weights_[i].role == WeightRole::vector;
        RL_CHECK(placed.elements == tensor.shape.elements() &&
                     placed.layout == (vector ? nullptr : weight_layout(*tensor.format)),
                 "tensor {} is put where another of other size or format is", tensor.name);
        add_items(i, placed);
    }
    if (!store.readers_) store.readers_ = std::make_shared<WeightReaders>(device_, memory_);
    readers_ = store.readers_;
    return read_all();
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

Status refill_weights(Device& device, Memory& memory, WeightStore& store, std::span<const uint32_t> at,
                      std::span<const WeightInfo> weights, ByteSource& source) {
    const Progress progress;
    WeightLoader loader(device, memory, weights, source, progress);
    return loader.refill(static_cast<HipWeights&>(store), at);
}

}  // namespace redline::hip
