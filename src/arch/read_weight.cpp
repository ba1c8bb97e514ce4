#include "arch/weight_list.h"

#include "base/half.h"

#include <algorithm>
#include <cstring>

namespace redline {

// Matrices whose columns are the file's rows, decoded: the rows of such a matrix are no whole blocks of the
// file's format.
static Status read_transposed(const Gguf& gguf, const WeightInfo& info, const ResolvedWeights::Source& source,
                              uint64_t offset, std::span<std::byte> out) {
    const GgufTensor& found = gguf.tensors()[source.tensor];
    const Format& format = *found.tensor.format;
    const Shape& shape = info.tensor.shape;
    const uint64_t row_bytes = info.tensor.row_bytes(), matrix_bytes = row_bytes * shape.rows;
    const uint64_t element_bytes = row_bytes / shape.cols;
    RL_CHECK(offset % row_bytes == 0 && out.size() % row_bytes == 0, "a part of a row is asked for");
    std::vector<std::byte> rows(shape.cols * found.tensor.row_bytes());
    std::vector<float> values(shape.cols * shape.rows);
    for (size_t done = 0; done < out.size();) {
        const uint64_t matrix = (offset + done) / matrix_bytes, at = (offset + done) % matrix_bytes;
        const uint64_t bytes = std::min<uint64_t>(out.size() - done, matrix_bytes - at);
        RL_TRY(gguf.read(found, source.first_byte + matrix * source.matrix_bytes, rows));
        format.decode(rows.data(), values.data(), values.size());
        for (uint64_t i = 0; i < bytes; i += element_bytes) {
            const uint64_t row = (at + i) / row_bytes, col = (at + i) % row_bytes / element_bytes;
            const float value = values[col * shape.rows + row];
            const uint16_t half = float_to_half(value);
            std::memcpy(out.data() + done + i, element_bytes == 2 ? static_cast<const void*>(&half) : &value,
                        element_bytes);
        }
        done += bytes;
    }
    return {};
}

// Whole numbers as floats, which take as many bytes.
static Status read_integers(const Gguf& gguf, const GgufTensor& found, uint64_t offset,
                            std::span<std::byte> out) {
    RL_CHECK(offset % 4 == 0 && out.size() % 4 == 0, "a part of a number is asked for");
    RL_TRY(gguf.read(found, offset, out));
    for (size_t i = 0; i < out.size(); i += 4) {
        int32_t number;
        std::memcpy(&number, out.data() + i, 4);
        const float value = float(number);
        std::memcpy(out.data() + i, &value, 4);
    }
    return {};
}

Status read_weight(const Gguf& gguf, const WeightInfo& info, const ResolvedWeights::Source& source,
                   uint64_t offset, std::span<std::byte> out) {
    const GgufTensor& found = gguf.tensors()[source.tensor];
    if (source.integers) return read_integers(gguf, found, source.first_byte + offset, out);
    if (source.transposed) return read_transposed(gguf, info, source, offset, out);
    if (source.matrix_bytes == 0) return gguf.read(found, source.first_byte + offset, out);
    const uint64_t matrix_bytes = info.tensor.bytes() / info.tensor.shape.count;
    for (size_t done = 0; done < out.size();) {
        const uint64_t matrix = (offset + done) / matrix_bytes, at = (offset + done) % matrix_bytes;
        const uint64_t bytes = std::min<uint64_t>(out.size() - done, matrix_bytes - at);
        RL_TRY(gguf.read(found, source.first_byte + matrix * source.matrix_bytes + at,
                         out.subspan(done, bytes)));
        done += bytes;
    }
    return {};
}

}  // namespace redline
