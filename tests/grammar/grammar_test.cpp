// GBNF: what is read, what is refused and where, and which texts match, byte by byte.
#include "support/grammars.h"
#include "text/tokens/unicode.h"

#include <ctime>
#include <random>

using namespace redline;
using namespace redline::test;

namespace {

struct Case {
    std::string_view grammar;
    std::vector<std::string_view> complete;
    std::vector<std::string_view> open;     // a beginning
    std::vector<std::string_view> refused;  // no beginning
};

const Case kCases[] = {
    {"root ::= \"abc\"", {"abc"}, {"", "a", "ab"}, {"b", "abcd", "aab"}},
    {"root ::= \"\"", {""}, {}, {"a"}},
    {"root ::=", {""}, {}, {"a"}},
    {"root ::= \"a\" | | \"b\"", {"", "a", "b"}, {}, {"ab", "c"}},
    {"root ::= [a-c0]", {"a", "c", "0"}, {""}, {"d", "-", "1", "aa"}},
    {"root ::= [^a-c\\]]", {"d", "[", "\n", "\xC3\xA9"}, {"\xC3"}, {"a", "]", "\x80"}},
    {"root ::= [a-]", {"a", "-"}, {}, {"b"}},
    {"root ::= [-a]", {"a", "-"}, {}, {"b"}},
    {"root ::= [\\x41\\u00e9\\U0001F999\\n\\\\\"]", {"A", "é", "🦙", "\n", "\\", "\""}, {}, {"B", "x"}},
    {"root ::= \"\\x41\\u20AC\\t\\\"\\[\\]\"", {"A€\t\"[]"}, {"A"}, {"A\xE2\x82\xAD"}},
    {"root ::= . .", {"a\n", "é€", "🦙🦙"}, {"", "a", "\xF0\x9F"}, {"abc"}},
    {"root ::= \"ab\"* \"c\"", {"c", "abc", "ababc"}, {"", "aba"}, {"aa", "bc"}},
    {"root ::= \"a\"+", {"a", "aaa"}, {""}, {"b"}},
    {"root ::= \"a\"? \"b\"", {"b", "ab"}, {"a"}, {"aa"}},
    {"root ::= \"a\"{2}", {"aa"}, {"a"}, {"aaa"}},
    {"root ::= \"a\"{2,}", {"aa", "aaaaaaa"}, {"", "a"}, {"b"}},
    {"root ::= \"a\"{ 1 , 3 }", {"a", "aa", "aaa"}, {""}, {"aaaa"}},
    {"root ::= \"a\"{,2} \"b\"", {"b", "aab"}, {"aa"}, {"aaa"}},
    {"root ::= \"a\"{0} \"b\"", {"b"}, {""}, {"a"}},
    {"root ::= (\"a\"?)* \"b\"", {"b", "aaab"}, {"aa"}, {"c"}},
    {"root ::= (\"a\"? \"b\"?){3}", {"", "ab", "ababab", "bbb", "ba"}, {}, {"bbbb", "abababa", "c"}},
    {"root ::= ((\"a\"{2}){2}){2}", {"aaaaaaaa"}, {"aaaa", "aaaaa"}, {"aaaaaaaaa"}},
    {"root ::= \"a\"{1,3}{2}", {"aa", "aaaaaa"}, {"a"}, {"aaaaaaa"}},
    {"root ::= a b\na ::= \"x\" | \"xy\"\nb ::= \"yz\" | \"z\"", {"xyz", "xz", "xyyz"}, {"xy"}, {"xzz"}},
    {"root ::= \"(\" root \")\" | \"x\"", {"x", "(x)", "((x))"}, {"((", "((x)"}, {")", "(x))"}},
    {"root ::= \"a\" root | \"a\" root \"b\" | \"c\"", {"c", "aacb", "aac"}, {"aa"}, {"cb", "acbb"}},
    {"# first\nroot ::= ( # in\n \"a\"\n | \"b\" # here\n)\n# last", {"a", "b"}, {""}, {"ab"}},
    {"root ::=\n  \"a\" |\n  \"b\"\r\n\r\nother ::= \"c\"\r\n", {"a", "b"}, {}, {"c"}},
    {"root ::= @a{2,5} \".\"\na ::= \"\" | \"x\" @b\nb ::= \"y\" @a",
     {"xy.", "xyxy."},
     {"", "x", "xyx", "xyxy"},
     {".", "xyxyx", "xy.x"}},
    {"root ::= @a{2,}\na ::= \"\" | [a-b] @a | \"c\" @end\nend ::= \"\"",
     {"ab", "bbbbc", "ac"},
     {"", "a"},
     {"c", "acb"}},
    {"root ::= [\\u0800-\\uFFFF]", {"\u0800", "\uFFFF", "\uE000"}, {"\xE0", "\xED"}, {"\u07FF", "\xED\xA0"}},
    {"root ::= [\\U00010000-\\U0010FFFF]",
     {"\U00010000", "\U0010FFFF"},
     {"\xF0", "\xF4\x8F"},
     {"\xEF\xBF\xBF", "\xF0\x8F", "\xF4\x90", "\xF5"}},
};

}  // namespace

