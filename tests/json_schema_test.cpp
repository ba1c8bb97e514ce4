// JSON schemas as grammars: which texts they allow, what is refused and how, and that all which they allow is
// JSON of that schema.
#include "grammar/json_schema.h"
#include "json/json.h"
#include "support/grammars.h"

#include <cmath>
#include <ctime>
#include <random>

using namespace redline;
using namespace redline::test;

namespace {

Grammar grammar_for(std::string_view schema) {
    const Result<std::string> text = grammar_of_schema(schema);
    REQUIRE_MESSAGE(text.ok(), (text.ok() ? "" : text.error().message), " in ", schema);
    return parsed(text.value());
}

std::string schema_error(std::string_view schema) {
    const Result<std::string> text = grammar_of_schema(schema);
    return text.ok() ? "accepted" : text.error().message;
}

struct Case {
    std::string_view schema;
    std::vector<std::string_view> good;
    std::vector<std::string_view> bad;
};

const Case kCases[] = {
    {"{}", {"{}", "{\"a\": [1, null]}"}, {"[]", "1"}},
    {"true", {"1", "\"a\"", "[]", "{}"}, {"", "x"}},
    {"{\"type\":\"integer\"}", {"0", "-5", "1234567890123456"}, {"01", "1.5", "12345678901234567"}},
    {"{\"type\":\"number\"}", {"0", "-1.5e-3", "2E10"}, {".5", "1.", "1e"}},
    {"{\"type\":[\"string\",\"null\"]}", {"\"\"", "null"}, {"1", "true"}},
    {"{\"type\":\"boolean\"}", {"true", "false"}, {"True", "null"}},
    {"{\"enum\":[1,\"a\\\"b\",null,{\"x\":[1]}]}",
     {"1", "\"a\\\"b\"", "null", "{\"x\":[1]}"},
     {"\"a\"", "2"}},
    {"{\"type\":\"string\",\"enum\":[1,\"a\"]}", {"\"a\""}, {"1"}},
    {"{\"const\":\"x\"}", {"\"x\""}, {"\"y\"", "x"}},
    {"{\"type\":\"string\",\"minLength\":2,\"maxLength\":3}",
     {"\"ab\"", "\"a\\n\\u00e9\"", "\"\\ud83e\\udd99é\"", "\"€🦙\""},
     {"\"a\"", "\"abcd\"", "\"a\n\"", "\"\\ud83ex\"", "\"\\udd99a\""}},
    {"{\"pattern\":\"^a[b-d\\\"]+(x|\\\\d{2})?$\"}",
     {"\"ab\"", "\"ac\\\"x\"", "\"ad42\""},
     {"\"a\"", "\"ab4\"", "\"bb\""}},
    {"{\"pattern\":\"b\"}", {"\"b\"", "\"abc\"", "\"\\n b\""}, {"\"ac\"", "\"\""}},
    {"{\"pattern\":\"^\\\\n\\\\\\\\.$\"}", {"\"\\n\\\\x\"", "\"\\n\\\\\\t\""}, {"\"\\n\\\\\\n\"", "\"nx\""}},
    {"{\"type\":\"string\",\"format\":\"date\"}",
     {"\"2024-02-28\"", "\"1999-12-31\""},
     {"\"2024-02-30\"", "\"2024-13-01\"", "\"2024-04-31\""}},
    {"{\"type\":\"string\",\"format\":\"date-time\"}",
     {"\"2024-01-01T23:59:59.123Z\"", "\"2024-01-01T00:00:00+01:00\""},
     {"\"2024-01-01\"", "\"2024-01-01T24:00:00Z\""}},
    {"{\"type\":\"string\",\"format\":\"uuid\"}",
     {"\"123e4567-e89b-12d3-a456-426614174000\""},
     {"\"123e4567\""}},
    {"{\"type\":\"array\",\"items\":{\"type\":\"integer\"},\"minItems\":1,\"maxItems\":3}",
     {"[1]", "[1, 2,3]"},
     {"[]", "[1,2,3,4]", "[1 2]", "[,1]"}},
    {"{\"type\":\"array\",\"maxItems\":0}", {"[]", "[ ]"}, {"[1]"}},
    {"{\"prefixItems\":[{\"type\":\"integer\"},{\"type\":\"null\"}]}", {"[1, null]"}, {"[1]", "[1,null,1]"}},
    {"{\"prefixItems\":[{\"const\":1}],\"items\":{\"const\":2},\"maxItems\":3}",
     {"[1]", "[1,2,2]"},
     {"[2]", "[1,2,2,2]"}},
    {"{\"properties\":{\"a\":{\"const\":1},\"b\":{\"const\":2},\"c\":{\"const\":3}},\"required\":[\"b\"]}",
     {"{\"b\":2}", "{\"a\":1, \"b\":2}", "{ \"b\":2,\"c\":3 }", "{\"a\":1,\"b\":2,\"c\":3}"},
     {"{}", "{\"b\":2,\"a\":1}", "{\"a\":1}", "{\"b\":2,}", "{,\"b\":2}", "{\"b\":2,\"d\":1}"}},
    {"{\"properties\":{\"ab\":{\"const\":1}},\"additionalProperties\":{\"const\":2}}",
     {"{}", "{\"ab\":1}", "{\"ab\":1,\"a\":2}", "{\"abc\":2,\"x\":2}", "{\"\":2}"},
     {"{\"ab\":2}", "{\"ab\":1,\"ab\":2}", "{\"\\u0061b\":2}", "{\"x\":1}"}},
    {"{\"type\":\"object\",\"additionalProperties\":false}", {"{}"}, {"{\"a\":1}"}},
    {"{\"anyOf\":[{\"type\":\"null\"},{\"type\":\"integer\",\"minimum\":5}]}", {"null", "5"}, {"4", "\"\""}},
    {"{\"allOf\":[{\"properties\":{\"a\":{\"const\":1}},\"required\":[\"a\"]},{\"$ref\":\"#/$defs/"
     "b\"}],\"$defs\":{\"b\":{\"properties\":{\"b\":{\"const\":2}}}}}",
     {"{\"a\":1}", "{\"a\":1,\"b\":2}"},
     {"{}", "{\"b\":2}"}},
    {"{\"type\":\"object\",\"properties\":{\"v\":{\"type\":\"integer\"},\"next\":{\"anyOf\":[{\"$ref\":\"#\"}"
     ",{\"type\":\"null\"}]}},\"required\":[\"v\",\"next\"]}",
     {"{\"v\":1,\"next\":null}", "{\"v\":1,\"next\":{\"v\":2,\"next\":null}}"},
     {"{\"v\":1}", "{\"v\":1,\"next\":{}}"}},
    {"{\"type\":\"integer\",\"exclusiveMinimum\":9,\"maximum\":12}", {"10", "11", "12"}, {"9", "13", "1"}},
    {"{\"type\":\"number\",\"minimum\":0,\"maximum\":1}", {"0", "0.25", "1", "1.00"}, {"1.01", "2", "-0.1"}},
    {"{\"type\":\"number\",\"exclusiveMinimum\":0}", {"0.01", "5"}, {"0", "-1"}},
};

// The values that the schemas of the last test allow, checked as the standard says.
bool valid(const Json& schema, const Json& value) {
    if (schema.contains("anyOf")) {
        for (const Json& one : schema["anyOf"])
            if (valid(one, value)) return true;
        return false;
    }
    if (schema.contains("enum"))
        return std::find(schema["enum"].begin(), schema["enum"].end(), value) != schema["enum"].end();
    const std::string type = schema["type"];
    if (type == "integer")
        return value.is_number_integer() && value >= schema.value("minimum", -1e18) &&
               value <= schema.value("maximum", 1e18);
    if (type == "number") return value.is_number() && std::isfinite(value.get<double>());
    if (value.type_name() != type) return false;
    if (type == "string") {
        const std::string text = value;
        const auto starts = [](char c) { return (uint8_t(c) & 0xC0) != 0x80; };
        const auto length = size_t(std::count_if(text.begin(), text.end(), starts));
        return length >= schema.value("minLength", size_t(0)) &&
               length <= schema.value("maxLength", size_t(1e6));
    }
    if (type == "array") {
        for (const Json& item : value)
            if (!valid(schema["items"], item)) return false;
        return value.size() >= schema.value("minItems", size_t(0)) &&
               value.size() <= schema.value("maxItems", size_t(1e6));
    }
    if (type == "object") {
        for (const auto& [key, item] : value.items())
            if (!schema["properties"].contains(key) || !valid(schema["properties"][key], item)) return false;
        for (const Json& name : schema.value("required", Json::array()))
            if (!value.contains(name.get<std::string>())) return false;
    }
    return true;
}

// A random text of a grammar; after some characters it takes the shortest way out that it meets.
std::string random_text(const Grammar& grammar, std::mt19937& random) {
    Automaton automaton(grammar);
    Automaton::State state = automaton.start();
    std::string text;
    while (text.size() < 5000 &&
           !(automaton.can_end(state) && (automaton.stacks(state).empty() || random() % 2))) {
        std::vector<uint8_t> bytes;
        for (int byte = 0; byte < 256; ++byte)
            if (automaton.step(state, uint8_t(byte)) != Automaton::kDead) bytes.push_back(uint8_t(byte));
        uint8_t byte = bytes[random() % bytes.size()];
        for (const uint8_t closing : {'"', '}', ']'})
            if (random() % 4 == 0 && std::count(bytes.begin(), bytes.end(), closing)) byte = closing;
        state = automaton.step(state, byte);
        text += char(byte);
    }
    return text;
}

}  // namespace

