// The rules of JSON that a schema's grammar uses, each added at its first use.
#pragma once

#include "base/result.h"
#include "json/json.h"

#include <map>
#include <optional>
#include <string>

namespace redline {

class JsonRules {
public:
    // Adds a rule with this text, or returns an equal one. Its name begins with `hint`.
    std::string add(const std::string& hint, const std::string& text);
    // Names a rule that is defined later, for rules that refer to themselves.
    std::string reserve(const std::string& hint);
    // Reserves exactly this name; false: it is taken.
    bool reserve_exact(const std::string& name);
    void define(const std::string& name, const std::string& text);

    // Returns the name of a rule of JSON ("string", "value", "ws", ...) and adds it with all rules that it
    // needs.
    std::string use(std::string_view name);
    std::string text() const;  // of all rules
    size_t bytes() const { return bytes_; }

private:
    std::map<std::string, std::string> rules_;  // by name
    std::map<std::string, std::string> names_;  // by text
    size_t bytes_ = 0;
};

// Quotes a text as a literal of GBNF.
std::string gbnf_quoted(std::string_view text);
// Writes item{least,most}.
std::string repeated(const std::string& item, uint64_t least, std::optional<uint64_t> most);
// The JSON pointer of a member of the object at `path`.
std::string member_pointer(const std::string& path, std::string_view name);

}  // namespace redline
