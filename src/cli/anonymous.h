// Text without what would tell whose machine it is from.
#pragma once

#include <string>

namespace redline::cli {

// Who runs the program, and where; empty: not known.
struct Identity {
    std::string home;
    std::string user;
    std::string host;
};
Identity this_identity();

// The home folder becomes ~, the user USER, the host HOST, any other home /home/USER, and what has the form
// of a UUID or of a network card's address becomes UUID and MAC.
std::string anonymous(std::string text, const Identity& identity);

}  // namespace redline::cli