TEST_CASE("schema: texts that are allowed, and texts that are not") {
    for (const Case& each : kCases) {
        const Grammar grammar = grammar_for(each.schema);
        CAPTURE(each.schema);
        for (const auto text : each.good) CHECK_MESSAGE(verdict(grammar, text) == Verdict::complete, text);
        for (const auto text : each.bad) CHECK_MESSAGE(verdict(grammar, text) != Verdict::complete, text);
    }
}

TEST_CASE("schema: integers between bounds are exactly those") {
    std::mt19937 random(6);
    for (int round = 0; round < 60; ++round) {
        int low = int(random() % 2500) - 1200, high = int(random() % 2500) - 1200;
        if (low > high) std::swap(low, high);
        const Grammar grammar =
            grammar_for(fmt::format("{{\"type\":\"integer\",\"minimum\":{},\"maximum\":{}}}", low, high));
        int wrong = 0;
        for (int value = -1300; value <= 1400; value += 7)
            wrong += (verdict(grammar, fmt::to_string(value)) == Verdict::complete) !=
                     (value >= low && value <= high);
        CHECK_MESSAGE(wrong == 0, low, " to ", high);
    }
}

TEST_CASE("schema: random texts of its grammar parse, and are valid") {
    constexpr std::string_view kSchema = R"json({"type":"object","properties":{
        "name":{"type":"string","minLength":1,"maxLength":12},
        "age":{"anyOf":[{"type":"integer","minimum":-3,"maximum":150},{"type":"null"}]},
        "size":{"type":"number"},
        "tags":{"type":"array","items":{"enum":["a","é\"",3]},"minItems":1,"maxItems":4},
        "inner":{"type":"object","properties":{"flag":{"type":"boolean"},"text":{"type":"string"}},"required":["text"]}},
        "required":["name","tags"]})json";
    const Grammar grammar = grammar_for(kSchema);
    const Json schema = parse_json(kSchema);
    std::mt19937 random(8);
    for (int round = 0; round < 100; ++round) {
        const std::string text = random_text(grammar, random);
        const Json value = read_json(text);
        REQUIRE_MESSAGE(!value.is_discarded(), text);
        CHECK_MESSAGE(valid(schema, value), text);
    }
}

