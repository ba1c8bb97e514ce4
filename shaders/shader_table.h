// The compiled shaders, embedded by the build.
#pragma once

#include <cstdint>
#include <span>
#include <string_view>

namespace redline::vulkan {

struct Shader {
    std::string_view name;  // of the file, then of the format or cache: "linear_vec.q4_k"
    std::span<const uint32_t> code;
};
std::span<const Shader> all_shaders();

}  // namespace redline::vulkan
