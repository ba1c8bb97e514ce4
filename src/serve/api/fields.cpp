#include "serve/api/fields.h"

#include <algorithm>
#include <cmath>

namespace redline::serve {

static constexpr int kDeepest = 128;

// The depth to which brackets outside of texts are nested.
static int nesting(std::string_view text) {
    int depth = 0, most = 0;
    bool in_text = false;
    for (size_t i = 0; i < text.size(); ++i) {
        const char c = text[i];
        if (in_text && c == '\\') {
            ++i;
        } else if (c == '"') {
            in_text = !in_text;
        } else if (!in_text && (c == '{' || c == '[')) {
            most = std::max(most, ++depth);
        } else if (!in_text && (c == '}' || c == ']')) {
            --depth;
        }
    }
    return most;
}

Result<Json> parse_body(std::string_view body) {
    if (body.empty()) return error("the request has no body; it has to be a JSON object");
    if (nesting(body) > kDeepest)
        return error("the body is nested deeper than {} lists and objects", kDeepest);
    try {
        Json value = parse_json(body);
        if (!value.is_object()) return error("the body has to be a JSON object, not {}", excerpt(value));
        return value;
    } catch (const Json::exception& problem) {
        // The library's text names itself first: "[json.exception.parse_error.101] parse error at ...".
        const std::string_view said = problem.what();
        return error("the body is no JSON: {}", said.substr(std::min(said.find("] ") + 2, said.size())));
    }
}

std::string json_text(const Json& value) {
    return value.dump(-1, ' ', false, Json::error_handler_t::replace);
}

std::string excerpt(const Json& value) {
    constexpr size_t kShown = 60;  // bytes
    const std::string text = value.dump(-1, ' ', true, Json::error_handler_t::replace);
    return text.size() > kShown ? text.substr(0, kShown) + "..." : text;
}

static const Json& or_nothing(const Json& value) {
    static const Json kNothing = Json::object();
    return value.is_object() ? value : kNothing;
}

Fields::Fields(const Json& object, std::string where)
    : object_(or_nothing(object)), where_(std::move(where)) {}

const Json* Fields::find(std::string_view name) const {
    const auto found = object_.find(name);
    return found == object_.end() || found->is_null() ? nullptr : &*found;
}

Result<int64_t> Fields::integer(std::string_view name, int64_t fallback, int64_t least, int64_t most) const {
    const Json* value = find(name);
    if (!value) return fallback;
    const auto wrong = [&] {
        return error("{} is {}; it has to be a whole number from {} to {}", path(name), excerpt(*value),
                     least, most);
    };
    if (!value->is_number()) return wrong();
    const double number = value->get<double>();
    if (number != std::floor(number) || std::abs(number) > 0x1p62) return wrong();
    const bool large = value->is_number_unsigned() && value->get<uint64_t>() > uint64_t(INT64_MAX);
    if (large) return wrong();
    const int64_t whole = value->is_number_float() ? int64_t(number) : value->get<int64_t>();
    if (whole < least || whole > most) return wrong();
    return whole;
}

Result<bool> Fields::flag(std::string_view name, bool fallback) const {
    const Json* value = find(name);
    if (!value) return fallback;
    if (!value->is_boolean())
        return error("{} is {}; it has to be true or false", path(name), excerpt(*value));
    return value->get<bool>();
}

Result<std::string> Fields::text(std::string_view name, std::string fallback) const {
    const Json* value = find(name);
    if (!value) return fallback;
    if (!value->is_string()) return error("{} is {}; it has to be a text", path(name), excerpt(*value));
    return value->get<std::string>();
}

Result<std::vector<std::string>> Fields::texts(std::string_view name) const {
    std::vector<std::string> all;
    const Json* value = find(name);
    if (!value) return all;
    const auto wrong = [&] {
        return error("{} is {}; it has to be a text or a list of texts", path(name), excerpt(*value));
    };
    if (value->is_string()) return std::vector{value->get<std::string>()};
    if (!value->is_array()) return wrong();
    for (const Json& each : *value) {
        if (!each.is_string()) return wrong();
        all.push_back(each.get<std::string>());
    }
    return all;
}

Result<std::vector<int32_t>> Fields::tokens(std::string_view name, size_t vocabulary) const {
    std::vector<int32_t> all;
    const Json* value = find(name);
    if (!value) return all;
    if (!value->is_array())
        return error("{} is {}; it has to be a list of tokens", path(name), excerpt(*value));
    for (const Json& each : *value) {
        const bool good =
            each.is_number_integer() && each.get<double>() >= 0 && each.get<double>() < double(vocabulary);
        if (!good)
            return error("{} has {}; tokens are whole numbers from 0 to {}", path(name), excerpt(each),
                         vocabulary - 1);
        all.push_back(each.get<int32_t>());
    }
    return all;
}

Status Fields::refuse(std::string_view name, std::string_view why) const {
    const Json* value = find(name);
    if (!value || *value == false || *value == "" || (value->is_structured() && value->empty())) return {};
    return error("{} is not supported: {}", path(name), why);
}

}  // namespace redline::serve
