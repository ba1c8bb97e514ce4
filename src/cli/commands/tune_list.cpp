#include "cli/commands/tune_list.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <set>

namespace redline::cli {

namespace {

// The default of a choice whose first value follows from others stands in its row of a table.
uint32_t default_value(const Choice& choice) {
    return choice.values.front() == 0 && choice.usual.value > 0 ? choice.usual.value : choice.values.front();
}

uint32_t used_value(const KernelChoices& kernel, const Choice& choice) {
    const auto kept = kernel.variant.find(choice.name);
    return kept != kernel.variant.end() ? kept->second : default_value(choice);
}

std::string value_text(uint32_t value, const Choice& choice) {
    // Some choices are between 0 and 1.
    const bool by_shape = value == 0 && std::ranges::any_of(choice.values, [](uint32_t v) { return v > 1; });
    return by_shape ? "by shape" : std::to_string(value);
}

const KeptTimes* measured(const KernelChoices& kernel, const TunedTimes& times) {
    const auto found = times.find({kernel.key, kernel.rows});
    return found != times.end() && found->second.seconds > 0.0 ? &found->second : nullptr;
}

std::string measured_text(const KeptTimes* times) {
    if (!times) return "not yet";
    return fmt::format("{:.2f} to {:.2f} us{}", times->default_seconds * 1e6, times->seconds * 1e6,
                       times->quick ? ", quick" : "");
}

// "64: HIP, waves of 32; measured on an H200, 2026-11-29"
std::string reason_text(const Choice& choice) {
    const Default& usual = choice.usual;
    return fmt::format("{}: {}; {}, {}", value_text(default_value(choice), choice), usual.devices,
                       usual.source, usual.date);
}

}  // namespace

std::string choices_text(const std::string& id, const DeviceInfo& device, std::span<const KernelChoices> all,
                         const TunedTimes& times) {
    std::string text =
        fmt::format("{}: {} ({})\n{:<10} {:>13}  {:<20} {:>9} {:>9}  {:<24} {:<24} {}\n", id, device.name,
                    device.detail, "family", "rows", "choice", "default", "used", "others", "measured", "op");
    std::map<std::string, std::set<std::string>> reasons;  // of defaults, by the names of choices
    for (const KernelChoices& kernel : all)
        for (const Choice& one : kernel.choices) {
            const auto others = std::span(one.values).subspan(1);
            text += fmt::format("{:<10} {:>13}  {:<20} {:>9} {:>9}  {:<24} {:<24} {}\n", kernel.family,
                                row_class_name(kernel.rows), one.name, value_text(default_value(one), one),
                                value_text(used_value(kernel, one), one),
                                fmt::format("{}{}", fmt::join(others, " "), one.any ? " ..." : ""),
                                measured_text(measured(kernel, times)), kernel.op);
            reasons[one.name].insert(reason_text(one));
        }
    if (all.empty()) return text + "no kernel of this model has a choice there\n";
    text += "\n";
    for (const auto& [name, lines] : reasons) {
        text += fmt::format("{}: {}\n", name, choice_meaning(name));
        for (const std::string& line : lines) text += fmt::format("    default {}\n", line);
    }
    return text;
}

Json choices_json(const std::string& id, const DeviceInfo& device, std::span<const KernelChoices> all,
                  const TunedTimes& times) {
    Json kernels = Json::array();
    for (const KernelChoices& kernel : all) {
        Json choices = Json::array();
        for (const Choice& one : kernel.choices) {
            Json row = {
                {"name", one.name},
                {"meaning", choice_meaning(one.name)},
                {"default", default_value(one)},
                {"used", used_value(kernel, one)},
                {"values", one.values},
                {"others_possible", one.any},
                {"crossover", one.crossover},
                {"why",
                 {{"devices", one.usual.devices}, {"source", one.usual.source}, {"date", one.usual.date}}}};
            choices.push_back(std::move(row));
        }
        Json row = {{"family", kernel.family}, {"op", kernel.op},    {"rows", row_class_name(kernel.rows)},
                    {"count", kernel.count},   {"choices", choices}, {"measured", nullptr}};
        if (const KeptTimes* found = measured(kernel, times))
            row["measured"] = {{"default_us", found->default_seconds * 1e6},
                               {"us", found->seconds * 1e6},
                               {"quick", found->quick}};
        kernels.push_back(std::move(row));
    }
    return {{"device", id}, {"name", device.name}, {"detail", device.detail}, {"kernels", kernels}};
}

}  // namespace redline::cli
