// Which kernels leave their row in int8 for which, and which do the work of the one before.
#include "backends/vulkan/runtime/executable.h"

namespace redline::vulkan {

constexpr uint64_t kHandedUnitBytes = 48;  // of 32 elements, as shaders/include/leave_row.glsl lays them out

Status VulkanExecutable::allocate_handed(Memory& memory) {
    const auto kernel = [&](size_t i) -> const VulkanKernel& {
        return static_cast<const VulkanKernel&>(*bound_.kernels[i]);
    };
    const std::vector<HandedRow> rows = handed_rows(
        bound_.plan, [&](size_t i) { return kernel(i).takes(bound_.plan); },
        [&](size_t i) { return kernel(i).gives(weights_); });
    if (rows.empty()) return {};
    uint64_t bytes = 0;
    for (const HandedRow& row : rows) bytes += aligned(row.units * kHandedUnitBytes);
    handed_ = RL_TRY(memory.allocate(bytes, Use::scratch, "activations in int8"));
    uint64_t at = 0;
    for (const HandedRow& row : rows) {
        handing_[row.from].units = row.units;
        handing_[row.from].norm = row.norm;
        handing_[row.from].give =
            handing_[row.to].take = {handed_.handle(), at, row.units * kHandedUnitBytes};
        at += aligned(row.units * kHandedUnitBytes);
    }
    return {};
}

void VulkanExecutable::find_turned() {
    for (size_t i = 0; i < bound_.kernels.size(); ++i) {
        const RopeStore* turned = turned_by(bound_.plan, i);
        if (!turned || !static_cast<const VulkanKernel&>(*bound_.kernels[i]).turns()) continue;
        handing_[i].turns = turned;
        handing_[i - 1].done_by_next = true;
    }
}

// What one step's kernel sees: rows are handed on one at a time only.
View VulkanExecutable::view_of(const View& all, size_t step) const {
    View own = all;
    if (all.rows == 1) own.handing = handing_[step];
    return own;
}

}  // namespace redline::vulkan
