// Values as text: Python's str(), repr() and json.dumps().
#include "text/jinja/value.h"
#include "text/tokens/unicode.h"

#include <algorithm>
#include <charconv>
#include <cmath>

namespace redline::jinja {

static constexpr int kDeepestPrinted = 200;

std::string real_text(double value) {
    if (std::isnan(value)) return "nan";
    if (std::isinf(value)) return value < 0 ? "-inf" : "inf";
    char buffer[400];
    const auto form = [&](std::chars_format format) {
        return std::string(buffer, std::to_chars(buffer, buffer + sizeof(buffer), value, format).ptr);
    };
    const std::string scientific = form(std::chars_format::scientific);
    const int exponent = std::atoi(scientific.c_str() + scientific.find('e') + 1);
    if (exponent < -4 || exponent >= 16) return scientific;
    std::string fixed = form(std::chars_format::fixed);
    if (fixed.find('.') == fixed.npos) fixed += ".0";
    return fixed;
}

// True for characters that Python's str.isprintable refuses, as far as they occur in texts.
static bool is_hidden(char32_t code) {
    return code < 0x20 || (code >= 0x7F && code <= 0xA0) || code == 0xAD ||
           (code != ' ' && is_white_space(code)) || (code >= 0x200B && code <= 0x200F) ||
           (code >= 0x202A && code <= 0x202E) || (code >= 0x2060 && code <= 0x206F) || code == 0xFEFF ||
           (code >= 0xE000 && code <= 0xF8FF) || code >= 0xE0000;
}

// Copies the characters of a text, or their replacements, with their origin.
template <typename Replacement>
static void write_escaped(TextBuilder& out, const Text& text, Replacement&& replacement) {
    size_t range = 0;
    size_t copied = 0;  // everything up to here is written
    for (size_t at = 0; at < text.bytes.size();) {
        const Utf8Step step = utf8_step(text.bytes, at);
        const std::string other = replacement(step.code);
        if (!other.empty()) {
            out.add(text, copied, at);
            while (range < text.given.size() && text.given[range].end <= at) ++range;
            out.add(other, range < text.given.size() && text.given[range].begin <= at);
            copied = at + step.bytes;
        }
        at += step.bytes;
    }
    out.add(text, copied, text.bytes.size());
}

static void write_text_repr(TextBuilder& out, const Text& text) {
    const bool single = text.bytes.find('\'') != text.bytes.npos;
    const bool twofold = text.bytes.find('"') != text.bytes.npos;
    const char quote = single && !twofold ? '"' : '\'';
    out.add({&quote, 1}, true);
    write_escaped(out, text, [quote](char32_t code) -> std::string {
        if (code == '\n') return "\\n";
        if (code == '\r') return "\\r";
        if (code == '\t') return "\\t";
        if (code == '\\' || code == char32_t(quote)) return {'\\', char(code)};
        if (!is_hidden(code)) return {};
        return code < 0x100     ? fmt::format("\\x{:02x}", uint32_t(code))
               : code < 0x10000 ? fmt::format("\\u{:04x}", uint32_t(code))
                                : fmt::format("\\U{:08x}", uint32_t(code));
    });
    out.add({&quote, 1}, true);
}

// Signs between values count as given: a container's text is data, in which control tokens must not be
// recognised.
static void write_list_repr(TextBuilder& out, const List& list, int depth) {
    if (list.kind == ListKind::range) {
        // The end, and the step of a slice, may need more than 64 bits.
        __extension__ using Wide = __int128;
        const auto at = [&](size_t i) { return Wide(list.items[i].as_integer()); };
        const size_t n = list.items.size();
        const Wide step = n > 1 ? at(1) - at(0) : 1;
        const Wide begin = n ? at(0) : 0;
        out.add(fmt::format("range({}, {}", begin, begin + step * Wide(n)));
        out.add(step == 1 ? ")" : fmt::format(", {})", step));
        return;
    }
    const bool tuple = list.kind == ListKind::tuple || list.kind == ListKind::group;
    out.add(tuple ? "(" : "[", true);
    for (size_t i = 0; i < list.items.size(); ++i) {
        if (i) out.add(", ", true);
        write_repr(out, list.items[i], depth + 1);
    }
    out.add(tuple ? list.items.size() == 1 ? ",)" : ")" : "]", true);
}

static void write_dict_repr(TextBuilder& out, const Dict& dict, int depth) {
    out.add(dict.is_namespace ? "<Namespace {" : "{", true);
    bool first = true;
    for (const auto& [key, value] : dict.entries) {
        if (!std::exchange(first, false)) out.add(", ", true);
        write_repr(out, key, depth + 1);
        out.add(": ", true);
        write_repr(out, value, depth + 1);
    }
    out.add(dict.is_namespace ? "}>" : "}", true);
}

void write_repr(TextBuilder& out, const Value& value, int depth) {
    out.store().step();
    if (depth > kDeepestPrinted || !out.store().within_limits()) {
        out.add("...", true);
        return;
    }
    switch (value.kind()) {
        case Kind::undefined:
            return out.add("Undefined");
        case Kind::none:
            return out.add("None");
        case Kind::boolean:
            return out.add(value.as_boolean() ? "True" : "False");
        case Kind::integer:
            return out.add(fmt::format("{}", value.as_integer()));
        case Kind::real:
            return out.add(real_text(value.as_real()));
        case Kind::text:
            return write_text_repr(out, value.as_text());
        case Kind::list:
            if (value.list().kind == ListKind::generator) break;
            return write_list_repr(out, value.list(), depth);
        case Kind::dict:
            return write_dict_repr(out, value.dict(), depth);
        case Kind::function:
        case Kind::loop:
            break;
    }
    out.add(fmt::format("<{} object>", type_name(value)));
}

void write_text(TextBuilder& out, const Value& value) {
    if (value.is_text()) return out.add(value.as_text());
    if (!value.is_undefined()) write_repr(out, value);
}

// ---- JSON ----

static void write_json_text(TextBuilder& out, const Text& text, const JsonStyle& style) {
    out.add("\"", true);
    write_escaped(out, text, [&](char32_t code) -> std::string {
        switch (code) {
            case '"':
                return "\\\"";
            case '\\':
                return "\\\\";
            case '\n':
                return "\\n";
            case '\r':
                return "\\r";
            case '\t':
                return "\\t";
            case '\f':
                return "\\f";
            case '\b':
                return "\\b";
            default:
                break;
        }
        if (code >= 0x20 && (code < 0x7F || !style.ascii)) return {};
        if (code < 0x10000) return fmt::format("\\u{:04x}", uint32_t(code));
        const uint32_t rest = uint32_t(code) - 0x10000;
        return fmt::format("\\u{:04x}\\u{:04x}", 0xD800 + (rest >> 10), 0xDC00 + (rest & 0x3FF));
    });
    out.add("\"", true);
}

static void begin_line(TextBuilder& out, const JsonStyle& style, int depth) {
    if (!style.indent) return;
    out.add("\n", true);
    for (int i = 0; i < depth; ++i) out.add(*style.indent, true);
}

static Status write_json_list(TextBuilder& out, const List& list, const JsonStyle& style, int depth) {
    if (list.items.empty()) {
        out.add("[]", true);
        return {};
    }
    out.add("[", true);
    for (size_t i = 0; i < list.items.size(); ++i) {
        if (i) out.add(style.item_separator, true);
        begin_line(out, style, depth + 1);
        RL_TRY(write_json(out, list.items[i], style, depth + 1));
    }
    begin_line(out, style, depth);
    out.add("]", true);
    return {};
}

static Status write_json_key(TextBuilder& out, const Value& key, const JsonStyle& style) {
    if (key.is_text()) {
        write_json_text(out, key.as_text(), style);
        return {};
    }
    if (!key.is_number() && !key.is_none())
        return error("a key of type {} cannot be written as JSON", type_name(key));
    out.add("\"", true);
    RL_TRY(write_json(out, key, style));
    out.add("\"", true);
    return {};
}

static Status write_json_dict(TextBuilder& out, const Dict& dict, const JsonStyle& style, int depth) {
    if (dict.entries.empty()) {
        out.add("{}", true);
        return {};
    }
    std::vector<const std::pair<Value, Value>*> entries;
    for (const auto& entry : dict.entries) entries.push_back(&entry);
    if (style.sort_keys)
        std::stable_sort(entries.begin(), entries.end(), [&](const auto* a, const auto* b) {
            const Result<int> order = compare(out.store(), a->first, b->first);
            return order.ok() && order.value() < 0;
        });
    out.add("{", true);
    for (const auto* entry : entries) {
        if (entry != entries.front()) out.add(style.item_separator, true);
        begin_line(out, style, depth + 1);
        RL_TRY(write_json_key(out, entry->first, style));
        out.add(style.key_separator, true);
        RL_TRY(write_json(out, entry->second, style, depth + 1));
    }
    begin_line(out, style, depth);
    out.add("}", true);
    return {};
}

Status write_json(TextBuilder& out, const Value& value, const JsonStyle& style, int depth) {
    out.store().step();
    if (depth > kDeepestPrinted)
        return error("values nested deeper than {} are not written as JSON", kDeepestPrinted);
    RL_TRY(out.store().check());
    switch (value.kind()) {
        case Kind::none:
            out.add("null");
            return {};
        case Kind::boolean:
            out.add(value.as_boolean() ? "true" : "false");
            return {};
        case Kind::real:
            if (std::isnan(value.as_real()) || std::isinf(value.as_real())) {
                out.add(std::isnan(value.as_real()) ? "NaN" : value.as_real() < 0 ? "-Infinity" : "Infinity");
                return {};
            }
            [[fallthrough]];
        case Kind::integer:
            write_repr(out, value);
            return {};
        case Kind::text:
            write_json_text(out, value.as_text(), style);
            return {};
        case Kind::list:
            if (value.list().kind > ListKind::group) break;
            return write_json_list(out, value.list(), style, depth);
        case Kind::dict:
            if (value.dict().is_namespace) break;
            return write_json_dict(out, value.dict(), style, depth);
        default:
            break;
    }
    if (value.is_undefined())
        return error("{} is undefined and cannot be written as JSON", value.undefined_name());
    return error("a value of type {} cannot be written as JSON", type_name(value));
}

}  // namespace redline::jinja
