// Values of a template: those of Python that templates use. Containers belong to a Store and live as long as
// it does, so that cycles and long chains of them need no care; texts are shared.
#pragma once

#include "base/result.h"
#include "text/tokens/special_splitter.h"

#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace redline::jinja {

struct Limits {
    uint64_t steps = 50'000'000;         // evaluated expressions, and 16 bytes of text looked at
    uint64_t bytes = uint64_t(1) << 28;  // of all texts and containers that are made
    uint64_t output = uint64_t(1) << 26;
    uint32_t depth = 1000;  // of calls and expressions inside each other
};

// Valid UTF-8, and which of its bytes come from values that were given to the template: what a user wrote.
struct Text {
    std::string bytes;
    std::vector<TextRange> given;  // ascending, disjoint
};

class Value;
class Store;
struct List;
struct Dict;
struct Function;
struct Loop;

enum class Kind : uint8_t { undefined, none, boolean, integer, real, text, list, dict, function, loop };

class Value {
public:
    Value() : integer_(0) {}  // undefined
    // The name is for messages and must outlive the value.
    static Value undefined(const std::string* name = nullptr) {
        Value value;
        value.name_ = name;
        return value;
    }
    static Value none() { return Value(Kind::none); }
    static Value boolean(bool b) {
        Value value(Kind::boolean);
        value.integer_ = b;
        return value;
    }
    static Value integer(int64_t i) {
        Value value(Kind::integer);
        value.integer_ = i;
        return value;
    }
    static Value real(double d) {
        Value value(Kind::real);
        value.real_ = d;
        return value;
    }
    static Value text(std::shared_ptr<const Text> text) {
        Value value(Kind::text);
        value.text_ = std::move(text);
        return value;
    }
    // A text of the template's or the program's own; not counted by the Store: for short ones.
    static Value literal(std::string_view bytes);
    static Value of(List* list) {
        Value value(Kind::list);
        value.list_ = list;
        return value;
    }
    static Value of(Dict* dict) {
        Value value(Kind::dict);
        value.dict_ = dict;
        return value;
    }
    static Value of(Function* function) {
        Value value(Kind::function);
        value.function_ = function;
        return value;
    }
    static Value of(Loop* loop) {
        Value value(Kind::loop);
        value.loop_ = loop;
        return value;
    }

    Kind kind() const { return kind_; }
    bool is(Kind kind) const { return kind_ == kind; }
    bool is_undefined() const { return kind_ == Kind::undefined; }
    bool is_none() const { return kind_ == Kind::none; }
    bool is_text() const { return kind_ == Kind::text; }
    // Python's integers, of which booleans are two.
    bool is_integer() const { return kind_ == Kind::integer || kind_ == Kind::boolean; }
    bool is_number() const { return is_integer() || kind_ == Kind::real; }
    // Anything but a namespace that is looked up by key.
    bool is_mapping() const;

    bool as_boolean() const { return integer_ != 0; }
    int64_t as_integer() const { return integer_; }
    double as_real() const { return kind_ == Kind::real ? real_ : double(integer_); }
    const Text& as_text() const { return *text_; }
    std::string_view bytes() const { return text_->bytes; }
    List& list() const { return *list_; }
    Dict& dict() const { return *dict_; }
    Function& function() const { return *function_; }
    Loop& loop() const { return *loop_; }
    // "'x'", or "the value" for one without a name.
    std::string undefined_name() const;

private:
    explicit Value(Kind kind) : kind_(kind), integer_(0) {}

    Kind kind_ = Kind::undefined;
    union {
        int64_t integer_;
        double real_;
        List* list_;
        Dict* dict_;
        Function* function_;
        Loop* loop_;
        const std::string* name_;
    };
    std::shared_ptr<const Text> text_;
};

// A generator can be gone through once, as Python's; a view is what items(), keys() and values() return.
// a group is groupby's tuple of (grouper, list).
enum class ListKind : uint8_t { list, tuple, group, range, view, generator };

struct List {
    ListKind kind = ListKind::list;
    std::vector<Value> items;
};

struct Dict {
    bool is_namespace = false;
    std::vector<std::pair<Value, Value>> entries;  // in the order of insertion

    void set(Store& store, const Value& key, const Value& value);
    void set(std::string_view key, const Value& value) {  // of a new key
        entries.emplace_back(Value::literal(key), value);
    }
    const Value* find(Store& store, const Value& key) const;
    const Value* find(Store& store, std::string_view key) const;
};

