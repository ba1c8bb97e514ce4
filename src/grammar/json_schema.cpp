#include "grammar/json_schema.h"

#include "grammar/json_rules.h"
#include "grammar/schema_disjoint.h"
#include "grammar/schema_merge.h"
#include "grammar/schema_text.h"
#include "text/unicode.h"

#include <algorithm>
#include <cmath>
#include <set>

namespace redline {
namespace {

constexpr size_t kMostDepth = 100;
constexpr size_t kMostVisits = 20'000;           // of schemas; what is merged is visited anew
constexpr size_t kMostBytes = size_t(16) << 20;  // of the grammar
constexpr size_t kMostKey = 500;
constexpr uint64_t kMostCount = 1'000'000;

constexpr std::string_view kDescriptive[] = {
    "title",    "description", "default",    "examples",        "$schema",
    "$id",      "$comment",    "$anchor",    "$defs",           "definitions",
    "readOnly", "writeOnly",   "deprecated", "contentEncoding", "contentMediaType"};
constexpr std::string_view kKnown[] = {"$ref",
                                       "allOf",
                                       "anyOf",
                                       "oneOf",
                                       "const",
                                       "enum",
                                       "type",
                                       "properties",
                                       "required",
                                       "additionalProperties",
                                       "items",
                                       "prefixItems",
                                       "additionalItems",
                                       "minItems",
                                       "maxItems",
                                       "minLength",
                                       "maxLength",
                                       "pattern",
                                       "format",
                                       "minimum",
                                       "maximum",
                                       "exclusiveMinimum",
                                       "exclusiveMaximum"};

template <typename List>
bool has(const List& list, std::string_view name) {
    return std::find(std::begin(list), std::end(list), name) != std::end(list);
}

// A value as the only text that is allowed for it.
std::string literal(const Json& value) {
    return gbnf_quoted(value.dump());
}

class Converter {
public:
    Converter(Json schema, std::vector<std::string>* notes) : root_(std::move(schema)), notes_(notes) {}

    Result<std::string> run() {
        rules_.reserve("root");
        refs_["#"] = "root";
        const bool empty = root_.is_object() && root_.empty();
        const std::string body = empty ? rules_.use("object") : RL_TRY(visit(root_, "#", 0));
        if (body == "root") return error("#: the schema is nothing but a reference to itself");
        rules_.define("root", body);
        return rules_.text();
    }

private:
    // Each returns what a rule says, or the name of a rule.
    using Text = Result<std::string>;

    Text visit(const Json& schema, const std::string& path, size_t depth) {
        if (++visits_ > kMostVisits)
            return error("{}: the schema is too large, or refers to itself too often", path);
        if (depth > kMostDepth) return error("{}: schemas are nested more than {} deep", path, kMostDepth);
        if (rules_.bytes() > kMostBytes)
            return error("{}: the schema is too large: its grammar has more than {} bytes", path, kMostBytes);
        if (schema.is_boolean()) {
            if (schema == true) return rules_.use("value");
            return error("{}: the schema false allows nothing", path);
        }
        if (!schema.is_object())
            return error("{}: a schema is an object, true or false, not {}", path, schema.type_name());
        RL_TRY(check_keywords(schema, path));
        if (schema.contains("$ref")) return reference(schema, path, depth);
        if (schema.contains("allOf")) return all_of(schema, path, depth);
        for (const char* key : {"anyOf", "oneOf"})
            if (schema.contains(key)) return any_of(schema, key, path, depth);
        if (schema.contains("const") || schema.contains("enum")) return values(schema, path);
        return typed(schema, path, depth);
    }

    Status check_keywords(const Json& schema, const std::string& path) const {
        for (const auto& [key, value] : schema.items()) {
            if (has(kDescriptive, key) || has(kKnown, key) || key.starts_with("x-")) continue;
            return error("{}: the keyword is not supported", member_pointer(path, printable(key)));
        }
        return {};
    }

    static Json without(const Json& schema, std::string_view key) {
        Json rest = Json::object();
        for (const auto& [name, value] : schema.items())
            if (name != key && !has(kDescriptive, name)) rest[name] = value;
        return rest;
    }

    Result<const Json*> target(const Json& ref, const std::string& path) const {
        if (!ref.is_string()) return error("{}/$ref: takes a text, not {}", path, ref.type_name());
        const std::string& text = ref.get_ref<const std::string&>();
        if (!text.starts_with("#"))
            return error("{}/$ref: only references into the same schema (#/...) are supported, not {}", path,
                         printable(text));
        try {
            const nlohmann::json_pointer<std::string> pointer(text.substr(1));
            if (root_.contains(pointer)) return &root_.at(pointer);
        } catch (const Json::exception&) {
            // said below
        }
        return error("{}/$ref: nothing is at {}", path, printable(text));
    }

