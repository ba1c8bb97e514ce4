#include "text/jinja/arguments.h"

#include "text/tokens/unicode.h"

#include <algorithm>

namespace redline::jinja {

Result<std::vector<Value>> bind(const Arguments& arguments, std::initializer_list<std::string_view> names,
                                size_t required) {
    std::vector<Value> values(names.size());
    if (arguments.positional.size() > names.size())
        return error("{} arguments are too many: there are {} at most", arguments.positional.size(),
                     names.size());
    for (size_t i = 0; i < arguments.positional.size(); ++i) values[i] = arguments.positional[i];
    for (const auto& named : arguments.named) {
        const auto at = std::find(names.begin(), names.end(), named.first);
        if (at == names.end()) return error("there is no argument \"{}\"", printable(named.first));
        values[size_t(at - names.begin())] = named.second;
    }
    const size_t given = arguments.positional.size() + arguments.named.size();
    if (given < required) return error("{} argument{} needed", required, required == 1 ? " is" : "s are");
    return values;
}

Result<int64_t> take_integer(const Value& value, std::string_view name, int64_t fallback) {
    if (value.is_undefined() || value.is_none()) return fallback;
    if (!value.is_integer())
        return error("the argument \"{}\" must be an integer, not of type {}", name, type_name(value));
    return value.as_integer();
}

Value to_text_value(Store& store, const Value& value) {
    if (value.is_text()) return value;
    TextBuilder out(store);
    out.add(value);
    return out.take();
}

Result<Value> take_text(const Value& value, std::string_view name, std::string_view fallback) {
    if (value.is_undefined()) return Value::literal(fallback);
    if (!value.is_text())
        return error("the argument \"{}\" must be a text, not of type {}", name, type_name(value));
    return value;
}

Result<Value> bind_text(const Arguments& arguments, std::string_view name) {
    const std::vector<Value> values = RL_TRY(bind(arguments, {name}, 1));
    return take_text(values[0], name, "");
}

Result<int64_t> bind_integer(const Arguments& arguments, std::string_view name, int64_t fallback) {
    const std::vector<Value> values = RL_TRY(bind(arguments, {name}));
    return take_integer(values[0], name, fallback);
}

// ---- texts ----

// Lower case for the scripts whose letters stand in pairs or rows: Latin, Greek, Cyrillic, Armenian. Other
// characters are returned unchanged.
char32_t lower_of(char32_t c) {
    if (c < 0x80) return c >= 'A' && c <= 'Z' ? c + 32 : c;
    if ((c >= 0xC0 && c <= 0xDE && c != 0xD7) || (c >= 0x391 && c <= 0x3AB && c != 0x3A2) ||
        (c >= 0x410 && c <= 0x42F))
        return c + 32;
    if (c >= 0x400 && c <= 0x40F) return c + 80;
    if (c >= 0x531 && c <= 0x556) return c + 48;
    if (c == 0x178) return 0xFF;
    const bool even = (c >= 0x100 && c <= 0x137 && c != 0x130) || (c >= 0x14A && c <= 0x177) ||
                      (c >= 0x460 && c <= 0x481) || (c >= 0x48A && c <= 0x4BF) ||
                      (c >= 0x4D0 && c <= 0x52F) || (c >= 0x1E00 && c <= 0x1E95) ||
                      (c >= 0x1EA0 && c <= 0x1EFF);
    const bool odd = (c >= 0x139 && c <= 0x148) || (c >= 0x179 && c <= 0x17E);
    return even ? c | 1 : odd && (c & 1) ? c + 1 : c;
}

char32_t upper_of(char32_t c) {
    if (c < 0x80) return c >= 'a' && c <= 'z' ? c - 32 : c;
    if (c == 0xFF) return 0x178;
    if (c == 0xB5) return 0x39C;
    if (c == 0x3C2) return 0x3A3;
    // The upper case of a letter is one of these distances before it, if its lower case is that letter.
    for (const char32_t distance : {1, 32, 48, 80})
        if (c > distance && lower_of(c - distance) == c) return c - distance;
    return c;
}

static bool is_letter(char32_t c) {
    return lower_of(c) != c || upper_of(c) != c ||
           (c >= 0xAA && !is_white_space(c) && c != 0xD7 && c != 0xF7 && (c < 0x2000 || c > 0x2BFF) &&
            (c < 0x3000 || c > 0x303F));
}

Value change_case(Store& store, const Text& text, Case to) {
    TextBuilder out(store);
    bool inside = false;  // inside the text, or for titles inside a word
    size_t range = 0;
    for (size_t at = 0; at < text.bytes.size() && store.within_limits();) {
        const Utf8Step step = utf8_step(text.bytes, at);
        const bool down = to == Case::lower || ((to == Case::capital || to == Case::title) && inside) ||
                          (to == Case::swapped && lower_of(step.code) != step.code);
        // The German sharp s becomes two letters.
        std::string bytes;
        if (!down && step.code == 0xDF)
            bytes = to == Case::capital || to == Case::title ? "Ss" : "SS";
        else
            append_utf8(bytes, down ? lower_of(step.code) : upper_of(step.code));
        while (range < text.given.size() && text.given[range].end <= at) ++range;
        out.add(bytes, range < text.given.size() && text.given[range].begin <= at);
        inside = to != Case::title || is_letter(step.code);
        at += step.bytes;
    }
    return out.take();
}

static bool is_stripped(const Text* set, std::string_view character) {
    if (!set) return is_white_space(utf8_step(character, 0).code);
    return set->bytes.find(character) != std::string::npos;
}

Value strip(Store& store, const Text& text, const Text* set, bool left, bool right) {
    const std::string_view bytes = text.bytes;
    size_t begin = 0;
    size_t end = bytes.size();
    while (left && begin < end) {
        const size_t next = begin + character_bytes(bytes, begin);
        if (!is_stripped(set, bytes.substr(begin, next - begin))) break;
        begin = next;
    }
    while (right && begin < end) {
        size_t last = end - 1;
        while (last > begin && (bytes[last] & 0xC0) == 0x80) --last;
        if (!is_stripped(set, bytes.substr(last, end - last))) break;
        end = last;
    }
    store.scan((bytes.size() - (end - begin)) * (set ? 16 + set->bytes.size() : 16));
    return part(store, text, begin, end);
}

bool may_search(Store& store, std::string_view bytes, std::string_view part) {
    constexpr size_t kAtOnce = 64;  // bytes that one comparison looks at
    if (part.size() <= bytes.size()) store.scan(bytes.size() * (1 + part.size() / kAtOnce));
    return store.within_limits();
}

Value replace(Store& store, const Text& text, const Text& from, const Text& to, int64_t count) {
    TextBuilder out(store);
    const std::string_view bytes = text.bytes;
    if (!may_search(store, bytes, from.bytes)) return out.take();
    uint64_t left = count < 0 ? UINT64_MAX : uint64_t(count);
    size_t copied = 0;
    for (size_t at = 0; left > 0 && at <= bytes.size() && store.within_limits(); --left) {
        const size_t found = from.bytes.empty() ? at : bytes.find(from.bytes, at);
        if (found == bytes.npos) break;
        out.add(text, copied, found);
        out.add(to);
        copied = found + from.bytes.size();
        // The empty text is found before every character and at the end.
        at = !from.bytes.empty()    ? copied
             : found < bytes.size() ? found + character_bytes(bytes, found)
                                    : found + 1;
    }
    out.add(text, copied, bytes.size());
    return out.take();
}

std::vector<Value> split_lines(Store& store, const Text& text) {
    std::vector<Value> lines;
    const std::string_view bytes = text.bytes;
    size_t begin = 0;
    for (size_t at = 0; at < bytes.size() && store.within_limits();) {
        const Utf8Step step = utf8_step(bytes, at);
        const bool ends = (step.code >= 0x0A && step.code <= 0x0D) ||
                          (step.code >= 0x1C && step.code <= 0x1E) || step.code == 0x85 ||
                          step.code == 0x2028 || step.code == 0x2029;
        const size_t end = at;
        at += step.bytes;
        if (!ends) continue;
        if (step.code == '\r' && at < bytes.size() && bytes[at] == '\n') ++at;
        lines.push_back(part(store, text, begin, end));
        begin = at;
    }
    if (begin < bytes.size()) lines.push_back(part(store, text, begin, bytes.size()));
    return lines;
}

Result<Value> join(Store& store, const std::vector<Value>& items, const Text& separator) {
    TextBuilder out(store);
    for (size_t i = 0; i < items.size() && store.within_limits(); ++i) {
        if (i) out.add(separator);
        out.add(items[i]);
    }
    return out.take();
}

}  // namespace redline::jinja
