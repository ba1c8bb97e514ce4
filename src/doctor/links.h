// The links between several GPUs of a machine, and what they mean for a model that is shared out over them.
#pragma once

#include "doctor/findings.h"

#include <span>

namespace redline {

// For each backend with several GPUs that can be used. `root` is put before /sys, for tests.
std::vector<GpuLinks> gpu_links(std::span<const BackendView> views, const std::string& root = "");
// Sentences about them, as findings of the check "links".
std::vector<Finding> examine_links(std::span<const GpuLinks> links);

// "16 lanes of 32 GT/s, up to 63 GB/s each way"; empty where the kernel does not say.
std::string link_text(const GpuLink& gpu);

}  // namespace redline
