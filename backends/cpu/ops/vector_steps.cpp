// Embed, Input, Lookup, RmsNorm, Center, Sparsify, AddPosition, AddExpertBias, ScaleByExpert, Each,
// SelectRows: work per row or per element.
#include "backends/cpu/kernels/each.h"
#include "backends/cpu/runtime/executable.h"

#include <algorithm>
#include <cmath>
#include <cstring>
#include <numeric>
#include <utility>

namespace redline::cpu {

namespace {

// Wraps a function run(view, worker) as a kernel.
template <typename Run>
class SimpleKernel : public CpuKernel {
public:
    explicit SimpleKernel(Run run) : run_(std::move(run)) {}
    void run(const RunView& view, const Worker& worker, uint32_t) const override { run_(view, worker); }

private:
    Run run_;
};

template <typename Run>
std::unique_ptr<Kernel> simple(Run run) {
    return std::make_unique<SimpleKernel<Run>>(std::move(run));
}

void embed(const RunView& view, const Worker& worker, const Embed& op) {
    const PackedMatrix& table = view.weights[op.table].matrix;
    const auto mine = worker.share(view.rows());
    for (uint64_t t = mine.begin; t < mine.end; ++t) {
        float* y = view.floats(op.y) + t * table.cols;
        unpack_row(table, uint64_t(view.params.tokens[t]), y);
        if (op.scale == 1.0f) continue;
        for (uint64_t i = 0; i < table.cols; ++i) y[i] *= op.scale;
    }
}

void input(const RunView& view, const Worker& worker, const Input& op) {
    const auto mine = worker.share(view.params.input.size());
    std::memcpy(view.floats(op.y) + mine.begin, view.params.input.data() + mine.begin,
                (mine.end - mine.begin) * sizeof(float));
}

void look_up(const RunView& view, const Worker& worker, const Lookup& op) {
    const auto mine = worker.share(view.params.lookups.size());
    std::memcpy(view.floats(op.y) + mine.begin, view.params.lookups.data() + mine.begin,
                (mine.end - mine.begin) * sizeof(float));
}

void rms_norm(const RunView& view, const Worker& worker, const RmsNorm& op) {
    const uint64_t in_row = view.width(op.x) / op.width, groups = uint64_t(view.rows_of(op.x)) * in_row;
    const auto mine = worker.share(groups);
    const VectorKernels& kernels = vector_kernels(view.isa);
    const bool gain_of_row = op.gain_of_row(view.plan);
    for (uint64_t g = mine.begin; g < mine.end; ++g) {
        const float *x = view.floats(op.x) + g * op.width, *gain = view.vector(op.norm.gain);
        float* y = view.floats(op.y) + g * op.width;
        if (op.gates_x) {
            kernels.act_mul(op.act, view.floats(op.gate) + g * op.width, x, op.width, y);
            x = y;
        }
        kernels.rms_norm(x, gain_of_row ? gain + g % in_row * op.width : gain, op.norm.eps, op.width, y);
        if (op.gate && !op.gates_x)
            kernels.act_mul(op.act, view.floats(op.gate) + g * op.width, y, op.width, y);
    }
}

// Eight sums, which the compiler makes vectors of.
double mean_of(const float* x, uint64_t n) {
    double sums[8] = {};
    uint64_t i = 0;
    for (; i + 8 <= n; i += 8)
        for (uint64_t k = 0; k < 8; ++k) sums[k] += double(x[i + k]);
    for (; i < n; ++i) sums[i % 8] += double(x[i]);
    return std::accumulate(sums, sums + 8, 0.0) / double(n);
}

void center(const RunView& view, const Worker& worker, const Center& op) {
    const auto mine = worker.share(uint64_t(view.rows_of(op.x)) * (view.width(op.x) / op.width));
    for (uint64_t g = mine.begin; g < mine.end; ++g) {
        const float* x = view.floats(op.x) + g * op.width;
        float* y = view.floats(op.y) + g * op.width;
        const float mean = float(mean_of(x, op.width));
        for (uint64_t i = 0; i < op.width; ++i) y[i] = x[i] - mean;
    }
}

// Adds and subtracts neighbours, and puts sums into the first half and differences into the second. Done once
// for each bit of an index it turns all of them round, and every element is where it began: these are the
// additions of a fast transform in place, in an order that makes vectors of every step.
void add_neighbours(const float* __restrict x, uint32_t width, float* __restrict y) {
    const uint32_t half = width / 2;
    for (uint32_t i = 0; i < half; ++i) {
        const float a = x[2 * i], b = x[2 * i + 1];
        y[i] = a + b;
        y[i + half] = a - b;
    }
}

void hadamard(const RunView& view, const Worker& worker, const Hadamard& op) {
    const float scale = 1.0f / std::sqrt(float(op.width));
    const auto mine = worker.share(uint64_t(view.rows_of(op.x)) * (view.width(op.x) / op.width));
    for (uint64_t g = mine.begin; g < mine.end; ++g) {
        float first[kMostHadamard], second[kMostHadamard];
        float *sums = first, *next = second;
        std::copy_n(view.floats(op.x) + g * op.width, op.width, sums);
        for (uint32_t step = 1; step < op.width; step *= 2, std::swap(sums, next))
            add_neighbours(sums, op.width, next);
        float* y = view.floats(op.y) + g * op.width;
        for (uint32_t i = 0; i < op.width; ++i) y[i] = sums[i] * scale;
    }
}

// The comparison lets NaN through.
void sparsify(const RunView& view, const Worker& worker, const Sparsify& op) {
    const uint64_t width = view.width(op.y);
    const auto mine = worker.share(view.rows_of(op.y));
    for (uint64_t t = mine.begin; t < mine.end; ++t) {
        float* y = view.floats(op.y) + t * width;
        const double mean = mean_of(y, width);
        double squares[8] = {};
        for (uint64_t i = 0; i < width; ++i) squares[i % 8] += (double(y[i]) - mean) * (double(y[i]) - mean);
        const double variance = std::accumulate(squares, squares + 8, 0.0) / double(width);
        const float least = float(mean + double(op.deviations) * std::sqrt(variance));
        for (uint64_t i = 0; i < width; ++i) y[i] = y[i] < least ? 0.0f : y[i] - least;
    }
}

void select_rows(const RunView& view, const Worker& worker, const SelectRows& op) {
    const size_t width = view.width(op.x);
    const auto mine = worker.share(view.params.outputs.size());
    for (uint64_t i = mine.begin; i < mine.end; ++i)
        std::memcpy(view.floats(op.y) + i * width, view.floats(op.x) + view.params.outputs[i] * width,
                    width * sizeof(float));
}

// An id that is no expert counts as expert 0, as in expert_steps.cpp.
void add_expert_bias(const RunView& view, const Worker& worker, const AddExpertBias& op) {
    const size_t width = view.width(op.y) / (op.scales ? 1 : op.used);
    const size_t experts = view.plan.weight(op.bias).tensor.shape.elements() / width;
    const VectorKernels& kernels = vector_kernels(view.isa);
    const auto mine = worker.share(view.rows());
    for (uint64_t entry = mine.begin * op.used; entry < mine.end * op.used; ++entry) {
        const auto id = size_t(view.ids(op.ids)[entry]);
        const float* bias = view.vector(op.bias) + (id < experts ? id : 0) * width;
        if (op.scales)
            kernels.add_scaled(view.floats(op.y) + entry / op.used * width, bias,
                               view.floats(op.scales)[entry], width);
        else
            kernels.add(view.floats(op.y) + entry * width, bias, width);
    }
}

// Rows where a vector is common to all, else elements of all rows at once.
void each(const RunView& view, const Worker& worker, const Each& op) {
    const uint64_t width = view.width(op.y), all = uint64_t(view.rows_of(op.y)) * width;
    const uint64_t one = op.column ? width : 1;
    const auto mine = worker.share(all / one);
    const uint64_t end = mine.end * one, some = op.column ? width : end - mine.begin;
    for (uint64_t i = mine.begin * one; i < end; i += some)
        each_loops(view.isa)[size_t(op.row)]({view.floats(op.y) + i, op.x ? view.floats(op.x) + i : nullptr,
                                              op.z ? view.floats(op.z) + i : nullptr, view.vector(op.column),
                                              op.values.data(), some});
}

void add_position(const RunView& view, const Worker& worker, const AddPosition& op) {
    const uint64_t width = view.width(op.y);
    const uint64_t last = view.plan.weight(op.table).tensor.shape.elements() / width - 1;
    const auto mine = worker.share(view.rows());
    for (uint64_t t = mine.begin; t < mine.end; ++t) {
        const uint64_t position = std::min<uint64_t>(view.params.rows[t].position, last);
        vector_kernels(view.isa).add(view.floats(op.y) + t * width, view.vector(op.table) + position * width,
                                     width);
    }
}

void scale_by_expert(const RunView& view, const Worker& worker, const ScaleByExpert& op) {
    const size_t experts = view.plan.weight(op.factor).tensor.shape.elements();
    const auto mine = worker.share(uint64_t(view.rows()) * view.width(op.scales));
    for (uint64_t i = mine.begin; i < mine.end; ++i) {
        const auto id = size_t(view.ids(op.ids)[i]);
        view.floats(op.scales)[i] *= view.vector(op.factor)[id < experts ? id : 0];
    }
}

}  // namespace

std::unique_ptr<Kernel> make_vector_kernel(const Op& op, const Plan&, Isa) {
    if (const auto* o = std::get_if<Embed>(&op))
        return simple([o = *o](const RunView& v, const Worker& w) { embed(v, w, o); });
    if (const auto* o = std::get_if<Input>(&op))
        return simple([o = *o](const RunView& v, const Worker& w) { input(v, w, o); });
    if (const auto* o = std::get_if<Lookup>(&op))
        return simple([o = *o](const RunView& v, const Worker& w) { look_up(v, w, o); });
    if (const auto* o = std::get_if<RmsNorm>(&op); o && !o->adds && o->scale == 1.0f)
        return simple([o = *o](const RunView& v, const Worker& w) { rms_norm(v, w, o); });
    if (const auto* o = std::get_if<Sparsify>(&op))
        return simple([o = *o](const RunView& v, const Worker& w) { sparsify(v, w, o); });
    if (const auto* o = std::get_if<Center>(&op))
        return simple([o = *o](const RunView& v, const Worker& w) { center(v, w, o); });
    if (const auto* o = std::get_if<Hadamard>(&op))
        return simple([o = *o](const RunView& v, const Worker& w) { hadamard(v, w, o); });
    if (const auto* o = std::get_if<SelectRows>(&op))
        return simple([o = *o](const RunView& v, const Worker& w) { select_rows(v, w, o); });
    if (const auto* o = std::get_if<AddPosition>(&op))
        return simple([o = *o](const RunView& v, const Worker& w) { add_position(v, w, o); });
    if (const auto* o = std::get_if<ScaleByExpert>(&op))
        return simple([o = *o](const RunView& v, const Worker& w) { scale_by_expert(v, w, o); });
    if (const auto* o = std::get_if<AddExpertBias>(&op))
        return simple([o = *o](const RunView& v, const Worker& w) { add_expert_bias(v, w, o); });
    if (const auto* o = std::get_if<Each>(&op))
        return simple([o = *o](const RunView& v, const Worker& w) { each(v, w, o); });
    return nullptr;
}

}  // namespace redline::cpu
