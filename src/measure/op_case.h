// A plan of a few ops on random weights, to compare a backend with the reference and to time its kernels
// without a model. Inputs are embeddings of a float table with one row per token, so that cases use only the
// inputs that programs have.
#pragma once

#include "measure/random_weights.h"
#include "plan/stored_weights.h"

#include <algorithm>
#include <functional>
#include <memory>
#include <string>

namespace redline {

class Fixture : public ByteSource {
public:
    // `capacity`: rows of the inputs, one per token. `distinct`: elements after which a matrix repeats
    // itself, where speed matters more than randomness: a multiple of every format's block.
    Fixture(uint32_t seed, uint64_t capacity, uint64_t distinct = UINT64_MAX)
        : random_(seed), capacity_(capacity), distinct_(distinct) {}

    Weight matrix(const Format& format, uint64_t rows, uint64_t cols, uint64_t count = 1) {
        const uint64_t all = count * rows * cols;
        std::vector<std::byte> bytes = random_weights(format, std::min(all, distinct_), random_);
        const size_t period = bytes.size();
        bytes.resize(all / format.block * format.block_bytes);
        for (size_t at = period; at < bytes.size(); at += period)
            std::memcpy(&bytes[at], bytes.data(), std::min(period, bytes.size() - at));
        return add({"matrix", &format, {count, rows, cols}}, WeightRole::matrix, std::move(bytes));
    }
    Weight vector(uint64_t size) {
        if (levels_) return vector(std::vector<float>(size, 1.0f));
        const Format& f32 = *find_format("F32");
        return add({"vector", &f32, {1, 1, size}}, WeightRole::vector, random_weights(f32, size, random_));
    }
    Weight vector(const std::vector<float>& values) {
        const auto bytes = std::as_bytes(std::span(values));
        return add({"vector", find_format("F32"), {1, 1, values.size()}}, WeightRole::vector,
                   {bytes.begin(), bytes.end()});
    }
    // From here on inputs are whole multiples of a step of 127 levels, each block of 16 having the largest,
    // and vectors are ones: rounding to 8 bits then loses nothing, so that any loss is the kernel's.
    void hold_levels() { levels_ = true; }
    // Another weight that shares the content of `w`: a device reads as many bytes again, the host stores
    // none.
    Weight copy(Weight w) {
        weights_.push_back(weights_[size_t(w.index)]);
        bytes_.push_back(bytes_[size_t(w.index)]);
        return {int32_t(weights_.size() - 1)};
    }
    // A table whose row t is the input of token t: normally distributed numbers of size 1, each row of
    // another magnitude.
    Weight input(uint64_t width) {
        std::normal_distribution<float> normal;
        std::vector<float> values(capacity_ * width);
        for (size_t i = 0; i < values.size(); ++i)
            values[i] =
                (0.25f + float((i / width) % 7)) * (levels_ ? level(i % width) / 93.0f : normal(random_));
        return input(values, width);
    }
    // A table with these inputs, one row per token.
    Weight input(const std::vector<float>& values, uint64_t width) {
        const auto bytes = std::as_bytes(std::span(values));
        return add({"input", find_format("F32"), {1, values.size() / width, width}}, WeightRole::matrix,
                   {bytes.begin(), bytes.end()});
    }

    Status read(size_t tensor, uint64_t offset, std::span<std::byte> out) override {
        std::memcpy(out.data(), bytes_[tensor]->data() + offset, out.size());
        return {};
    }
    const std::vector<WeightInfo>& weights() const { return weights_; }
    uint64_t capacity() const { return capacity_; }
    // The weights as floats, rounded to halves where `backend` decodes them while it loads.
    std::vector<std::vector<float>> decoded(const Backend& backend) const {
        const std::vector<WeightInfo> stored = stored_weights(weights_, backend);
        std::vector<std::vector<float>> out;
        for (size_t i = 0; i < weights_.size(); ++i) {
            const Tensor& t = weights_[i].tensor;
            out.emplace_back(t.shape.elements());
            t.format->decode(bytes_[i]->data(), out.back().data(), out.back().size());
            if (stored[i].tensor.format != t.format)
                for (float& value : out.back()) value = half_to_float(float_to_half(value));
        }
        return out;
    }

private:
    float level(size_t column) {
        const int any = int(random_() % 255) - 127;
        return float(column % 16 == 5 ? (any < 0 ? -127 : 127) : any);
    }
    Weight add(Tensor tensor, WeightRole role, std::vector<std::byte> bytes) {
        tensor.name += std::to_string(weights_.size());
        weights_.push_back({std::move(tensor), role});
        bytes_.push_back(std::make_shared<const std::vector<std::byte>>(std::move(bytes)));
        return {int32_t(weights_.size() - 1)};
    }

