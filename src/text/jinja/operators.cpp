#include "text/jinja/arguments.h"

#include <cmath>

namespace redline::jinja {
namespace {

Error unsupported(std::string_view sign, const Value& a, const Value& b) {
    for (const Value* value : {&a, &b})
        if (value->is_undefined()) return error("{} is undefined", value->undefined_name());
    return error("\"{}\" is not defined between values of the types {} and {}", sign, type_name(a),
                 type_name(b));
}

Result<Value> integer_power(int64_t base, int64_t exponent) {
    if (exponent < 0) return Value::real(std::pow(double(base), double(exponent)));
    int64_t result = 1;
    bool overflow = false;
    while (exponent > 0 && !overflow) {
        if (exponent & 1) overflow = __builtin_mul_overflow(result, base, &result);
        exponent >>= 1;
        if (exponent) overflow |= __builtin_mul_overflow(base, base, &base);
    }
    if (overflow) return error("the result of \"**\" has more than 64 bits");
    return Value::integer(result);
}

// Rounds down, as Python does.
Result<Value> integer_division(std::string_view sign, int64_t a, int64_t b) {
    if (b == 0) return error("division by zero");
    if (sign == "/") return Value::real(double(a) / double(b));
    if (b == -1) {
        if (sign == "%") return Value::integer(0);
        if (a == INT64_MIN) return error("the result of \"//\" has more than 64 bits");
        return Value::integer(-a);
    }
    const bool down = a % b != 0 && (a < 0) != (b < 0);
    return Value::integer(sign == "%" ? a % b + (down ? b : 0) : a / b - down);
}

Result<Value> integer_arithmetic(std::string_view sign, int64_t a, int64_t b) {
    if (sign == "**") return integer_power(a, b);
    if (sign[0] == '/' || sign == "%") return integer_division(sign, a, b);
    int64_t result = 0;
    const bool overflow = sign == "+"   ? __builtin_add_overflow(a, b, &result)
                          : sign == "-" ? __builtin_sub_overflow(a, b, &result)
                                        : __builtin_mul_overflow(a, b, &result);
    if (overflow) return error("the result of \"{}\" has more than 64 bits", sign);
    return Value::integer(result);
}

Result<Value> real_arithmetic(std::string_view sign, double a, double b) {
    if (sign == "+") return Value::real(a + b);
    if (sign == "-") return Value::real(a - b);
    if (sign == "*") return Value::real(a * b);
    if (sign == "**") return Value::real(std::pow(a, b));
    if (b == 0.0) return error("division by zero");
    if (sign == "/") return Value::real(a / b);
    if (sign == "//") return Value::real(std::floor(a / b));
    const double rest = std::fmod(a, b);
    return Value::real(rest != 0.0 && (rest < 0) != (b < 0) ? rest + b : rest);
}

Result<Value> repeat(Store& store, const Value& value, int64_t count) {
    const uint64_t times = count < 0 ? 0 : uint64_t(count);
    uint64_t bytes = value.is_text() ? value.bytes().size() : value.list().items.size() * sizeof(Value);
    if (__builtin_mul_overflow(bytes, times, &bytes) || bytes > store.limits().bytes) {
        store.reserve(store.limits().bytes + 1);
        return store.check().error();
    }
    if (value.is_text()) {
        TextBuilder out(store);
        for (uint64_t i = 0; bytes && i < times; ++i) out.add(value.as_text());
        return out.take();
    }
    std::vector<Value> items;
    const std::vector<Value>& from = value.list().items;
    for (uint64_t i = 0; bytes && i < times; ++i) items.insert(items.end(), from.begin(), from.end());
    return store.list(std::move(items), value.list().kind);
}

bool is_sequence(const Value& value) {
    return value.is_text() || (value.is(Kind::list) && value.list().kind <= ListKind::group);
}

}  // namespace

Result<Value> arithmetic(Store& store, std::string_view sign, const Value& a, const Value& b) {
    if (a.is_integer() && b.is_integer()) return integer_arithmetic(sign, a.as_integer(), b.as_integer());
    if (a.is_number() && b.is_number()) return real_arithmetic(sign, a.as_real(), b.as_real());
    if (sign == "%" && a.is_text()) return format_percent(store, a.as_text(), b);
    if (sign == "*" && is_sequence(a) && b.is_integer()) return repeat(store, a, b.as_integer());
    if (sign == "*" && a.is_integer() && is_sequence(b)) return repeat(store, b, a.as_integer());
    if (sign != "+") return unsupported(sign, a, b);
    if (a.is_text() && b.is_text()) {
        TextBuilder out(store);
        out.add(a.as_text());
        out.add(b.as_text());
        return out.take();
    }
    const bool lists = a.is(Kind::list) && b.is(Kind::list) && a.list().kind == b.list().kind &&
                       a.list().kind <= ListKind::tuple;
    if (!lists) return unsupported(sign, a, b);
    std::vector<Value> items;
    const std::vector<Value>& left = a.list().items;
    const std::vector<Value>& right = b.list().items;
    if (!store.reserve((left.size() + right.size()) * sizeof(Value))) return store.check().error();
    items.insert(items.end(), left.begin(), left.end());
    items.insert(items.end(), right.begin(), right.end());
    return store.list(std::move(items), a.list().kind);
}

Result<bool> contains(Store& store, const Value& container, const Value& item) {
    if (container.is_text()) {
        if (!item.is_text())
            return error("only a text can be looked for in a text, not a value of type {}", type_name(item));
        if (!may_search(store, container.bytes(), item.bytes())) return store.check().error();
        return container.bytes().find(item.bytes()) != std::string_view::npos;
    }
    if (container.is_mapping()) return container.dict().find(store, item) != nullptr;
    if (container.is_undefined()) return false;
    if (!container.is(Kind::list))
        return error("a value of type {} cannot be searched with \"in\"", type_name(container));
    for (const Value& value : container.list().items)
        if (equal(store, value, item)) return true;
    return false;
}

Result<bool> compare_by(Store& store, std::string_view sign, const Value& a, const Value& b) {
    if (sign == "==") return equal(store, a, b);
    if (sign == "!=") return !equal(store, a, b);
    if (sign == "in") return contains(store, b, a);
    if (sign == "not in") return !RL_TRY(contains(store, b, a));
    if ((a.is(Kind::real) && std::isnan(a.as_real())) || (b.is(Kind::real) && std::isnan(b.as_real())))
        return false;
    const int order = RL_TRY(compare(store, a, b));
    if (sign == "<") return order < 0;
    if (sign == "<=") return order <= 0;
    return sign == ">" ? order > 0 : order >= 0;
}

// ---- % on texts ----

namespace {

struct Conversion {
    bool left = false;
    bool zero = false;
    bool plus = false;
    bool space = false;
    int64_t width = 0;
    int64_t precision = -1;
    char letter = 0;
};

constexpr int64_t kMostWidth = 10000;

class PercentFormat {
public:
    PercentFormat(Store& store, const Text& format, const Value& values)
        : store_(store), format_(format), values_(values), out_(store) {}

