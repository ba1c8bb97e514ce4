#include "quantize/importance.h"

#include "gguf/writer.h"

#include <algorithm>
#include <cmath>
#include <cstring>

namespace redline {

namespace {

constexpr std::string_view kSquares = ".in_sum2", kCounts = ".counts";

Result<std::vector<float>> read_floats(const Gguf& file, const GgufTensor& tensor) {
    const Format* format = tensor.tensor.format;
    if (!format || format->name != "F32")
        return error("{}: {} is in {}, not in F32", file.path(), tensor.tensor.name,
                     describe_type(tensor.type));
    std::vector<float> out(tensor.tensor.shape.elements());
    RL_TRY(file.read(tensor, 0, std::as_writable_bytes(std::span(out))));
    for (const float value : out)
        if (!std::isfinite(value) || value < 0.0f)
            return error("{}: {} has a value that is not a sum of squares: {}", file.path(),
                         tensor.tensor.name, value);
    return out;
}

Result<Importance> read_gguf(const std::string& path) {
    const Gguf file = RL_TRY(Gguf::open(path));
    const Metadata& metadata = file.metadata();
    Importance out;
    if (const auto* names = metadata.strings("imatrix.datasets")) out.datasets = *names;
    out.chunks = RL_TRY(metadata.integer("imatrix.chunk_count", 0));
    out.chunk_tokens = RL_TRY(metadata.integer("imatrix.chunk_size", 0));
    for (const GgufTensor& tensor : file.tensors()) {
        const std::string& name = tensor.tensor.name;
        if (!name.ends_with(kSquares)) continue;
        const std::string of = name.substr(0, name.size() - kSquares.size());
        const GgufTensor* counts = file.find(of + std::string(kCounts));
        if (!counts) return error("{}: {} is in the file without {}{}", path, name, of, kCounts);
        TensorImportance entry = {RL_TRY(read_floats(file, tensor)), RL_TRY(read_floats(file, *counts))};
        if (entry.counts.empty() || entry.squares.size() % entry.counts.size() != 0)
            return error("{}: {} has {} values for {} matrices", path, name, entry.squares.size(),
                         entry.counts.size());
        out.tensors.emplace(of, std::move(entry));
    }
    if (out.tensors.empty()) return error("{}: no importance matrix: no tensor ends in {}", path, kSquares);
    return out;
}

// Reads the older form: the number of entries; for each the length of its name, the name, its number of
// calls, its number of values, and the values, which are means times the calls. All numbers have four bytes.
class DatReader {
public:
    explicit DatReader(File file) : file_(std::move(file)) {}

    Result<Importance> read() {
        Importance out;
        const uint32_t entries = RL_TRY(number());
        if (entries == 0) return malformed("it has no entries");
        for (uint32_t i = 0; i < entries; ++i) {
            std::string name(RL_TRY(length(1)), '\0');
            RL_TRY(take(std::as_writable_bytes(std::span(name))));
            const uint32_t calls = RL_TRY(number());
            TensorImportance entry;
            entry.squares.resize(RL_TRY(length(sizeof(float))));
            RL_TRY(take(std::as_writable_bytes(std::span(entry.squares))));
            entry.counts = {float(std::max(calls, 1u))};
            for (const float value : entry.squares)
                if (!std::isfinite(value) || value < 0.0f)
                    return malformed(fmt::format("entry {} has the value {}", i + 1, value));
            if (!out.tensors.emplace(std::move(name), std::move(entry)).second)
                return malformed(fmt::format("entry {} is there twice", i + 1));
        }
        return out;
    }

private:
    Error malformed(std::string_view why) const {
        return error("{}: neither GGUF nor an importance matrix of the older form: {}", file_.path(), why);
    }
    Status take(std::span<std::byte> out) {
        if (out.size() > file_.size() - at_) return malformed("it ends early");
        RL_TRY(file_.read(at_, out));
        at_ += out.size();
        return {};
    }
    Result<uint32_t> number() {
        uint32_t value = 0;
        RL_TRY(take(std::as_writable_bytes(std::span(&value, 1))));
        return value;
    }
    // Reads a count of items of so many bytes; an error when the file is too short for them.
    Result<uint32_t> length(uint64_t bytes) {
        const uint32_t count = RL_TRY(number());
        if (count == 0 || count * bytes > file_.size() - at_) return malformed("it ends early");
        return count;
    }

