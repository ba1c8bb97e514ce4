// Parses a template's source into a tree.
#pragma once

#include "text/jinja/ast.h"

namespace redline::jinja {

// A tree deeper than this is refused, so that no source can exhaust the stack.
constexpr uint32_t kDeepestTree = 400;

// Returns a block of statements. The source must be valid UTF-8.
Result<NodePtr> parse_template(std::string_view source);

// Parses statements (parser.cpp) and expressions (parse_expression.cpp).
class Parser {
public:
    explicit Parser(std::vector<Lexeme> lexemes) : lexemes_(std::move(lexemes)) {}
    Result<NodePtr> parse();

private:
    using Kind = Lexeme::Kind;

    // The current lexeme; the last one stays.
    const Lexeme& now() const { return lexemes_[at_]; }
    const Lexeme& after() const { return lexemes_[std::min(at_ + 1, lexemes_.size() - 1)]; }
    bool is_sign(std::string_view sign) const { return now().kind == Kind::sign && now().text == sign; }
    bool is_name(std::string_view name) const { return now().kind == Kind::name && now().text == name; }
    void next() { at_ = std::min(at_ + 1, lexemes_.size() - 1); }
    bool skip_sign(std::string_view sign);
    bool skip_name(std::string_view name);
    Status expect_sign(std::string_view sign);
    Status expect_name(std::string_view name);
    Result<std::string> take_name(std::string_view what);
    Error unexpected(std::string_view expected) const;

    NodePtr make(NodeKind kind, Position at) const;
    // Adds a child; checked() verifies the depth of the tree.
    static void add(Node& node, NodePtr child);
    Result<NodePtr> checked(NodePtr node) const;

    // Statements.
    Result<NodePtr> parse_until(std::initializer_list<std::string_view> ends);
    Result<NodePtr> parse_body(std::initializer_list<std::string_view> ends);
    Result<NodePtr> parse_statement();
    Result<NodePtr> parse_for();
    Result<NodePtr> parse_if();
    Result<NodePtr> parse_set();
    Result<NodePtr> parse_macro();
    Result<NodePtr> parse_call_block();
    Result<NodePtr> parse_filter_block();
    Result<NodePtr> parse_with();
    Status parse_parameters(Node& macro);
    Result<NodePtr> parse_target(bool in_loop, bool enclosed = false);
    Result<NodePtr> parse_one_target(bool in_loop);
    Status end_block();

    // Expressions.
    Result<NodePtr> parse_expression(bool with_condition = true);
    Result<NodePtr> parse_list_of(bool with_condition);  // a, b: a tuple; a: no tuple
    Result<NodePtr> parse_condition();
    Result<NodePtr> parse_or();
    Result<NodePtr> parse_and();
    Result<NodePtr> parse_not();
    Result<NodePtr> parse_comparison();
    Result<NodePtr> parse_sum();
    Result<NodePtr> parse_concatenation();
    Result<NodePtr> parse_product();
    Result<NodePtr> parse_power();
    Result<NodePtr> parse_unary(bool with_filter = true);
    Result<NodePtr> parse_primary();
    Result<NodePtr> parse_parentheses();
    Result<NodePtr> parse_list();
    Result<NodePtr> parse_dict();
    Result<NodePtr> parse_postfix(NodePtr node);
    Result<NodePtr> parse_filters(NodePtr node);
    Result<NodePtr> parse_filter(NodePtr subject);
    Result<NodePtr> parse_test(NodePtr subject);
    Result<NodePtr> parse_subscript(NodePtr object);
    Result<NodePtr> parse_index();
    Result<NodePtr> parse_call(NodePtr function);
    Status parse_arguments(Node& call);
    Result<NodePtr> parse_left(Result<NodePtr> (Parser::*operand)(),
                               std::initializer_list<std::string_view> signs);

    std::vector<Lexeme> lexemes_;
    size_t at_ = 0;
    uint32_t nesting_ = 0;
    uint32_t loops_ = 0;
};

}  // namespace redline::jinja
