// JSON schemas that packages of Python write for types, with texts that these packages write, and texts that
// they refuse. tools/golden/make_schema_golden.py wrote the file.
#include "grammar/json_schema.h"
#include "json/json.h"
#include "support/grammars.h"
#include "support/material.h"
#include "support/text_support.h"

using namespace redline;
using namespace redline::test;

TEST_CASE("schema: what pydantic and msgspec write takes their texts and refuses what they refuse") {
    const Json all = parse_json(read_file(golden("text/pydantic_schemas.json")));
    CHECK(all.size() > 30);
    for (const Json& each : all) {
        CAPTURE(each["name"].get<std::string>());
        // Nothing is left to the model: that would be an error.
        const Result<std::string> text = grammar_of_schema(each["schema"].dump(), {.strict = true});
        REQUIRE_MESSAGE(text.ok(), (text.ok() ? "" : text.error().message));
        const Grammar grammar = parsed(text.value());
        for (const std::string good : each["accepted"])
            CHECK_MESSAGE(verdict(grammar, good) == Verdict::complete, good);
        for (const std::string bad : each["rejected"])
            CHECK_MESSAGE(verdict(grammar, bad) != Verdict::complete, bad);
    }
}
