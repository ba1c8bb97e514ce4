// Attention with its rope and store (Attend): the same is true of it as of the attention in it.
#pragma once

#include "plan/backend.h"

namespace redline::gpu {

// A backend derives from it by a kernel that does rope and store of one row in the dispatch of its attention.
template <class GpuKernel, class Attention, class View>
class AttendKernel : public GpuKernel {
public:
    Choices choices(RowClass rows) const override {
        Choices all = attention_.choices(rows);
        if (rows == RowClass::one && fused_.value != 0) all.push_back(choice("fused", fused_, {0}));
        return all;
    }
    void take(RowClass rows, const Variant& variant) override {
        Kernel::take(rows, variant);
        attention_.take(rows, variant);
    }
    bool wanted() const override { return this->chosen(RowClass::one, "fused", fused_.value) != 0; }

    Precision precision(uint64_t rows) const override { return attention_.precision(rows); }
    uint64_t scratch(const Plan& plan) const override { return attention_.scratch(plan); }
    bool leaves_int8() const override { return attention_.leaves_int8(); }
    bool leaves_few() const override { return attention_.leaves_few(); }
    uint32_t parts_left(const View& view) const override { return attention_.parts_left(view); }
    bool mixes() const override { return attention_.mixes(); }

protected:
    template <class Device>
    AttendKernel(const Attend& op, const Plan& plan, const Device& device, const Default& fused)
        : op_(op), attention_(op.attention, plan, device), fused_(fused) {}

    Attend op_;
    Attention attention_;
    Default fused_;  // 0: it has no such kernel
};

}  // namespace redline::gpu
