// What backends share in loading weights in planes: tensors in chunks, read from the file and taken apart
// into the weight itself where the host can write to it, else into staging that the device copies from.
#pragma once

#include "backends/shared/layout.h"
#include "backends/shared/load_items.h"

#include <cstring>

namespace redline {

constexpr uint64_t kLoadChunk = uint64_t(4) << 20;    // bytes of the file that are sent at a time
constexpr uint64_t kLoadPiece = uint64_t(256) << 10;  // of it, so that what is read lies in a core's cache
constexpr uint32_t kMostReaders = 8;                  // each with a piece read, and staging for two chunks
constexpr uint64_t kStagingBytes = kLoadChunk + kMostBookBytes;

// Some blocks of a part of a matrix; none: a whole vector, as floats.
struct LoadItem {
    uint32_t weight = 0;
    uint32_t part = 0;
    uint64_t part_begin = 0;  // in blocks of the tensor
    uint64_t part_blocks = 0;
    uint64_t first_block = 0;  // in the part
    uint64_t blocks = 0;
};

// Blocks of about so many bytes of the file. Multiples of 8 keep the planes of what is taken apart aligned.
inline uint64_t blocks_in(const Format& format, uint64_t bytes) {
    return std::max<uint64_t>(8, bytes / format.block_bytes / 8 * 8);
}

// All items of a part.
inline void add_items(std::vector<LoadItem>& items, const Format& format, LoadItem part) {
    const uint64_t chunk = blocks_in(format, kLoadChunk);
    for (; part.first_block < part.part_blocks; part.first_block += chunk) {
        part.blocks = std::min(chunk, part.part_blocks - part.first_block);
        items.push_back(part);
    }
}

struct CopyRegion {
    uint64_t from = 0;  // in staging
    uint64_t to = 0;    // in the part
    uint64_t bytes = 0;
};

// What load_item() does with a whole vector.
template <typename To>
Result<uint64_t> load_vector_item(To& to, size_t reader, const LoadItem& item, const Tensor& tensor,
                                  ByteSource& source, std::vector<std::byte>& file) {
    file.resize(tensor.bytes());
    RL_TRY(source.read(item.weight, 0, file));
    std::vector<float> values(tensor.shape.elements());
    tensor.format->decode(file.data(), values.data(), values.size());
    const auto bytes = std::as_bytes(std::span(values));
    std::byte* const mapped = to.mapped(item);
    if (mapped) std::memcpy(mapped, bytes.data(), bytes.size());
    for (uint64_t at = 0; !mapped && at < bytes.size(); at += kLoadChunk) {
        const CopyRegion region = {0, at, std::min<uint64_t>(kLoadChunk, bytes.size() - at)};
        std::memcpy(RL_TRY(to.staging(reader)), bytes.data() + at, region.bytes);
        RL_TRY(to.send(reader, item, std::span(&region, 1)));
    }
    return uint64_t(file.size());
}

// Reads the item's blocks and takes them apart, a piece at a time; out[p] is where plane p goes.
inline Status pack_item(const LoadItem& item, const Format& format, const WeightLayout& layout,
                        ByteSource& source, std::vector<std::byte>& file, std::array<std::byte*, 4> out) {
    const uint64_t most = blocks_in(format, kLoadPiece);
    for (uint64_t done = 0; done < item.blocks; done += most) {
        const uint64_t blocks = std::min(most, item.blocks - done);
        file.resize(blocks * format.block_bytes);
        RL_TRY(
            source.read(item.weight, (item.part_begin + item.first_block + done) * format.block_bytes, file));
        layout.pack(file.data(), blocks, out);
        for (uint32_t p = 0; p < layout.planes; ++p) out[p] += blocks * layout.bytes[p];
    }
    return {};
}

// One item, by a reader with its own `file`, the bytes that are read. `to` offers mapped(item), null where
// there is none, staging(reader), free memory of kStagingBytes, and send(reader, item, regions) from there;
// and kBooks, whether a format's code book goes behind its planes. Returns the bytes read.
template <typename To>
Result<uint64_t> load_item(To& to, size_t reader, const LoadItem& item, const Tensor& tensor,
                           ByteSource& source, std::vector<std::byte>& file) {
    if (item.blocks == 0) return load_vector_item(to, reader, item, tensor, source, file);
    const Format& format = *tensor.format;
    std::byte* const mapped = to.mapped(item);
    std::byte* const staging = mapped ? nullptr : RL_TRY(to.staging(reader));
    const WeightLayout& layout = *weight_layout(format);
    std::array<std::byte*, 4> out = {};
    std::array<CopyRegion, 5> regions = {};
    uint64_t from = 0, plane = 0;
    for (uint32_t p = 0; p < layout.planes; ++p) {
        const uint64_t block_bytes = layout.bytes[p];
        regions[p] = {from, plane + item.first_block * block_bytes, item.blocks * block_bytes};
        out[p] = mapped ? mapped + regions[p].to : staging + from;
        from += regions[p].bytes;
        plane += item.part_blocks * block_bytes;
    }
    RL_TRY(pack_item(item, format, layout, source, file, out));
    uint32_t count = layout.planes;
    if (To::kBooks && item.first_block == 0 && !layout.book.empty()) {
        regions[count] = {from, book_begin(plane), layout.book.size_bytes()};
        std::memcpy(mapped ? mapped + regions[count].to : staging + from, layout.book.data(),
                    layout.book.size_bytes());
        ++count;
    }
    if (!mapped) RL_TRY(to.send(reader, item, std::span(regions).first(count)));
    return item.blocks * format.block_bytes;
}

}  // namespace redline