    File file_;
    uint64_t at_ = 0;
};

MetadataValue metadata_text(std::string text) {
    MetadataValue out;
    out.value = std::move(text);
    out.gguf_type = 8;
    return out;
}

MetadataValue metadata_texts(std::vector<std::string> texts) {
    MetadataValue out;
    out.value = std::move(texts);
    out.gguf_type = 9;
    out.element_type = 8;
    return out;
}

}  // namespace

Result<Importance> read_importance(const std::string& path) {
    File file = RL_TRY(File::open(path));
    char magic[4] = {};
    if (file.size() >= sizeof(magic)) RL_TRY(file.read(0, std::as_writable_bytes(std::span(magic))));
    if (std::string_view(magic, sizeof(magic)) == "GGUF") return read_gguf(path);
    return DatReader(std::move(file)).read();
}

Status write_importance(const std::string& path, const Importance& importance) {
    constexpr uint64_t kAlignment = 32;
    const std::vector<MetadataEntry> metadata = {
        {"general.type", metadata_text("imatrix")},
        {"imatrix.datasets", metadata_texts(importance.datasets)},
        {"imatrix.chunk_count", metadata_u32(uint32_t(importance.chunks))},
        {"imatrix.chunk_size", metadata_u32(uint32_t(importance.chunk_tokens))}};
    std::vector<NewTensor> directory;
    std::vector<std::span<const float>> data;
    for (const auto& [name, data_of] : importance.tensors) {
        const uint64_t matrices = data_of.counts.size(), cols = data_of.squares.size() / matrices;
        // llama-imatrix omits the dimension of the matrices when it is 1.
        const bool one = matrices == 1;
        directory.push_back({name + std::string(kSquares),
                             one ? std::vector{cols} : std::vector{cols, matrices}, 0,
                             data_of.squares.size() * 4});
        directory.push_back({name + std::string(kCounts),
                             one ? std::vector<uint64_t>{1} : std::vector<uint64_t>{1, matrices}, 0,
                             matrices * 4});
        data.push_back(data_of.squares);
        data.push_back(data_of.counts);
    }
    AtomicWriter out = RL_TRY(AtomicWriter::create(path));
    RL_TRY(out.write(gguf_header(metadata, directory, kAlignment)));
    for (const auto values : data) {
        RL_TRY(out.write(std::as_bytes(values)));
        RL_TRY(out.write(std::vector<std::byte>(gguf_padding(values.size_bytes(), kAlignment))));
    }
    return out.commit();
}

Result<ColumnWeights> column_weights(const Importance& importance, const Tensor& tensor) {
    const auto found = importance.tensors.find(tensor.name);
    const uint64_t cols = tensor.shape.cols, matrices = tensor.shape.count;
    if (found == importance.tensors.end()) return ColumnWeights{{}, matrices};
    const TensorImportance& measured = found->second;
    if (measured.squares.size() != cols * matrices ||
        (measured.counts.size() != 1 && measured.counts.size() != matrices))
        return error(
            "the importance matrix has {} values in {} matrices for {}, which has {} in {}: it is of "
            "another model",
            measured.squares.size(), measured.counts.size(), tensor.name, cols * matrices, matrices);
    ColumnWeights out;
    out.weights.assign(cols * matrices, 1.0f);
    for (uint64_t matrix = 0; matrix < matrices; ++matrix) {
        const std::span squares = std::span(measured.squares).subspan(matrix * cols, cols);
        double sum = 0.0;
        for (const float square : squares) sum += double(square);
        if (measured.counts[measured.counts.size() == 1 ? 0 : matrix] == 0.0f || sum == 0.0) {
            ++out.unmeasured;
            continue;
        }
        // A column that was always 0 on this text may be used on another.
        constexpr double kLeast = 1e-4;
        const double scale = double(cols) / sum;
        for (uint64_t i = 0; i < cols; ++i)
            out.weights[matrix * cols + i] = float(std::max(double(squares[i]) * scale, kLeast));
    }
    if (out.unmeasured == matrices) out.weights.clear();
    return out;
}

}  // namespace redline
