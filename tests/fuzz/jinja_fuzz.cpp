// libFuzzer target for templates: the first line of the input is JSON with the variables, the rest the
// source. Whatever they are, the result is a text or an error, within the limits.
#include "json/json.h"
#include "text/jinja/template.h"
#include "text/tokens/unicode.h"

#include <cstdlib>

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
    using namespace redline;
    const std::string_view input(reinterpret_cast<const char*>(data), size);
    const size_t line = std::min(input.find('\n'), input.size());
    const auto json = read_json(input.substr(0, line));
    const Result<jinja::Template> parsed = jinja::Template::parse(input.substr(std::min(line + 1, size)));
    if (!parsed.ok()) return 0;
    jinja::Store store({.steps = 3'000, .bytes = 1 << 18, .output = 1 << 14, .depth = 200});
    jinja::Dict* variables = store.dict();
    if (json.is_object())
        if (const auto values = jinja::value_of(store, json); values.ok()) *variables = values.value().dict();
    const auto parts = parsed.value().render(store, *variables, {});
    if (!parts.ok()) return 0;
    for (const TextPart& part : parts.value())
        if (part.text.empty() || !is_valid_utf8(part.text)) std::abort();
    return 0;
}
