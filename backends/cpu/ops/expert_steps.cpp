// Mixture of experts: Route picks experts per row; products by expert run the picked ones. Rows are
// sorted by expert, so that an expert's weights are read once however many rows picked it. Products by head
// are the same with heads for experts, all of which every row picks.
#include "backends/cpu/runtime/executable.h"

#include <algorithm>
#include <cmath>
#include <cstring>
#include <numeric>

namespace redline::cpu {

namespace {

// ---- Route ----

class RouteKernel : public CpuKernel {
public:
    RouteKernel(const Route& op, Isa isa, const Plan& plan)
        : op_(op), isa_(isa), format_(plan.weight(op.w).tensor.format) {}

    Precision precision(uint64_t) const override {
        return precision_of(linear_kernel(isa_, *format_, 1).activations);
    }

    // Logits of all rows, then prepared activations of all rows.
    uint64_t shared_scratch(const Plan& plan, uint32_t) const override {
        return aligned(experts(plan) * 4 * plan.max_rows) +
               activation_bytes(isa_, *format_, plan.slot(op_.x).width, 1) * plan.max_rows;
    }
    // Chances of a row, then which experts it has.
    uint64_t thread_scratch(const Plan& plan) const override { return experts(plan) * 5; }

    void run(const RunView& view, const Worker& worker, uint32_t step) const override {
        const uint32_t rows = view.rows();
        const size_t cols = view.width(op_.x), count = experts(view.plan);
        // The choice must not depend on how many rows are routed together: always the few-rows kernel.
        const LinearKernel& kernel = linear_kernel(view.isa, *format_, 1);
        const size_t stride = kernel.activation_bytes(cols);
        auto* logits = reinterpret_cast<float*>(view.shared_scratch);
        std::byte* prepared = view.shared_scratch + aligned(count * 4 * view.plan.max_rows);

        const auto mine = worker.share(rows);
        for (uint64_t t = mine.begin; t < mine.end; ++t)
            kernel.prepare(view.floats(op_.x) + t * cols, cols, prepared + t / kFew * kFew * stride, t % kFew,
                           std::min<uint64_t>(kFew, rows - t / kFew * kFew));
        worker.barrier();
        const PackedMatrix& w = view.weights[op_.w].matrix;
        Claims claims(view, worker, step, w.panels());
        for (uint64_t p; claims.next(p);)
            for (uint32_t t = 0; t < rows; t += kFew)
                kernel.multiply(w, p, p + 1, prepared + t * stride, stride, std::min(kFew, rows - t),
                                logits + t * count, count, false);
        worker.barrier();
        auto* chances = reinterpret_cast<float*>(view.scratch(worker));
        for (uint64_t t = mine.begin; t < mine.end; ++t) choose(view, logits + t * count, count, chances, t);
    }

private:
    static constexpr uint32_t kFew = 4;

    size_t experts(const Plan& plan) const { return plan.weight(op_.w).tensor.shape.rows; }

    void choose(const RunView& view, float* logits, size_t count, float* chances, uint64_t row) const {
        int32_t* const ids = view.ids(op_.ids) + row * op_.used;
        float* const scales = view.floats(op_.scales) + row * op_.used;
        const float* all = view.vector(op_.bias);
        const float* bias = op_.bias_of == BiasOf::choice ? all : nullptr;
        if (all && !bias) vector_kernels(view.isa).add(logits, all, count);
        probabilities(logits, count, chances);
        if (op_.table) {
            look_up(view.vector(op_.table) + size_t(view.params.tokens[row]) * op_.used, count, chances, ids,
                    scales);
            return;
        }
        // The logits are read no more but as the scores to choose by.
        for (size_t e = 0; e < count && !op_.chosen_by_logits(); ++e)
            logits[e] = chances[e] + (bias ? bias[e] : 0.0f);
        if (op_.groups.count > 1) leave_best_groups(logits, count);
        auto* const taken = reinterpret_cast<bool*>(chances + count);
        std::fill_n(taken, count, false);
        for (uint32_t k = 0; k < op_.used; ++k) {
            int32_t best = -1;
            float best_score = 0.0f;
            for (size_t e = 0; e < count; ++e) {
                if (taken[e]) continue;
                if (best >= 0 && !(logits[e] > best_score)) continue;
                best = int32_t(e);
                best_score = logits[e];
            }
            ids[k] = best;
            taken[best] = true;
            scales[k] = chances[size_t(best)];
            if (op_.gating == Gating::sparse_mixer) {
                scales[k] = share_of_near(chances, count, chances[size_t(best)]);
                chances[size_t(best)] = -INFINITY;
            }
        }
        weigh(scales);
    }