TEST_CASE("grammar: texts that match, that begin one that does, and that do not") {
    for (const Case& each : kCases) {
        const Grammar grammar = parsed(each.grammar);
        CAPTURE(each.grammar);
        for (const auto text : each.complete)
            CHECK_MESSAGE(verdict(grammar, text) == Verdict::complete, text);
        for (const auto text : each.open) CHECK_MESSAGE(verdict(grammar, text) == Verdict::open, text);
        for (const auto text : each.refused) CHECK_MESSAGE(verdict(grammar, text) == Verdict::refused, text);
    }
}

TEST_CASE("grammar: those of llama.cpp's repository read what they are for") {
    const Grammar json = parsed(kJsonGrammar);
    CHECK(verdict(json, "{\"a\": [1, -2.5e+3, \"x\\u00e9\\n€\"], \"b\":{\"c\":null}}") == Verdict::complete);
    CHECK(verdict(json, "{\"a\": [1, {\"b\": tr") == Verdict::open);
    CHECK(verdict(json, "{\"a\": 01}") == Verdict::refused);
    CHECK(verdict(json, "{\"a\": \"\\x\"}") == Verdict::refused);
    CHECK(verdict(json, "{\"a\" 1}") == Verdict::refused);
    CHECK(verdict(json, "[1]") == Verdict::refused);
    const Grammar arithmetic = parsed(kArithmeticGrammar);
    CHECK(verdict(arithmetic, "(a +3) *b2= 7\n") == Verdict::complete);
    CHECK(verdict(arithmetic, "1+*") == Verdict::refused);
    const Grammar chess = parsed(kChessGrammar);
    CHECK(verdict(chess, "1. e4 e5\n2. Nf3 Nc6\n3. Bb5 a6\n4. O-O bxa8=Q+\n") == Verdict::complete);
    CHECK(verdict(chess, "1. e4 e9") == Verdict::refused);
    const Grammar list = parsed(kListGrammar);
    CHECK(verdict(list, "- one\n- zwölf\n") == Verdict::complete);
    CHECK(verdict(list, "- a\xE2\x80\xA8") == Verdict::refused);
    const Grammar c = parsed(kCGrammar);
    CHECK(verdict(c, "int main(){int x = f(1,\n2)+-y*3;if(x<=1){return x;}else{while(a==b){}}}") ==
          Verdict::complete);
    CHECK(verdict(c, "int main(){x = 1;}float f(char c){}") == Verdict::complete);
    CHECK(verdict(c, "int main(){1x") == Verdict::refused);
}

