// The rules of JSON that a schema's grammar is made of, each added when it is first used.
#pragma once

#include "base/result.h"
#include "json/json.h"

#include <map>
#include <optional>
#include <string>

namespace redline {

class JsonRules {
public:
    // A rule of this text; equal texts share one. Its name begins with `hint`.
    std::string add(const std::string& hint, const std::string& text);
    // A rule to be defined later: rules that refer to themselves.
    std::string reserve(const std::string& hint);
    // False: the name is taken.
    bool reserve_exact(const std::string& name);
    void define(const std::string& name, const std::string& text);

    // The name of a rule of JSON: "string", "value", "ws", ... with all that it needs.
    std::string use(std::string_view name);
    std::string text() const;  // of all rules
    size_t bytes() const { return bytes_; }

private:
    std::map<std::string, std::string> rules_;  // by name
    std::map<std::string, std::string> names_;  // by text
    size_t bytes_ = 0;
};

// A literal of GBNF.
std::string gbnf_quoted(std::string_view text);
// item{least,most}
std::string repeated(const std::string& item, uint64_t least, std::optional<uint64_t> most);
// The JSON pointer of a member of what `path` points to.
std::string member_pointer(const std::string& path, std::string_view name);

}  // namespace redline