    Result<Value> run() {
        const std::string& bytes = format_.bytes;
        while (at_ < bytes.size()) {
            const size_t sign = std::min(bytes.find('%', at_), bytes.size());
            out_.add(format_, at_, sign);
            at_ = sign + 1;
            if (sign < bytes.size()) RL_TRY(convert());
        }
        if (is_tuple() && used_ < values_.list().items.size())
            return error("not all values are used by the format");
        const bool indexed = values_.is_mapping() || values_.is(Kind::list) || values_.is_undefined();
        if (!is_tuple() && used_ == 0 && !indexed) return error("not all values are used by the format");
        return out_.take();
    }

private:
    bool is_tuple() const { return values_.is(Kind::list) && values_.list().kind == ListKind::tuple; }
    char now() const { return at_ < format_.bytes.size() ? format_.bytes[at_] : '\0'; }

    Result<Value> next_value() {
        if (is_tuple()) {
            if (used_ >= values_.list().items.size())
                return error("the format wants more values than it gets");
            return values_.list().items[used_++];
        }
        if (used_++) return error("the format wants more values than it gets");
        return values_;
    }

    int64_t take_number() {
        int64_t number = 0;
        for (; now() >= '0' && now() <= '9'; ++at_)
            number = std::min(number * 10 + (now() - '0'), kMostWidth);
        return number;
    }

