#include "grammar/json_schema.h"

#include "grammar/schema_converter.h"
#include "grammar/schema_disjoint.h"
#include "grammar/schema_keywords.h"
#include "grammar/schema_merge.h"
#include "grammar/schema_refs.h"
#include "grammar/schema_text.h"
#include "text/tokens/unicode.h"

#include <algorithm>
#include <cmath>

namespace redline {
namespace {

constexpr size_t kMostDepth = 100;
constexpr size_t kMostVisits = 100'000;          // of schemas; merged ones count again
constexpr size_t kMostCompared = 20'000;         // visits that compare branches of oneOf
constexpr size_t kMostBytes = size_t(16) << 20;  // of the grammar
constexpr size_t kMostAlike = 1000;  // branches without a shared beginning; a state has at most 4096 stacks
constexpr uint64_t kMostCount = 1'000'000;

}  // namespace

Json held_keywords(const Json& schema, std::string_view but) {
    Json held = Json::object();
    for (const auto& [name, value] : schema.items())
        if (name != but && is_held(name)) held[name] = value;
    return held;
}

std::string json_literal(const Json& value) {
    return gbnf_quoted(value.dump());
}

bool allows_nothing(const Json& schema) {
    if (!schema.is_object()) return schema == false;
    const Json forbidden = schema.value("not", Json(false));
    return forbidden == true || forbidden == Json::object();
}

Result<std::string> SchemaConverter::run() {
    rules_.reserve("root");
    refs_.emplace("#", std::string("root"));
    const bool empty = root_.is_object() && root_.empty();
    const std::string body = empty ? rules_.use("object") : RL_TRY(visit(root_, "#", 0));
    if (body == "root") return error("#: the schema is nothing but a reference to itself");
    rules_.define("root", body);
    RL_TRY(check_size("#", 0));
    std::string text = rules_.text();
    if (branches_ > kMostAlike) RL_TRY(check_crowd(text));
    return text;
}

// The grammar reports how many branches begin alike without sharing their beginnings.
Status SchemaConverter::check_crowd(const std::string& text) const {
    const Grammar grammar = RL_TRY(Grammar::parse(text));
    if (!grammar.crowd() || grammar.crowd()->alternatives <= kMostAlike) return {};
    const auto place = unions_.find(grammar.crowd()->rule);
    return error(
        "{}: {} of its schemas begin alike, and no property or value tells them apart; at most {} can be "
        "followed at once",
        place == unions_.end() ? "#" : place->second, grammar.crowd()->alternatives, kMostAlike);
}

Status SchemaConverter::check_size(const std::string& path, size_t depth) {
    if (++visits_ > kMostVisits)
        return error("{}: the schema is too large, or refers to itself too often", path);
    if (depth > kMostDepth) return error("{}: schemas are nested more than {} deep", path, kMostDepth);
    if (rules_.bytes() > kMostBytes)
        return error("{}: the schema is too large: its grammar has more than {} bytes", path, kMostBytes);
    return {};
}

SchemaConverter::Text SchemaConverter::visit(const Json& schema, const std::string& path, size_t depth) {
    RL_TRY(check_size(path, depth));
    if (schema == true) return rules_.use("value");
    if (schema == false) return nothing("{}: the schema false allows nothing", path);
    if (!schema.is_object())
        return error("{}: a schema is an object, true or false, not {}", path, schema.type_name());
    RL_TRY(check_keywords(schema, path));
    if (allows_nothing(schema)) {
        const Json why = schema.value(kWhyNothing, Json());
        return nothing("{}: {}", path,
                       why.is_string() ? why.get<std::string>() : "the schema allows nothing");
    }
    if (schema.value("nullable", Json(false)) == true) return nullable(schema, path, depth);
    if (schema.contains("$ref")) return reference(schema, path, depth);
    if (schema.contains("allOf")) return all_of(schema, path, depth);
    for (const char* key : {"anyOf", "oneOf"})
        if (schema.contains(key)) return any_of(schema, key, path, depth);
    if (schema.contains("not")) {
        const Json rest = RL_TRY(without_not(schema, path, depth));
        return visit(rest, path, depth + 1);
    }
    if (schema.contains("const") || schema.contains("enum")) return values(schema, path, depth);
    return typed(schema, path, depth);
}

Status SchemaConverter::check_keywords(const Json& schema, const std::string& path) {
    // Comparing branches visits them a second time.
    if (comparing_) return {};
    for (const auto& [key, value] : schema.items()) {
        if (is_held(key)) continue;
        const std::optional<std::string> reason = constrains(key);
        // An `if` without `then` and `else` has no effect.
        if (!reason || (key == "if" && !schema.contains("then") && !schema.contains("else"))) continue;
        RL_TRY(not_held(member_pointer(path, key), *reason));
    }
    return {};
}

Status SchemaConverter::not_held(const std::string& pointer, std::string_view reason) {
    const std::string text =
        printable(fmt::format("{} is not enforced{}{}", pointer, reason.empty() ? "" : ": ", reason));
    if (options_.strict) return Error{text};
    note(text);
    return {};
}

void SchemaConverter::note(const std::string& text) {
    if (options_.notes && noted_.insert(text).second) options_.notes->push_back(text);
}

SchemaConverter::Text SchemaConverter::nullable(const Json& schema, const std::string& path, size_t depth) {
    Json rest = schema;
    rest.erase("nullable");
    const std::string text = RL_TRY(visit(rest, path, depth + 1));
    return rules_.add("nullable", text + " | " + rules_.use("null"));
}

Result<const Json*> SchemaConverter::target(const Json& ref, const std::string& path) const {
    if (!ref.is_string()) return error("{}/$ref: takes a text, not {}", path, ref.type_name());
    const std::string& text = ref.get_ref<const std::string&>();
    if (!text.starts_with("#"))
        return error("{}/$ref: only references into the same schema (#/...) are supported, not {}", path,
                     printable(text));
    try {
        const nlohmann::json_pointer<std::string> pointer(text.substr(1));
        if (root_.contains(pointer)) return &root_.at(pointer);
    } catch (const Json::exception&) {
        // reported below
    }
    return error("{}/$ref: nothing is at {}", path, printable(text));
}

SchemaConverter::Text SchemaConverter::reference(const Json& schema, const std::string& path, size_t depth) {
    const Json* found = RL_TRY(target(schema["$ref"], path));
    const Json rest = held_keywords(schema, "$ref");
    const std::string name = schema["$ref"];
    if (!rest.empty()) {
        if (!found->is_object()) return error("{}: keywords beside this $ref are not supported", path);
        const bool closed = found->contains("unevaluatedProperties") || found->contains("unevaluatedItems");
        const Json whole = closed ? RL_TRY(part(*found, name, depth + 1)) : *found;
        return visit(RL_TRY(merge_schemas(whole, rest, path)), path, depth + 1);
    }
    if (const auto known = refs_.find(name); known != refs_.end()) {
        is_nothing_ = is_nothing_ || empty_refs_.count(name) > 0;
        return known->second;
    }
    const std::string rule = rules_.reserve("ref-" + name.substr(name.rfind('/') + 1));
    refs_.emplace(name, rule);
    Text body = visit(*found, name, depth + 1);
    if (body && body.value() == rule)
        body = error("{}: the schema is nothing but a reference to itself", name);
    if (!body) {
        refs_.insert_or_assign(name, body.error());
        if (is_nothing_) empty_refs_.insert(name);
        // Rules made meanwhile may refer to it: an endless rule matches no text.
        rules_.define(rule, "\"x\" " + rule);
        return body;
    }
    rules_.define(rule, body.value());
    return rule;
}

// A part of allOf with its reference replaced by the target, and only the keywords that are enforced.
Result<Json> SchemaConverter::part(const Json& schema, const std::string& path, size_t depth) {
    RL_TRY(check_size(path, depth));
    if (schema == true) return Json::object();
    if (schema == false) return Json{{"not", Json::object()}};
    if (!schema.is_object()) return error("{}: a part of allOf is an object, true or false", path);
    RL_TRY(check_keywords(schema, path));
    Json out = held_keywords(schema);
    if (schema.contains("$ref")) {
        const Json* found = RL_TRY(target(schema["$ref"], path));
        if (!merging_.insert(found).second)
            return error("{}/$ref: the parts of allOf refer to themselves without end", path);
        Result<Json> whole = part(*found, schema["$ref"], depth + 1);
        merging_.erase(found);
        const Json resolved = RL_TRY(std::move(whole));
        out = RL_TRY(merge_schemas(held_keywords(schema, "$ref"), resolved, path));
    }
    if (!out.contains("allOf")) return close_unevaluated(std::move(out));
    const Json parts = out["allOf"];
    out.erase("allOf");
    if (!parts.is_array()) return error("{}/allOf: takes a list of schemas", path);
    for (size_t i = 0; i < parts.size(); ++i) {
        const Json next = RL_TRY(part(parts[i], fmt::format("{}/allOf/{}", path, i), depth + 1));
        out = RL_TRY(merge_schemas(std::move(out), next, path));
    }
    return close_unevaluated(std::move(out));
}

SchemaConverter::Text SchemaConverter::all_of(const Json& schema, const std::string& path, size_t depth) {
    return visit(RL_TRY(part(schema, path, depth)), path, depth + 1);
}

// Values that branches list are merged into one list, whose beginnings are shared.
SchemaConverter::Text SchemaConverter::any_of(const Json& schema, const std::string& key,
                                              const std::string& path, size_t depth) {
    const Json& list = schema[key];
    if (!list.is_array() || list.empty())
        return error("{}/{}: takes a list of schemas that is not empty", path, key);
    const Json rest = held_keywords(schema, key);
    std::vector<Json> branches;
    std::vector<std::pair<Json, std::string>> open;  // branches with their pointers
    Json listed = Json::array();
    for (size_t i = 0; i < list.size(); ++i) {
        const Json branch = RL_TRY(with_discriminator(schema, list[i], path, depth));
        branches.push_back(rest.empty() ? branch : Json{{"allOf", Json::array({rest, branch})}});
        if (const std::optional<std::vector<Json>> values = listed_values(branch))
            for (const Json& value : *values) listed.push_back(value);
        else if (!allows_nothing(branch))
            open.emplace_back(branch, fmt::format("{}/{}/{}", path, key, i));
    }
    if (!listed.empty()) open.emplace_back(Json{{"enum", listed}}, member_pointer(path, key));
    if (key == "oneOf") RL_TRY(note_overlap(branches, member_pointer(path, key), depth));
    branches_ += open.size();
    std::string out;
    Error last{fmt::format("{}/{}: no branch allows anything", path, key)};
    for (const auto& [branch, at] : open) {
        is_nothing_ = false;
        Json whole = branch;
        if (!rest.empty()) {
            whole = RL_TRY(part(branch, at, depth + 1));
            whole = RL_TRY(merge_schemas(rest, whole, at));
        }
        const Text text = visit(whole, at, depth + 1);
        if (!text) last = text.error();
        // Keywords beside the branches may exclude some of them.
        if (!text && (rest.empty() || !std::exchange(is_nothing_, false))) return text;
        if (text) out += (out.empty() ? "" : " | ") + text.value();
    }
    if (!out.empty()) {
        const std::string rule = rules_.add("any", out);
        unions_.try_emplace(rule, member_pointer(path, key));
        return rule;
    }
    is_nothing_ = true;
    return last;
}

// OpenAPI: the property that names a branch has one of the names that map to it; the default is its schema's
// name.
Result<Json> SchemaConverter::with_discriminator(const Json& schema, const Json& branch,
                                                 const std::string& path, size_t depth) {
    const Json described = schema.value("discriminator", Json());
    const Json name = described.is_object() ? described.value("propertyName", Json()) : Json();
    if (!name.is_string() || !branch.is_object() || !branch.contains("$ref") || !branch["$ref"].is_string())
        return branch;
    const std::string property = name, ref = branch["$ref"];
    const Json whole = RL_TRY(part(branch, path, depth + 1));
    const Json properties = whole.value("properties", Json::object());
    const Json known = properties.is_object() ? properties.value(property, Json()) : Json();
    if (whole.contains("anyOf") || whole.contains("oneOf") || listed_values(known)) return branch;
    const std::string short_name = ref.substr(ref.rfind('/') + 1);
    Json names = Json::array();
    const Json mapping = described.value("mapping", Json::object());
    for (const auto& [value, mapped] : mapping.items())
        if (mapped == ref || mapped == short_name) names.push_back(value);
    if (names.empty()) names.push_back(short_name);
    const Json named{{"properties", {{property, {{"enum", names}}}}}, {"required", {property}}};
    return Json{{"allOf", Json::array({branch, named})}};
}

Status SchemaConverter::note_overlap(const std::vector<Json>& branches, const std::string& path,
                                     size_t depth) {
    // All comparisons of a schema share one limit of visits; beyond it branches are assumed to overlap.
    const size_t before = std::exchange(visits_, kMostVisits - kMostCompared + compared_);
    comparing_ = true;
    const ResolveSchema resolve = [&](const Json& schema) -> std::optional<Json> {
        Result<Json> whole = part(schema, path, depth);
        return whole ? std::optional(std::move(whole).value()) : std::nullopt;
    };
    const auto pair = overlap(branches, resolve);
    compared_ = std::exchange(visits_, before) - (kMostVisits - kMostCompared);
    comparing_ = false;
    if (!pair) return {};
    const std::string text =
        fmt::format("{}: read as anyOf, for a value of branch {} may be one of branch {}, too", path,
                    pair->first, pair->second);
    if (options_.strict) return Error{text};
    note(text);
    return {};
}

Result<std::vector<std::string>> SchemaConverter::types(const Json& schema, const std::string& path) const {
    constexpr std::string_view kTypes[] = {"object",  "array",   "string", "number",
                                           "integer", "boolean", "null"};
    std::vector<std::string> out;
    if (!schema.contains("type")) return out;
    const Json& type = schema["type"];
    for (const Json& each : type.is_array() ? type : Json::array({type})) {
        const bool known =
            each.is_string() && std::find(std::begin(kTypes), std::end(kTypes),
                                          each.get_ref<const std::string&>()) != std::end(kTypes);
        if (!known)
            return error(
                "{}/type: takes object, array, string, number, integer, boolean, null or a list of them, "
                "not {}",
                path, printable(each.dump()));
        out.push_back(each);
    }
    if (out.empty()) return error("{}/type: the list is empty", path);
    return out;
}

// The types of a schema that names none: those that its keywords apply to.
static std::vector<std::string> implied_types(const Json& schema) {
    struct Family {
        const char* type;
        std::vector<const char*> keys;
    };
    const Family families[] = {
        {"object",
         {"properties", "required", "additionalProperties", "patternProperties", "propertyNames",
          "minProperties", "maxProperties", "unevaluatedProperties"}},
        {"array",
         {"items", "prefixItems", "additionalItems", "unevaluatedItems", "minItems", "maxItems",
          "uniqueItems"}},
        {"string", {"minLength", "maxLength", "pattern", "format", kNotTexts, kNotPatterns}},
        {"number", {"minimum", "maximum", "exclusiveMinimum", "exclusiveMaximum", "multipleOf"}}};
    std::vector<std::string> out;
    for (const Family& family : families)
        if (std::any_of(family.keys.begin(), family.keys.end(),
                        [&](const char* key) { return schema.contains(key); }))
            out.emplace_back(family.type);
    return out;
}

SchemaConverter::Text SchemaConverter::typed(const Json& schema, const std::string& path, size_t depth) {
    std::vector<std::string> wanted = RL_TRY(types(schema, path));
    if (wanted.empty()) wanted = implied_types(schema);
    if (wanted.empty()) return rules_.use("value");
    std::string out;
    for (const std::string& type : wanted)
        out += (out.empty() ? "" : " | ") + RL_TRY(of_type(type, schema, path, depth));
    return wanted.size() == 1 ? out : rules_.add("types", out);
}

SchemaConverter::Text SchemaConverter::of_type(const std::string& type, const Json& schema,
                                               const std::string& path, size_t depth) {
    if (type == "object") return object(schema, path, depth);
    if (type == "array") return array(schema, path, depth);
    if (type == "string") return string(schema, path);
    if (type == "integer" || type == "number") return number(type, schema, path);
    return rules_.use(type);
}

Result<std::optional<uint64_t>> SchemaConverter::count(const Json& schema, const char* key,
                                                       const std::string& path) const {
    if (!schema.contains(key)) return std::optional<uint64_t>();
    const Json& value = schema[key];
    const double number = value.is_number() ? value.get<double>() : -1;
    if (!(number >= 0) || number != std::floor(number))
        return error("{}/{}: takes a whole number from 0 on, not {}", path, key, printable(value.dump()));
    return std::optional(uint64_t(std::min(number, 1e18)));
}

Result<SchemaConverter::Limits> SchemaConverter::limits(const Json& schema, const char* least,
                                                        const char* most, const std::string& path) {
    const std::optional<uint64_t> low = RL_TRY(count(schema, least, path));
    std::optional<uint64_t> high = RL_TRY(count(schema, most, path));
    if (low && high && *low > *high)
        return nothing("{}: {} {} is more than {} {}", path, least, *low, most, *high);
    if (low && *low > kMostCount)
        return error("{}/{}: takes a whole number from 0 to {}, not {}", path, least, kMostCount, *low);
    // No text is as long as that.
    if (high && *high > kMostCount) high.reset();
    return Limits{low.value_or(0), high, low || high};
}

Result<std::string> grammar_of_schema(std::string_view schema, SchemaOptions options) {
    Json root = RL_TRY(parse_schema(schema));
    resolve_references(root);
    return SchemaConverter(root, options).run();
}

}  // namespace redline
