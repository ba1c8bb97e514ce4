// JSON schemas whose keywords meet: several that exclude, parts of allOf, names of keys, and what takes much
// work.
#include "grammar/json_schema.h"
#include "json/json.h"
#include "support/grammars.h"

#include <ctime>

using namespace redline;
using namespace redline::test;

TEST_CASE("schema: what several nots exclude is excluded together") {
    for (const char* schema :
         {R"({"type":"string","not":{"anyOf":[{"const":"a"},{"const":"b"}]}})",
          R"({"type":"string","allOf":[{"not":{"const":"a"}},{"not":{"const":"b"}}]})",
          R"({"type":"string","not":{"anyOf":[{"pattern":"^a$"},{"pattern":"^b$"}]}})"}) {
        CAPTURE(schema);
        const Grammar grammar = grammar_for(schema);
        CHECK(verdict(grammar, "\"c\"") == Verdict::complete);
        for (const char* text : {"\"a\"", "\"b\""}) CHECK(verdict(grammar, text) == Verdict::refused);
    }
}

TEST_CASE("schema: propertyNames is held in each form, or noted") {
    const auto takes = [](const std::string& schema, std::string_view text) {
        return verdict(grammar_for(schema), text) == Verdict::complete;
    };
    const std::string secret = R"({"propertyNames":{"not":{"const":"secret"}}})";
    CHECK(takes(secret, R"({"a": 1})"));
    CHECK_FALSE(takes(secret, R"({"secret": 1})"));
    const std::string patterns = R"(,"patternProperties":{"^a":{"type":"integer"}}})";
    const std::string listed = R"({"propertyNames":{"enum":["ab","b"]})" + patterns;
    CHECK(takes(listed, R"({"ab": 1, "b": "x"})"));
    CHECK_FALSE(takes(listed, R"({"ab": "x"})"));
    CHECK_FALSE(takes(listed, R"({"ac": 1})"));
    const std::string none = R"({"propertyNames":false)" + patterns;
    CHECK(takes(none, "{}"));
    CHECK_FALSE(takes(none, R"({"ab": 1})"));
    const std::string filtered = R"({"propertyNames":{"enum":["a","bb"],"minLength":2}})";
    CHECK(takes(filtered, R"({"bb": 1})"));
    CHECK_FALSE(takes(filtered, R"({"a": 1})"));
    std::vector<std::string> said;
    CHECK(grammar_of_schema(R"({"propertyNames":{"anyOf":[{"pattern":"^a"},{"pattern":"^b"}]}})",
                            {.notes = &said})
              .ok());
    CHECK(said ==
          std::vector<std::string>{"#/propertyNames/anyOf is not enforced: it is not supported for keys"});
}

