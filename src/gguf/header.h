// The header of one GGUF file (version 2 or 3, little-endian): counts, metadata, tensor directory, in this
// order. Internal to this folder; the reader for everyone is gguf.h.
#pragma once

#include "gguf/cursor.h"
#include "gguf/gguf.h"

namespace redline {

struct GgufHeader {
    uint32_t version = 0;
    uint64_t alignment = 32;
    Metadata metadata;
    std::vector<GgufTensor> tensors;  // in file order, each directly behind the one before
};

Result<GgufHeader> read_header(Cursor& in);

// The parts of read_header.
Status check_is_gguf(Cursor& in);  // takes nothing; the error names the kind of file
Result<Metadata> read_metadata(Cursor& in, uint64_t keys);
Result<std::vector<GgufTensor>> read_directory(Cursor& in, uint64_t tensors);
// Turns the offsets of the directory, which count from the start of the data, into offsets in the file.
Status place_tensors(Cursor& in, std::vector<GgufTensor>& tensors, uint64_t alignment);
// A name must be printable ASCII, so that messages can quote it, and not empty.
Status check_name(const Cursor& in, std::string_view name);

}  // namespace redline
