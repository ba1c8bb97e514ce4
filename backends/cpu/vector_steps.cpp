// Embed, Input, RmsNorm, AddBias, Add, ActMul, SelectRows: work per row or per element.
#include "executable.h"

#include <algorithm>
#include <cstring>

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

void rms_norm(const RunView& view, const Worker& worker, const RmsNorm& op) {
    const uint64_t groups = uint64_t(view.rows_of(op.x)) * (view.width(op.x) / op.width);
    const auto mine = worker.share(groups);
    for (uint64_t g = mine.begin; g < mine.end; ++g)
        vector_kernels(view.isa).rms_norm(view.floats(op.x) + g * op.width, view.vector(op.norm.gain),
                                          op.norm.eps, op.width, view.floats(op.y) + g * op.width);
}

void select_rows(const RunView& view, const Worker& worker, const SelectRows& op) {
    const size_t width = view.width(op.x);
    const auto mine = worker.share(view.params.outputs.size());
    for (uint64_t i = mine.begin; i < mine.end; ++i)
        std::memcpy(view.floats(op.y) + i * width, view.floats(op.x) + view.params.outputs[i] * width,
                    width * sizeof(float));
}

}  // namespace

std::unique_ptr<Kernel> make_vector_kernel(const Op& op, const Plan&, Isa) {
    if (const auto* o = std::get_if<Embed>(&op))
        return simple([o = *o](const RunView& v, const Worker& w) { embed(v, w, o); });
    if (const auto* o = std::get_if<Input>(&op))
        return simple([o = *o](const RunView& v, const Worker& w) { input(v, w, o); });
    if (const auto* o = std::get_if<RmsNorm>(&op))
        return simple([o = *o](const RunView& v, const Worker& w) { rms_norm(v, w, o); });
    if (const auto* o = std::get_if<SelectRows>(&op))
        return simple([o = *o](const RunView& v, const Worker& w) { select_rows(v, w, o); });
    if (const auto* o = std::get_if<AddBias>(&op))
        return simple([o = *o](const RunView& v, const Worker& w) {
            const size_t width = v.width(o.y);
            const auto mine = w.share(v.rows_of(o.y));
            for (uint64_t t = mine.begin; t < mine.end; ++t)
                vector_kernels(v.isa).add(v.floats(o.y) + t * width, v.vector(o.bias), width);
        });
    if (const auto* o = std::get_if<Add>(&op))
        return simple([o = *o](const RunView& v, const Worker& w) {
            const auto mine = w.share(uint64_t(v.rows_of(o.y)) * v.width(o.y));
            vector_kernels(v.isa).add(v.floats(o.y) + mine.begin, v.floats(o.x) + mine.begin,
                                      mine.end - mine.begin);
        });
    if (const auto* o = std::get_if<ActMul>(&op))
        return simple([o = *o](const RunView& v, const Worker& w) {
            const auto mine = w.share(uint64_t(v.rows_of(o.y)) * v.width(o.y));
            vector_kernels(v.isa).act_mul(o.act, v.floats(o.gate) + mine.begin, v.floats(o.up) + mine.begin,
                                          mine.end - mine.begin, v.floats(o.y) + mine.begin);
        });
    return nullptr;
}

}  // namespace redline::cpu