    Status convert() {
        Conversion c;
        std::optional<Value> value;
        if (now() == '(') {
            const size_t end = format_.bytes.find(')', at_);
            if (end == std::string::npos || !values_.is_mapping())
                return error("the format has a key, which needs \")\" and a dict of values");
            const Value key = part(store_, format_, at_ + 1, end);
            const Value* found = values_.dict().find(store_, key);
            if (!found) return error("the format's key \"{}\" is not in the dict", key.bytes());
            value = *found;
            at_ = end + 1;
        }
        for (bool flags = true; flags;) {
            const char f = now();
            c.left |= f == '-';
            c.zero |= f == '0';
            c.plus |= f == '+';
            c.space |= f == ' ';
            flags = f == '-' || f == '0' || f == '+' || f == ' ' || f == '#';
            at_ += flags;
        }
        c.width = take_number();
        if (now() == '.') {
            ++at_;
            c.precision = take_number();
        }
        c.letter = now();
        ++at_;
        if (c.letter == '%') {
            out_.add("%");
            return {};
        }
        if (!value) value = RL_TRY(next_value());
        return write(c, *value);
    }

    Status write(const Conversion& c, const Value& value) {
        if (c.letter == 's' || c.letter == 'r') {
            TextBuilder text(store_);
            if (c.letter == 's')
                write_text(text, value);
            else
                write_repr(text, value);
            Text shown = text.take_text();
            const size_t end =
                c.precision < 0 ? shown.bytes.size() : character_offset(shown.bytes, size_t(c.precision));
            pad(c, part(store_, shown, 0, end).as_text());
            return {};
        }
        if (!value.is_number())
            return error("the format \"%{}\" takes a number, not a value of type {}", printable_letter(c),
                         type_name(value));
        std::string digits = RL_TRY(number_text(c, value));
        const bool negative = digits.starts_with('-');
        if (negative) digits.erase(0, 1);
        const std::string sign = negative ? "-" : c.plus ? "+" : c.space ? " " : "";
        if (c.zero && !c.left && int64_t(digits.size() + sign.size()) < c.width)
            digits.insert(0, size_t(c.width) - digits.size() - sign.size(), '0');
        pad(c, Text{sign + digits, {}});
        return {};
    }

    static std::string printable_letter(const Conversion& c) {
        return c.letter > ' ' && c.letter < 0x7F ? std::string(1, c.letter) : "?";
    }

    Result<std::string> number_text(const Conversion& c, const Value& value) {
        const int precision = c.precision < 0 ? 6 : int(std::min<int64_t>(c.precision, 100));
        const double real = value.as_real();
        const auto whole = [&] {
            return value.is_integer() ? value.as_integer() : int64_t(std::trunc(real));
        };
        switch (c.letter) {
            case 'd':
            case 'i':
            case 'u':
                if (!value.is_integer() && !(std::abs(real) < 9e18))
                    return error("the number has more than 64 bits");
                return fmt::format("{}", whole());
            case 'x':
            case 'X':
            case 'o':
                if (!value.is_integer()) break;
                if (c.letter == 'o') return fmt::format("{:o}", whole());
                return c.letter == 'x' ? fmt::format("{:x}", whole()) : fmt::format("{:X}", whole());
            case 'f':
            case 'F':
                return fmt::format("{:.{}f}", real, precision);
            case 'e':
                return fmt::format("{:.{}e}", real, precision);
            case 'g':
                return fmt::format("{:.{}g}", real, precision);
            default:
                break;
        }
        return error("the format has no conversion \"%{}\" for this value", printable_letter(c));
    }

    void pad(const Conversion& c, const Text& text) {
        const auto size = int64_t(count_characters(text.bytes));
        const std::string blanks(size_t(std::max<int64_t>(0, c.width - size)), ' ');
        if (!c.left) out_.add(blanks);
        out_.add(text);
        if (c.left) out_.add(blanks);
    }

    Store& store_;
    const Text& format_;
    const Value& values_;
    TextBuilder out_;
    size_t at_ = 0;
    size_t used_ = 0;
};

}  // namespace

Result<Value> format_percent(Store& store, const Text& format, const Value& values) {
    return PercentFormat(store, format, values).run();
}

}  // namespace redline::jinja
