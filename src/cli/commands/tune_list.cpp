#include "cli/commands/tune_list.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <set>

namespace redline::cli {

namespace {

uint32_t used_value(const KernelChoices& kernel, const Choice& choice) {
    const auto kept = kernel.variant.find(choice.name);
    return kept != kernel.variant.end() ? kept->second : choice.values.front();
}

std::string value_text(uint32_t value, const Choice& choice) {
    // Some choices are between 0 and 1.
    const bool by_shape = value == 0 && std::ranges::any_of(choice.values, [](uint32_t v) { return v > 1; });
    return by_shape ? "by shape" : std::to_string(value);
}

}  // namespace

std::string choices_text(const std::string& id, const DeviceInfo& device,
                         std::span<const KernelChoices> all) {
    std::string text = fmt::format("{}: {} ({})\n{:>14}  {:<14} {:>9} {:>9}  {:<24} {}\n", id, device.name,
                                   device.detail, "rows", "choice", "default", "used", "others", "op");
    std::set<std::string> names;
    for (const KernelChoices& kernel : all)
        for (const Choice& one : kernel.choices) {
            const auto others = std::span(one.values).subspan(1);
            text +=
                fmt::format("{:>14}  {:<14} {:>9} {:>9}  {:<24} {}\n", row_class_name(kernel.rows), one.name,
                            value_text(one.values.front(), one), value_text(used_value(kernel, one), one),
                            fmt::format("{}{}", fmt::join(others, " "), one.any ? " ..." : ""), kernel.op);
            names.insert(one.name);
        }
    if (all.empty()) return text + "no kernel of this model has a choice there\n";
    text += "\n";
    for (const std::string& name : names) text += fmt::format("{}: {}\n", name, choice_meaning(name));
    return text;
}

Json choices_json(const std::string& id, const DeviceInfo& device, std::span<const KernelChoices> all) {
    Json kernels = Json::array();
    for (const KernelChoices& kernel : all) {
        Json choices = Json::array();
        for (const Choice& one : kernel.choices)
            choices.push_back({{"name", one.name},
                               {"meaning", choice_meaning(one.name)},
                               {"default", one.values.front()},
                               {"used", used_value(kernel, one)},
                               {"values", one.values},
                               {"others_possible", one.any}});
        kernels.push_back({{"op", kernel.op},
                           {"rows", row_class_name(kernel.rows)},
                           {"count", kernel.count},
                           {"choices", choices}});
    }
    return {{"device", id}, {"name", device.name}, {"detail", device.detail}, {"kernels", kernels}};
}

}  // namespace redline::cli
