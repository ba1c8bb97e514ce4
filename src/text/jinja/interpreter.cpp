#include "text/jinja/interpreter.h"

#include "text/jinja/arguments.h"
#include "text/tokens/unicode.h"

#include <algorithm>

namespace redline::jinja {

void Scope::set(std::string_view name, const Value& value) {
    for (auto& entry : names)
        if (entry.first == name) {
            entry.second = value;
            return;
        }
    names.emplace_back(name, value);
}

const Value* Scope::find(std::string_view name) const {
    for (const Scope* scope = this; scope; scope = scope->parent.get())
        for (const auto& entry : scope->names)
            if (entry.first == name) return &entry.second;
    return nullptr;
}

// Enters a scope inside the current one, or inside another, and leaves it when destroyed.
class Interpreter::Nesting {
public:
    explicit Nesting(Interpreter& interpreter) : Nesting(interpreter, interpreter.scope_) {}
    Nesting(Interpreter& interpreter, const std::shared_ptr<Scope>& parent)
        : interpreter_(interpreter), before_(interpreter.scope_) {
        interpreter.store_.reserve(sizeof(Scope));
        interpreter.scope_ = std::make_shared<Scope>(Scope{parent, {}});
    }
    ~Nesting() { interpreter_.scope_ = before_; }
    Nesting(const Nesting&) = delete;
    Nesting& operator=(const Nesting&) = delete;

private:
    Interpreter& interpreter_;
    std::shared_ptr<Scope> before_;
};

Result<Text> Interpreter::run(const Node& root, const Dict& variables) {
    auto all = std::make_shared<Scope>();
    for (const auto& [name, value] : variables.entries)
        if (name.is_text()) all->names.emplace_back(name.bytes(), value);
    scope_ = std::make_shared<Scope>(Scope{std::move(all), {}});
    TextBuilder out(store_);
    RL_TRY(execute(root, out));
    RL_TRY(store_.check());
    return out.take_text();
}

Status Interpreter::enter(const Node& node) {
    store_.step();
    if (!store_.within_limits()) return located(node.at, store_.check().error());
    if (depth_ >= store_.limits().depth)
        return located(node.at, error("calls and expressions are nested deeper than {} levels, as in a macro "
                                      "that calls itself without end",
                                      store_.limits().depth));
    return {};
}

Result<Interpreter::Flow> Interpreter::execute(const Node& node, TextBuilder& out) {
    RL_TRY(enter(node));
    ++depth_;
    Result<Flow> flow = execute_kind(node, out);
    --depth_;
    if (out.size() > store_.limits().output)
        return located(node.at, error("the template writes more than {} MiB", store_.limits().output >> 20));
    return flow;
}

Result<Interpreter::Flow> Interpreter::execute_kind(const Node& node, TextBuilder& out) {
    switch (node.kind) {
        case NodeKind::data:
            out.add(node.value.as_text());
            break;
        case NodeKind::output:
            out.add(RL_TRY(evaluate(node[0])));
            break;
        case NodeKind::block:
            return execute_block(node, out);
        case NodeKind::branches:
            return execute_branches(node, out);
        case NodeKind::loop: {
            const Value iterable = RL_TRY(evaluate(node[1]));
            const std::vector<Value> items = RL_TRY(loop_items(node, iterable));
            RL_TRY(execute_loop(node, items, 0, out));
            break;
        }
        case NodeKind::assign: {
            const Value value = RL_TRY(evaluate(node[1]));
            RL_TRY(assign(node[0], value));
            break;
        }
        case NodeKind::capture: {
            Value text = RL_TRY(captured(node[1]));
            if (node.has(2)) text = RL_TRY(apply_filters(node[2], text));
            RL_TRY(assign(node[0], text));
            break;
        }
        case NodeKind::macro:
            scope_->set(node.name, macro_value(node));
            break;
        case NodeKind::call_block:
            RL_TRY(execute_call_block(node, out));
            break;
        case NodeKind::filtered: {
            const Value text = RL_TRY(captured(node[1]));
            out.add(RL_TRY(apply_filters(node[0], text)));
            break;
        }
        case NodeKind::with:
            RL_TRY(execute_with(node, out));
            break;
        case NodeKind::scope: {
            const Nesting nesting(*this);
            return execute(node[0], out);
        }
        case NodeKind::evaluate:
            RL_TRY(evaluate(node[0]));
            break;
        case NodeKind::leave:
            return Flow::leave;
        case NodeKind::proceed:
            return Flow::proceed;
        default:
            return located(node.at, error("an expression stands where a statement is expected"));
    }
    return Flow::next;
}

Result<Interpreter::Flow> Interpreter::execute_block(const Node& node, TextBuilder& out) {
    for (const NodePtr& statement : node.children) {
        const Flow flow = RL_TRY(execute(*statement, out));
        if (flow != Flow::next) return flow;
    }
    return Flow::next;
}

Result<Interpreter::Flow> Interpreter::execute_branches(const Node& node, TextBuilder& out) {
    const size_t fallback = node.children.size() - 1;
    for (size_t i = 0; i < fallback; i += 2)
        if (truth(RL_TRY(evaluate(node[i])))) return execute(node[i + 1], out);
    return node.has(fallback) ? execute(node[fallback], out) : Flow::next;
}

// The elements that the loop's "if" accepts.
Result<std::vector<Value>> Interpreter::loop_items(const Node& node, const Value& iterable) {
    Result<std::vector<Value>> all = elements(store_, iterable);
    if (!all) return located(node[1].at, all.error());
    if (!node.has(2)) return all;
    std::vector<Value> kept;
    for (const Value& item : all.value()) {
        const Nesting nesting(*this);
        RL_TRY(assign(node[0], item));
        if (truth(RL_TRY(evaluate(node[2])))) kept.push_back(item);
    }
    return kept;
}

Status Interpreter::execute_loop(const Node& node, const std::vector<Value>& items, size_t depth,
                                 TextBuilder& out) {
    if (items.empty()) {
        const Nesting nesting(*this);
        if (node.has(4)) RL_TRY(execute(node[4], out));
        return {};
    }
    Loop* loop = store_.loop();
    loop->items = items;
    loop->depth = depth;
    if (node.flag) {
        loop->statement = &node;
        loop->scope = scope_;
    }
    for (size_t i = 0; i < items.size(); ++i) {
        loop->index = i;
        const Nesting nesting(*this);
        scope_->set("loop", Value::of(loop));
        RL_TRY(assign(node[0], items[i]));
        if (RL_TRY(execute(node[3], out)) == Flow::leave) break;
    }
    return {};
}

Status Interpreter::execute_with(const Node& node, TextBuilder& out) {
    const size_t last = node.children.size() - 1;
    std::vector<Value> values;
    for (size_t i = 1; i < last; i += 2) values.push_back(RL_TRY(evaluate(node[i])));
    const Nesting nesting(*this);
    for (size_t i = 0; i < values.size(); ++i) RL_TRY(assign(node[2 * i], values[i]));
    RL_TRY(execute(node[last], out));
    return {};
}

Result<Value> Interpreter::captured(const Node& block) {
    TextBuilder out(store_);
    const Nesting nesting(*this);
    RL_TRY(execute(block, out));
    return out.take();
}

Status Interpreter::assign(const Node& target, const Value& value) {
    if (target.kind == NodeKind::variable) {
        scope_->set(target.name, value);
        return {};
    }
    if (target.kind == NodeKind::attribute) {
        const Value space = RL_TRY(evaluate(target[0]));
        if (!space.is(Kind::dict) || !space.dict().is_namespace)
            return located(target.at,
                           error("an attribute can be set of a namespace only, not of a value of type {}",
                                 type_name(space)));
        space.dict().set(store_, Value::literal(target.name), value);
        return {};
    }
    Result<std::vector<Value>> parts = elements(store_, value);
    if (!parts) return located(target.at, parts.error());
    if (parts->size() != target.children.size())
        return located(target.at,
                       error("{} values cannot be given to {} names", parts->size(), target.children.size()));
    for (size_t i = 0; i < parts->size(); ++i) RL_TRY(assign(target[i], parts.value()[i]));
    return {};
}

// ---- macros ----

Value Interpreter::macro_value(const Node& node) {
    Function function;
    function.name = node.name;
    function.macro = &node;
    function.scope = scope_;
    return Value::of(store_.function(std::move(function)));
}

Status Interpreter::execute_call_block(const Node& node, TextBuilder& out) {
    const Node& call_node = node[0];
    const Value function = RL_TRY(evaluate(call_node[0]));
    Arguments arguments = RL_TRY(evaluate_arguments(call_node));
    arguments.named.emplace_back("caller", macro_value(node[1]));
    Result<Value> text = call(function, arguments);
    if (!text)
        return function.is(Kind::function) && function.function().macro ? text.error()
                                                                        : located(call_node.at, text.error());
    out.add(text.value());
    return {};
}

// Binds arguments beyond the parameters in the macro's scope, which is the current one.
Status Interpreter::bind_further(const Node& macro, std::vector<Value> further, Dict& named) {
    if (!further.empty() && !macro.takes_varargs)
        return located(macro.at, error("macro {} takes {} values at most", macro.name, macro.names.size()));
    if (macro.takes_caller) {
        const Value* caller = named.find(store_, "caller");
        scope_->set("caller", caller ? *caller : Value::undefined(&macro.name));
        std::erase_if(named.entries, [](const auto& entry) { return entry.first.bytes() == "caller"; });
    }
    if (!named.entries.empty() && !macro.takes_kwargs)
        return located(macro.at, error("macro {} has no parameter \"{}\"", macro.name,
                                       printable(named.entries[0].first.bytes())));
    scope_->set("varargs", store_.list(std::move(further), ListKind::tuple));
    scope_->set("kwargs", Value::of(&named));
    return {};
}

Status Interpreter::bind_parameters(const Node& macro, const Arguments& arguments) {
    const size_t parameters = macro.names.size();
    const size_t without_default = parameters - (macro.children.size() - 1);
    std::vector<const Value*> given(parameters);
    std::vector<Value> further;
    for (size_t i = 0; i < arguments.positional.size(); ++i) {
        if (i < parameters)
            given[i] = &arguments.positional[i];
        else
            further.push_back(arguments.positional[i]);
    }
    Dict* named = store_.dict();
    for (const auto& argument : arguments.named) {
        const auto at = std::find(macro.names.begin(), macro.names.end(), argument.first);
        if (at == macro.names.end()) {
            named->set(store_, Value::literal(argument.first), argument.second);
            continue;
        }
        const Value*& place = given[size_t(at - macro.names.begin())];
        if (place) return located(macro.at, error("macro {} got two values for \"{}\"", macro.name, *at));
        place = &argument.second;
    }
    RL_TRY(bind_further(macro, std::move(further), *named));
    for (size_t i = 0; i < parameters; ++i) {
        if (given[i])
            scope_->set(macro.names[i], *given[i]);
        else if (i < without_default)
            scope_->set(macro.names[i], Value::undefined(&macro.names[i]));
        else
            scope_->set(macro.names[i], RL_TRY(evaluate(macro[1 + i - without_default])));
    }
    return {};
}

Result<Value> Interpreter::call_macro(const Function& function, const Arguments& arguments) {
    const Node& macro = *static_cast<const Node*>(function.macro);
    const Nesting nesting(*this, function.scope);
    RL_TRY(bind_parameters(macro, arguments));
    TextBuilder out(store_);
    RL_TRY(execute(macro[0], out));
    return out.take();
}

Result<Value> Interpreter::call(const Value& value, const Arguments& arguments) {
    if (value.is(Kind::loop) && value.loop().statement) {
        if (arguments.positional.size() != 1 || !arguments.named.empty())
            return error("loop() takes one value, whose elements it goes through");
        const Loop& outer = value.loop();
        const Node& node = *static_cast<const Node*>(outer.statement);
        const Nesting nesting(*this, outer.scope);
        TextBuilder out(store_);
        const std::vector<Value> items = RL_TRY(loop_items(node, arguments.positional[0]));
        RL_TRY(execute_loop(node, items, outer.depth + 1, out));
        return out.take();
    }
    if (value.is_undefined()) return error("{} is undefined and cannot be called", value.undefined_name());
    if (!value.is(Kind::function)) return error("a value of type {} cannot be called", type_name(value));
    const Function& function = value.function();
    if (function.macro) return call_macro(function, arguments);
    RL_TRY(charge(function.self));
    return function.builtin(*this, function.self, arguments);
}

// Built-in functions may read the whole text that they are applied to.
Status Interpreter::charge(const Value& subject) {
    if (subject.is_text()) store_.scan(subject.bytes().size());
    return store_.check();
}

Result<Value> Interpreter::filter(std::string_view name, const Value& subject, const Arguments& arguments) {
    const Builtin builtin = find_filter(name);
    if (!builtin) return error("there is no filter \"{}\"", printable(name));
    RL_TRY(charge(subject));
    return builtin(*this, subject, arguments);
}

}  // namespace redline::jinja