    // The experts that a token has in the table, and their weights.
    void look_up(const float* own, size_t count, const float* chances, int32_t* ids, float* scales) const {
        for (uint32_t k = 0; k < op_.used; ++k) {
            ids[k] = int32_t(std::clamp(own[k], 0.0f, float(count - 1)));
            scales[k] = chances[ids[k]];
        }
        weigh(scales);
    }

    // Scores of experts in other groups become the lowest there are.
    void leave_best_groups(float* scores, size_t count) const {
        const size_t size = count / op_.groups.count;
        std::vector<float> worth;
        for (float* group = scores; group < scores + count; group += size) {
            float best = -INFINITY, second = -INFINITY;
            for (size_t i = 0; i < size; ++i) {
                second = std::max(second, std::min(best, group[i]));
                best = std::max(best, group[i]);
            }
            worth.push_back(op_.groups.by_two ? best + second : best);
        }
        std::vector<size_t> order(worth.size());
        std::iota(order.begin(), order.end(), size_t(0));
        std::stable_sort(order.begin(), order.end(), [&](size_t a, size_t b) { return worth[a] > worth[b]; });
        for (size_t i = op_.groups.used; i < order.size(); ++i)
            std::fill_n(scores + order[i] * size, size, -INFINITY);
    }

    void probabilities(const float* logits, size_t count, float* chances) const {
        if (op_.gating == Gating::sigmoid) {
            for (size_t e = 0; e < count; ++e) chances[e] = 1.0f / (1.0f + std::exp(-logits[e]));
            return;
        }
        if (op_.gating == Gating::sqrt_softplus) {
            for (size_t e = 0; e < count; ++e)
                chances[e] =
                    std::sqrt(std::max(logits[e], 0.0f) + std::log1p(std::exp(-std::abs(logits[e]))));
            return;
        }
        std::copy(logits, logits + count, chances);
        if (op_.gating == Gating::softmax) softmax(chances, count);
    }

    // Of the best logit that is left.
    static float share_of_near(const float* logits, size_t count, float best) {
        float sum = 0.0f;
        for (size_t e = 0; e < count; ++e)
            if (!(best - logits[e] > kMixerReach * std::max(std::abs(logits[e]), best)))
                sum += std::exp(logits[e] - best);
        return 1.0f / sum;
    }

    static void softmax(float* values, size_t count) {
        const float top = *std::max_element(values, values + count);
        double sum = 0.0;
        for (size_t i = 0; i < count; ++i) sum += values[i] = std::exp(values[i] - top);
        for (size_t i = 0; i < count; ++i) values[i] = float(values[i] / sum);
    }

    void weigh(float* scales) const {
        if (op_.gating == Gating::softmax_of_selected) softmax(scales, op_.used);
        if (op_.normalise) {
            float sum = 0.0f;
            for (uint32_t k = 0; k < op_.used; ++k) sum += scales[k];
            for (uint32_t k = 0; k < op_.used; ++k) scales[k] /= std::max(sum, 6.103515625e-5f);
        }
        for (uint32_t k = 0; k < op_.used; ++k) scales[k] *= op_.scale;
    }

    Route op_;
    Isa isa_;
    const Format* format_;
};

// ---- experts ----

// The (row, place) pairs of a step in the order of their experts: those of expert e are [first[e], first[e +
// 1]).
struct Assignment {
    std::vector<uint32_t> first;
    std::vector<uint32_t> entries;  // row * used + place
    std::vector<uint32_t> picked;   // the experts that have any

