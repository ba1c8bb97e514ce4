// Which kernels do the work of the one before.
#include "backends/hip/runtime/executable.h"

namespace redline::hip {

void HipExecutable::find_turned() {
    handing_.resize(bound_.kernels.size());
    for (size_t i = 0; i < handing_.size(); ++i) {
        const bool turns = static_cast<const HipKernel&>(*bound_.kernels[i]).turns();
        handing_[i].turned = turns ? turned_by(bound_.plan, i) : nullptr;
        if (handing_[i].turned) handing_[i - 1].turned_later = true;
    }
}

}  // namespace redline::hip
