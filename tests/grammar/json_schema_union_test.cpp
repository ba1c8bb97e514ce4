// Unions of objects: alternatives share what they begin with, so that thousands of them, and unions within
// unions, are followed as one; what cannot be shared is refused before a text begins.
#include "grammar/json_schema.h"
#include "grammar/shortest_text.h"
#include "support/grammars.h"

#include <ctime>

using namespace redline;
using namespace redline::test;

namespace {

// A list of what `one` makes of each number.
template <typename One>
std::string listed(int count, One one) {
    std::string out;
    for (int i = 0; i < count; ++i) out += (i > 0 ? "," : "") + one(i);
    return out;
}

// The most stacks of a state on the way through a text.
size_t most_stacks(const Grammar& grammar, std::string_view text) {
    Automaton automaton(grammar);
    Automaton::State state = automaton.start();
    size_t most = automaton.stacks(state).size();
    for (const char byte : text) {
        state = automaton.step(state, uint8_t(byte));
        most = std::max(most, automaton.stacks(state).size());
    }
    CHECK_MESSAGE(automaton.can_end(state), text);
    return most;
}

}  // namespace

TEST_CASE("schema: thousands of objects that one property tells apart are followed as one") {
    const std::string tagged = listed(3000, [](int i) {
        return fmt::format(
            R"({{"type":"object","properties":{{"kind":{{"const":"k{}"}},"v{}":{{"type":"integer"}}}},)"
            R"("required":["kind","v{}"]}})",
            i, i, i);
    });
    for (const char* key : {"anyOf", "oneOf"}) {
        const std::clock_t begin = std::clock();
        const Grammar grammar = grammar_for(fmt::format(R"({{"{}":[{}]}})", key, tagged));
        CHECK(most_stacks(grammar, R"({"kind": "k2999", "v2999": 5})") < 20);
        CHECK(verdict(grammar, R"({"kind": "k17", "v17": 5})") == Verdict::complete);
        CHECK(verdict(grammar, R"({"kind": "k17", "v18": 5})") == Verdict::refused);
        CHECK(verdict(grammar, R"({"kind": "k3000")") == Verdict::refused);
        CHECK(double(std::clock() - begin) / CLOCKS_PER_SEC < 8);
    }
}