    uint32_t after(size_t i) const { return picked[i + 1 < picked.size() ? i + 1 : 0]; }
};

// Every worker sorts for itself: a few thousand small integers cost less than a wait. An id that is no expert
// (the router saw NaN) counts as expert 0, whose NaN scale carries the trouble on.
const Assignment& assign(const int32_t* ids, uint32_t rows, uint32_t used, uint64_t experts) {
    static thread_local Assignment a;
    a.first.assign(experts + 1, 0);
    a.entries.resize(size_t(rows) * used);
    const auto expert = [&](size_t i) { return uint64_t(ids[i]) < experts ? uint64_t(ids[i]) : 0; };
    for (size_t i = 0; i < a.entries.size(); ++i) ++a.first[expert(i) + 1];
    a.picked.clear();
    for (uint64_t e = 0; e < experts; ++e) {
        if (a.first[e + 1] > 0) a.picked.push_back(uint32_t(e));
        a.first[e + 1] += a.first[e];
    }
    static thread_local std::vector<uint32_t> next;
    next.assign(a.first.begin(), a.first.end() - 1);
    for (size_t i = 0; i < a.entries.size(); ++i) a.entries[next[expert(i)]++] = uint32_t(i);
    return a;
}

// As if each row had picked every one of `heads` experts.
const Assignment& assign_all(uint32_t rows, uint32_t heads) {
    static thread_local Assignment a;
    a.first.clear();
    a.entries.clear();
    a.picked.clear();
    for (uint32_t h = 0; h < heads; ++h) a.picked.push_back(h);
    for (uint32_t h = 0; h <= heads; ++h) a.first.push_back(h * rows);
    for (uint32_t h = 0; h < heads; ++h)
        for (uint32_t row = 0; row < rows; ++row) a.entries.push_back(row * heads + h);
    return a;
}

// What these products share: activations prepared in the order of the experts.
class ExpertKernel : public CpuKernel {
public:
    ExpertKernel(const Product& op, Isa isa, const Plan& plan)
        : x_(op.x),
          ids_(op.experts.ids),
          isa_(isa),
          format_(plan.weight(op.w()).tensor.format),
          shape_(plan.weight(op.w()).tensor.shape),
          used_(ids_ ? op.experts.used : uint32_t(shape_.count)),
          per_expert_(!ids_ || op.experts.per_expert) {}

    Precision precision(uint64_t rows) const override {
        // Experts with few rows use the few-rows kernel; the looser of the two is what can be promised.
        return loosest(precision_of(linear_kernel(isa_, *format_, rows).activations),
                       precision_of(linear_kernel(isa_, *format_, 1).activations));
    }

    bool alike_rows(const Plan&) const override { return alike_products(isa_, *format_); }
    uint64_t shared_scratch(const Plan& plan, uint32_t) const override {
        return activation_bytes(isa_, *format_, shape_.cols, plan.max_rows) * plan.max_rows * used_;
    }
    uint64_t thread_scratch(const Plan& plan) const override {
        return product_bytes(plan) + activation_bytes(isa_, *format_, shape_.cols, plan.max_rows);
    }

protected:
    static constexpr uint64_t kChunk = kStreamPanels;  // panels per unit of work

    // Rows of one expert prepared for its kernel; entries of a are rows of the result.
    struct Batch {
        const LinearKernel* kernel;
        const std::byte* x;
        size_t stride;
        uint32_t rows;
        const uint32_t* entries;
    };

    // Of two products of all rows in a thread's scratch, before the activations of a lone row.
    uint64_t product_bytes(const Plan& plan) const {
        return uint64_t(plan.max_rows) * used_ * kChunk * kPanelRows * 4 * 2;
    }

    // Whether all experts get one and the same row, which every worker prepares for itself: cheaper than
    // waiting.
    bool is_lone(const RunView& view, const Assignment& a) const {
        return view.rows() == 1 && !per_expert_ && a.picked.size() == used_;
    }

    // Of rows, or of their parts for the experts, `stride` floats apart.
    const Assignment& prepare(const RunView& view, const Worker& worker, size_t stride) const {
        const Assignment& a =
            ids_ ? assign(view.ids(ids_), view.rows(), used_, shape_.count) : assign_all(view.rows(), used_);
        if (is_lone(view, a)) {
            linear_kernel(view.isa, *format_, 1)
                .prepare(view.floats(x_), shape_.cols, view.scratch(worker) + product_bytes(view.plan), 0, 1);
            return a;
        }
        uint64_t at = 0;
        for (const uint32_t e : a.picked) {
            const Batch b = batch(view, worker, a, e);
            for (uint32_t i = 0; i < b.rows; ++i, ++at) {
                if (at % worker.count != worker.index) continue;
                const size_t source = per_expert_ ? b.entries[i] : b.entries[i] / used_;
                b.kernel->prepare(view.floats(x_) + source * stride, shape_.cols, const_cast<std::byte*>(b.x),
                                  i, b.rows);
            }
        }
        worker.barrier();
        return a;
    }

