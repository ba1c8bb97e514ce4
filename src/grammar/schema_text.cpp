#include "grammar/schema_text.h"

#include "text/chat/loose_value.h"
#include "text/tokens/unicode.h"

#include <algorithm>

namespace redline {

// Copying and writing a value recurses for each level.
static constexpr int kMostBrackets = 500;

Result<Json> parse_schema(std::string_view text) {
    try {
        Json parsed = parse_json(text);
        const size_t begin = std::min(text.find_first_of("[{"), text.size());
        if (parsed.is_structured() && json_end(text, begin, kMostBrackets) == text.npos)
            return error("the schema is nested more than {} brackets deep", kMostBrackets);
        return parsed;
    } catch (const Json::parse_error& problem) {
        const std::string_view before = text.substr(0, std::min(problem.byte, text.size()));
        const std::string what = problem.what();
        const size_t said = what.rfind(": ", what.find("; last read"));
        const size_t line = size_t(std::count(before.begin(), before.end(), '\n')) + 1;
        const size_t column = std::max<size_t>(before.size() - (before.rfind('\n') + 1), 1);
        return error("line {}, column {}: the schema is no JSON: {}", line, column,
                     printable(said == what.npos ? what : what.substr(said + 2)));
    } catch (const Json::exception& problem) {
        return error("the schema is no JSON: {}", printable(problem.what()));
    }
}

}  // namespace redline
