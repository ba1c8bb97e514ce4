#include "memory/pci_link.h"

#include <cstdlib>
#include <filesystem>
#include <fstream>

namespace redline {

static std::string line_of(const std::string& path) {
    std::ifstream in(path);
    std::string text;
    std::getline(in, text);
    return text;
}
// "16.0 GT/s PCIe" or "16"; 0 where there is none.
static double number_in(const std::string& path) {
    return std::strtod(line_of(path).c_str(), nullptr);
}

std::optional<PciLink> pci_link(const std::string& address, const std::string& root) {
    const std::string folder = root + "/sys/bus/pci/devices/" + address + "/";
    const double lanes = number_in(folder + "current_link_width"),
                 speed = number_in(folder + "max_link_speed"), most = number_in(folder + "max_link_width");
    if (!(lanes >= 1.0 && lanes <= 32.0) || !(speed > 0.0 && speed < 1000.0)) return {};
    return PciLink{uint32_t(lanes), speed * 1e9, uint32_t(most >= lanes && most <= 32.0 ? most : lanes)};
}

std::optional<PciIsolation> pci_isolation(const std::string& address, const std::string& root) {
    std::error_code none;
    const std::filesystem::path group = root + "/sys/bus/pci/devices/" + address + "/iommu_group";
    const std::filesystem::path real = std::filesystem::read_symlink(group, none);
    if (address.empty() || none) return {};
    return PciIsolation{real.filename().string(), line_of(group / "type")};
}

}  // namespace redline
