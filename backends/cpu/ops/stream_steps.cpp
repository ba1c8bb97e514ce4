// StreamProduct, StreamWeights and StreamBlend.
#include "backends/cpu/runtime/executable.h"

#include <algorithm>
#include <cmath>

namespace redline::cpu {

namespace {

// Units are elements of a mix, or streams.
class StreamProductKernel : public CpuKernel {
public:
    explicit StreamProductKernel(const StreamProduct& op) : op_(op) {}
    void run(const RunView& view, const Worker& worker, uint32_t) const override {
        const uint64_t width = op_.width(view.plan);
        const auto mine =
            worker.share(view.rows_of(op_.y) * (op_.kind == StreamKind::mix ? width : op_.streams));
        for (uint64_t at = mine.begin; at < mine.end; ++at) {
            switch (op_.kind) {
                case StreamKind::mix:
                    mix(view, at, width);
                    break;
                case StreamKind::add:
                    if (at % op_.streams >= op_.first) add(view, at, width);
                    break;
                case StreamKind::dot:
                    dot(view, at, width);
                    break;
                case StreamKind::turn:
                    turn(view, at, width);
                    break;
            }
        }
    }

private:
    void mix(const RunView& view, uint64_t at, uint64_t width) const {
        const bool one_each = op_.by_stream(view.plan);
        const uint64_t row = at / width, i = at % width;
        const float* x = view.floats(op_.x) + row * op_.streams * width + i;
        const float* w = view.floats(op_.weights) + row * view.width(op_.weights) + (one_each ? 0 : i);
        float sum = 0.0f;
        for (uint64_t s = 0; s < op_.streams; ++s) sum += x[s * width] * w[one_each ? s : s * width];
        view.floats(op_.y)[at] = op_.scale * sum;
    }
    void add(const RunView& view, uint64_t at, uint64_t width) const {
        float* y = view.floats(op_.y) + at * width;
        if (op_.replaces) std::fill_n(y, width, 0.0f);
        const float weight = op_.weights ? view.floats(op_.weights)[at] : 0.0f;
        vector_kernels(view.isa).add_scaled(y, view.floats(op_.x) + at / op_.streams * width,
                                            op_.scale * (weight + op_.offset), width);
    }
    void dot(const RunView& view, uint64_t at, uint64_t width) const {
        const float *a = view.floats(op_.x) + at * width, *b = view.floats(op_.weights) + at * width;
        float sums[8] = {};
        for (uint64_t i = 0; i < width; ++i) sums[i % 8] += a[i] * b[i];
        float sum = 0.0f;
        for (const float part : sums) sum += part;
        view.floats(op_.y)[at] = op_.scale * sum;
    }
    void turn(const RunView& view, uint64_t at, uint64_t width) const {
        const uint64_t streams = op_.streams;
        const float* x = view.floats(op_.x) + at / streams * streams * width;
        const float* weights = view.floats(op_.weights) + at * streams;
        float* y = view.floats(op_.y) + at * width;
        std::copy_n(x + at % streams * width, width, y);
        for (uint64_t s = 0; s < streams; ++s)
            vector_kernels(view.isa).add_scaled(y, x + s * width, weights[s], width);
    }

    StreamProduct op_;
};

class StreamWeightsKernel : public CpuKernel {
public:
    explicit StreamWeightsKernel(const StreamWeights& op) : op_(op) {}
    void run(const RunView& view, const Worker& worker, uint32_t) const override {
        const uint32_t n = view.width(op_.read), wide = view.width(op_.x);
        const float *scale = view.vector(op_.scale), *base = view.vector(op_.base);
        const auto mine = worker.share(view.rows_of(op_.x));
        for (uint64_t row = mine.begin; row < mine.end; ++row) {
            const float* x = view.floats(op_.x) + row * wide;
            const auto z = [&](uint32_t part, uint32_t i) {
                return x[part * n + i] * scale[part] + base[part * n + i];
            };
            for (uint32_t i = 0; i < n; ++i) view.floats(op_.read)[row * n + i] = sigmoid(z(0, i)) + op_.eps;
            if (!op_.add) continue;
            for (uint32_t i = 0; i < n; ++i) view.floats(op_.add)[row * n + i] = 2.0f * sigmoid(z(1, i));
            float* mix = view.floats(op_.mix) + row * n * n;
            for (uint32_t i = 0; i < n * n; ++i) mix[i] = x[2 * n + i] * scale[2] + base[2 * n + i];
            for (uint32_t i = 0; i < n; ++i) softmax(mix + i * n, n);
            balance(mix, n);
        }
    }

private:
    static float sigmoid(float x) { return 1.0f / (1.0f + std::exp(-x)); }
    void softmax(float* line, uint32_t n) const {
        const float top = *std::max_element(line, line + n);
        float total = 0.0f;
        for (uint32_t j = 0; j < n; ++j) total += line[j] = std::exp(line[j] - top);
        for (uint32_t j = 0; j < n; ++j) line[j] = line[j] / total + op_.eps;
    }
    // Lines lie `line` apart, elements of one `apart`.
    void divide(float* mix, uint32_t n, uint32_t line, uint32_t apart) const {
        for (uint32_t l = 0; l < n; ++l) {
            float sum = op_.eps;
            for (uint32_t i = 0; i < n; ++i) sum += mix[l * line + i * apart];
            for (uint32_t i = 0; i < n; ++i) mix[l * line + i * apart] /= sum;
        }
    }
    void balance(float* mix, uint32_t n) const {
        for (uint32_t round = 0; round < op_.rounds; ++round) {
            if (round > 0) divide(mix, n, n, 1);
            divide(mix, n, 1, n);
        }
    }

    StreamWeights op_;
};

class StreamBlendKernel : public CpuKernel {
public:
    explicit StreamBlendKernel(const StreamBlend& op) : op_(op) {}
    void run(const RunView& view, const Worker& worker, uint32_t) const override {
        const uint64_t width = view.width(op_.x), streams = op_.streams;
        const VectorKernels& kernels = vector_kernels(view.isa);
        const auto mine = worker.share(uint64_t(view.rows_of(op_.y)) * streams);
        for (uint64_t at = mine.begin; at < mine.end; ++at) {
            const uint64_t row = at / streams, j = at % streams;
            const float* mix = view.floats(op_.mix) + row * streams * streams + j;
            float* y = view.floats(op_.y) + at * width;
            std::fill_n(y, width, 0.0f);
            kernels.add_scaled(y, view.floats(op_.x) + row * width, view.floats(op_.weights)[at], width);
            for (uint64_t i = 0; i < streams; ++i)
                kernels.add_scaled(y, view.floats(op_.from) + (row * streams + i) * width, mix[i * streams],
                                   width);
        }
    }

private:
    StreamBlend op_;
};

}  // namespace

std::unique_ptr<Kernel> make_stream_kernel(const Op& op, const Plan&, Isa) {
    if (const auto* o = std::get_if<StreamProduct>(&op)) return std::make_unique<StreamProductKernel>(*o);
    if (const auto* o = std::get_if<StreamWeights>(&op)) return std::make_unique<StreamWeightsKernel>(*o);
    if (const auto* o = std::get_if<StreamBlend>(&op)) return std::make_unique<StreamBlendKernel>(*o);
    return nullptr;
}

}  // namespace redline::cpu
