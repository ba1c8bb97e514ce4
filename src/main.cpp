// The program: finds the command and hands it the rest of the line.
#include "arch/arch.h"
#include "base/nearest_name.h"
#include "base/os/file_handle.h"
#include "base/os/signals.h"
#include "cli/command.h"
#include "cli/demo_model.h"
#include "cli/job.h"
#include "cli/options/options.h"
#include "cli/terminal/terminal.h"
#include "cli/terminal/word_wrap.h"
#include "cli/user_models.h"
#include "cli/version.h"
#include "devices/device_choice.h"

#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <new>

namespace redline::cli {

static std::string overview() {
    std::string out =
        "redline runs language models in GGUF form on this machine.\n\n"
        "usage: redline COMMAND [options]\n       redline help COMMAND\n\n";
    for (const Command* command : all_commands())
        out += fmt::format("  {:<12}{}\n", command->name, command->summary);
    return out +
           "\nto begin\n"
           "  redline chat                     talk with redline's small demo model\n"
           "  redline run \"What is GGUF?\"      or ask it one question\n"
           "  redline chat -m NAME.gguf        the same with a model of yours, such as a\n"
           "                                   Q4_K_M file of a small instruct model\n"
           "  redline info -m NAME.gguf        what is in a file, and whether it fits\n"
           "  redline --version                which models, formats and devices it knows\n"
           "\nexit status: 0 done, 1 it could not be done, 2 the command line was wrong, 3 the\n"
           "device that was named cannot be had, 4 an answer is cut, 130 interrupted\n";
}

static std::string list_text(const std::string& title, const std::vector<std::string>& names) {
    return wrapped(fmt::format("{}: {}", title, fmt::join(names, ", ")), 80) + "\n";
}

static std::string version_text() {
    std::vector<std::string> devices, archs, formats;
    std::string lacks;
    for (const BackendEntry* entry : all_backends()) {
        // Some of the kernels for a device, or all of its backend.
        const std::string_view left_out = build_lacks(entry->name);
        if (left_out.find(" backend, ") == left_out.npos) devices.emplace_back(entry->name);
        if (!left_out.empty())
            lacks += wrapped(fmt::format("this build lacks {}", short_lacks(left_out)), 80) + "\n";
    }
    for (const Arch* arch : all_archs()) archs.insert(archs.end(), arch->names.begin(), arch->names.end());
    std::sort(archs.begin(), archs.end());
    for (const Format* format : all_formats()) formats.emplace_back(format->name);
    return fmt::format("redline {} ({})\nbuilt with {}\n", version(), commit(), compiler()) +
           list_text("devices", devices) + lacks +
           list_text(fmt::format("{} formats of tensors", formats.size()), formats) +
           list_text(fmt::format("{} architectures", archs.size()), archs);
}

static int print(const std::string& text) {
    Output out;
    out.write(text);
    return out.finish();
}

// Without a word: what this is, and on a terminal a chat at the touch of a key.
static int begin() {
    print(overview());
    if (!is_terminal(os::kStandardInput) || !is_terminal(os::kStandardOutput) || !find_demo_model().ok())
        return kUsage;
    show("\nEnter begins a chat with the demo model, Ctrl-D leaves: ");
    for (int letter = std::getchar(); letter != '\n'; letter = std::getchar())
        if (letter == EOF) {
            show("\n");
            return kDone;
        }
    return chat_command.run({});
}

// Commands of ollama, llama.cpp and LM Studio: what does the same here, or what there is instead.
struct ForeignCommand {
    std::string_view names;  // separated by blanks
    const Command* same = nullptr;
    std::string_view instead = {};
};

static const ForeignCommand* find_foreign_command(const std::string& name) {
    static const ForeignCommand kForeign[] = {
        {"list ls", &models_command},
        {"show", &info_command},
        {"download get", &pull_command},
        {"perplexity", &eval_command},
        {"ps stop unload", nullptr,
         "a model is loaded while a command runs, and none stays behind: there is "
         "nothing to list or to stop"},
        {"load", nullptr, "each command loads the model that it names: redline run NAME \"TEXT\""},
        {"rm remove delete", nullptr, "redline models --json tells where each file is: rm FILE removes it"},
        {"cp create push", nullptr,
         "models are plain GGUF files: copy and name them as files, and options "
         "take the place of a Modelfile"},
        {"server", &serve_command},
        {"signin signout login logout", nullptr,
         "there is no account: HF_TOKEN gives redline pull access to "
         "gated models"},
        {"import", nullptr, "put the GGUF file into the folder that redline models names, or give its path"},
        {"embed embedding", nullptr, "redline makes no embeddings"},
    };
    for (const ForeignCommand& one : kForeign)
        for (const std::string& known : split_words(one.names))
            if (known == name) return &one;
    return nullptr;
}

static bool is_one_of(const std::string& argument, std::initializer_list<std::string_view> names) {
    const std::string_view name = std::string_view(argument).substr(0, argument.find('='));
    return std::find(names.begin(), names.end(), name) != names.end();
}

// Options without a command, as llama-cli takes them: with a prompt they are `run`, without one a chat where
// someone sits at a terminal.
static int run_or_chat(const std::vector<std::string>& arguments) {
    const auto asks = [](const std::string& argument) {
        return is_one_of(argument, {"-p", "--prompt", "-f", "--file", "--messages", "--raw", "-no-cnv",
                                    "--no-conversation", "-st", "--single-turn", "--show-prompt", "--fim",
                                    "--fim-parts", "--fim-file"});
    };
    const bool prompt = std::any_of(arguments.begin(), arguments.end(), asks);
    if (prompt || !is_terminal(os::kStandardInput)) return run_command.run(arguments);
    return chat_command.run(arguments);
}

static Error unknown_command(const std::string& name) {
    std::vector<std::string> known;
    for (const Command* command : all_commands()) known.emplace_back(command->name);
    std::vector<std::string> near = known;
    near.insert(near.end(), {"help", "version"});
    const std::string hint = nearest_name(name, near);
    if (!hint.empty()) return error("\"{}\" is not a command; did you mean {}?", name, hint);
    if (names_model(name, NameParts::part))
        return error("\"{0}\" is not a command; redline run {0} and redline chat {0} take it as a model",
                     name);
    return error("\"{}\" is not a command; these are: {}", name, fmt::join(known, ", "));
}

static int help_with(const std::string& name) {
    for (const Command* command : all_commands())
        if (command->name == name) return command->run({"--help"});
    return fail(unknown_command(name), kUsage);
}

static int dispatch(const std::vector<std::string>& arguments) {
    if (arguments.empty()) return begin();
    const std::string& name = arguments.front();
    if (name == "help" && arguments.size() > 1) return help_with(arguments[1]);
    if (name == "-h" || name == "--help" || name == "help") return print(overview());
    if (name == "--version" || name == "version") return print(version_text());
    for (const Command* command : all_commands()) {
        if (command->name != name) continue;
        if (const std::optional<int> code = refuse_in_job(name)) return *code;
        return command->run({arguments.begin() + 1, arguments.end()});
    }
    if (const ForeignCommand* foreign = find_foreign_command(name)) {
        if (!foreign->same) return fail(error("{}: {}", name, foreign->instead), kUsage);
        return foreign->same->run({arguments.begin() + 1, arguments.end()});
    }
    if (name.size() > 1 && name.starts_with('-')) return run_or_chat(arguments);
    if (is_model_file(name)) return run_command.run(arguments);
    return fail(unknown_command(name), kUsage);
}

}  // namespace redline::cli

int main(int argc, char** argv) {
    using namespace redline;
    if (!os::open_standard_handles()) std::abort();
    os::ignore_broken_pipes();
    cli::catch_signals();
    const char* no_color = std::getenv("NO_COLOR");
    cli::voice().colour =
        cli::is_terminal(os::kStandardError) && cli::can_move_cursor() && !(no_color && *no_color);
    try {
        return cli::end_job(cli::dispatch({argv + std::min(argc, 1), argv + argc}));
    } catch (const std::bad_alloc&) {
        return cli::fail(error("not enough memory"));
    } catch (const std::exception& problem) {
        return cli::fail(error("{}", problem.what()));
    }
}
