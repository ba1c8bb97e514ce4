// How weights get into a GPU's memory. Readers take items in turn: they read from the file, and take the
// blocks apart into the mapped weight itself or into staging, whose copy to the device overlaps the next
// read. Pages of the file are never copied from: ROCm pins them one by one. The first error ends all.
//
// A backend says by a struct Gpu what differs:
//   Device, Memory; Placed, a weight with its `layout`, null for a vector of floats
//   Upload(device, memory), with prepare(): of a reader, two buffers of kStagingBytes, data(i), that are
//   copied
//     to a weight by send(i, regions, placed, part); busy[i] until wait(i)
//   kBooks: whether a format's code book goes behind its planes
//   enter(device): what each thread calls first
//   place(device, memory, weight): the weight, without content
//   bytes(placed), fits(placed, weight), mapped(placed, part): null where the host cannot write
//   add_items(items, index, tensor, placed): those that fill a matrix
//   written(placed): all content is there
#pragma once

#include "backends/shared/load_planes.h"

namespace redline::gpu {

template <class Placed>
class PlacedWeights : public WeightStore {
public:
    uint64_t bytes() const override { return bytes_; }
    const Placed& operator[](Weight w) const { return placed_[size_t(w.index)]; }

private:
    template <class Gpu>
    friend class WeightLoader;
    std::vector<Placed> placed_;
    uint64_t bytes_ = 0;
    std::shared_ptr<void> readers_;  // WeightReaders, kept from one refill to the next
};

template <class Gpu>
class WeightReaders {
public:
    WeightReaders(typename Gpu::Device& device, typename Gpu::Memory& memory)
        : device_(device), memory_(memory), all_(reader_count(kMostReaders)) {}

    size_t count() const { return all_.size(); }
    std::vector<std::byte>& file(size_t reader) { return all_[reader].file; }
    // Free memory of kStagingBytes.
    Result<std::byte*> staging(size_t reader) {
        Reader& at = all_[reader];
        RL_TRY(Gpu::enter(device_));
        if (!at.upload) {
            at.upload = std::make_unique<typename Gpu::Upload>(device_, memory_);
            RL_TRY(at.upload->prepare());
        }
        const size_t buffer = ++at.turn % 2;
        RL_TRY(finish(at, buffer));
        return at.upload->data(buffer);
    }
    // What is in the memory that was given last.
    Status send(size_t reader, std::span<const CopyRegion> regions, const typename Gpu::Placed& to,
                uint32_t part) {
        Reader& at = all_[reader];
        RL_TRY(at.upload->send(at.turn % 2, regions, to, part));
        at.upload->busy[at.turn % 2] = true;
        return {};
    }
    // Waits until all that was sent is there.
    Status finish() {
        for (Reader& reader : all_)
            for (const size_t buffer : {0, 1}) RL_TRY(finish(reader, buffer));
        return {};
    }

private:
    struct Reader {
        std::vector<std::byte> file;
        uint32_t turn = 0;
        std::unique_ptr<typename Gpu::Upload> upload;
    };

    Status finish(Reader& reader, size_t buffer) {
        if (!reader.upload || !reader.upload->busy[buffer]) return {};
        RL_TRY(reader.upload->wait(buffer));
        reader.upload->busy[buffer] = false;
        return {};
    }

    typename Gpu::Device& device_;
    typename Gpu::Memory& memory_;
    std::vector<Reader> all_;
};

template <class Gpu>
class WeightLoader {
public:
    using Device = typename Gpu::Device;
    using Memory = typename Gpu::Memory;
    using Placed = typename Gpu::Placed;
    using Stored = PlacedWeights<Placed>;

    WeightLoader(Device& device, Memory& memory, std::span<const WeightInfo> weights, ByteSource& source,
                 const Progress& progress)
        : device_(device), memory_(memory), weights_(weights), source_(source), progress_(progress) {}

