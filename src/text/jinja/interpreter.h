// Runs a template's tree.
#pragma once

#include "text/jinja/ast.h"

#include <ctime>

namespace redline::jinja {

// The names of a block of the template, and the enclosing scope.
struct Scope {
    std::shared_ptr<Scope> parent;
    std::vector<std::pair<std::string_view, Value>> names;

    void set(std::string_view name, const Value& value);
    const Value* find(std::string_view name) const;
};

class Interpreter {
public:
    // `now` is the time for strftime_now().
    Interpreter(Store& store, const std::tm& now) : store_(store), now_(now) {}

    Result<Text> run(const Node& root, const Dict& variables);

    Store& store() { return store_; }
    const std::tm& now() const { return now_; }
    Result<Value> call(const Value& function, const Arguments& arguments);
    Result<Value> filter(std::string_view name, const Value& subject, const Arguments& arguments);
    Result<bool> test(std::string_view name, const Value& subject, const Arguments& arguments);

private:
    enum class Flow : uint8_t { next, leave, proceed };
    class Nesting;

    Status enter(const Node& node);
    Status charge(const Value& subject);

    // Statements (interpreter.cpp).
    Result<Flow> execute(const Node& node, TextBuilder& out);
    Result<Flow> execute_kind(const Node& node, TextBuilder& out);
    Result<Flow> execute_block(const Node& node, TextBuilder& out);
    Result<Flow> execute_branches(const Node& node, TextBuilder& out);
    Status execute_loop(const Node& node, const std::vector<Value>& items, size_t depth, TextBuilder& out);
    Status execute_call_block(const Node& node, TextBuilder& out);
    Status execute_with(const Node& node, TextBuilder& out);
    Result<std::vector<Value>> loop_items(const Node& node, const Value& iterable);
    Result<Value> captured(const Node& block);
    Status assign(const Node& target, const Value& value);
    Result<Value> call_macro(const Function& function, const Arguments& arguments);
    Status bind_further(const Node& macro, std::vector<Value> further, Dict& named);
    Status bind_parameters(const Node& macro, const Arguments& arguments);
    Value macro_value(const Node& node);

    // Expressions (evaluate.cpp).
    Result<Value> evaluate(const Node& node);
    Result<Value> evaluate_kind(const Node& node);
    Result<std::vector<Value>> evaluate_all(const Node& node, size_t first = 0);
    Result<Value> evaluate_dict(const Node& node);
    Result<Value> evaluate_attribute(const Node& node);
    Result<Value> evaluate_subscript(const Node& node);
    Result<Value> evaluate_slice(const Node& node, const Value& object);
    Result<Value> evaluate_call(const Node& node);
    Result<Value> evaluate_filter(const Node& node, const Value& subject);
    Result<Value> apply_filters(const Node& node, const Value& text);
    Result<Value> evaluate_comparison(const Node& node);
    Result<Value> evaluate_arithmetic(const Node& node);
    Result<Value> evaluate_concatenation(const Node& node);
    Result<Arguments> evaluate_arguments(const Node& node);

    Store& store_;
    std::tm now_;
    std::shared_ptr<Scope> scope_;
    uint32_t depth_ = 0;
};

// Attributes and subscripts (access.cpp).
Result<Value> attribute(Store& store, const Value& object, const std::string& name);
Result<Value> subscript(Store& store, const Value& object, const Value& index);
Result<Value> slice(Store& store, const Value& object, const Value& begin, const Value& end,
                    const Value& step);
// An attribute by a path such as "function.name" or "0.x", as filters accept them; `fallback` where a step is
// missing.
Result<Value> attribute_path(Store& store, const Value& object, std::string_view path, const Value& fallback);

// operators.cpp
Result<Value> arithmetic(Store& store, std::string_view sign, const Value& a, const Value& b);
Result<bool> compare_by(Store& store, std::string_view sign, const Value& a, const Value& b);
Result<bool> contains(Store& store, const Value& container, const Value& item);
// Formats like Python's % on texts: "%s is %d" % (...).
Result<Value> format_percent(Store& store, const Text& format, const Value& values);

// These return null where there is none of that name.
Builtin find_filter(std::string_view name);
Builtin find_text_method(std::string_view name);
Builtin find_list_method(std::string_view name);
Builtin find_dict_method(std::string_view name);
Builtin find_global(std::string_view name);

}  // namespace redline::jinja
