// The guards that tests put around the memory of kernels: that they see what is written beside it.
#include "backends/cpu/runtime/region.h"
#include "cases/op_cases.h"

#include <doctest/doctest.h>

using namespace redline;

TEST_CASE("guards: a byte written before, behind or in a gap of a region is an error that names both") {
    constexpr uint64_t kBytes = 100000;
    auto region = std::move(cpu::Region::allocate(kBytes, "a test", true)).value();
    const ByteRange gap{256, 512};
    std::memset(region.data(), 7, gap.begin);
    std::memset(region.data() + gap.end, 7, kBytes - gap.end);
    region.guard(std::span(&gap, 1));
    CHECK(region.check(std::span(&gap, 1)));
    for (const int64_t at :
         {int64_t(-4096), int64_t(-1), int64_t(256), int64_t(511), int64_t(kBytes), int64_t(kBytes + 4095)}) {
        region.data()[at] = std::byte{7};
        const Status found = region.check(std::span(&gap, 1));
        REQUIRE(!found);
        CHECK(found.error().message ==
              fmt::format("a kernel wrote to byte {} of the 100000 bytes for a test, where nothing belongs",
                          at));
        region.data()[at] = kGuard;
    }
}

TEST_CASE("guards: slots of a plan are moved apart, and what lies between them is nobody's") {
    const OpCase c = gated_case(*find_format("Q8_0"), Act::silu, true, 9, 96, 64);
    Fixture fixture(7, 9);
    Plan plan = std::move(case_plan(c, fixture, c.rows, c.rows)).value();
    const std::vector<ByteRange> gaps = guard_arena(plan);
    CHECK(gaps.size() == 2);
    for (const Slot slot : {plan.output, access(plan.steps.back().op).reads[0]}) {
        const uint64_t begin = plan.slot(slot).offset, end = begin + plan.slot_bytes(slot);
        CHECK(std::any_of(gaps.begin(), gaps.end(), [&](const ByteRange& gap) {
            return gap.begin == end && gap.end >= end + kGuardBytes;
        }));
        for (const ByteRange& gap : gaps) CHECK((gap.end <= begin || gap.begin >= end));
    }
}
