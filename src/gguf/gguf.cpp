#include "gguf/gguf.h"

#include "gguf/check.h"
#include "gguf/header.h"
#include "gguf/split.h"

#include <new>
#include <stdexcept>

namespace redline {

namespace {

constexpr uint64_t kMaxSplitFiles = 65535;

// Runs `read` and turns exceptions about memory into an error.
template <typename F>
auto within_memory(const std::string& name, F&& read) -> decltype(read()) {
    try {
        return read();
    } catch (const std::bad_alloc&) {
        return error("{}: not enough memory to read the header", name);
    } catch (const std::length_error&) {
        return error("{}: not enough memory to read the header", name);
    }
}

Result<SplitPart> split_part(const std::string& path, const Metadata& metadata) {
    const auto read = [&]() -> Result<SplitPart> {
        return SplitPart{RL_TRY(metadata.integer("split.no", 0)), RL_TRY(metadata.integer("split.count", 1))};
    };
    auto part = read();
    if (!part) return error("{}: {}", path, part.error().message);
    if (part->count > kMaxSplitFiles)
        return error("{}: split.count {} is above {}", path, part->count, kMaxSplitFiles);
    part->count = std::max<uint64_t>(part->count, 1);
    if (part->index >= part->count)
        return error("{}: split.no {} does not fit split.count {}", path, part->index, part->count);
    return *part;
}

Error not_the_first(const std::string& path, const SplitPart& part) {
    const auto prefix = split_prefix(path, part.index, part.count);
    return error("{} is part {} of {} of a split model: open the first part{}{}", path, part.index + 1,
                 part.count, prefix ? ", " : "", prefix ? split_path(*prefix, 0, part.count) : "");
}

}  // namespace

Status check_gguf_start(std::span<const std::byte> start, const std::string& name) {
    Cursor in(start, start.size(), name);
    return check_is_gguf(in);
}

Result<SplitPart> check_gguf_file(const std::string& path) {
    return within_memory(path, [&]() -> Result<SplitPart> {
        const File file = RL_TRY(File::open(path));
        Cursor in(file);
        const GgufHeader header = RL_TRY(read_header(in));
        return split_part(path, header.metadata);
    });
}

Result<Gguf> Gguf::open(const std::string& path) {
    return within_memory(path, [&]() -> Result<Gguf> {
        auto opened = open_file(path);
        // Explained only where reading fails, since the name alone is no proof.
        if (!opened && is_byte_piece(path))
            return error(
                "{} is one piece of a file that was cut by bytes: join all pieces in order into one file "
                "first "
                "(cat NAME.part1of2 NAME.part2of2 > NAME); as it is, {}",
                path, opened.error().message);
        return opened;
    });
}

Result<Gguf> Gguf::open_file(const std::string& path) {
    Gguf gguf;
    gguf.path_ = path;
    gguf.files_.push_back(RL_TRY(File::open(path)));
    Cursor in(gguf.files_[0]);
    GgufHeader header = RL_TRY(read_header(in));
    RL_TRY(gguf.take(std::move(header), 0));
    RL_TRY(gguf.open_siblings());
    return gguf;
}

Result<Gguf> Gguf::parse(std::span<const std::byte> header, uint64_t file_size, const std::string& name) {
    return within_memory(name, [&]() -> Result<Gguf> {
        Gguf gguf;
        gguf.path_ = name;
        Cursor in(header, file_size, name);
        GgufHeader parsed = RL_TRY(read_header(in));
        RL_TRY(gguf.take(std::move(parsed), 0));
        return gguf;
    });
}

Status Gguf::take(GgufHeader header, uint32_t file) {
    if (file == 0) {
        version_ = header.version;
        alignment_ = header.alignment;
        metadata_ = std::move(header.metadata);
    }
    for (GgufTensor& tensor : header.tensors) {
        tensor.file = file;
        const auto [place, added] = by_name_.try_emplace(tensor.tensor.name, uint32_t(tensors_.size()));
        if (!added) {
            const bool same_file = tensors_[place->second].file == file;
            return error(
                "{}: tensor {} occurs twice{}", path_, place->first,
                same_file ? ""
                          : fmt::format(", in parts {} and {}", tensors_[place->second].file + 1, file + 1));
        }
        tensors_.push_back(std::move(tensor));
    }
    return {};
}

Status Gguf::open_siblings() {
    const SplitPart first = RL_TRY(split_part(path_, metadata_));
    if (first.index != 0) return not_the_first(path_, first);
    if (first.count == 1) return {};
    const auto prefix = split_prefix(path_, 0, first.count);
    if (!prefix)
        return error(
            "{} is the first of {} parts but its name does not end in {}, so the others cannot be found",
            path_, first.count, split_path("", 0, first.count));
    for (uint64_t i = 1; i < first.count; ++i) {
        auto opened = File::open(split_path(*prefix, i, first.count));
        if (!opened)
            return error("part {} of {} of the model is needed too: {}", i + 1, first.count,
                         opened.error().message);
        files_.push_back(std::move(*opened));
        Cursor in(files_.back());
        GgufHeader header = RL_TRY(read_header(in));
        const SplitPart part = RL_TRY(split_part(in.name(), header.metadata));
        if (part.index != i || part.count != first.count)
            return error(
                "{} should be part {} of {} but says it is part {} of {}: files of two models may be mixed",
                in.name(), i + 1, first.count, part.index + 1, part.count);
        RL_TRY(take(std::move(header), uint32_t(i)));
    }
    const auto total = metadata_.integer("split.tensors.count", tensors_.size());
    if (!total) return error("{}: {}", path_, total.error().message);
    if (total.value() != tensors_.size())
        return error("{}: the {} parts hold {} tensors, split.tensors.count says {}", path_, first.count,
                     tensors_.size(), total.value());
    return {};
}

const GgufTensor* Gguf::find(std::string_view name) const {
    const auto place = by_name_.find(name);
    return place == by_name_.end() ? nullptr : &tensors_[place->second];
}

uint64_t Gguf::file_bytes() const {
    uint64_t bytes = 0;
    for (const File& file : files_) bytes += file.size();
    return bytes;
}

Status Gguf::read(const GgufTensor& tensor, uint64_t offset, std::span<std::byte> out) const {
    RL_CHECK(tensor.file < files_.size(), "tensor {} has no file", tensor.tensor.name);
    RL_CHECK(offset <= tensor.bytes && out.size() <= tensor.bytes - offset,
             "{} bytes at {} of tensor {} of {} bytes", out.size(), offset, tensor.tensor.name, tensor.bytes);
    return files_[tensor.file].read(tensor.offset + offset, out);
}

}  // namespace redline
