#include "memory/pci_link.h"

#include <cstdlib>
#include <fstream>

namespace redline {

// "16.0 GT/s PCIe" or "16"; 0 where there is none.
static double number_in(const std::string& path) {
    std::ifstream in(path);
    std::string text;
    std::getline(in, text);
    return std::strtod(text.c_str(), nullptr);
}

std::optional<PciLink> pci_link(const std::string& address, const std::string& root) {
    const std::string folder = root + "/sys/bus/pci/devices/" + address + "/";
    const double lanes = number_in(folder + "current_link_width"),
                 speed = number_in(folder + "max_link_speed");
    if (!(lanes >= 1.0 && lanes <= 32.0) || !(speed > 0.0 && speed < 1000.0)) return {};
    return PciLink{uint32_t(lanes), speed * 1e9};
}

}  // namespace redline
