// Templates in the language of Jinja as chat templates use it, with the settings and functions of Hugging
// Face's transformers. A template can only compute, within limits.
#pragma once

#include "text/jinja/value.h"
#include "text/tokens/tokenizer.h"

#include <nlohmann/json_fwd.hpp>

#include <ctime>

namespace redline::jinja {

struct Node;

class Template {
public:
    // Errors give line and column.
    static Result<Template> parse(std::string_view source);
    Template(Template&&) noexcept;
    Template& operator=(Template&&) noexcept;
    ~Template();

    // Returns the text in parts: scaffold is text of the template itself and of values that are not marked as
    // given. `now` is for strftime_now(). The variables belong to the store, whose limits apply.
    Result<std::vector<TextPart>> render(Store& store, const Dict& variables, const std::tm& now) const;

private:
    explicit Template(std::unique_ptr<Node> root);
    std::unique_ptr<Node> root_;
};

// Converts JSON; its texts count as given. Values nested too deeply and integers above 64 bits are errors.
Result<Value> value_of(Store& store, const nlohmann::ordered_json& json, int depth = 0);

}  // namespace redline::jinja
