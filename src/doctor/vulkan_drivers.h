// The files that name Vulkan's drivers to its loader, which silently ignores drivers that do not load.
#pragma once

#include <string>
#include <vector>

namespace redline {

// The paths of driver files in the folders that packages use. `root` is as for read_machine().
std::vector<std::string> vulkan_driver_files(const std::string& root = "");

// Environment variables for the loader: paths with colons between them.
struct NamedDrivers {
    std::string instead;  // used instead of packages' files: VK_DRIVER_FILES, or VK_ICD_FILENAMES
    std::string beside;   // used in addition: VK_ADD_DRIVER_FILES
};

// A sentence for each file whose driver does not load. With a root no driver is loaded.
std::vector<std::string> broken_vulkan_drivers(const NamedDrivers& named, const std::string& root = "");

}  // namespace redline
