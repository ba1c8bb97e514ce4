// Optional test material beside the repository: a test that wants it says so and skips when it is absent.
#pragma once

#include "at_end.h"

#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <optional>
#include <sstream>
#include <string>

namespace redline::test {

// A tree that was moved after it was built says where it is in the environment variable RL_SOURCE_DIR.
inline std::string source_file(const std::string& name) {
    const char* moved = std::getenv("RL_SOURCE_DIR");
    return std::string(moved ? moved : RL_SOURCE_DIR) + "/" + name;
}

inline std::optional<std::string> material(const std::string& name) {
    const char* given = std::getenv("RL_MATERIAL_DIR");
    const auto path = std::filesystem::path(given ? given : source_file("../shared")) / name;
    if (std::filesystem::exists(path)) return path.string();
    return std::nullopt;
}

inline std::string golden(const std::string& name) {
    return source_file("tests/golden/" + name);
}

inline std::string demo() {
    return source_file("models/demo/redline-demo-q8_0.gguf");
}

inline std::string read_file(const std::string& path) {
    std::ostringstream text;
    text << std::ifstream(path, std::ios::binary).rdbuf();
    return text.str();
}

}  // namespace redline::test

// Skips the rest of the test case when the material is absent, which is said at the end.
#define RL_NEED_MATERIAL(variable, name)                                                          \
    const auto variable##_found = redline::test::material(name);                                  \
    if (!variable##_found) RL_SKIP(std::string("what needs ") + (name) + ", which is not there"); \
    const std::string variable = *variable##_found
