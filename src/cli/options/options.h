// The options of a command: declared once with their targets, parsed by cxxopts, and shown by --help, which
// has those that are marked as common, and --help-all. A value that is wrong is an error that names the
// option and what it takes; an unknown option gets the nearest known one as a hint.
#pragma once

#include "base/result.h"

#include <concepts>
#include <functional>
#include <limits>
#include <optional>
#include <set>
#include <string>
#include <string_view>
#include <vector>

namespace redline::cli {

// Whole text as a number, or an error that says what it is instead.
Result<int64_t> parse_integer(std::string_view text, int64_t low, int64_t high);
Result<double> parse_real(std::string_view text);
// "12G", "800M", "1.5GiB": 1024 bytes are a K.
Result<uint64_t> parse_bytes(std::string_view text);

// The words of a text, with blanks between them.
std::vector<std::string> split_words(std::string_view text);

class Options {
public:
    struct Option;
    // `usage` is one line each, without "redline".
    Options(std::string_view command, std::string_view summary, std::vector<std::string> usage);

    // Options that are declared from here on are listed under this title.
    void group(std::string title) { group_ = std::move(title); }
    // At the end of the help.
    void example(std::string line) { examples_.push_back(std::move(line)); }
    void remark(std::string text) { remarks_.push_back(std::move(text)); }

    // `names` as the user writes them, separated by blanks: "-n --predict --n-predict". The last long one
    // stands for the option in given() and in messages.
    void flag(std::string_view names, std::string help, bool& target, bool value = true);
    void flag(std::string_view names, std::string help, std::function<void()> set);
    void text(std::string_view names, std::string value, std::string help, std::string& target);
    // The same as text(), but an empty value is refused: an unset variable of a script must not mean the
    // default.
    void name(std::string_view names, std::string value, std::string help, std::string& target);
    // Anything else that takes a value, or two, where `value` has a blank; called once for each value, in
    // order.
    using Take = std::function<Status(const std::string&)>;
    void each(std::string_view names, std::string value, std::string help, Take take);
    void choice(std::string_view names, std::vector<std::string> values, std::string help,
                std::function<void(size_t)> choose);
    // A whole number; its present value is shown as the default unless the help speaks of one.
    template <std::integral T>
    void number(std::string_view names, std::string help, T& target, int64_t low, int64_t high) {
        each(names, "N", with_default(std::move(help), fmt::format("{}", target)),
             [&target, low, high](const std::string& text) -> Status {
                 target = T(RL_TRY(parse_integer(text, low, high)));
                 return {};
             });
    }
    void number(std::string_view names, std::string help, float& target);
    // The option declared last is one that people use: --help lists it with this line of help.
    void common(std::string brief) { options_.back().brief = std::move(brief); }
    // Takes each argument that is no option, in order. Without it these are errors.
    void words(Take take) { word_ = std::move(take); }
    // One that is no option is what this option takes: the model of "info FILE".
    void word_is(std::string name) { word_option_ = std::move(name); }
    // llama.cpp's options that are not here are known, too: noted, or refused with what there is instead.
    void knows_foreign() { foreign_ = true; }
    // Names of llama.cpp's options that are noted here although another command refuses them.
    void accepts(std::string_view names);

    bool given(std::string_view name) const { return given_.count(std::string(name)) > 0; }

    // Takes the arguments. An exit code when the command ends here: --help was shown, or an error said.
    std::optional<int> parse(const std::vector<std::string>& arguments);
    // Takes arguments as parse() does, but shows nothing.
    Status apply(const std::vector<std::string>& arguments);
    // The option that a file calls so, without dashes ("ctx-size", "c") or by llama.cpp's variable of the
    // environment ("LLAMA_ARG_CTX_SIZE"); null: there is none.
    const Option* called(std::string_view key) const;
    // Takes the value that a file gives an option; a flag has true or false there.
    Status take(const Option& option, const std::string& value);
    // One screen: all options where they fit into it, else those that are marked as common.
    std::string help() const;
    std::string help_all() const;

    struct Option {
        std::vector<std::string> names;  // with their dashes
        std::string value;               // empty: a flag
        std::string help;
        std::string group;
        Take take;
        std::string brief = {};  // its line in --help; empty: only --help-all lists it
        const std::string& name() const { return names.back(); }
        std::string shown_name() const;  // "-n/--n-predict"
    };
    const std::string& command() const { return command_; }
    const std::string& summary() const { return summary_; }
    const std::vector<std::string>& usage() const { return usage_; }
    const std::vector<Option>& options() const { return options_; }
    const std::vector<std::string>& examples() const { return examples_; }
    const std::vector<std::string>& remarks() const { return remarks_; }
    // Where it is set, parse() gives it the options in place of arguments, and the command ends.
    static inline std::function<void(const Options&)> reader;

    // The help with the default behind it, unless it speaks of one.
    static std::string with_default(std::string help, const std::string& value);

private:
    const Option* find(std::string_view name) const;
    Result<std::vector<std::string>> rewrite(const std::vector<std::string>& arguments);
    const Option* find_with_value(const std::string& argument, size_t& value_at) const;
    std::string heading() const;
    // Takes an option of another program; false: it is of none that is known.
    Result<bool> take_foreign(const std::string& name);
    // Takes what is no option; what it becomes goes to the end of `out`.
    Status take_word(const std::string& word, std::vector<std::string>& out) const;
    Error unknown(const std::string& argument) const;

    std::string command_;
    std::string summary_;
    std::vector<std::string> usage_;
    std::vector<std::string> examples_;
    std::vector<std::string> remarks_;
    std::string group_ = "options";
    std::vector<Option> options_;
    std::set<std::string> given_;
    Take word_;
    std::string word_option_;
    bool foreign_ = false;
    std::vector<std::string> accepted_;
    std::vector<std::string> noted_;  // options of other programs that change nothing here
};

}  // namespace redline::cli
