// A plan of a few ops on random weights, for holding a backend to the reference. Inputs are embeddings of a
// float table with one row per token, so that no test needs a way into a plan that programs do not have.
#pragma once

#include "backends/cpu/reference.h"
#include "support/random_blocks.h"

#include <functional>
#include <string>

namespace redline::test {

class Fixture : public ByteSource {
public:
    Fixture(uint32_t seed, uint64_t capacity) : random_(seed), capacity_(capacity) {}

    Weight matrix(const Format& format, uint64_t rows, uint64_t cols, uint64_t count = 1) {
        return add({"matrix", &format, {count, rows, cols}}, WeightRole::matrix,
                   random_weights(format, count * rows * cols, random_));
    }
    Weight vector(uint64_t size) {
        const Format& f32 = *find_format("F32");
        return add({"vector", &f32, {1, 1, size}}, WeightRole::vector, random_weights(f32, size, random_));
    }
    // A table whose row t is the input of token t: normal numbers of size 1, each row of another magnitude.
    Weight input(uint64_t width) {
        std::normal_distribution<float> normal;
        std::vector<float> values(capacity_ * width);
        for (size_t i = 0; i < values.size(); ++i)
            values[i] = normal(random_) * (0.25f + float((i / width) % 7));
        const auto bytes = std::as_bytes(std::span(values));
        return add({"input", find_format("F32"), {1, capacity_, width}}, WeightRole::matrix,
                   {bytes.begin(), bytes.end()});
    }

    Status read(size_t tensor, uint64_t offset, std::span<std::byte> out) override {
        std::memcpy(out.data(), bytes_[tensor].data() + offset, out.size());
        return {};
    }
    const std::vector<WeightInfo>& weights() const { return weights_; }
    uint64_t capacity() const { return capacity_; }
    std::vector<std::vector<float>> decoded() const {
        std::vector<std::vector<float>> out;
        for (size_t i = 0; i < weights_.size(); ++i) {
            const Tensor& t = weights_[i].tensor;
            out.emplace_back(t.shape.elements());
            t.format->decode(bytes_[i].data(), out.back().data(), out.back().size());
        }
        return out;
    }

private:
    Weight add(Tensor tensor, WeightRole role, std::vector<std::byte> bytes) {
        tensor.name += std::to_string(weights_.size());
        weights_.push_back({std::move(tensor), role});
        bytes_.push_back(std::move(bytes));
        return {int32_t(weights_.size() - 1)};
    }

    std::mt19937 random_;
    uint64_t capacity_;
    std::vector<WeightInfo> weights_;
    std::vector<std::vector<std::byte>> bytes_;
};

// A case: `declare` adds weights and returns the function that records the ops and yields the slot to
// compare.
struct OpCase {
    using Build = std::function<Slot(PlanBuilder&)>;
    std::string name;
    uint32_t rows = 1;      // tokens of the compared step
    uint64_t position = 0;  // tokens fed before it, one step each of at most `rows`
    CacheShape cache = {1, 1, 1, 64, CacheType::f16};
    std::function<Build(Fixture&)> declare;
};

struct Comparison {
    double worst_fraction = 0.0;  // of the bound
    size_t worst = 0;
    double got = 0.0, want = 0.0, bound = 0.0;
    double nmse = 0.0;
    size_t outside = 0, count = 0;
};

inline Comparison compare(std::span<const float> got, std::span<const Bounded> want) {
    Comparison c;
    c.count = want.size();
    double noise = 0.0, signal = 0.0;
    for (size_t i = 0; i < want.size(); ++i) {
        const double off = std::abs(double(got[i]) - want[i].value);
        // Rounding the result itself to binary32 is always allowed.
        const double bound = want[i].error + std::abs(want[i].value) * 0x1p-24;
        const double fraction = off == 0.0 ? 0.0 : off / bound;
        noise += off * off;
        signal += want[i].value * want[i].value;
        if (!(fraction <= 1.0)) ++c.outside;
        if (fraction > c.worst_fraction || !std::isfinite(fraction)) {
            c.worst_fraction = std::isfinite(fraction) ? fraction : INFINITY;
            c.worst = i;
            c.got = got[i];
            c.want = want[i].value;
            c.bound = bound;
        }
    }
    c.nmse = signal > 0.0 ? noise / signal : noise;
    return c;
}

}  // namespace redline::test
