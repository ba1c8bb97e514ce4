// The links between several GPUs, from trees like the kernel's, and what the doctor says of them.
#include "doctor/links.h"
#include "support/tree.h"

#include <doctest/doctest.h>

#include <filesystem>

using namespace redline;
using namespace redline::test;

namespace {

struct Card {
    std::string pci, reaches, sums;
};

BackendView view_of(const std::vector<Card>& cards) {
    BackendView view{"hip", {}, ""};
    for (size_t i = 0; i < cards.size(); ++i)
        view.devices.push_back({"hip:" + std::to_string(i),
                                "AMD GPU",
                                true,
                                "",
                                {{"PCI address", cards[i].pci},
                                 {"reaches", cards[i].reaches},
                                 {"adds rows by", cards[i].sums}}});
    return view;
}

std::string folder_of(const std::string& pci) {
    return "/sys/bus/pci/devices/" + pci + "/";
}

Files link_files(const std::string& pci, const std::string& lanes) {
    return {{folder_of(pci) + "current_link_width", lanes},
            {folder_of(pci) + "max_link_width", "16\n"},
            {folder_of(pci) + "max_link_speed", "16.0 GT/s PCIe\n"}};
}

// Finds the finding with this in its sentence.
const Finding* with(const std::vector<Finding>& all, const std::string& part) {
    for (const Finding& one : all)
        if (one.what.find(part) != std::string::npos) return &one;
    return nullptr;
}

}  // namespace

TEST_CASE("links: one GPU has none, and neither has a backend whose other GPU cannot be used") {
    const Tree tree({});
    BackendView two = view_of({{"0000:03:00.0", "none", "pinned host memory"}, {"", "none", ""}});
    two.devices[1].missing = "kernels";
    CHECK(gpu_links(std::vector{two}, tree).empty());
    CHECK(gpu_links(std::vector{view_of({{"0000:03:00.0", "", ""}})}, tree).empty());
}

TEST_CASE("links: GPUs that reach each other are good news for -sm tensor, lanes that lack are a note") {
    const std::string one = "0000:03:00.0", other = "0000:83:00.0";
    Files files = link_files(one, "16\n");
    files.merge(link_files(other, "8\n"));
    const Tree tree(files);
    const std::vector<GpuLinks> links = gpu_links(
        std::vector{view_of({{one, "hip:1", "peer memory"}, {other, "hip:0", "peer memory"}})}, tree);
    REQUIRE(links.size() == 1);
    REQUIRE(links[0].gpus.size() == 2);
    CHECK(link_text(links[0].gpus[1]) == "8 lanes of 16 GT/s, up to 16 GB/s each way");
    CHECK(links[0].gpus[0].link->most_lanes == 16);
    const std::vector<Finding> found = examine_links(links);
    CHECK(found.size() == 2);
    REQUIRE(with(found, "hip:0 and hip:1 add rows through each other's memory"));
    CHECK(found[0].severity == Severity::good);
    const Finding* lanes = with(found, "hip:1 has 8 of the 16 lanes");
    REQUIRE(lanes);
    CHECK(lanes->severity == Severity::note);
    CHECK(!lanes->remedy.empty());
}

TEST_CASE("links: an IOMMU that translates is named where GPUs do not reach each other") {
    const std::string one = "0000:03:00.0", other = "0000:83:00.0";
    const auto found_with = [&](const std::string& kind, const std::string& reaches) {
        Files files = link_files(one, "16\n");
        files.merge(link_files(other, "16\n"));
        files["/sys/kernel/iommu_groups/13/type"] = kind + "\n";
        files["/sys/kernel/iommu_groups/14/type"] = kind + "\n";
        const Tree tree(files);
        const std::string root = tree;
        for (const auto& [pci, group] : {std::pair(one, "13"), std::pair(other, "14")})
            std::filesystem::create_symlink(root + "/sys/kernel/iommu_groups/" + group,
                                            root + folder_of(pci) + "iommu_group");
        const auto links = gpu_links(std::vector{view_of({{one, reaches, "pinned host memory"},
                                                          {other, reaches, "pinned host memory"}})},
                                     root);
        REQUIRE(links.size() == 1);
        REQUIRE(links[0].gpus[0].isolation);
        CHECK(links[0].gpus[0].isolation->group == "13");
        return examine_links(links);
    };
    const std::vector<Finding> found = found_with("DMA-FQ", "none");
    const Finding* iommu = with(found, "the IOMMU translates the addresses of hip:0 and hip:1 (DMA-FQ)");
    REQUIRE(iommu);
    CHECK(iommu->remedy.find("iommu=pt") != std::string::npos);
    CHECK(with(found, "through pinned host memory"));
    CHECK(!with(found_with("identity", "none"), "IOMMU"));
    CHECK(!with(found_with("DMA", "hip:1"), "IOMMU"));
}