// One `for` being run: what `loop` shows of it.
struct Loop {
    std::vector<Value> items;
    size_t index = 0;
    size_t depth = 0;
    std::vector<Value> last_seen;     // by changed()
    const void* statement = nullptr;  // of a recursive loop: what loop(...) runs again
    std::shared_ptr<struct Scope> scope;
};

struct Arguments {
    std::vector<Value> positional;
    std::vector<std::pair<std::string_view, Value>> named;
};

class Interpreter;
using Builtin = Result<Value> (*)(Interpreter&, const Value& self, const Arguments&);

struct Function {
    std::string_view name;
    Builtin builtin = nullptr;
    Value self;                   // of a method
    const void* macro = nullptr;  // the statement that defines it
    std::shared_ptr<struct Scope> scope;
};

// Owns what a template makes and counts it. What is over a limit is not made: the interpreter asks after each
// operation whether the limits still hold.
class Store {
public:
    explicit Store(const Limits& limits = {}) : limits_(limits) {}
    Store(const Store&) = delete;
    Store& operator=(const Store&) = delete;

    void step(uint64_t count = 1) { steps_ += count; }
    // Text that is looked at, not made.
    void scan(size_t bytes) { steps_ += bytes / 16; }
    // False: so much more may not be made.
    bool reserve(uint64_t bytes);
    bool within_limits() const { return !exceeded_ && steps_ <= limits_.steps; }
    Status check() const;
    const Limits& limits() const { return limits_; }

    List* list(ListKind kind = ListKind::list);
    Value list(std::vector<Value> items, ListKind kind = ListKind::list);
    Value tuple(const Value& first, const Value& second);
    Dict* dict();
    Loop* loop();
    Function* function(Function function);
    Value method(std::string_view name, Builtin builtin, const Value& self);
    // A text from outside: what is no UTF-8 in it becomes U+FFFD.
    Value text(std::string_view bytes, bool given);

private:
    Limits limits_;
    uint64_t steps_ = 0;
    uint64_t bytes_ = 0;
    bool exceeded_ = false;
    std::vector<std::unique_ptr<List>> lists_;
    std::vector<std::unique_ptr<Dict>> dicts_;
    std::vector<std::unique_ptr<Loop>> loops_;
    std::vector<std::unique_ptr<Function>> functions_;
};

// Puts texts together and keeps the origin of their bytes.
class TextBuilder {
public:
    explicit TextBuilder(Store& store) : store_(store) {}
    void add(std::string_view bytes, bool given = false);
    void add(const Text& text, size_t begin, size_t end);
    void add(const Text& text) { add(text, 0, text.bytes.size()); }
    void add(const Value& value);  // as str() writes it
    size_t size() const { return text_.bytes.size(); }
    Value take();
    Text take_text() { return std::move(text_); }
    Store& store() { return store_; }

private:
    Store& store_;
    Text text_;
};

Value part(Store& store, const Text& text, size_t begin, size_t end);

// As Python's type(x).__name__.
std::string_view type_name(const Value& value);
bool truth(const Value& value);
bool equal(Store& store, const Value& a, const Value& b, int depth = 0);
// -1, 0, 1; an error for what Python does not order.
Result<int> compare(Store& store, const Value& a, const Value& b, int depth = 0);
// The elements of what can be gone through: a text's characters, a dict's keys. A generator is empty then.
Result<std::vector<Value>> elements(Store& store, const Value& value);
Result<size_t> length(const Value& value);

// As str() and repr() of Python write it.
void write_text(TextBuilder& out, const Value& value);
void write_repr(TextBuilder& out, const Value& value, int depth = 0);
std::string real_text(double value);

struct JsonStyle {
    std::optional<std::string> indent;  // per level; none: one line
    bool ascii = false;                 // other characters as \uXXXX
    bool sort_keys = false;
    std::string item_separator = ", ";
    std::string key_separator = ": ";
};
// As Python's json.dumps.
Status write_json(TextBuilder& out, const Value& value, const JsonStyle& style, int depth = 0);

// Characters of UTF-8.
size_t count_characters(std::string_view bytes);
// Where the character of that index begins; the size of the text for an index past its end.
size_t character_offset(std::string_view bytes, size_t index);
size_t character_bytes(std::string_view bytes, size_t at);

}  // namespace redline::jinja
