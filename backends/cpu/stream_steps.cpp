// StreamMix, StreamAdd, StreamDot and StreamTurn.
#include "executable.h"

#include <algorithm>

namespace redline::cpu {

namespace {

class StreamMixKernel : public CpuKernel {
public:
    explicit StreamMixKernel(const StreamMix& op) : op_(op) {}
    void run(const RunView& view, const Worker& worker, uint32_t) const override {
        const uint64_t width = view.width(op_.y), weights = view.width(op_.weights);
        const bool one_each = weights == op_.streams && width > 1;
        const auto mine = worker.share(view.rows_of(op_.y) * width);
        for (uint64_t at = mine.begin; at < mine.end; ++at) {
            const uint64_t row = at / width, i = at % width;
            const float* x = view.floats(op_.x) + row * op_.streams * width + i;
            const float* w = view.floats(op_.weights) + row * weights + (one_each ? 0 : i);
            float sum = 0.0f;
            for (uint64_t s = 0; s < op_.streams; ++s) sum += x[s * width] * w[one_each ? s : s * width];
            view.floats(op_.y)[at] = op_.scale * sum;
        }
    }

private:
    StreamMix op_;
};

class StreamAddKernel : public CpuKernel {
public:
    explicit StreamAddKernel(const StreamAdd& op) : op_(op) {}
    void run(const RunView& view, const Worker& worker, uint32_t) const override {
        const uint64_t width = view.width(op_.x);
        const VectorKernels& kernels = vector_kernels(view.isa);
        const auto mine = worker.share(uint64_t(view.rows_of(op_.y)) * op_.streams);
        for (uint64_t at = mine.begin; at < mine.end; ++at) {
            if (at % op_.streams < op_.first) continue;
            float* y = view.floats(op_.y) + at * width;
            if (op_.replaces) std::fill_n(y, width, 0.0f);
            const float weight = op_.weights ? view.floats(op_.weights)[at] : 0.0f;
            kernels.add_scaled(y, view.floats(op_.x) + at / op_.streams * width,
                               op_.scale * (weight + op_.offset), width);
        }
    }

private:
    StreamAdd op_;
};

class StreamTurnKernel : public CpuKernel {
public:
    explicit StreamTurnKernel(const StreamTurn& op) : op_(op) {}
    void run(const RunView& view, const Worker& worker, uint32_t) const override {
        const uint64_t streams = op_.streams, width = view.width(op_.y) / streams;
        const VectorKernels& kernels = vector_kernels(view.isa);
        const auto mine = worker.share(view.rows_of(op_.y) * streams);
        for (uint64_t at = mine.begin; at < mine.end; ++at) {
            const float* x = view.floats(op_.x) + at / streams * streams * width;
            const float* weights = view.floats(op_.weights) + at * streams;
            float* y = view.floats(op_.y) + at * width;
            std::copy_n(x + at % streams * width, width, y);
            for (uint64_t s = 0; s < streams; ++s) kernels.add_scaled(y, x + s * width, weights[s], width);
        }
    }

private:
    StreamTurn op_;
};

class StreamDotKernel : public CpuKernel {
public:
    explicit StreamDotKernel(const StreamDot& op) : op_(op) {}
    void run(const RunView& view, const Worker& worker, uint32_t) const override {
        const uint64_t streams = view.width(op_.y), width = view.width(op_.a) / streams;
        const auto mine = worker.share(view.rows_of(op_.y) * streams);
        for (uint64_t at = mine.begin; at < mine.end; ++at) {
            const float *a = view.floats(op_.a) + at * width, *b = view.floats(op_.b) + at * width;
            float sums[8] = {};
            for (uint64_t i = 0; i < width; ++i) sums[i % 8] += a[i] * b[i];
            float sum = 0.0f;
            for (const float part : sums) sum += part;
            view.floats(op_.y)[at] = op_.scale * sum;
        }
    }

private:
    StreamDot op_;
};

}  // namespace

std::unique_ptr<Kernel> make_stream_kernel(const Op& op, const Plan&, Isa) {
    if (const auto* o = std::get_if<StreamMix>(&op)) return std::make_unique<StreamMixKernel>(*o);
    if (const auto* o = std::get_if<StreamAdd>(&op)) return std::make_unique<StreamAddKernel>(*o);
    if (const auto* o = std::get_if<StreamTurn>(&op)) return std::make_unique<StreamTurnKernel>(*o);
    if (const auto* o = std::get_if<StreamDot>(&op)) return std::make_unique<StreamDotKernel>(*o);
    return nullptr;
}

}  // namespace redline::cpu