    Text reference(const Json& schema, const std::string& path, size_t depth) {
        const Json* found = RL_TRY(target(schema["$ref"], path));
        const Json rest = without(schema, "$ref");
        const std::string name = schema["$ref"];
        if (!rest.empty()) {
            if (!found->is_object()) return error("{}: keywords beside this $ref are not supported", path);
            return visit(RL_TRY(merge_schemas(*found, rest, path)), path, depth + 1);
        }
        if (const auto known = refs_.find(name); known != refs_.end()) return known->second;
        const std::string rule = rules_.reserve("ref-" + name.substr(name.rfind('/') + 1));
        refs_[name] = rule;
        const std::string body = RL_TRY(visit(*found, name, depth + 1));
        if (body == rule) return error("{}: the schema is nothing but a reference to itself", name);
        rules_.define(rule, body);
        return rule;
    }

    // A part of allOf, with what it refers to in its place.
    Result<Json> part(const Json& schema, const std::string& path, size_t depth) {
        if (++visits_ > kMostVisits)
            return error("{}: the schema is too large, or refers to itself too often", path);
        if (depth > kMostDepth) return error("{}: schemas are nested more than {} deep", path, kMostDepth);
        if (schema == true) return Json::object();
        if (!schema.is_object()) return error("{}: a part of allOf is an object or true", path);
        RL_TRY(check_keywords(schema, path));
        Json out = schema;
        if (schema.contains("$ref")) {
            const Json* found = RL_TRY(target(schema["$ref"], path));
            if (!merging_.insert(found).second)
                return error("{}/$ref: the parts of allOf refer to themselves without end", path);
            Result<Json> whole = part(*found, schema["$ref"], depth + 1);
            merging_.erase(found);
            const Json resolved = RL_TRY(std::move(whole));
            out = RL_TRY(merge_schemas(without(schema, "$ref"), resolved, path));
        }
        if (!out.contains("allOf")) return out;
        const Json parts = out["allOf"];
        out.erase("allOf");
        if (!parts.is_array()) return error("{}/allOf: takes a list of schemas", path);
        for (size_t i = 0; i < parts.size(); ++i) {
            const Json next = RL_TRY(part(parts[i], fmt::format("{}/allOf/{}", path, i), depth + 1));
            out = RL_TRY(merge_schemas(std::move(out), next, path));
        }
        return out;
    }

    Text all_of(const Json& schema, const std::string& path, size_t depth) {
        return visit(RL_TRY(part(schema, path, depth)), path, depth + 1);
    }

    Text any_of(const Json& schema, const std::string& key, const std::string& path, size_t depth) {
        const Json& list = schema[key];
        if (!list.is_array() || list.empty())
            return error("{}/{}: takes a list of schemas that is not empty", path, key);
        const Json rest = without(schema, key);
        std::string out;
        std::vector<Json> branches;
        for (size_t i = 0; i < list.size(); ++i) {
            const std::string at = fmt::format("{}/{}/{}", path, key, i);
            const Json both = Json::array({rest, list[i]});
            branches.push_back(rest.empty() ? list[i] : Json{{"allOf", both}});
            out += (out.empty() ? "" : " | ") + RL_TRY(visit(branches.back(), at, depth + 1));
        }
        if (key == "oneOf" && notes_) note_overlap(branches, member_pointer(path, key), depth);
        return rules_.add("any", out);
    }

    void note_overlap(const std::vector<Json>& branches, const std::string& path, size_t depth) {
        // All comparisons of a schema share one count of visits; over it, branches are said to overlap.
        const size_t before = std::exchange(visits_, compared_);
        const ResolveSchema resolve = [&](const Json& schema) -> std::optional<Json> {
            Result<Json> whole = part(schema, path, depth);
            return whole ? std::optional(std::move(whole).value()) : std::nullopt;
        };
        const auto pair = overlap(branches, resolve);
        compared_ = std::exchange(visits_, before);
        if (pair)
            notes_->push_back(
                fmt::format("{}: read as anyOf, for a value of branch {} may be one of branch {}, too", path,
                            pair->first, pair->second));
    }

