// A wire of MPI. The MPI library is opened by a plug-in, so that the program runs where there is none.
#pragma once

#include "mpi/wire.h"

#include <memory>

namespace redline {

// The place in its job that a launcher like mpirun has given this process; one rank without a launcher.
struct LaunchedAs {
    uint32_t rank = 0, ranks = 1;
};
// `variable` gives the value of an environment variable, or nothing.
LaunchedAs launched_as(const std::function<std::string(const std::string&)>& variable);

// Opens the plug-in, at one of these paths, and joins the job: waits for all other ranks to do so. An error
// says what to install.
Result<std::unique_ptr<Wire>> open_mpi_wire(const std::vector<std::string>& plugins);

}  // namespace redline
