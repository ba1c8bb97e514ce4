// The files that name Vulkan's drivers to its loader, which leaves out in silence those that do not load.
#pragma once

#include <string>
#include <vector>

namespace redline {

// Their paths, where packages put them. `root` as for read_machine().
std::vector<std::string> vulkan_driver_files(const std::string& root = "");

// What the environment tells the loader: paths with colons between them.
struct NamedDrivers {
    std::string instead;  // of packages' files: VK_DRIVER_FILES, or VK_ICD_FILENAMES
    std::string beside;   // these: VK_ADD_DRIVER_FILES
};

// A sentence for each file that names a driver that does not load. Below a root no driver is loaded.
std::vector<std::string> broken_vulkan_drivers(const NamedDrivers& named, const std::string& root = "");

}  // namespace redline