TEST_CASE("grammar: errors give line and column, and what was expected") {
    CHECK(refused("") == "the grammar has no rule root, with which a text begins");
    CHECK(refused("a ::= \"b\"\n# c") == "the grammar has no rule root, with which a text begins");
    CHECK(refused("root ::= a") == "line 1, column 10: the rule a is not defined");
    CHECK(refused("root ::= \"é\" b2\n a") ==
          "line 2, column 3: expected ::= after the name of a rule, found the end of the grammar");
    CHECK(refused("root ::= \"é\" b2") == "line 1, column 14: the rule b2 is not defined");
    CHECK(refused("root = \"a\"") == "line 1, column 6: expected ::= after the name of a rule, found '='");
    CHECK(refused("root ::= \"a\"\nroot ::= \"b\"") ==
          "line 2, column 1: the rule root is already defined at line 1, column 1");
    CHECK(refused("root ::= \"a") == "line 1, column 10: the literal is not closed with \" on its line");
    CHECK(refused("root ::= [a") == "line 1, column 10: the class has no closing ]");
    CHECK(refused("root ::= [a-") == "line 1, column 10: the class has no closing ]");
    CHECK(refused("root ::= [b-a]") == "line 1, column 13: the range ends before it begins");
    CHECK(refused("root ::= []") == "line 1, column 10: no character is in this class");
    CHECK(refused("root ::= \"\\q\"") ==
          "line 1, column 12: expected n, r, t, \", \\, [, ], x, u or U after a backslash, found 'q'");
    CHECK(refused("root ::= \"\\x4\"") == "line 1, column 14: expected 2 hexadecimal digits, found '\"'");
    CHECK(refused("root ::= \"\\uD800\"") == "line 1, column 11: U+D800 is no character");
    CHECK(refused("root ::= \"\\U00110000\"") == "line 1, column 11: U+110000 is no character");
    CHECK(refused("root ::= \"a\xFF\"") ==
          "line 1, column 12: expected a character, found bytes that are no UTF-8");
    CHECK(refused("root ::= (\"a\"\n| \"b\"") ==
          "line 2, column 6: expected a literal, a class, a rule, |, a repetition or ), found the end of the "
          "grammar");
    CHECK(refused("root ::= \"a\" )") ==
          "line 1, column 14: expected a literal, a class, a rule, (, |, a repetition or the end of the "
          "line, found ')'");
    CHECK(refused("root ::= *") ==
          "line 1, column 10: expected something to repeat before a repetition, found '*'");
    CHECK(refused("root ::= \"a\"{2") ==
          "line 1, column 15: expected } at the end of a repetition, as in {2}, {2,} or {2,5}, found the end "
          "of the grammar");
    CHECK(refused("root ::= \"a\"{3,2}") == "line 1, column 13: at least 3 repetitions, and at most 2");
    CHECK(refused("root ::= \"a\"{}") == "line 1, column 14: expected the number of repetitions, found '}'");
    CHECK(refused("root ::= \"a\"{1000001}") ==
          "line 1, column 14: the number of repetitions may be at most 1000000");
    CHECK(refused("root ::= \"a\"{99999999999999999999}") ==
          "line 1, column 14: the number of repetitions may be at most 1000000");
    CHECK(
        refused("root ::= (\"a\"?){100}") ==
        "line 1, column 16: an item that may be empty is repeated up to 100 times, at most 64 are allowed; use * instead");
    CHECK(refused("root ::= <think") ==
          "line 1, column 16: expected > at the end of a token, found the end of the grammar");
    CHECK(refused("root ::= <[x]>") == "line 1, column 12: expected the id of a token, found 'x'");
    CHECK(refused("root ::= <[1>") == "line 1, column 13: expected ] after the id of a token, found '>'");
    CHECK(refused("root ::= " + std::string(300, '(')) ==
          "line 1, column 211: groups are nested more than 200 deep");
}

TEST_CASE("grammar: left recursion is refused, also behind an item that may be empty") {
    CHECK(refused("root ::= root \"a\"") ==
          "line 1, column 1: left recursion, root -> root: a rule must read a character before it comes to "
          "itself");
    CHECK(refused("root ::= \"x\" a\na ::= b \"c\" | \"d\"\nb ::= \"e\"? a") ==
          "line 2, column 1: left recursion, a -> b -> a: a rule must read a character before it comes to "
          "itself");
    CHECK(refused("root ::= (\"a\"* root)+").find("left recursion, root -> root") != std::string::npos);
    CHECK(refused("root ::= \"a\" root | \"b\"") == "accepted");
}

TEST_CASE("grammar: ways that no text completes are left out, and refused where no other is left") {
    const std::string endless =
        "no text completes the grammar: each way through the rule root comes back to a "
        "rule that it is in, without end";
    CHECK(refused("root ::= \"a\" root") == endless);
    CHECK(refused("root ::= \"a\" b\nb ::= \"b\" c | \"d\" b\nc ::= \"c\" b") == endless);
    CHECK(refused("root ::= (\"a\" root)+") == endless);
    const Grammar grammar = parsed("root ::= \"x\" | \"a\" b | \"c\" b? | \"d\" b*\nb ::= \"b\" b");
    for (const char* text : {"x", "c", "d"}) CHECK(verdict(grammar, text) == Verdict::complete);
    for (const char* text : {"a", "cb", "db"}) CHECK(verdict(grammar, text) == Verdict::refused);
}

