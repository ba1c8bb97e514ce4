#include "text/jinja/arguments.h"
#include "text/jinja/interpreter.h"

#include <algorithm>

namespace redline::jinja {

Result<Value> Interpreter::evaluate(const Node& node) {
    RL_TRY(enter(node));
    ++depth_;
    Result<Value> value = evaluate_kind(node);
    --depth_;
    return value;
}

static Result<Value> located_value(const Node& node, Result<Value> value) {
    return value ? value : located(node.at, value.error());
}

Result<Value> Interpreter::evaluate_kind(const Node& node) {
    switch (node.kind) {
        case NodeKind::constant:
            return node.value;
        case NodeKind::variable: {
            if (const Value* found = scope_->find(node.name)) return *found;
            const Builtin global = find_global(node.name);
            return global ? store_.method(node.name, global, Value()) : Value::undefined(&node.name);
        }
        case NodeKind::list:
            return store_.list(RL_TRY(evaluate_all(node)));
        case NodeKind::tuple:
            return store_.list(RL_TRY(evaluate_all(node)), ListKind::tuple);
        case NodeKind::dict:
            return evaluate_dict(node);
        case NodeKind::attribute:
            return evaluate_attribute(node);
        case NodeKind::subscript:
            return evaluate_subscript(node);
        case NodeKind::call:
            return evaluate_call(node);
        case NodeKind::filter:
            return evaluate_filter(node, node.has(0) ? RL_TRY(evaluate(node[0])) : Value());
        case NodeKind::test: {
            const Value subject = RL_TRY(evaluate(node[0]));
            const Result<bool> holds = test(node.name, subject, RL_TRY(evaluate_arguments(node)));
            if (!holds) return located(node.at, holds.error());
            return Value::boolean(holds.value());
        }
        case NodeKind::negation:
            return Value::boolean(!truth(RL_TRY(evaluate(node[0]))));
        case NodeKind::minus:
        case NodeKind::plus: {
            const Value value = RL_TRY(evaluate(node[0]));
            return located_value(
                node, arithmetic(store_, node.kind == NodeKind::minus ? "-" : "+",
                                 value.is(Kind::real) ? Value::real(-0.0) : Value::integer(0), value));
        }
        case NodeKind::both:
        case NodeKind::either: {
            Value left = RL_TRY(evaluate(node[0]));
            return truth(left) == (node.kind == NodeKind::both) ? evaluate(node[1]) : Result<Value>(left);
        }
        case NodeKind::comparison:
            return evaluate_comparison(node);
        case NodeKind::arithmetic:
            return evaluate_arithmetic(node);
        case NodeKind::concatenate:
            return evaluate_concatenation(node);
        case NodeKind::condition:
            if (truth(RL_TRY(evaluate(node[1])))) return evaluate(node[0]);
            return node.has(2) ? evaluate(node[2]) : Result<Value>(Value::undefined());
        default:
            break;
    }
    return located(node.at, error("a statement stands where an expression is expected"));
}

Result<std::vector<Value>> Interpreter::evaluate_all(const Node& node, size_t first) {
    std::vector<Value> values;
    for (size_t i = first; i < node.children.size(); ++i) values.push_back(RL_TRY(evaluate(node[i])));
    return values;
}

Result<Value> Interpreter::evaluate_dict(const Node& node) {
    Dict* dict = store_.dict();
    for (size_t i = 0; i < node.children.size(); i += 2) {
        const Value key = RL_TRY(evaluate(node[i]));
        if (key.is_mapping() || (key.is(Kind::list) && key.list().kind == ListKind::list))
            return located(node[i].at, error("a value of type {} cannot be a key", type_name(key)));
        dict->set(store_, key, RL_TRY(evaluate(node[i + 1])));
    }
    return Value::of(dict);
}

Result<Value> Interpreter::evaluate_attribute(const Node& node) {
    const Value object = RL_TRY(evaluate(node[0]));
    return located_value(node, attribute(store_, object, node.name));
}

Result<Value> Interpreter::evaluate_subscript(const Node& node) {
    const Value object = RL_TRY(evaluate(node[0]));
    if (node[1].kind == NodeKind::slice) return evaluate_slice(node[1], object);
    const Value index = RL_TRY(evaluate(node[1]));
    return located_value(node, subscript(store_, object, index));
}

Result<Value> Interpreter::evaluate_slice(const Node& node, const Value& object) {
    Value bounds[3] = {Value::none(), Value::none(), Value::none()};
    for (size_t i = 0; i < 3; ++i)
        if (node.has(i)) bounds[i] = RL_TRY(evaluate(node[i]));
    return located_value(node, slice(store_, object, bounds[0], bounds[1], bounds[2]));
}

// The arguments of a call, a filter or a test: all children but the first.
Result<Arguments> Interpreter::evaluate_arguments(const Node& node) {
    Arguments arguments;
    arguments.positional = RL_TRY(evaluate_all(node, 1));
    const size_t first = arguments.positional.size() - node.names.size();
    for (size_t i = 0; i < node.names.size(); ++i)
        arguments.named.emplace_back(node.names[i], std::move(arguments.positional[first + i]));
    arguments.positional.resize(first);
    return arguments;
}

Result<Value> Interpreter::evaluate_call(const Node& node) {
    const Value function = RL_TRY(evaluate(node[0]));
    const Arguments arguments = RL_TRY(evaluate_arguments(node));
    const bool macro = function.is(Kind::loop) || (function.is(Kind::function) && function.function().macro);
    // Errors inside a macro already have a place.
    return macro ? call(function, arguments) : located_value(node, call(function, arguments));
}

Result<Value> Interpreter::evaluate_filter(const Node& node, const Value& subject) {
    const Arguments arguments = RL_TRY(evaluate_arguments(node));
    return located_value(node, filter(node.name, subject, arguments));
}

// Applies filters one after another to `text`; the first has no subject.
Result<Value> Interpreter::apply_filters(const Node& node, const Value& text) {
    if (node.kind != NodeKind::filter) return located(node.at, error("only filters can stand here"));
    return evaluate_filter(node, node.has(0) ? RL_TRY(apply_filters(node[0], text)) : text);
}

Result<Value> Interpreter::evaluate_comparison(const Node& node) {
    Value left = RL_TRY(evaluate(node[0]));
    for (size_t i = 0; i < node.names.size(); ++i) {
        Value right = RL_TRY(evaluate(node[i + 1]));
        const Result<bool> holds = compare_by(store_, node.names[i], left, right);
        if (!holds) return located(node[i + 1].at, holds.error());
        if (!holds.value()) return Value::boolean(false);
        left = std::move(right);
    }
    return Value::boolean(true);
}

Result<Value> Interpreter::evaluate_arithmetic(const Node& node) {
    const Value left = RL_TRY(evaluate(node[0]));
    const Value right = RL_TRY(evaluate(node[1]));
    return located_value(node, arithmetic(store_, node.name, left, right));
}

Result<Value> Interpreter::evaluate_concatenation(const Node& node) {
    TextBuilder out(store_);
    for (const NodePtr& child : node.children) out.add(RL_TRY(evaluate(*child)));
    return out.take();
}

}  // namespace redline::jinja