TEST_CASE(
    "schema: alternatives that differ deep inside, behind references or behind equal properties are shared") {
    // The form in which calls of functions are described to a model.
    const std::string calls = listed(1500, [](int i) {
        return fmt::format(
            R"({{"type":"object","properties":{{"id":{{"type":"string"}},"type":{{"const":"function"}},)"
            R"("function":{{"type":"object","properties":{{"name":{{"const":"f{}"}},"arguments":)"
            R"({{"type":"object","properties":{{"a{}":{{"type":"number"}}}},"required":["a{}"]}}}},)"
            R"("required":["name","arguments"]}}}},"required":["type","function"]}})",
            i, i, i);
    });
    const Grammar called = grammar_for(R"({"type":"array","items":{"anyOf":[)" + calls + "]}}");
    const std::string one =
        R"({"type": "function", "function": {"name": "f1499", "arguments": {"a1499": 1}}})";
    const std::string other =
        R"({"id": "x", "type": "function", "function": {"name": "f3", "arguments": {"a3": 1}}})";
    CHECK(most_stacks(called, "[" + one + ", " + other + "]") < 20);
    CHECK(verdict(called, R"([{"type": "function", "function": {"name": "f3", "arguments": {"a4")") ==
          Verdict::refused);
    // The property that tells them apart comes last, behind optional ones, as of a map that is sorted.
    const std::string definitions = listed(1200, [](int i) {
        return fmt::format(
            R"("D{}":{{"type":"object","properties":{{"a":{{"type":"string"}},"b":{{"type":"integer"}},)"
            R"("type":{{"enum":["t{}","u{}"]}}}},"required":["type"]}})",
            i, i, i);
    });
    const std::string references =
        listed(1200, [](int i) { return fmt::format(R"({{"$ref":"#/$defs/D{}"}})", i); });
    const Grammar sorted = grammar_for(R"({"oneOf":[)" + references + R"(],"$defs":{)" + definitions + "}}");
    for (const char* text :
         {R"({"type": "t5"})", R"({"a": "x", "type": "u1199"})", R"({"a": "", "b": 1, "type": "t0"})"})
        CHECK(most_stacks(sorted, text) < 20);
    CHECK(verdict(sorted, R"({"b": 1, "a")") == Verdict::refused);
}

TEST_CASE("schema: unions within unions are followed at any depth") {
    // Each operation begins with its left side, which is an expression again.
    const std::string operations = listed(6, [](int i) {
        return fmt::format(
            R"({{"type":"object","properties":{{"left":{{"$ref":"#/$defs/e"}},"op":{{"const":"o{}"}},)"
            R"("right":{{"$ref":"#/$defs/e"}}}},"required":["left","op","right"]}})",
            i);
    });
    const Grammar grammar =
        grammar_for(R"({"$ref":"#/$defs/e","$defs":{"e":{"anyOf":[{"type":"number"},)" + operations + "]}}}");
    std::string text = "1";
    for (int i = 0; i < 200; ++i)
        text = fmt::format(R"({{"left": {}, "op": "o{}", "right": 2}})", text, i % 6);
    CHECK(most_stacks(grammar, text) < 20);
    // Only properties behind the inner ones show which of the two an object is, and the inner ones are
    // equally ambiguous.
    const auto node = [](const char* name, const char* value) {
        return fmt::format(
            R"("{}":{{"type":"object","properties":{{"v":{},"inner":{{"anyOf":[{{"$ref":"#/$defs/a"}},)"
            R"({{"$ref":"#/$defs/b"}}]}},"{}":{{"type":"null"}}}},"required":["v","{}"]}})",
            name, value, name, name);
    };
    const Grammar late = grammar_for(R"({"$ref":"#/$defs/a","$defs":{)" +
                                     node("a", R"({"type":"string","pattern":"^x[a-z]*$"})") + "," +
                                     node("b", R"({"type":"string","minLength":1})") + "}}");
    std::string nested = R"({"v": "xy", "b": null})";
    for (int i = 0; i < 100; ++i)
        nested = fmt::format(R"({{"v": "xy", "inner": {}, "{}": null}})", nested,
                             i == 99 || i % 3 == 0 ? "a" : "b");
    CHECK(most_stacks(late, nested) < 1000);
    // The way out is found through what the stacks share.
    const ShortestText shortest(late);
    Automaton automaton(late);
    Automaton::State state = automaton.start();
    std::string open;
    for (int i = 0; i < 40; ++i) open += R"({"v": "xy", "inner": )";
    for (const char byte : open) state = automaton.step(state, uint8_t(byte));
    const std::optional<std::string> rest = shortest.complete(automaton, state, 100'000);
    REQUIRE(rest);
    CHECK(verdict(late, open + *rest) == Verdict::complete);
    // Shared beginnings stay shared when other states are forgotten.
    state = automaton.forget_all_but(state);
    for (const char byte : *rest) state = automaton.step(state, uint8_t(byte));
    CHECK(automaton.can_end(state));
}

TEST_CASE("schema: alternatives that nothing tells apart are refused before a text begins, by their place") {
    const auto union_of = [](int count) {
        return R"({"properties":{"x":{"anyOf":[)" +
               listed(
                   count,
                   [](int i) {
                       return fmt::format(
                           R"({{"type":"object","properties":{{"v":{{"type":"string","pattern":"^[a-z]*{}$"}}}},)"
                           R"("required":["v"]}})",
                           i);
                   }) +
               R"(]}},"required":["x"]})";
    };
    const Result<std::string> many = grammar_of_schema(union_of(1500));
    REQUIRE_FALSE(many.ok());
    CHECK(many.error().message ==
          "#/properties/x/anyOf: 1500 of its schemas begin alike, and no property or value tells them apart; "
          "at "
          "most 1000 can be followed at once");
    CHECK(verdict(grammar_for(union_of(300)), R"({"x": {"v": "abc299"}})") == Verdict::complete);
}