    static bool is_type(const Json& value, const std::string& type) {
        if (type == "integer") return value.is_number_integer();
        if (type == "number") return value.is_number();
        return value.type_name() == type;
    }

    Result<std::vector<std::string>> types(const Json& schema, const std::string& path) const {
        constexpr std::string_view kTypes[] = {"object",  "array",   "string", "number",
                                               "integer", "boolean", "null"};
        std::vector<std::string> out;
        if (!schema.contains("type")) return out;
        const Json& type = schema["type"];
        for (const Json& each : type.is_array() ? type : Json::array({type})) {
            if (!each.is_string() || !has(kTypes, each.get_ref<const std::string&>()))
                return error(
                    "{}/type: takes object, array, string, number, integer, boolean, null or a list of them, "
                    "not {}",
                    path, printable(each.dump()));
            out.push_back(each);
        }
        if (out.empty()) return error("{}/type: the list is empty", path);
        return out;
    }

    Text values(const Json& schema, const std::string& path) {
        const Json rest = without(without(schema, "const"), "enum");
        for (const auto& [key, value] : rest.items())
            if (key != "type")
                return error("{}: {} beside {} is not supported", path, key,
                             schema.contains("const") ? "const" : "enum");
        Json list = schema.contains("enum") ? schema["enum"] : Json::array({schema["const"]});
        if (!list.is_array() || list.empty()) return error("{}/enum: takes a list of values", path);
        const std::vector<std::string> wanted = RL_TRY(types(schema, path));
        std::string out;
        for (const Json& value : list) {
            const bool fits =
                wanted.empty() || std::any_of(wanted.begin(), wanted.end(),
                                              [&](const auto& type) { return is_type(value, type); });
            if (!fits || (schema.contains("const") && value != schema["const"])) continue;
            out += (out.empty() ? "" : " | ") + literal(value);
        }
        if (out.empty()) return error("{}: no value of the enum or const fits the rest", path);
        return rules_.add("values", out);
    }

    // What the schema is about, when it does not say so.
    Text implied_type(const Json& schema, const std::string& path) const {
        struct Family {
            const char* type;
            std::vector<const char*> keys;
        };
        const Family families[] = {
            {"object", {"properties", "required", "additionalProperties"}},
            {"array", {"items", "prefixItems", "additionalItems", "minItems", "maxItems"}},
            {"string", {"minLength", "maxLength", "pattern", "format"}},
            {"number", {"minimum", "maximum", "exclusiveMinimum", "exclusiveMaximum"}}};
        std::string found;
        for (const Family& family : families)
            for (const char* key : family.keys) {
                if (!schema.contains(key) || found == family.type) continue;
                if (!found.empty()) return error("{}: the type is missing, for {} and others", path, key);
                found = family.type;
            }
        return found;
    }

    Text typed(const Json& schema, const std::string& path, size_t depth) {
        std::vector<std::string> wanted = RL_TRY(types(schema, path));
        if (wanted.empty()) {
            const std::string implied = RL_TRY(implied_type(schema, path));
            if (implied.empty()) return rules_.use("value");
            wanted.push_back(implied);
        }
        std::string out;
        for (const std::string& type : wanted)
            out += (out.empty() ? "" : " | ") + RL_TRY(of_type(type, schema, path, depth));
        return wanted.size() == 1 ? out : rules_.add("types", out);
    }

    Text of_type(const std::string& type, const Json& schema, const std::string& path, size_t depth) {
        if (type == "object") return object(schema, path, depth);
        if (type == "array") return array(schema, path, depth);
        if (type == "string") return string(schema, path);
        if (type == "number" || type == "integer") return number(type, schema, path);
        return rules_.use(type);
    }

    Result<std::optional<uint64_t>> count(const Json& schema, const char* key,
                                          const std::string& path) const {
        if (!schema.contains(key)) return std::optional<uint64_t>();
        const Json& value = schema[key];
        const double number = value.is_number() ? value.get<double>() : -1;
        if (!(number >= 0) || number > double(kMostCount) || number != std::floor(number))
            return error("{}/{}: takes a whole number from 0 to {}, not {}", path, key, kMostCount,
                         printable(value.dump()));
        return std::optional(uint64_t(number));
    }

    struct Limits {
        uint64_t least = 0;
        std::optional<uint64_t> most;
        bool given = false;
    };
    Result<Limits> limits(const Json& schema, const char* least, const char* most,
                          const std::string& path) const {
        const std::optional<uint64_t> low = RL_TRY(count(schema, least, path));
        const std::optional<uint64_t> high = RL_TRY(count(schema, most, path));
        if (low && high && *low > *high)
            return error("{}: {} {} is more than {} {}", path, least, *low, most, *high);
        return Limits{low.value_or(0), high, low || high};
    }