    Batch batch(const RunView& view, const Worker& worker, const Assignment& a, uint64_t e) const {
        const uint32_t rows = a.first[e + 1] - a.first[e];
        const LinearKernel& kernel = linear_kernel(view.isa, *format_, std::max(1u, rows));
        const size_t slot = activation_bytes(view.isa, *format_, shape_.cols, view.plan.max_rows);
        const std::byte* x = is_lone(view, a) ? view.scratch(worker) + product_bytes(view.plan)
                                              : view.shared_scratch + a.first[e] * slot;
        return {&kernel, x, kernel.activation_bytes(shape_.cols), rows, a.entries.data() + a.first[e]};
    }

    // Those of an expert's rows from `first` on; null: none.
    const float* bias_of(const RunView& view, Weight bias, uint64_t expert, uint64_t first) const {
        return bias ? view.vector(bias) + expert * shape_.rows + first : nullptr;
    }

    Slot x_;
    Slot ids_;  // none: of each row, all
    Isa isa_;
    const Format* format_;
    Shape shape_;
    uint32_t used_;
    bool per_expert_;
};

// Units are chunks of output rows, each over all picked experts: then a worker owns its columns of y and may
// add to them.
class ExpertLinearKernel : public ExpertKernel {
public:
    ExpertLinearKernel(const Product& op, Isa isa, const Plan& plan) : ExpertKernel(op, isa, plan), op_(op) {}

    void run(const RunView& view, const Worker& worker, uint32_t step) const override {
        const Assignment& a = prepare(view, worker, shape_.cols);
        const PlacedWeight& w = view.weights[op_.w()];
        auto* out = reinterpret_cast<float*>(view.scratch(worker));
        constexpr size_t kStride = kChunk * kPanelRows;
        Claims claims(view, worker, step, (w.matrix.panels() + kChunk - 1) / kChunk);
        for (uint64_t chunk; claims.next(chunk);) {
            const uint64_t p = chunk * kChunk;
            const uint64_t end = std::min(p + kChunk, w.matrix.panels());
            const uint64_t first = p * kPanelRows, last = std::min(end * kPanelRows, shape_.rows);
            for (size_t at = 0; at < a.picked.size(); ++at) {
                const uint32_t e = a.picked[at];
                const Batch b = batch(view, worker, a, e);
                PackedMatrix m = w.expert(e);
                m.next = w.panel(a.after(at), at + 1 < a.picked.size() ? p : end);
                b.kernel->multiply(m, p, end, b.x, b.stride, b.rows, out - first, kStride, false);
                const float* bias = bias_of(view, op_.bias(), e, first);
                for (uint32_t i = 0; i < b.rows; ++i) {
                    float* values = out + i * kStride;
                    if (bias) vector_kernels(view.isa).add(values, bias, last - first);
                    put(view, b.entries[i], values, first, last);
                }
            }
        }
    }

private:
    void put(const RunView& view, uint32_t entry, const float* values, uint64_t first, uint64_t last) const {
        if (op_.experts.scales) {
            const uint32_t row = entry / used_;
            vector_kernels(view.isa).add_scaled(view.floats(op_.y()) + row * shape_.rows + first, values,
                                                view.floats(op_.experts.scales)[entry], last - first);
        } else {
            std::memcpy(view.floats(op_.y()) + entry * shape_.rows + first, values,
                        (last - first) * sizeof(float));
        }
    }

    Product op_;
};

// Units are chunks of one expert's output rows.
class ExpertGatedKernel : public ExpertKernel {
public:
    ExpertGatedKernel(const Product& op, Isa isa, const Plan& plan) : ExpertKernel(op, isa, plan), op_(op) {}

