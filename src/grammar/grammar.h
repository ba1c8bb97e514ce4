// A context-free grammar over characters, checked and laid out flat for the matcher. Made from llama.cpp's
// notation, GBNF; nothing that a grammar can say makes the matcher loop for ever or fill the memory.
#pragma once

#include "base/result.h"
#include "grammar/character_set.h"
#include "grammar/step_counts.h"

#include <cstdint>
#include <limits>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace redline {

struct Symbol {
    enum class Kind : uint8_t {
        end,         // of the alternative
        characters,  // one of sets()[index]
        rule,        // rules()[index]
        repeat,      // repeats()[index]
        counted,     // counteds()[index]: as its rule, in a number of steps within limits
        step,        // rules()[index] as the next step of that count; ends each alternative of a counted rule
        token,       // tokens()[index], whole
        other_token,  // any other token that is text
    };
    Kind kind = Kind::end;
    uint32_t index = 0;
};

class Grammar {
public:
    static constexpr uint32_t kUnbounded = std::numeric_limits<uint32_t>::max();
    static constexpr uint32_t kNoState = std::numeric_limits<uint32_t>::max();

    struct Rule {
        std::string name;                    // empty: a group, or what a repetition repeats
        std::vector<uint32_t> alternatives;  // positions of their first symbols
        uint32_t owner = 0;                  // the named rule that it is part of, or itself
        bool nullable = false;
        bool small = false;         // its owner and all that it refers to are few symbols, and not recursive
        uint32_t state = kNoState;  // in step_counts(), where it is counted
    };
    struct Repeat {
        uint32_t rule;
        uint32_t least;  // 0 where what is repeated may be empty
        uint32_t most;   // kUnbounded: any number
    };
    struct TokenName {
        std::string text;  // "<think>"; empty: the id counts
        int32_t id = -1;
        std::string place;  // "line 1, column 10"
    };

    struct Crowd {
        std::string rule;  // that they are alternatives of, or part of
        uint32_t alternatives = 0;
    };

    // Errors give line and column, and what was expected there.
    static Result<Grammar> parse(std::string_view text);

    // Positions count symbols; the symbols of an alternative stand together and close with an end.
    const std::vector<Symbol>& symbols() const { return symbols_; }
    const std::vector<CharacterSet>& sets() const { return sets_; }
    const std::vector<Rule>& rules() const { return rules_; }
    const std::vector<Repeat>& repeats() const { return repeats_; }
    const std::vector<Repeat>& counteds() const { return counteds_; }
    const StepCounts& step_counts() const { return step_counts_; }
    // The rule that an alternative of a counted rule goes on with.
    const Rule& next_step(uint32_t position) const;
    const std::vector<TokenName>& tokens() const { return tokens_; }
    uint32_t root() const { return root_; }
    // The most alternatives of a rule that may begin with the same character, where they share no beginning.
    const std::optional<Crowd>& crowd() const { return crowd_; }
    const Rule& rule_at(uint32_t position) const { return rules_[rule_at_[position]]; }
    // For each position the first one from which the rest of the alternative takes the same texts, as far as
    // that can be told from the same symbols. A repetition's counts there are not compared.
    std::vector<uint32_t> alike_positions() const;

private:
    friend class GrammarBuilder;
    Grammar() = default;

    std::vector<Symbol> symbols_;
    std::vector<uint32_t> rule_at_;  // by position
    std::vector<CharacterSet> sets_;
    std::vector<Rule> rules_;
    std::vector<Repeat> repeats_;
    std::vector<Repeat> counteds_;
    StepCounts step_counts_;
    std::vector<TokenName> tokens_;
    std::optional<Crowd> crowd_;
    uint32_t root_ = 0;
};

}  // namespace redline
