// Filters on texts and single values.
#include "text/jinja/filters.h"

#include "text/tokens/unicode.h"

#include <algorithm>
#include <charconv>
#include <cmath>

namespace redline::jinja {
namespace {

template <Case to>
Result<Value> cased(Interpreter& in, const Value& self, const Arguments& arguments) {
    RL_TRY(bind(arguments, {}));
    return change_case(in.store(), to_text_value(in.store(), self).as_text(), to);
}

// A word begins after white space, a hyphen or an opening bracket.
Result<Value> title(Interpreter& in, const Value& self, const Arguments& arguments) {
    RL_TRY(bind(arguments, {}));
    const Value subject = to_text_value(in.store(), self);
    const Text& text = subject.as_text();
    TextBuilder out(in.store());
    const auto is_border = [&](size_t at) {
        const Utf8Step step = utf8_step(text.bytes, at);
        return is_white_space(step.code) ||
               (step.code < 0x80 &&
                std::string_view("-({[<").find(char(step.code)) != std::string_view::npos);
    };
    for (size_t at = 0; at < text.bytes.size() && in.store().within_limits();) {
        const bool border = is_border(at);
        size_t end = at;
        while (end < text.bytes.size() && is_border(end) == border) end += character_bytes(text.bytes, end);
        const Value word = part(in.store(), text, at, end);
        out.add(border ? word : change_case(in.store(), word.as_text(), Case::capital));
        at = end;
    }
    return out.take();
}

Result<Value> trim(Interpreter& in, const Value& self, const Arguments& arguments) {
    const Value set = RL_TRY(bind(arguments, {"chars"}))[0];
    const Value text = to_text_value(in.store(), self);
    const bool given = set.is_text();
    if (!given && !set.is_undefined() && !set.is_none())
        return error("the characters to trim must be a text, not of type {}", type_name(set));
    return strip(in.store(), text.as_text(), given ? &set.as_text() : nullptr, true, true);
}

Result<Value> string(Interpreter& in, const Value& self, const Arguments& arguments) {
    RL_TRY(bind(arguments, {}));
    return to_text_value(in.store(), self);
}

Result<Value> replace_filter(Interpreter& in, const Value& self, const Arguments& arguments) {
    const std::vector<Value> values = RL_TRY(bind(arguments, {"old", "new", "count"}, 2));
    Store& store = in.store();
    const Value text = to_text_value(store, self);
    const Value from = to_text_value(store, values[0]);
    const Value to = to_text_value(store, values[1]);
    return replace(store, text.as_text(), from.as_text(), to.as_text(),
                   RL_TRY(take_integer(values[2], "count", -1)));
}

Result<Value> default_value(Interpreter&, const Value& self, const Arguments& arguments) {
    const std::vector<Value> values = RL_TRY(bind(arguments, {"default_value", "boolean"}));
    const bool missing = self.is_undefined() || (truth(values[1]) && !truth(self));
    if (!missing) return self;
    return arguments.positional.empty() && values[0].is_undefined() ? Value::literal("") : values[0];
}

Result<Value> indent(Interpreter& in, const Value& self, const Arguments& arguments) {
    const std::vector<Value> values = RL_TRY(bind(arguments, {"width", "first", "blank"}));
    Store& store = in.store();
    Value indentation = values[0];
    if (!indentation.is_text()) {
        const int64_t width = RL_TRY(take_integer(indentation, "width", 4));
        if (width > 10000) return error("an indentation of more than 10000 blanks is refused");
        indentation = Value::literal(std::string(size_t(std::max<int64_t>(width, 0)), ' '));
    }
    // Lines are those of Python's splitlines(), with one more line end at the end of the text.
    TextBuilder whole(store);
    whole.add(to_text_value(store, self).as_text());
    whole.add("\n");
    const Text text = whole.take_text();
    const std::vector<Value> lines = split_lines(store, text);
    TextBuilder out(store);
    for (size_t i = 0; i < lines.size(); ++i) {
        if (i) out.add("\n");
        const bool indented = i == 0 ? truth(values[1]) : truth(values[2]) || !lines[i].bytes().empty();
        if (indented) out.add(indentation.as_text());
        out.add(lines[i].as_text());
    }
    return out.take();
}

Result<Value> center(Interpreter& in, const Value& self, const Arguments& arguments) {
    const int64_t width = RL_TRY(bind_integer(arguments, "width", 80));
    Arguments inner;
    inner.positional.push_back(Value::integer(width));
    return find_text_method("center")(in, to_text_value(in.store(), self), inner);
}

Result<Value> truncate(Interpreter& in, const Value& self, const Arguments& arguments) {
    const std::vector<Value> values = RL_TRY(bind(arguments, {"length", "killwords", "end", "leeway"}));
    const int64_t length = RL_TRY(take_integer(values[0], "length", 255));
    const Value end = RL_TRY(take_text(values[2], "end", "..."));
    const int64_t leeway = RL_TRY(take_integer(values[3], "leeway", 5));
    const Value subject = to_text_value(in.store(), self);
    const Text& text = subject.as_text();
    const auto ending = int64_t(count_characters(end.bytes()));
    if (length < ending || leeway < 0)
        return error("the length must be at least that of the ending, {}", ending);
    const auto characters = int64_t(count_characters(text.bytes));
    if (characters <= length || characters - length <= leeway) return subject;
    size_t kept = character_offset(text.bytes, size_t(length - ending));
    if (!truth(values[1])) {
        const size_t blank = std::string_view(text.bytes).substr(0, kept).rfind(' ');
        if (blank != std::string_view::npos) kept = blank;
    }
    TextBuilder out(in.store());
    out.add(text, 0, kept);
    out.add(end.as_text());
    return out.take();
}

Result<Value> word_count(Interpreter& in, const Value& self, const Arguments& arguments) {
    RL_TRY(bind(arguments, {}));
    const Value text = to_text_value(in.store(), self);
    int64_t words = 0;
    bool inside = false;
    for (size_t at = 0; at < text.bytes().size();) {
        const Utf8Step step = utf8_step(text.bytes(), at);
        const bool word = !is_white_space(step.code);
        words += word && !inside;
        inside = word;
        at += step.bytes;
    }
    return Value::integer(words);
}

Result<Value> escape(Interpreter& in, const Value& self, const Arguments& arguments) {
    RL_TRY(bind(arguments, {}));
    Value text = to_text_value(in.store(), self);
    static constexpr std::pair<std::string_view, std::string_view> kSigns[] = {
        {"&", "&amp;"}, {"<", "&lt;"}, {">", "&gt;"}, {"'", "&#39;"}, {"\"", "&#34;"}};
    for (const auto& [from, to] : kSigns)
        text =
            replace(in.store(), text.as_text(), Text{std::string(from), {}}, Text{std::string(to), {}}, -1);
    return text;
}

Result<Value> format_filter(Interpreter& in, const Value& self, const Arguments& arguments) {
    const Value text = to_text_value(in.store(), self);
    if (arguments.named.empty())
        return format_percent(in.store(), text.as_text(),
                              in.store().list(arguments.positional, ListKind::tuple));
    if (!arguments.positional.empty()) return error("values with names and without cannot be mixed");
    Dict* dict = in.store().dict();
    for (const auto& [name, value] : arguments.named) dict->set(in.store(), Value::literal(name), value);
    return format_percent(in.store(), text.as_text(), Value::of(dict));
}

// The tojson of transformers: json.dumps without the escapes for HTML.
Result<Value> to_json(Interpreter& in, const Value& self, const Arguments& arguments) {
    const std::vector<Value> values =
        RL_TRY(bind(arguments, {"ensure_ascii", "indent", "separators", "sort_keys"}));
    JsonStyle style;
    style.ascii = truth(values[0]);
    style.sort_keys = truth(values[3]);
    if (values[1].is_text()) {
        style.indent = std::string(values[1].bytes());
    } else if (values[1].is_integer()) {
        const int64_t width = values[1].as_integer();
        if (width > 100) return error("an indentation of more than 100 blanks is refused");
        style.indent = std::string(size_t(std::max<int64_t>(width, 0)), ' ');
    }
    if (style.indent) style.item_separator = ",";
    if (values[2].is(Kind::list)) {
        const std::vector<Value>& both = values[2].list().items;
        if (both.size() != 2 || !both[0].is_text() || !both[1].is_text())
            return error("the separators must be two texts");
        style.item_separator = both[0].bytes();
        style.key_separator = both[1].bytes();
    }
    TextBuilder out(in.store());
    RL_TRY(write_json(out, self, style));
    return out.take();
}

// ---- numbers ----

std::optional<double> real_of(const Value& value) {
    if (value.is_number()) return value.as_real();
    if (!value.is_text()) return std::nullopt;
    Store store;
    const Value text = strip(store, value.as_text(), nullptr, true, true);
    std::string_view digits = text.bytes();
    if (digits.starts_with('+')) digits.remove_prefix(1);
    double number = 0.0;
    const auto read = std::from_chars(digits.data(), digits.data() + digits.size(), number);
    if (read.ec != std::errc() || read.ptr != digits.data() + digits.size()) return std::nullopt;
    return number;
}

std::optional<int64_t> integer_of(const Value& value, int base) {
    if (value.is_integer()) return value.as_integer();
    if (value.is_text()) {
        Store store;
        const Value text = strip(store, value.as_text(), nullptr, true, true);
        std::string digits(text.bytes());
        const bool minus = digits.starts_with('-');
        if (minus || digits.starts_with('+')) digits.erase(0, 1);
        const std::string prefix = base == 16 ? "0x" : base == 8 ? "0o" : base == 2 ? "0b" : "";
        if (!prefix.empty() && digits.starts_with(prefix)) digits.erase(0, 2);
        int64_t number = 0;
        const auto read = std::from_chars(digits.data(), digits.data() + digits.size(), number, base);
        const bool whole = !digits.empty() && digits[0] != '-' && read.ec == std::errc() &&
                           read.ptr == digits.data() + digits.size();
        if (whole) return minus ? -number : number;
    }
    const std::optional<double> real = real_of(value);
    if (!real || !(std::abs(*real) < 9.2e18)) return std::nullopt;
    return int64_t(*real);
}

Status defined(const Value& value) {
    return value.is_undefined() ? Status(error("{} is undefined", value.undefined_name())) : Status();
}

Result<Value> to_integer(Interpreter&, const Value& self, const Arguments& arguments) {
    const std::vector<Value> values = RL_TRY(bind(arguments, {"default", "base"}));
    RL_TRY(defined(self));
    const int64_t base = RL_TRY(take_integer(values[1], "base", 10));
    if (base < 2 || base > 36) return error("the base of a number lies between 2 and 36");
    if (const auto number = integer_of(self, int(base))) return Value::integer(*number);
    return values[0].is_undefined() ? Value::integer(0) : values[0];
}

Result<Value> to_real(Interpreter&, const Value& self, const Arguments& arguments) {
    const Value fallback = RL_TRY(bind(arguments, {"default"}))[0];
    RL_TRY(defined(self));
    if (const auto number = real_of(self)) return Value::real(*number);
    return fallback.is_undefined() ? Value::real(0.0) : fallback;
}

Result<Value> absolute(Interpreter& in, const Value& self, const Arguments& arguments) {
    RL_TRY(bind(arguments, {}));
    RL_TRY(defined(self));
    if (self.is(Kind::real)) return Value::real(std::abs(self.as_real()));
    if (!self.is_integer()) return error("abs takes a number, not a value of type {}", type_name(self));
    return self.as_integer() < 0 ? arithmetic(in.store(), "-", Value::integer(0), self)
                                 : Result<Value>(Value::integer(self.as_integer()));
}

Result<Value> rounded(Interpreter&, const Value& self, const Arguments& arguments) {
    const std::vector<Value> values = RL_TRY(bind(arguments, {"precision", "method"}));
    RL_TRY(defined(self));
    if (!self.is_number()) return error("round takes a number, not a value of type {}", type_name(self));
    const int64_t precision = RL_TRY(take_integer(values[0], "precision", 0));
    const Value method = RL_TRY(take_text(values[1], "method", "common"));
    if (precision < -300 || precision > 300) return error("the precision lies between -300 and 300");
    if (method.bytes() == "common") {
        if (self.is_integer() && precision >= 0) return Value::integer(self.as_integer());
        if (precision >= 0)  // decimal digits, correctly rounded, as Python's
            return Value::real(
                std::strtod(fmt::format("{:.{}f}", self.as_real(), int(precision)).c_str(), nullptr));
        const double unit = std::pow(10.0, double(-precision));
        const double number = std::nearbyint(self.as_real() / unit) * unit;
        if (!self.is_integer()) return Value::real(number);
        if (!(std::abs(number) < 0x1p63)) return error("the rounded number has more than 64 bits");
        return Value::integer(int64_t(number));
    }
    if (method.bytes() != "ceil" && method.bytes() != "floor")
        return error("the method of round must be \"common\", \"ceil\" or \"floor\"");
    const double unit = std::pow(10.0, double(precision));
    const double scaled = self.as_real() * unit;
    return Value::real((method.bytes() == "ceil" ? std::ceil(scaled) : std::floor(scaled)) / unit);
}

Result<Value> attribute_filter(Interpreter& in, const Value& self, const Arguments& arguments) {
    const Value name = RL_TRY(bind_text(arguments, "name"));
    if (self.is_mapping() && !find_dict_method(name.bytes())) return Value();  // it has no such element
    return subscript(in.store(), self, name);
}

constexpr NamedBuiltin kFilters[] = {
    {"abs", absolute},
    {"attr", attribute_filter},
    {"capitalize", cased<Case::capital>},
    {"center", center},
    {"d", default_value},
    {"default", default_value},
    {"e", escape},
    {"escape", escape},
    {"float", to_real},
    {"format", format_filter},
    {"indent", indent},
    {"int", to_integer},
    {"lower", cased<Case::lower>},
    {"replace", replace_filter},
    {"round", rounded},
    {"safe", string},
    {"string", string},
    {"title", title},
    {"tojson", to_json},
    {"trim", trim},
    {"truncate", truncate},
    {"upper", cased<Case::upper>},
    {"wordcount", word_count},
};

}  // namespace

Builtin find_filter(std::string_view name) {
    const Builtin found = find_builtin(kFilters, name);
    return found ? found : find_sequence_filter(name);
}

}  // namespace redline::jinja
