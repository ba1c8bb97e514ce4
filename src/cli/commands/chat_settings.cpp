#include "cli/commands/chat_settings.h"

#include "base/nearest_name.h"
#include "sample/parameters.h"

#include <algorithm>
#include <limits>

namespace redline::cli {

namespace {

constexpr std::string_view kMaxTokens = "max-tokens";
constexpr std::string_view kBudget = "reasoning-budget";
constexpr std::string_view kIgnoreEos = "ignore-eos";

std::string usual_form(std::string name) {
    name.erase(0, std::min(name.find_first_not_of('-'), name.size()));
    std::replace(name.begin(), name.end(), '_', '-');
    if (name == "predict" || name == "n-predict") return std::string(kMaxTokens);
    return name;
}

// By the name that is shown, or another one of the option.
const Parameter* find_setting(std::string_view name) {
    for (const Parameter& p : sampler_parameters()) {
        if (p.setting == name && !name.empty()) return &p;
        for (const std::string& option : split_words(p.options))
            if (option.starts_with("--") && option.substr(2) == name) return &p;
    }
    return nullptr;
}

}  // namespace

std::vector<std::pair<std::string, std::string>> list_settings(const ConversationOptions& options) {
    std::vector<std::pair<std::string, std::string>> all;
    for (const Parameter& p : sampler_parameters())
        if (!p.setting.empty()) all.emplace_back(p.setting, parameter_text(options.sampling.sampler, p));
    // The seed comes behind the values that people change.
    std::ranges::stable_partition(all, [](const auto& setting) { return setting.first != "seed"; });
    all.emplace_back(kIgnoreEos, options.sampling.ignore_eos ? "on" : "off");
    all.emplace_back(kMaxTokens, fmt::format("{}", options.generate.max_tokens));
    all.emplace_back(kBudget, fmt::format("{}", options.reasoning.budget));
    return all;
}

Status change_setting(ConversationOptions& options, const std::string& name, const std::string& value) {
    const std::string wanted = usual_form(name);
    if (wanted == kMaxTokens || wanted == kBudget) {
        const Result<int64_t> number = parse_integer(value, -1, std::numeric_limits<int64_t>::max());
        if (!number) return error("/set {} {}", wanted, number.error().message);
        (wanted == kBudget ? options.reasoning.budget : options.generate.max_tokens) = number.value();
        return {};
    }
    if (wanted == kIgnoreEos) {
        if (value != "on" && value != "off")
            return error("/set {} takes on or off, not \"{}\"", wanted, value);
        options.sampling.ignore_eos = value == "on";
        return {};
    }
    if (const Parameter* p = find_setting(wanted)) {
        SamplerOptions changed = options.sampling.sampler;
        const Status read = set_by_text(changed, *p, value);
        if (!read) return error("/set {} {}", p->setting, read.error().message);
        RL_TRY(check_parameter(*p, changed));
        options.sampling.sampler = std::move(changed);
        return {};
    }
    std::vector<std::string> names;
    for (const auto& [known, now] : list_settings(options)) names.push_back(known);
    const std::string nearest = nearest_name(wanted, names);
    return error(
        "/set knows no {}; {}", name,
        nearest.empty() ? "/set alone lists what it knows" : fmt::format("did you mean {}?", nearest));
}

}  // namespace redline::cli