    std::mt19937 random_;
    uint64_t capacity_, distinct_;
    bool levels_ = false;
    std::vector<WeightInfo> weights_;
    std::vector<std::shared_ptr<const std::vector<std::byte>>> bytes_;
};

constexpr uint64_t kFurtherTokens = 45;

// A scale for queries and keys made by Fixture::input(). The coarser the cache's type, the smaller the
// scores: the cache's rounding enters an exponent, and must stay small there for the bound to mean anything.
constexpr float score_size(CacheTypes cache) {
    switch (cache_code(cache.keys).bits) {
        case 32:
            return 0.3f;
        case 16:
            return cache.keys == CacheType::f16 ? 0.1f : 0.02f;
        case 8:
            return 0.015f;
        default:
            return 0.001f;
    }
}

// A test case: `declare` adds weights and returns the function that records the ops and yields the slot to
// compare.
struct OpCase {
    using Build = std::function<Slot(PlanBuilder&)>;
    std::string name;
    uint32_t rows = 1;      // tokens of the compared step
    uint64_t position = 0;  // tokens fed before it, in steps of at most `rows`
    uint64_t context = 64;
    // > 0: so many sequences share the caches, in scattered pages. The compared step has `rows` of all of
    // them together; the first sequence has `position` tokens before, each further one kFurtherTokens more.
    uint32_t sequences = 0;
    bool uneven = false;  // in the compared step all of them but one have a row
    CacheTypes cache = {};
    std::function<Build(Fixture&)> declare;
    bool cpu_only = false;  // other backends have no kernels for one of its ops
    // For cases of many ops, in one step: each op is compared given the backend's inputs, since worst cases
    // on top of each other would bound nothing.
    bool each_op = false;
    bool levels = false;  // Fixture::hold_levels
    bool alike = false;   // one op's error reaches all sums of the next: `kAlike`
    Variant variant;      // for kernels of one row that have such choices
};

inline OpCase of_levels(OpCase c) {
    c.name += " of levels";
    c.levels = true;
    return c;
}

// The case as a plan of at most so many rows, all of which may be outputs.
inline Result<Plan> case_plan(const OpCase& c, Fixture& fixture, uint32_t rows, uint32_t outputs) {
    const OpCase::Build build = c.declare(fixture);
    const uint64_t context = std::max(c.context, c.position + c.rows);
    CacheSizing sizing{context, rows, c.cache};
    if (c.sequences > 0) {
        sizing.sequences = c.sequences;
        sizing.pages = c.sequences * ((context + kPageRows - 1) / kPageRows) + 3;
    }
    PlanBuilder builder(fixture.weights(), sizing, rows, outputs);
    builder.output(build(builder));
    return std::move(builder).finish();
}

// Made-up StepParams::lookups for a step of so many rows, of either sign.
inline std::vector<float> case_lookups(const Plan& plan, size_t rows) {
    std::vector<float> lookups(plan.lookup_floats(rows));
    for (size_t i = 0; i < lookups.size(); ++i) lookups[i] = float(i % 19) - 7.5f;
    return lookups;
}

inline RopeSpec test_rope(uint32_t dims, bool half_split) {
    RopeSpec rope{half_split, {}, 1.0};
    for (uint32_t i = 0; i < dims / 2; ++i)
        rope.inverse_frequency.push_back(std::pow(10000.0, -2.0 * i / dims));
    return rope;
}

}  // namespace redline
