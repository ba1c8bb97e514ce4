#include "text/jinja/value.h"

#include "text/tokens/unicode.h"

#include <algorithm>
#include <cmath>

namespace redline::jinja {

static constexpr int kDeepestCompared = 200;  // nested containers to compare or write

Value Value::literal(std::string_view bytes) {
    return text(std::make_shared<const Text>(Text{std::string(bytes), {}}));
}

bool Value::is_mapping() const {
    return kind_ == Kind::dict && !dict_->is_namespace;
}

std::string Value::undefined_name() const {
    return name_ ? fmt::format("'{}'", printable(*name_)) : "the value";
}

// ---- the store ----

bool Store::reserve(uint64_t bytes) {
    if (bytes > limits_.bytes - bytes_) {
        exceeded_ = true;
        return false;
    }
    bytes_ += bytes;
    return true;
}

Status Store::check() const {
    if (exceeded_)
        return error("the template makes more than {} MiB of texts and lists", limits_.bytes >> 20);
    if (steps_ > limits_.steps)
        return error("the template takes more than {} million steps", limits_.steps / 1'000'000);
    return {};
}

List* Store::list(ListKind kind) {
    reserve(sizeof(List));
    lists_.push_back(std::make_unique<List>());
    lists_.back()->kind = kind;
    return lists_.back().get();
}

Value Store::list(std::vector<Value> items, ListKind kind) {
    reserve(items.size() * sizeof(Value));
    List* made = list(kind);
    made->items = std::move(items);
    return Value::of(made);
}

Value Store::tuple(const Value& first, const Value& second) {
    return list({first, second}, ListKind::tuple);
}

Dict* Store::dict() {
    reserve(sizeof(Dict));
    dicts_.push_back(std::make_unique<Dict>());
    return dicts_.back().get();
}

Loop* Store::loop() {
    reserve(sizeof(Loop));
    loops_.push_back(std::make_unique<Loop>());
    return loops_.back().get();
}

Function* Store::function(Function function) {
    reserve(sizeof(Function));
    functions_.push_back(std::make_unique<Function>(std::move(function)));
    return functions_.back().get();
}

Value Store::method(std::string_view name, Builtin builtin, const Value& self) {
    Function made;
    made.name = name;
    made.builtin = builtin;
    made.self = self;
    return Value::of(function(std::move(made)));
}

Value Store::text(std::string_view bytes, bool given) {
    TextBuilder out(*this);
    if (is_valid_utf8(bytes))
        out.add(bytes, given);
    else
        out.add(to_valid_utf8(bytes), given);
    return out.take();
}

// ---- texts ----

static void mark_given(Text& text, size_t begin, size_t end) {
    if (begin == end) return;
    if (!text.given.empty() && text.given.back().end == begin)
        text.given.back().end = end;
    else
        text.given.push_back({begin, end});
}

void TextBuilder::add(std::string_view bytes, bool given) {
    if (!store_.reserve(bytes.size())) return;
    const size_t begin = text_.bytes.size();
    text_.bytes += bytes;
    if (given) mark_given(text_, begin, text_.bytes.size());
}

void TextBuilder::add(const Text& text, size_t begin, size_t end) {
    const size_t start = text_.bytes.size();
    if (!store_.reserve(end - begin)) return;
    text_.bytes.append(text.bytes, begin, end - begin);
    auto range = std::lower_bound(text.given.begin(), text.given.end(), begin,
                                  [](const TextRange& r, size_t at) { return r.end <= at; });
    for (; range != text.given.end() && range->begin < end; ++range)
        mark_given(text_, start + std::max(range->begin, begin) - begin,
                   start + std::min(range->end, end) - begin);
}

void TextBuilder::add(const Value& value) {
    write_text(*this, value);
}

Value TextBuilder::take() {
    store_.reserve(sizeof(Text));
    return Value::text(std::make_shared<const Text>(std::move(text_)));
}

Value part(Store& store, const Text& text, size_t begin, size_t end) {
    TextBuilder out(store);
    if (begin < end) out.add(text, begin, end);
    return out.take();
}

size_t character_bytes(std::string_view bytes, size_t at) {
    return utf8_step(bytes, at).bytes;
}

size_t count_characters(std::string_view bytes) {
    return size_t(std::count_if(bytes.begin(), bytes.end(), [](char c) { return (c & 0xC0) != 0x80; }));
}

size_t character_offset(std::string_view bytes, size_t index) {
    size_t at = 0;
    for (; at < bytes.size(); ++at)
        if ((bytes[at] & 0xC0) != 0x80 && index-- == 0) break;
    return at;
}

// ---- what all values can do ----

std::string_view type_name(const Value& value) {
    switch (value.kind()) {
        case Kind::undefined:
            return "Undefined";
        case Kind::none:
            return "NoneType";
        case Kind::boolean:
            return "bool";
        case Kind::integer:
            return "int";
        case Kind::real:
            return "float";
        case Kind::text:
            return "str";
        case Kind::list: {
            static constexpr std::string_view kNames[] = {"list",  "tuple",     "tuple",
                                                          "range", "dict view", "generator"};
            return kNames[size_t(value.list().kind)];
        }
        case Kind::dict:
            return value.dict().is_namespace ? "Namespace" : "dict";
        case Kind::function:
            return "function";
        case Kind::loop:
            break;
    }
    return "LoopContext";
}

bool truth(const Value& value) {
    switch (value.kind()) {
        case Kind::undefined:
        case Kind::none:
            return false;
        case Kind::boolean:
        case Kind::integer:
            return value.as_integer() != 0;
        case Kind::real:
            return value.as_real() != 0.0;
        case Kind::text:
            return !value.bytes().empty();
        case Kind::list:
            return value.list().kind == ListKind::generator || !value.list().items.empty();
        case Kind::dict:
            return value.dict().is_namespace || !value.dict().entries.empty();
        case Kind::function:
        case Kind::loop:
            break;
    }
    return true;
}

static bool equal_lists(Store& store, const List& a, const List& b, int depth) {
    if (&a == &b) return true;
    if (a.kind != b.kind || a.kind == ListKind::generator || a.items.size() != b.items.size()) return false;
    for (size_t i = 0; i < a.items.size(); ++i)
        if (!equal(store, a.items[i], b.items[i], depth + 1)) return false;
    return true;
}

static bool equal_dicts(Store& store, const Dict& a, const Dict& b, int depth) {
    if (&a == &b) return true;
    if (a.is_namespace || b.is_namespace || a.entries.size() != b.entries.size()) return false;
    for (const auto& [key, value] : a.entries) {
        const Value* other = b.find(store, key);
        if (!other || !equal(store, value, *other, depth + 1)) return false;
    }
    return true;
}

bool equal(Store& store, const Value& a, const Value& b, int depth) {
    store.step();
    if (depth > kDeepestCompared || !store.within_limits()) return false;
    if (a.is_number() && b.is_number()) {
        if (a.is_integer() && b.is_integer()) return a.as_integer() == b.as_integer();
        return a.as_real() == b.as_real();
    }
    if (a.kind() != b.kind()) return false;
    switch (a.kind()) {
        case Kind::text:
            if (a.bytes().size() == b.bytes().size()) store.scan(a.bytes().size());
            return a.bytes() == b.bytes();
        case Kind::list:
            return equal_lists(store, a.list(), b.list(), depth);
        case Kind::dict:
            return equal_dicts(store, a.dict(), b.dict(), depth);
        case Kind::function:
            return &a.function() == &b.function();
        case Kind::loop:
            return &a.loop() == &b.loop();
        default:
            break;
    }
    return true;
}

static Result<int> compare_lists(Store& store, const List& a, const List& b, int depth) {
    const size_t common = std::min(a.items.size(), b.items.size());
    for (size_t i = 0; i < common; ++i)
        if (!equal(store, a.items[i], b.items[i], depth + 1))
            return compare(store, a.items[i], b.items[i], depth + 1);
    return a.items.size() < b.items.size() ? -1 : a.items.size() > b.items.size();
}

Result<int> compare(Store& store, const Value& a, const Value& b, int depth) {
    store.step();
    if (depth > kDeepestCompared)
        return error("lists nested deeper than {} are not compared", kDeepestCompared);
    if (a.is_number() && b.is_number()) {
        if (a.is_integer() && b.is_integer())
            return a.as_integer() < b.as_integer() ? -1 : a.as_integer() > b.as_integer();
        return a.as_real() < b.as_real() ? -1 : a.as_real() > b.as_real();
    }
    if (a.is_text() && b.is_text()) {
        store.scan(std::min(a.bytes().size(), b.bytes().size()));
        const int order = a.bytes().compare(b.bytes());
        return order < 0 ? -1 : order > 0;
    }
    for (const Value* value : {&a, &b})
        if (value->is_undefined()) return error("{} is undefined", value->undefined_name());
    const auto ordered = [](const Value& v) { return v.is(Kind::list) && v.list().kind <= ListKind::group; };
    if (ordered(a) && ordered(b) && a.list().kind == b.list().kind)
        return compare_lists(store, a.list(), b.list(), depth);
    return error("a value of type {} cannot be ordered before or after one of type {}", type_name(a),
                 type_name(b));
}

static std::vector<Value> characters(Store& store, const Text& text) {
    std::vector<Value> out;
    if (!store.reserve(text.bytes.size() * sizeof(Value))) return out;
    for (size_t at = 0; at < text.bytes.size() && store.within_limits();) {
        const size_t end = at + character_bytes(text.bytes, at);
        out.push_back(part(store, text, at, end));
        at = end;
    }
    return out;
}

Result<std::vector<Value>> elements(Store& store, const Value& value) {
    std::vector<Value> out;
    switch (value.kind()) {
        case Kind::undefined:
            return out;
        case Kind::text:
            return characters(store, value.as_text());
        case Kind::list:
            if (value.list().kind == ListKind::generator) return std::exchange(value.list().items, {});
            if (store.reserve(value.list().items.size() * sizeof(Value))) out = value.list().items;
            return out;
        case Kind::dict:
            if (value.dict().is_namespace) break;
            if (!store.reserve(value.dict().entries.size() * sizeof(Value))) return out;
            for (const auto& entry : value.dict().entries) out.push_back(entry.first);
            return out;
        default:
            break;
    }
    return error("a value of type {} has no elements to go through", type_name(value));
}

Result<size_t> length(const Value& value) {
    switch (value.kind()) {
        case Kind::undefined:
            return 0;
        case Kind::text:
            return count_characters(value.bytes());
        case Kind::list:
            if (value.list().kind == ListKind::generator) break;
            return value.list().items.size();
        case Kind::dict:
            if (value.dict().is_namespace) break;
            return value.dict().entries.size();
        case Kind::loop:
            return value.loop().items.size();
        default:
            break;
    }
    return error("a value of type {} has no length", type_name(value));
}

// ---- dicts ----

const Value* Dict::find(Store& store, const Value& key) const {
    store.step(entries.size() / 8);
    for (const auto& entry : entries)
        if (equal(store, entry.first, key)) return &entry.second;
    return nullptr;
}

const Value* Dict::find(Store& store, std::string_view key) const {
    store.step(entries.size() / 8);
    for (const auto& entry : entries)
        if (entry.first.is_text() && entry.first.bytes() == key) return &entry.second;
    return nullptr;
}

void Dict::set(Store& store, const Value& key, const Value& value) {
    if (const Value* found = find(store, key)) {
        const_cast<Value&>(*found) = value;
        return;
    }
    if (store.reserve(sizeof(entries[0]))) entries.emplace_back(key, value);
}

}  // namespace redline::jinja
