// Methods of texts, as in Python's str.
#include "text/jinja/arguments.h"
#include "text/tokens/unicode.h"

#include <algorithm>

namespace redline::jinja {
namespace {

template <Case to>
Result<Value> cased(Interpreter& in, const Value& self, const Arguments& arguments) {
    RL_TRY(bind(arguments, {}));
    return change_case(in.store(), self.as_text(), to);
}

template <bool left, bool right>
Result<Value> stripped(Interpreter& in, const Value& self, const Arguments& arguments) {
    const Value set = RL_TRY(bind(arguments, {"chars"}))[0];
    if (set.is_undefined() || set.is_none()) return strip(in.store(), self.as_text(), nullptr, left, right);
    if (!set.is_text())
        return error("the characters to strip must be a text, not of type {}", type_name(set));
    return strip(in.store(), self.as_text(), &set.as_text(), left, right);
}

// True for a text, or one of a tuple of texts.
template <bool at_end>
Result<Value> begins_or_ends(Interpreter& in, const Value& self, const Arguments& arguments) {
    const Value parts = RL_TRY(bind(arguments, {"part"}, 1))[0];
    const std::vector<Value> all =
        parts.is(Kind::list) ? RL_TRY(elements(in.store(), parts)) : std::vector{parts};
    for (const Value& one : all) {
        if (!one.is_text()) return error("a text is looked for, not a value of type {}", type_name(one));
        if (at_end ? self.bytes().ends_with(one.bytes()) : self.bytes().starts_with(one.bytes()))
            return Value::boolean(true);
    }
    return Value::boolean(false);
}

std::vector<Value> split_white(Store& store, const Text& text, uint64_t most, bool from_right) {
    std::vector<TextRange> words;
    const std::string_view bytes = text.bytes;
    for (size_t at = 0; at < bytes.size();) {
        const Utf8Step step = utf8_step(bytes, at);
        if (!is_white_space(step.code)) {
            if (words.empty() || words.back().end != at)
                words.push_back({at, at + step.bytes});
            else
                words.back().end += step.bytes;
        }
        at += step.bytes;
    }
    std::vector<Value> out;
    const size_t rest = words.size() > most ? words.size() - size_t(most) : 0;  // words that are not split
    const size_t rest_at = from_right ? 0 : size_t(most);
    for (size_t i = 0; i < words.size() && store.within_limits(); ++i) {
        const bool together = rest > 0 && i == rest_at;
        const size_t last = together ? i + rest - 1 : i;
        // Like in Python, the part that is not split keeps the white space at its outer side.
        const size_t begin = together && from_right ? 0 : words[i].begin;
        out.push_back(part(store, text, begin, together && !from_right ? bytes.size() : words[last].end));
        i = last;
    }
    return out;
}

std::vector<Value> split_by(Store& store, const Text& text, const std::string& separator, uint64_t most) {
    std::vector<Value> out;
    size_t begin = 0;
    for (; most > 0 && store.within_limits(); --most) {
        const size_t found = text.bytes.find(separator, begin);
        if (found == std::string::npos) break;
        out.push_back(part(store, text, begin, found));
        begin = found + separator.size();
    }
    out.push_back(part(store, text, begin, text.bytes.size()));
    return out;
}

std::vector<Value> split_by_from_right(Store& store, const Text& text, const std::string& separator,
                                       uint64_t most) {
    std::vector<Value> out;
    size_t end = text.bytes.size();
    for (; most > 0 && end >= separator.size() && store.within_limits(); --most) {
        const size_t found = text.bytes.rfind(separator, end - separator.size());
        if (found == std::string::npos) break;
        out.push_back(part(store, text, found + separator.size(), end));
        end = found;
    }
    out.push_back(part(store, text, 0, end));
    std::reverse(out.begin(), out.end());
    return out;
}

template <bool from_right>
Result<Value> split(Interpreter& in, const Value& self, const Arguments& arguments) {
    const std::vector<Value> values = RL_TRY(bind(arguments, {"sep", "maxsplit"}));
    const int64_t count = RL_TRY(take_integer(values[1], "maxsplit", -1));
    const uint64_t most = count < 0 ? UINT64_MAX : uint64_t(count);
    Store& store = in.store();
    if (values[0].is_undefined() || values[0].is_none())
        return store.list(split_white(store, self.as_text(), most, from_right));
    if (!values[0].is_text())
        return error("the separator must be a text, not of type {}", type_name(values[0]));
    const std::string separator(values[0].bytes());
    if (separator.empty()) return error("the separator is empty");
    if (!may_search(store, self.bytes(), separator)) return store.check().error();
    return store.list(from_right ? split_by_from_right(store, self.as_text(), separator, most)
                                 : split_by(store, self.as_text(), separator, most));
}

template <bool from_right>
Result<Value> partition(Interpreter& in, const Value& self, const Arguments& arguments) {
    const Value separator = RL_TRY(bind_text(arguments, "sep"));
    const std::string_view bytes = self.bytes();
    Store& store = in.store();
    if (separator.bytes().empty()) return error("the separator is empty");
    if (!may_search(store, bytes, separator.bytes())) return store.check().error();
    const size_t found = from_right ? bytes.rfind(separator.bytes()) : bytes.find(separator.bytes());
    const Value nothing = Value::literal("");
    std::vector<Value> parts = {self, nothing, nothing};
    if (found == bytes.npos && from_right) parts = {nothing, nothing, self};
    if (found != bytes.npos)
        parts = {part(store, self.as_text(), 0, found), separator,
                 part(store, self.as_text(), found + separator.bytes().size(), bytes.size())};
    return store.list(std::move(parts), ListKind::tuple);
}

Result<Value> replace_method(Interpreter& in, const Value& self, const Arguments& arguments) {
    const std::vector<Value> values = RL_TRY(bind(arguments, {"old", "new", "count"}, 2));
    const Value from = RL_TRY(take_text(values[0], "old", ""));
    const Value to = RL_TRY(take_text(values[1], "new", ""));
    return replace(in.store(), self.as_text(), from.as_text(), to.as_text(),
                   RL_TRY(take_integer(values[2], "count", -1)));
}

enum class Wanted : uint8_t { first, last, first_or_error, last_or_error };

template <Wanted wanted>
Result<Value> find(Interpreter& in, const Value& self, const Arguments& arguments) {
    const std::vector<Value> values = RL_TRY(bind(arguments, {"part", "start", "end"}, 1));
    const Value looked_for = RL_TRY(take_text(values[0], "part", ""));
    const std::string_view bytes = self.bytes();
    if (!may_search(in.store(), bytes, looked_for.bytes())) return in.store().check().error();
    const auto count = int64_t(count_characters(bytes));
    const auto bound = [&](int64_t at) { return std::clamp<int64_t>(at < 0 ? at + count : at, 0, count); };
    const int64_t first = bound(RL_TRY(take_integer(values[1], "start", 0)));
    const int64_t last = bound(RL_TRY(take_integer(values[2], "end", count)));
    size_t found = bytes.npos;
    if (first <= last) {
        const size_t begin = character_offset(bytes, size_t(first));
        const std::string_view range = bytes.substr(begin, character_offset(bytes, size_t(last)) - begin);
        constexpr bool from_right = wanted == Wanted::last || wanted == Wanted::last_or_error;
        found = from_right ? range.rfind(looked_for.bytes()) : range.find(looked_for.bytes());
        if (found != bytes.npos) found += begin;
    }
    if (found != bytes.npos) return Value::integer(int64_t(count_characters(bytes.substr(0, found))));
    if (wanted == Wanted::first || wanted == Wanted::last) return Value::integer(-1);
    return error("the text looked for is not in the text");
}

Result<Value> count_parts(Interpreter& in, const Value& self, const Arguments& arguments) {
    const Value looked_for = RL_TRY(bind_text(arguments, "part"));
    if (!may_search(in.store(), self.bytes(), looked_for.bytes())) return in.store().check().error();
    if (looked_for.bytes().empty()) return Value::integer(int64_t(count_characters(self.bytes())) + 1);
    int64_t count = 0;
    for (size_t at = self.bytes().find(looked_for.bytes()); at != std::string_view::npos;
         at = self.bytes().find(looked_for.bytes(), at + looked_for.bytes().size()))
        ++count;
    return Value::integer(count);
}

Result<Value> join_method(Interpreter& in, const Value& self, const Arguments& arguments) {
    const Value from = RL_TRY(bind(arguments, {"items"}, 1))[0];
    const std::vector<Value> items = RL_TRY(elements(in.store(), from));
    for (const Value& item : items)
        if (!item.is_text())
            return error("only texts can be joined, not a value of type {}", type_name(item));
    return join(in.store(), items, self.as_text());
}

Result<Value> lines(Interpreter& in, const Value& self, const Arguments& arguments) {
    RL_TRY(bind(arguments, {}));
    return in.store().list(split_lines(in.store(), self.as_text()));
}

template <bool prefix>
Result<Value> remove_part(Interpreter& in, const Value& self, const Arguments& arguments) {
    const Value affix = RL_TRY(bind_text(arguments, "part"));
    const std::string_view bytes = self.bytes();
    const size_t size = affix.bytes().size();
    if (prefix && bytes.starts_with(affix.bytes()))
        return part(in.store(), self.as_text(), size, bytes.size());
    if (!prefix && bytes.ends_with(affix.bytes()))
        return part(in.store(), self.as_text(), 0, bytes.size() - size);
    return self;
}

enum class Side : uint8_t { left, right, both, zeros };

template <Side side>
Result<Value> justify(Interpreter& in, const Value& self, const Arguments& arguments) {
    const std::vector<Value> values = RL_TRY(bind(arguments, {"width", "fillchar"}, 1));
    const int64_t width = RL_TRY(take_integer(values[0], "width", 0));
    const Value filler = RL_TRY(take_text(values[1], "fillchar", side == Side::zeros ? "0" : " "));
    if (count_characters(filler.bytes()) != 1) return error("the text to fill with must be one character");
    const auto size = int64_t(count_characters(self.bytes()));
    const uint64_t missing = width > size ? uint64_t(width - size) : 0;
    uint64_t before = side == Side::left ? 0 : missing;
    if (side == Side::both) before = missing / 2 + (missing & uint64_t(width) & 1);
    TextBuilder out(in.store());
    if (!in.store().reserve(missing)) return in.store().check().error();
    const bool sign = side == Side::zeros && (self.bytes().starts_with('-') || self.bytes().starts_with('+'));
    if (sign) out.add(self.as_text(), 0, 1);
    for (uint64_t i = 0; i < before; ++i) out.add(filler.as_text());
    out.add(self.as_text(), sign ? 1 : 0, self.bytes().size());
    for (uint64_t i = before; i < missing; ++i) out.add(filler.as_text());
    return out.take();
}

enum class Class : uint8_t { alpha, alnum, digit, space, upper, lower };

template <Class wanted>
Result<Value> is_all(Interpreter& in, const Value& self, const Arguments& arguments) {
    RL_TRY(bind(arguments, {}));
    const std::string_view bytes = self.bytes();
    in.store().scan(bytes.size());
    bool cased = false;
    for (size_t at = 0; at < bytes.size();) {
        const Utf8Step step = utf8_step(bytes, at);
        at += step.bytes;
        const char32_t c = step.code;
        const bool digit = c >= '0' && c <= '9';
        const bool upper = lower_of(c) != c;
        const bool lower = upper_of(c) != c || c == 0xDF;
        const bool letter = upper || lower || (c >= 0x370 && !is_white_space(c));
        cased |= upper || lower;
        const bool fits = wanted == Class::digit   ? digit
                          : wanted == Class::alpha ? letter
                          : wanted == Class::alnum ? letter || digit
                          : wanted == Class::space ? is_white_space(c)
                          : wanted == Class::upper ? !lower
                                                   : !upper;
        if (!fits) return Value::boolean(false);
    }
    return Value::boolean(wanted == Class::upper || wanted == Class::lower ? cased : !bytes.empty());
}

// str.format with {}, {0} and {name}; widths and similar options are not supported.
Result<Value> format_braces(Interpreter& in, const Value& self, const Arguments& arguments) {
    const std::string& bytes = self.as_text().bytes;
    TextBuilder out(in.store());
    size_t next = 0;
    for (size_t at = 0; at < bytes.size();) {
        const size_t brace = std::min(bytes.find_first_of("{}", at), bytes.size());
        out.add(self.as_text(), at, brace);
        at = brace;
        if (at == bytes.size()) break;
        if (at + 1 < bytes.size() && bytes[at + 1] == bytes[at]) {
            out.add(self.as_text(), at, at + 1);
            at += 2;
            continue;
        }
        const size_t end = bytes.find('}', at);
        if (bytes[at] == '}' || end == std::string::npos)
            return error("a brace of the format has no counterpart");
        const std::string field = bytes.substr(at + 1, end - at - 1);
        at = end + 1;
        if (field.find_first_not_of("0123456789") == std::string::npos) {
            const size_t index =
                field.empty() ? next++ : std::min<size_t>(size_t(std::atoll(field.c_str())), 1u << 20);
            if (index >= arguments.positional.size())
                return error("the format wants more values than it gets");
            out.add(arguments.positional[index]);
            continue;
        }
        const auto named = std::find_if(arguments.named.begin(), arguments.named.end(),
                                        [&](const auto& entry) { return entry.first == field; });
        if (named == arguments.named.end())
            return error("the format's field \"{}\" is given no value, or of a kind that is not known here",
                         printable(field));
        out.add(named->second);
    }
    return out.take();
}

constexpr NamedBuiltin kMethods[] = {
    {"capitalize", cased<Case::capital>},
    {"casefold", cased<Case::lower>},
    {"center", justify<Side::both>},
    {"count", count_parts},
    {"endswith", begins_or_ends<true>},
    {"find", find<Wanted::first>},
    {"format", format_braces},
    {"index", find<Wanted::first_or_error>},
    {"isalnum", is_all<Class::alnum>},
    {"isalpha", is_all<Class::alpha>},
    {"isdecimal", is_all<Class::digit>},
    {"isdigit", is_all<Class::digit>},
    {"islower", is_all<Class::lower>},
    {"isnumeric", is_all<Class::digit>},
    {"isspace", is_all<Class::space>},
    {"isupper", is_all<Class::upper>},
    {"join", join_method},
    {"ljust", justify<Side::left>},
    {"lower", cased<Case::lower>},
    {"lstrip", stripped<true, false>},
    {"partition", partition<false>},
    {"removeprefix", remove_part<true>},
    {"removesuffix", remove_part<false>},
    {"replace", replace_method},
    {"rfind", find<Wanted::last>},
    {"rindex", find<Wanted::last_or_error>},
    {"rjust", justify<Side::right>},
    {"rpartition", partition<true>},
    {"rsplit", split<true>},
    {"rstrip", stripped<false, true>},
    {"split", split<false>},
    {"splitlines", lines},
    {"startswith", begins_or_ends<false>},
    {"strip", stripped<true, true>},
    {"swapcase", cased<Case::swapped>},
    {"title", cased<Case::title>},
    {"upper", cased<Case::upper>},
    {"zfill", justify<Side::zeros>},
};

}  // namespace

Builtin find_text_method(std::string_view name) {
    return find_builtin(kMethods, name);
}

}  // namespace redline::jinja
