// Collects a grammar's rules while they are read, then checks them together.
#pragma once

#include "grammar/grammar.h"

#include <map>
#include <unordered_map>

namespace redline {

class GrammarBuilder {
public:
    using Sequence = std::vector<Symbol>;
    using Alternatives = std::vector<Sequence>;

    // A place in the text, for errors.
    struct Place {
        size_t line = 1;
        size_t column = 1;
        std::string text() const { return fmt::format("line {}, column {}", line, column); }
    };

    // The rule with this name, created at its first use.
    uint32_t rule(const std::string& name, Place seen_at);
    uint32_t anonymous_rule(uint32_t owner, Alternatives alternatives);
    // Defining a rule twice is an error.
    Status define(uint32_t rule, Alternatives alternatives, Place place);

    Symbol characters(CharacterSet set);
    Symbol repeat(uint32_t rule, uint32_t least, uint32_t most, Place place);
    // Passes through a rule in `least` to `most` steps; its alternatives must be empty, or one item and
    // step() of another such rule.
    Symbol counted(uint32_t rule, uint32_t least, uint32_t most);
    static Symbol step(uint32_t rule) { return {Symbol::Kind::step, rule}; }
    Symbol token(Grammar::TokenName name, bool others);
    Status check_size() const;

    // Undefined rules, left recursion and a missing root are errors.
    Result<Grammar> finish();

private:
    struct Source {
        Alternatives alternatives;
        bool defined = false;
        Place place;  // of the definition, or of its first use
    };

    Status check_defined() const;
    uint32_t callee(const Symbol& symbol) const;
    template <typename Leaf>
    std::vector<bool> rules_where(Leaf leaf) const;
    template <typename Leaf>
    bool holds(const Symbol& symbol, const std::vector<bool>& rules, Leaf leaf) const;
    void find_nullable();
    Status drop_endless();
    void share_beginnings();
    bool nullable(const Symbol& symbol) const;
    Status check_repeats();
    std::vector<uint32_t> leftmost(uint32_t rule) const;
    Status check_left_recursion() const;
    Error recursion(const std::vector<uint32_t>& path, uint32_t rule) const;
    Status count_steps();
    Status check_step(uint32_t rule) const;
    Status check_uncounted() const;
    void find_small();
    void lay_out();
    std::string shown(uint32_t rule) const;

    Grammar grammar_;
    std::vector<Source> sources_;  // as Grammar::rules_
    std::vector<Place> repeat_places_;
    std::unordered_map<std::string, uint32_t> names_;
    std::map<std::vector<char32_t>, uint32_t> known_sets_;  // by the bounds of their ranges
    size_t symbols_ = 0;
};

}  // namespace redline
