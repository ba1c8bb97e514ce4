#include "cli/options/options.h"

#include "base/nearest_name.h"
#include "cli/command.h"
#include "cli/options/foreign.h"
#include "cli/options/preset_file.h"
#include "cli/terminal/terminal.h"

// The parser without std::regex, which overflows the stack on long arguments.
#define CXXOPTS_NO_REGEX true
#include <cxxopts.hpp>

#include <algorithm>
#include <cctype>
#include <charconv>
#include <cmath>
#include <utility>

namespace redline::cli {

Result<int64_t> parse_integer(std::string_view text, int64_t low, int64_t high) {
    int64_t value = 0;
    const std::string_view digits = text.starts_with('+') ? text.substr(1) : text;
    const auto [end, code] = std::from_chars(digits.data(), digits.data() + digits.size(), value);
    const bool whole = end == digits.data() + digits.size() && !digits.empty();
    if (whole && code == std::errc() && value >= low && value <= high) return value;
    const bool number = whole && (code == std::errc() || code == std::errc::result_out_of_range);
    if (high == std::numeric_limits<int64_t>::max() && (number || low > std::numeric_limits<int64_t>::min()))
        return error("takes a whole number of {} or more, not \"{}\"", low, text);
    return error("takes a whole number from {} to {}, not \"{}\"", low, high, text);
}

Result<double> parse_real(std::string_view text) {
    double value = 0.0;
    const std::string_view digits = text.starts_with('+') ? text.substr(1) : text;
    const auto [end, code] = std::from_chars(digits.data(), digits.data() + digits.size(), value);
    if (end != digits.data() + digits.size() || digits.empty() || code != std::errc() || std::isnan(value))
        return error("takes a number, not \"{}\"", text);
    return value;
}

Result<uint64_t> parse_bytes(std::string_view text) {
    const size_t digits = std::min(text.find_first_not_of("0123456789."), text.size());
    const std::string_view unit = text.substr(digits), end = unit.substr(std::min<size_t>(1, unit.size()));
    const size_t power = unit.empty() ? std::string_view::npos : std::string_view("KMGTkmgt").find(unit[0]);
    const Result<double> number = parse_real(text.substr(0, digits));
    const bool known = power != std::string_view::npos && (end.empty() || end == "B" || end == "iB");
    const double bytes = known && number ? number.value() * double(uint64_t(1) << (power % 4 + 1) * 10) : 0.0;
    if (bytes < 1.0 || bytes > 0x1p62)
        return error("takes a size with its unit, like 12G or 800M, not \"{}\"", text);
    return uint64_t(bytes);
}

// The parts between blanks.
std::vector<std::string> split_words(std::string_view text) {
    std::vector<std::string> parts;
    while (!text.empty()) {
        const size_t end = std::min(text.find(' '), text.size());
        if (end > 0) parts.emplace_back(text.substr(0, end));
        text.remove_prefix(std::min(end + 1, text.size()));
    }
    return parts;
}

Options::Options(std::string_view command, std::string_view summary, std::vector<std::string> usage)
    : command_(command), summary_(summary), usage_(std::move(usage)) {}

std::string Options::with_default(std::string help, const std::string& value) {
    if (help.find("default") == std::string::npos) help += fmt::format(" (default: {})", value);
    return help;
}

void Options::each(std::string_view names, std::string value, std::string help, Take take) {
    options_.push_back({split_words(names), std::move(value), std::move(help), group_, std::move(take)});
}

void Options::flag(std::string_view names, std::string help, bool& target, bool value) {
    flag(names, std::move(help), [&target, value] { target = value; });
}

void Options::flag(std::string_view names, std::string help, std::function<void()> set) {
    each(names, "", std::move(help), [set = std::move(set)](const std::string&) -> Status {
        set();
        return {};
    });
}

void Options::text(std::string_view names, std::string value, std::string help, std::string& target) {
    each(names, std::move(value), std::move(help), [&target](const std::string& given) -> Status {
        target = given;
        return {};
    });
}

void Options::name(std::string_view names, std::string value, std::string help, std::string& target) {
    each(names, std::move(value), std::move(help), [&target](const std::string& given) -> Status {
        if (given.empty()) return error("was given an empty name");
        target = given;
        return {};
    });
}

void Options::choice(std::string_view names, std::vector<std::string> values, std::string help,
                     std::function<void(size_t)> choose) {
    std::string shown = fmt::format("{}", fmt::join(values, "|"));
    each(names, shown, std::move(help),
         [values = std::move(values), choose = std::move(choose)](const std::string& given) -> Status {
             const auto found = std::find(values.begin(), values.end(), given);
             if (found == values.end()) return error("takes {}, not \"{}\"", fmt::join(values, ", "), given);
             choose(size_t(found - values.begin()));
             return {};
         });
}

void Options::number(std::string_view names, std::string help, float& target) {
    each(names, "N", with_default(std::move(help), fmt::format("{:g}", target)),
         [&target](const std::string& text) -> Status {
             target = float(RL_TRY(parse_real(text)));
             if (!std::isfinite(target)) return error("takes a finite number, not \"{}\"", text);
             return {};
         });
}

void Options::accepts(std::string_view names) {
    accepted_ = split_words(names);
}

const Options::Option* Options::find(std::string_view name) const {
    for (const Option& option : options_)
        if (std::find(option.names.begin(), option.names.end(), name) != option.names.end()) return &option;
    return nullptr;
}

Error Options::unknown(const std::string& argument) const {
    const std::string name = argument.substr(0, argument.find('='));
    if (!name.starts_with("-") || name == "-")
        return error("\"{}\" is not an option, and nothing else is expected there", argument);
    std::vector<std::string> known = {"--help"};
    if (foreign_) known.emplace_back("--version");  // which redline takes without a command
    for (const Option& option : options_)
        for (const std::string& one : option.names) known.push_back(one);
    // Every letter is one edit away from every other.
    const size_t begin = name.find_first_not_of('-');
    const bool vague = begin == std::string::npos || name.size() - begin < 2;
    std::string hint = vague ? "" : nearest_name(name, known);
    if (hint.empty() && !vague) hint = nearest_name("--" + name.substr(begin), known);
    if (hint.empty()) return error("unknown option {}; redline {} --help-all lists them", name, command_);
    return error("unknown option {}; did you mean {}?", name, hint);
}

// The option of an argument, and where its value begins in it (behind its end: there is none).
const Options::Option* Options::find_with_value(const std::string& argument, size_t& value_at) const {
    const bool single = argument.size() > 1 && argument[0] == '-' && argument[1] != '-';
    const size_t equals = std::min(argument.find('='), argument.size());
    value_at = equals + 1;
    const Option* option = find(argument.substr(0, equals));
    if (!option && single) option = find("-" + argument.substr(0, equals));  // -temp for --temp
    if (!option && single && argument.find_first_not_of("+-.0123456789e", 2) == std::string::npos) {
        option = find(argument.substr(0, 2));
        value_at = 2;
    }
    return option;
}

Result<bool> Options::take_foreign(const std::string& name) {
    const ForeignOption* foreign = foreign_ ? find_foreign(name) : nullptr;
    if (!foreign) return false;
    const bool accepted = std::find(accepted_.begin(), accepted_.end(), name) != accepted_.end();
    if (!foreign->instead.empty() && !accepted) return error("{}: {}", name, foreign->instead);
    if (std::find(noted_.begin(), noted_.end(), name) == noted_.end()) noted_.push_back(name);
    return true;
}

// True where a word is one of "[all|auto|N]".
static bool is_optional_value(std::string_view listed, const std::string& word) {
    for (std::string_view rest = listed.substr(1, listed.size() - 2); !rest.empty();) {
        const size_t end = std::min(rest.find('|'), rest.size());
        const std::string_view one = rest.substr(0, end);
        if (one == word || (one == "N" && word.find_first_not_of("0123456789") == std::string::npos))
            return true;
        rest.remove_prefix(std::min(end + 1, rest.size()));
    }
    return is_switch_word(word);
}

Status Options::take_word(const std::string& word, std::vector<std::string>& out) const {
    if (word_) return word_(word);
    if (word_option_.empty() || word == "-") return unknown(word);
    const Option* option = find(word_option_);
    const auto before = std::find(out.begin(), out.end(), option->name());
    if (before != out.end() && before + 1 != out.end())
        return error("\"{}\" and \"{}\" are both given for {}: leave one out", before[1], word,
                     option->shown_name());
    out.push_back(option->name());
    out.push_back(word);
    return {};
}

static bool takes_two(const Options::Option& option) {
    return option.value.find(' ') != std::string::npos;
}

// Every known option becomes its long name, with its value as the next argument: cxxopts has no words behind
// a single dash (-ctk, -sys) and takes no number glued to a letter (-n-1).
Result<std::vector<std::string>> Options::rewrite(const std::vector<std::string>& arguments) {
    std::vector<std::string> out;
    bool words_only = false, words_given = false;
    for (size_t i = 0; i < arguments.size(); ++i) {
        const std::string& argument = arguments[i];
        if (words_only || !argument.starts_with("-") || argument == "-") {
            RL_TRY(take_word(argument, out));
            words_given = true;
            continue;
        }
        if (argument == "--") {
            words_only = true;
            continue;
        }
        size_t value_at = 0;
        const Option* option = find_with_value(argument, value_at);
        if (!option) {
            const std::string name = argument.substr(0, argument.find('='));
            if (!RL_TRY(take_foreign(name))) return unknown(argument);
            if (name == argument)
                i += foreign_values(*find_foreign(name), std::span(arguments).subspan(i + 1));
            continue;
        }
        if (words_given && option->name() == word_option_)
            return error("a word and {} are both given: leave one out", option->shown_name());
        out.push_back(option->name());
        const bool optional = option->value.starts_with("[");
        if (value_at <= argument.size())
            out.push_back(argument.substr(value_at));
        else if (optional)
            out.push_back(i + 1 < arguments.size() && is_optional_value(option->value, arguments[i + 1])
                              ? arguments[++i]
                              : "on");
        else if (!option->value.empty() && i + 1 < arguments.size())
            out.push_back(arguments[++i]);
        if (!takes_two(*option)) continue;
        if (i + 1 == arguments.size())
            return error("{} needs two values: {}", option->shown_name(), option->value);
        out.push_back(option->name());
        out.push_back(arguments[++i]);
    }
    return out;
}

std::string Options::Option::shown_name() const {
    return names.size() == 1 ? name() : names.front() + "/" + name();
}

Status Options::apply(const std::vector<std::string>& arguments) {
    cxxopts::Options parser("redline");
    parser.allow_unrecognised_options();
    for (const Option& option : options_) {
        const std::string name = option.name().substr(2);
        if (option.value.empty())
            parser.add_options()(name, "");
        else
            parser.add_options()(name, "", cxxopts::value<std::string>());
    }
    const std::vector<std::string> rewritten = RL_TRY(rewrite(arguments));
    std::vector<const char*> pointers = {"redline"};
    for (const std::string& argument : rewritten) pointers.push_back(argument.c_str());
    try {
        const cxxopts::ParseResult result = parser.parse(int(pointers.size()), pointers.data());
        if (!result.unmatched().empty()) return unknown(result.unmatched().front());
        for (const cxxopts::KeyValue& pair : result.arguments()) {
            const Option* option = find("--" + pair.key());
            given_.insert(option->name());
            const Status taken = option->take(pair.value());
            if (!taken) return error("{} {}", option->shown_name(), taken.error().message);
        }
    } catch (const cxxopts::exceptions::missing_argument&) {
        return error("{} needs a value", find(rewritten.back())->shown_name());
    } catch (const std::exception& problem) {
        return error("{}", problem.what());
    }
    return {};
}

const Options::Option* Options::called(std::string_view key) const {
    constexpr std::string_view kVariable = "LLAMA_ARG_";
    std::string name(key);
    if (name.starts_with(kVariable)) {
        name = name.substr(kVariable.size());
        for (char& c : name) c = c == '_' ? '-' : char(std::tolower(static_cast<unsigned char>(c)));
    }
    const Option* const option = find("--" + name);
    return option ? option : find("-" + name);
}

Status Options::take(const Option& option, const std::string& value) {
    const Option* taken = &option;
    if (option.value.empty() && !RL_TRY(parse_switch(value))) taken = find("--no-" + option.name().substr(2));
    if (!taken) return {};  // the flag is not set, and no other one says the opposite
    given_.insert(taken->name());
    return taken->take(value);
}

std::optional<int> Options::parse(const std::vector<std::string>& arguments) {
    bool wanted = false, all_wanted = false;
    const std::string saved = std::exchange(group_, "general");
    flag("-h --usage --help", "print the options that people use, and exit", wanted);
    common("print this and exit");
    flag("--help-all", "print all options, and exit", all_wanted);
    group_ = saved;
    if (reader) {
        reader(*this);
        return 0;
    }
    const Status parsed = apply(arguments);
    if (wanted || all_wanted) {
        Output out;
        out.write(all_wanted ? help_all() : help());
        return out.finish();
    }
    if (!parsed) return fail(parsed.error(), kUsage);
    if (!noted_.empty())
        note(fmt::format("{} {} nothing here", fmt::join(noted_, ", "),
                         noted_.size() == 1 ? "changes" : "change"));
    return {};
}

// Words of `text` in lines of at most `width` columns, each after the first behind `indent` blanks.
static std::string wrapped(std::string_view text, size_t indent, size_t width) {
    std::string out;
    size_t column = 0;
    for (const std::string& word : split_words(text)) {
        if (column > 0 && column + 1 + word.size() > width) {
            out += "\n" + std::string(indent, ' ');
            column = 0;
        } else if (column > 0) {
            out += ' ';
            ++column;
        }
        out += word;
        column += word.size();
    }
    return out;
}

std::string Options::heading() const {
    std::string out = fmt::format("redline {}: {}\n\n", command_, summary_);
    for (size_t i = 0; i < usage_.size(); ++i)
        out += fmt::format("{}redline {}\n", i == 0 ? "usage: " : "       ", usage_[i]);
    return out;
}

static std::string with_value(std::string names, const Options::Option& option) {
    return "  " + names + (option.value.empty() ? "" : " " + option.value);
}

std::string Options::help() const {
    constexpr int64_t kScreen = 40;  // lines
    const std::string all = help_all();
    if (std::count(all.begin(), all.end(), '\n') <= kScreen) return all;
    std::string out = heading() + "\n";
    const auto left = [](const Option& option) {
        const bool two = option.names.size() > 1;
        return with_value(two ? option.names.front() + ", " + option.name() : option.name(), option);
    };
    size_t width = 0;
    for (const Option& option : options_)
        if (!option.brief.empty()) width = std::max(width, left(option).size());
    for (const Option& option : options_)
        if (!option.brief.empty()) out += fmt::format("{:<{}}  {}\n", left(option), width, option.brief);
    if (!examples_.empty()) out += "\nexamples\n";
    for (const std::string& line : examples_) out += "  " + line + "\n";
    return out + fmt::format("\nAll {} options: redline {} --help-all\n", options_.size(), command_);
}

std::string Options::help_all() const {
    constexpr size_t kIndent = 30;
    constexpr size_t kColumns = 80;
    constexpr size_t kWidth = kColumns - kIndent;
    std::string out = heading();
    std::vector<std::string> groups;
    for (const Option& option : options_)
        if (std::find(groups.begin(), groups.end(), option.group) == groups.end())
            groups.push_back(option.group);
    for (const std::string& title : groups) {
        out += fmt::format("\n{}\n", title);
        for (const Option& option : options_) {
            if (option.group != title) continue;
            std::string left = with_value(fmt::format("{}", fmt::join(option.names, ", ")), option);
            left += left.size() + 2 > kIndent ? "\n" + std::string(kIndent, ' ')
                                              : std::string(kIndent - left.size(), ' ');
            out += left + wrapped(option.help, kIndent, kWidth) + "\n";
        }
    }
    if (!examples_.empty()) out += "\nexamples\n";
    for (const std::string& line : examples_) out += "  " + line + "\n";
    for (const std::string& text : remarks_) out += "\n" + wrapped(text, 0, kColumns) + "\n";
    return out;
}

}  // namespace redline::cli
