// Grammars and texts for the tests of the grammar folder.
#pragma once

#include "grammar/automaton.h"
#include "grammar/constraint.h"
#include "grammar/json_schema.h"

#include <doctest/doctest.h>

#include <string>
#include <string_view>

namespace redline::test {

inline Grammar parsed(std::string_view text) {
    Result<Grammar> grammar = Grammar::parse(text);
    REQUIRE_MESSAGE(grammar.ok(), (grammar.ok() ? "" : grammar.error().message), " in ", text);
    return std::move(grammar).value();
}

inline std::string refused(std::string_view text) {
    const Result<Grammar> grammar = Grammar::parse(text);
    return grammar.ok() ? "accepted" : grammar.error().message;
}

inline Grammar grammar_for(std::string_view schema) {
    const Result<std::string> text = grammar_of_schema(schema);
    REQUIRE_MESSAGE(text.ok(), (text.ok() ? "" : text.error().message), " in ", schema.substr(0, 1000));
    return parsed(text.value());
}

inline std::string schema_error(std::string_view schema) {
    const Result<std::string> text = grammar_of_schema(schema);
    return text.ok() ? "accepted" : text.error().message;
}

enum class Verdict : uint8_t { refused, open, complete };

inline Verdict verdict(const Grammar& grammar, std::string_view text) {
    Automaton automaton(grammar);
    Automaton::State state = automaton.start();
    for (const char byte : text) state = automaton.step(state, uint8_t(byte));
    CHECK(automaton.check().ok());
    if (state == Automaton::kDead) return Verdict::refused;
    return automaton.can_end(state) ? Verdict::complete : Verdict::open;
}

// Applies each token to a text separately, without caches or tries: the slow way to the mask.
inline std::vector<bool> plain_mask(const Grammar& grammar, const TokenTable& table, std::string_view text) {
    Automaton automaton(grammar);
    Automaton::State state = automaton.start();
    for (const char byte : text) state = automaton.step(state, uint8_t(byte));
    std::vector<bool> mask(table.size());
    for (int32_t token = 0; size_t(token) < table.size(); ++token) {
        Automaton::State next = state;
        for (const char byte : table.piece(token)) next = automaton.step(next, uint8_t(byte));
        mask[size_t(token)] = table.ends(token) ? automaton.can_end(state)
                                                : !table.piece(token).empty() && next != Automaton::kDead;
    }
    return mask;
}

constexpr std::string_view kJsonGrammar = R"gbnf(root   ::= object
value  ::= object | array | string | number | ("true" | "false" | "null") ws
object ::=
  "{" ws (
            string ":" ws value
    ("," ws string ":" ws value)*
  )? "}" ws
array  ::=
  "[" ws (
            value
    ("," ws value)*
  )? "]" ws
string ::=
  "\"" (
    [^"\\\x7F\x00-\x1F] |
    "\\" (["\\bfnrt] | "u" [0-9a-fA-F]{4}) # escapes
  )* "\"" ws
number ::= ("-"? ([0-9] | [1-9] [0-9]{0,15})) ("." [0-9]+)? ([eE] [-+]? [0-9] [1-9]{0,15})? ws
# Optional space: by convention, applied in this grammar after literal chars when allowed
ws ::= | " " | "\n" [ \t]{0,20}
)gbnf";

constexpr std::string_view kArithmeticGrammar = R"gbnf(root  ::= (expr "=" ws term "\n")+
expr  ::= term ([-+*/] term)*
term  ::= ident | num | "(" ws expr ")" ws
ident ::= [a-z] [a-z0-9_]* ws
num   ::= [0-9]+ ws
ws    ::= [ \t\n]*
)gbnf";

constexpr std::string_view kChessGrammar = R"gbnf(# Moves of a game of chess, for example 1. e4 e5
root ::= "1. " move " " move "\n" ([1-9] [0-9]? ". " move " " move "\n")+
move ::= (pawn | nonpawn | castle) [+#]?
# piece type, optional file/rank, optional capture, dest file & rank
nonpawn ::= [NBKQR] [a-h]? [1-8]? "x"? [a-h] [1-8]
# optional file & capture, dest file & rank, optional promotion
pawn ::= ([a-h] "x")? [a-h] [1-8] ("=" [NBKQR])?
castle ::= "O-O" "-O"?
)gbnf";

constexpr std::string_view kListGrammar = R"gbnf(root ::= item+

# Excludes various line break characters
item ::= "- " [^\r\n\x0b\x0c\x85\u2028\u2029]+ "\n"
)gbnf";

constexpr std::string_view kCGrammar = R"gbnf(root ::= (declaration)*
declaration ::= dataType identifier "(" parameter? ")" "{" statement* "}"
dataType  ::= "int" ws | "float" ws | "char" ws
identifier ::= [a-zA-Z_] [a-zA-Z_0-9]*
parameter ::= dataType identifier
statement ::=
    ( dataType identifier ws "=" ws expression ";" ) |
    ( identifier ws "=" ws expression ";" ) |
    ( identifier ws "(" argList? ")" ";" ) |
    ( "return" ws expression ";" ) |
    ( "while" "(" condition ")" "{" statement* "}" ) |
    ( "if" "(" condition ")" "{" statement* "}" ("else" "{" statement* "}")? )
condition ::= expression relationOperator expression
relationOperator ::= ("<=" | "<" | "==" | "!=" | ">=" | ">")
expression ::= term (("+" | "-") term)*
term ::= factor(("*" | "/") factor)*
factor ::= identifier | number | unaryTerm | funcCall | parenExpression
unaryTerm ::= "-" factor
funcCall ::= identifier "(" argList? ")"
parenExpression ::= "(" ws expression ws ")"
argList ::= expression ("," ws expression)*
number ::= [0-9]+
ws ::= ([ \t\n]+)
)gbnf";

}  // namespace redline::test
