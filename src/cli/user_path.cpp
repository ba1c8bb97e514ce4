#include "cli/user_path.h"

#include <algorithm>
#include <cstdlib>
#include <filesystem>

namespace redline::cli {

std::string trimmed(std::string text) {
    text.erase(0, std::min(text.find_first_not_of(" \t\n"), text.size()));
    text.erase(text.find_last_not_of(" \t\n") + 1);
    return text;
}

std::string user_path(std::string text) {
    text = trimmed(std::move(text));
    const char* home = std::getenv("HOME");
    return text.starts_with("~/") && home ? home + text.substr(1) : text;
}

std::string real_path(const std::string& path) {
    std::error_code problem;
    // A relative path would stay one until its file is there.
    const std::filesystem::path whole = std::filesystem::absolute(path, problem);
    if (problem) return path;
    const std::filesystem::path real = std::filesystem::weakly_canonical(whole, problem);
    return problem ? path : real.string();
}

}  // namespace redline::cli