    Text string(const Json& schema, const std::string& path) {
        const Limits length = RL_TRY(limits(schema, "minLength", "maxLength", path));
        const bool pattern = schema.contains("pattern"), format = schema.contains("format");
        if (pattern + format + length.given > 1)
            return error("{}: only one of pattern, format and minLength or maxLength is supported at a time",
                         path);
        if (pattern) {
            if (!schema["pattern"].is_string()) return error("{}/pattern: takes a text", path);
            const Result<std::string> rule = pattern_rule(schema["pattern"].get_ref<const std::string&>());
            if (!rule) return error("{}/pattern: {}", path, rule.error().message);
            return rules_.add("pattern", "\"\\\"\" " + rule.value() + " \"\\\"\"");
        }
        if (format) {
            constexpr std::string_view kFormats[] = {"date", "time", "date-time", "uuid"};
            if (!schema["format"].is_string() ||
                !has(kFormats, schema["format"].get_ref<const std::string&>()))
                return error("{}/format: only date, time, date-time and uuid are supported, not {}", path,
                             printable(schema["format"].dump()));
            // Names of rules hold letters only where they are put into others.
            const std::string name = schema["format"];
            const std::string rule =
                name == "date-time" ? rules_.use("date") + " \"T\" " + rules_.use("time") : rules_.use(name);
            return rules_.add(name + "-string", "\"\\\"\" " + rule + " \"\\\"\"");
        }
        if (!length.given) return rules_.use("string");
        return rules_.add(
            "string", "\"\\\"\" " + repeated(rules_.use("char"), length.least, length.most) + " \"\\\"\"");
    }

    struct Bound {
        std::optional<int64_t> value;
        bool exclusive = false;
    };
    // The narrower of the inclusive and the exclusive bound; `sign` 1: the lower ones.
    Result<Bound> bound(const Json& schema, const char* inclusive, const char* exclusive, int sign,
                        bool whole, const std::string& path) const {
        Bound out;
        for (const char* key : {inclusive, exclusive}) {
            if (!schema.contains(key)) continue;
            const Json& value = schema[key];
            const double real = value.is_number() ? value.get<double>() : NAN;
            if (!(std::abs(real) < 9e15))
                return error("{}/{}: takes a number between -9e15 and 9e15, not {}", path, key,
                             printable(value.dump()));
            double next = real;
            bool is_exclusive = key == exclusive;
            if (whole) {
                next = sign > 0 ? std::ceil(real) : std::floor(real);
                if (is_exclusive && next == real) next += sign;
                is_exclusive = false;
            } else if (real != std::floor(real)) {
                return error("{}/{}: only whole bounds of numbers are supported, not {}", path, key,
                             value.dump());
            }
            const int64_t now = int64_t(next);
            if (!out.value || (sign > 0 ? now > *out.value : now < *out.value) ||
                (now == *out.value && is_exclusive))
                out = {now, is_exclusive};
        }
        return out;
    }

    Text number(const std::string& type, const Json& schema, const std::string& path) {
        const bool whole = type == "integer";
        const Bound low = RL_TRY(bound(schema, "minimum", "exclusiveMinimum", 1, whole, path));
        const Bound high = RL_TRY(bound(schema, "maximum", "exclusiveMaximum", -1, whole, path));
        if (!low.value && !high.value) return rules_.use(type);
        const bool empty =
            low.value && high.value &&
            (*low.value > *high.value || (*low.value == *high.value && (low.exclusive || high.exclusive)));
        if (empty) return error("{}: no {} lies between the bounds", path, type);
        if (whole) return rules_.add("integer", integer_range(low.value, high.value));
        std::string out;
        const auto negated = [](const Bound& b) { return b.value ? Bound{-*b.value, b.exclusive} : b; };
        const auto from_zero = [](const Bound& b) { return b.value && *b.value >= 0 ? b : Bound{0, false}; };
        if (!low.value || *low.value < 0)
            out = "\"-\" (" + magnitudes(from_zero(negated(high)), negated(low)) + ")";
        if (!high.value || *high.value >= 0) {
            const std::string positive = magnitudes(from_zero(low), high);
            if (!positive.empty()) out += (out.empty() ? "" : " | ") + positive;
        }
        return rules_.add("number", out);
    }

