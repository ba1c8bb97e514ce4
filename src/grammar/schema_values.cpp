// Values that a schema lists: their texts share beginnings, so that thousands are matched as fast as a few.
#include "grammar/automaton.h"
#include "grammar/schema_converter.h"
#include "text/tokens/unicode.h"

#include <algorithm>

namespace redline {
namespace {

// Alternative texts as a tree: in sorted order, texts with the same beginning are neighbours.
class TextTree {
public:
    TextTree(JsonRules& rules, std::vector<std::string> texts) : rules_(rules), texts_(std::move(texts)) {
        std::sort(texts_.begin(), texts_.end());
        texts_.erase(std::unique(texts_.begin(), texts_.end()), texts_.end());
    }
    std::string run() { return below(0, texts_.size(), 0); }

private:
    // The texts from `first` to `last`, from byte `from` on.
    std::string below(size_t first, size_t last, size_t from) {
        const std::string& text = texts_[first];
        if (last - first == 1) return gbnf_quoted(std::string_view(text).substr(from));
        const std::string& farthest = texts_[last - 1];
        const auto differ = std::mismatch(text.begin() + std::ptrdiff_t(from), text.end(),
                                          farthest.begin() + std::ptrdiff_t(from), farthest.end());
        auto shared = size_t(differ.first - text.begin());
        while (shared > from && shared < text.size() && (uint8_t(text[shared]) & 0xC0) == 0x80) --shared;
        if (shared < farthest.size())
            while (shared > from && (uint8_t(farthest[shared]) & 0xC0) == 0x80) --shared;
        std::string out;
        for (size_t begin = first; begin < last;) {
            size_t end = begin + 1;
            if (texts_[begin].size() == shared) {
                out = "\"\"";
            } else {
                const std::string lead = character(texts_[begin], shared);
                while (end < last && character(texts_[end], shared) == lead) ++end;
                out += (out.empty() ? "" : " | ") + below(begin, end, shared);
            }
            begin = end;
        }
        const std::string rule = rules_.add("values", out);
        return shared > from ? gbnf_quoted(std::string_view(text).substr(from, shared - from)) + " " + rule
                             : rule;
    }

    static std::string character(const std::string& text, size_t at) {
        return text.substr(at, utf8_step(text, at).bytes);
    }

    JsonRules& rules_;
    std::vector<std::string> texts_;
};

bool is_type(const Json& value, const std::string& type) {
    if (type == "integer")
        return value.is_number() && decimal_of(value) && decimal_of(value)->fraction.empty();
    if (type == "number") return value.is_number();
    return value.type_name() == type;
}

bool is_one_of(const Json& value, const std::vector<std::string>& types) {
    return types.empty() ||
           std::any_of(types.begin(), types.end(), [&](const auto& type) { return is_type(value, type); });
}

}  // namespace

std::string SchemaConverter::one_of(const std::vector<Json>& values) {
    std::vector<std::string> texts;
    for (const Json& value : values) texts.push_back(value.dump());
    return TextTree(rules_, std::move(texts)).run();
}

std::optional<std::vector<Json>> SchemaConverter::listed_values(const Json& schema, size_t depth) const {
    constexpr size_t kMostReferences = 8;
    if (!schema.is_object() || depth > kMostReferences) return {};
    for (const auto& [key, value] : schema.items())
        if (is_held(key) ? key != "const" && key != "enum" && key != "type" && key != "$ref"
                         : constrains(key).has_value())
            return {};
    if (schema.contains("$ref")) {
        const Result<const Json*> found = target(schema["$ref"], "");
        if (!found || schema.contains("const") || schema.contains("enum") || schema.contains("type"))
            return {};
        return listed_values(*found.value(), depth + 1);
    }
    const Result<std::vector<std::string>> wanted = types(schema, "");
    if (!wanted) return {};
    Json list = schema.value("enum", Json());
    if (schema.contains("const")) list = Json::array({schema["const"]});
    if (wanted.value() == std::vector<std::string>{"boolean"} && list.is_null())
        list = Json::array({true, false});
    if (!list.is_array() || (schema.contains("const") && schema.contains("enum"))) return {};
    std::vector<Json> out;
    for (const Json& value : list)
        if (is_one_of(value, wanted.value())) out.push_back(value);
    return out.empty() ? std::nullopt : std::optional(std::move(out));
}

SchemaConverter::Text SchemaConverter::values(const Json& schema, const std::string& path, size_t depth) {
    const Json list = schema.contains("enum") ? schema["enum"] : Json::array({schema["const"]});
    if (!list.is_array() || list.empty()) return error("{}/enum: takes a list of values", path);
    const std::vector<std::string> wanted = RL_TRY(types(schema, path));
    Json rest = held_keywords(held_keywords(schema, "const"), "enum");
    rest.erase("type");
    std::vector<Json> left;
    for (const Json& value : list)
        if (is_one_of(value, wanted) && (!schema.contains("const") || value == schema["const"]))
            left.push_back(value);
    if (!rest.empty()) left = RL_TRY(fitting(left, rest, path, depth));
    if (left.empty()) return nothing("{}: no value of the enum or const fits the rest", path);
    return one_of(left);
}

// The values that the grammar of a schema accepts, in any order of an object's keys.
Result<std::vector<Json>> SchemaConverter::fitting(const std::vector<Json>& values, const Json& schema,
                                                   const std::string& path, size_t depth) {
    std::vector<Json> out;
    std::map<std::string, std::optional<Grammar>> grammars;  // by type; null: no value satisfies the schema
    for (const Json& value : values) {
        const std::string type = value.is_number() ? "number" : value.type_name();
        auto known = grammars.find(type);
        if (known == grammars.end())
            known = grammars.emplace(type, RL_TRY(grammar_of_type(type, schema, path, depth))).first;
        if (!known->second) continue;
        Automaton automaton(*known->second);
        Automaton::State state = automaton.start();
        for (const char byte : value.dump()) state = automaton.step(state, uint8_t(byte));
        const bool fits = state != Automaton::kDead && automaton.can_end(state);
        if (!fits && value.is_structured())
            RL_TRY(not_held(path, "keywords beside objects and lists in its enum or const"));
        if (fits || value.is_structured()) out.push_back(value);
    }
    return out;
}

Result<std::optional<Grammar>> SchemaConverter::grammar_of_type(const std::string& type, const Json& schema,
                                                                const std::string& path, size_t depth) {
    Json typed = schema;
    typed["type"] = type;
    SchemaConverter inner(root_, options_);
    inner.visits_ = visits_;
    inner.noted_ = noted_;
    inner.rules_.reserve("root");
    const Text body = inner.visit(typed, path, depth + 1);
    visits_ = inner.visits_;
    noted_ = inner.noted_;
    if (!body && !inner.is_nothing_) return body.error();
    if (!body) return std::optional<Grammar>();
    inner.rules_.define("root", body.value());
    return std::optional(RL_TRY(Grammar::parse(inner.rules_.text())));
}

}  // namespace redline
