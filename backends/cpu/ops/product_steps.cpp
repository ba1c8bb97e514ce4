// Products of whole rows.
#include "backends/cpu/runtime/executable.h"

#include <algorithm>
#include <cstring>

namespace redline::cpu {

bool alike_products(Isa isa, const Format& format) {
    return linear_kernel(isa, format, 1).alike && linear_kernel(isa, format, kAlikeRows).alike;
}

namespace {

// Normalises rows [begin, end) of `rows` (when a norm is given) and prepares them for `kernel`.
void prepare_rows(const RunView& view, const LinearKernel& kernel, const float* x, size_t cols,
                  const Norm& norm, uint64_t begin, uint64_t end, uint64_t rows, float* normed,
                  std::byte* set) {
    for (uint64_t t = begin; t < end; ++t) {
        const float* row = x + t * cols;
        if (norm) {
            vector_kernels(view.isa).rms_norm(row, view.vector(norm.gain), norm.eps, cols, normed);
            row = normed;
        }
        kernel.prepare(row, cols, set, t, rows);
    }
}

// Panels per claimed chunk, in whole groups that a kernel reads side by side: one for few rows, where
// bandwidth is the limit and a worker's chunks follow one another; for many rows as many as share prepared
// activations in the cache, but several chunks per worker.
constexpr uint64_t kMaxChunk = 4 * kStreamPanels;
uint64_t chunk_panels(const PackedMatrix& w, uint32_t rows, uint32_t workers) {
    if (rows <= 8) return kStreamPanels;
    return w.panels() >= kMaxChunk * 4 * workers ? kMaxChunk : 2 * kStreamPanels;
}

uint64_t chunks_of(const PackedMatrix& w, uint64_t size) {
    return (w.panels() + size - 1) / size;
}

// One op's product(s): parts of equal input, each with its own matrix and destination.
class ProductKernel : public CpuKernel {
public:
    ProductKernel(const Product& op, Isa isa, const Plan& plan) : op_(op), isa_(isa) {
        for (const Part& part : op_.all()) formats_.push_back(plan.weight(part.w).tensor.format);
    }

    Precision precision(uint64_t rows) const override {
        Precision all;
        for (const Format* format : formats_)
            all = loosest(all, precision_of(linear_kernel(isa_, *format, rows).activations));
        return all;
    }

    bool alike_rows(const Plan&) const override {
        return std::all_of(formats_.begin(), formats_.end(),
                           [this](const Format* format) { return alike_products(isa_, *format); });
    }
    uint64_t shared_scratch(const Plan& plan, uint32_t) const override {
        return plan.max_rows == 1 ? 0 : prepared_bytes(plan) * rows_at_most(plan);
    }
    uint64_t thread_scratch(const Plan& plan) const override {
        return aligned(uint64_t(plan.slot(op_.x).width) * 4) + prepared_bytes(plan);
    }

    void run(const RunView& view, const Worker& worker, uint32_t step) const override {
        const uint32_t rows = view.rows_of(op_.y());
        const size_t cols = view.width(op_.x);
        auto* normed = reinterpret_cast<float*>(view.scratch(worker));
        std::byte* own = view.scratch(worker) + aligned(cols * 4);

        // A single row is prepared by every worker for itself, which is cheaper than waiting for one of them.
        std::byte* const base = rows == 1 ? own : view.shared_scratch;
        std::byte* at = base;
        std::vector<Prepared>& prepared = prepared_for_thread();
        prepared.clear();
        for (const Format* format : formats_) {
            const LinearKernel& kernel = linear_kernel(view.isa, *format, rows);
            if (find(prepared, kernel)) continue;
            const size_t stride = kernel.activation_bytes(cols);
            const auto mine = rows == 1 ? Worker::Range{0, 1} : worker.share(rows);
            prepare_rows(view, kernel, view.floats(op_.x), cols, op_.norm, mine.begin, mine.end, rows, normed,
                         at);
            prepared.push_back({kernel.prepare, at, stride});
            at += stride * rows;
        }
        if (rows > 1) worker.barrier();
        multiply_parts(view, worker, step, rows, prepared);
    }

private:
    using Part = Product::Part;
    struct Prepared {
        decltype(LinearKernel::prepare) by;
        const std::byte* rows;
        size_t stride;
    };

    static std::vector<Prepared>& prepared_for_thread() {
        static thread_local std::vector<Prepared> list;
        return list;
    }
    static const Prepared* find(const std::vector<Prepared>& list, const LinearKernel& kernel) {
        for (const Prepared& p : list)
            if (p.by == kernel.prepare) return &p;
        return nullptr;
    }

    uint64_t rows_at_most(const Plan& plan) const {
        return plan.slot(op_.y()).of_outputs ? plan.max_outputs : plan.max_rows;
    }
    // Of one row, in every way that the parts' formats want it.
    uint64_t prepared_bytes(const Plan& plan) const {
        uint64_t sum = 0;
        for (const Format* format : formats_)
            sum += activation_bytes(isa_, *format, plan.slot(op_.x).width, plan.max_rows);
        return sum;
    }

