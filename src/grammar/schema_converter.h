// Converts a JSON schema to a grammar: one visit for each schema, split by the kinds of its keywords.
#pragma once

#include "grammar/grammar.h"
#include "grammar/json_schema.h"
#include "grammar/language.h"
#include "grammar/number_rules.h"
#include "grammar/schema_keywords.h"

#include <set>

namespace redline {

class SchemaConverter {
public:
    // The schema must have its references resolved, and must outlive this.
    SchemaConverter(const Json& schema, SchemaOptions options) : root_(schema), options_(options) {}

    Result<std::string> run();

private:
    // The body of a rule, or the name of a rule.
    using Text = Result<std::string>;

    struct Limits {
        uint64_t least = 0;
        std::optional<uint64_t> most;
        bool given = false;
    };

    Text visit(const Json& schema, const std::string& path, size_t depth);
    Status check_size(const std::string& path, size_t depth);
    Status check_crowd(const std::string& text) const;
    Status check_keywords(const Json& schema, const std::string& path);
    // Notes, once per place, that a keyword is not enforced; an error in strict mode.
    Status not_held(const std::string& pointer, std::string_view reason = "");
    void note(const std::string& text);
    // The error of a schema that no value satisfies.
    template <typename... Args>
    Error nothing(fmt::format_string<Args...> format, Args&&... args) {
        is_nothing_ = true;
        return error(format, std::forward<Args>(args)...);
    }
    Text nullable(const Json& schema, const std::string& path, size_t depth);
    Result<const Json*> target(const Json& ref, const std::string& path) const;
    Text reference(const Json& schema, const std::string& path, size_t depth);
    Result<Json> part(const Json& schema, const std::string& path, size_t depth);
    Text all_of(const Json& schema, const std::string& path, size_t depth);
    Text any_of(const Json& schema, const std::string& key, const std::string& path, size_t depth);
    Result<Json> with_discriminator(const Json& schema, const Json& branch, const std::string& path,
                                    size_t depth);
    Status note_overlap(const std::vector<Json>& branches, const std::string& path, size_t depth);
    Result<std::vector<std::string>> types(const Json& schema, const std::string& path) const;
    Text typed(const Json& schema, const std::string& path, size_t depth);
    Text of_type(const std::string& type, const Json& schema, const std::string& path, size_t depth);
    Result<std::optional<uint64_t>> count(const Json& schema, const char* key, const std::string& path) const;
    Result<Limits> limits(const Json& schema, const char* least, const char* most, const std::string& path);
    // Parenthesises an expression where it must stand in a sequence.
    static std::string grouped(const std::string& text) {
        return text.find_first_of(" |") == std::string::npos ? text : "(" + text + ")";
    }

    // schema_not.cpp: expresses `not` by other keywords, as far as possible.
    Result<Json> without_not(const Json& schema, const std::string& path, size_t depth);

    // schema_values.cpp
    Text values(const Json& schema, const std::string& path, size_t depth);
    Result<std::vector<Json>> fitting(const std::vector<Json>& values, const Json& schema,
                                      const std::string& path, size_t depth);
    Result<std::optional<Grammar>> grammar_of_type(const std::string& type, const Json& schema,
                                                   const std::string& path, size_t depth);
    // The values that a schema lists, if it has no other constraint; follows references.
    std::optional<std::vector<Json>> listed_values(const Json& schema, size_t depth = 0) const;
    std::string one_of(const std::vector<Json>& values);

    // schema_string.cpp: a condition with the pointer to its keyword.
    struct Asked {
        Condition condition;
        std::string pointer;  // to the keyword with the condition
    };
    Text string(const Json& schema, const std::string& path);
    Result<std::vector<Asked>> asked(const Json& schema, const std::string& path);
    Status ask_pattern(std::vector<Asked>& list, const Json& pattern, const std::string& pointer,
                       bool negated = false);
    Status ask_format(std::vector<Asked>& list, const Json& name, const std::string& pointer);
    // The strings, with quotes, that satisfy all conditions.
    Text string_of(std::vector<Asked> all, Limits length, const std::string& path);
    Result<std::optional<Dfa>> common_strings(std::vector<Asked>& all);
    Text strings_of_dfa(const Dfa& dfa, Limits length, const std::string& path);

    // schema_number.cpp
    Text number(const std::string& type, const Json& schema, const std::string& path);
    Result<NumberRange> range(const Json& schema, const std::string& path);
    Status narrow(NumberRange& range, const Json& schema, const char* key, const std::string& path);

    // schema_array.cpp
    Text array(const Json& schema, const std::string& path, size_t depth);
    Result<std::optional<std::string>> unique_items(const Json& schema, const Limits& size,
                                                    const std::string& path);
    std::string subsets(const std::vector<Json>& values, const Limits& size);

    // schema_object.cpp
    struct Property {
        std::string key;
        std::string text;  // key, colon and value; empty: it is never written
        bool required = false;
    };
    Text object(const Json& schema, const std::string& path, size_t depth);
    struct KeyRules {
        std::vector<std::pair<Dfa, Json>> patterns;  // from patternProperties, each with its schema
        std::optional<Dfa> name;                     // from propertyNames, where there is one
        Limits length;
    };
    Result<KeyRules> key_rules(const Json& schema, const std::string& path);
    Result<Json> key_schema(const Json& schema, const std::string& path, size_t depth);
    Result<std::vector<Json>> listed_keys(const Json& names, const std::string& path, size_t depth);
    Result<Json> with_named_keys(Json schema, const std::string& path, size_t depth);
    Result<std::vector<Property>> properties(const Json& schema, const std::string& path, size_t depth);
    Json property_schema(const Json& schema, const KeyRules& rules, const std::string& key) const;
    // One rule for key, colon and value of all unlisted properties; empty: there are none.
    Text other_pairs(const Json& schema, const std::vector<Property>& listed, const std::string& path,
                     size_t depth);
    Text pairs_by_pattern(const Json& schema, const std::vector<Property>& listed, const std::string& path,
                          size_t depth);
    std::string other_key(const std::vector<std::u32string>& keys, size_t depth);
    Text members(const std::vector<Property>& list, const std::string& other, const Limits& size,
                 const std::string& path);

    const Json& root_;
    const SchemaOptions options_;
    JsonRules rules_;
    size_t visits_ = 0;
    size_t branches_ = 0;                        // of all anyOf and oneOf
    std::map<std::string, std::string> unions_;  // pointers of anyOf and oneOf, by their rules
    size_t compared_ = 0;                        // visits that compare branches of oneOf
    bool is_nothing_ = false;                    // the last error is that of a schema that no value satisfies
    std::map<std::string, Text> refs_;           // rules by reference
    std::set<std::string> empty_refs_;           // those of refs_ that no value satisfies
    std::map<std::string, std::string> strings_;  // rules by the conditions on a string
    bool comparing_ = false;                      // the current visits only compare branches of oneOf
    std::set<const Json*> merging_;               // references that part() is following
    std::set<std::string> noted_;
};

// The literal of a value, where only this value is allowed.
std::string json_literal(const Json& value);
// The keywords that a grammar enforces, except `but`.
Json held_keywords(const Json& schema, std::string_view but = "");
bool allows_nothing(const Json& schema);

}  // namespace redline