    void run(const RunView& view, const Worker& worker, uint32_t step) const override {
        const Assignment& a = prepare(view, worker, shape_.cols);
        const PlacedWeight& gate_w = view.weights[op_.w(0)];
        const PlacedWeight& up_w = view.weights[op_.w(1)];
        constexpr size_t kStride = kChunk * kPanelRows;
        auto* gate = reinterpret_cast<float*>(view.scratch(worker));
        float* up = gate + size_t(view.plan.max_rows) * used_ * kStride;
        const uint64_t chunks = (gate_w.matrix.panels() + kChunk - 1) / kChunk;
        Claims claims(view, worker, step, a.picked.size() * chunks);
        for (uint64_t unit; claims.next(unit);) {
            const size_t at = unit / chunks;
            const uint32_t e = a.picked[at];
            const uint64_t p = unit % chunks * kChunk;
            const uint64_t end = std::min(p + kChunk, gate_w.matrix.panels());
            const uint64_t first = p * kPanelRows, last = std::min(end * kPanelRows, shape_.rows);
            const Batch b = batch(view, worker, a, e);
            PackedMatrix gates = gate_w.expert(e), ups = up_w.expert(e);
            gates.next = up_w.panel(e, p);
            ups.next = end < gate_w.matrix.panels() ? gate_w.panel(e, end) : gate_w.panel(a.after(at), 0);
            b.kernel->multiply(gates, p, end, b.x, b.stride, b.rows, gate - first, kStride, false);
            b.kernel->multiply(ups, p, end, b.x, b.stride, b.rows, up - first, kStride, false);
            const float* gate_bias = bias_of(view, op_.bias(0), e, first);
            const float* up_bias = bias_of(view, op_.bias(1), e, first);
            const VectorKernels& kernels = vector_kernels(view.isa);
            for (uint32_t i = 0; i < b.rows; ++i) {
                float *g = gate + i * kStride, *u = up + i * kStride;
                if (gate_bias) kernels.add(g, gate_bias, last - first);
                if (up_bias) kernels.add(u, up_bias, last - first);
                kernels.act_mul(*op_.act, g, u, last - first,
                                view.floats(op_.y()) + b.entries[i] * shape_.rows + first);
            }
        }
    }

private:
    Product op_;
};

// Units are chunks of a head's output rows.
class HeadLinearKernel : public ExpertKernel {
public:
    HeadLinearKernel(const Product& op, Isa isa, const Plan& plan) : ExpertKernel(op, isa, plan), op_(op) {}

    uint64_t thread_scratch(const Plan& plan) const override {
        return uint64_t(plan.max_rows) * kChunk * kPanelRows * 4;
    }

    void run(const RunView& view, const Worker& worker, uint32_t step) const override {
        const Assignment& a = prepare(view, worker, op_.strides.x);
        const PlacedWeight& w = view.weights[op_.w()];
        auto* out = reinterpret_cast<float*>(view.scratch(worker));
        constexpr size_t kStride = kChunk * kPanelRows;
        const uint64_t chunks = (w.matrix.panels() + kChunk - 1) / kChunk;
        Claims claims(view, worker, step, chunks * used_);
        for (uint64_t i; claims.next(i);) {
            const uint64_t p = i % chunks * kChunk, end = std::min(p + kChunk, w.matrix.panels());
            const uint64_t first = p * kPanelRows, last = std::min(end * kPanelRows, shape_.rows);
            const Batch b = batch(view, worker, a, i / chunks);
            b.kernel->multiply(w.expert(i / chunks), p, end, b.x, b.stride, b.rows, out - first, kStride,
                               false);
            for (uint32_t row = 0; row < b.rows; ++row)
                std::memcpy(view.floats(op_.y()) + b.entries[row] * size_t(op_.strides.y) + first,
                            out + row * kStride, (last - first) * sizeof(float));
        }
    }

private:
    Product op_;
};

}  // namespace

std::unique_ptr<Kernel> make_expert_kernel(const Op& op, const Plan& plan, Isa isa) {
    if (const auto* o = std::get_if<Route>(&op); o && !o->norm)
        return std::make_unique<RouteKernel>(*o, isa, plan);
    if (const Product* o = product_by(By::head, op)) return std::make_unique<HeadLinearKernel>(*o, isa, plan);
    const Product* o = product_by(By::expert, op);
    if (!o || o->function) return nullptr;
    if (!o->act) return std::make_unique<ExpertLinearKernel>(*o, isa, plan);
    if (plan.weight(o->w(0)).tensor.format != plan.weight(o->w(1)).tensor.format) return nullptr;
    return std::make_unique<ExpertGatedKernel>(*o, isa, plan);
}

}  // namespace redline::cpu
