// Copies of model files with other tensors.
#pragma once

#include "support/models.h"

#include <cstring>

namespace redline::test {

struct TensorData {
    NewTensor tensor;
    std::vector<std::byte> bytes;

    std::vector<float> floats() const {
        std::vector<float> values(bytes.size() / sizeof(float));
        std::memcpy(values.data(), bytes.data(), bytes.size());
        return values;
    }
};

inline TensorData float_tensor(std::string name, std::vector<uint64_t> dims, std::span<const float> values) {
    const auto bytes = std::as_bytes(values);
    return {{std::move(name), std::move(dims), 0, bytes.size()}, {bytes.begin(), bytes.end()}};
}

inline void save_changed(const Gguf& gguf, const std::function<void(std::vector<TensorData>&)>& change,
                         std::vector<MetadataEntry> entries, const std::string& path) {
    for (const auto& [name, value] : gguf.metadata().entries()) {
        const auto same = [&name = name](const MetadataEntry& e) { return e.first == name; };
        if (std::none_of(entries.begin(), entries.end(), same)) entries.emplace_back(name, value);
    }
    std::vector<TensorData> all;
    for (const GgufTensor& t : gguf.tensors()) {
        all.push_back({{t.tensor.name, t.dims, t.type, t.bytes}, std::vector<std::byte>(t.bytes)});
        must(gguf.read(t, 0, all.back().bytes));
    }
    change(all);
    std::vector<NewTensor> heads;
    for (const TensorData& one : all) heads.push_back(one.tensor);
    std::ofstream out(path, std::ios::binary);
    const auto write = [&](std::span<const std::byte> bytes) {
        out.write(reinterpret_cast<const char*>(bytes.data()), std::streamsize(bytes.size()));
    };
    write(gguf_header(entries, heads, 32));
    for (TensorData& one : all) {
        one.bytes.resize(one.bytes.size() + gguf_padding(one.bytes.size(), 32));
        write(one.bytes);
    }
}

}  // namespace redline::test