    // Numbers from low >= 0 on, up to high. Their whole part lies between the bounds, or is one of them.
    static std::string magnitudes(const Bound& low, const Bound& high) {
        const int64_t from = *low.value + (low.exclusive ? 1 : 0);
        std::string out;
        const auto add = [&](const std::string& part) { out += (out.empty() ? "" : " | ") + part; };
        if (!high.value || from < *high.value) {
            const auto to = high.value ? std::optional(*high.value - 1) : std::nullopt;
            add("(" + integer_range(from, to) + ") (\".\" [0-9]{1,16})?");
        }
        if (low.exclusive && (!high.value || *low.value < *high.value))
            add(gbnf_quoted(fmt::to_string(*low.value)) + " \".\" [0-9]{0,15} [1-9]");
        if (high.value && !high.exclusive)
            add(gbnf_quoted(fmt::to_string(*high.value)) + " (\".\" \"0\"{1,16})?");
        return out;
    }

    Text array(const Json& schema, const std::string& path, size_t depth) {
        const Limits size = RL_TRY(limits(schema, "minItems", "maxItems", path));
        const bool old = schema.contains("items") && schema["items"].is_array();
        const char* const prefix_key = old ? "items" : "prefixItems";
        const char* const rest_key = old ? "additionalItems" : "items";
        const std::string ws = rules_.use("ws");
        const std::string comma = " " + ws + " \",\" " + ws + " ";
        std::string out;
        uint64_t fixed = 0;
        if (schema.contains(prefix_key)) {
            const Json& prefix = schema[prefix_key];
            if (!prefix.is_array()) return error("{}/{}: takes a list of schemas", path, prefix_key);
            for (; fixed < prefix.size(); ++fixed)
                out += (fixed > 0 ? comma : "") +
                       named(RL_TRY(visit(prefix[fixed], fmt::format("{}/{}/{}", path, prefix_key, fixed),
                                          depth + 1)));
        }
        if (size.most && *size.most < fixed)
            return error("{}/maxItems: {} is fewer than the {} of {}", path, *size.most, fixed, prefix_key);
        const bool tuple = fixed > 0 && !schema.contains(rest_key);
        const bool closed = tuple || (schema.contains(rest_key) && schema[rest_key] == false) ||
                            (size.most && *size.most == fixed);
        if (closed && size.least > fixed)
            return error("{}/minItems: {} is more than the {} items that there can be", path, size.least,
                         fixed);
        std::string inner = out;
        bool optional = false;
        if (!closed) {
            std::string item = rules_.use("value");
            if (schema.contains(rest_key))
                item = named(RL_TRY(visit(schema[rest_key], member_pointer(path, rest_key), depth + 1)));
            const uint64_t first = fixed > 0 ? 0 : 1;  // the one without a comma before it
            optional = first == 1 && size.least == 0;
            const uint64_t taken = fixed + first;
            const auto most = size.most ? std::optional(*size.most - taken) : std::nullopt;
            inner += (first == 1 ? item : "") + " " +
                     repeated("(" + comma + item + ")", size.least > taken ? size.least - taken : 0, most);
        }
        if (inner.empty()) return rules_.add("array", "\"[\" " + ws + " \"]\"");
        inner += " " + ws;
        return rules_.add("array", "\"[\" " + ws + " " + (optional ? "(" + inner + ")?" : inner) + " \"]\"");
    }

    // An expression as something that stands in a sequence.
    std::string named(const std::string& text) {
        return text.find_first_of(" |") == std::string::npos ? text : "(" + text + ")";
    }

    // The keys that are none of `keys`: a trie, left by a character that none of them has there.
    std::string other_key(const std::vector<std::u32string>& keys, size_t depth) {
        std::map<char32_t, std::vector<std::u32string>> children;
        bool ends = false;
        for (const std::u32string& key : keys) {
            if (key.size() == depth) ends = true;
            if (key.size() > depth) children[key[depth]].push_back(key);
        }
        std::string out, excluded;
        for (const auto& [code, below] : children) {
            // Such a character is written as an escape, which no other key begins with.
            if (code < 0x20 || code == '"' || code == '\\' || code == 0x7F) continue;
            std::string text;
            append_utf8(text, code);
            out += gbnf_quoted(text) + " " + other_key(below, depth + 1) + " | ";
            excluded += fmt::format("\\U{:08X}", uint32_t(code));
        }
        out += "[^\"\\\\\\x7F\\x00-\\x1F" + excluded + "] " + rules_.use("char") + "*";
        if (!ends) out += " | \"\"";
        return rules_.add("key", out);
    }

