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
        if (rows == RowClass::one && can_fuse_) all.push_back(choice("fused", 1, {0}));
        return all;
    }
    void take(RowClass rows, const Variant& variant) override {
        Kernel::take(rows, variant);
        attention_.take(rows, variant);
    }
    bool wanted() const override { return this->chosen(RowClass::one, "fused", can_fuse_ ? 1 : 0) != 0; }

    Precision precision(uint64_t rows) const override { return attention_.precision(rows); }
    uint64_t scratch(const Plan& plan) const override { return attention_.scratch(plan); }
    bool leaves_int8() const override { return attention_.leaves_int8(); }
    bool leaves_few() const override { return attention_.leaves_few(); }
    uint32_t parts_left(const View& view) const override { return attention_.parts_left(view); }
    bool mixes() const override { return attention_.mixes(); }

protected:
    template <class Device>
    AttendKernel(const Attend& op, const Plan& plan, const Device& device, bool can_fuse)
        : op_(op), attention_(op.attention, plan, device), can_fuse_(can_fuse) {}

    Attend op_;
    Attention attention_;
    bool can_fuse_;
};

}  // namespace redline::gpu
