// Convolve, DeltaNet and StateScan, and what stands around them: CopyParts, OutputGate.
#include "backends/cpu/kernels/recurrent.h"
#include "backends/cpu/kernels/vec_portable.h"
#include "backends/cpu/runtime/executable.h"

#include "backends/cpu/kernels/delta_loops.h"

#include <algorithm>
#include <cmath>
#include <cstring>

namespace redline::cpu {

DeltaKernel delta_kernel(Isa isa) {
    if constexpr (RL_CPU_AVX512)
        if (isa >= Isa::avx512) return delta_avx512;
    if constexpr (RL_CPU_AVX2)
        if (isa == Isa::avx2) return delta_avx2;
    (void)isa;
    return delta;
}

DeltaChunkKernel delta_chunk_kernel(Isa isa) {
    if constexpr (RL_CPU_AVX512)
        if (isa >= Isa::avx512) return delta_chunk_avx512;
    if constexpr (RL_CPU_AVX2)
        if (isa == Isa::avx2) return delta_chunk_avx2;
    (void)isa;
    return delta_chunk;
}

ScanKernel scan_kernel(Isa isa) {
    if constexpr (RL_CPU_AVX512)
        if (isa >= Isa::avx512) return scan_avx512;
    if constexpr (RL_CPU_AVX2)
        if (isa == Isa::avx2) return scan_avx2;
    (void)isa;
    return scan;
}

namespace {

float softplus(float x) {
    return x > 20.0f ? x : std::log1p(std::exp(x));
}

float sigmoid(float x) {
    return 1.0f / (1.0f + std::exp(-x));
}

class CopyPartsKernel : public CpuKernel {
public:
    explicit CopyPartsKernel(const CopyParts& op) : op_(op) {}
    void run(const RunView& view, const Worker& worker, uint32_t) const override {
        const auto mine = worker.share(view.rows_of(op_.y));
        for (uint64_t row = mine.begin; row < mine.end; ++row)
            for (uint32_t part = 0; part < op_.parts; ++part)
                std::memcpy(view.floats(op_.y) + row * view.width(op_.y) + op_.y_first + part * op_.y_stride,
                            view.floats(op_.x) + row * view.width(op_.x) + op_.x_first + part * op_.x_stride,
                            op_.width * sizeof(float));
    }

private:
    CopyParts op_;
};

class OutputGateKernel : public CpuKernel {
public:
    explicit OutputGateKernel(const OutputGate& op) : op_(op) {}
    void run(const RunView& view, const Worker& worker, uint32_t) const override {
        const uint64_t d = op_.head_dim;
        const GateLayout gates = op_.layout(uint32_t(view.width(op_.x)), uint32_t(view.width(op_.y)));
        const auto mine = worker.share(view.rows_of(op_.y) * (view.width(op_.y) / d));
        for (uint64_t head = mine.begin; head < mine.end; ++head) {
            float* y = view.floats(op_.y) + head * d;
            const float* gate = view.floats(op_.x) + head * gates.stride + gates.first;
            const float of_all = of(gate[0]);
            for (uint64_t i = 0; i < d; ++i) y[i] *= gates.step == 0 ? of_all : of(gate[i]);
        }
    }

private:
    float of(float gate) const {
        if (op_.act == GateOf::itself) return gate;
        return op_.act == GateOf::softplus ? softplus(gate) : sigmoid(gate);
    }

    OutputGate op_;
};

// Units are stretches of channels of a sequence, which go over its rows.
class ConvolveKernel : public CpuKernel {
public:
    explicit ConvolveKernel(const Convolve& op) : op_(op) {}

    void run(const RunView& view, const Worker& worker, uint32_t step) const override {
        const uint64_t width = view.width(op_.x), stretches = (width + kChannels - 1) / kChannels;
        Claims claims(view, worker, step, stretches * view.segments.size());
        for (uint64_t i; claims.next(i);) {
            const uint64_t first = i % stretches * kChannels, count = std::min(width - first, kChannels);
            const Segment& segment = view.segments[i / stretches];
            if (op_.apart == 1)
                convolve(view, segment, first, count);
            else
                convolve_apart(view, segment, first, count);
        }
    }

private:
    static constexpr uint64_t kChannels = 64;