    Status place_all() {
        RL_TRY(Gpu::enter(device_));
        for (uint32_t i = 0; i < weights_.size(); ++i) {
            Placed placed = RL_TRY(Gpu::place(device_, memory_, weights_[i]));
            add_items(i, placed);
            store_->bytes_ += Gpu::bytes(placed);
            store_->placed_.push_back(std::move(placed));
        }
        return {};
    }
    Result<std::unique_ptr<WeightStore>> run() {
        RL_TRY(place_all());
        readers_ = std::make_shared<WeightReaders<Gpu>>(device_, memory_);
        RL_TRY(read_all());
        return take();
    }
    // Into weights that are placed, by the readers that were left there the last time.
    Status refill(Stored& store, std::span<const uint32_t> at) {
        RL_TRY(Gpu::enter(device_));
        to_ = &store;
        at_.assign(at.begin(), at.end());
        for (uint32_t i = 0; i < weights_.size(); ++i) {
            const Tensor& tensor = weights_[i].tensor;
            const bool vector = weights_[i].role == WeightRole::vector;
            RL_CHECK(Gpu::fits(placed(i), weights_[i]) &&
                         placed(i).layout == (vector ? nullptr : weight_layout(*tensor.format)),
                     "tensor {} is put where another of other size or format is", tensor.name);
            add_items(i, placed(i));
        }
        if (!store.readers_) store.readers_ = std::make_shared<WeightReaders<Gpu>>(device_, memory_);
        readers_ = std::static_pointer_cast<WeightReaders<Gpu>>(store.readers_);
        return read_all();
    }
    std::unique_ptr<WeightStore> take() { return std::move(store_); }

    // As load_item() asks for them.
    static constexpr bool kBooks = Gpu::kBooks;
    std::byte* mapped(const LoadItem& item) const { return Gpu::mapped(placed(item.weight), item.part); }
    Result<std::byte*> staging(size_t reader) { return readers_->staging(reader); }
    Status send(size_t reader, const LoadItem& item, std::span<const CopyRegion> regions) {
        return readers_->send(reader, regions, placed(item.weight), item.part);
    }

private:
    const Placed& placed(size_t weight) const { return to_->placed_[at_.empty() ? weight : at_[weight]]; }
    void add_items(uint32_t index, const Placed& placed) {
        if (placed.layout)
            Gpu::add_items(items_, index, weights_[index].tensor, placed);
        else
            items_.push_back({.weight = index});
    }
    Status read_all() {
        RL_TRY(load_items<LoadItem>(weights_, items_, readers_->count(), progress_,
                                    [this](size_t reader, const LoadItem& item) {
                                        return load_item(*this, reader, item, weights_[item.weight].tensor,
                                                         source_, readers_->file(reader));
                                    }));
        RL_TRY(readers_->finish());
        for (size_t i = 0; i < weights_.size(); ++i) RL_TRY(Gpu::written(placed(i)));
        return {};
    }

    Device& device_;
    Memory& memory_;
    std::span<const WeightInfo> weights_;
    ByteSource& source_;
    const Progress& progress_;
    std::unique_ptr<Stored> store_ = std::make_unique<Stored>();
    Stored* to_ = store_.get();  // which is filled,
    std::vector<uint32_t> at_;   // these of its weights; none: all
    std::vector<LoadItem> items_;
    std::shared_ptr<WeightReaders<Gpu>> readers_;
};

// Host memory that loading uses besides.
inline uint64_t staging_bytes() {
    return reader_count(kMostReaders) * 2 * kStagingBytes;
}

// Where weights would be placed in this memory, without their content.
template <class Gpu>
Result<std::unique_ptr<WeightStore>> place_weights(typename Gpu::Device& device, typename Gpu::Memory& memory,
                                                   std::span<const WeightInfo> weights) {
    NoSource source;
    const Progress progress;
    WeightLoader<Gpu> loader(device, memory, weights, source, progress);
    RL_TRY(loader.place_all());
    return loader.take();
}

}  // namespace redline::gpu
