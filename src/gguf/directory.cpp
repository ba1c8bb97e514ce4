#include "gguf/header.h"

namespace redline {

namespace {

constexpr uint64_t kMaxTensorName = 63;
constexpr uint32_t kMaxDims = 4;

Error type_error(const Cursor& in, uint32_t type) {
    const std::string described = describe_type(type);
    if (type >= kFirstIkType)
        return in.fail(
            "has {}: types from {} on are written by ik_llama.cpp only, use a file made by llama.cpp",
            described, kFirstIkType);
    if (type > 42)
        return in.fail(
            "has {}, newer than this program: use another quantization of the model, such as Q4_K_M",
            described);
    if (type >= 36)
        return in.fail("has {}, which was laid out for one processor: use an IQ4_NL file", described);
    if (type >= 31)
        return in.fail("has {}, which was laid out for one processor: use a Q4_0 file", described);
    return in.fail("has {}: use another quantization of the model, such as Q4_K_M", described);
}

// Reads dims and shape. The product of all dimensions is below 2^63.
Status read_dims(Cursor& in, GgufTensor& out) {
    const uint32_t count = RL_TRY(in.number<uint32_t>());
    if (count == 0 || count > kMaxDims)
        return in.fail("has {} dimensions, 1 to {} are accepted", count, kMaxDims);
    int64_t elements = 1;
    for (uint32_t i = 0; i < count; ++i) {
        const int64_t size = RL_TRY(in.number<int64_t>());
        if (size < 1) return in.fail("has the size {} in dimension {}, at least 1 is expected", size, i);
        if (__builtin_mul_overflow(elements, size, &elements))
            return in.fail("has more than 2^63 elements (dimension {} is {})", i, size);
        out.dims.push_back(uint64_t(size));
    }
    const auto dim = [&](size_t i) { return i < out.dims.size() ? out.dims[i] : 1; };
    out.tensor.shape = Shape{dim(2) * dim(3), dim(1), dim(0)};
    return {};
}

Status size_tensor(const Cursor& in, GgufTensor& out) {
    const auto type = find_type(out.type);
    if (!type) return type_error(in, out.type);
    out.tensor.format = find_format(out.type);
    const Shape& shape = out.tensor.shape;
    if (shape.cols % type->block != 0)
        return in.fail("has rows of {} elements, not a multiple of the {} in a block of {}", shape.cols,
                       type->block, type->name);
    if (__builtin_mul_overflow(shape.cols / type->block, uint64_t(type->block_bytes), &out.bytes) ||
        __builtin_mul_overflow(out.bytes, shape.rows, &out.bytes) ||
        __builtin_mul_overflow(out.bytes, shape.count, &out.bytes))
        return in.fail("has more than 2^64 bytes");
    return {};
}

Result<GgufTensor> read_tensor(Cursor& in) {
    GgufTensor out;
    out.tensor.name = RL_TRY(in.string(kMaxTensorName));
    RL_TRY(check_name(in, out.tensor.name));
    in.set_context(fmt::format("tensor {}", out.tensor.name));
    RL_TRY(read_dims(in, out));
    out.type = RL_TRY(in.number<uint32_t>());
    out.offset = RL_TRY(in.number<uint64_t>());
    RL_TRY(size_tensor(in, out));
    return out;
}

uint64_t round_up(uint64_t bytes, uint64_t alignment) {
    return (bytes + alignment - 1) / alignment * alignment;
}

// `expected`: the end of the tensor before this one, padded. llama.cpp demands this, too: a tensor that lies
// elsewhere has another type or shape than was written.
Status check_extent(Cursor& in, const GgufTensor& tensor, uint64_t expected, uint64_t data_bytes) {
    in.set_context(fmt::format("tensor {}", tensor.tensor.name));
    if (tensor.offset != expected)
        return in.fail(
            "is at offset {} of the data, {} is expected, where the tensor before it ends: its offset, or "
            "the "
            "type or shape of one before it, is damaged",
            tensor.offset, expected);
    if (tensor.offset > data_bytes || tensor.bytes > data_bytes - tensor.offset)
        return in.fail(
            "takes {} bytes at offset {} of the data but the file has {}: it is cut short (an incomplete "
            "download?) or "
            "damaged",
            tensor.bytes, tensor.offset, data_bytes);
    return {};
}

}  // namespace

Result<std::vector<GgufTensor>> read_directory(Cursor& in, uint64_t tensors) {
    std::vector<GgufTensor> directory;
    for (uint64_t i = 0; i < tensors; ++i) {
        in.set_context(fmt::format("tensor {} of {}", i + 1, tensors));
        directory.push_back(RL_TRY(read_tensor(in)));
    }
    return directory;
}

Status place_tensors(Cursor& in, std::vector<GgufTensor>& tensors, uint64_t alignment) {
    if (tensors.empty()) return {};  // then the file may end without padding
    const uint64_t data_start = round_up(in.position(), alignment);
    if (data_start > in.file_size())
        return in.fail("ends at byte {}, before its data at byte {}: the file is cut short", in.file_size(),
                       data_start);
    uint64_t expected = 0;
    for (GgufTensor& tensor : tensors) {
        RL_TRY(check_extent(in, tensor, expected, in.file_size() - data_start));
        // Cannot overflow: it is within the file, whose data begins behind at least one alignment.
        expected = round_up(tensor.offset + tensor.bytes, alignment);
        tensor.offset += data_start;
    }
    return {};
}

}  // namespace redline
