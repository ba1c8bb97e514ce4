// Tests: the words after "is".
#include "text/jinja/arguments.h"
#include "text/tokens/unicode.h"

#include <optional>

namespace redline::jinja {
namespace {

// A sequence in the sense of jinja2: it has a length and elements by index or key.
bool is_sequence(const Value& value) {
    switch (value.kind()) {
        case Kind::undefined:
        case Kind::text:
            return true;
        case Kind::dict:
            return !value.dict().is_namespace;
        case Kind::list:
            return value.list().kind <= ListKind::range;
        default:
            return false;
    }
}

bool is_iterable(const Value& value) {
    return is_sequence(value) || value.is(Kind::list) || value.is(Kind::loop);
}

bool is_callable(const Value& value) {
    return value.is(Kind::function) || value.is(Kind::loop) || value.is_undefined();
}

// Evaluates a test without an argument; empty where there is no such test.
std::optional<bool> plain_test(std::string_view name, const Value& v) {
    if (name == "defined") return !v.is_undefined();
    if (name == "undefined") return v.is_undefined();
    if (name == "none") return v.is_none();
    if (name == "boolean") return v.is(Kind::boolean);
    if (name == "true") return v.is(Kind::boolean) && v.as_boolean();
    if (name == "false") return v.is(Kind::boolean) && !v.as_boolean();
    if (name == "integer") return v.is(Kind::integer);
    if (name == "float") return v.is(Kind::real);
    if (name == "number") return v.is_number();
    if (name == "string") return v.is_text();
    if (name == "mapping") return v.is_mapping();
    if (name == "sequence") return is_sequence(v);
    if (name == "iterable") return is_iterable(v);
    if (name == "callable") return is_callable(v);
    if (name == "escaped") return false;
    return std::nullopt;
}

// The operator of a test that compares.
std::string_view comparison_sign(std::string_view name) {
    static constexpr std::pair<std::string_view, std::string_view> kNames[] = {
        {"==", "=="}, {"eq", "=="}, {"equalto", "=="},    {"!=", "!="}, {"ne", "!="}, {">", ">"},
        {"gt", ">"},  {">=", ">="}, {"greaterthan", ">"}, {"ge", ">="}, {"<", "<"},   {"lt", "<"},
        {"<=", "<="}, {"le", "<="}, {"lessthan", "<"},    {"in", "in"}};
    for (const auto& [known, sign] : kNames)
        if (known == name) return sign;
    return {};
}

Result<bool> remainder_test(std::string_view name, Store& store, const Value& v, const Value& divisor) {
    if (name == "odd" || name == "even") {
        const Value rest = RL_TRY(arithmetic(store, "%", v, Value::integer(2)));
        return equal(store, rest, Value::integer(name == "odd"));
    }
    return equal(store, RL_TRY(arithmetic(store, "%", v, divisor)), Value::integer(0));
}

bool is_same(Store& store, const Value& a, const Value& b) {
    if (a.kind() != b.kind()) return false;
    if (a.is(Kind::list)) return &a.list() == &b.list();
    if (a.is(Kind::dict)) return &a.dict() == &b.dict();
    return equal(store, a, b);
}

}  // namespace

Result<bool> Interpreter::test(std::string_view name, const Value& subject, const Arguments& arguments) {
    if (const std::optional<bool> plain = plain_test(name, subject)) {
        RL_TRY(bind(arguments, {}));
        return *plain;
    }
    if (name == "lower" || name == "upper") {
        const Value text = to_text_value(store_, subject);
        RL_TRY(bind(arguments, {}));
        return RL_TRY(find_text_method(name == "lower" ? "islower" : "isupper")(*this, text, {}))
            .as_boolean();
    }
    if (name == "odd" || name == "even") {
        RL_TRY(bind(arguments, {}));
        return remainder_test(name, store_, subject, {});
    }
    const std::string_view sign = comparison_sign(name);
    if (sign.empty() && name != "divisibleby" && name != "sameas")
        return error("there is no test \"{}\"", printable(name));
    const Value other = RL_TRY(bind(arguments, {"value"}, 1))[0];
    if (name == "divisibleby") return remainder_test(name, store_, subject, other);
    if (name == "sameas") return is_same(store_, subject, other);
    return compare_by(store_, sign, subject, other);
}

}  // namespace redline::jinja
