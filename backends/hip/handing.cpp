// Which kernels leave their row in int8 for which.
#include "executable.h"

namespace redline::hip {

namespace {

bool writes(const Op& op, Slot slot) {
    const std::vector<Slot> written = access(op).writes;
    return std::find(written.begin(), written.end(), slot) != written.end();
}

}  // namespace

args::HandOver View::hand_over() const {
    if (!handing.give) return {};
    return {handing.give, vector(handing.norm.gain), handing.units};
}

// A row is left for the first that takes it: others, that norm in another way, find it in f32 as well.
Status HipExecutable::allocate_handed(Memory& memory) {
    const Plan& plan = bound_.plan;
    struct Pair {
        size_t from, to;
        uint64_t at;
    };
    std::vector<Pair> pairs;
    uint64_t bytes = 0;
    const auto kernel = [&](size_t i) -> const HipKernel& {
        return static_cast<const HipKernel&>(*bound_.kernels[i]);
    };
    handing_.resize(bound_.kernels.size());
    for (size_t to = 0; to < handing_.size(); ++to) {
        const std::optional<HipKernel::Taken> taken = kernel(to).takes(plan);
        if (!taken || plan.slot(taken->x).of_outputs || plan.slot(taken->x).width % 32 != 0) continue;
        size_t from = to;
        while (from > 0 && !writes(plan.steps[from - 1].op, taken->x)) --from;
        if (from-- == 0 || handing_[from].units != 0 || !kernel(from).gives(plan)) continue;
        handing_[from].units = uint32_t(plan.slot(taken->x).width / 32);
        handing_[from].norm = taken->norm;
        pairs.push_back({from, to, bytes});
        bytes += aligned(uint64_t(handing_[from].units) * args::kHandedUnitBytes);
    }
    handed_ = RL_TRY(memory.allocate(bytes, Use::scratch, "activations in int8"));
    for (const Pair& pair : pairs) handing_[pair.from].give = handed_.data() + pair.at;
    for (const Pair& pair : pairs) handing_[pair.to].take = handed_.data() + pair.at;
    return {};
}

}  // namespace redline::hip