    struct Property {
        std::string text;  // key, colon and value
        bool required;
    };

    Result<std::vector<Property>> properties(const Json& schema, std::vector<std::u32string>& keys,
                                             const std::string& path, size_t depth) {
        const Json none = Json::object(), open = true;
        const Json& listed = schema.contains("properties") ? schema["properties"] : none;
        if (!listed.is_object()) return error("{}/properties: takes an object", path);
        std::vector<std::string> required;
        if (schema.contains("required")) {
            const Json& names = schema["required"];
            const bool texts =
                names.is_array() &&
                std::all_of(names.begin(), names.end(), [](const Json& name) { return name.is_string(); });
            if (!texts) return error("{}/required: takes a list of texts", path);
            for (const Json& name : names) required.push_back(name);
        }
        std::vector<Property> out;
        const auto add = [&](const std::string& key, const Json& value, const std::string& at) -> Status {
            if (key.size() > kMostKey) return error("{}: a key of more than {} bytes", path, kMostKey);
            const std::string ws = rules_.use("ws");
            const std::string rule = named(RL_TRY(visit(value, at, depth + 1)));
            out.push_back({literal(key) + " " + ws + " \":\" " + ws + " " + rule, has(required, key)});
            keys.emplace_back();
            for (size_t i = 0; i < key.size();) {
                const Utf8Step step = utf8_step(key, i);
                keys.back() += step.code;
                i += step.bytes;
            }
            return {};
        };
        for (const auto& [key, value] : listed.items())
            RL_TRY(add(key, value, member_pointer(member_pointer(path, "properties"), printable(key))));
        const bool closed =
            schema.contains("additionalProperties") && schema["additionalProperties"] == false;
        const Json& others = schema.contains("additionalProperties") ? schema["additionalProperties"] : open;
        std::set<std::string> seen;
        for (const std::string& name : required) {
            if (listed.contains(name) || !seen.insert(name).second) continue;
            if (closed) return error("{}/required: {} is none of the properties", path, printable(name));
            RL_TRY(add(name, others, member_pointer(path, "additionalProperties")));
        }
        return out;
    }

    Text object(const Json& schema, const std::string& path, size_t depth) {
        std::vector<std::u32string> keys;
        const std::vector<Property> list = RL_TRY(properties(schema, keys, path, depth));
        const bool says = schema.contains("additionalProperties");
        if (list.empty() && (!says || schema["additionalProperties"] == true)) return rules_.use("object");
        const std::string ws = rules_.use("ws");
        const std::string comma = ws + " \",\" " + ws + " ";
        // What may follow the properties so far, and what may begin the object; from the last one on.
        std::string follow = "\"\"", begin = "\"\"";
        if (says && schema["additionalProperties"] != false) {
            const Json& others = schema["additionalProperties"];
            const std::string value =
                named(RL_TRY(visit(others, member_pointer(path, "additionalProperties"), depth + 1)));
            const std::string key =
                list.empty() ? rules_.use("string") : "\"\\\"\" " + other_key(keys, 0) + " \"\\\"\"";
            const std::string pair = rules_.add("pair", key + " " + ws + " \":\" " + ws + " " + value);
            follow = rules_.add("more", "(" + comma + pair + ")*");
            begin = rules_.add("first", "(" + pair + " " + follow + " " + ws + ")?");
        }
        for (size_t i = list.size(); i-- > 0;) {
            const Property& property = list[i];
            const std::string pair = rules_.add("pair", property.text);
            const std::string starts = pair + " " + follow + " " + ws;
            const std::string goes_on = comma + pair + " " + follow;
            begin = rules_.add("first", property.required ? starts : starts + " | " + begin);
            follow = rules_.add("more", property.required ? goes_on : goes_on + " | " + follow);
        }
        return rules_.add("object", "\"{\" " + ws + " " + begin + " \"}\"");
    }

    const Json root_;
    std::vector<std::string>* const notes_;  // may be null
    JsonRules rules_;
    size_t visits_ = 0;
    size_t compared_ = 0;                      // visits to see whether branches of oneOf overlap
    std::map<std::string, std::string> refs_;  // rules by reference
    std::set<const Json*> merging_;            // references that part() is inside of
};

}  // namespace

Result<std::string> grammar_of_schema(std::string_view schema, std::vector<std::string>* notes) {
    return Converter(RL_TRY(parse_schema(schema)), notes).run();
}

}  // namespace redline
