// The files that name Vulkan's drivers to its loader, which leaves out in silence those that do not load.
#pragma once

#include <string>
#include <vector>

namespace redline {

// Their paths, where packages put them. `root` as for read_machine().
std::vector<std::string> vulkan_driver_files(const std::string& root = "");

// A sentence for each of them that names a driver that does not load. `named`: look at these in place of
// packages' files; paths with colons between them, as VK_DRIVER_FILES has them. Below a root no driver is
// loaded.
std::vector<std::string> broken_vulkan_drivers(const std::string& named, const std::string& root = "");

}  // namespace redline
