#include "text/jinja/parser.h"

#include <algorithm>

namespace redline::jinja {

static constexpr uint32_t kDeepestBrackets = 100;

// Every expression inside brackets passes through here, so that it checks the nesting.
Result<NodePtr> Parser::parse_expression(bool with_condition) {
    if (++nesting_ > kDeepestBrackets)
        return located(now().at, error("expressions are nested deeper than {} levels", kDeepestBrackets));
    NodePtr node = with_condition ? RL_TRY(parse_condition()) : RL_TRY(parse_or());
    --nesting_;
    return node;
}

Result<NodePtr> Parser::parse_list_of(bool with_condition) {
    NodePtr tuple = make(NodeKind::tuple, now().at);
    bool comma = false;
    while (true) {
        const bool ended = now().kind == Kind::block_end || now().kind == Kind::output_end || is_sign(")") ||
                           is_name("if") || is_name("recursive");
        if (tuple->children.size() && ended) break;
        add(*tuple, RL_TRY(parse_expression(with_condition)));
        if (!is_sign(",")) break;
        next();
        comma = true;
    }
    if (!comma) return std::move(tuple->children[0]);
    return checked(std::move(tuple));
}

Result<NodePtr> Parser::parse_condition() {
    NodePtr node = RL_TRY(parse_or());
    while (is_name("if")) {
        NodePtr condition = make(NodeKind::condition, now().at);
        next();
        add(*condition, std::move(node));
        add(*condition, RL_TRY(parse_or()));
        add(*condition, skip_name("else") ? RL_TRY(parse_expression()) : nullptr);
        node = RL_TRY(checked(std::move(condition)));
    }
    return node;
}

Result<NodePtr> Parser::parse_or() {
    NodePtr left = RL_TRY(parse_and());
    while (is_name("or")) {
        NodePtr node = make(NodeKind::either, now().at);
        next();
        add(*node, std::move(left));
        add(*node, RL_TRY(parse_and()));
        left = RL_TRY(checked(std::move(node)));
    }
    return left;
}

Result<NodePtr> Parser::parse_and() {
    NodePtr left = RL_TRY(parse_not());
    while (is_name("and")) {
        NodePtr node = make(NodeKind::both, now().at);
        next();
        add(*node, std::move(left));
        add(*node, RL_TRY(parse_not()));
        left = RL_TRY(checked(std::move(node)));
    }
    return left;
}

Result<NodePtr> Parser::parse_not() {
    if (!is_name("not")) return parse_comparison();
    NodePtr node = make(NodeKind::negation, now().at);
    next();
    if (++nesting_ > kDeepestBrackets) return located(node->at, error("\"not\" is repeated too often"));
    add(*node, RL_TRY(parse_not()));
    --nesting_;
    return checked(std::move(node));
}

Result<NodePtr> Parser::parse_comparison() {
    NodePtr first = RL_TRY(parse_sum());
    NodePtr node = make(NodeKind::comparison, first->at);
    add(*node, std::move(first));
    while (true) {
        static constexpr std::string_view kSigns[] = {"==", "!=", "<", "<=", ">", ">="};
        const bool sign = now().kind == Kind::sign &&
                          std::find(std::begin(kSigns), std::end(kSigns), now().text) != std::end(kSigns);
        const bool not_in = is_name("not") && after().kind == Kind::name && after().text == "in";
        if (!sign && !not_in && !is_name("in")) break;
        node->names.push_back(not_in ? "not in" : now().text);
        if (not_in) next();
        next();
        add(*node, RL_TRY(parse_sum()));
    }
    if (node->names.empty()) return std::move(node->children[0]);
    return checked(std::move(node));
}

Result<NodePtr> Parser::parse_left(Result<NodePtr> (Parser::*operand)(),
                                   std::initializer_list<std::string_view> signs) {
    NodePtr left = RL_TRY((this->*operand)());
    while (now().kind == Kind::sign && std::find(signs.begin(), signs.end(), now().text) != signs.end()) {
        NodePtr node = make(NodeKind::arithmetic, now().at);
        node->name = now().text;
        next();
        add(*node, std::move(left));
        add(*node, RL_TRY((this->*operand)()));
        left = RL_TRY(checked(std::move(node)));
    }
    return left;
}

Result<NodePtr> Parser::parse_sum() {
    return parse_left(&Parser::parse_concatenation, {"+", "-"});
}

Result<NodePtr> Parser::parse_concatenation() {
    NodePtr first = RL_TRY(parse_product());
    if (!is_sign("~")) return first;
    NodePtr node = make(NodeKind::concatenate, now().at);
    add(*node, std::move(first));
    while (skip_sign("~")) add(*node, RL_TRY(parse_product()));
    return checked(std::move(node));
}

Result<NodePtr> Parser::parse_product() {
    return parse_left(&Parser::parse_power, {"*", "/", "//", "%"});
}

Result<NodePtr> Parser::parse_power() {
    NodePtr left = RL_TRY(parse_unary());
    while (is_sign("**")) {
        NodePtr node = make(NodeKind::arithmetic, now().at);
        node->name = "**";
        next();
        add(*node, std::move(left));
        add(*node, RL_TRY(parse_unary()));
        left = RL_TRY(checked(std::move(node)));
    }
    return left;
}

Result<NodePtr> Parser::parse_unary(bool with_filter) {
    NodePtr node;
    if (is_sign("-") || is_sign("+")) {
        node = make(is_sign("-") ? NodeKind::minus : NodeKind::plus, now().at);
        next();
        if (++nesting_ > kDeepestBrackets) return located(node->at, error("signs are repeated too often"));
        add(*node, RL_TRY(parse_unary(false)));
        --nesting_;
        node = RL_TRY(checked(std::move(node)));
    } else {
        node = RL_TRY(parse_primary());
    }
    node = RL_TRY(parse_postfix(std::move(node)));
    return with_filter ? parse_filters(std::move(node)) : Result<NodePtr>(std::move(node));
}

static std::optional<Value> constant_of(const Lexeme& lexeme) {
    if (lexeme.text == "true" || lexeme.text == "True") return Value::boolean(true);
    if (lexeme.text == "false" || lexeme.text == "False") return Value::boolean(false);
    if (lexeme.text == "none" || lexeme.text == "None") return Value::none();
    return std::nullopt;
}

Result<NodePtr> Parser::parse_primary() {
    NodePtr node = make(NodeKind::constant, now().at);
    switch (now().kind) {
        case Kind::name:
            if (const std::optional<Value> constant = constant_of(now())) {
                node->value = *constant;
            } else {
                node->kind = NodeKind::variable;
                node->name = now().text;
            }
            next();
            return node;
        case Kind::text: {
            std::string text;
            for (; now().kind == Kind::text; next()) text += now().text;
            node->value = Value::literal(text);
            return node;
        }
        case Kind::integer:
            node->value = Value::integer(now().integer);
            next();
            return node;
        case Kind::real:
            node->value = Value::real(now().real);
            next();
            return node;
        default:
            break;
    }
    if (is_sign("(")) return parse_parentheses();
    if (is_sign("[")) return parse_list();
    if (is_sign("{")) return parse_dict();
    return unexpected("an expression");
}

Result<NodePtr> Parser::parse_parentheses() {
    const Position at = now().at;
    next();
    if (skip_sign(")")) return make(NodeKind::tuple, at);
    NodePtr node = RL_TRY(parse_list_of(true));
    RL_TRY(expect_sign(")"));
    return node;
}

Result<NodePtr> Parser::parse_list() {
    NodePtr node = make(NodeKind::list, now().at);
    next();
    while (!is_sign("]")) {
        if (node->children.size()) RL_TRY(expect_sign(","));
        if (is_sign("]")) break;
        add(*node, RL_TRY(parse_expression()));
    }
    next();
    return checked(std::move(node));
}

Result<NodePtr> Parser::parse_dict() {
    NodePtr node = make(NodeKind::dict, now().at);
    next();
    while (!is_sign("}")) {
        if (node->children.size()) RL_TRY(expect_sign(","));
        if (is_sign("}")) break;
        add(*node, RL_TRY(parse_expression()));
        RL_TRY(expect_sign(":"));
        add(*node, RL_TRY(parse_expression()));
    }
    next();
    return checked(std::move(node));
}

Result<NodePtr> Parser::parse_postfix(NodePtr node) {
    while (true) {
        if (is_sign(".")) {
            next();
            const Position at = now().at;
            if (now().kind == Kind::integer) {
                NodePtr element = make(NodeKind::subscript, at);
                NodePtr index = make(NodeKind::constant, at);
                index->value = Value::integer(now().integer);
                next();
                add(*element, std::move(node));
                add(*element, std::move(index));
                node = std::move(element);
            } else {
                NodePtr attribute = make(NodeKind::attribute, at);
                attribute->name = RL_TRY(take_name("an attribute's name"));
                add(*attribute, std::move(node));
                node = std::move(attribute);
            }
        } else if (is_sign("[")) {
            node = RL_TRY(parse_subscript(std::move(node)));
        } else if (is_sign("(")) {
            node = RL_TRY(parse_call(std::move(node)));
        } else {
            return node;
        }
        node = RL_TRY(checked(std::move(node)));
    }
}

Result<NodePtr> Parser::parse_filters(NodePtr node) {
    while (true) {
        if (skip_sign("|"))
            node = RL_TRY(parse_filter(std::move(node)));
        else if (is_name("is"))
            node = RL_TRY(parse_test(std::move(node)));
        else if (is_sign("(") && node)
            node = RL_TRY(parse_call(std::move(node)));
        else
            return node;
        node = RL_TRY(checked(std::move(node)));
    }
}

Result<NodePtr> Parser::parse_filter(NodePtr subject) {
    NodePtr node = make(NodeKind::filter, now().at);
    node->name = RL_TRY(take_name("a filter's name"));
    while (skip_sign(".")) node->name += "." + RL_TRY(take_name("a filter's name"));
    add(*node, std::move(subject));
    if (is_sign("(")) RL_TRY(parse_arguments(*node));
    return checked(std::move(node));
}

Result<NodePtr> Parser::parse_test(NodePtr subject) {
    const Position at = now().at;
    next();
    const bool negated = skip_name("not");
    NodePtr node = make(NodeKind::test, now().at);
    node->name = RL_TRY(take_name("a test's name"));
    add(*node, std::move(subject));
    const bool value = now().kind == Kind::name || now().kind == Kind::text || now().kind == Kind::integer ||
                       now().kind == Kind::real || is_sign("[") || is_sign("{");
    if (is_sign("(")) {
        RL_TRY(parse_arguments(*node));
    } else if (value && !is_name("else") && !is_name("or") && !is_name("and")) {
        if (is_name("is")) return located(now().at, error("tests cannot be chained with \"is\""));
        // "x is defined if y": these words cannot begin an argument of a test.
        static constexpr std::string_view kFollowing[] = {"if", "in", "not", "recursive"};
        const bool follows =
            now().kind == Kind::name &&
            std::find(std::begin(kFollowing), std::end(kFollowing), now().text) != std::end(kFollowing);
        if (!follows) {
            NodePtr argument = RL_TRY(parse_primary());
            add(*node, RL_TRY(parse_postfix(std::move(argument))));
        }
    }
    if (!negated) return checked(std::move(node));
    NodePtr negation = make(NodeKind::negation, at);
    add(*negation, std::move(node));
    return checked(std::move(negation));
}

Result<NodePtr> Parser::parse_subscript(NodePtr object) {
    NodePtr node = make(NodeKind::subscript, now().at);
    next();
    add(*node, std::move(object));
    NodePtr index = RL_TRY(parse_index());
    if (is_sign(",")) {
        NodePtr tuple = make(NodeKind::tuple, index->at);
        add(*tuple, std::move(index));
        while (skip_sign(",")) add(*tuple, RL_TRY(parse_index()));
        index = std::move(tuple);
    }
    RL_TRY(expect_sign("]"));
    add(*node, std::move(index));
    return node;
}

Result<NodePtr> Parser::parse_index() {
    const Position at = now().at;
    NodePtr first;
    if (!is_sign(":")) {
        first = RL_TRY(parse_expression());
        if (!is_sign(":")) return first;
    }
    NodePtr slice = make(NodeKind::slice, at);
    add(*slice, std::move(first));
    for (int i = 0; i < 2; ++i) {
        const bool more = skip_sign(":");
        const bool empty = !more || is_sign(":") || is_sign("]") || is_sign(",");
        add(*slice, empty ? nullptr : RL_TRY(parse_expression()));
    }
    return slice;
}

Result<NodePtr> Parser::parse_call(NodePtr function) {
    NodePtr node = make(NodeKind::call, function->at);
    add(*node, std::move(function));
    RL_TRY(parse_arguments(*node));
    return node;
}

Status Parser::parse_arguments(Node& call) {
    RL_TRY(expect_sign("("));
    for (bool first = true; !is_sign(")"); first = false) {
        if (!first) RL_TRY(expect_sign(","));
        if (is_sign(")")) break;
        if (is_sign("*") || is_sign("**"))
            return located(now().at, error("arguments with \"{}\" are not known here", now().text));
        const bool named = now().kind == Kind::name && after().kind == Kind::sign && after().text == "=";
        if (named) {
            call.names.push_back(now().text);
            next();
            next();
        } else if (call.names.size()) {
            return unexpected("an argument with a name, as the one before has,");
        }
        add(call, RL_TRY(parse_expression()));
    }
    next();
    return {};
}

}  // namespace redline::jinja
