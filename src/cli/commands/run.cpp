// redline run: one prompt in, one text out.
#include "cli/chat_writer.h"
#include "cli/demo_model.h"
#include "cli/options/model_options.h"
#include "cli/options/sampling_options.h"
#include "cli/prompt.h"
#include "cli/report.h"
#include "cli/rescue.h"
#include "cli/terminal/terminal.h"
#include "memory/budget.h"
#include "sample/chain.h"

#include <nlohmann/json.hpp>

#include <filesystem>

#include <unistd.h>

namespace redline::cli {

namespace {

struct RunOptions {
    ModelOptions model;
    SamplingOptions sampling;
    PromptSource prompt;
    GenerateOptions generate;
    int64_t keep = 0;  // -1: the whole prompt
    std::string cache_file;
    bool cache_read_only = false;
    bool display_prompt = false;
    bool parse_special = false;
    bool add_bos = true;
    bool chat = false;
    std::string system;
    ChatWriterOptions writer;
    bool json = false;
};

void add_prompt_options(Options& options, RunOptions& run) {
    options.group("prompt");
    options.each("-p --prompt", "TEXT",
                 "the prompt; what is piped into standard input follows it on a new line",
                 [&run](const std::string& text) -> Status {
                     run.prompt.text = text;
                     run.prompt.has_text = true;
                     return {};
                 });
    options.name("-f --file", "FILE", "a file with the prompt (after that of -p); - is standard input",
                 run.prompt.file);
    options.flag("-e --escape", "take \\n, \\t, \\\", \\\\ and the like in -p, -sys and --stop (default)",
                 run.prompt.escapes);
    options.flag("--no-escape", "take them as they are", run.prompt.escapes, false);
    options.flag(
        "--parse-special",
        "control tokens written in the prompt become control tokens; without it they are plain text, unlike "
        "in llama.cpp, so that a pasted text cannot pose as a turn",
        run.parse_special);
    options.flag("--no-bos", "do not put the model's first token before the prompt", run.add_bos, false);
    options.flag("--chat", "put the prompt as a user's turn into the model's chat template", run.chat);
    options.text("-sys --system-prompt", "TEXT", "with --chat: the system's text before it", run.system);
    add_template_options(options, run.writer);
    options.name(
        "--prompt-cache", "FILE",
        "keep the state after the prompt in this file; a later run with the same beginning reads less",
        run.cache_file);
    options.flag("--prompt-cache-ro", "use that file but do not write it", run.cache_read_only);
}

void add_output_options(Options& options, RunOptions& run) {
    options.group("text");
    options.number("-n --predict --n-predict",
                   "tokens to make at most; -1: until the model ends or the context is full",
                   run.generate.max_tokens, -1, std::numeric_limits<int64_t>::max());
    options.each("-r --reverse-prompt --stop", "TEXT", "end before this text; may be given again",
                 [&run](const std::string& text) -> Status {
                     if (text.empty()) return error("takes a text that is not empty");
                     run.generate.stops.push_back(text);
                     return {};
                 });
    options.flag("--context-shift", "when the context is full, forget the older half and go on",
                 [&run] { run.generate.when_full = WhenFull::shift; });
    options.number("--keep", "tokens of the prompt that this never forgets; -1: all", run.keep, -1,
                   kMostContext);
    options.flag("--special", "write control tokens out", run.generate.show_special);
    options.flag("--display-prompt", "write the prompt before the text", run.display_prompt);
    options.flag("--no-display-prompt", "do not (default)", run.display_prompt, false);
    options.flag("--json", "write one JSON object at the end instead of the text as it comes", run.json);
}

Options declare(RunOptions& run) {
    Options options("run", "make text from a prompt",
                    {"run [-m MODEL] -p TEXT [options]", "run [-m MODEL] -f FILE [options]",
                     "run [-m MODEL] [options] < FILE"});
    add_prompt_options(options, run);
    add_output_options(options, run);
    add_model_options(options, run.model);
    add_sampling_options(options, run.sampling);
    add_voice_options(options);
    options.example("redline run --chat -p \"What is GGUF?\"");
    options.example("redline run -m model.gguf -p \"Once upon a time\" -n 200");
    options.example("redline run -m model.gguf --chat -p \"Summarize:\" -f report.txt --temp 0");
    options.example("git diff | redline run -m model.gguf --chat -p \"Write a commit message for this:\"");
    options.remark(
        "Only the text goes to standard output, with a line end after it on a terminal only; all else goes "
        "to "
        "standard error. Exit code: 0, 1 for an error, 2 for a wrong option, 130 after Ctrl-C.");
    return options;
}

Result<std::vector<Token>> encode_prompt(const RunOptions& run, const Model& model, const std::string& text) {
    const Tokenizer& tokenizer = model.tokenizer();
    if (!run.chat) {
        if (model.gguf().metadata().has("tokenizer.chat_template"))
            say_detail("the model has a chat template; --chat puts the prompt into it");
        return tokenizer.encode(text, {run.add_bos, run.parse_special});
    }
    ChatWriter writer = RL_TRY(ChatWriter::create(model, run.writer));
    say_detail(writer.description());
    std::vector<Message> messages;
    if (!run.system.empty())
        messages.push_back({Role::system, run.prompt.escapes ? unescape(run.system) : run.system});
    messages.push_back({Role::user, text});
    return writer.encode(messages);
}

bool is_set(const std::atomic<bool>* flag) {
    return flag && flag->load();
}

// Says what moving the cache to or from its file took.
void say_moved(const RunOptions& run, const Session& session, std::chrono::steady_clock::time_point start) {
    const double seconds = std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count();
    std::error_code unknown;
    const auto bytes = double(std::filesystem::file_size(run.cache_file, unknown));
    say_detail(fmt::format("{} holds {} tokens: {:.2f} GB in {:.2f} s", run.cache_file, session.position(),
                           unknown ? 0.0 : bytes * 1e-9, seconds));
}

// Interrupted, it leaves the session empty; reading the prompt then ends at once.
Status restore_cache(const RunOptions& run, Session& session, const std::atomic<bool>* cancel) {
    if (run.cache_file.empty() || !std::filesystem::exists(run.cache_file)) return {};
    const auto start = std::chrono::steady_clock::now();
    ProgressLine line("reading the prompt cache");
    const auto progress = [&](uint64_t done, uint64_t total) { line.update(done, total); };
    const Status restored = session.restore(run.cache_file, progress, cancel);
    if (is_set(cancel)) return {};
    // It is not overwritten either: it may be something else that the user cares about.
    if (!restored) return error("{}; remove it or name another file", restored.error().message);
    say_moved(run, session, start);
    return {};
}

Status save_cache(const RunOptions& run, const Session& session, const PromptResult& prompt, uint64_t had,
                  const std::atomic<bool>* cancel) {
    if (run.cache_file.empty() || run.cache_read_only || prompt.cancelled) return {};
    // It holds this prompt already, but for its last token at most.
    if (had == prompt.tokens && prompt.reused + 1 == prompt.tokens) return {};
    const auto start = std::chrono::steady_clock::now();
    ProgressLine line("writing the prompt cache");
    const auto progress = [&](uint64_t done, uint64_t total) { line.update(done, total); };
    const Status saved = session.save(run.cache_file, progress, cancel);
    if (is_set(cancel)) return {};
    if (saved) say_moved(run, session, start);
    return saved;
}

struct Answer {
    PromptResult prompt;
    Generation generation;
};

Result<Answer> answer(const RunOptions& run, Session& session, Sampler& sampler,
                      std::span<const Token> tokens, const TextSink& sink, const std::atomic<bool>* cancel) {
    RL_TRY(restore_cache(run, session, cancel));
    const uint64_t had = session.position();
    Answer out;
    out.prompt = RL_TRY(read_prompt(session, sampler, tokens, cancel));
    const Status saved = save_cache(run, session, out.prompt, had, cancel);
    // The answer does not need it.
    if (!saved) fail(error("the prompt cache is not kept: {}", saved.error().message));
    GenerateOptions options = run.generate;
    const uint64_t bos = session.model().tokenizer().adds_bos() && run.add_bos ? 1 : 0;
    options.keep = run.keep < 0 ? tokens.size() : uint64_t(run.keep) + bos;
    out.generation = RL_TRY(generate(session, sampler, options, sink, cancel));
    return out;
}

Json describe(const RunOptions& run, const LoadedModel& loaded, const Session& session,
              const Sampler& sampler, const Answer& a) {
    const Generation& g = a.generation;
    return {{"text", g.text},
            {"stop_reason", stop_reason_name(g.reason)},
            {"stop", g.stop.empty() ? Json(nullptr) : Json(g.stop)},
            {"prompt_tokens", a.prompt.tokens},
            {"cached_tokens", a.prompt.reused},
            {"generated_tokens", g.tokens.size()},
            {"token_ids", g.tokens},
            {"context_shifts", g.shifts},
            {"seed", sampler.seed()},
            {"temperature", real_json(double(run.sampling.sampler.temperature))},
            {"context", session.context()},
            {"cache_type", cache_type_name(run.model.cache)},
            {"timings", timings_json(loaded, session, a.prompt, g)},
            {"model", model_json(loaded)},
            {"device", device_json(loaded)},
            {"peak_memory", peak_resident()}};
}

Result<int> run_prompt(RunOptions& run, const Options& options, const std::string& text) {
    LoadedModel loaded = RL_TRY(inspect_model(run.model));
    const Model& model = *loaded.model;
    RL_TRY(take_file_defaults(options, model.gguf().metadata(), run.sampling.sampler));
    const uint64_t context = choose_context(run.model, model.config());
    Sampler sampler = RL_TRY(make_sampler(model, run.sampling.sampler, run.sampling.ignore_eos, context));
    const std::vector<Token> tokens = RL_TRY(encode_prompt(run, model, text));
    RL_TRY(check_prompt(tokens, context));
    RL_TRY(place_model(loaded, run.model, context));
    Session session = RL_TRY(open_session(loaded, run.model, context));
    rescue_from_loss(session, loaded, run.model);
    say_detail(fmt::format("seed {}", sampler.seed()));

    Output out;
    const Interrupts interrupts;
    if (run.display_prompt && !run.json) out.write(text);
    const bool terminal = is_terminal(STDOUT_FILENO);
    const TextSink sink = [&](std::string_view piece) {
        return run.json || out.write(terminal ? for_terminal(piece) : std::string(piece));
    };
    const Answer a = RL_TRY(answer(run, session, sampler, tokens, sink, interrupts.flag()));
    const std::string shown = run.display_prompt ? text + a.generation.text : a.generation.text;
    if (run.json)
        out.write(to_text(describe(run, loaded, session, sampler, a)) + "\n");
    else if (terminal && !shown.ends_with('\n'))
        out.write("\n");
    const std::string why = explain_stop(a.generation, context);
    if (!why.empty()) note(why);
    if (out.open()) say_statistics(loaded, session, a.prompt, a.generation);
    return out.finish(a.generation.reason == StopReason::cancelled ? interrupts.code() : kDone);
}

// What is wrong whatever the model.
Status check_usage(const Options& options, RunOptions& run) {
    RL_TRY(check_device_options(run.model));
    RL_TRY(check_options(run.sampling.sampler));
    const auto useless = [&](std::string_view name, std::string_view with) {
        return error("{} means nothing {}: leave it out", name, with);
    };
    if (!run.system.empty() && !run.chat) return error("-sys/--system-prompt goes with --chat");
    for (const char* name : {"--chat-template", "--chat-template-kwargs"})
        if (options.given(name) && !run.chat) return error("{} goes with --chat", name);
    if (run.cache_read_only && run.cache_file.empty())
        return useless("--prompt-cache-ro", "without --prompt-cache");
    if (options.given("--keep") && run.generate.when_full != WhenFull::shift)
        return useless("--keep", "without --context-shift");
    if (run.chat && !run.add_bos) return useless("--no-bos", "with --chat, whose format sets it");
    if (run.chat && run.parse_special)
        return useless("--parse-special", "with --chat, where messages are plain text");
    return {};
}

int run(const std::vector<std::string>& arguments) {
    RunOptions run;
    Options options = declare(run);
    if (const std::optional<int> code = options.parse(arguments)) return *code;
    if (const Status usage = check_usage(options, run); !usage) return fail(usage.error(), kUsage);
    if (run.prompt.escapes)
        for (std::string& stop : run.generate.stops) stop = unescape(stop);
    if (const Status found = take_demo_model(run.model.model); !found) return fail(found.error(), kUsage);
    const Result<std::optional<std::string>> text = gather_prompt(run.prompt);
    if (!text) return fail(text.error());
    if (!text.value())
        return fail(error("no prompt: give one with -p TEXT, -f FILE or on standard input (-p \"\" starts "
                          "from nothing)"),
                    kUsage);
    const Result<int> code = run_prompt(run, options, *text.value());
    return code ? code.value() : fail(code.error());
}

}  // namespace

extern const Command run_command = {"run", "make text from a prompt", run};

}  // namespace redline::cli