TEST_CASE("grammar: hostile ones end in an error or a match, not in a full memory") {
    const Grammar nested = parsed("root ::= (((\"a\"{1,1000000}){1,1000000}){1,1000000}){3} \"b\"");
    CHECK(verdict(nested, "aaab") == Verdict::complete);
    CHECK(verdict(nested, "aab") == Verdict::refused);
    // 2^n ways after n characters, of which those that go on alike are one.
    const Grammar grammar = parsed("root ::= [a-z] | [a-y] root \"b\" | [a-x] root \"c\"");
    std::string text(40, 'a');
    for (int i = 0; i < 39; ++i) text += i % 3 == 0 ? 'b' : 'c';
    CHECK(verdict(grammar, text) == Verdict::complete);
    CHECK(verdict(grammar, text + "b") != Verdict::refused);
    CHECK(verdict(grammar, text + "z") != Verdict::complete);
    std::string many = "root ::= \"x\"";
    for (int i = 0; i < 5000; ++i) many += fmt::format(" | [a-z]* \"{}\"", i);
    const Grammar crowd = parsed(many);
    Automaton automaton(crowd);
    automaton.start();
    CHECK(automaton.check().error().message.find("in too many ways at once") != std::string::npos);
    std::string deep = "root ::= r0\n";
    for (int i = 0; i < 20000; ++i) deep += fmt::format("r{} ::= r{}\n", i, i + 1);
    CHECK(verdict(parsed(deep + "r20000 ::= \"x\""), "x") == Verdict::complete);
}

TEST_CASE("grammar: alternatives that share their beginnings take the texts of each, and no others") {
    std::mt19937 random(11);
    const auto pick = [&](std::initializer_list<const char*> list) {
        return std::string(list.begin()[random() % list.size()]);
    };
    // Rules refer to later ones, and to any behind a character.
    const auto sequence = [&](int rule) {
        std::string out = pick({"", "\"a\"", "\"a\" ", "\"ab\""});
        for (size_t parts = random() % 3; parts-- > 0;) {
            const std::string later = fmt::format("r{}", std::min<size_t>(rule + 1 + random() % 3, 7));
            out +=
                " " + pick({"\"a\"", "[ab]", "\"b\"", "(\"a\" | \"ab\")", "\"b\"*", "[a-b]{1,2}", "\"a\"?"});
            if (random() % 2 == 0) out += " " + later + pick({"", "?", "*"});
            if (random() % 6 == 0) out += fmt::format(" \"c\" r{}", random() % 7);
        }
        return out.find_first_not_of(' ') == out.npos ? std::string("\"\"") : out;
    };
    size_t taken = 0;
    for (int round = 0; round < 300; ++round) {
        std::string rules = "r7 ::= \"a\"\n";
        std::vector<std::string> alternatives;
        for (int rule = 6; rule >= 0; --rule) {
            alternatives.clear();
            for (size_t i = 2 + random() % 3; i-- > 0;) alternatives.push_back(sequence(rule));
            rules += fmt::format("r{} ::= {}\n", rule, fmt::join(alternatives, " | "));
        }
        const Result<Grammar> all = Grammar::parse("root ::= r0\n" + rules);
        if (!all.ok()) continue;
        std::vector<Grammar> each;
        for (const std::string& one : alternatives) {
            Result<Grammar> alone = Grammar::parse("root ::= " + one + "\n" + rules);
            if (alone.ok()) each.push_back(std::move(alone).value());
        }
        for (int code = 0; code < 243; ++code) {
            std::string text;
            for (int rest = code, i = 0; i < 5; ++i, rest /= 3) text += "abc"[rest % 3];
            text.resize(size_t(code) % 6);
            const bool any = std::any_of(each.begin(), each.end(), [&](const Grammar& one) {
                return verdict(one, text) == Verdict::complete;
            });
            taken += any ? 1 : 0;
            REQUIRE_MESSAGE((verdict(all.value(), text) == Verdict::complete) == any, text, " by ", rules);
        }
    }
    CHECK(taken > 1000);
}

TEST_CASE("grammar: the time for reading one grows as its size, on one line and on many") {
    for (const char* end : {" ", "\nr ::= "}) {
        std::string text = "a ::= \"x\"\nroot ::= ";
        for (int i = 0; i < 300'000; ++i)
            text += i % 10 == 9 && end[0] == '\n' ? "a\nr" + fmt::to_string(i) + " ::= " : "a ";
        const std::clock_t begin = std::clock();
        CHECK(Grammar::parse(text).ok());
        CHECK(double(std::clock() - begin) / CLOCKS_PER_SEC < 10);
    }
}

TEST_CASE("grammar: random bytes match . exactly where they are UTF-8") {
    const Grammar grammar = parsed("root ::= .*");
    std::mt19937 random(5);
    for (int round = 0; round < 2000; ++round) {
        std::string text;
        for (size_t i = random() % 5; i-- > 0;) text += char(random() % 4 ? 0x80 + random() % 128 : random());
        CHECK((verdict(grammar, text) == Verdict::complete) == is_valid_utf8(text));
    }
}
