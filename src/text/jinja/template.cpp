#include "text/jinja/template.h"

#include "json/json.h"
#include "text/jinja/interpreter.h"
#include "text/jinja/parser.h"
#include "text/tokens/unicode.h"

namespace redline::jinja {

static constexpr int kDeepestJson = 100;

Template::Template(std::unique_ptr<Node> root) : root_(std::move(root)) {}
Template::Template(Template&&) noexcept = default;
Template& Template::operator=(Template&&) noexcept = default;
Template::~Template() = default;

Result<Template> Template::parse(std::string_view source) {
    return Template(RL_TRY(parse_template(is_valid_utf8(source) ? source : to_valid_utf8(source))));
}

Result<std::vector<TextPart>> Template::render(Store& store, const Dict& variables,
                                               const std::tm& now) const {
    const Text text = RL_TRY(Interpreter(store, now).run(*root_, variables));
    std::vector<TextPart> parts;
    const auto add = [&](size_t begin, size_t end, bool scaffold) {
        if (begin < end) parts.push_back({text.bytes.substr(begin, end - begin), scaffold});
    };
    size_t at = 0;
    for (const TextRange& range : text.given) {
        add(at, range.begin, true);
        add(range.begin, range.end, false);
        at = range.end;
    }
    add(at, text.bytes.size(), true);
    return parts;
}

Result<Value> value_of(Store& store, const Json& json, int depth) {
    if (depth > kDeepestJson) return error("values are nested deeper than {} levels", kDeepestJson);
    switch (json.type()) {
        case Json::value_t::boolean:
            return Value::boolean(json.get<bool>());
        case Json::value_t::number_unsigned:
            if (json.get<uint64_t>() > uint64_t(INT64_MAX))
                return error("the integer {} has more than 64 bits", json.get<uint64_t>());
            return Value::integer(json.get<int64_t>());
        case Json::value_t::number_integer:
            return Value::integer(json.get<int64_t>());
        case Json::value_t::number_float:
            return Value::real(json.get<double>());
        case Json::value_t::string:
            return store.text(json.get_ref<const std::string&>(), true);
        case Json::value_t::array: {
            std::vector<Value> items;
            for (const auto& item : json) items.push_back(RL_TRY(value_of(store, item, depth + 1)));
            return store.list(std::move(items));
        }
        case Json::value_t::object: {
            Dict* dict = store.dict();
            for (const auto& [key, value] : json.items()) {
                store.reserve(2 * sizeof(Value));
                dict->entries.emplace_back(store.text(key, true), RL_TRY(value_of(store, value, depth + 1)));
            }
            return Value::of(dict);
        }
        default:
            break;
    }
    return Value::none();
}

}  // namespace redline::jinja
