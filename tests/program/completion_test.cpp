// Shell completion and the manual page, compared with the help of the commands.
#include "doctor/machine.h"
#include "support/at_end.h"
#include "support/program.h"

#include <set>

using namespace redline;
using namespace redline::test;

namespace {

std::string written(const std::string& kind) {
    const Outcome outcome = redline_({"completion", kind});
    CHECK_MESSAGE(outcome.code == 0, outcome.err);
    return outcome.out;
}

// The words of the overview's list of commands.
std::vector<std::string> command_names() {
    std::vector<std::string> names;
    std::istringstream lines(redline_({"--help"}).out);
    for (std::string line; std::getline(lines, line);)
        if (line.starts_with("  ") && line[2] != ' ' && line.find("redline") == std::string::npos)
            names.push_back(line.substr(2, line.find(' ', 2) - 2));
    return names;
}

// The names of options that the help of a command lists.
std::set<std::string> options_of(const std::string& name) {
    std::set<std::string> names;
    std::istringstream lines(redline_({name, "--help-all"}).out);
    for (std::string line; std::getline(lines, line);) {
        if (!line.starts_with("  -")) continue;
        std::istringstream words(line);
        for (std::string word; words >> word && word[0] == '-';) {
            names.insert(word.substr(0, word.find(',')));
            if (!word.ends_with(',')) break;
        }
    }
    return names;
}

bool is_here(const std::string& shell) {
    Launch what;
    what.arguments = {"/bin/sh", "-c", "command -v " + shell};
    return launch(what).code == 0;
}

Outcome shell(const std::string& line) {
    Launch what;
    what.arguments = {"/bin/sh", "-c", line};
    return launch(what);
}

}  // namespace

TEST_CASE("completion: every command and option of the help is in each script and in the manual") {
    const std::vector<std::string> names = command_names();
    REQUIRE(names.size() >= 11);
    const std::string bash = written("bash"), zsh = written("zsh"), fish = written("fish"),
                      man = written("man");
    for (const std::string& name : names) {
        INFO(name);
        const std::set<std::string> options = options_of(name);
        CHECK(options.count("--help") == 1);
        CHECK(has(man, "\n.SS redline " + name + "\n"));
        CHECK(has(zsh, "\n        " + name + ")\n"));
        CHECK(has(fish, "-f -a " + name + " "));
        for (const std::string& option : options) {
            INFO(option);
            CHECK(has(bash, " " + option + " ") + has(bash, "\"" + option + " ") +
                      has(bash, " " + option + "\"") >
                  0);
            CHECK(has(zsh, "'*" + option + "["));
            const size_t dashes = option.find_first_not_of('-');
            const std::string flag = dashes == 2 ? "-l " : option.size() == 2 ? "-s " : "-o ";
            CHECK(has(fish, " " + flag + option.substr(dashes) + " "));
            std::string escaped;
            for (const char c : option) escaped += c == '-' ? "\\-" : std::string(1, c);
            CHECK(has(man, "\\fB" + escaped + "\\fR"));
        }
    }
}

TEST_CASE("completion: bash offers commands, options and the words that an option takes") {
    if (!is_here("bash")) return not_tested("completion in bash: there is none here");
    write_file(file("completion.bash"), written("bash"));
    const auto offered = [](const std::string& line) {
        const Outcome outcome =
            shell("bash -c 'source " + file("completion.bash") + "; COMP_WORDS=(" + line +
                  "); COMP_CWORD=$((${#COMP_WORDS[@]} - 1)); _redline; echo ${COMPREPLY[@]}'");
        CHECK_MESSAGE(outcome.code == 0, outcome.err);
        return outcome.out;
    };
    CHECK(offered("redline ch") == "chat\n");
    CHECK(offered("redline run --ctx-s") == "--ctx-size\n");
    CHECK(offered("redline bench --output js") == "json jsonl\n");
    CHECK(offered("redline run --cpu-level avx5") == "avx512\n");
    CHECK(offered("redline completion f") == "fish\n");
    CHECK(offered("redline run some.gg") == "\n");  // a file's name, by readline
}