    void multiply_parts(const RunView& view, const Worker& worker, uint32_t step, uint32_t rows,
                        const std::vector<Prepared>& prepared) const {
        // Chunks are numbered through all parts, so that no worker idles between them.
        const uint64_t size = chunk_panels(view.weights[op_.w()].matrix, rows, worker.count);
        uint64_t chunks = 0;
        for (const Part& part : op_.all()) chunks += chunks_of(view.weights[part.w].matrix, size);
        Claims claims(view, worker, step, chunks);
        for (uint64_t chunk; claims.next(chunk);) {
            size_t i = 0;
            for (; chunk >= chunks_of(view.weights[op_.w(i)].matrix, size); ++i)
                chunk -= chunks_of(view.weights[op_.w(i)].matrix, size);
            const Part& part = op_.parts[i];
            const PackedMatrix& w = view.weights[part.w].matrix;
            const LinearKernel& kernel = linear_kernel(view.isa, *formats_[i], rows);
            const Prepared& x = *find(prepared, kernel);
            const uint64_t begin = chunk * size, end = std::min(begin + size, w.panels());
            kernel.multiply(w, begin, end, x.rows, x.stride, rows, view.floats(part.y), w.rows,
                            op_.accumulate);
            if (part.bias) add_bias(view, part, begin * kPanelRows, std::min(end * kPanelRows, w.rows), rows);
        }
    }

    static void add_bias(const RunView& view, const Part& part, uint64_t begin, uint64_t end, uint32_t rows) {
        const float* bias = view.vector(part.bias);
        const size_t width = view.width(part.y);
        for (uint32_t t = 0; t < rows; ++t)
            vector_kernels(view.isa).add(view.floats(part.y) + t * width + begin, bias + begin, end - begin);
    }

    Product op_;
    Isa isa_;
    std::vector<const Format*> formats_;
};

// y = act(gate x) * (up x), a chunk of panels at a time so that the gate's part is still in cache for the
// product.
class GatedKernel : public CpuKernel {
public:
    GatedKernel(const Product& op, Isa isa, const Plan& plan)
        : op_(op), isa_(isa), format_(plan.weight(op.w()).tensor.format) {}

    Precision precision(uint64_t rows) const override {
        return precision_of(linear_kernel(isa_, *format_, rows).activations);
    }

    bool alike_rows(const Plan&) const override { return alike_products(isa_, *format_); }
    uint64_t shared_scratch(const Plan& plan, uint32_t) const override {
        if (plan.max_rows == 1) return 0;
        return activation_bytes(isa_, *format_, plan.slot(op_.x).width, plan.max_rows) * plan.max_rows;
    }
    uint64_t thread_scratch(const Plan& plan) const override {
        const uint64_t cols = plan.slot(op_.x).width;
        return aligned(cols * 4) + activation_bytes(isa_, *format_, cols, plan.max_rows) + up_bytes(plan);
    }

    void run(const RunView& view, const Worker& worker, uint32_t step) const override {
        const uint32_t rows = view.rows();
        const size_t cols = view.width(op_.x);
        const LinearKernel& kernel = linear_kernel(view.isa, *format_, rows);
        const size_t stride = kernel.activation_bytes(cols);
        std::byte* at = view.scratch(worker);
        auto* normed = reinterpret_cast<float*>(at);
        std::byte* own = at + aligned(cols * 4);
        auto* up =
            reinterpret_cast<float*>(own + activation_bytes(view.isa, *format_, cols, view.plan.max_rows));

        std::byte* prepared = rows == 1 ? own : view.shared_scratch;
        const auto mine = rows == 1 ? Worker::Range{0, 1} : worker.share(rows);
        prepare_rows(view, kernel, view.floats(op_.x), cols, op_.norm, mine.begin, mine.end, rows, normed,
                     prepared);
        if (rows > 1) worker.barrier();

        const PackedMatrix& gate_w = view.weights[op_.w(0)].matrix;
        const PackedMatrix& up_w = view.weights[op_.w(1)].matrix;
        const uint64_t size = chunk_panels(gate_w, rows, worker.count);
        const size_t width = view.width(op_.y());
        const size_t up_stride = size * kPanelRows;
        Claims claims(view, worker, step, chunks_of(gate_w, size));
        for (uint64_t chunk; claims.next(chunk);) {
            const uint64_t begin = chunk * size, end = std::min(begin + size, gate_w.panels());
            float* y = view.floats(op_.y());
            kernel.multiply(gate_w, begin, end, prepared, stride, rows, y, width, false);
            // `up` holds this chunk only: shift the base so that row numbers stay those of the matrix.
            kernel.multiply(up_w, begin, end, prepared, stride, rows, up - begin * kPanelRows, up_stride,
                            false);
            const uint64_t first = begin * kPanelRows,
                           last = std::min<uint64_t>(end * kPanelRows, gate_w.rows);
            const Act act = *op_.act;
            for (uint32_t t = 0; t < rows; ++t)
                vector_kernels(view.isa).act_mul(act, y + t * width + first, up + t * up_stride, last - first,
                                                 y + t * width + first);
        }
    }

private:
    static uint64_t up_bytes(const Plan& plan) {
        return uint64_t(plan.max_rows) * kMaxChunk * kPanelRows * 4;
    }

    Product op_;
    Isa isa_;
    const Format* format_;
};

}  // namespace

std::unique_ptr<Kernel> make_product_kernel(const Op& op, const Plan& plan, Isa isa) {
    const Product* product = product_by(By::row, op);
    if (!product || product->function) return nullptr;
    if (!product->act) return std::make_unique<ProductKernel>(*product, isa, plan);
    // Both halves share their prepared activations, so they must be of one format; else they are decomposed.
    if (plan.weight(product->w(0)).tensor.format != plan.weight(product->w(1)).tensor.format) return nullptr;
    return std::make_unique<GatedKernel>(*product, isa, plan);
}

}  // namespace redline::cpu
