#include "sample/chain.h"

#include <algorithm>
#include <cmath>
#include <limits>

namespace redline {
namespace {

struct StepName {
    SamplerStep step;
    char letter;
    std::string_view name;
};

constexpr StepName kSteps[] = {
    {SamplerStep::penalties, 'e', "penalties"},
    {SamplerStep::dry, 'd', "dry"},
    {SamplerStep::top_n_sigma, 's', "top_n_sigma"},
    {SamplerStep::top_k, 'k', "top_k"},
    {SamplerStep::typical_p, 'y', "typ_p"},
    {SamplerStep::top_p, 'p', "top_p"},
    {SamplerStep::min_p, 'm', "min_p"},
    {SamplerStep::xtc, 'x', "xtc"},
    {SamplerStep::temperature, 't', "temperature"},
};

// Other names that llama.cpp takes, beside dashes in place of underscores.
constexpr std::pair<std::string_view, std::string_view> kOtherNames[] = {
    {"temp", "temperature"}, {"typ", "typ_p"},     {"typical", "typ_p"},
    {"typical_p", "typ_p"},  {"nucleus", "top_p"}, {"top_nsigma", "top_n_sigma"}};

const StepName* find_name(std::string_view text) {
    std::string name(text);
    std::replace(name.begin(), name.end(), '-', '_');
    for (const auto& [other, usual] : kOtherNames)
        if (name == other) name = usual;
    const auto found =
        std::find_if(std::begin(kSteps), std::end(kSteps), [&](const StepName& s) { return s.name == name; });
    return found == std::end(kSteps) ? nullptr : found;
}

const StepName* find_letter(char letter) {
    const auto found = std::find_if(std::begin(kSteps), std::end(kSteps),
                                    [letter](const StepName& s) { return s.letter == letter; });
    return found == std::end(kSteps) ? nullptr : found;
}

std::string known_names() {
    std::string names;
    for (const StepName& s : kSteps)
        names += fmt::format("{}{} ({})", names.empty() ? "" : ", ", s.name, s.letter);
    return names;
}

std::string_view trim(std::string_view text) {
    const size_t from = text.find_first_not_of(" \t");
    if (from == std::string_view::npos) return {};
    return text.substr(from, text.find_last_not_of(" \t") - from + 1);
}

bool is_letters(std::string_view text) {
    return std::all_of(text.begin(), text.end(), [](char c) { return find_letter(c) != nullptr; });
}

Status append(std::vector<SamplerStep>& chain, const StepName& name) {
    if (std::find(chain.begin(), chain.end(), name.step) != chain.end())
        return error("samplers names {} twice", name.name);
    chain.push_back(name.step);
    return {};
}

struct Range {
    std::string_view name;
    float value;
    float least;
    float most;
    std::string_view meaning;
};

constexpr float kAny = std::numeric_limits<float>::max();

Status check_range(const Range& r) {
    if (r.value >= r.least && r.value <= r.most) return {};  // false for NaN
    if (r.least == -kAny) return error("{} is {}; it must be a finite number{}", r.name, r.value, r.meaning);
    if (r.most == kAny)
        return error("{} is {}; it must be {} or more, and finite{}", r.name, r.value, r.least, r.meaning);
    return error("{} is {}; it must be between {} and {}{}", r.name, r.value, r.least, r.most, r.meaning);
}

Status check_whole(std::string_view name, int32_t value, int32_t least, std::string_view meaning) {
    if (value >= least) return {};
    return error("{} is {}; it must be {} or more{}", name, value, least, meaning);
}

}  // namespace

Result<std::vector<SamplerStep>> parse_chain(std::string_view text) {
    text = trim(text);
    std::vector<SamplerStep> chain;
    if (find_name(text) == nullptr && is_letters(text)) {
        for (const char c : text) RL_TRY(append(chain, *find_letter(c)));
        return chain;
    }
    while (!text.empty()) {
        const size_t end = std::min(text.find(';'), text.size());
        const std::string_view name = trim(text.substr(0, end));
        text.remove_prefix(std::min(end + 1, text.size()));
        if (name.empty()) continue;
        const StepName* found = find_name(name);
        if (found == nullptr)
            return error("samplers names \"{}\"; known are {}, by name separated by ';' or by letter", name,
                         known_names());
        RL_TRY(append(chain, *found));
    }
    return chain;
}

bool active(SamplerStep step, const SamplerOptions& o) {
    switch (step) {
        case SamplerStep::penalties:
            return o.repeat_last_n != 0 &&
                   (o.repeat_penalty != 1.0f || o.frequency_penalty != 0.0f || o.presence_penalty != 0.0f);
        case SamplerStep::dry:
            return o.dry_multiplier > 0.0f && o.dry_base >= 1.0f && o.dry_penalty_last_n != 0;
        case SamplerStep::top_n_sigma:
            return o.top_n_sigma > 0.0f;
        case SamplerStep::top_k:
            return o.top_k > 0;
        case SamplerStep::typical_p:
            return o.typical_p < 1.0f;
        case SamplerStep::top_p:
            return o.top_p < 1.0f;
        case SamplerStep::min_p:
            return o.min_p > 0.0f;
        case SamplerStep::xtc:
            return o.xtc_probability > 0.0f && o.xtc_threshold <= 0.5f;
        case SamplerStep::temperature:
            return o.temperature != 1.0f || o.dynatemp_range > 0.0f;
    }
    return false;
}

Status check_options(const SamplerOptions& o) {
    const float least_penalty = std::numeric_limits<float>::min();
    const Range ranges[] = {
        {"temperature", o.temperature, -kAny, kAny, " (0 or less: greedy)"},
        {"dynatemp_range", o.dynatemp_range, 0, kAny, " (0 turns it off)"},
        {"dynatemp_exponent", o.dynatemp_exponent, 0, kAny, ""},
        {"top_p", o.top_p, 0, 1, " (1 turns it off)"},
        {"min_p", o.min_p, 0, 1, " (0 turns it off)"},
        {"typical_p", o.typical_p, 0, 1, " (1 turns it off)"},
        {"top_n_sigma", o.top_n_sigma, -kAny, kAny, " (0 or less turns it off)"},
        {"xtc_probability", o.xtc_probability, 0, 1, " (0 turns it off)"},
        {"xtc_threshold", o.xtc_threshold, 0, 1, " (above 0.5 turns it off)"},
        {"repeat_penalty", o.repeat_penalty, least_penalty, kAny, " (1 turns it off)"},
        {"frequency_penalty", o.frequency_penalty, -kAny, kAny, " (0 turns it off)"},
        {"presence_penalty", o.presence_penalty, -kAny, kAny, " (0 turns it off)"},
        {"dry_multiplier", o.dry_multiplier, 0, kAny, " (0 turns it off)"},
        {"dry_base", o.dry_base, 0, kAny, " (below 1 turns it off)"},
        {"mirostat_tau", o.mirostat_tau, 0, kAny, ""},
        {"mirostat_eta", o.mirostat_eta, 0, kAny, ""},
    };
    RL_TRY(parse_chain(o.samplers));
    for (const Range& range : ranges) RL_TRY(check_range(range));
    RL_TRY(check_whole("min_keep", o.min_keep, 0, ""));
    RL_TRY(check_whole("repeat_last_n", o.repeat_last_n, -1, " (-1: the whole context, 0: off)"));
    RL_TRY(check_whole("dry_allowed_length", o.dry_allowed_length, 0, ""));
    RL_TRY(check_whole("dry_penalty_last_n", o.dry_penalty_last_n, -1, " (-1: the whole context, 0: off)"));
    if (o.mirostat < 0 || o.mirostat > 2)
        return error("mirostat is {}; it must be 0 (off), 1 or 2", o.mirostat);
    return {};
}

Status check_bias(const SamplerOptions& options, int32_t vocabulary_size) {
    for (const auto& [id, bias] : options.logit_bias) {
        if (id < 0 || id >= vocabulary_size)
            return error("logit_bias names token {}; the vocabulary has tokens 0 to {}", id,
                         vocabulary_size - 1);
        if (std::isnan(bias) || bias > kAny)
            return error("logit_bias of token {} is {}; it must be a number, or -inf to forbid the token", id,
                         bias);
    }
    return {};
}

}  // namespace redline