TEST_CASE("schema: what is wrong or not supported is named, with a pointer to it") {
    CHECK(schema_error("{\"type\":\"string\",\"uniqueItems\":true}") ==
          "#/uniqueItems: the keyword is not supported");
    CHECK(schema_error("{\"properties\":{\"a/b\":{\"not\":{}}}}") ==
          "#/properties/a~1b/not: the keyword is not supported");
    CHECK(schema_error("{\"items\":{\"type\":\"strng\"}}").starts_with("#/items/type: takes object, array"));
    CHECK(schema_error("{\"type\":\"string\",\"format\":\"email\"}") ==
          "#/format: only date, time, date-time and uuid are supported, not \"email\"");
    CHECK(schema_error("{\"type\":\"string\",\"pattern\":\"^(?=a)\"}") ==
          "#/pattern: a group that begins with (? and is not (?: at character 2 is not supported");
    CHECK(schema_error("{\"type\":\"string\",\"pattern\":\"\\\\ba\"}") ==
          "#/pattern: this escape at character 1 is not supported");
    CHECK(schema_error("{\"$ref\":\"http://x\"}") ==
          "#/$ref: only references into the same schema (#/...) are supported, not http://x");
    CHECK(schema_error("{\"$ref\":\"#/$defs/a\"}") == "#/$ref: nothing is at #/$defs/a");
    CHECK(schema_error("{\"$ref\":\"#\"}") == "#: the schema is nothing but a reference to itself");
    // Each reference is merged with what stands beside it, and so again for ever.
    CHECK(schema_error("{\"anyOf\":[{\"$ref\":\"#\",\"minLength\":1},{\"$ref\":\"#\",\"minLength\":2}]}") !=
          "accepted");
    CHECK(schema_error("{\"minItems\":3,\"maxItems\":2}") == "#: minItems 3 is more than maxItems 2");
    CHECK(schema_error("{\"minimum\":1.5}") ==
          "#/minimum: only whole bounds of numbers are supported, not 1.5");
    CHECK(schema_error("{\"type\":\"integer\",\"minimum\":3,\"maximum\":2}") ==
          "#: no integer lies between the bounds");
    CHECK(schema_error("{\"properties\":{\"a\":false}}") ==
          "#/properties/a: the schema false allows nothing");
    CHECK(schema_error("[]") == "#: a schema is an object, true or false, not array");
    CHECK(schema_error("{\n  \"type\" \"x\"}").starts_with("line 2, column "));
    CHECK(schema_error("").find("the schema is no JSON") != std::string::npos);
    const auto nested = [](size_t deep) {
        return "{\"const\":" + std::string(deep, '[') + std::string(deep, ']') + "}";
    };
    CHECK(schema_error(nested(400)) == "accepted");
    CHECK(schema_error(nested(500'000)) == "the schema is nested more than 500 brackets deep");
    CHECK(schema_error("{\"enum\":[]}") == "#/enum: takes a list of values");
    CHECK(schema_error("{\"allOf\":[{\"type\":\"string\"},{\"type\":\"null\"}]}") ==
          "#: no type is in all parts of allOf");
}

TEST_CASE("schema: parts of allOf that refer to themselves are refused, in short time") {
    const std::clock_t begin = std::clock();
    CHECK(schema_error(R"({"allOf":[{"$ref":"#"},{"$ref":"#"}]})") ==
          "#/allOf/0/$ref: the parts of allOf refer to themselves without end");
    CHECK(schema_error(R"({"allOf":[{"$ref":"#/$defs/a"}],"$defs":{"a":{"allOf":[{"$ref":"#/$defs/b"}]},)"
                       R"("b":{"$ref":"#/$defs/a","minimum":1}}})") ==
          "#/$defs/b/$ref: the parts of allOf refer to themselves without end");
    CHECK(schema_error(
              R"({"allOf":[{"$ref":"#/$defs/a"},{"$ref":"#/$defs/a"}],"$defs":{"a":{"type":"null"}}})") ==
          "accepted");
    CHECK(double(std::clock() - begin) / CLOCKS_PER_SEC < 8);
}

TEST_CASE("json schema: branches of oneOf are compared in bounded time") {
    // Whether two branches exclude each other is seen at b; a comes first and is large.
    const auto parts = [](const std::string& part, int count) {
        std::string all = R"({"allOf":[)" + part;
        for (int i = 1; i < count; ++i) all += "," + part;
        return all + "]}";
    };
    std::string branches;
    for (int i = 0; i < 8; ++i)
        branches += fmt::format(
            R"({}{{"type":"object","properties":{{"a":{{"$ref":"#/$defs/a"}},"b":{{"const":{}}}}},)"
            R"("required":["a","b"]}})",
            i > 0 ? "," : "", i);
    std::vector<std::string> notes;
    const std::clock_t begin = std::clock();
    CHECK(grammar_of_schema(R"({"oneOf":[)" + branches + R"(],"$defs":{"a":)" +
                                parts(R"({"$ref":"#/$defs/b"})", 60) + R"(,"b":)" +
                                parts(R"({"type":"integer"})", 120) + "}}",
                            &notes)
              .ok());
    CHECK(double(std::clock() - begin) / CLOCKS_PER_SEC < 8);
    CHECK(notes.size() == 1);
}

TEST_CASE("json schema: oneOf is right where its branches exclude each other, and noted where they may not") {
    const auto notes = [](const std::string& branches, const std::string& more = "") {
        std::vector<std::string> said;
        const Result<std::string> text =
            grammar_of_schema("{\"oneOf\":[" + branches + "]" + more + "}", &said);
        REQUIRE_MESSAGE(text.ok(), (text.ok() ? "" : text.error().message));
        return said.empty() ? "" : said[0];
    };
    const std::string cat =
        R"({"type":"object","properties":{"kind":{"const":"cat"},"lives":{"type":"integer"}},)"
        R"("required":["kind"]})";
    const std::string dog = R"({"type":"object","properties":{"kind":{"const":"dog"}},"required":["kind"]})";
    const std::string any =
        R"({"type":"object","properties":{"kind":{"type":"string"}},"required":["kind"]})";
    for (const std::string& apart :
         {std::string(R"({"type":"string"},{"type":"integer"},{"type":"null"})"),
          std::string(R"({"enum":[1,"a"]},{"const":"b"})"),
          std::string(R"({"type":"integer","maximum":4},{"type":"number","minimum":5})"),
          std::string(R"({"type":"string","maxLength":4},{"type":"string","minLength":5})"), cat + "," + dog,
          // One asks for what the other does not write.
          std::string(
              R"({"type":"object","properties":{"a":{}},"required":["a"],"additionalProperties":false},)"
              R"({"type":"object","properties":{"b":{}},"required":["b"],"additionalProperties":false})"),
          cat + R"(,{"anyOf":[{"type":"array"},)" + dog + "]}"}) {
        CAPTURE(apart);
        CHECK(notes(apart) == "");
    }
    CHECK(notes(R"({"$ref":"#/$defs/cat"},{"$ref":"#/$defs/dog"})",
                R"(,"$defs":{"cat":)" + cat + R"(,"dog":)" + dog + "}") == "");
    for (const std::string& together :
         {std::string(R"({"type":"integer"},{"type":"number"})"),
          std::string(R"({"const":1.0},{"type":"integer"})"), cat + "," + any, any + "," + cat,
          std::string(R"({"type":"string"},{"pattern":"^a$"})"),
          std::string(R"({"enum":[1,2]},{"enum":[2,3]})"),
          // What one need not write the other need not have.
          std::string(
              R"({"type":"object","properties":{"a":{}}},{"type":"object","properties":{"b":{}}})")}) {
        CAPTURE(together);
        CHECK(notes(together).find("#/oneOf: read as anyOf, for a value of branch ") == 0);
    }
    std::vector<std::string> said;
    CHECK(grammar_of_schema(R"({"anyOf":[{"type":"integer"},{"type":"number"}]})", &said).ok());
    CHECK(said.empty());
}
