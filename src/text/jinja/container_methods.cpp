// Methods of lists and dicts, and the functions that every template can call.
#include "text/jinja/arguments.h"

#include <algorithm>

namespace redline::jinja {
namespace {

constexpr int64_t kLongestRange = 100000;  // as in jinja2's sandbox

Value entry_pair(Store& store, const std::pair<Value, Value>& entry) {
    return store.tuple(entry.first, entry.second);
}

// ---- dicts ----

Result<Value> dict_get(Interpreter& in, const Value& self, const Arguments& arguments) {
    const std::vector<Value> values = RL_TRY(bind(arguments, {"key", "default"}, 1));
    if (const Value* found = self.dict().find(in.store(), values[0])) return *found;
    const bool given = arguments.positional.size() + arguments.named.size() > 1;
    return given ? values[1] : Value::none();
}

enum class View : uint8_t { keys, values, items };

template <View view>
Result<Value> dict_view(Interpreter& in, const Value& self, const Arguments& arguments) {
    RL_TRY(bind(arguments, {}));
    std::vector<Value> out;
    for (const auto& entry : self.dict().entries) {
        if (!in.store().within_limits()) break;
        out.push_back(view == View::keys     ? entry.first
                      : view == View::values ? entry.second
                                             : entry_pair(in.store(), entry));
    }
    return in.store().list(std::move(out), ListKind::view);
}

Result<Value> dict_copy(Interpreter& in, const Value& self, const Arguments& arguments) {
    RL_TRY(bind(arguments, {}));
    Dict* copy = in.store().dict();
    if (in.store().reserve(self.dict().entries.size() * 2 * sizeof(Value)))
        copy->entries = self.dict().entries;
    return Value::of(copy);
}

constexpr NamedBuiltin kDictMethods[] = {
    {"copy", dict_copy},
    {"get", dict_get},
    {"items", dict_view<View::items>},
    {"keys", dict_view<View::keys>},
    {"values", dict_view<View::values>},
};

// ---- lists: append and pop, too, though transformers' sandbox refuses them; llama.cpp's users know them
// ----

Status check_list(const Value& self, std::string_view name) {
    if (self.list().kind == ListKind::list) return {};
    return error("a value of type {} has no method \"{}\"", type_name(self), name);
}

Result<Value> list_append(Interpreter& in, const Value& self, const Arguments& arguments) {
    RL_TRY(check_list(self, "append"));
    const Value item = RL_TRY(bind(arguments, {"item"}, 1))[0];
    if (in.store().reserve(2 * sizeof(Value))) self.list().items.push_back(item);
    return Value::none();
}

Result<Value> list_pop(Interpreter& in, const Value& self, const Arguments& arguments) {
    RL_TRY(check_list(self, "pop"));
    std::vector<Value>& items = self.list().items;
    int64_t at = RL_TRY(bind_integer(arguments, "index", -1));
    if (at < 0) at += int64_t(items.size());
    if (at < 0 || uint64_t(at) >= items.size()) return error("the list has no element of that index");
    in.store().step(items.size() / 16);
    Value item = items[size_t(at)];
    items.erase(items.begin() + at);
    return item;
}

Result<Value> list_index(Interpreter& in, const Value& self, const Arguments& arguments) {
    const Value item = RL_TRY(bind(arguments, {"item"}, 1))[0];
    const std::vector<Value>& items = self.list().items;
    for (size_t i = 0; i < items.size(); ++i)
        if (equal(in.store(), items[i], item)) return Value::integer(int64_t(i));
    return error("the value looked for is not in the list");
}

Result<Value> list_count(Interpreter& in, const Value& self, const Arguments& arguments) {
    const Value item = RL_TRY(bind(arguments, {"item"}, 1))[0];
    int64_t count = 0;
    for (const Value& one : self.list().items) count += equal(in.store(), one, item);
    return Value::integer(count);
}

constexpr NamedBuiltin kListMethods[] = {
    {"append", list_append},
    {"count", list_count},
    {"index", list_index},
    {"pop", list_pop},
};

// ---- functions ----

Result<Value> range(Interpreter& in, const Value&, const Arguments& arguments) {
    if (!arguments.named.empty() || arguments.positional.empty() || arguments.positional.size() > 3)
        return error("range() takes one to three integers");
    int64_t numbers[3] = {};
    for (size_t i = 0; i < arguments.positional.size(); ++i) {
        const Value& value = arguments.positional[i];
        if (value.is_undefined()) return error("{} is undefined", value.undefined_name());
        if (!value.is_integer())
            return error("range() takes integers, not a value of type {}", type_name(value));
        numbers[i] = value.as_integer();
    }
    const bool one = arguments.positional.size() == 1;
    const int64_t begin = one ? 0 : numbers[0];
    const int64_t end = one ? numbers[0] : numbers[1];
    const int64_t step = arguments.positional.size() == 3 ? numbers[2] : 1;
    if (step == 0) return error("the step of range() cannot be zero");
    std::vector<Value> out;
    for (int64_t i = begin; step > 0 ? i < end : i > end;) {
        if (int64_t(out.size()) == kLongestRange)
            return error("range() has more than {} numbers", kLongestRange);
        out.push_back(Value::integer(i));
        if (__builtin_add_overflow(i, step, &i)) break;
    }
    return in.store().list(std::move(out), ListKind::range);
}

Result<Value> make_dict(Interpreter& in, const Arguments& arguments, bool is_namespace) {
    Dict* made = in.store().dict();
    made->is_namespace = is_namespace;
    if (arguments.positional.size() > 1) return error("one value at most, or values with names, are taken");
    for (const Value& from : arguments.positional) {
        if (from.is_mapping()) {
            for (const auto& [key, value] : from.dict().entries) made->set(in.store(), key, value);
            continue;
        }
        for (const Value& pair : RL_TRY(elements(in.store(), from))) {
            const std::vector<Value> both = RL_TRY(elements(in.store(), pair));
            if (both.size() != 2) return error("a dict is made of pairs, not of {} values", both.size());
            made->set(in.store(), both[0], both[1]);
        }
    }
    for (const auto& [name, value] : arguments.named) made->set(in.store(), Value::literal(name), value);
    return Value::of(made);
}

Result<Value> make_namespace(Interpreter& in, const Value&, const Arguments& arguments) {
    return make_dict(in, arguments, true);
}

Result<Value> make_plain_dict(Interpreter& in, const Value&, const Arguments& arguments) {
    return make_dict(in, arguments, false);
}

Result<Value> raise_exception(Interpreter& in, const Value&, const Arguments& arguments) {
    const Value text = to_text_value(in.store(), RL_TRY(bind(arguments, {"message"}, 1))[0]);
    return error("the template refuses the conversation: {}", text.bytes());
}

Result<Value> strftime_now(Interpreter& in, const Value&, const Arguments& arguments) {
    const Value form = RL_TRY(bind_text(arguments, "format"));
    char buffer[1024];
    // The C locale's names, as long as nobody sets another.
    const size_t size = std::strftime(buffer, sizeof(buffer), std::string(form.bytes()).c_str(), &in.now());
    return in.store().text({buffer, size}, false);
}

constexpr NamedBuiltin kGlobals[] = {
    {"dict", make_plain_dict}, {"namespace", make_namespace},  {"raise_exception", raise_exception},
    {"range", range},          {"strftime_now", strftime_now},
};

}  // namespace

Builtin find_dict_method(std::string_view name) {
    return find_builtin(kDictMethods, name);
}

Builtin find_list_method(std::string_view name) {
    return find_builtin(kListMethods, name);
}

Builtin find_global(std::string_view name) {
    return find_builtin(kGlobals, name);
}

}  // namespace redline::jinja
