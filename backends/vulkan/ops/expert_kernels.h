// Kernels of mixtures of experts that are parts of a block of them as well.
#pragma once

#include "expert_product.h"
#include "expert_row.h"

namespace redline::vulkan {

class RouteKernel : public VulkanKernel {
public:
    RouteKernel(const Route& op, const Plan& plan);

    // Whether its dispatch can norm a row by itself.
    bool norms() const { return floats_; }

    uint64_t scratch(const Plan& plan) const override;
    Status record(Recorder& recorder, const View& view) const override;
    // Of norm(x); where it does not choose it leaves its logits alone. The scratch is the caller's to claim.
    Status record_of(Recorder& recorder, const View& view, Binding x, const Norm& norm, bool chooses) const;
    Binding logits(const View& view) const { return view.scratch_at(0, uint64_t(experts_) * 4 * view.rows); }

private:
    Status record_rows(Recorder& recorder, const View& view, Binding x, const Norm& norm, bool chooses,
                       uint32_t first, uint32_t rows, uint32_t tokens) const;

    Route op_;
    uint32_t experts_, cols_;
    bool floats_;
};

// What products with experts have in common: how they are cut is chosen alike.
class AnyExperts : public AnyProduct {
public:
    // Of steps whose rows are so many that they go to experts one by one, or sorted.
    Choices choices(RowClass rows) const override;
    Precision precision(uint64_t rows) const override;
    bool takes_int8() const override { return by_row(); }
    bool leaves_int8() const override { return by_row(); }

protected:
    AnyExperts(const Product& op, const Plan& plan, const Device& device, bool in_block)
        : op_(op), device_(device), tensor_(plan.weight(op.w()).tensor), in_block_(in_block) {}

    // Of one row, whether it goes to all its experts in one dispatch, and what that gives. In a block it
    // does, where its products hand it on in int8; a product that has to quantize floats is faster entry by
    // entry (on an H100 by 3 % of generation with Qwen3.5-35B-A3B).
    bool by_row() const { return in_block_ && has_row_kernel(); }
    virtual bool has_row_kernel() const = 0;
    virtual uint64_t results() const = 0;

    bool by_dots() const;
    // True where places of a step of so many rows are sorted by expert.
    bool sorts(uint64_t rows) const;
    uint32_t threads(uint64_t rows) const;
    Default usual_threads() const;
    // The product of sorted places, with the values that were chosen for so many rows.
    ExpertProduct sorted(uint64_t rows) const;

    Product op_;
    const Device& device_;
    Tensor tensor_;

private:
    bool goes_int8(uint64_t rows) const {
        return AnyProduct::goes_int8(device_, ExpertProduct::kTiled, std::span(&tensor_, 1), rows);
    }

    bool in_block_;
};

class ExpertLinearKernel : public AnyExperts {
public:
    ExpertLinearKernel(const Product& op, const Plan& plan, const Device& device, bool in_block = false)
        : AnyExperts(op, plan, device, in_block) {}

    uint64_t scratch(const Plan& plan) const override;
    Status record(Recorder& recorder, const View& view) const override;

    // Whether a row that another expert gives can be added along, and one row that it is.
    bool adds_beside() const { return by_row(); }
    Status record_row(Recorder& recorder, const View& view, Slot beside, Slot beside_scale) const;

protected:
    // All places' products are summed as one long row.
    bool has_row_kernel() const override;
    uint64_t results() const override { return tensor_.shape.rows; }

private:
    Status record_few(Recorder& recorder, const View& view) const;
    Status record_many(Recorder& recorder, const View& view) const;
    Status record_bias(Recorder& recorder, const View& view) const;
    // Experts of a row that expert_dot multiplies and sums at once: as many as their activations find room.
    uint32_t places_at_once() const;
    // Rows of the weight whose products are made before they are summed.
    uint32_t partial_rows(uint64_t rows) const;
    uint64_t partial_bytes(uint64_t rows) const;
};

class ExpertGatedKernel : public AnyExperts {
public:
    ExpertGatedKernel(const Product& op, const Plan& plan, const Device& device, bool in_block = false)
        : AnyExperts(op, plan, device, in_block) {}

    uint64_t scratch(const Plan& plan) const override;
    Status record(Recorder& recorder, const View& view) const override;

    // Whether the dispatch of few rows can norm them by itself.
    bool norms() const { return by_dots(); }
    // Whether that of one row can make the choice of experts.
    bool can_choose(const Route& route, const Plan& plan) const;
    // Of norm(x), one row or entry by entry; with a route one row whose choice is made by its logits.
    Status record_few(Recorder& recorder, const View& view, Slot x, const Norm& norm, const Route* route,
                      Binding logits) const;

protected:
    bool has_row_kernel() const override;
    uint64_t results() const override { return tensor_.shape.rows * op_.experts.used; }

private:
    Status record_row(Recorder& recorder, const View& view, Slot x, const Norm& norm, const Route* route,
                      Binding logits) const;
    Status record_many(Recorder& recorder, const View& view) const;
};

// Empty where the block cannot be computed whole. Its parts have kernels of their own.
std::unique_ptr<Kernel> make_expert_block(const ExpertBlock& op, const Plan& plan, const Device& device);

}  // namespace redline::vulkan
