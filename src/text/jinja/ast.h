// The tree of a template.
#pragma once

#include "text/jinja/lexer.h"
#include "text/jinja/value.h"

namespace redline::jinja {

enum class NodeKind : uint8_t {
    // Expressions. Children in brackets; "name" and "names" are the members of Node.
    constant,     // value
    variable,     // name
    list,         // [elements...]
    tuple,        // [elements...]
    dict,         // [key, value, key, value...]
    attribute,    // [object], name
    subscript,    // [object, index]
    slice,        // as an index: [begin, end, step], each may be null
    call,         // [function, arguments...], names: those of the last arguments
    filter,       // [subject or null, arguments...], name, names
    test,         // [subject, arguments...], name, names
    negation,     // [operand]: not
    minus,        // [operand]
    plus,         // [operand]
    both,         // [left, right]: and
    either,       // [left, right]: or
    comparison,   // [first, second...], names: the operators between them
    arithmetic,   // [left, right], name: the operator
    concatenate,  // [parts...]: ~
    condition,    // [then, if, else or null]
    // Statements.
    data,        // value
    output,      // [expression]
    block,       // [statements...]
    branches,    // [test, block, test, block, ..., block or null]
    loop,        // [target, iterable, filter or null, block, else block or null], flag: recursive
    assign,      // [target, value]
    capture,     // [target, block, filter or null]: a set block
    macro,       // [block, defaults...], name, names: the parameters
    call_block,  // [call, macro]
    filtered,    // [filter, block]
    with,        // [target, value, target, value, ..., block]
    scope,       // [block]: generation
    evaluate,    // [expression]: do
    leave,       // break
    proceed,     // continue
};

struct Node {
    NodeKind kind = NodeKind::constant;
    bool flag = false;
    // For a macro: which of these its body mentions, and so accepts.
    bool takes_caller = false;
    bool takes_varargs = false;
    bool takes_kwargs = false;
    Position at;
    uint32_t depth = 1;  // of the tree below this node
    std::string name;
    std::vector<std::string> names;
    Value value;
    std::vector<std::unique_ptr<Node>> children;

    const Node& operator[](size_t i) const { return *children[i]; }
    bool has(size_t i) const { return i < children.size() && children[i]; }
};
using NodePtr = std::unique_ptr<Node>;

}  // namespace redline::jinja
