// The environment and the terminal of this process as the host's code needs to know them.
#pragma once

#include "host/host_options.h"

namespace redline::cli {

// Prints what the host reports: notes as "redline: note: ...", progress on one line of a terminal.
Notes& terminal_notes();

// Empty when it is not set.
std::string environment_variable(const std::string& name);
// The folder in which findings about devices and files are kept between runs; empty where the environment
// names no home.
std::string cache_folder();
// Vulkan's drivers that the environment names.
NamedDrivers named_drivers();
// The folders in which this user has models.
std::vector<ModelStore> user_model_stores();

// Options with all of these. Sums over devices use the library that REDLINE_COLLECTIVES names. Options
// without the check and the quick tune of kernels where REDLINE_SELF_TEST=0 or REDLINE_QUICK_TUNE=0 say so,
// for those who start the program often where nothing is kept.
void take_surroundings(HostOptions& options);

}  // namespace redline::cli
