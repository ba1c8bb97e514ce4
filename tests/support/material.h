// Optional test material beside the repository: a test that wants it says so and skips when it is absent.
#pragma once

#include "at_end.h"

#include <filesystem>
#include <optional>
#include <string>

namespace redline::test {

inline std::optional<std::string> material(const std::string& name) {
    const auto path = std::filesystem::path(RL_MATERIAL_DIR) / name;
    if (std::filesystem::exists(path)) return path.string();
    return std::nullopt;
}

inline std::string golden(const std::string& name) {
    return std::string(RL_TESTS_DIR) + "/golden/" + name;
}

}  // namespace redline::test

// Skips the rest of the test case when the material is absent, which is said at the end.
#define RL_NEED_MATERIAL(variable, name)                                                         \
    const auto variable##_found = redline::test::material(name);                                 \
    if (!variable##_found) {                                                                     \
        redline::test::not_tested(std::string("what needs ") + (name) + ", which is not there"); \
        return;                                                                                  \
    }                                                                                            \
    const std::string variable = *variable##_found
