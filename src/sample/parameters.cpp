#include "sample/parameters.h"

#include "sample/chain.h"

#include <algorithm>
#include <cmath>
#include <limits>

namespace redline {

namespace {

constexpr double kAny = std::numeric_limits<float>::max();
constexpr double kAnyInteger = std::numeric_limits<int32_t>::max();

Status check(const Parameter& p, float value) {
    if (double(value) >= p.least && double(value) <= p.most) return {};  // false for NaN
    if (!p.must_be.empty()) return error("{} is {}; it must be {}", p.name, value, p.must_be);
    if (p.least == -kAny) return error("{} is {}; it must be a finite number{}", p.name, value, p.meaning);
    if (p.most == kAny)
        return error("{} is {}; it must be {} or more, and finite{}", p.name, value, float(p.least),
                     p.meaning);
    return error("{} is {}; it must be between {} and {}{}", p.name, value, p.least, p.most, p.meaning);
}

Status check(const Parameter& p, int32_t value) {
    if (double(value) >= p.least && double(value) <= p.most) return {};
    if (!p.must_be.empty()) return error("{} is {}; it must be {}", p.name, value, p.must_be);
    return error("{} is {}; it must be {} or more{}", p.name, value, p.least, p.meaning);
}

Status check(const Parameter&, uint32_t) {
    return {};
}
Status check(const Parameter&, const std::string& samplers) {
    RL_TRY(parse_chain(samplers));
    return {};
}
Status check(const Parameter&, const std::vector<std::string>&) {
    return {};  // make_dry_breakers() checks them
}
Status check(const Parameter&, const std::vector<std::pair<int32_t, float>>&) {
    return {};  // check_bias() does, by the vocabulary
}

Error wrong_kind(const Parameter& p, std::string_view wanted, const Json& value) {
    constexpr size_t kShown = 60;  // bytes of the value
    const std::string text = value.dump(-1, ' ', true, Json::error_handler_t::replace);
    return error("{} takes {}, not {}{}", p.name, wanted, text.substr(0, kShown),
                 text.size() > kShown ? "..." : "");
}

Result<double> number_of(const Parameter& p, const Json& value, bool whole) {
    if (!value.is_number()) return wrong_kind(p, whole ? "a whole number" : "a number", value);
    const double number = value.get<double>();
    if (whole && (number != std::floor(number) || std::abs(number) > double(kRandomSeed)))
        return wrong_kind(p, "a whole number", value);
    return number;
}

Status read(const Parameter& p, const Json& value, float& target) {
    target = float(RL_TRY(number_of(p, value, false)));
    return {};
}
Status read(const Parameter& p, const Json& value, int32_t& target) {
    const double number = RL_TRY(number_of(p, value, true));
    if (std::abs(number) > kAnyInteger) return wrong_kind(p, "a whole number of 32 bits", value);
    target = int32_t(number);
    return {};
}
Status read(const Parameter& p, const Json& value, uint32_t& target) {
    const double number = RL_TRY(number_of(p, value, true));
    if (number < p.least) return error("{} is {}; it must be {} or more", p.name, number, p.least);
    target = uint32_t(int64_t(number));
    return {};
}
// A chain is a text, or a list of names.
Status read(const Parameter& p, const Json& value, std::string& target) {
    std::vector<std::string> names;
    if (!value.is_string() && !value.is_array()) return wrong_kind(p, "a text or a list of texts", value);
    for (const Json& name : value.is_array() ? value : Json::array({value})) {
        if (!name.is_string()) return wrong_kind(p, "a text or a list of texts", value);
        names.push_back(name.get<std::string>());
    }
    target = fmt::format("{}", fmt::join(names, ";"));
    return {};
}
Status read(const Parameter& p, const Json& value, std::vector<std::string>& target) {
    if (!value.is_array()) return wrong_kind(p, "a list of texts", value);
    std::vector<std::string> texts;
    for (const Json& text : value) {
        if (!text.is_string()) return wrong_kind(p, "a list of texts", value);
        texts.push_back(text.get<std::string>());
    }
    target = std::move(texts);
    return {};
}
// {"15043": 1.5} as OpenAI's API has it, or [[15043, 1.5]] as llama-server's; false forbids a token.
Status read(const Parameter& p, const Json& value, std::vector<std::pair<int32_t, float>>& target) {
    constexpr std::string_view kWanted = "numbers by token, {\"15043\": 1.5} or [[15043, 1.5]]";
    std::vector<std::pair<int32_t, float>> all;
    const auto add = [&](const Json& token, const Json& bias) {
        const bool forbidden = bias.is_boolean() && !bias.get<bool>();
        if (!token.is_number_integer() || (!bias.is_number() && !forbidden)) return false;
        if (std::abs(token.get<double>()) > kAnyInteger) return false;
        all.emplace_back(token.get<int32_t>(),
                         forbidden ? -std::numeric_limits<float>::infinity() : bias.get<float>());
        return true;
    };
    bool good = value.is_object() || value.is_array();
    if (value.is_object()) {
        for (const auto& [token, bias] : value.items()) good = good && add(read_json(token), bias);
    } else if (value.is_array()) {
        for (const Json& pair : value)
            good = good && pair.is_array() && pair.size() == 2 && add(pair[0], pair[1]);
    }
    if (!good) return wrong_kind(p, kWanted, value);
    target = std::move(all);
    return {};
}

}  // namespace

const Parameter* find_parameter(std::string_view name) {
    const auto all = sampler_parameters();
    const auto found = std::ranges::find(all, name, &Parameter::name);
    return found == all.end() ? nullptr : &*found;
}

Status check_parameter(const Parameter& p, const SamplerOptions& options) {
    return std::visit([&](auto member) { return check(p, options.*member); }, p.member);
}

Status check_options(const SamplerOptions& options) {
    for (const Parameter& p : sampler_parameters()) RL_TRY(check_parameter(p, options));
    return {};
}

Status check_bias(const SamplerOptions& options, int32_t vocabulary_size) {
    for (const auto& [id, bias] : options.logit_bias) {
        if (id < 0 || id >= vocabulary_size)
            return error("logit_bias names token {}; the vocabulary has tokens 0 to {}", id,
                         vocabulary_size - 1);
        if (std::isnan(bias) || double(bias) > kAny)
            return error("logit_bias of token {} is {}; it must be a number, or -inf to forbid the token", id,
                         bias);
    }
    return {};
}

Status set_parameter(SamplerOptions& options, const Parameter& p, const Json& value) {
    SamplerOptions changed = options;
    RL_TRY(std::visit([&](auto member) { return read(p, value, changed.*member); }, p.member));
    RL_TRY(check_parameter(p, changed));
    options = std::move(changed);
    return {};
}

}  // namespace redline
