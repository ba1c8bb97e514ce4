#include "cli/commands/run_options.h"

#include "cli/command.h"
#include "cli/pull_model.h"
#include "cli/user_models.h"
#include "sample/parameters.h"

namespace redline::cli {

static void add_prompt_options(Options& options, RunOptions& run) {
    options.group("prompt");
    options.each(
        "-p --prompt", "TEXT",
        "the prompt, as is a text without an option; what is piped into standard input follows it on a new "
        "line",
        [&run](const std::string& text) -> Status {
            run.prompt.text = text;
            run.prompt.has_text = true;
            return {};
        });
    options.common("the prompt");
    options.name("-f --file", "FILE", "a file with the prompt (after that of -p); - is standard input",
                 run.prompt.file);
    options.common("a file with the prompt; - is standard input");
    options.flag("-e --escape", "take \\n, \\t, \\\", \\\\ and the like in -p, -sys and --stop (default)",
                 run.prompt.escapes);
    options.flag("--no-escape", "take them as they are", run.prompt.escapes, false);
    options.flag("--parse-special",
                 "control tokens written in a raw prompt become control tokens; without it they are plain "
                 "text, unlike "
                 "in llama.cpp, so that a pasted text cannot pose as a turn",
                 run.parse_special);
    options.flag("--no-bos", "do not put the model's first token before a raw prompt", run.add_bos, false);
    options.name(
        "--prompt-cache", "FILE",
        "keep the state after the prompt in this file; a later run with the same beginning reads less",
        run.cache_file);
    options.flag("--prompt-cache-ro", "use that file but do not write it", run.cache_read_only);
}

static void add_fim_options(Options& options, RunOptions& run) {
    options.group("fill in the middle");
    options.each(
        "--fim", "PREFIX SUFFIX",
        "write what belongs between two texts, by a model that was trained for it, such as one for code",
        [&run](const std::string& text) -> Status {
            run.fim.texts.push_back(text);
            return {};
        });
    options.common("write what belongs between two texts");
    options.each("--fim-parts", "FILE FILE",
                 "the same with the texts of two files; one may be -, standard input",
                 [&run](const std::string& path) -> Status {
                     if (path.empty()) return error("was given an empty name");
                     run.fim.files.push_back(path);
                     return {};
                 });
    options.name(
        "--fim-file", "FILE:LINE[:COLUMN]",
        "the same at a place of one file: before this column, counted in characters from 1 (default: at "
        "the end of the line)",
        run.fim.place);
}

static void add_chat_options(Options& options, RunOptions& run) {
    options.group("chat");
    options.flag(
        "-cnv --conversation --chat",
        "put the prompt as a user's turn into the model's chat template (default where the model file has "
        "one)",
        [&run] { run.form = PromptForm::chat; });
    options.flag("-no-cnv --no-conversation --raw", "go on from the prompt as a plain text",
                 [&run] { run.form = PromptForm::raw; });
    options.common("go on from a text instead of answering");
    options.text("-sys --system --system-prompt", "TEXT", "the system's text before it", run.system);
    options.common("what the model is told first");
    options.name(
        "--messages", "FILE",
        "answer a conversation in the form of OpenAI's API: a list of messages, or an object with messages "
        "and tools; - is standard input",
        run.messages);
    options.name(
        "--tools", "FILE",
        "functions that the model may call, as a list in that form; calls in the answer are told apart with "
        "--json",
        run.tools);
    options.number(
        "--logprobs",
        "with --json: the log probability of each token and of the N likeliest in its place, before "
        "the samplers (default: none)",
        run.generate.logprobs, 0, 1000);
    add_reasoning_options(options, run.writer, run.reasoning);
    options.flag("--show-prompt", "print what the model would read, and end; with --json also its tokens",
                 run.show_prompt);
    add_template_options(options, run.writer);
    options.accepts("-st --single-turn");
}

static void add_output_options(Options& options, RunOptions& run) {
    options.group("text");
    options.number("-n --predict --n-predict",
                   "tokens to make at most; -1 or -2: until the model ends or the context is full",
                   run.generate.max_tokens, -2, std::numeric_limits<int64_t>::max());
    options.common("tokens to make at most");
    options.each("-r --reverse-prompt --stop", "TEXT", "end before this text; may be given again",
                 [&run](const std::string& text) -> Status {
                     if (text.empty()) return error("takes a text that is not empty");
                     run.generate.stops.push_back(text);
                     return {};
                 });
    options.common("end before this text");
    options.flag("--context-shift", "when the context is full, forget the older half and go on",
                 [&run] { run.generate.when_full = WhenFull::shift; });
    options.flag("--no-context-shift", "end there (default)",
                 [&run] { run.generate.when_full = WhenFull::stop; });
    options.number("--keep", "tokens of the prompt that this never forgets; -1: all", run.keep, -1,
                   kMostContext);
    options.flag("-sp --special", "write control tokens out", run.generate.show_special);
    options.flag("--display-prompt", "write the prompt before the text", run.display_prompt);
    options.flag("--no-display-prompt", "do not (default)", run.display_prompt, false);
    options.flag("--json", "write one JSON object at the end instead of the text as it comes", run.json);
    options.common("one JSON object, with figures and reasons");
}

Options declare(RunOptions& run) {
    Options options("run", "answer a prompt, or go on from a text",
                    {"run [MODEL] [TEXT] [options]", "run [-m MODEL] -f FILE [options]",
                     "run [-m MODEL] [options] < FILE"});
    options.words([&run](const std::string& word) -> Status {
        run.words.push_back(word);
        return {};
    });
    add_prompt_options(options, run);
    add_fim_options(options, run);
    add_chat_options(options, run);
    add_output_options(options, run);
    add_model_options(options, run.model);
    add_remote_options(options, run.model.remote);
    add_sampling_options(options, run.sampling);
    add_speculation_options(options, run.speculation);
    add_voice_options(options);
    options.example("redline run \"What is GGUF?\"");
    options.example("redline run model.gguf \"What is GGUF?\" --temp 0");
    options.example("git diff | redline run model.gguf -p \"Explain this change:\"");
    options.example("redline run model.gguf --raw -p \"Once upon a time\" -n 200");
    options.example("redline run coder.gguf --fim-file main.py:12 -n 100");
    options.example("redline run model.gguf --messages chat.json --tools tools.json --json");
    options.remark(
        "Only the answer goes to standard output, with a line end after it on a terminal only. Standard "
        "error "
        "gets notes, on a terminal one line of figures, and with -v all there is to know. Beside a prompt, "
        "standard input is read when it is a file or a pipe of ours; in a \"while read\" loop it is left "
        "alone.");
    options.remark(
        "Exit status: 0 done, 1 it could not be done (a file is missing, a download failed, the device has "
        "no "
        "room), 2 the command line is wrong, 3 the device that was named cannot be had, 4 the answer ends, "
        "at -n or with the context, before its grammar or schema is complete, 130 after "
        "Ctrl-C.");
    return options;
}

// "qwen3:8b", "user/model:tag", what ollama calls a model, or a hub's name; without a tag that may be a
// prompt, unless it stands beside one.
static bool is_library_name(const std::string& word, bool beside_prompt) {
    const Result<HubModel> hub = parse_hub_model(word);
    if (hub && (beside_prompt || !hub.value().wanted.empty() || word.starts_with("hf.co/"))) return true;
    const size_t colon = word.find(':');
    return colon != std::string::npos && colon > 0 && colon + 1 < word.size() &&
           word.find_first_not_of("abcdefghijklmnopqrstuvwxyz0123456789._-/:") == std::string::npos;
}

Status take_words(RunOptions& run, int& code) {
    code = kFailed;
    std::vector<std::string>& words = run.words;
    const bool unnamed = run.model.model.empty() && !run.model.remote;
    // A word alone is more likely a prompt than a part of a name.
    const bool alone = words.size() == 1 && !run.prompt.has_text && run.prompt.file.empty() &&
                       run.messages.empty() && !run.fim.given();
    if (!words.empty() && unnamed && names_model(words[0], alone ? NameParts::whole : NameParts::part)) {
        run.model.model = words[0];
        words.erase(words.begin());
    }
    if (words.empty()) return {};
    if (run.model.model.empty() && !run.model.remote && is_library_name(words[0], !alone))
        return error(
            "\"{}\" looks like the name of a model, and none here is called so: redline models lists them, "
            "redline pull fetches more (as a prompt it goes with -p)",
            words[0]);
    if (alone && unnamed && words[0].find(' ') == words[0].npos && names_model(words[0], NameParts::part))
        note(fmt::format("\"{0}\" is the prompt; redline run -m {0} takes the model whose name has it",
                         words[0]));
    if (words.size() > 1) {
        code = kUsage;
        return error(
            "\"{}\" and \"{}\" are two texts, and the first is neither a file nor the name of a model "
            "here: put the prompt in quotes, redline run MODEL \"TEXT\"",
            words[0], words[1]);
    }
    run.prompt.text = run.prompt.has_text ? run.prompt.text + "\n" + words[0] : words[0];
    run.prompt.has_text = true;
    return {};
}

static Status check_fim(const RunOptions& run) {
    const FimSource& fim = run.fim;
    if (fim.texts.size() > 2 || fim.files.size() > 2 ||
        int(!fim.texts.empty()) + int(!fim.files.empty()) + int(!fim.place.empty()) > 1)
        return error("--fim, --fim-parts and --fim-file name the two texts: give one of them, once");
    if (fim.files.size() == 2 && fim.files[0] == "-" && fim.files[1] == "-")
        return error("--fim-parts: standard input can be one of the two texts, not both");
    if (!fim.place.empty()) RL_TRY(check_fim_place(fim.place));
    if (run.prompt.has_text || !run.prompt.file.empty())
        return error("a prompt means nothing with --fim, which has two texts: leave one of them out");
    if (run.parse_special)
        return error("--parse-special means nothing with --fim, whose texts are plain: leave it out");
    return {};
}

static Status check_forms(const Options& options, RunOptions& run) {
    const auto conflict = [&](std::string_view name, std::string_view with) {
        return error("{} means nothing with {}: leave one of them out", name, with);
    };
    if (run.fim.given()) {
        RL_TRY(check_fim(run));
        if (run.form == PromptForm::chat) return conflict("--chat", "--fim, which has no turns");
        run.form = PromptForm::raw;
    }
    const char* const raw = run.fim.given() ? "--fim, which has no turns" : "--raw, which has no turns";
    // Options that speak of turns imply the template, those that speak of plain text its absence.
    for (const char* name : {"--system-prompt", "--messages", "--tools", "--chat-format", "--chat-template",
                             "--chat-template-kwargs", "--reasoning-effort", "--think"}) {
        if (!options.given(name)) continue;
        if (run.form == PromptForm::raw) return conflict(name, raw);
        if (std::string_view(name) != "--think") run.form = PromptForm::chat;
    }
    for (const char* name : {"--no-bos", "--parse-special"}) {
        if (!options.given(name)) continue;
        if (run.form == PromptForm::chat)
            return conflict(name, "a chat template, which sets control tokens itself");
        run.form = PromptForm::raw;
    }
    if (run.messages.empty()) return {};
    if (run.prompt.has_text || !run.prompt.file.empty())
        return conflict("a prompt", "--messages, which holds the whole conversation");
    if (!run.system.empty()) return conflict("--system-prompt", "--messages, where it is a message");
    if (run.messages == "-" && run.tools == "-") return conflict("--tools -", "--messages -");
    return {};
}

Status check_usage(const Options& options, RunOptions& run) {
    RL_TRY(settle_device(run.model));
    RL_TRY(settle(run.speculation));
    RL_TRY(check_options(run.sampling.sampler));
    if (run.cache_read_only && run.cache_file.empty())
        return error("--prompt-cache-ro means nothing without --prompt-cache: leave it out");
    if (options.given("--logprobs") && !run.json)
        return error("--logprobs means nothing without --json: leave it out");
    if (options.given("--keep") && run.generate.when_full != WhenFull::shift)
        return error("--keep means nothing without --context-shift: leave it out");
    return check_forms(options, run);
}

}  // namespace redline::cli