    void convolve(const RunView& view, const Segment& segment, uint64_t first, uint64_t count) const {
        const uint64_t width = view.width(op_.x);
        const uint32_t kept = op_.taps - 1;
        const auto [from, to] = view.states(op_.state, segment.first);
        const float *w = view.vector(op_.w) + first * op_.taps, *bias = view.vector(op_.bias);
        float past[kMostTaps - 1][kChannels] = {};
        for (uint32_t j = 0; from && j < kept; ++j) std::copy_n(from + j * width + first, count, past[j]);
        for (uint64_t row = segment.first; row < segment.first + segment.rows; ++row) {
            const uint64_t at = row * width + first;
            const auto factor = [&](Slot s, uint64_t i) { return s ? view.floats(s)[at + i] : 1.0f; };
            for (uint64_t i = 0; i < count; ++i) {
                const float u = view.floats(op_.x)[at + i] * factor(op_.before, i);
                float sum = w[i * op_.taps + kept] * u;
                for (uint32_t j = 0; j < kept; ++j) sum += w[i * op_.taps + j] * past[j][i];
                for (uint32_t j = 0; j + 1 < kept; ++j) past[j][i] = past[j + 1][i];
                past[kept - 1][i] = u;
                if (bias) sum += bias[first + i];
                if (op_.silu) sum *= sigmoid(sum);
                view.floats(op_.y)[at + i] = sum * factor(op_.behind, i);
            }
            float* const behind = view.states_behind(op_.state, row);
            for (uint32_t j = 0; behind && j < kept; ++j)
                std::copy_n(past[j], count, behind + j * width + first);
        }
        for (uint32_t j = 0; j < kept; ++j) std::copy_n(past[j], count, to + j * width + first);
    }

    // A tap may lie many rows back: in the step, or in the state.
    void convolve_apart(const RunView& view, const Segment& segment, uint64_t first, uint64_t count) const {
        const uint64_t width = view.width(op_.x), kept = op_.kept();
        const auto [from, to] = view.states(op_.state, segment.first);
        const float *w = view.vector(op_.w) + first * op_.taps, *bias = view.vector(op_.bias);
        const auto u = [&](int64_t row, uint64_t i) {  // of the segment; before it, of the state
            if (row < 0) return from ? from[(uint64_t(row + int64_t(kept))) * width + first + i] : 0.0f;
            const uint64_t at = (segment.first + uint64_t(row)) * width + first + i;
            return view.floats(op_.x)[at] * (op_.before ? view.floats(op_.before)[at] : 1.0f);
        };
        for (uint32_t row = 0; row < segment.rows; ++row)
            for (uint64_t i = 0; i < count; ++i) {
                float sum = 0.0f;
                for (uint32_t j = 0; j < op_.taps; ++j)
                    sum += w[i * op_.taps + j] * u(int64_t(row) - int64_t((op_.taps - 1 - j) * op_.apart), i);
                if (bias) sum += bias[first + i];
                if (op_.silu) sum *= sigmoid(sum);
                const uint64_t at = (segment.first + row) * width + first + i;
                view.floats(op_.y)[at] = sum * (op_.behind ? view.floats(op_.behind)[at] : 1.0f);
            }
        // In order: where both states are one, a row is read before it is written.
        const auto put = [&](float* state, uint64_t rows) {
            for (uint64_t j = 0; j < kept; ++j)
                for (uint64_t i = 0; i < count; ++i)
                    state[j * width + first + i] = u(int64_t(j + rows) - int64_t(kept), i);
        };
        for (uint32_t row = 0; row < segment.rows; ++row)
            if (float* behind = view.states_behind(op_.state, segment.first + row)) put(behind, row + 1);
        put(to, segment.rows);
    }

    Convolve op_;
};

// What a sequence's state is before a step, brought to where the step leaves it.
float* brought_state(const RunView& view, Cache cache, const Segment& segment, uint64_t first,
                     uint64_t size) {
    const auto [from, to] = view.states(cache, segment.first);
    if (!from)
        std::fill_n(to + first, size, 0.0f);
    else if (from != to)
        std::memcpy(to + first, from + first, size * sizeof(float));
    return to + first;
}

void keep_state(const RunView& view, Cache cache, uint64_t row, const float* state, uint64_t first,
                uint64_t size) {
    float* const behind = view.states_behind(cache, row);
    if (behind) std::memcpy(behind + first, state, size * sizeof(float));
}

// Units are the heads of a sequence, which go over its rows.
class StateScanKernel : public CpuKernel {
public:
    StateScanKernel(const StateScan& op, Isa isa) : op_(op), scan_(scan_kernel(isa)) {}

    void run(const RunView& view, const Worker& worker, uint32_t step) const override {
        const uint32_t heads = op_.shape.heads;
        Claims claims(view, worker, step, uint64_t(heads) * view.segments.size());
        for (uint64_t i; claims.next(i);) run_head(view, view.segments[i / heads], uint32_t(i % heads));
    }

private:
    void run_head(const RunView& view, const Segment& segment, uint32_t head) const {
        const ScanShape& s = op_.shape;
        const uint64_t size = uint64_t(s.head_dim) * s.state_dim;
        ScanToken token{brought_state(view, op_.state, segment, head * size, size)};
        token.inputs = s.head_dim;
        token.width = s.state_dim;
        token.through = view.vector(op_.through)[head];
        const float a = view.vector(op_.a)[head], bias = view.vector(op_.step_bias)[head];
        const uint32_t group = head / (s.heads / s.groups);
        for (uint64_t row = segment.first; row < segment.first + segment.rows; ++row) {
            const float* x = view.floats(op_.x) + row * s.width();
            token.x = x + head * s.head_dim;
            token.in = x + s.inner() + group * s.state_dim;
            token.out = token.in + s.groups * s.state_dim;
            token.step = softplus(view.floats(op_.step)[row * s.heads + head] + bias);
            token.decay = std::exp(a * token.step);
            token.y = view.floats(op_.y) + row * s.inner() + head * s.head_dim;
            scan_(token);
            keep_state(view, op_.state, row, token.state, head * size, size);
        }
    }

