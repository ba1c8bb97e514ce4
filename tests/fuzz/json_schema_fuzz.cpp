// libFuzzer target for JSON schemas: the input is one. It is refused, or gives a grammar that is read; only
// what the grammar's own limits name (repetitions of what may be empty, recursion, size) is refused there.
#include "grammar/grammar.h"
#include "grammar/json_schema.h"

#include <cstdlib>

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
    using namespace redline;
    std::vector<std::string> notes;
    const Result<std::string> text = grammar_of_schema({reinterpret_cast<const char*>(data), size}, &notes);
    if (!text.ok()) return 0;
    const Result<Grammar> grammar = Grammar::parse(text.value());
    if (grammar.ok()) return 0;
    for (const char* limit :
         {"may be empty", "left recursion", "too large", "nested more than", "may be at most"})
        if (grammar.error().message.find(limit) != std::string::npos) return 0;
    std::abort();
}
