// Which kernels do the work of the one before, and what one sees.
#include "backends/vulkan/runtime/executable.h"

namespace redline::vulkan {

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
    if (all.rows > 1) return own;
    own.handing = handing_[step];
    const Step& at = bound_.plan.steps[step];
    if (at.takes) own.taken = own.int8_row(at.takes);
    if (at.leaves) {
        own.left = own.int8_row(at.leaves);
        own.left_norm = bound_.plan.slot(at.leaves).norm;
    }
    return own;
}

}  // namespace redline::vulkan
