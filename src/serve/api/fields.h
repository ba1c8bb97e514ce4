// The members of a request in JSON, read with checks. A member that is null counts as absent, and members
// that nobody asks for are ignored, as clients send some that only others know.
#pragma once

#include "base/result.h"
#include "json/json.h"

#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace redline::serve {

// A body as JSON. It has to be an object, and not nested deeper than code that walks through it can bear.
Result<Json> parse_body(std::string_view body);

class Fields {
public:
    // `where` stands before the names in messages: "options.". A value that is no object has no members. It
    // has to outlive this.
    explicit Fields(const Json& object, std::string where = {});
    explicit Fields(Json&&, std::string = {}) = delete;

    // Null where the member is absent.
    const Json* find(std::string_view name) const;
    bool has(std::string_view name) const { return find(name) != nullptr; }
    Result<int64_t> integer(std::string_view name, int64_t fallback, int64_t least, int64_t most) const;
    Result<bool> flag(std::string_view name, bool fallback) const;
    Result<std::string> text(std::string_view name, std::string fallback = {}) const;
    // A text, or a list of texts.
    Result<std::vector<std::string>> texts(std::string_view name) const;
    // A list of tokens of a vocabulary of this size.
    Result<std::vector<int32_t>> tokens(std::string_view name, size_t vocabulary) const;
    // An error for a member that is neither absent nor has a value for "no".
    Status refuse(std::string_view name, std::string_view why) const;
    std::string path(std::string_view name) const { return where_ + std::string(name); }

private:
    const Json& object_;
    std::string where_;
};

// The beginning of a value, for messages.
std::string excerpt(const Json& value);
// JSON in one line; what is no UTF-8 becomes U+FFFD.
std::string json_text(const Json& value);

}  // namespace redline::serve
