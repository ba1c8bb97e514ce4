// One set of activations as its products want it: as it is, normed, or prepared in a form of their path's.
//
// A backend says by its struct Gpu what differs, beside Encoder and View:
//   Operand: memory as kernels are told of it
//   takes_few(view): the rows of a step of few are taken as halfs, so that nothing is left to do
//   prepared_bytes(plan, x): of the largest form; code_bytes(plan, x, rows): of codes for matrices in int8,
//     behind which their scales stand
//   norm(encoder, view, op, y); prepare(encoder, view, path, x, form...), with what the caller said of a form
#pragma once

#include "backends/gpu/paths.h"
#include "backends/shared/products.h"

#include <span>

namespace redline::gpu {

inline uint64_t most_rows(const Plan& plan, Slot x) {
    return plan.slot(x).of_outputs ? plan.max_outputs : plan.max_rows;
}

template <class Gpu>
class Activations {
public:
    using Encoder = typename Gpu::Encoder;
    using View = typename Gpu::View;
    using Operand = typename Gpu::Operand;

    Activations(Slot x, const Norm& norm) : x_(x), norm_(norm) {}

    // Of scratch, from offset 0, for plans of at most plan.max_rows: what is normed, what is prepared, and a
    // scale for each row.
    static uint64_t scratch(const Plan& plan, Slot x) {
        return prepared_at(plan, x) + Gpu::prepared_bytes(plan, x) + aligned(most_rows(plan, x) * 4);
    }
    // Encodes what `paths` need; afterwards the products can be encoded.
    template <class... Form>
    Status prepare(Encoder& to, const View& view, std::span<const Path> paths, const Form&... form) {
        raw_ = floats_ = view.slot(x_);
        if (Gpu::takes_few(view)) return {};
        const auto in_floats = [](Path path) { return path == Path::floats || path == Path::tiles; };
        const bool norms = norm_ && std::ranges::any_of(paths, in_floats);
        const auto first = std::ranges::find_if(paths, is_prepared);
        place(view, first != paths.end() && *first == Path::int8_matrices);
        if (!norms && first == paths.end()) return {};
        to.claim_scratch();
        if (norms) {
            floats_ = view.scratch_at(0, uint64_t(view.width(x_)) * view.rows_of(x_) * 4);
            RL_TRY(Gpu::norm(to, view, RmsNorm{x_, norm_, view.width(x_)}, floats_));
        }
        if (first != paths.end()) {
            for (const Path path : paths)
                RL_CHECK(!is_prepared(path) || form_of(path) == form_of(*first),
                         "activations are wanted in two forms");
            RL_TRY(Gpu::prepare(to, view, *first, *this, form...));
        }
        to.barrier();
        return {};
    }

    Slot slot() const { return x_; }
    const Norm& norm() const { return norm_; }
    Operand raw() const { return raw_; }            // for dot_own and floats_own, which norm by themselves
    Operand floats() const { return floats_; }      // normed
    Operand prepared() const { return prepared_; }  // dot_prepared, on matrices
    Operand scales() const { return scales_; }      // on matrices: per row, in int8 per 32 elements

private:
    static uint64_t prepared_at(const Plan& plan, Slot x) { return aligned(plan.slot_bytes(x)); }
    static bool is_prepared(Path path) {
        return path == Path::dot_prepared || path == Path::int8_matrices || on_matrices(path);
    }
    // Halfs are alike for all paths on matrix units but Path::few.
    static Path form_of(Path path) { return on_matrices(path) && path != Path::few ? Path::matrices : path; }
    // All forms take the same place: products of one set of activations differ in format, not in rows.
    void place(const View& view, bool codes) {
        const uint32_t rows = view.rows_of(x_);
        const uint64_t at = prepared_at(view.plan, x_), all = Gpu::prepared_bytes(view.plan, x_),
                       bytes = codes ? Gpu::code_bytes(view.plan, x_, rows) : all;
        prepared_ = view.scratch_at(at, bytes);
        scales_ = view.scratch_at(at + bytes, codes ? all - bytes : uint64_t(rows) * 4);
    }

    Slot x_;
    Norm norm_;
    Operand raw_ = {}, floats_ = {}, prepared_ = {}, scales_ = {};
};

}  // namespace redline::gpu
