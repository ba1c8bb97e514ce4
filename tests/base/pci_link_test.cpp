// The link of a device to its host, from trees like the kernel's.
#include "memory/pci_link.h"
#include "support/tree.h"

#include <doctest/doctest.h>

using namespace redline;
using namespace redline::test;

TEST_CASE("pci link: lanes as they are, at the most of their speed") {
    const std::string address = "0000:03:00.0", folder = "/sys/bus/pci/devices/" + address + "/";
    const auto link_of = [&](const std::string& lanes, const std::string& speed) {
        const Tree tree({{folder + "current_link_width", lanes},
                         {folder + "max_link_speed", speed},
                         {folder + "current_link_speed", "2.5 GT/s PCIe\n"}});
        return pci_link(address, tree);
    };
    const auto link = link_of("16\n", "16.0 GT/s PCIe\n");
    REQUIRE(link);
    CHECK(link->lanes == 16);
    CHECK(link->bytes_per_second() == doctest::Approx(31.5e9).epsilon(0.01));
    CHECK(link_of("16\n", "5.0 GT/s PCIe\n")->bytes_per_second() == doctest::Approx(8e9));
    CHECK_FALSE(link_of("0\n", "16.0 GT/s PCIe\n"));
    CHECK_FALSE(link_of("16\n", "Unknown\n"));
    CHECK_FALSE(pci_link(address, Tree({})));
}
