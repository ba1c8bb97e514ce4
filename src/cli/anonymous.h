// Text without what would tell whose machine it is from.
#pragma once

#include "json/json.h"

#include <functional>
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

// The text with the model's file named alone: its folder may be named after its owner.
std::string without_folder(std::string text, const std::string& model);

// Changes all texts of a value but its keys, before JSON escapes what stands beside a name.
void change_texts(Json& value, const std::function<std::string(std::string)>& change);

}  // namespace redline::cli
