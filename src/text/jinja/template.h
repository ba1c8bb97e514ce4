// Templates in the language of Jinja, as chat templates use it, with the settings and functions of Hugging
// Face's transformers. A template can compute within limits and do nothing else.
#pragma once

#include "text/jinja/value.h"
#include "text/tokens/tokenizer.h"

#include <nlohmann/json_fwd.hpp>

#include <ctime>

namespace redline::jinja {

struct Node;

class Template {
public:
    // Errors say line and column.
    static Result<Template> parse(std::string_view source);
    Template(Template&&) noexcept;
    Template& operator=(Template&&) noexcept;
    ~Template();

    // The text in parts: scaffold is what the template itself and values that are not "given" wrote. `now` is
    // for strftime_now(). The variables belong to the store, whose limits hold.
    Result<std::vector<TextPart>> render(Store& store, const Dict& variables, const std::tm& now) const;

private:
    explicit Template(std::unique_ptr<Node> root);
    std::unique_ptr<Node> root_;
};

// Texts in it count as given. An error for values nested too deeply and for integers above 64 bits.
Result<Value> value_of(Store& store, const nlohmann::ordered_json& json, int depth = 0);

}  // namespace redline::jinja
