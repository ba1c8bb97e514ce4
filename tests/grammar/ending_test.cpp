// Texts that a grammar binds and a number of tokens limits are brought to their end, whatever is chosen on
// the way; where there is room nothing is changed.
#include "grammar/constraint.h"
#include "grammar/json_schema.h"
#include "support/grammars.h"
#include "support/text_support.h"

#include <nlohmann/json.hpp>

using namespace redline;
using namespace redline::test;

namespace {

Tokenizer with_end() {
    SmallVocabulary vocabulary = small_bpe();
    const int32_t end = vocabulary.add("<|end|>");
    vocabulary.types.assign(vocabulary.tokens.size(), 1);
    vocabulary.types[size_t(end)] = 3;
    vocabulary.set_id("eos", end);
    return make(vocabulary);
}

struct Walk {
    std::string text;
    bool complete = false;
    bool changed = false;
};

// Goes on with random tokens that are allowed, none of which ends the text, within the limit.
Walk random_walk(Constraint& constraint, uint64_t limit, std::mt19937& random) {
    constraint.restart();
    Walk walk;
    for (uint64_t left = limit; left > 0 && !constraint.finished(); --left) {
        const std::span<const uint64_t> mask = must(constraint.allowed());
        std::vector<int32_t> allowed;
        for (size_t i = 0; i < constraint.table().size(); ++i)
            if ((mask[i / 64] >> (i % 64) & 1) != 0 && !constraint.table().ends(int32_t(i)))
                allowed.push_back(int32_t(i));
        if (allowed.empty()) break;
        const int32_t chosen = allowed[random() % allowed.size()];
        const int32_t token = must(constraint.in_time(chosen, left - 1));
        walk.changed = walk.changed || token != chosen;
        if (constraint.table().ends(token)) break;
        REQUIRE(constraint.accept(token).ok());
        walk.text += constraint.table().piece(token);
    }
    walk.complete = constraint.complete();
    return walk;
}

// The fewest tokens that a text of the grammar is known to need.
uint64_t fewest(const Grammar& grammar, const TokenTable& table) {
    Automaton automaton(grammar);
    const auto found = Ending(grammar, table).find(automaton, automaton.start(), 10000);
    REQUIRE(found.has_value());
    return found->size();
}

constexpr const char* kSchemas[] = {
    R"({"type": "string"})",
    R"({"type": "string", "format": "uri", "minLength": 1, "maxLength": 2083})",
    R"({"type": "string", "pattern": "^[a-z]+(-[0-9]{2})*$", "minLength": 5, "maxLength": 30})",
    R"({"type": "string", "format": "date-time"})",
    R"({"type": "object", "required": ["a", "b"], "properties": {"a": {"type": "object",
        "required": ["x"], "properties": {"x": {"type": "array", "items": {"type": "number"}, "minItems": 2},
        "y": {"type": "string"}}}, "b": {"type": "string", "minLength": 3}, "c": {"type": "integer"}}})",
    R"({"enum": ["red", "green", "a colour that is not listed here", 17, null]})",
    R"({"type": "integer", "minimum": 1000, "maximum": 70000})",
    R"({"anyOf": [{"type": "array", "items": {"$ref": "#"}}, {"type": "boolean"}]})"};

}  // namespace

TEST_CASE("ending: JSON is valid within every limit that its shortest text fits into") {
    const Tokenizer tokenizer = with_end();
    std::mt19937 random(5);
    for (const char* schema : kSchemas) {
        const std::string text = must(grammar_of_schema(schema));
        const auto constraint = must(Constraint::create(parsed(text), tokenizer, tokenizer.size()));
        const uint64_t least = fewest(parsed(text), constraint->table());
        for (uint64_t limit = least; limit < least + 60; limit += limit < least + 6 ? 1 : 9)
            for (int round = 0; round < 4; ++round) {
                const Walk walk = random_walk(*constraint, limit, random);
                CHECK_MESSAGE(walk.complete, schema << " in " << limit << ": " << walk.text);
                CHECK_MESSAGE(nlohmann::json::accept(walk.text), walk.text);
            }
    }
}

TEST_CASE("ending: texts of any grammar are complete within their limit, inside characters, too") {
    const Tokenizer tokenizer = with_end();
    std::mt19937 random(6);
    for (const std::string_view text :
         {kJsonGrammar, kArithmeticGrammar, kChessGrammar, kListGrammar, kCGrammar,
          std::string_view("root ::= ([^\\x00-\\x7F] \"a\"{2,3}){1,4}"),
          std::string_view(
              "root ::= \"[\" @even{3,40} \"]\"\neven ::= \"\" | [a-z] @odd\nodd ::= [a-z] @even\n"),
          std::string_view("root ::= a \"!\"\na ::= b \"q\"?\nb ::= \"\" | [x-z] a\n")}) {
        const auto constraint = must(Constraint::create(parsed(text), tokenizer, tokenizer.size()));
        const uint64_t least = fewest(parsed(text), constraint->table());
        for (uint64_t limit = least; limit < least + 90; limit += 7)
            for (int round = 0; round < 4; ++round) {
                const Walk walk = random_walk(*constraint, limit, random);
                CHECK_MESSAGE(walk.complete, text << " in " << limit << ": " << walk.text);
            }
    }
}

TEST_CASE("ending: a string is closed by its quote, an object by its shortest values, an enum by its rest") {
    const Tokenizer tokenizer = with_end();
    const auto of_schema = [&](const char* schema) {
        return must(Constraint::create(parsed(must(grammar_of_schema(schema))), tokenizer, tokenizer.size()));
    };
    // The same letter again and again where it may come, as a model that finds no end.
    const auto babble = [&](Constraint& constraint, const std::string& begun, uint64_t limit) {
        std::string text;
        for (; limit > 0 && !constraint.finished(); --limit) {
            int32_t token = tokenizer.find(text.size() < begun.size() ? begun.substr(text.size(), 1) : "o");
            for (int32_t other = 0; !must(constraint.allows(token)); ++other) token = other;
            token = must(constraint.in_time(token, limit - 1));
            REQUIRE(constraint.accept(token).ok());
            text += constraint.table().piece(token);
        }
        return text;
    };
    CHECK(babble(*of_schema(R"({"type": "string"})"), "\"", 8) == "\"oooooo\"");
    CHECK(babble(*of_schema(R"({"enum": ["o", "ooooooooo"]})"), "\"", 3) == "\"o\"");
    CHECK(babble(*of_schema(R"({"type": "object", "required": ["a", "b"], "additionalProperties": false,
        "properties": {"a": {"type": "string"}, "b": {"type": "array", "items": {}}}})"),
                 "{\"a\":\"", 20) == "{\"a\":\"ooooo\",\"b\":[]}");
}

TEST_CASE(
    "ending: where no text of the grammar fits, or where there is room, tokens stay as they are chosen") {
    const Tokenizer tokenizer = with_end();
    std::mt19937 random(7);
    const auto word = must(Constraint::create(parsed("root ::= [bc] \"cdef\""), tokenizer, tokenizer.size()));
    CHECK_FALSE(random_walk(*word, 1, random).complete);
    CHECK_FALSE(random_walk(*word, 1, random).changed);
    const auto list =
        must(Constraint::create(parsed("root ::= [a-z]{3,9} \".\""), tokenizer, tokenizer.size()));
    for (int round = 0; round < 20; ++round) CHECK_FALSE(random_walk(*list, 100, random).changed);
}