TEST_CASE("schema: one that no value completes is refused; a property that never ends is left out") {
    const std::string node = R"("$defs":{"n":{"type":"object","properties":{"n":{"$ref":"#/$defs/n"}},)"
                             R"("required":["n"]}})";
    const Result<std::string> endless = grammar_of_schema(R"({"$ref":"#/$defs/n",)" + node + "}");
    REQUIRE(endless.ok());
    CHECK_FALSE(Grammar::parse(endless.value()).ok());
    const Grammar optional =
        grammar_for(R"({"properties":{"a":{"$ref":"#/$defs/n"},"b":{"type":"null"}},)" + node + "}");
    CHECK(verdict(optional, R"({"b": null})") == Verdict::complete);
    CHECK(verdict(optional, R"({"a)") == Verdict::refused);
}

TEST_CASE("schema: parts of allOf that speak of the same items or properties are joined or refused") {
    const auto together = [](const std::string& a, const std::string& b) {
        const std::string error = schema_error("{\"allOf\":[" + a + "," + b + "]}");
        CHECK(schema_error("{\"allOf\":[" + b + "," + a + "]}") == error);
        return error;
    };
    const std::string rest = " in the parts of allOf, or beside $ref or anyOf, are not supported";
    CHECK(together(R"({"prefixItems":[{}]})", R"({"items":{"type":"null"}})") == "#: different items" + rest);
    CHECK(together(R"({"patternProperties":{"^a":{}}})", R"({"additionalProperties":false})") ==
          "#: different additionalProperties" + rest);
    CHECK(together(R"({"patternProperties":{"^a":{}}})", R"({"additionalProperties":true})") == "accepted");
    CHECK(together(R"({"prefixItems":[{}]})", R"({"minItems":1})") == "accepted");
}

TEST_CASE("schema: what is not evaluated has its schema, and formats of numbers are held together") {
    const auto takes = [](std::string_view schema, std::string_view text) {
        return verdict(grammar_for(schema), text) == Verdict::complete;
    };
    constexpr std::string_view kProperties =
        R"({"properties":{"a":{}},"unevaluatedProperties":{"type":"integer"}})";
    CHECK(takes(kProperties, R"({"a": "x", "b": 1})"));
    CHECK_FALSE(takes(kProperties, R"({"b": "x"})"));
    constexpr std::string_view kItems = R"({"prefixItems":[{}],"unevaluatedItems":{"type":"integer"}})";
    CHECK(takes(kItems, R"(["x", 1])"));
    CHECK_FALSE(takes(kItems, R"(["x", "y"])"));
    constexpr std::string_view kNumber = R"({"type":"number","format":"int32"})";
    CHECK(takes(kNumber, "2147483647"));
    CHECK_FALSE(takes(kNumber, "2147483648"));
    CHECK_FALSE(takes(kNumber, "1.5"));
    constexpr std::string_view kBoth =
        R"({"type":"integer","allOf":[{"format":"int32"},{"format":"uint64"}]})";
    CHECK(takes(kBoth, "2147483647"));
    CHECK_FALSE(takes(kBoth, "2147483648"));
    CHECK_FALSE(takes(kBoth, "-1"));
}

TEST_CASE("schema: a part of allOf knows nothing of what the parts beside it list") {
    const auto takes = [](std::string_view schema, std::string_view text) {
        return verdict(grammar_for(schema), text) == Verdict::complete;
    };
    const std::string closed = R"({"properties":{"a":{}},"unevaluatedProperties":false})";
    const std::string b = R"({"properties":{"b":{}}})";
    for (const std::string& schema :
         {R"({"allOf":[)" + closed + "," + b + "]}", R"({"allOf":[)" + b + "," + closed + "]}",
          R"({"$ref":"#/$defs/c","properties":{"b":{}},"$defs":{"c":)" + closed + "}}",
          R"({"allOf":[{"$ref":"#/$defs/c"},)" + b + R"(],"$defs":{"c":)" + closed + "}}",
          R"({"properties":{"b":{}},"anyOf":[)" + closed + "]}"}) {
        CAPTURE(schema);
        CHECK(takes(schema, R"({"a": 1})"));
        CHECK_FALSE(takes(schema, R"({"b": 1})"));
        CHECK_FALSE(takes(schema, R"({"a": 1, "b": 1})"));
    }
    // It knows what its parts and its branches list.
    for (const std::string& schema :
         {R"({"unevaluatedProperties":false,"properties":{"a":{}},"allOf":[)" + b + "]}",
          R"({"unevaluatedProperties":false,"$ref":"#/$defs/b","properties":{"a":{}},"$defs":{"b":)" + b +
              "}}"}) {
        CAPTURE(schema);
        CHECK(takes(schema, R"({"a": 1})"));
        CHECK(takes(schema, R"({"b": 1})"));
        CHECK_FALSE(takes(schema, R"({"c": 1})"));
    }
    const std::string branched =
        R"({"allOf":[{"anyOf":[{"properties":{"a":{}}},{"properties":{"b":{}}}],"unevaluatedProperties":false},)"
        R"({"properties":{"c":{}}}]})";
    CHECK(takes(branched, R"({"a": 1})"));
    CHECK(takes(branched, R"({"b": 1})"));
    CHECK_FALSE(takes(branched, R"({"c": 1})"));
    const std::string open =
        R"({"allOf":[{"properties":{"a":{}},"unevaluatedProperties":{"type":"integer"}},)" + b + "]}";
    CHECK(takes(open, R"({"a": "x", "b": 1})"));
    CHECK_FALSE(takes(open, R"({"b": "x"})"));
    CHECK(schema_error(R"({"allOf":[{"unevaluatedItems":false},{"prefixItems":[{}]}]})") ==
          "#: different items in the parts of allOf, or beside $ref or anyOf, are not supported");
}

TEST_CASE("schema: a branch that allows nothing is skipped each time that it is referred to") {
    const std::string object =
        R"({"type":"object","anyOf":[{"properties":{"a":{"$ref":"#/$defs/none"}},"required":["a"]},)"
        R"({"properties":{"b":{"type":"null"}},"required":["b"]}]})";
    const Grammar grammar =
        grammar_for(R"({"properties":{"x":)" + object + R"(,"y":)" + object + R"(},"required":["x","y"],)" +
                    R"("$defs":{"none":{"type":"object","properties":{"c":{"$ref":"#/$defs/none"},)" +
                    R"("d":{"type":"integer","minimum":4,"maximum":3}},"required":["d"]}}})");
    CHECK(verdict(grammar, R"({"x": {"b": null}, "y": {"b": null}})") == Verdict::complete);
    CHECK(verdict(grammar, R"({"x": {"a)") == Verdict::refused);
}

TEST_CASE("schema: patterns and keys that take much work are read or noted in short time") {
    const auto quickly = [](const std::string& schema) {
        std::vector<std::string> said;
        const std::clock_t begin = std::clock();
        CHECK(grammar_of_schema(schema, {.notes = &said}).ok());
        CHECK(double(std::clock() - begin) / CLOCKS_PER_SEC < 8);
        return said;
    };
    quickly(R"({"pattern":"(?:(?:(?:){99999}){99999}){99999}"})");
    std::string conditions, keys;
    for (char c = 'a'; c <= 'z'; ++c) conditions += fmt::format("(?:(?=.*{})|)", c);
    CHECK(quickly(R"({"pattern":"^)" + conditions + "\"}") ==
          std::vector<std::string>{"#/pattern is not enforced: it takes too many states"});
    for (int i = 0; i < 200; ++i) keys += fmt::format("{}\"key{}\":{{}}", i > 0 ? "," : "", i);
    CHECK(quickly(R"({"properties":{)" + keys + R"(},"patternProperties":{"^x-":{"type":"null"}}})").empty());
}
