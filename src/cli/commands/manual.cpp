// The manual page, from the commands' tables of options.
#include "cli/commands/chat_talk.h"
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

struct Described {
    std::string_view name, text;
};

// Variables that the program and its libraries read. completion_test holds the list to the sources.
constexpr Described kEnvironment[] = {
    {"REDLINE_COLLECTIVES", "NCCL or RCCL for sums over devices: its path, or none"},
    {"OMPI_COMM_WORLD_SIZE", "the ranks of a job of OpenMPI, set by its launcher"},
    {"PMIX_RANK", "the number of a rank, set by a launcher"},
    {"REDLINE_MODELS", "the folder of models, in place of redline/models in the folder of data"},
    {"REDLINE_SELF_TEST", "0: kernels are not checked before their first use, as by --no-self-test"},
    {"REDLINE_QUICK_TUNE",
     "0: kernels are not timed before their first use, but what is known of them is used"},
    {"NO_COLOR", "if it is not empty: no colours"},
    {"TERM", "dumb or unknown: no line is written over"},
    {"HOME", "the user's folder, where the ones below are if they are not named"},
    {"XDG_CACHE_HOME",
     "the folder of caches, else ~/.cache: what is known of devices and files is in its redline"},
    {"XDG_DATA_HOME", "the folder of data, else ~/.local/share"},
    {"XDG_STATE_HOME", "the folder of states, else ~/.local/state: what was typed in chat is in its redline"},
    {"HF_HUB_CACHE, HF_HOME",
     "where Hugging Face's tools keep models, which are found there; its token is in HF_HOME"},
    {"HF_TOKEN", "the token for models that a hub does not give to everybody"},
    {"HF_ENDPOINT, MODEL_ENDPOINT", "the hub to pull from, in place of https://huggingface.co"},
    {"LLAMA_CACHE", "where llama.cpp keeps models, which are found there"},
    {"OLLAMA_MODELS", "where Ollama keeps models, which are found there"},
    {"https_proxy, http_proxy, no_proxy", "how libcurl reaches a hub"},
    {"VK_DRIVER_FILES, VK_ADD_DRIVER_FILES, VK_ICD_FILENAMES",
     "Vulkan's drivers, which the Vulkan loader reads"},
    {"VK_INSTANCE_LAYERS", "Vulkan's layers; with the one for validation its messages are shown"},
    {"HIP_VISIBLE_DEVICES, ROCR_VISIBLE_DEVICES, GPU_DEVICE_ORDINAL", "the GPUs that ROCm shows"},
    {"HSA_OVERRIDE_GFX_VERSION", "as which GPU ROCm takes one; redline doctor says what is wrong with that"},
    {"VK_LOADER_DRIVERS_DISABLE, AMD_VULKAN_ICD, RADV_DEBUG, RADV_PERFTEST, MESA_VK_DEVICE_SELECT",
     "drivers and their settings; redline doctor lists those that are set"},
    {"EDITRC", "the file of keys, in place of ~/.editrc"},
};

constexpr Described kFiles[] = {
    {"~/.local/share/redline/models", "models that redline pull has fetched"},
    {"~/.local/state/redline/history", "what was typed in chat"},
    {"~/.editrc", "keys of the line that is typed, see editrc(5)"},
    {"~/.cache/redline/kernels.json",
     "the kernels that were compared with the reference, by device and driver"},
    {"~/.cache/redline/tuning.json", "how kernels run fastest, by redline tune and the quick tune"},
    {"~/.cache/redline/bandwidth.json, pace.json, speeds.json",
     "how fast devices read, for the speed that is expected"},
    {"~/.cache/redline/noted.json", "the model files whose notes were said"},
    {"~/.cache/redline/*.pipelines", "what drivers compiled of the kernels"},
};

constexpr Described kStatuses[] = {
    {"0", "done"},
    {"1",
     "it could not be done: a file is missing, a download failed, the device has no room; of doctor and "
     "verify: there is a problem"},
    {"2", "the command line was wrong, whatever the files and the machine"},
    {"3", "the device that was named cannot be had"},
    {"4", "an answer ended, at -n or with the context, before its grammar or schema was complete"},
    {"130, 143, 129", "ended by Ctrl-C, SIGTERM, SIGHUP; 129 also where the terminal is gone"},
};

constexpr Described kExamples[] = {
    {"redline run \"What is GGUF?\"", "asks the demo model that comes with redline."},
    {"redline pull Qwen/Qwen3-4B-GGUF:Q4_K_M",
     "fetches a model; redline models lists those of this machine."},
    {"redline chat -m qwen3-4b", "talks with it. /help lists the commands."},
    {"git diff | redline run -m qwen3-4b -p \"Explain this change:\" > answer.txt",
     "keeps an answer in a file: nothing else goes to standard output."},
    {"redline run -m qwen3-4b -p \"Who wrote Faust?\" -j schema.json -n 200",
     "answers with JSON that follows a schema; status 4 says that it is cut."},
    {"redline run -m coder --fim-file main.py:12 -n 100", "writes what belongs at the end of line 12."},
    {"redline bench -m qwen3-4b --devices", "measures every device."},
};

template <size_t N>
std::string list_section(std::string_view title, const Described (&rows)[N]) {
    std::string out = fmt::format(".SH {}\n", title);
    for (const Described& row : rows)
        out += fmt::format(".TP\n.B {}\n{}\n", escaped(row.name), escaped(row.text));
    return out;
}

std::string chat_section() {
    std::string out =
        ".SH COMMANDS OF A CHAT\n"
        "In redline chat a line that begins with one of these is a command. At a terminal Tab completes "
        "them.\n";
    for (const DescribedTalkCommand& command : described_talk_commands()) {
        std::string names = fmt::format("\\fB{}\\fR", escaped(command.name));
        if (!command.argument.empty()) names += fmt::format(" \\fI{}\\fR", escaped(command.argument));
        if (!command.other_names.empty()) names += fmt::format(" (also {})", escaped(command.other_names));
        out += fmt::format(".TP\n{}\n{}\n", names, escaped(command.help));
    }
    return out;
}

}  // namespace

std::string manual_page(const std::vector<Options>& commands) {
    std::string out = fmt::format(
        ".\\\" Written by `redline completion man`.\n"
        ".TH REDLINE 1 \"\" \"redline {}\" \"User Commands\"\n"
        ".SH NAME\nredline \\- runs language models in GGUF form on this machine\n"
        ".SH SYNOPSIS\n.B redline\n.I COMMAND\n[options]\n.br\n.B redline help\n.I COMMAND\n"
        ".SH DESCRIPTION\nWithout a model named, a small demo model that comes with redline answers. A model "
        "is "
        "named by its file or by a part of its name.\n",
        version());
    out += list_section("EXAMPLES", kExamples) + ".SH COMMANDS\n";
    for (const Options& command : commands) out += command_section(command);
    return out + chat_section() + list_section("EXIT STATUS", kStatuses) +
           list_section("ENVIRONMENT", kEnvironment) + list_section("FILES", kFiles);
}

}  // namespace redline::cli
