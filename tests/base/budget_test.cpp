// The memory that may be planned with, the minimum of all sources that apply, on recorded machines.
#include "memory/budget.h"
#include "support/machines.h"

#include <doctest/doctest.h>

using namespace redline;
using namespace redline::test;

namespace {

constexpr uint64_t kReserve = 256 * kMiB;

// With a driver that offers all there is.
MemoryBudget budget_on(const Files& files, bool unified, uint64_t offered = 1024 * kGiB) {
    const Tree tree(files);
    const std::vector<KernelGpu> gpus = kernel_gpus(tree);
    REQUIRE(gpus.size() == 1);
    return gpu_budget({"driver", offered}, unified, &gpus[0], ttm_limit(tree), host_memory(tree));
}

}  // namespace

TEST_CASE("budget: the kernel's GPUs are read with their address, target and memory") {
    const Tree tree(strix_halo(512 * kMiB));
    const std::vector<KernelGpu> gpus = kernel_gpus(tree);
    REQUIRE(gpus.size() == 1);
    const KernelGpu& gpu = gpus[0];
    CHECK(gpu.card == "card0");
    CHECK(gpu.pci == "0000:c3:00.0");
    CHECK(gpu.vendor == 0x1002);
    CHECK(gpu.device == 0x1586);
    CHECK(gpu.driver == "amdgpu");
    CHECK(gpu.render == "renderD128");
    CHECK(gpu.target == "gfx1151");
    CHECK(gpu.integrated());
    CHECK(gpu.vram_total == 512 * kMiB);
    CHECK(find_gpu(gpus, "0000:C3:00.0") == &gpu);
    CHECK(find_gpu(gpus, "0000:c3:00.1") == nullptr);
    CHECK(find_gpu(gpus, "") == nullptr);
    CHECK(target_name(90010) == "gfx90a");
    CHECK(target_name(90402) == "gfx942");
    CHECK(target_name(120001) == "gfx1201");
    CHECK(!kernel_gpus(Tree(mi300x()))[0].integrated());
}

TEST_CASE("budget: what the firmware set apart counts beside the host's memory, which it is no part of") {
    // MemAvailable is 28 GiB there: it alone would refuse a model of 60 GiB that fits.
    const MemoryBudget large = budget_on(strix_halo(96 * kGiB), true);
    CHECK(large.bytes == 96 * kGiB - 200 * kMiB + 16 * kGiB - 100 * kMiB);
    CHECK(large.limit()->name == "95.80 GiB set apart + free GTT");
    const MemoryBudget small = budget_on(strix_halo(512 * kMiB), true);
    CHECK(small.bytes == 312 * kMiB + (128 * kGiB - 512 * kMiB) / 2 - 100 * kMiB);
}

TEST_CASE("budget: TTM's page limit binds where it is less than GTT") {
    Files files = strix_halo(512 * kMiB);
    files["/sys/module/ttm/parameters/pages_limit"] = fmt::format("{}", 16 * kGiB / 4096);
    const MemoryBudget budget = budget_on(files, true);
    CHECK(budget.bytes == 312 * kMiB + 16 * kGiB - 100 * kMiB);
    CHECK(budget.text().find("TTM's page limit") != std::string::npos);
}

TEST_CASE("budget: a Steam Deck has what GTT and the host leave") {
    for (const uint64_t set_apart : {1 * kGiB, 4 * kGiB}) {
        const MemoryBudget budget = budget_on(steam_deck(set_apart), true);
        CHECK(budget.bytes == set_apart - 300 * kMiB + (16 * kGiB - set_apart) / 2 - 200 * kMiB);
        // The driver's figure stays the upper limit.
        CHECK(budget_on(steam_deck(set_apart), true, 2 * kGiB).bytes == 2 * kGiB);
    }
    Files busy = steam_deck(1 * kGiB);
    busy["/proc/meminfo"] = "MemTotal: 15728640 kB\nMemAvailable: 2097152 kB\n";
    CHECK(budget_on(busy, true).bytes == 1 * kGiB - 300 * kMiB + 2 * kGiB - kReserve);
}

TEST_CASE("budget: a card has its free video memory, whatever GTT adds") {
    const MemoryBudget xtx = budget_on(rx_7900_xtx(), false, 56 * kGiB);
    CHECK(xtx.bytes == 23 * kGiB);
    CHECK(xtx.limit()->name == "free video memory");
    CHECK(budget_on(mi300x(), false, 190 * kGiB).bytes == 190 * kGiB);
}

TEST_CASE("budget: a container's limit binds the CPU, with the page cache that it can drop") {
    const Tree tree(container());
    CHECK(kernel_gpus(tree).empty());
    const MemoryBudget budget = host_budget(host_memory(tree));
    CHECK(budget.bytes == 6 * kGiB - kReserve);
    CHECK(budget.limit()->name == "control group, less a reserve");
    // A GPU whose kernel files the container does not show: what the driver offers, within the host's.
    CHECK(gpu_budget({"driver", 96 * kGiB}, true, nullptr, {}, host_memory(tree)).bytes ==
          6 * kGiB - kReserve);
    CHECK(gpu_budget({"driver", 96 * kGiB}, false, nullptr, {}, host_memory(tree)).bytes == 96 * kGiB);
}

TEST_CASE("budget: files with nonsense, or none, are unknown and not zero") {
    Files files = rx_7900_xtx();
    files["/sys/class/drm/card0/device/mem_info_vram_used"] = "what\n";
    CHECK(budget_on(files, false, 20 * kGiB).bytes == 20 * kGiB);
    CHECK(!ttm_limit(Tree(Files{{"/sys/module/ttm/parameters/pages_limit", "-1\n"}})));
    CHECK(kernel_gpus(Tree(Files{{"/sys/class/drm/card0/device/vendor", "0x1002\n"}})).empty());
    CHECK(host_memory(Tree(Files{{"/proc/meminfo", ""}})).available == 0);
    CHECK(asked_budget(5).text() == "1 KiB (as asked for)");
}
