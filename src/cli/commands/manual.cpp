// The manual page, from the commands' tables of options.
#include "cli/commands/described.h"
#include "cli/version.h"

#include <algorithm>

namespace redline::cli {

namespace {

// Text as man has it: neither an escape nor a request, and hyphens that can be copied.
std::string escaped(std::string_view text) {
    std::string out;
    for (const char c : text) {
        if (c == '\\')
            out += "\\e";
        else if (c == '-')
            out += "\\-";
        else
            out += c;
    }
    return text.starts_with('.') || text.starts_with('\'') ? "\\&" + out : out;
}

std::string options_section(const Options& command) {
    std::vector<std::string> groups;
    for (const Options::Option& option : command.options())
        if (std::find(groups.begin(), groups.end(), option.group) == groups.end())
            groups.push_back(option.group);
    std::string out;
    for (const std::string& group : groups) {
        out += fmt::format(".PP\n.I {}\n", escaped(group));
        for (const Options::Option& option : command.options()) {
            if (option.group != group) continue;
            std::string names;
            for (const std::string& name : option.names)
                names += fmt::format("{}\\fB{}\\fR", names.empty() ? "" : ", ", escaped(name));
            if (!option.value.empty()) names += fmt::format(" \\fI{}\\fR", escaped(option.value));
            out += fmt::format(".TP\n{}\n{}\n", names, escaped(option.help));
        }
    }
    return out;
}

std::string command_section(const Options& command) {
    std::string out = fmt::format(".SS redline {}\n{}\n", command.command(), escaped(command.summary()));
    out += ".PP\n.nf\n";
    for (const std::string& line : command.usage()) out += fmt::format("redline {}\n", escaped(line));
    out += ".fi\n" + options_section(command);
    if (!command.examples().empty()) {
        out += ".PP\n.I examples\n.PP\n.nf\n";
        for (const std::string& line : command.examples()) out += escaped(line) + "\n";
        out += ".fi\n";
    }
    for (const std::string& text : command.remarks()) out += fmt::format(".PP\n{}\n", escaped(text));
    return out;
}

}  // namespace

std::string manual_page(const std::vector<Options>& commands) {
    std::string out = fmt::format(
        ".\\\" Written by `redline completion man`.\n"
        ".TH REDLINE 1 \"\" \"redline {}\" \"User Commands\"\n"
        ".SH NAME\nredline \\- runs language models in GGUF form on this machine\n"
        ".SH SYNOPSIS\n.B redline\n.I COMMAND\n[options]\n"
        ".SH COMMANDS\nWithout a model named, a small demo model that comes with redline answers.\n",
        version());
    for (const Options& command : commands) out += command_section(command);
    return out +
           ".SH EXIT STATUS\n"
           "0: done. 1: it could not be done. 2: the command line was wrong. 3: the device that was asked "
           "for "
           "cannot be had. 130: interrupted (143 by SIGTERM, 129 by SIGHUP).\n"
           ".SH ENVIRONMENT\n"
           ".TP\n.B REDLINE_MODELS\nthe folder of models, in place of ~/.local/share/redline/models\n"
           ".TP\n.B NO_COLOR\nif it is not empty: no colours\n"
           ".TP\n.B XDG_CACHE_HOME\nwhere compiled kernels are kept, in redline; else in ~/.cache/redline\n"
           ".SH FILES\n"
           ".TP\n.I ~/.local/state/redline/history\nwhat was typed in chat\n"
           ".TP\n.I ~/.editrc\nkeys of the line that is typed, see editrc(5)\n";
}

}  // namespace redline::cli
