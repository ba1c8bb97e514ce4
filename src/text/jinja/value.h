// Values of a template: the types of Python that templates use. Containers belong to a Store and live as long
// as it does, so that cycles and long chains of them are harmless; texts are shared.
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
    uint64_t steps = 50'000'000;         // evaluated expressions, and 16 bytes of text read
    uint64_t bytes = uint64_t(1) << 28;  // of all texts and containers that are created
    uint64_t output = uint64_t(1) << 26;
    uint32_t depth = 1000;  // of nested calls and expressions
};

// Valid UTF-8, and the ranges of its bytes that come from values given to the template: a user's text.
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
    // A text of the template or the program; not counted by the Store, so only for short ones.
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
    // Python's integers, which include booleans.
    bool is_integer() const { return kind_ == Kind::integer || kind_ == Kind::boolean; }
    bool is_number() const { return is_integer() || kind_ == Kind::real; }
    // True for dicts that are not namespaces.
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

// A generator can be iterated once, as in Python; a view is the result of items(), keys() and values(); a
// group is groupby's tuple of (grouper, list).
enum class ListKind : uint8_t { list, tuple, group, range, view, generator };

struct List {
    ListKind kind = ListKind::list;
    std::vector<Value> items;
};

struct Dict {
    bool is_namespace = false;
    std::vector<std::pair<Value, Value>> entries;  // in the order of insertion

    void set(Store& store, const Value& key, const Value& value);
    void set(std::string_view key, const Value& value) {  // for a new key
        entries.emplace_back(Value::literal(key), value);
    }
    const Value* find(Store& store, const Value& key) const;
    const Value* find(Store& store, std::string_view key) const;
};

// The state of a running `for`, which `loop` shows.
struct Loop {
    std::vector<Value> items;
    size_t index = 0;
    size_t depth = 0;
    std::vector<Value> last_seen;     // for changed()
    const void* statement = nullptr;  // for a recursive loop: the statement that loop(...) runs again
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
    Value self;                   // for a method
    const void* macro = nullptr;  // the statement that defines it
    std::shared_ptr<struct Scope> scope;
};

// Owns and counts everything that a template creates. Beyond a limit nothing is created: the interpreter
// checks the limits after each operation.
class Store {
public:
    explicit Store(const Limits& limits = {}) : limits_(limits) {}
    Store(const Store&) = delete;
    Store& operator=(const Store&) = delete;

    void step(uint64_t count = 1) { steps_ += count; }
    // Counts text that is read.
    void scan(size_t bytes) { steps_ += bytes / 16; }
    // False: so many more bytes may not be created.
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
    // A text from outside; invalid UTF-8 in it becomes U+FFFD.
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

// Concatenates texts and keeps the origin of their bytes.
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

// The name of a type as in Python's type(x).__name__.
std::string_view type_name(const Value& value);
bool truth(const Value& value);
bool equal(Store& store, const Value& a, const Value& b, int depth = 0);
// -1, 0, 1; an error for values that Python does not order.
Result<int> compare(Store& store, const Value& a, const Value& b, int depth = 0);
// The elements of an iterable: a text's characters, a dict's keys. A generator is empty afterwards.
Result<std::vector<Value>> elements(Store& store, const Value& value);
Result<size_t> length(const Value& value);

// Write a value as Python's str() and repr() do.
void write_text(TextBuilder& out, const Value& value);
void write_repr(TextBuilder& out, const Value& value, int depth = 0);
std::string real_text(double value);

struct JsonStyle {
    std::optional<std::string> indent;  // per level; empty: one line
    bool ascii = false;                 // writes other characters as \uXXXX
    bool sort_keys = false;
    std::string item_separator = ", ";
    std::string key_separator = ": ";
};
// Writes like Python's json.dumps.
Status write_json(TextBuilder& out, const Value& value, const JsonStyle& style, int depth = 0);

// The number of UTF-8 characters.
size_t count_characters(std::string_view bytes);
// The byte offset of the character with this index; the size of the text for an index past its end.
size_t character_offset(std::string_view bytes, size_t index);
size_t character_bytes(std::string_view bytes, size_t at);

}  // namespace redline::jinja
