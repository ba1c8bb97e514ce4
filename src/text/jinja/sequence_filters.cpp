// Filters on lists, dicts and other values with elements.
#include "text/jinja/filters.h"

#include <algorithm>

namespace redline::jinja {
namespace {

Result<Value> count(Interpreter&, const Value& self, const Arguments& arguments) {
    RL_TRY(bind(arguments, {}));
    return Value::integer(int64_t(RL_TRY(length(self))));
}

Result<Value> list(Interpreter& in, const Value& self, const Arguments& arguments) {
    RL_TRY(bind(arguments, {}));
    return in.store().list(RL_TRY(elements(in.store(), self)));
}

Result<Value> first(Interpreter& in, const Value& self, const Arguments& arguments) {
    RL_TRY(bind(arguments, {}));
    const std::vector<Value> all = RL_TRY(elements(in.store(), self));
    return all.empty() ? Value() : all.front();
}

Result<Value> last(Interpreter& in, const Value& self, const Arguments& arguments) {
    RL_TRY(bind(arguments, {}));
    if (self.is(Kind::list) && self.list().kind == ListKind::generator)
        return error("a generator has no last element: make a list of it first");
    const std::vector<Value> all = RL_TRY(elements(in.store(), self));
    return all.empty() ? Value() : all.back();
}

Result<Value> reverse(Interpreter& in, const Value& self, const Arguments& arguments) {
    RL_TRY(bind(arguments, {}));
    std::vector<Value> all = RL_TRY(elements(in.store(), self));
    std::reverse(all.begin(), all.end());
    if (!self.is_text()) return in.store().list(std::move(all), ListKind::generator);
    return join(in.store(), all, Text());
}

Result<Value> items(Interpreter& in, const Value& self, const Arguments& arguments) {
    RL_TRY(bind(arguments, {}));
    if (self.is_undefined()) return in.store().list({}, ListKind::generator);
    if (!self.is_mapping()) return error("items takes a dict, not a value of type {}", type_name(self));
    std::vector<Value> out;
    for (const auto& [key, value] : self.dict().entries) {
        if (!in.store().within_limits()) break;
        out.push_back(in.store().tuple(key, value));
    }
    return in.store().list(std::move(out), ListKind::generator);
}

// An attribute by a path, which may also be an index; `fallback` where it is missing.
Result<Value> attribute_of(Store& store, const Value& value, const Value& path, const Value& fallback = {}) {
    Value found = path.is_text() ? RL_TRY(attribute_path(store, value, path.bytes(), fallback))
                                 : RL_TRY(subscript(store, value, path));
    return found.is_undefined() ? fallback : found;
}

Result<Value> join_filter(Interpreter& in, const Value& self, const Arguments& arguments) {
    const std::vector<Value> values = RL_TRY(bind(arguments, {"d", "attribute"}));
    std::vector<Value> all = RL_TRY(elements(in.store(), self));
    if (!values[1].is_undefined() && !values[1].is_none())
        for (Value& item : all) item = RL_TRY(attribute_of(in.store(), item, values[1]));
    const Value separator = to_text_value(in.store(), values[0]);
    return join(in.store(), all, separator.as_text());
}

// The key to sort a value by: in lower case unless case matters.
Value sort_key(Store& store, const Value& value, bool case_sensitive) {
    return value.is_text() && !case_sensitive ? change_case(store, value.as_text(), Case::lower) : value;
}

struct Keyed {
    std::vector<Value> keys;
    Value item;
};

// Sorts stably; returns the first error of a comparison.
Status sort_keyed(Store& store, std::vector<Keyed>& all, bool down) {
    Status fault;
    const auto before = [&](const Keyed& a, const Keyed& b) {
        for (size_t i = 0; fault.ok() && i < a.keys.size(); ++i) {
            const Result<int> order = compare(store, a.keys[i], b.keys[i]);
            if (!order)
                fault = order.error();
            else if (order.value() != 0)
                return down ? order.value() > 0 : order.value() < 0;
        }
        return false;
    };
    std::stable_sort(all.begin(), all.end(), before);
    return fault;
}

Result<Value> sort(Interpreter& in, const Value& self, const Arguments& arguments) {
    const std::vector<Value> values = RL_TRY(bind(arguments, {"reverse", "case_sensitive", "attribute"}));
    Store& store = in.store();
    std::vector<Value> paths;
    if (values[2].is_text())
        paths = RL_TRY(find_text_method("split")(in, values[2], {{Value::literal(",")}, {}})).list().items;
    else if (values[2].is_integer())
        paths.push_back(values[2]);
    std::vector<Keyed> all;
    for (const Value& item : RL_TRY(elements(store, self))) {
        Keyed keyed{{}, item};
        if (paths.empty()) keyed.keys.push_back(sort_key(store, item, truth(values[1])));
        for (const Value& path : paths)
            keyed.keys.push_back(sort_key(store, RL_TRY(attribute_of(store, item, path)), truth(values[1])));
        all.push_back(std::move(keyed));
    }
    RL_TRY(sort_keyed(store, all, truth(values[0])));
    std::vector<Value> out;
    for (Keyed& keyed : all) out.push_back(std::move(keyed.item));
    return store.list(std::move(out));
}

Result<Value> sort_dict(Interpreter& in, const Value& self, const Arguments& arguments) {
    const std::vector<Value> values = RL_TRY(bind(arguments, {"case_sensitive", "by", "reverse"}));
    const Value by = RL_TRY(take_text(values[1], "by", "key"));
    if (by.bytes() != "key" && by.bytes() != "value") return error("dictsort sorts by \"key\" or \"value\"");
    if (self.is_undefined()) return error("{} is undefined", self.undefined_name());
    if (!self.is_mapping()) return error("dictsort takes a dict, not a value of type {}", type_name(self));
    Store& store = in.store();
    std::vector<Keyed> all;
    for (const auto& [key, value] : self.dict().entries)
        all.push_back({{sort_key(store, by.bytes() == "key" ? key : value, truth(values[0]))},
                       store.tuple(key, value)});
    RL_TRY(sort_keyed(store, all, truth(values[2])));
    std::vector<Value> out;
    for (Keyed& keyed : all) out.push_back(std::move(keyed.item));
    return store.list(std::move(out));
}

Result<Value> group(Interpreter& in, const Value& self, const Arguments& arguments) {
    const std::vector<Value> values = RL_TRY(bind(arguments, {"attribute", "default", "case_sensitive"}, 1));
    Store& store = in.store();
    std::vector<Keyed> all;
    for (const Value& item : RL_TRY(elements(store, self))) {
        Value key = RL_TRY(attribute_of(store, item, values[0], values[1]));
        all.push_back({{sort_key(store, key, truth(values[2])), key}, item});
    }
    // Groups are named by the value as it is written, which sorting ignores.
    for (Keyed& keyed : all) {
        keyed.item = store.tuple(keyed.keys[1], keyed.item);
        keyed.keys.pop_back();
    }
    RL_TRY(sort_keyed(store, all, false));
    std::vector<Value> groups;
    for (size_t i = 0; i < all.size();) {
        const size_t begin = i;
        std::vector<Value> members;
        for (; i < all.size() && equal(store, all[i].keys[0], all[begin].keys[0]); ++i)
            members.push_back(all[i].item.list().items[1]);
        if (i == begin) break;  // the limits are exceeded, so that nothing is equal
        groups.push_back(
            store.list({all[begin].item.list().items[0], store.list(std::move(members))}, ListKind::group));
    }
    return store.list(std::move(groups));
}

Result<Value> unique(Interpreter& in, const Value& self, const Arguments& arguments) {
    const std::vector<Value> values = RL_TRY(bind(arguments, {"case_sensitive", "attribute"}));
    Store& store = in.store();
    std::vector<Value> seen;
    std::vector<Value> out;
    for (const Value& item : RL_TRY(elements(store, self))) {
        if (!store.within_limits()) break;
        Value key = values[1].is_undefined() ? item : RL_TRY(attribute_of(store, item, values[1]));
        key = sort_key(store, key, truth(values[0]));
        if (std::any_of(seen.begin(), seen.end(), [&](const Value& v) { return equal(store, v, key); }))
            continue;
        seen.push_back(key);
        out.push_back(item);
    }
    return store.list(std::move(out), ListKind::generator);
}

template <bool largest>
Result<Value> extreme(Interpreter& in, const Value& self, const Arguments& arguments) {
    const std::vector<Value> values = RL_TRY(bind(arguments, {"case_sensitive", "attribute"}));
    Store& store = in.store();
    Value best;
    Value best_key;
    bool any = false;
    for (const Value& item : RL_TRY(elements(store, self))) {
        Value key = values[1].is_undefined() ? item : RL_TRY(attribute_of(store, item, values[1]));
        key = sort_key(store, key, truth(values[0]));
        if (any) {
            const int order = RL_TRY(compare(store, key, best_key));
            if (largest ? order <= 0 : order >= 0) continue;
        }
        any = true;
        best = item;
        best_key = key;
    }
    return best;
}

Result<Value> sum(Interpreter& in, const Value& self, const Arguments& arguments) {
    const std::vector<Value> values = RL_TRY(bind(arguments, {"attribute", "start"}));
    Value total = values[1].is_undefined() ? Value::integer(0) : values[1];
    for (const Value& item : RL_TRY(elements(in.store(), self))) {
        const bool whole = values[0].is_undefined() || values[0].is_none();
        const Value summand = whole ? item : RL_TRY(attribute_of(in.store(), item, values[0]));
        total = RL_TRY(arithmetic(in.store(), "+", total, summand));
    }
    return total;
}

Result<Value> batch(Interpreter& in, const Value& self, const Arguments& arguments) {
    const std::vector<Value> values = RL_TRY(bind(arguments, {"linecount", "fill_with"}, 1));
    const int64_t size = RL_TRY(take_integer(values[0], "linecount", 0));
    if (size < 1 || size > 100000) return error("a batch has 1 to 100000 elements, not {}", size);
    std::vector<Value> batches;
    std::vector<Value> now;
    for (const Value& item : RL_TRY(elements(in.store(), self))) {
        now.push_back(item);
        if (int64_t(now.size()) == size) batches.push_back(in.store().list(std::exchange(now, {})));
    }
    if (!now.empty()) {
        if (!values[1].is_undefined() && !values[1].is_none()) now.resize(size_t(size), values[1]);
        batches.push_back(in.store().list(std::move(now)));
    }
    return in.store().list(std::move(batches), ListKind::generator);
}

Result<Value> slice_filter(Interpreter& in, const Value& self, const Arguments& arguments) {
    const std::vector<Value> values = RL_TRY(bind(arguments, {"slices", "fill_with"}, 1));
    const int64_t slices = RL_TRY(take_integer(values[0], "slices", 0));
    if (slices < 1 || slices > 100000) return error("there can be 1 to 100000 slices, not {}", slices);
    const std::vector<Value> all = RL_TRY(elements(in.store(), self));
    const size_t least = all.size() / size_t(slices);
    const size_t longer = all.size() % size_t(slices);
    std::vector<Value> out;
    size_t at = 0;
    for (size_t i = 0; i < size_t(slices); ++i) {
        const size_t end = at + least + (i < longer);
        std::vector<Value> one(all.begin() + int64_t(at), all.begin() + int64_t(end));
        if (longer && i >= longer && !values[1].is_undefined() && !values[1].is_none())
            one.push_back(values[1]);
        out.push_back(in.store().list(std::move(one)));
        at = end;
    }
    return in.store().list(std::move(out), ListKind::generator);
}

// map(attribute=...) or map("filter", arguments...). Like select(), it accepts none and zero as empty.
Result<Value> map(Interpreter& in, const Value& self, const Arguments& arguments) {
    std::vector<Value> out;
    if (!truth(self)) return in.store().list(std::move(out), ListKind::generator);
    if (arguments.positional.empty()) {
        const std::vector<Value> values = RL_TRY(bind(arguments, {"attribute", "default"}, 1));
        for (const Value& item : RL_TRY(elements(in.store(), self)))
            out.push_back(RL_TRY(attribute_of(in.store(), item, values[0], values[1])));
        return in.store().list(std::move(out), ListKind::generator);
    }
    const Value name = RL_TRY(take_text(arguments.positional[0], "name", ""));
    Arguments inner = arguments;
    inner.positional.erase(inner.positional.begin());
    for (const Value& item : RL_TRY(elements(in.store(), self))) {
        RL_TRY(in.store().check());
        out.push_back(RL_TRY(in.filter(name.bytes(), item, inner)));
    }
    return in.store().list(std::move(out), ListKind::generator);
}

// select("test", arguments...), selectattr("attribute", "test", arguments...) and their opposites.
template <bool by_attribute, bool wanted>
Result<Value> select(Interpreter& in, const Value& self, const Arguments& arguments) {
    if (!truth(self)) return in.store().list({}, ListKind::generator);
    Arguments inner = arguments;
    Value path;
    if (by_attribute) {
        if (inner.positional.empty()) return error("the name of an attribute is needed");
        path = inner.positional[0];
        inner.positional.erase(inner.positional.begin());
    }
    std::string test;
    if (!inner.positional.empty()) {
        test = RL_TRY(take_text(inner.positional[0], "test", "")).bytes();
        inner.positional.erase(inner.positional.begin());
    }
    std::vector<Value> out;
    for (const Value& item : RL_TRY(elements(in.store(), self))) {
        RL_TRY(in.store().check());
        const Value subject = by_attribute ? RL_TRY(attribute_of(in.store(), item, path)) : item;
        const bool holds = test.empty() ? truth(subject) : RL_TRY(in.test(test, subject, inner));
        if (holds == wanted) out.push_back(item);
    }
    return in.store().list(std::move(out), ListKind::generator);
}

constexpr NamedBuiltin kFilters[] = {
    {"batch", batch},
    {"count", count},
    {"dictsort", sort_dict},
    {"first", first},
    {"groupby", group},
    {"items", items},
    {"join", join_filter},
    {"last", last},
    {"length", count},
    {"list", list},
    {"map", map},
    {"max", extreme<true>},
    {"min", extreme<false>},
    {"reject", select<false, false>},
    {"rejectattr", select<true, false>},
    {"reverse", reverse},
    {"select", select<false, true>},
    {"selectattr", select<true, true>},
    {"slice", slice_filter},
    {"sort", sort},
    {"sum", sum},
    {"unique", unique},
};

}  // namespace

Builtin find_sequence_filter(std::string_view name) {
    return find_builtin(kFilters, name);
}

}  // namespace redline::jinja
