// Attributes, elements and slices.
#include "text/jinja/arguments.h"

#include <algorithm>
#include <charconv>

namespace redline::jinja {

static Result<Value> cycle(Interpreter&, const Value& self, const Arguments& arguments) {
    if (arguments.positional.empty()) return error("loop.cycle() takes one value at least");
    return arguments.positional[self.loop().index % arguments.positional.size()];
}

static Result<Value> changed(Interpreter& interpreter, const Value& self, const Arguments& arguments) {
    std::vector<Value>& last = self.loop().last_seen;
    bool same = last.size() == arguments.positional.size() && !last.empty();
    for (size_t i = 0; same && i < last.size(); ++i)
        same = equal(interpreter.store(), last[i], arguments.positional[i]);
    last = arguments.positional;
    return Value::boolean(!same);
}

static Value loop_attribute(Store& store, const Value& value, const std::string& name) {
    const Loop& loop = value.loop();
    const auto number = [](size_t n) { return Value::integer(int64_t(n)); };
    const size_t left = loop.items.size() - loop.index;
    if (name == "index") return number(loop.index + 1);
    if (name == "index0") return number(loop.index);
    if (name == "first") return Value::boolean(loop.index == 0);
    if (name == "last") return Value::boolean(left == 1);
    if (name == "length") return number(loop.items.size());
    if (name == "revindex") return number(left);
    if (name == "revindex0") return number(left - 1);
    if (name == "depth") return number(loop.depth + 1);
    if (name == "depth0") return number(loop.depth);
    if (name == "previtem" && loop.index > 0) return loop.items[loop.index - 1];
    if (name == "nextitem" && left > 1) return loop.items[loop.index + 1];
    if (name == "cycle") return store.method("cycle", cycle, value);
    if (name == "changed") return store.method("changed", changed, value);
    return Value::undefined(&name);
}

static Value list_attribute(Store& store, const Value& object, const std::string& name) {
    const List& list = object.list();
    if (list.kind == ListKind::group && name == "grouper") return list.items[0];
    if (list.kind == ListKind::group && name == "list") return list.items[1];
    const Builtin method = list.kind <= ListKind::range ? find_list_method(name) : nullptr;
    return method ? store.method(name, method, object) : Value::undefined(&name);
}

Result<Value> attribute(Store& store, const Value& object, const std::string& name) {
    switch (object.kind()) {
        case Kind::undefined:
            return error("{} is undefined and has no attribute \"{}\"", object.undefined_name(), name);
        case Kind::text:
            if (const Builtin method = find_text_method(name)) return store.method(name, method, object);
            break;
        case Kind::list:
            return list_attribute(store, object, name);
        case Kind::dict: {
            // Like in Python, an attribute (here a method) precedes a key of that name.
            const Builtin method = object.dict().is_namespace ? nullptr : find_dict_method(name);
            if (method) return store.method(name, method, object);
            if (const Value* found = object.dict().find(store, name)) return *found;
            break;
        }
        case Kind::function:
            if (name == "name" && object.function().macro) return Value::literal(object.function().name);
            break;
        case Kind::loop:
            return loop_attribute(store, object, name);
        default:
            break;
    }
    return Value::undefined(&name);
}

static std::optional<size_t> element_index(int64_t index, size_t count) {
    if (index < 0) index += int64_t(count);
    if (index < 0 || uint64_t(index) >= count) return std::nullopt;
    return size_t(index);
}

Result<Value> subscript(Store& store, const Value& object, const Value& index) {
    if (object.is_undefined()) return error("{} is undefined and has no elements", object.undefined_name());
    if (object.is_mapping()) {
        if (const Value* found = object.dict().find(store, index)) return *found;
    } else if (index.is_integer() && object.is(Kind::list) && object.list().kind <= ListKind::range) {
        const auto at = element_index(index.as_integer(), object.list().items.size());
        return at ? object.list().items[*at] : Value();
    } else if (index.is_integer() && object.is_text()) {
        const std::string_view bytes = object.bytes();
        store.scan(bytes.size());
        const auto at = element_index(index.as_integer(), count_characters(bytes));
        if (!at) return Value();
        const size_t begin = character_offset(bytes, *at);
        return part(store, object.as_text(), begin, begin + character_bytes(bytes, begin));
    }
    // Attributes that do not exist are named in messages by the index, whose text may be gone by then: so no
    // name.
    if (!index.is_text()) return Value();
    Value found = RL_TRY(attribute(store, object, std::string(index.bytes())));
    if (found.is(Kind::function) && !found.function().macro) found.function().name = "method";
    return found.is_undefined() ? Value() : found;
}

namespace {

// The bounds of a slice, as by Python's slice.indices.
struct Range {
    int64_t begin = 0;
    int64_t end = 0;
    int64_t step = 1;
};

Result<Range> range_of(const Value& begin, const Value& end, const Value& step, int64_t count) {
    for (const Value* value : {&begin, &end, &step})
        if (!value->is_none() && !value->is_integer())
            return error("the bounds of a slice must be integers or none, not of type {}", type_name(*value));
    Range range;
    range.step = step.is_none() ? 1 : step.as_integer();
    if (range.step == 0) return error("the step of a slice cannot be zero");
    const bool down = range.step < 0;
    const int64_t low = down ? -1 : 0;
    const int64_t high = down ? count - 1 : count;
    const auto bound = [&](const Value& value, int64_t fallback) {
        if (value.is_none()) return fallback;
        const int64_t at = value.as_integer();
        return at < 0 ? std::max(at + count, low) : std::min(at, high);
    };
    range.begin = bound(begin, down ? high : low);
    range.end = bound(end, down ? low : high);
    return range;
}

// The indexes of a slice's elements.
std::vector<size_t> indexes_of(const Range& range) {
    std::vector<size_t> indexes;
    const auto inside = [&](int64_t i) { return range.step < 0 ? i > range.end : i < range.end; };
    for (int64_t i = range.begin; inside(i);) {
        indexes.push_back(size_t(i));
        if (__builtin_add_overflow(i, range.step, &i)) break;
    }
    return indexes;
}

}  // namespace

static Result<Value> slice_text(Store& store, const Text& text, const Value& begin, const Value& end,
                                const Value& step) {
    store.scan(text.bytes.size());
    const auto count = int64_t(count_characters(text.bytes));
    const Range range = RL_TRY(range_of(begin, end, step, count));
    if (range.step == 1) {
        const size_t first = character_offset(text.bytes, size_t(range.begin));
        return part(store, text, first, character_offset(text.bytes, size_t(range.end)));
    }
    if (!store.reserve(size_t(count) * sizeof(size_t) * 2)) return store.check().error();
    std::vector<size_t> offsets;
    for (size_t at = 0; at < text.bytes.size(); at += character_bytes(text.bytes, at)) offsets.push_back(at);
    offsets.push_back(text.bytes.size());
    TextBuilder out(store);
    for (const size_t i : indexes_of(range)) out.add(text, offsets[i], offsets[i + 1]);
    return out.take();
}

Result<Value> slice(Store& store, const Value& object, const Value& begin, const Value& end,
                    const Value& step) {
    if (object.is_undefined()) return error("{} is undefined and has no slices", object.undefined_name());
    if (object.is_text()) return slice_text(store, object.as_text(), begin, end, step);
    if (!object.is(Kind::list) || object.list().kind > ListKind::range)
        return error("a value of type {} has no slices", type_name(object));
    const List& list = object.list();
    const Range range = RL_TRY(range_of(begin, end, step, int64_t(list.items.size())));
    std::vector<Value> taken;
    if (store.reserve(list.items.size() * sizeof(size_t)))
        for (const size_t i : indexes_of(range)) taken.push_back(list.items[i]);
    return store.list(std::move(taken), list.kind == ListKind::group ? ListKind::tuple : list.kind);
}

Result<Value> attribute_path(Store& store, const Value& object, std::string_view path,
                             const Value& fallback) {
    Value value = object;
    for (size_t at = 0; at <= path.size();) {
        const size_t end = std::min(path.find('.', at), path.size());
        const std::string_view name = path.substr(at, end - at);
        int64_t number = 0;
        const auto read = std::from_chars(name.data(), name.data() + name.size(), number);
        const bool index = !name.empty() && name[0] != '-' && read.ec == std::errc() &&
                           read.ptr == name.data() + name.size();
        value = RL_TRY(subscript(store, value, index ? Value::integer(number) : Value::literal(name)));
        if (value.is_undefined()) value = fallback;
        at = end + 1;
    }
    return value;
}

}  // namespace redline::jinja
