// libFuzzer target for grammars: the first line of the input is a text, the rest a grammar. Whatever they
// are, the grammar is read or refused, and matching ends; a state that is alive can go on or end.
#include "grammar/automaton.h"

#include <cstdlib>

// Most of the automaton's limit is spent beforehand, so that an input takes milliseconds at most.
constexpr uint64_t kSpentWork = 399'900'000;

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
    using namespace redline;
    const std::string_view input(reinterpret_cast<const char*>(data), size);
    const size_t line = std::min(input.find('\n'), input.size());
    const Result<Grammar> grammar = Grammar::parse(input.substr(std::min(line + 1, size)));
    if (!grammar.ok()) return 0;
    const std::vector<uint32_t> alike = grammar.value().alike_positions();
    for (size_t i = 0; i < alike.size(); ++i)
        if (alike[alike[i]] != alike[i]) std::abort();
    Automaton automaton(grammar.value());
    automaton.add_work(kSpentWork);
    Automaton::State state = automaton.start();
    for (const char byte : input.substr(0, std::min<size_t>(line, 64))) {
        state = automaton.step(state, uint8_t(byte));
        if (state == Automaton::kDead) return 0;
        if (automaton.stacks(state).empty() && !automaton.can_end(state)) std::abort();
    }
    if (automaton.check().ok() && state != Automaton::kDead) {
        const bool end = automaton.can_end(state);
        const size_t stacks = automaton.stacks(state).size();
        state = automaton.forget_all_but(state);
        if (end != automaton.can_end(state) || stacks != automaton.stacks(state).size()) std::abort();
    }
    return 0;
}
