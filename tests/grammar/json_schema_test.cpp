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

// Schemas as pydantic, zod, schemars and generators of OpenAPI write them.
const Case kGenerated[] = {
    {R"({"type":"integer","minimum":-9007199254740991,"maximum":9007199254740991})",
     {"0", "-9007199254740991", "9007199254740991"},
     {"9007199254740992", "-9007199254740992"}},
    {R"({"type":"integer","format":"int64"})",
     {"9223372036854775807", "-9223372036854775808", "-1"},
     {"9223372036854775808", "-9223372036854775809"}},
    {R"({"type":"integer","minimum":0,"maximum":18446744073709551615})",
     {"18446744073709551615", "7"},
     {"18446744073709551616", "-1"}},
    {R"({"type":"integer","minimum":0,"exclusiveMinimum":true,"format":"uint8"})",
     {"1", "255"},
     {"0", "256"}},
    {R"({"type":"number","exclusiveMinimum":0.5,"maximum":2.5})",
     {"0.51", "0.5001", "1", "2.5", "2.50", "2.49999"},
     {"0.5", "0.50", "0.4", "2.51", "2.500001", "3"}},
    {R"({"type":"number","exclusiveMinimum":-1.5,"exclusiveMaximum":1.5})",
     {"-1.49", "1.499", "0", "-1"},
     {"1.5", "-1.5", "1.50", "2"}},
    {R"({"type":"integer","exclusiveMinimum":1,"exclusiveMaximum":100,"multipleOf":3})",
     {"3", "99", "42"},
     {"0", "1", "100", "102", "43"}},
    {R"({"type":"integer","multipleOf":7})", {"0", "7", "-7", "1234567890123449"}, {"1", "8", "-6"}},
    {R"({"type":"integer","multipleOf":100000})", {"0", "100000", "-4200000"}, {"10000", "150000"}},
    {R"({"type":"number","multipleOf":0.01,"minimum":0,"maximum":1})",
     {"0", "0.07", "1", "0.5"},
     {"0.001", "1.01"}},
    {R"({"type":"number","multipleOf":0.5,"minimum":-2.25})",
     {"-2", "-1.5", "0.5", "7"},
     {"-2.5", "0.25", "1.1"}},
    {R"({"type":"number","multipleOf":2.5,"minimum":0,"maximum":10})",
     {"0", "2.5", "10"},
     {"1", "5.5", "12.5"}},
    {R"({"type":"string","pattern":"^[a-z]+$","minLength":2,"maxLength":5})",
     {"\"ab\"", "\"abcde\""},
     {"\"a\"", "\"abcdef\"", "\"a1\""}},
    {R"({"type":"string","format":"uri","minLength":1,"maxLength":20})",
     {"\"http://a.b/c?d#e\"", "\"urn:x%20y\""},
     {"\"\"", "\"http://abcdefghijklmn\"", "\"a b:c\"", "\"urn:%2\""}},
    {R"({"type":"string","pattern":"^(?!^[-+.]*$)[+-]?0*\\d*\\.?\\d*$"})",
     {"\"1\"", "\"-0.5\"", "\".5\""},
     {"\"\"", "\"-.\"", "\"a\""}},
    {R"({"type":"string","pattern":"^(?=.*[A-Z])(?=.*\\d)[A-Za-z\\d]{4,}$"})",
     {"\"aB3c\""},
     {"\"ab3c\"", "\"aBcd\"", "\"aB3\""}},
    {R"({"type":"string","pattern":"^a|b$","maxLength":3})",
     {"\"a\"", "\"axy\"", "\"xyb\""},
     {"\"x\"", "\"axyz\""}},
    {R"({"type":"string","allOf":[{"pattern":"^a"},{"pattern":"b$"}]})",
     {"\"ab\"", "\"axb\""},
     {"\"a\"", "\"b\""}},
    {R"({"type":"string","format":"email"})", {"\"a.b@c.de\""}, {"\"a\"", "\"a@b\"", "\"a..b@c.de\""}},
    {R"({"type":"string","format":"duration"})",
     {"\"P1Y2M\"", "\"PT5S\"", "\"P3W\""},
     {"\"P\"", "\"PT\"", "\"P1W2D\""}},
    {R"({"type":"string","format":"ipv4"})",
     {"\"0.0.0.0\"", "\"255.1.20.3\""},
     {"\"256.1.1.1\"", "\"1.1.1\""}},
    {R"({"type":"string","format":"ipv6"})",
     {"\"::\"", "\"1::2\"", "\"::ffff:1.2.3.4\""},
     {"\"1:2\"", "\"1::2::3\""}},
    {R"({"type":"string","format":"uuid4"})",
     {"\"123e4567-e89b-42d3-a456-426614174000\""},
     {"\"123e4567-e89b-12d3-a456-426614174000\""}},
    {R"({"type":"string","format":"date"})",
     {"\"2024-02-29\"", "\"2000-02-29\""},
     {"\"2023-02-29\"", "\"1900-02-29\""}},
    {R"({"type":"string","format":"password","writeOnly":true})", {"\"x\""}, {"1"}},
    {R"({"type":"array","items":{"$ref":"#/$defs/C"},"uniqueItems":true,"$defs":{"C":{"enum":["r","g","b"]}}})",
     {"[]", "[\"b\",\"r\"]", "[\"r\",\"g\",\"b\"]"},
     {"[\"r\",\"r\"]", "[\"r\",\"g\",\"r\"]"}},
    {R"({"type":"array","items":{"type":"boolean"},"uniqueItems":true,"minItems":2})",
     {"[true,false]"},
     {"[true]", "[true,true]"}},
    {R"({"prefixItems":[{"type":"integer"},{"type":"string"}],"minItems":1,"maxItems":2})",
     {"[1]", "[1,\"a\"]"},
     {"[]", "[\"a\"]"}},
    {R"({"type":"object","patternProperties":{"^x_[a-z]+$":{"type":"integer"}}})",
     {"{}", "{\"x_a\":1}"},
     {"{\"x_\":1}", "{\"x_a\":\"\"}"}},
    {R"({"type":"object","patternProperties":{"^a":{"type":"integer"},"z$":{"enum":[1,"b"]}}})",
     {"{\"a\":5}", "{\"z\":\"b\"}", "{\"az\":1}"},
     {"{\"az\":\"b\"}", "{\"az\":5}", "{\"q\":1}"}},
    {R"({"type":"object","propertyNames":{"enum":["a","b"]},"additionalProperties":{"type":"null"},"required":["a"]})",
     {"{\"a\":null}", "{\"a\":null,\"b\":null}"},
     {"{}", "{\"b\":null}", "{\"a\":null,\"c\":null}"}},
    {R"({"type":"object","propertyNames":{"minLength":2,"maxLength":3},"additionalProperties":{"type":"null"}})",
     {"{}", "{\"ab\":null}"},
     {"{\"a\":null}", "{\"abcd\":null}"}},
    {R"({"type":"object","properties":{"a":{"const":1},"b":{"const":2},"c":{"const":3}},"minProperties":1,"maxProperties":2})",
     {"{\"a\":1}", "{\"b\":2,\"c\":3}"},
     {"{}", "{\"a\":1,\"b\":2,\"c\":3}"}},
    {R"({"type":"object","properties":{"n":{"type":"integer","nullable":true}},"required":["n"]})",
     {"{\"n\":null}", "{\"n\":1}"},
     {"{}"}},
    {R"({"nullable":true,"allOf":[{"$ref":"#/components/schemas/Q"}],"components":{"schemas":{"Q":{"type":"string","enum":["x"]}}}})",
     {"null", "\"x\""},
     {"\"y\""}},
    {R"({"$ref":"#/definitions/Box%3Cstring%3E","definitions":{"Box<string>":{"const":1}}})", {"1"}, {"2"}},
    {R"({"$ref":"#/$defs/a~1b%25c","$defs":{"a/b%c":{"const":1}}})", {"1"}, {"2"}},
    {R"({"$ref":"#x","$defs":{"a":{"$anchor":"x","const":1}}})", {"1"}, {"2"}},
    {R"({"$id":"https://e.com/r.json","$ref":"i.json","$defs":{"a":{"$id":"i.json","$ref":"#/$defs/z","$defs":{"z":{"const":3}}}}})",
     {"3"},
     {"1"}},
    {R"({"$dynamicAnchor":"n","type":"object","properties":{"c":{"$dynamicRef":"#n"}}})",
     {"{\"c\":{\"c\":{}}}"},
     {"{\"c\":1}"}},
    {R"({"oneOf":[{"$ref":"#/c/s/Cat"},{"$ref":"#/c/s/Dog"}],"discriminator":{"propertyName":"t","mapping":{"dog":"#/c/s/Dog"}},
        "c":{"s":{"Cat":{"type":"object","properties":{"t":{"type":"string"}}},"Dog":{"type":"object","properties":{"t":{"type":"string"}}}}}})",
     {"{\"t\":\"Cat\"}", "{\"t\":\"dog\"}"},
     {"{\"t\":\"x\"}", "{}"}},
    {R"({"type":"string","not":{"enum":["a"]},"maxLength":1})", {"\"\"", "\"b\""}, {"\"a\""}},
    {R"({"not":{"type":["object","array"]}})", {"1", "null"}, {"{}", "[]"}},
    {R"({"type":"object","properties":{"a":{"not":{}},"b":{"const":1}}})",
     {"{}", "{\"b\":1}"},
     {"{\"a\":1}"}},
    {R"({"enum":["a","bbb",5],"minLength":2})", {"\"bbb\"", "5"}, {"\"a\""}},
    {R"({"type":"object","properties":{"a":{"const":1}},"anyOf":[{"required":["a"]},{"type":"string"}]})",
     {"{\"a\":1}"},
     {"{}", "\"\""}},
    {R"({"allOf":[{"properties":{"a":{"const":1}},"additionalProperties":false},{"properties":{"b":{"const":2}}}]})",
     {"{\"a\":1}", "{}"},
     {"{\"b\":2}"}},
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
        if (bytes.empty()) return text;
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

TEST_CASE("schema: what generators write is held exactly, without a note") {
    for (const Case& each : kGenerated) {
        std::vector<std::string> notes;
        const Result<std::string> text = grammar_of_schema(each.schema, {.notes = &notes, .strict = true});
        REQUIRE_MESSAGE(text.ok(), (text.ok() ? "" : text.error().message), " in ", each.schema);
        CHECK(notes.empty());
        const Grammar grammar = parsed(text.value());
        CAPTURE(each.schema);
        for (const auto good : each.good) CHECK_MESSAGE(verdict(grammar, good) == Verdict::complete, good);
        for (const auto bad : each.bad) CHECK_MESSAGE(verdict(grammar, bad) != Verdict::complete, bad);
    }
}

TEST_CASE("schema: from each beginning of what generators write there is a way to an end") {
    std::mt19937 random(9);
    for (const Case& each : kGenerated) {
        const Grammar grammar = grammar_for(each.schema);
        CAPTURE(each.schema);
        for (int round = 0; round < 5; ++round) {
            const std::string text = random_text(grammar, random);
            CHECK_MESSAGE((text.size() >= 5000 || !read_json(text).is_discarded()), text);
        }
    }
}

TEST_CASE("schema: what is not enforced is noted once for each place, and refused where all has to be") {
    const auto notes = [](std::string_view schema) {
        std::vector<std::string> said;
        CHECK(grammar_of_schema(schema, {.notes = &said}).ok());
        const Result<std::string> strict = grammar_of_schema(schema, {.strict = true});
        CHECK(strict.ok() == said.empty());
        if (!strict.ok() && !said.empty()) CHECK(strict.error().message == said[0]);
        return said;
    };
    using Notes = std::vector<std::string>;
    CHECK(notes(R"({"type":"object","properties":{"a/b":{"if":{},"then":{"type":"null"}}},"contains":{}})") ==
          Notes{"#/contains is not enforced", "#/properties/a~1b/if is not enforced"});
    CHECK(
        notes(
            R"({"anyOf":[{"$ref":"#/$defs/a"},{"items":{"$ref":"#/$defs/a"}}],"$defs":{"a":{"type":"string","format":"x"}}})") ==
        Notes{"#/$defs/a/format is not enforced: the format is x"});
    CHECK(notes(R"({"type":"string","pattern":"\\bfoo"})") ==
          Notes{"#/pattern is not enforced: this escape at character 1 is not supported"});
    CHECK(notes(R"({"type":"array","items":{"type":"string"},"uniqueItems":true})") ==
          Notes{"#/uniqueItems is not enforced: the items are not one list of values"});
    CHECK(notes(R"({"type":"string","minlength":3})") ==
          Notes{"#/minlength is not enforced: there is no such keyword; minLength is one"});
    CHECK(
        notes(
            R"({"title":"a","x-b":1,"example":2,"xml":{},"externalDocs":{},"~standard":{},"then":{},"type":"null"})")
            .empty());
}

TEST_CASE("schema: thousands of values share their beginnings") {
    std::string values, branches;
    for (int i = 0; i < 50'000; ++i) values += fmt::format("{}\"v{:05}x\"", i > 0 ? "," : "", i * 7 % 50'000);
    for (int i = 0; i < 5000; ++i) branches += fmt::format("{}{{\"const\":\"v{}\"}}", i > 0 ? "," : "", i);
    const std::clock_t begin = std::clock();
    const Grammar listed = grammar_for("{\"enum\":[" + values + "]}");
    CHECK(verdict(listed, "\"v49999x\"") == Verdict::complete);
    CHECK(verdict(listed, "\"v50000x\"") == Verdict::refused);
    const Grammar branched = grammar_for("{\"oneOf\":[" + branches + "]}");
    CHECK(verdict(branched, "\"v4999\"") == Verdict::complete);
    CHECK(verdict(branched, "\"v5000\"") == Verdict::refused);
    CHECK(double(std::clock() - begin) / CLOCKS_PER_SEC < 8);
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
    CHECK(schema_error(R"({"properties":{"a/b":{"not":{}}},"required":["a/b"]})") ==
          R"(#/properties/a~1b: the schema {"not":{}} allows nothing)");
    CHECK(schema_error("{\"items\":{\"type\":\"strng\"}}").starts_with("#/items/type: takes object, array"));
    CHECK(schema_error("{\"$ref\":\"http://x\"}") ==
          "#/$ref: only references into the same schema (#/...) are supported, not http://x");
    CHECK(schema_error("{\"$ref\":\"#/$defs/a\"}") == "#/$ref: nothing is at #/$defs/a");
    CHECK(schema_error("{\"$ref\":\"#\"}") == "#: the schema is nothing but a reference to itself");
    // Each reference is merged with what stands beside it, and so again for ever.
    CHECK(schema_error("{\"anyOf\":[{\"$ref\":\"#\",\"minLength\":1},{\"$ref\":\"#\",\"minLength\":2}]}") !=
          "accepted");
    CHECK(schema_error("{\"minItems\":3,\"maxItems\":2}") == "#: minItems 3 is more than maxItems 2");
    CHECK(schema_error("{\"type\":\"integer\",\"minimum\":3,\"maximum\":2}") ==
          "#: no integer lies between the bounds");
    CHECK(schema_error(R"({"properties":{"a":false},"required":["a"]})") ==
          "#/properties/a: the schema false allows nothing");
    CHECK(schema_error(R"({"type":"integer","minimum":1,"maximum":4,"multipleOf":5})") ==
          "#: no multiple of 5 lies between the bounds");
    CHECK(schema_error(R"({"pattern":"^[a-z]{3}$","minLength":5})") ==
          "#: no string that fits the rest is between 5 and any number of characters long");
    CHECK(schema_error(R"({"allOf":[{"pattern":"^a"},{"pattern":"^b"}]})") ==
          "#: no string fits all that pattern, format and not ask together");
    CHECK(schema_error(
              R"({"allOf":[{"properties":{"a":{}},"additionalProperties":false},{"required":["b"]}]})") ==
          "#/required: b is none of the properties");
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
    // Only b shows that two branches exclude each other; a comes first and is large.
    const auto parts = [](const std::string& part, int count) {
        std::string all = R"({"allOf":[)" + part;
        for (int i = 1; i < count; ++i) all += "," + part;
        return all + "]}";
    };
    // When no b occurs twice it tells all branches apart; when one does, all pairs are compared.
    for (const int values : {8, 7}) {
        std::string branches;
        for (int i = 0; i < 8; ++i)
            branches += fmt::format(
                R"({}{{"type":"object","properties":{{"a":{{"$ref":"#/$defs/a"}},"b":{{"const":{}}}}},)"
                R"("required":["a","b"]}})",
                i > 0 ? "," : "", i % values);
        std::vector<std::string> notes;
        const std::clock_t begin = std::clock();
        CHECK(grammar_of_schema(R"({"oneOf":[)" + branches + R"(],"$defs":{"a":)" +
                                    parts(R"({"$ref":"#/$defs/b"})", 60) + R"(,"b":)" +
                                    parts(R"({"type":"integer"})", 120) + "}}",
                                {.notes = &notes})
                  .ok());
        CHECK(double(std::clock() - begin) / CLOCKS_PER_SEC < 8);
        CHECK(notes.size() == (values == 8 ? 0 : 1));
    }
}

TEST_CASE("json schema: oneOf is right where its branches exclude each other, and noted where they may not") {
    const auto notes = [](const std::string& branches, const std::string& more = "") {
        std::vector<std::string> said;
        const Result<std::string> text =
            grammar_of_schema("{\"oneOf\":[" + branches + "]" + more + "}", {.notes = &said});
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
          // An optional property of one is optional in the other.
          std::string(
              R"({"type":"object","properties":{"a":{}}},{"type":"object","properties":{"b":{}}})")}) {
        CAPTURE(together);
        CHECK(notes(together).find("#/oneOf: read as anyOf, for a value of branch ") == 0);
    }
    std::vector<std::string> said;
    CHECK(grammar_of_schema(R"({"anyOf":[{"type":"integer"},{"type":"number"}]})", {.notes = &said}).ok());
    CHECK(said.empty());
}
