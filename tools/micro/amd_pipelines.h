// Facts that Mesa's AMD compiler gives of a pipeline, and those that a stand-in for an AMD GPU cannot give of
// itself. For vulkan_shaders and step_kernels.
#pragma once

#include "backends/vulkan/runtime/fragments.h"
#include "backends/vulkan/runtime/pipelines.h"

#include <cstring>

namespace redline::vulkan {

constexpr uint32_t kAmd = 0x1002;

// Where AMD's cards have elements of 16 x 16: stand-ins, which compute nothing, cannot say it. On RDNA 3 an
// invocation has a row, twice as many hold the same; on RDNA 4 columns are dealt out.
inline Fragments fragments_of_amd(const Device& device) {
    const MatrixShape& shape = *narrow_shape(device.report());
    const bool dealt = device.report().name.find("GFX12") != std::string::npos;
    const uint32_t owners = dealt ? device.subgroup() / 16 : 1;
    return {shape, owners, 4, 0, 15, {1, 0, 0}, {1, 0, 0}};
}

inline std::string value_of(const VkPipelineExecutableStatisticKHR& s) {
    switch (s.format) {
        case VK_PIPELINE_EXECUTABLE_STATISTIC_FORMAT_INT64_KHR:
            return fmt::format("{}", s.value.i64);
        case VK_PIPELINE_EXECUTABLE_STATISTIC_FORMAT_UINT64_KHR:
            return fmt::format("{}", s.value.u64);
        case VK_PIPELINE_EXECUTABLE_STATISTIC_FORMAT_FLOAT64_KHR:
            return fmt::format("{:.1f}", s.value.f64);
        default:
            return s.value.b32 ? "yes" : "no";
    }
}

struct PipelineFacts {
    std::string line;  // "  VGPRs 84  LDS size 12288"
    std::string code;
    bool spills = false;
};

inline std::string machine_code(VkDevice device, const VkPipelineExecutableInfoKHR& info) {
    uint32_t parts = 0;
    vkGetPipelineExecutableInternalRepresentationsKHR(device, &info, &parts, nullptr);
    std::vector<VkPipelineExecutableInternalRepresentationKHR> list(
        parts, {VK_STRUCTURE_TYPE_PIPELINE_EXECUTABLE_INTERNAL_REPRESENTATION_KHR});
    vkGetPipelineExecutableInternalRepresentationsKHR(device, &info, &parts, list.data());
    std::vector<std::string> texts;
    for (auto& part : list) {
        texts.emplace_back(part.dataSize, '\0');
        part.pData = texts.back().data();
    }
    vkGetPipelineExecutableInternalRepresentationsKHR(device, &info, &parts, list.data());
    std::string assembly;
    for (size_t i = 0; i < list.size(); ++i)
        if (std::strstr(list[i].name, "ssembly")) assembly += list[i].isText ? texts[i] : "";
    return assembly;
}

// The pipeline was made after Pipelines::keep_facts().
inline PipelineFacts facts_of(const Device& device, const Pipeline& pipeline) {
    const VkPipelineExecutableInfoKHR info = {VK_STRUCTURE_TYPE_PIPELINE_EXECUTABLE_INFO_KHR, nullptr,
                                              pipeline.handle, 0};
    uint32_t number = 0;
    vkGetPipelineExecutableStatisticsKHR(device.handle(), &info, &number, nullptr);
    std::vector<VkPipelineExecutableStatisticKHR> list(number,
                                                       {VK_STRUCTURE_TYPE_PIPELINE_EXECUTABLE_STATISTIC_KHR});
    vkGetPipelineExecutableStatisticsKHR(device.handle(), &info, &number, list.data());
    PipelineFacts facts;
    for (const auto& s : list) {
        const std::string name = s.name, value = value_of(s);
        const bool bad =
            name.find("pill") != std::string::npos || name == "Scratch size" || name == "Stack Size";
        facts.spills |= bad && value != "0";
        const bool shown = bad ? value != "0"
                               : name == "VGPRs" || name == "SGPRs" || name == "LDS size" ||
                                     name == "Subgroups per SIMD" || name == "Code size" ||
                                     name == "Register Count" || name == "Shared Memory Size";
        if (shown) facts.line += fmt::format("  {} {}", name, value);
    }
    facts.code = machine_code(device.handle(), info);
    return facts;
}

}  // namespace redline::vulkan
