#include "text/jinja/parser.h"

#include "text/tokens/unicode.h"

#include <algorithm>

namespace redline::jinja {

Result<NodePtr> parse_template(std::string_view source) {
    return Parser(RL_TRY(cut_template(source))).parse();
}

Result<NodePtr> Parser::parse() {
    return parse_until({});
}

bool Parser::skip_sign(std::string_view sign) {
    const bool found = is_sign(sign);
    if (found) next();
    return found;
}

bool Parser::skip_name(std::string_view name) {
    const bool found = is_name(name);
    if (found) next();
    return found;
}

Error Parser::unexpected(std::string_view expected) const {
    std::string_view got = now().text;
    switch (now().kind) {
        case Kind::block_end:
            got = "%}";
            break;
        case Kind::output_end:
            got = "}}";
            break;
        case Kind::end:
            got = "the end of the template";
            break;
        case Kind::integer:
        case Kind::real:
            got = "a number";
            break;
        default:
            break;
    }
    return located(now().at, error("{} is expected, not \"{}\"", expected, printable(got.substr(0, 60))));
}

Status Parser::expect_sign(std::string_view sign) {
    return skip_sign(sign) ? Status() : unexpected(fmt::format("\"{}\"", sign));
}

Status Parser::expect_name(std::string_view name) {
    return skip_name(name) ? Status() : unexpected(fmt::format("\"{}\"", name));
}

Result<std::string> Parser::take_name(std::string_view what) {
    if (now().kind != Kind::name) return unexpected(what);
    std::string name = now().text;
    next();
    return name;
}

Status Parser::end_block() {
    if (now().kind != Kind::block_end) return unexpected("\"%}\"");
    next();
    return {};
}

NodePtr Parser::make(NodeKind kind, Position at) const {
    auto node = std::make_unique<Node>();
    node->kind = kind;
    node->at = at;
    return node;
}

void Parser::add(Node& node, NodePtr child) {
    if (child) node.depth = std::max(node.depth, child->depth + 1);
    node.children.push_back(std::move(child));
}

Result<NodePtr> Parser::checked(NodePtr node) const {
    if (node->depth > kDeepestTree)
        return located(node->at, error("the template is nested deeper than {} levels", kDeepestTree));
    return node;
}

static bool is_end(const std::string& name, std::initializer_list<std::string_view> ends) {
    return std::find(ends.begin(), ends.end(), name) != ends.end();
}

// Parses statements up to a tag that begins with one of `ends`, whose name is then the current lexeme.
Result<NodePtr> Parser::parse_until(std::initializer_list<std::string_view> ends) {
    NodePtr block = make(NodeKind::block, now().at);
    if (++nesting_ > kDeepestTree / 4) return located(now().at, error("blocks are nested too deeply"));
    while (now().kind != Kind::end) {
        if (now().kind == Kind::data) {
            NodePtr data = make(NodeKind::data, now().at);
            data->value = Value::literal(now().text);
            add(*block, std::move(data));
            next();
        } else if (now().kind == Kind::output_begin) {
            NodePtr output = make(NodeKind::output, now().at);
            next();
            add(*output, RL_TRY(parse_list_of(true)));
            if (now().kind != Kind::output_end) return unexpected("\"}}\"");
            next();
            add(*block, std::move(output));
        } else {
            next();
            if (now().kind == Kind::name && is_end(now().text, ends)) break;
            add(*block, RL_TRY(parse_statement()));
        }
    }
    --nesting_;
    if (now().kind == Kind::end && ends.size())
        return unexpected(fmt::format("{{% {} %}}", fmt::join(ends, " or ")));
    return checked(std::move(block));
}

// Like parse_until(), after the end of the tag that opens the block.
Result<NodePtr> Parser::parse_body(std::initializer_list<std::string_view> ends) {
    RL_TRY(end_block());
    return parse_until(ends);
}

Result<NodePtr> Parser::parse_statement() {
    const Position at = now().at;
    const std::string name = RL_TRY(take_name("the name of a statement"));
    if (name == "for") return parse_for();
    if (name == "if") return parse_if();
    if (name == "set") return parse_set();
    if (name == "macro") return parse_macro();
    if (name == "call") return parse_call_block();
    if (name == "filter") return parse_filter_block();
    if (name == "with") return parse_with();
    if (name == "break" || name == "continue") {
        if (!loops_) return located(at, error("\"{}\" stands outside of a loop", name));
        NodePtr node = make(name == "break" ? NodeKind::leave : NodeKind::proceed, at);
        RL_TRY(end_block());
        return node;
    }
    if (name == "do") {
        NodePtr node = make(NodeKind::evaluate, at);
        add(*node, RL_TRY(parse_list_of(true)));
        RL_TRY(end_block());
        return node;
    }
    if (name == "generation") {
        NodePtr node = make(NodeKind::scope, at);
        add(*node, RL_TRY(parse_body({"endgeneration"})));
        next();
        RL_TRY(end_block());
        return node;
    }
    return located(at, error("\"{}\" is no statement that chat templates know", printable(name)));
}

Result<NodePtr> Parser::parse_for() {
    NodePtr loop = make(NodeKind::loop, now().at);
    add(*loop, RL_TRY(parse_target(true)));
    RL_TRY(expect_name("in"));
    add(*loop, RL_TRY(parse_list_of(false)));
    add(*loop, skip_name("if") ? RL_TRY(parse_expression()) : nullptr);
    loop->flag = skip_name("recursive");
    ++loops_;
    add(*loop, RL_TRY(parse_body({"else", "endfor"})));
    --loops_;
    if (skip_name("else"))
        add(*loop, RL_TRY(parse_body({"endfor"})));
    else
        add(*loop, nullptr);
    next();
    RL_TRY(end_block());
    return checked(std::move(loop));
}

Result<NodePtr> Parser::parse_if() {
    NodePtr node = make(NodeKind::branches, now().at);
    do {
        add(*node, RL_TRY(parse_list_of(false)));
        add(*node, RL_TRY(parse_body({"elif", "else", "endif"})));
    } while (skip_name("elif"));
    if (skip_name("else"))
        add(*node, RL_TRY(parse_body({"endif"})));
    else
        add(*node, nullptr);
    next();
    RL_TRY(end_block());
    return checked(std::move(node));
}

// A target of an assignment: a name, an attribute of a namespace, or several targets in parentheses.
Result<NodePtr> Parser::parse_one_target(bool in_loop) {
    if (skip_sign("(")) {
        if (++nesting_ > kDeepestTree / 4) return located(now().at, error("targets are nested too deeply"));
        NodePtr inner = RL_TRY(parse_target(in_loop, true));
        RL_TRY(expect_sign(")"));
        --nesting_;
        return inner;
    }
    NodePtr target = make(NodeKind::variable, now().at);
    target->name = RL_TRY(take_name("a name to assign to"));
    static constexpr std::string_view kConstants[] = {"true", "false", "none", "True", "False", "None"};
    if (std::find(std::begin(kConstants), std::end(kConstants), target->name) != std::end(kConstants))
        return located(target->at, error("\"{}\" cannot be assigned to", target->name));
    if (in_loop || !skip_sign(".")) return target;
    NodePtr attribute = make(NodeKind::attribute, target->at);
    add(*attribute, std::move(target));
    attribute->name = RL_TRY(take_name("an attribute's name"));
    return attribute;
}

// One target, or several with commas between: a tuple. In parentheses a comma may end it, and makes a tuple
// of a single target.
Result<NodePtr> Parser::parse_target(bool in_loop, bool enclosed) {
    NodePtr tuple = make(NodeKind::tuple, now().at);
    bool comma = false;
    do {
        if (comma && enclosed && is_sign(")")) break;
        add(*tuple, RL_TRY(parse_one_target(in_loop || enclosed)));
        comma = skip_sign(",");
    } while (comma);
    if (tuple->children.size() == 1 && !comma) return std::move(tuple->children[0]);
    return tuple;
}

Result<NodePtr> Parser::parse_set() {
    const Position at = now().at;
    NodePtr target = RL_TRY(parse_target(false));
    if (skip_sign("=")) {
        NodePtr node = make(NodeKind::assign, at);
        add(*node, std::move(target));
        add(*node, RL_TRY(parse_list_of(true)));
        RL_TRY(end_block());
        return checked(std::move(node));
    }
    NodePtr node = make(NodeKind::capture, at);
    add(*node, std::move(target));
    NodePtr filter = is_sign("|") ? RL_TRY(parse_filters(nullptr)) : nullptr;
    add(*node, RL_TRY(parse_body({"endset"})));
    add(*node, std::move(filter));
    next();
    RL_TRY(end_block());
    return checked(std::move(node));
}

Status Parser::parse_parameters(Node& macro) {
    RL_TRY(expect_sign("("));
    while (!is_sign(")")) {
        if (macro.names.size()) RL_TRY(expect_sign(","));
        if (is_sign(")")) break;
        macro.names.push_back(RL_TRY(take_name("a parameter")));
        if (skip_sign("="))
            add(macro, RL_TRY(parse_expression()));
        else if (macro.children.size() > 1)
            return unexpected("a default, as the parameters before have one,");
    }
    next();
    return {};
}

static bool mentions_variable(const Node& node, std::string_view name) {
    if (node.kind == NodeKind::variable && node.name == name) return true;
    return std::any_of(node.children.begin(), node.children.end(),
                       [&](const NodePtr& child) { return child && mentions_variable(*child, name); });
}

static void set_body(Node& macro, NodePtr body) {
    macro.takes_caller = mentions_variable(*body, "caller");
    macro.takes_varargs = mentions_variable(*body, "varargs");
    macro.takes_kwargs = mentions_variable(*body, "kwargs");
    macro.depth = std::max(macro.depth, body->depth + 1);
    macro.children[0] = std::move(body);
}

Result<NodePtr> Parser::parse_macro() {
    NodePtr macro = make(NodeKind::macro, now().at);
    macro->name = RL_TRY(take_name("the macro's name"));
    add(*macro, nullptr);
    RL_TRY(parse_parameters(*macro));
    const uint32_t loops = std::exchange(loops_, 0);
    NodePtr body = RL_TRY(parse_body({"endmacro"}));
    loops_ = loops;
    set_body(*macro, std::move(body));
    next();
    RL_TRY(end_block());
    return checked(std::move(macro));
}

Result<NodePtr> Parser::parse_call_block() {
    NodePtr node = make(NodeKind::call_block, now().at);
    NodePtr macro = make(NodeKind::macro, now().at);
    macro->name = "caller";
    add(*macro, nullptr);
    if (is_sign("(")) RL_TRY(parse_parameters(*macro));
    NodePtr call = RL_TRY(parse_expression());
    if (call->kind != NodeKind::call) return located(call->at, error("a call block needs a call"));
    add(*node, std::move(call));
    const uint32_t loops = std::exchange(loops_, 0);
    NodePtr body = RL_TRY(parse_body({"endcall"}));
    loops_ = loops;
    set_body(*macro, std::move(body));
    add(*node, std::move(macro));
    next();
    RL_TRY(end_block());
    return checked(std::move(node));
}

Result<NodePtr> Parser::parse_filter_block() {
    NodePtr node = make(NodeKind::filtered, now().at);
    NodePtr first = RL_TRY(parse_filter(nullptr));
    add(*node, is_sign("|") ? RL_TRY(parse_filters(std::move(first))) : std::move(first));
    add(*node, RL_TRY(parse_body({"endfilter"})));
    next();
    RL_TRY(end_block());
    return checked(std::move(node));
}

Result<NodePtr> Parser::parse_with() {
    NodePtr node = make(NodeKind::with, now().at);
    while (now().kind != Kind::block_end) {
        if (node->children.size()) RL_TRY(expect_sign(","));
        add(*node, RL_TRY(parse_target(true)));
        RL_TRY(expect_sign("="));
        add(*node, RL_TRY(parse_expression()));
    }
    add(*node, RL_TRY(parse_body({"endwith"})));
    next();
    RL_TRY(end_block());
    return checked(std::move(node));
}

}  // namespace redline::jinja
