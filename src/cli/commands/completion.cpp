// redline completion: what shells complete, and the manual page, from the tables that the commands parse by.
#include "cli/command.h"
#include "cli/commands/described.h"
#include "cli/terminal/terminal.h"

#include <algorithm>

namespace redline::cli {

namespace {

// The forms of a value: words to choose from, a file, or names that the program is asked for.
struct Value {
    std::vector<std::string> words;
    bool file = false;
    std::string_view asked = {};  // "models --names"
};

constexpr std::string_view kModelNames = "models --names";
constexpr std::string_view kDeviceNames = "devices --names";

Value value_of(const Options::Option& option) {
    Value out;
    if (option.name() == "--model") return {{}, true, kModelNames};
    if (option.name() == "--device") return {{}, false, kDeviceNames};
    std::string_view text = option.value;
    if (text.starts_with('[')) text = text.substr(1, text.size() - 2);
    while (!text.empty()) {
        const size_t end = std::min(text.find('|'), text.size());
        const std::string word(text.substr(0, end));
        text.remove_prefix(std::min(end + 1, text.size()));
        if (word.find("FILE") != std::string::npos) out.file = true;
        if (word.find_first_not_of("abcdefghijklmnopqrstuvwxyz0123456789_.") == std::string::npos)
            out.words.push_back(word);
    }
    return out;
}

// True where the first word of a command may be a model's name: "run [MODEL.gguf] [TEXT]".
bool takes_model(const Options& command) {
    const std::string begin = command.command() + " ";
    return std::any_of(command.usage().begin(), command.usage().end(), [&](const std::string& usage) {
        return usage.starts_with(begin + "[MODEL") || usage.starts_with(begin + "MODEL");
    });
}

std::string replaced(std::string text, std::string_view what, std::string_view by) {
    for (size_t at = text.find(what); at != std::string::npos; at = text.find(what, at + by.size()))
        text.replace(at, what.size(), by);
    return text;
}

// Between single quotes of a shell.
std::string quoted(const std::string& text) {
    return "'" + replaced(text, "'", "'\\''") + "'";
}

// The words that a command is to be followed by: "completion bash|zsh" is. Most take what the user makes up.
std::string words_of(const Options& command) {
    const std::string& usage = command.usage().front();
    const std::string last = usage.substr(usage.rfind(' ') + 1);
    if (last.find('|') == std::string::npos ||
        last.find_first_not_of("abcdefghijklmnopqrstuvwxyz|") != std::string::npos)
        return "";
    return replaced(last, "|", " ");
}

std::string names_of(const std::vector<Options>& commands) {
    std::string out;
    for (const Options& command : commands) out += (out.empty() ? "" : " ") + command.command();
    return out;
}

int run_completion(const std::vector<std::string>& arguments) {
    Options options("completion", "write a shell's completion script, or the manual page",
                    {"completion bash|zsh|fish|man"});
    std::string wanted;
    options.words([&wanted](const std::string& word) -> Status {
        if (!wanted.empty()) return error("\"{}\": one shell at a time", word);
        if (word != "bash" && word != "zsh" && word != "fish" && word != "man")
            return error("redline completion takes bash, zsh, fish or man, not \"{}\"", word);
        wanted = word;
        return {};
    });
    options.example("source <(redline completion bash)    # in ~/.bashrc for all shells");
    options.example("redline completion zsh > ~/.zfunc/_redline");
    options.example("redline completion fish > ~/.config/fish/completions/redline.fish");
    options.example("redline completion man | man -l -");
    if (const std::optional<int> code = options.parse(arguments)) return *code;
    if (wanted.empty())
        return fail(error("no shell was named: redline completion takes bash, zsh, fish or man"), kUsage);
    const std::vector<Options> commands = described_commands();
    Output out;
    out.write(wanted == "bash"   ? bash_completion(commands)
              : wanted == "zsh"  ? zsh_completion(commands)
              : wanted == "fish" ? fish_completion(commands)
                                 : manual_page(commands));
    return out.finish();
}

}  // namespace

std::vector<Options> described_commands() {
    std::vector<Options> out;
    Options::reader = [&out](const Options& options) { out.push_back(options); };
    for (const Command* command : all_commands()) command->run({});
    Options::reader = {};
    return out;
}

// Commands, words of values, options, words of commands, and the commands whose first word may be a model. A
// file's name is completed by "-o default" where nothing else fits. The shell takes a colon for the end of a
// word, and names of models have some: what stands before the last one is cut from what is offered.
static constexpr const char* kBash = R"(# Completion for bash, by `redline completion bash`.
_redline() {{
    local word=${{COMP_WORDS[COMP_CWORD]}} words="" asked="" before=""
    local whole=${{COMP_LINE:0:COMP_POINT}}
    whole=${{whole##* }}
    if [[ $whole == *:* ]]; then
        before=${{whole%"${{whole##*:}}"}}
        word=$whole
    fi
    local last=${{COMP_LINE:0:COMP_POINT-${{#whole}}}}
    local -a said
    read -ra said <<<"$last"
    [ ${{#said[@]}} -eq 0 ] && said=("${{COMP_WORDS[@]:0:COMP_CWORD}}")
    if [ ${{#said[@]}} -eq 1 ]; then
        words="{} help --help --version"
    else
        case "${{said[1]}} ${{said[-1]}}" in
{}        esac
    fi
    if [ -z "$words$asked" ] && [[ $word == -* ]]; then
        case "${{said[1]}}" in
{}        esac
    elif [ -z "$words$asked" ]; then
        case "${{said[1]}}" in
{}            {}) [ ${{#said[@]}} -eq 2 ] && asked="models --names" ;;
        esac
    fi
    [ -n "$asked" ] && words=$("${{COMP_WORDS[0]}}" $asked 2>/dev/null)
    mapfile -t COMPREPLY < <(compgen -W "$words" -- "$word")
    COMPREPLY=("${{COMPREPLY[@]#"$before"}}")
}}
complete -o default -F _redline redline
)";

std::string bash_completion(const std::vector<Options>& commands) {
    std::string values, options, words, models;
    for (const Options& command : commands) {
        std::string all;
        for (const Options::Option& option : command.options()) {
            std::string names;
            for (const std::string& name : option.names) {
                all += (all.empty() ? "" : " ") + name;
                names += fmt::format("{}\"{} {}\"", names.empty() ? "" : " | ", command.command(), name);
            }
            const Value value = value_of(option);
            if (!value.asked.empty())
                values += fmt::format("            {}) asked=\"{}\" ;;\n", names, value.asked);
            else if (!value.words.empty())
                values +=
                    fmt::format("            {}) words=\"{}\" ;;\n", names, fmt::join(value.words, " "));
        }
        options += fmt::format("            {}) words=\"{}\" ;;\n", command.command(), all);
        if (const std::string taken = words_of(command); !taken.empty())
            words += fmt::format("            {}) words=\"{}\" ;;\n", command.command(), taken);
        else if (takes_model(command))
            models += (models.empty() ? "" : "|") + command.command();
    }
    return fmt::format(kBash, names_of(commands), values, options, words, models);
}

std::string zsh_completion(const std::vector<Options>& commands) {
    std::string names, cases;
    for (const Options& command : commands) {
        names += fmt::format("        {}\n",
                             quoted(command.command() + ":" + replaced(command.summary(), ":", "\\:")));
        cases += fmt::format("        {})\n            _arguments \\\n", command.command());
        for (const Options::Option& option : command.options()) {
            const Value value = value_of(option);
            std::string takes;
            if (!option.value.empty())
                takes = ":" + replaced(option.value, ":", "\\:") + ":" +
                        (value.asked == kModelNames    ? "_redline_models"
                         : value.asked == kDeviceNames ? "_redline_devices"
                         : !value.words.empty()        ? fmt::format("({})", fmt::join(value.words, " "))
                         : value.file                  ? "_files"
                                                       : " ");
            const std::string help = replaced(replaced(option.help, "[", "\\["), "]", "\\]");
            for (const std::string& name : option.names)
                cases += fmt::format("                {} \\\n",
                                     quoted(fmt::format("*{}[{}]{}", name, help, takes)));
        }
        const std::string words = words_of(command);
        if (!words.empty())
            cases += fmt::format("                '1:what:({})'\n            ;;\n", words);
        else
            cases +=
                fmt::format("{}                '*:file:_files'\n            ;;\n",
                            takes_model(command) ? "                '1:model:_redline_models' \\\n" : "");
    }
    return fmt::format(
        "#compdef redline\n"
        "# Completion for zsh, by `redline completion zsh`.\n"
        "_redline_models() {{\n"
        "    local -a names\n"
        "    names=(${{(f)\"$(redline models --names 2>/dev/null)\"}})\n"
        "    compadd -a names\n"
        "    _files\n"
        "}}\n"
        "_redline_devices() {{\n"
        "    local -a names\n"
        "    names=(${{(f)\"$(redline devices --names 2>/dev/null)\"}})\n"
        "    compadd -a names\n"
        "}}\n"
        "_redline() {{\n"
        "    local -a commands\n"
        "    commands=(\n{}    )\n"
        "    if (( CURRENT == 2 )); then\n"
        "        _describe -t commands command commands\n"
        "        return\n"
        "    fi\n"
        "    shift words\n"
        "    (( CURRENT-- ))\n"
        "    case $words[1] in\n{}    esac\n"
        "}}\n"
        "if [ \"$funcstack[1]\" = _redline ]; then _redline \"$@\"; else compdef _redline redline; fi\n",
        names, cases);
}

std::string fish_completion(const std::vector<Options>& commands) {
    const auto fish_quoted = [](const std::string& text) {
        return "'" + replaced(replaced(text, "\\", "\\\\"), "'", "\\'") + "'";
    };
    std::string out = fmt::format(
        "# Completion for fish, by `redline completion fish`.\nset -l commands {}\n"
        "function __redline_names\n    command -q redline; and command redline $argv 2>/dev/null\nend\n"
        "complete -c redline -n \"not __fish_seen_subcommand_from $commands\" -f -l help -d 'how it is "
        "used'\n"
        "complete -c redline -n \"not __fish_seen_subcommand_from $commands\" -f -l version -d 'which "
        "program this is'\n",
        names_of(commands));
    for (const Options& command : commands) {
        out += fmt::format(
            "complete -c redline -n \"not __fish_seen_subcommand_from $commands\" -f -a {} -d {}\n",
            command.command(), fish_quoted(command.summary()));
        if (const std::string words = words_of(command); !words.empty())
            out += fmt::format("complete -c redline -n \"__fish_seen_subcommand_from {}\" -f -a {}\n",
                               command.command(), fish_quoted(words));
        else if (takes_model(command))
            out += fmt::format(
                "complete -c redline -n \"__fish_seen_subcommand_from {}\" -a '(__redline_names {})'\n",
                command.command(), kModelNames);
        for (const Options::Option& option : command.options()) {
            out +=
                fmt::format("complete -c redline -n \"__fish_seen_subcommand_from {}\"", command.command());
            for (const std::string& name : option.names)
                out += name.starts_with("--") ? " -l " + name.substr(2)
                       : name.size() == 2     ? " -s " + name.substr(1)
                                              : " -o " + name.substr(1);
            const Value value = value_of(option);
            if (!value.asked.empty())
                out += fmt::format(" {} -a '(__redline_names {})'", value.file ? "-r -F" : "-x", value.asked);
            else if (!value.words.empty())
                out += fmt::format(" -x -a {}", fish_quoted(fmt::format("{}", fmt::join(value.words, " "))));
            else if (!option.value.empty())
                out += value.file ? " -r -F" : " -x";
            out += fmt::format(" -d {}\n", fish_quoted(option.help));
        }
    }
    return out;
}

extern const Command completion_command = {"completion", "write a shell's completion script", run_completion};

}  // namespace redline::cli
