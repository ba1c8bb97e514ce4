#include "plan/stored_weights.h"

#include <algorithm>
#include <cstring>

namespace redline {

namespace {

const Format& halfs() {
    static const Format* const f16 = find_format("F16");
    RL_CHECK(f16, "this build has no F16");
    return *f16;
}

// Converts `values` to consecutive halves. An error names the first value that no half can hold.
Status to_halfs(std::span<const float> values, std::string_view format, std::byte* out) {
    uint32_t largest = 0;
    for (size_t i = 0; i < values.size(); ++i) {
        const uint16_t half = float_to_half(values[i]);
        largest = std::max<uint32_t>(largest, half & 0x7FFFu);
        std::memcpy(out + i * sizeof(half), &half, sizeof(half));
    }
    if (largest < 0x7C00u) return {};
    const auto bad = std::find_if(values.begin(), values.end(),
                                  [](float v) { return (float_to_half(v) & 0x7C00u) == 0x7C00u; });
    return error("a weight in {} is {}, and the half floats that it is decoded to here hold 65504 at most",
                 format, *bad);
}

// Supplies a backend with the halves that stored_weights() promised it.
class DecodingSource : public ByteSource {
public:
    DecodingSource(ByteSource& file, std::span<const WeightInfo> in_file, std::span<const WeightInfo> stored)
        : file_(file), in_file_(in_file), stored_(stored) {}

    Status read(size_t tensor, uint64_t offset, std::span<std::byte> out) override {
        const Format& format = *in_file_[tensor].tensor.format;
        if (stored_[tensor].tensor.format == &format) return file_.read(tensor, offset, out);
        RL_CHECK(offset % kHalf == 0 && out.size() % kHalf == 0, "half a half is asked for");
        // The elements asked for may begin and end within a block.
        const uint64_t first = offset / kHalf, end = first + out.size() / kHalf;
        const uint64_t first_block = first / format.block,
                       end_block = (end + format.block - 1) / format.block;
        std::vector<std::byte> blocks((end_block - first_block) * format.block_bytes);
        RL_TRY(file_.read(tensor, first_block * format.block_bytes, blocks));
        const uint64_t step = std::max<uint64_t>(1, kDecodedAtATime / format.block);
        std::vector<float> values(step * format.block);
        for (uint64_t b = first_block; b < end_block; b += step) {
            const uint64_t count = std::min(step, end_block - b) * format.block, at = b * format.block;
            format.decode(blocks.data() + (b - first_block) * format.block_bytes, values.data(), count);
            const uint64_t from = std::max(at, first), to = std::min(at + count, end);
            RL_TRY(to_halfs(std::span(values).subspan(from - at, to - from), format.name,
                            out.data() + (from - first) * kHalf));
        }
        return {};
    }

private:
    static constexpr uint64_t kHalf = sizeof(uint16_t);
    static constexpr uint64_t kDecodedAtATime = 4096;  // elements; their floats stay in the first-level cache

    ByteSource& file_;
    std::span<const WeightInfo> in_file_, stored_;
};

}  // namespace

const Format& stored_format(const Format& format, const Backend& backend) {
    return backend.has_kernels(format) ? format : halfs();
}

std::vector<WeightInfo> stored_weights(std::span<const WeightInfo> weights, const Backend& backend) {
    std::vector<WeightInfo> stored(weights.begin(), weights.end());
    for (WeightInfo& info : stored)
        if (info.role == WeightRole::matrix)
            info.tensor.format = &stored_format(*info.tensor.format, backend);
    return stored;
}

std::vector<DecodedFormat> decoded_formats(std::span<const WeightInfo> weights, const Backend& backend) {
    const std::vector<WeightInfo> stored = stored_weights(weights, backend);
    std::vector<DecodedFormat> decoded;
    for (size_t i = 0; i < weights.size(); ++i) {
        const Tensor& tensor = weights[i].tensor;
        if (stored[i].tensor.format == tensor.format) continue;
        auto found = std::find_if(decoded.begin(), decoded.end(),
                                  [&](const DecodedFormat& d) { return d.format == tensor.format; });
        if (found == decoded.end()) found = decoded.insert(found, DecodedFormat{tensor.format});
        found->tensors++;
        found->file_bytes += tensor.bytes();
        found->stored_bytes += stored[i].tensor.bytes();
    }
    return decoded;
}

Result<std::unique_ptr<Executable>> Backend::record(BoundPlan plan, WeightStore& weights, CacheStore& cache,
                                                    Record mode) {
    PlanGroup alone;
    alone.push_back(std::move(plan));
    auto recorded = RL_TRY(record_group(std::move(alone), weights, cache, mode));
    return std::move(recorded[0]);
}

Result<std::unique_ptr<WeightStore>> Backend::load(std::span<const WeightInfo> weights, ByteSource& source,
                                                   const Progress& progress) {
    const std::vector<WeightInfo> stored = stored_weights(weights, *this);
    DecodingSource decoding(source, weights, stored);
    return load_stored(stored, decoding, progress);
}

Status Backend::refill(WeightStore& store, std::span<const uint32_t> at, std::span<const WeightInfo> weights,
                       ByteSource& source) {
    const std::vector<WeightInfo> stored = stored_weights(weights, *this);
    DecodingSource decoding(source, weights, stored);
    return refill_stored(store, at, stored, decoding);
}

}  // namespace redline
