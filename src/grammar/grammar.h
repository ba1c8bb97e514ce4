// A context-free grammar over characters, checked and laid out flat for the matcher. It is parsed from GBNF,
// llama.cpp's notation; no grammar makes the matcher loop for ever or fill the memory.
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
        end,          // the end of the alternative
        characters,   // one of sets()[index]
        rule,         // rules()[index]
        repeat,       // repeats()[index]
        counted,      // counteds()[index]: passes through its rule in a number of steps within limits
        step,         // rules()[index] as the next step of that count; the last symbol of a counted rule's
                      // alternative
        token,        // tokens()[index], a whole token
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
        std::string name;                    // empty: a group, or the body of a repetition
        std::vector<uint32_t> alternatives;  // positions of their first symbols
        uint32_t owner = 0;                  // the named rule that it is part of, or itself
        bool nullable = false;
        bool small = false;         // few symbols in its owner and all that it calls; not recursive
        uint32_t state = kNoState;  // its index in step_counts(), if it is counted
    };
    struct Repeat {
        uint32_t rule;
        uint32_t least;  // 0 where the body may be empty
        uint32_t most;   // kUnbounded: any number
    };
    struct TokenName {
        std::string text;  // "<think>"; empty: the id counts
        int32_t id = -1;
        std::string place;  // "line 1, column 10"
    };

    struct Crowd {
        std::string rule;  // the rule, or a part of it, that has the alternatives
        uint32_t alternatives = 0;
    };

    // Errors give line and column, and what was expected there.
    static Result<Grammar> parse(std::string_view text);

    // Positions are indices of symbols; the symbols of an alternative are consecutive and close with an
    // `end`.
    const std::vector<Symbol>& symbols() const { return symbols_; }
    const std::vector<CharacterSet>& sets() const { return sets_; }
    const std::vector<Rule>& rules() const { return rules_; }
    const std::vector<Repeat>& repeats() const { return repeats_; }
    const std::vector<Repeat>& counteds() const { return counteds_; }
    const StepCounts& step_counts() const { return step_counts_; }
    // The rule that an alternative of a counted rule continues with.
    const Rule& next_step(uint32_t position) const;
    const std::vector<TokenName>& tokens() const { return tokens_; }
    uint32_t root() const { return root_; }
    // The most alternatives of a rule that may begin with the same character without sharing a beginning.
    const std::optional<Crowd>& crowd() const { return crowd_; }
    const Rule& rule_at(uint32_t position) const { return rules_[rule_at_[position]]; }
    // For each position the first one from which the rest of the alternative has the same language, as far as
    // equal symbols show. The counts of a repetition at that position are not compared.
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
