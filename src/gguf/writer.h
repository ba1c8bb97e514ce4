// Writes the part of a GGUF file (version 3) before the tensors' data. The data follow in the order of the
// directory, each tensor padded to the alignment.
#pragma once

#include "gguf/metadata.h"

#include <cstddef>

namespace redline {

struct NewTensor {
    std::string name;
    std::vector<uint64_t> dims;  // fastest first
    uint32_t type = 0;           // GGUF type id
    uint64_t bytes = 0;          // of its data, without padding
};

using MetadataEntry = std::pair<std::string, MetadataValue>;

// The counts, metadata, directory, and the padding before the first tensor's data.
std::vector<std::byte> gguf_header(std::span<const MetadataEntry> metadata,
                                   std::span<const NewTensor> tensors, uint64_t alignment);
// The number of padding bytes between `bytes` bytes of data and the next tensor.
uint64_t gguf_padding(uint64_t bytes, uint64_t alignment);

MetadataValue metadata_u32(uint32_t value);

}  // namespace redline