TEST_CASE("completion: fish offers commands, options and the words that an option takes") {
    if (!is_here("fish")) return not_tested("completion in fish: there is none here");
    write_file(file("completion.fish"), written("fish"));
    // Offers stand before a tab and their description.
    const auto offered = [](const std::string& line) {
        const Outcome outcome = shell("HOME=" + file("") + " fish --no-config -c 'source " +
                                      file("completion.fish") + "; complete -C \"" + line + "\"' | cut -f 1");
        CHECK_MESSAGE(outcome.err.empty(), outcome.err);
        return outcome.out;
    };
    CHECK(offered("redline ch") == "chat\n");
    CHECK(offered("redline run --ctx-s") == "--ctx-size\n");
    CHECK(offered("redline bench --output js") == "json\njsonl\n");
    CHECK(offered("redline run --cpu-level avx5") == "avx512\n");
    CHECK(offered("redline completion f") == "fish\n");
    CHECK(offered("redline run -m " + file("completion.f")) == file("completion.fish") + "\n");
}

// zsh completes at a terminal only: a shell in one is given the line and a tab, and asked for the line.
static const char kTypedInZsh[] = R"(
zmodload zsh/zpty
zpty shell zsh -f -i
zpty -w shell "PROMPT=; autoload -U compinit; compinit -u -D; source $1"
zpty -w shell 'tell() { print -r -- "<$BUFFER>"; BUFFER=; zle accept-line }; zle -N tell; bindkey "^X" tell'
zpty -w -n shell "$2"$'\t\x18'
zpty -r -m shell said '*<redline*>*' && print -r -- ${${said##*<}%%>*}
)";

TEST_CASE("completion: zsh offers commands, options and the words that an option takes") {
    if (!is_here("zsh")) return not_tested("completion in zsh: there is none here");
    write_file(file("_redline"), written("zsh"));
    write_file(file("typed.zsh"), kTypedInZsh);
    const auto completed = [](const std::string& line) {
        const Outcome outcome =
            shell("timeout 60 zsh -f " + file("typed.zsh") + " " + file("_redline") + " '" + line + "'");
        CHECK_MESSAGE(outcome.code == 0, outcome.err);
        return outcome.out;
    };
    CHECK(completed("redline ch") == "redline chat \n");
    CHECK(completed("redline run --ctx-s") == "redline run --ctx-size \n");
    CHECK(completed("redline bench --output js") == "redline bench --output json\n");  // or jsonl
    CHECK(completed("redline run --cpu-level avx5") == "redline run --cpu-level avx512 \n");
    CHECK(completed("redline completion f") == "redline completion fish \n");
    CHECK(completed("redline run -m " + file("_red")) == "redline run -m " + file("_redline") + " \n");
}

// A folder of two models, for shells that ask the program for their names.
static std::string with_models() {
    std::filesystem::create_directories(file("models/user"));
    write_file(file("models/letters.gguf"), "");
    write_file(file("models/user/numbers.gguf"), "");
    return "env -i PATH=\"$PATH\" HOME=" + file("nobody") + " REDLINE_MODELS=" + file("models") + " ";
}

TEST_CASE("models, devices: --names lists names alone, without looking into files") {
    CHECK(shell(with_models() + program() + " models --names").out == "letters\nuser/numbers\n");
    CHECK(shell(with_models() + program() + " models --names --name numb").out == "user/numbers\n");
    const std::string devices = shell(program() + " devices --names").out;
    CHECK(has("\n" + devices, "\ncpu\n"));
}

TEST_CASE("completion: bash and fish offer the models and devices of this machine") {
    const std::filesystem::path folder = std::filesystem::path(program()).parent_path();
    const std::string path = "PATH=" + folder.string() + ":$PATH ";
    if (is_here("bash")) {
        write_file(file("completion.bash"), written("bash"));
        const auto offered = [&](const std::string& line) {
            return shell(with_models() + path + "bash -c 'source " + file("completion.bash") +
                         "; COMP_LINE=\"" + line +
                         "\"; COMP_POINT=${#COMP_LINE}; COMP_WORDS=(${COMP_LINE//:/ : }); "
                         "COMP_CWORD=$((${#COMP_WORDS[@]} - "
                         "1)); _redline; echo ${COMPREPLY[@]}'")
                .out;
        };
        CHECK(offered("redline run -m let") == "letters\n");
        CHECK(offered("redline chat --model user/") == "user/numbers\n");
        CHECK(offered("redline run num") == "\n");
        CHECK(offered("redline run let") == "letters\n");
        CHECK(offered("redline run --device cp") == "cpu\n");
        std::filesystem::copy_file(file("models/letters.gguf"), file("models/small:8b.gguf"),
                                   std::filesystem::copy_options::overwrite_existing);
        CHECK(offered("redline run -m small:8") == "8b\n");
        std::filesystem::remove(file("models/small:8b.gguf"));
    }
    if (!is_here("fish")) return not_tested("models in fish: there is none here");
    write_file(file("completion.fish"), written("fish"));
    const auto offered = [&](const std::string& line) {
        return shell(with_models() + path + "fish --no-config -c 'source " + file("completion.fish") +
                     "; complete -C \"" + line + "\"' | cut -f 1")
            .out;
    };
    CHECK(has(offered("redline run -m let"), "letters\n"));
    CHECK(has(offered("redline run --device cp"), "cpu\n"));
}

// Names of variables in lines of the sources that read the environment.
static std::set<std::string> variables_read() {
    std::set<std::string> names;
    for (const char* folder : {"src", "backends"})
        for (const auto& entry :
             std::filesystem::recursive_directory_iterator(std::filesystem::path(RL_SOURCE_DIR) / folder)) {
            if (entry.path().extension() != ".cpp") continue;
            std::istringstream lines(read_file(entry.path().string()));
            for (std::string line; std::getline(lines, line);) {
                bool reads = has(line, "kDoctorVariables") || has(line, "ENDPOINT\"");
                for (const char* call :
                     {"getenv(\"", "variable(\"", "environment(\"", "either(\"", "home_folder("})
                    reads |= has(line, call);
                for (size_t at = line.find('"'); reads && at != std::string::npos;
                     at = line.find('"', at + 1)) {
                    const size_t end =
                        line.find_first_not_of("ABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789_", at + 1);
                    if (end > at + 3 && end < line.size() && line[end] == '"')
                        names.insert(line.substr(at + 1, end - at - 1));
                }
            }
        }
    names.insert(kDoctorVariables.begin(), kDoctorVariables.end());
    return names;
}

TEST_CASE("completion: the manual has every variable of the environment, status, and command of a chat") {
    const std::string man = written("man");
    const std::set<std::string> names = variables_read();
    CHECK(names.size() >= 20);
    const std::string environment = man.substr(man.find(".SH ENVIRONMENT"));
    for (const std::string& name : names) CHECK_MESSAGE(has(environment, name), name);
    for (const char* status : {"\n.B 0\n", "\n.B 3\n", "\n.B 4\n"}) CHECK(has(man, status));
    for (const char* command : {"/regenerate", "/think", "/export"})
        CHECK(has(man, "\\fB" + std::string(command)));
    CHECK(has(man, ".SH EXAMPLES"));
}

TEST_CASE("completion: shells and man take what was written") {
    for (const std::string kind : {"bash", "zsh", "fish"}) {
        if (!is_here(kind)) {
            not_tested("completion in " + kind + ", which is not here");
            continue;
        }
        write_file(file("completion." + kind), written(kind));
        const Outcome outcome = shell(kind + " -n " + file("completion." + kind));
        CHECK_MESSAGE(outcome.code == 0, outcome.err);
    }
    if (!is_here("groff")) return;
    write_file(file("redline.1"), written("man"));
    const Outcome page = shell("groff -man -ww -Tascii -P-cbu " + file("redline.1"));
    CHECK(page.code == 0);
    CHECK_MESSAGE(page.err.empty(), page.err);
    CHECK(has(page.out, "--cpu-level"));
}

TEST_CASE("completion: a shell that is not known is a wrong command line") {
    check_refused({"completion", "tcsh"}, 2,
                  {"redline completion takes bash, zsh, fish or man, not \"tcsh\""});
    check_refused({"completion"}, 2, {"no shell was named"});
    check_refused({"completion", "bash", "zsh"}, 2, {"one shell at a time"});
}
