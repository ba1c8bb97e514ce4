// The link of a device to its host, as the kernel tells.
#pragma once

#include <cstdint>
#include <optional>
#include <string>

namespace redline {

struct PciLink {
    uint32_t lanes = 0;
    double transfers = 0.0;   // per second and lane
    uint32_t most_lanes = 0;  // that the device itself has

    // In each direction, before packets are counted: of 10 bits 8 are data, from 8 GT/s on of 130 bits 128.
    double bytes_per_second() const {
        return lanes * transfers / 8 * (transfers < 8e9 ? 8.0 / 10.0 : 128.0 / 130.0);
    }
};

// The link of the device at an address, "0000:c3:00.0": its lanes, at the highest speed that it can have,
// since links rest at lower ones. A port above it may be slower. Empty where the kernel does not say. `root`
// is put before /sys, for tests.
std::optional<PciLink> pci_link(const std::string& address, const std::string& root = "");

// How the IOMMU keeps a device apart from others.
struct PciIsolation {
    std::string group;  // number of the devices that are kept apart together
    std::string kind;  // "DMA" and "DMA-FQ": addresses are translated; "identity": they are not; may be empty
};
// Empty where the device is in no group, as without an IOMMU.
std::optional<PciIsolation> pci_isolation(const std::string& address, const std::string& root = "");

}  // namespace redline
