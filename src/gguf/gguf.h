// A model in GGUF form: metadata and tensor directory, possibly over several split files. Hostile-first:
// every length is checked against the bytes that remain before anything is allocated, and every error names
// the file.
#pragma once

#include "base/file.h"
#include "formats/tensor.h"
#include "gguf/metadata.h"

#include <map>

namespace redline {

// A tensor of the file. `tensor.format` is null when the type is known to GGUF but not to this program, so
// that `info` can still list it; loading it as a weight is an error that names the type. `tensor.shape` is
// (dims[2] * dims[3], dims[1], dims[0]), with 1 for missing dimensions.
struct GgufTensor {
    Tensor tensor;
    uint32_t type = 0;           // GGUF type id
    std::vector<uint64_t> dims;  // as in the file, fastest first
    uint32_t file = 0;           // index of the split file
    uint64_t offset = 0;         // from the start of that file
    uint64_t bytes = 0;
};

struct GgufHeader;  // one file's header, internal to this folder

class Gguf {
public:
    // Opens `path`; when it is the first of a split model, opens its siblings too.
    static Result<Gguf> open(const std::string& path);
    // Parses a header from memory (tests, fuzzing); `file_size` is the claimed size of the file. The result
    // has no files: read() and file() must not be called, and siblings of a split file are not opened.
    static Result<Gguf> parse(std::span<const std::byte> header, uint64_t file_size, const std::string& name);

    const std::string& path() const { return path_; }
    const Metadata& metadata() const { return metadata_; }
    uint32_t version() const { return version_; }
    uint64_t alignment() const { return alignment_; }
    std::span<const GgufTensor> tensors() const { return tensors_; }
    const GgufTensor* find(std::string_view name) const;
    uint64_t file_bytes() const;  // of all split files together
    const File& file(uint32_t index) const { return files_[index]; }
    size_t file_count() const { return files_.size(); }
    // Reads part of a tensor's bytes; the part must lie inside the tensor.
    Status read(const GgufTensor& tensor, uint64_t offset, std::span<std::byte> out) const;

private:
    Gguf() = default;
    static Result<Gguf> open_file(const std::string& path);
    Status take(GgufHeader header, uint32_t file);  // appends the tensors of one split file
    Status open_siblings();

    std::string path_;
    uint32_t version_ = 0;
    uint64_t alignment_ = 32;
    Metadata metadata_;
    std::vector<GgufTensor> tensors_;
    std::map<std::string, uint32_t, std::less<>> by_name_;  // indices into tensors_
    std::vector<File> files_;
};

}  // namespace redline
