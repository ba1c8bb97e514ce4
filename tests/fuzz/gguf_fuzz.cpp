// libFuzzer target for the GGUF reader: parses the input as a whole file, asks every metadata getter for
// every key, and decodes the tensors that lie within the input. A last byte with bit 0 set claims a file
// larger than the input.
#include "gguf/gguf.h"

#include <algorithm>
#include <cstdlib>
#include <vector>

namespace {

using namespace redline;

// Everything a caller may ask of a key, whatever the key is.
void ask(const Metadata& metadata, const std::string& key) {
    const bool found = metadata.has(key) && metadata.find(key);
    const auto integer = metadata.integer(key);
    const auto real = metadata.real(key);
    const auto text = metadata.text(key);
    (void)metadata.integer(key, 7);
    (void)metadata.real(key, 1.0f);
    (void)metadata.boolean(key, true);
    (void)metadata.text(key, "");
    (void)metadata.integers(key, 3, std::nullopt);
    (void)metadata.integers(key, 2, 5);
    const auto* strings = metadata.strings(key);
    const auto* integers = metadata.integers(key);
    const auto* floats = metadata.floats(key);
    if (integers && metadata.integers(key, integers->size(), std::nullopt).ok() !=
                        std::all_of(integers->begin(), integers->end(), [](int64_t v) { return v >= 0; }))
        std::abort();
    if (!found || int(strings != nullptr) + int(integers != nullptr) + int(floats != nullptr) > 1)
        std::abort();
    if (integer.ok() && text.ok()) std::abort();
}

// Checks the reader's promises about the directory, and the values of the tensors at hand.
void check_tensors(const Gguf& gguf, std::span<const std::byte> input, uint64_t file_size) {
    for (const GgufTensor& tensor : gguf.tensors()) {
        if (gguf.find(tensor.tensor.name) != &tensor) std::abort();
        if (tensor.bytes == 0 || tensor.offset > file_size || tensor.bytes > file_size - tensor.offset)
            std::abort();
        if (!tensor.tensor.format) continue;
        if (tensor.tensor.bytes() != tensor.bytes) std::abort();
        if (tensor.offset > input.size() || tensor.bytes > input.size() - tensor.offset) continue;
        // A copy is aligned as every buffer for weights is.
        const auto data = input.subspan(size_t(tensor.offset), size_t(tensor.bytes));
        const std::vector<std::byte> copy(data.begin(), data.end());
        std::vector<float> values(size_t(tensor.tensor.shape.elements()));
        tensor.tensor.format->decode(copy.data(), values.data(), values.size());
    }
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
    const auto input = std::as_bytes(std::span(data, size));
    const bool larger = size > 0 && (data[size - 1] & 1);
    const uint64_t file_size = larger ? uint64_t(1) << 62 : size;
    const auto gguf = redline::Gguf::parse(input, file_size, "input");
    if (!gguf) {
        if (gguf.error().message.empty()) std::abort();
        return 0;
    }
    for (const auto& entry : gguf.value().metadata().entries()) ask(gguf.value().metadata(), entry.first);
    (void)gguf.value().metadata().integer("absent");
    (void)gguf.value().find("absent");
    check_tensors(gguf.value(), input, file_size);
    return 0;
}
