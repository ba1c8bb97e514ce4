// Which kernels leave their row in int8 for which, and which do the work of the one before.
#include "backends/hip/runtime/executable.h"

namespace redline::hip {

args::HandOver View::hand_over() const {
    if (!handing.give) return {};
    return {handing.give, vector(handing.norm.gain), handing.units};
}

Status HipExecutable::allocate_handed(Memory& memory) {
    const auto kernel = [&](size_t i) -> const HipKernel& {
        return static_cast<const HipKernel&>(*bound_.kernels[i]);
    };
    handing_.resize(bound_.kernels.size());
    const std::vector<HandedRow> rows = handed_rows(
        bound_.plan, [&](size_t i) { return kernel(i).takes(bound_.plan); },
        [&](size_t i) { return kernel(i).gives(bound_.plan); });
    uint64_t bytes = 0;
    for (const HandedRow& row : rows) bytes += aligned(uint64_t(row.units) * args::kHandedUnitBytes);
    handed_ = RL_TRY(memory.allocate(bytes, Use::scratch, "activations in int8"));
    uint64_t at = 0;
    for (const HandedRow& row : rows) {
        handing_[row.from].units = row.units;
        handing_[row.from].norm = row.norm;
        handing_[row.from].give = handed_.data() + at;
        handing_[row.to].take = handed_.data() + at;
        at += aligned(uint64_t(row.units) * args::kHandedUnitBytes);
    }
    for (size_t i = 0; i < handing_.size(); ++i) {
        handing_[i].turned = kernel(i).turns() ? turned_by(bound_.plan, i) : nullptr;
        if (handing_[i].turned) handing_[i - 1].turned_later = true;
    }
    return {};
}

}  // namespace redline::hip