    StateScan op_;
    ScanKernel scan_;
};

// Units are the heads of a sequence, which go over its rows: by chunks, then one by one. All go one by one
// where the states behind them are kept.
class DeltaKernelStep : public CpuKernel {
public:
    DeltaKernelStep(const DeltaNet& op, Isa isa)
        : op_(op), delta_(delta_kernel(isa)), chunk_(delta_chunk_kernel(isa)) {}

    uint64_t thread_scratch(const Plan&) const override {
        return 3 * kDeltaChunk * op_.shape.key_dim * sizeof(float);
    }

    void run(const RunView& view, const Worker& worker, uint32_t step) const override {
        const uint32_t heads = op_.shape.heads;
        Claims claims(view, worker, step, uint64_t(heads) * view.segments.size());
        for (uint64_t i; claims.next(i);)
            run_head(view, view.segments[i / heads], uint32_t(i % heads),
                     reinterpret_cast<float*>(view.scratch(worker)));
    }

private:
    static void unit_vector(const float* x, uint32_t n, float scale, float* out) {
        double squares = 0.0;
        for (uint32_t i = 0; i < n; ++i) squares += double(x[i]) * double(x[i]);
        const float factor = float(double(scale) / std::sqrt(squares + double(DeltaNet::kEps)));
        for (uint32_t i = 0; i < n; ++i) out[i] = x[i] * factor;
    }

    // One row's query and key, and its values, gates and results.
    struct Row {
        const float* v;
        float* y;
        float decay, beta;
    };
    Row read_row(const RunView& view, uint64_t row, uint32_t head, float* q, float* k) const {
        const DeltaShape& s = op_.shape;
        const float* qkv = view.floats(op_.qkv) + row * s.width();
        const float* own = qkv + s.key_head(head) * s.key_dim;
        unit_vector(own, s.key_dim, 1.0f / std::sqrt(float(s.key_dim)), q);
        unit_vector(own + s.keys(), s.key_dim, 1.0f, k);
        const float x = view.floats(op_.alpha)[row * s.heads + head] + view.vector(op_.dt)[head];
        return {qkv + 2 * s.keys() + head * s.value_dim,
                view.floats(op_.y) + row * s.values() + head * s.value_dim,
                std::exp(view.vector(op_.a)[head] * softplus(x)),
                sigmoid(view.floats(op_.beta)[row * s.heads + head])};
    }

    void run_head(const RunView& view, const Segment& segment, uint32_t head, float* scratch) const {
        const DeltaShape& s = op_.shape;
        const uint64_t size = uint64_t(s.key_dim) * s.value_dim, n = s.key_dim;
        float *state = brought_state(view, op_.state, segment, head * size, size),
              *k = scratch + kDeltaChunk * n;
        const uint64_t end = segment.first + segment.rows;
        uint64_t row = segment.first;
        const bool keeps = view.states_behind(op_.state, row) != nullptr;
        for (; !keeps && row + kDeltaChunk <= end; row += kDeltaChunk) {
            DeltaChunk chunk{state, scratch, k};
            for (uint64_t t = 0; t < kDeltaChunk; ++t) {
                const Row own = read_row(view, row + t, head, scratch + t * n, k + t * n);
                if (t == 0) chunk.v = own.v, chunk.y = own.y;
                chunk.decay[t] = own.decay;
                chunk.beta[t] = own.beta;
            }
            chunk.v_stride = s.width();
            chunk.y_stride = s.values();
            chunk.keys = n;
            chunk.values = s.value_dim;
            chunk.last_k = scratch + 2 * kDeltaChunk * n;
            chunk_(chunk);
        }
        for (; row < end; ++row) {
            const Row own = read_row(view, row, head, scratch, k);
            delta_({state, scratch, k, own.v, n, s.value_dim, own.decay, own.beta, own.y});
            keep_state(view, op_.state, row, state, head * size, size);
        }
    }

    DeltaNet op_;
    DeltaKernel delta_;
    DeltaChunkKernel chunk_;
};

}  // namespace

std::unique_ptr<Kernel> make_recurrent_kernel(const Op& op, const Plan&, Isa isa) {
    if (const auto* o = std::get_if<CopyParts>(&op)) return std::make_unique<CopyPartsKernel>(*o);
    if (const auto* o = std::get_if<OutputGate>(&op)) return std::make_unique<OutputGateKernel>(*o);
    if (const auto* o = std::get_if<Convolve>(&op)) return std::make_unique<ConvolveKernel>(*o);
    if (const auto* o = std::get_if<DeltaNet>(&op)) return std::make_unique<DeltaKernelStep>(*o, isa);
    if (const auto* o = std::get_if<StateScan>(&op)) return std::make_unique<StateScanKernel>(*o, isa);
    return nullptr;
}

}  // namespace redline::cpu
