// Names of files, and other words, as users type them.
#pragma once

#include <string>

namespace redline::cli {

// Without the blanks and line ends around it.
std::string trimmed(std::string text);
// A file's name likewise; "~/" is the user's folder.
std::string user_path(std::string text);
// Where links lead; a name that leads nowhere stays as it is.
std::string real_path(const std::string& path);

}  // namespace redline::cli
