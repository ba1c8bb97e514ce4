// Which kernels leave their row in int8 for which.
#include "executable.h"

#include <algorithm>

namespace redline::vulkan {

namespace {

constexpr uint64_t kHandedUnitBytes = 48;  // of 32 elements, as shaders/include/leave_row.glsl lays them out

bool writes(const Op& op, Slot slot) {
    const std::vector<Slot> written = access(op).writes;
    return std::find(written.begin(), written.end(), slot) != written.end();
}

}  // namespace

// A row is left for the first that takes it: others, that norm in another way, find it in f32 as well.
Status VulkanExecutable::allocate_handed(Memory& memory) {
    const Plan& plan = bound_.plan;
    struct Pair {
        size_t from, to;
        uint64_t at, bytes;
    };
    std::vector<Pair> pairs;
    uint64_t bytes = 0;
    const auto kernel = [&](size_t i) -> const VulkanKernel& {
        return static_cast<const VulkanKernel&>(*bound_.kernels[i]);
    };
    handing_.resize(bound_.kernels.size());
    for (size_t to = 0; to < handing_.size(); ++to) {
        const std::optional<VulkanKernel::Taken> taken = kernel(to).takes(plan);
        if (!taken || plan.slot(taken->x).of_outputs || plan.slot(taken->x).width % 32 != 0) continue;
        size_t from = to;
        while (from > 0 && !writes(plan.steps[from - 1].op, taken->x)) --from;
        if (from-- == 0 || handing_[from].units != 0 || !kernel(from).gives(weights_)) continue;
        handing_[from].units = uint32_t(plan.slot(taken->x).width / 32);
        handing_[from].norm = taken->norm;
        pairs.push_back({from, to, bytes, handing_[from].units * kHandedUnitBytes});
        bytes += aligned(pairs.back().bytes);
    }
    if (pairs.empty()) return {};
    handed_ = RL_TRY(memory.allocate(bytes, Use::scratch, "activations in int8"));
    for (const Pair& pair : pairs)
        handing_[pair.from].give = handing_[pair.to].take = {handed_.handle(), pair.at, pair.bytes};
    return {};
}

// What one step's kernel sees: rows are handed on one at a time only.
View VulkanExecutable::view_of(const View& all, size_t step) const {
    View own = all;
    if (all.rows == 1) own.handing = handing_[step];
    return own;
}

}  // namespace redline::vulkan
