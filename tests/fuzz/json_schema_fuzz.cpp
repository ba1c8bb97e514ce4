// libFuzzer target for JSON schemas: the input is a schema. It is refused, or gives a grammar that can be
// parsed, except where it exceeds the grammar's limits (repetitions of optional parts, recursion, size).
// Texts that the grammar allows are JSON.
#include "grammar/automaton.h"
#include "grammar/json_schema.h"
#include "json/json.h"

#include <cstdlib>

// Goes through the grammar by the first byte in this order that is allowed; what ends a value stands first.
static void write_one(const redline::Grammar& grammar) {
    using redline::Automaton;
    constexpr std::string_view kBytes =
        "\"}]:,0123456789-./+{[abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ";
    constexpr size_t kLongest = 100;
    Automaton automaton(grammar);
    Automaton::State state = automaton.start();
    std::string text;
    while (text.size() < kLongest && !automaton.can_end(state)) {
        Automaton::State next = Automaton::kDead;
        for (size_t i = 0; i < kBytes.size() && next == Automaton::kDead; ++i) {
            next = automaton.step(state, uint8_t(kBytes[i]));
            if (next != Automaton::kDead) text += kBytes[i];
        }
        if (next == Automaton::kDead) return;
        state = next;
    }
    if (automaton.can_end(state) && redline::read_json(text).is_discarded()) std::abort();
}

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
    using namespace redline;
    std::vector<std::string> notes;
    const Result<std::string> text =
        grammar_of_schema({reinterpret_cast<const char*>(data), size}, {.notes = &notes});
    if (!text.ok()) return 0;
    const Result<Grammar> grammar = Grammar::parse(text.value());
    if (grammar.ok()) {
        write_one(grammar.value());
        return 0;
    }
    for (const char* limit :
         {"may be empty", "left recursion", "too large", "nested more than", "may be at most"})
        if (grammar.error().message.find(limit) != std::string::npos) return 0;
    std::abort();
}
