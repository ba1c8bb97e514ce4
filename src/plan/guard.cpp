#include "guard.h"

#include <algorithm>

namespace redline {

std::vector<ByteRange> guard_arena(Plan& plan) {
    assign_arena(plan, true, kGuardBytes);
    std::vector<ByteRange> slots, gaps;
    for (const Step& step : plan.steps) {
        const Access used = access(step);
        for (const auto* list : {&used.reads, &used.writes, &used.scratch})
            for (const Slot s : *list)
                slots.push_back({plan.slot(s).offset, plan.slot(s).offset + plan.slot_bytes(s)});
    }
    std::sort(slots.begin(), slots.end(),
              [](const ByteRange& a, const ByteRange& b) { return a.begin < b.begin; });
    slots.push_back({plan.arena_bytes, plan.arena_bytes});
    uint64_t end = 0;
    for (const ByteRange& slot : slots) {
        if (slot.begin > end) gaps.push_back({end, slot.begin});
        end = std::max(end, slot.end);
    }
    return gaps;
}

Status check_guard(std::span<const std::byte> bytes, int64_t at, std::string_view what, uint64_t size) {
    const auto written = std::find_if(bytes.begin(), bytes.end(), [](std::byte b) { return b != kGuard; });
    if (written == bytes.end()) return {};
    return error("a kernel wrote to byte {} of the {} bytes for {}, where nothing belongs",
                 at + (written - bytes.begin()), size, what);
}

}  // namespace redline
