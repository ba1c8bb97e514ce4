#include "cli/commands/chat_settings.h"

#include "base/nearest_name.h"
#include "sample/chain.h"

#include <algorithm>
#include <limits>

namespace redline::cli {

namespace {

using Member = std::variant<float SamplerOptions::*, int32_t SamplerOptions::*, std::string SamplerOptions::*,
                            uint32_t SamplerOptions::*>;

struct Setting {
    std::string_view name;
    Member member;
    std::string_view option = {};  // what the option is called, where that differs
};

constexpr std::string_view kMaxTokens = "max-tokens";
constexpr std::string_view kBudget = "reasoning-budget";

const Setting kSettings[] = {
    {"temp", &SamplerOptions::temperature, "temperature"},
    {"top-k", &SamplerOptions::top_k},
    {"top-p", &SamplerOptions::top_p},
    {"min-p", &SamplerOptions::min_p},
    {"typical-p", &SamplerOptions::typical_p, "typical"},
    {"top-n-sigma", &SamplerOptions::top_n_sigma, "top-nsigma"},
    {"xtc-probability", &SamplerOptions::xtc_probability},
    {"xtc-threshold", &SamplerOptions::xtc_threshold},
    {"dynatemp-range", &SamplerOptions::dynatemp_range},
    {"dynatemp-exp", &SamplerOptions::dynatemp_exponent},
    {"mirostat", &SamplerOptions::mirostat},
    {"mirostat-lr", &SamplerOptions::mirostat_eta},
    {"mirostat-ent", &SamplerOptions::mirostat_tau},
    {"repeat-last-n", &SamplerOptions::repeat_last_n},
    {"repeat-penalty", &SamplerOptions::repeat_penalty},
    {"presence-penalty", &SamplerOptions::presence_penalty},
    {"frequency-penalty", &SamplerOptions::frequency_penalty},
    {"dry-multiplier", &SamplerOptions::dry_multiplier},
    {"dry-base", &SamplerOptions::dry_base},
    {"dry-allowed-length", &SamplerOptions::dry_allowed_length},
    {"dry-penalty-last-n", &SamplerOptions::dry_penalty_last_n},
    {"samplers", &SamplerOptions::samplers, "sampler-seq"},
    {"seed", &SamplerOptions::seed},
};

std::string usual_form(std::string name) {
    name.erase(0, std::min(name.find_first_not_of('-'), name.size()));
    std::replace(name.begin(), name.end(), '_', '-');
    if (name == "predict" || name == "n-predict") return std::string(kMaxTokens);
    return name;
}

Status read_value(float& target, const std::string& text) {
    target = float(RL_TRY(parse_real(text)));
    return {};
}
Status read_value(int32_t& target, const std::string& text) {
    target = int32_t(RL_TRY(parse_integer(text, -1, std::numeric_limits<int32_t>::max())));
    return {};
}
Status read_value(uint32_t& target, const std::string& text) {
    target = uint32_t(RL_TRY(parse_integer(text, 0, std::numeric_limits<uint32_t>::max() - 1)));
    return {};
}
// Lists of names: blanks between them are for readers.
Status read_value(std::string& target, const std::string& text) {
    target = text;
    std::erase(target, ' ');
    return {};
}

std::string text_of(float value) {
    return fmt::format("{}", value);
}
std::string text_of(int32_t value) {
    return fmt::format("{}", value);
}
std::string text_of(uint32_t value) {
    return fmt::format("{}", value);
}
std::string text_of(const std::string& value) {
    std::string out = value;
    for (size_t at = out.find(';'); at != out.npos; at = out.find(';', at + 2)) out.insert(at + 1, " ");
    return out;
}

// The values that are lists or of another kind than numbers.
constexpr std::string_view kBreakers = "dry-sequence-breaker";
constexpr std::string_view kBias = "logit-bias";
constexpr std::string_view kIgnoreEos = "ignore-eos";
constexpr std::string_view kNone = "none";

std::string breakers_text(const std::vector<std::string>& breakers) {
    std::string out;
    for (const std::string& one : breakers) {
        out += out.empty() ? "" : " ";
        for (const char c : one)
            out += c == '\n' ? "\\n" : c == '\t' ? "\\t" : c == ' ' ? "\\x20" : std::string(1, c);
    }
    return out.empty() ? std::string(kNone) : out;
}

std::string bias_text(const SamplerOptions& sampler) {
    std::string out;
    for (const auto& [token, bias] : sampler.logit_bias)
        out += fmt::format("{}{}{:+}", out.empty() ? "" : " ", token, bias);
    return out.empty() ? std::string(kNone) : out;
}

Status change_breakers(SamplerOptions& sampler, const std::string& value) {
    if (value.empty()) return error("/set {} takes texts with blanks between them, or none", kBreakers);
    sampler.dry_sequence_breakers.clear();
    if (value == kNone) return {};
    for (const std::string& one : split_words(value)) sampler.dry_sequence_breakers.push_back(unescape(one));
    return {};
}

Status change_bias(SamplerOptions& sampler, const std::string& value) {
    SamplerOptions changed = sampler;
    changed.logit_bias.clear();
    for (const std::string& one : split_words(value == kNone ? std::string() : value)) {
        const Status added = add_bias(changed, one);
        if (!added) return error("/set {} {}", kBias, added.error().message);
    }
    if (value.empty()) return error("/set {} takes ID+BIAS or ID-BIAS, or none", kBias);
    sampler = std::move(changed);
    return {};
}

}  // namespace

std::vector<std::pair<std::string, std::string>> list_settings(const ConversationOptions& options) {
    std::vector<std::pair<std::string, std::string>> all;
    const SamplerOptions& sampler = options.sampling.sampler;
    for (const Setting& setting : kSettings)
        all.emplace_back(setting.name,
                         std::visit([&](auto member) { return text_of(sampler.*member); }, setting.member));
    all.emplace_back(kBreakers, breakers_text(sampler.dry_sequence_breakers));
    all.emplace_back(kBias, bias_text(sampler));
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
    if (wanted == kBreakers) return change_breakers(options.sampling.sampler, value);
    if (wanted == kBias) return change_bias(options.sampling.sampler, value);
    if (wanted == kIgnoreEos) {
        if (value != "on" && value != "off")
            return error("/set {} takes on or off, not \"{}\"", wanted, value);
        options.sampling.ignore_eos = value == "on";
        return {};
    }
    for (const Setting& setting : kSettings) {
        if (setting.name != wanted && setting.option != wanted) continue;
        SamplerOptions changed = options.sampling.sampler;
        Status done =
            std::visit([&](auto member) { return read_value(changed.*member, value); }, setting.member);
        if (!done) return error("/set {} {}", setting.name, done.error().message);
        RL_TRY(check_options(changed));
        options.sampling.sampler = changed;
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
