// redline run: one prompt in, one text out.
#include "base/file.h"
#include "cli/commands/run_notes.h"
#include "cli/commands/run_options.h"
#include "cli/demo_model.h"
#include "cli/job.h"
#include "cli/pull_model.h"
#include "cli/report.h"
#include "cli/surroundings.h"
#include "cli/terminal/answer_view.h"
#include "cli/text_size.h"
#include "host/expected_speed.h"
#include "host/fit_messages.h"
#include "host/messages.h"
#include "host/rescue.h"
#include "json/json.h"
#include "memory/budget.h"
#include "text/chat/answer_text.h"
#include "text/chat/tool_calls.h"
#include "text/tokens/unicode.h"

#include <filesystem>
#include <utility>

namespace redline::cli {

namespace {

// The user's input, before a model is known.
struct Input {
    std::string text;
    std::optional<FimTexts> fim;
    std::vector<StrayBytes> stray;
};

// The text that the model reads, and how its answer is to be read.
struct Prompt {
    WrittenChat written;
    std::optional<ReasoningMarks> reasoning;
    Json tools;  // null: no calls are looked for
    bool chat = false;
    int64_t reasoning_budget = -1;  // -1: no limit
};

Result<ChatRequest> chat_request(const RunOptions& run, const std::string& text) {
    ChatRequest request;
    if (!run.messages.empty()) {
        request = RL_TRY(
            read_messages(text, run.messages == "-" ? "standard input" : run.messages, terminal_notes()));
    } else {
        if (!run.system.empty())
            request.messages.push_back(
                {{"role", "system"}, {"content", run.prompt.escapes ? unescape(run.system) : run.system}});
        request.messages.push_back({{"role", "user"}, {"content", text}});
    }
    if (run.tools.empty()) return request;
    const bool from_input = run.tools == "-";
    const std::string list = RL_TRY(read_prompt_file(run.tools));
    request.tools = RL_TRY(read_tools(list, from_input ? "standard input" : run.tools));
    return request;
}

// Notes what is unusual of a prompt that no chat template is put around.
Result<WrittenChat> write_raw(const RunOptions& run, const Model& model, const Input& input,
                              uint64_t context) {
    const Tokenizer& tokenizer = model.tokenizer();
    WrittenChat written;
    if (input.fim) {
        FimPrompt fim =
            RL_TRY(write_fim(tokenizer, infill_tokens(model.gguf().metadata(), tokenizer), *input.fim,
                             run.add_bos, context, fim_room(context, run.generate.max_tokens)));
        if (!fim.cut.empty()) note(fim.cut);
        written.tokens = std::move(fim.tokens);
        written.parts = {{tokenizer.decode(written.tokens, true), true}};
        return written;
    }
    RL_TRY(check_text_size(model, "the prompt", input.text.size(), context));
    written.parts = {{input.text, run.parse_special}};
    written.tokens = tokenizer.encode(input.text, {run.add_bos, run.parse_special});
    for (const std::string& each : raw_prompt_notes(tokenizer, input.text, written.tokens, run.parse_special))
        note(each);
    return written;
}

bool is_chat(const RunOptions& run, const Model& model) {
    return run.form == PromptForm::chat ||
           (run.form == PromptForm::automatic && has_chat_template(model.gguf().metadata()));
}

// An empty text on the command line is wrong there; a file, or what another program writes, may be empty. As
// a raw prompt BOS alone makes text.
std::optional<int> refuse_empty(const RunOptions& run, const Model& model, const Input& input) {
    const bool needs_text = is_chat(run, model) || !model.tokenizer().adds_bos() || !run.add_bos;
    if (!input.text.empty() || input.fim || !run.messages.empty() || !needs_text) return {};
    return fail(error("the prompt is empty: give it some text"), run.prompt.file.empty() ? kUsage : kFailed);
}

Result<Prompt> write_prompt(const RunOptions& run, const Model& model, const Input& input, uint64_t context) {
    Prompt prompt;
    prompt.chat = is_chat(run, model);
    for (const StrayBytes& stray : input.stray) note(explain_stray(stray, model.tokenizer()));
    if (!prompt.chat) {
        prompt.written = RL_TRY(write_raw(run, model, input, context));
        return prompt;
    }
    ChatRequest request = RL_TRY(chat_request(run, input.text));
    uint64_t bytes = 0;
    for (const Json& message : request.messages)
        bytes += content_text(message.value("content", Json())).size();
    RL_TRY(check_text_size(model, run.messages.empty() ? "the prompt" : "the conversation", bytes, context));
    ChatWriter writer = RL_TRY(ChatWriter::create(model, run.writer));
    say_detail(writer.description() + (run.form == PromptForm::automatic
                                           ? ", since the model file has one; --raw goes without"
                                           : ""));
    prompt.written = RL_TRY(writer.write(std::move(request.messages), request.tools));
    prompt.reasoning = writer.reasoning();
    prompt.tools = std::move(request.tools);
    prompt.reasoning_budget = writer.reasoning_budget(run.reasoning.budget);
    return prompt;
}

bool is_set(const std::atomic<bool>* flag) {
    return flag && flag->load();
}

// Says what moving the cache to or from its file took.
void say_moved(const RunOptions& run, const Session& session, std::chrono::steady_clock::time_point start) {
    const double seconds = std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count();
    std::error_code unknown;
    const uint64_t bytes = std::filesystem::file_size(run.cache_file, unknown);
    if (unknown) return;
    say_detail(fmt::format("{} holds {} tokens: {} in {:.2f} s", run.cache_file, session.position(),
                           decimal_size(bytes), seconds));
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
    ParsedAnswer parsed;
    std::string reasoning;
};

bool ended_within_reasoning(const Answer& answer) {
    return answer.parsed.content.empty() && answer.parsed.calls.empty() && !answer.reasoning.empty();
}

// Where the pieces of the answer go while they come.
class Printer {
public:
    Printer(const RunOptions& run, Output& out) : run_(run), out_(out) {}

    // Until the first piece is shown, a line tells how far the prompt is read, and then what goes on; not in
    // the line of a terminal that the prompt was shown in.
    void wait() {
        if (!terminal_ || !shown_ || ends_line_) reading_.emplace();
    }
    void update(uint64_t done, uint64_t total) {
        if (reading_) reading_->update(done, total);
    }
    void end_waiting() { reading_.reset(); }

    bool put(std::string_view text) {
        if (!text.empty()) ends_line_ = text.ends_with('\n');
        shown_ = shown_ || !text.empty();
        if (!terminal_) return out_.write(text);
        return out_.write(
            wrap_.put(for_terminal(text), can_move_cursor() ? terminal_width(os::kStandardOutput) : 0));
    }
    bool show(const AnswerPiece& piece) {
        if (run_.json || (piece.reasoning && (run_.reasoning.hide || voice().quiet))) {
            if (reading_) reading_->unseen(piece.reasoning ? "thinking" : "answering");
            return true;
        }
        end_waiting();
        if (!piece.reasoning) {
            end_reasoning();
            return put(piece.text);
        }
        // Dim letters tell it from the answer.
        const bool begins = !std::exchange(reasoning_, true);
        cli::show((begins && voice().colour ? "\x1b[2m" : "") + for_terminal(piece.text));
        return true;
    }
    void end_reasoning() {
        if (std::exchange(reasoning_, false)) cli::show(voice().colour ? "\x1b[0m\n\n" : "\n\n");
    }
    // `more`: something is said after the text, which is not to go on in its line.
    void end_line(bool more) {
        end_waiting();
        end_reasoning();
        if (run_.json || ends_line_) return;
        if (terminal_)
            out_.write("\n");
        else if (more && outputs_meet())
            cli::show("\n");
    }

private:
    const RunOptions& run_;
    Output& out_;
    const bool terminal_ = is_terminal(os::kStandardOutput);
    bool reasoning_ = false;
    bool shown_ = false;  // anything
    bool ends_line_ = false;
    WordWrap wrap_;
    std::optional<ReadingLine> reading_;
};

GenerateOptions generate_options(const RunOptions& run, const Prompt& prompt, const Tokenizer& tokenizer,
                                 AnswerText& text) {
    GenerateOptions options = run.generate;
    const uint64_t bos = tokenizer.adds_bos() && run.add_bos ? 1 : 0;
    options.keep = run.keep < 0 ? prompt.written.tokens.size() : uint64_t(run.keep) + bos;
    if (prompt.reasoning) options.shown = prompt.reasoning->control_tokens(tokenizer);
    if (!prompt.tools.empty())
        for (const Token token : tool_call_tokens(tokenizer)) options.shown.push_back(token);
    if (prompt.reasoning_budget >= 0)
        options.forced = text.reasoning_limit(tokenizer, uint64_t(prompt.reasoning_budget));
    return options;
}

Result<Answer> answer(const RunOptions& run, Session& session, Sampler& sampler, const Prompt& prompt,
                      Printer& printer, const std::atomic<bool>* cancel) {
    RL_TRY(restore_cache(run, session, cancel));
    const uint64_t had = session.position();
    Answer out;
    printer.wait();
    out.prompt =
        RL_TRY(read_prompt(session, sampler, prompt.written.tokens, cancel,
                           [&printer](uint64_t done, uint64_t total) { printer.update(done, total); }));
    printer.end_waiting();
    const Status saved = save_cache(run, session, out.prompt, had, cancel);
    printer.wait();
    // The answer does not need it.
    if (!saved) fail(error("the prompt cache is not kept: {}", saved.error().message));
    AnswerText text(prompt.reasoning, last_scaffold(prompt.written.parts),
                    [&printer](const AnswerPiece& piece) { return printer.show(piece); });
    const GenerateOptions options = generate_options(run, prompt, session.model().tokenizer(), text);
    const TextSink sink = [&text](std::string_view piece) { return text.push(piece); };
    out.generation = RL_TRY(generate(session, sampler, options, sink, cancel));
    text.finish();
    printer.end_waiting();
    if (text.cut()) say_detail("the reasoning was ended at its budget");
    out.reasoning = text.reasoning();
    out.parsed.content = text.content();
    if (!prompt.tools.empty()) out.parsed = parse_tool_calls(text.content(), prompt.tools);
    return out;
}

Json logprob_json(const Tokenizer& tokenizer, const TokenLogprobs::One& one) {
    const std::string piece = tokenizer.piece(one.token, true);
    return {{"token", to_valid_utf8(piece)},
            {"id", one.token},
            {"bytes", std::vector<uint8_t>(piece.begin(), piece.end())},
            {"logprob", one.logprob}};
}

Json logprobs_json(const Tokenizer& tokenizer, const std::vector<TokenLogprobs>& all) {
    Json out = Json::array();
    for (const TokenLogprobs& each : all) {
        Json token = logprob_json(tokenizer, each.chosen);
        token["top"] = Json::array();
        for (const TokenLogprobs::One& one : each.top) token["top"].push_back(logprob_json(tokenizer, one));
        out.push_back(std::move(token));
    }
    return out;
}

Json describe(const RunOptions& run, const LoadedModel& loaded, const Session& session,
              const Sampler& sampler, const Answer& a) {
    const Generation& g = a.generation;
    Json out = {{"text", a.parsed.content},
                {"reasoning", a.reasoning.empty() ? Json(nullptr) : Json(a.reasoning)},
                {"tool_calls", tool_calls_json(a.parsed.calls)},
                {"stop_reason", stop_reason_name(g.reason)},
                {"stop", g.stop.empty() ? Json(nullptr) : Json(g.stop)},
                {"hastened", g.hastened},
                {"prompt_tokens", a.prompt.tokens},
                {"cached_tokens", a.prompt.reused},
                {"generated_tokens", g.tokens.size()},
                {"token_ids", g.tokens},
                {"context_shifts", g.shifts},
                {"seed", sampler.seed()},
                {"temperature", real_json(double(run.sampling.sampler.temperature))},
                {"context", session.context()},
                {"cache_type", cache_types_name(run.model.cache)},
                {"timings", timings_json(loaded, session, a.prompt, g)},
                {"speculation", methods_json(run.methods)},
                {"model", model_json(loaded)},
                {"device", device_json(loaded)},
                {"peak_memory", peak_resident()}};
    if (!g.fault.empty()) out["error"] = g.fault;
    if (run.generate.logprobs >= 0) out["logprobs"] = logprobs_json(loaded.model->tokenizer(), g.logprobs);
    return out;
}

// The text that the model would read; on a terminal with colours its control tokens stand out. Only scaffold
// has control tokens.
int show_prompt(const RunOptions& run, const Tokenizer& tokenizer, const Prompt& prompt) {
    Output out;
    std::string text;
    std::string marked;
    auto token = prompt.written.tokens.begin();
    for (const TextPart& part : prompt.written.parts) {
        text += part.text;
        std::string_view rest = part.text;
        for (; part.scaffold && token != prompt.written.tokens.end(); ++token) {
            if (tokenizer.type(*token) != TokenType::control) continue;
            const std::string_view name = tokenizer.raw_text(*token);
            const size_t at = rest.find(name);
            if (at == rest.npos) {
                if (token != prompt.written.tokens.begin()) break;  // of a later part
                continue;                                           // BOS that the tokenizer adds
            }
            marked += for_terminal(rest.substr(0, at)) + "\x1b[36m" + for_terminal(name) + "\x1b[0m";
            rest.remove_prefix(at + name.size());
        }
        marked += for_terminal(rest);
    }
    const bool terminal = is_terminal(os::kStandardOutput);
    if (run.json)
        out.write(to_text(Json{{"text", text}, {"tokens", prompt.written.tokens}}) + "\n");
    else if (terminal)
        out.write((voice().colour ? marked : for_terminal(text)) + (text.ends_with('\n') ? "" : "\n"));
    else
        out.write(text);
    say_detail(fmt::format("{} tokens", prompt.written.tokens.size()));
    return out.finish();
}

// Notes that are said below the answer.
std::vector<std::string> closing_notes(const RunOptions& run, const LoadedModel& loaded, uint64_t context,
                                       const Answer& a) {
    std::vector<std::string> notes = {explain_stop(a.generation, context)};
    if (a.generation.reason != StopReason::cancelled && ended_within_reasoning(a))
        notes.emplace_back(
            "all of the text is reasoning, and there is no answer: a larger -n or --reasoning-budget N "
            "makes room for one");
    if (is_cut(a.generation, run.sampling.constraint.get()))
        notes.emplace_back(kCutNote);
    else
        notes.push_back(explain_hastened(a.generation, run.generate, a.prompt.tokens, context));
    for (const std::string& problem : a.parsed.notes) notes.push_back(problem);
    notes.push_back(explain_slow(loaded, context, a.generation));
    std::erase(notes, "");
    return notes;
}

// One line of figures at a terminal; with -v all statistics, everywhere.
void say_figures(const RunOptions& run, const LoadedModel& loaded, const Session& session, const Answer& a) {
    if (voice().verbose) {
        say_statistics(loaded, session, a.prompt, a.generation);
        return say_methods(run.methods);
    }
    if (voice().quiet || run.json || !is_terminal(os::kStandardError)) return;
    const std::string line = figures_line(loaded, a.prompt, a.generation);
    show(voice().colour ? fmt::format("\x1b[2m{}\x1b[0m\n", line) : line + "\n");
}

// At a terminal, where neither a field nor a status tells that -n has cut the text.
void say_cut(const RunOptions& run, const Answer& a) {
    const bool told = voice().quiet || run.json || is_cut(a.generation, run.sampling.constraint.get());
    if (told || a.generation.reason != StopReason::max_tokens || a.generation.tokens.empty()) return;
    if (!is_terminal(os::kStandardOutput) || !is_terminal(os::kStandardError)) return;
    const std::string line = fmt::format("(cut after {} tokens: -n)", a.generation.tokens.size());
    show(voice().colour ? fmt::format("\x1b[2m{}\x1b[0m\n", line) : line + "\n");
}

int exit_code(const RunOptions& run, const Answer& a, const Interrupts& interrupts) {
    if (a.generation.reason == StopReason::broken) return fail(error("{}", a.generation.fault));
    if (a.generation.reason == StopReason::cancelled) return interrupts.code();
    return is_cut(a.generation, run.sampling.constraint.get()) ? kCut : kDone;
}

Result<int> answer_prompt(const RunOptions& run, const LoadedModel& loaded, Session& session,
                          Sampler& sampler, const Prompt& prompt, const Input& input) {
    Output out;
    const Interrupts interrupts;
    Printer printer(run, out);
    if (run.display_prompt && !run.json) printer.put(input.fim ? input.fim->prefix : input.text);
    Result<Answer> a = answer(run, session, sampler, prompt, printer, interrupts.flag());
    const std::vector<std::string> notes =
        a ? closing_notes(run, loaded, session.context(), a.value()) : std::vector<std::string>();
    const bool broken = !a || a->generation.reason == StopReason::broken;
    printer.end_line(broken || (!voice().quiet && (voice().verbose || !notes.empty())));
    if (!a) return a.error();
    if (run.json) out.write(to_text(describe(run, loaded, session, sampler, a.value())) + "\n");
    for (const std::string& each : notes) note(each);
    say_cut(run, a.value());
    if (const std::string awake = explain_kept_awake(loaded); !awake.empty()) say_detail(awake);
    if (const std::string shared = explain_shared_cpu(loaded); !shared.empty()) say_detail(shared);
    if (out.open()) say_figures(run, loaded, session, a.value());
    return out.finish(exit_code(run, a.value(), interrupts));
}

Result<int> run_prompt(RunOptions& run, const Options& options, const Input& input) {
    LoadedModel loaded = RL_TRY(inspect_model(run.model));
    const Model& model = *loaded.model;
    RL_TRY(take_file_defaults(options, model.gguf().metadata(), run.sampling.sampler));
    OpenSpeculation guesses = RL_TRY(inspect_speculation(run.speculation, run.model, loaded));
    const uint64_t context = RL_TRY(choose_context(loaded, run.model));
    for (const std::string& each : run.sampling.notes) note(each);
    if (run.sampling.grammar) run.sampling.constraint = RL_TRY(make_constraint(model, *run.sampling.grammar));
    Sampler sampler = RL_TRY(
        make_sampler(model, run.sampling.sampler, run.sampling.ignore_eos, context, run.sampling.constraint));
    if (const std::optional<int> code = refuse_empty(run, model, input)) return *code;
    const Prompt prompt = RL_TRY(write_prompt(run, model, input, context));
    if (run.sampling.constraint)
        run.sampling.constraint->expect_reasoning(
            prompt.reasoning, last_scaffold(prompt.written.parts),
            run.writer.thinking != false && prompt.reasoning_budget != 0);
    if (run.show_prompt) {
        note_demo_model(run.model);
        return show_prompt(run, model.tokenizer(), prompt);
    }
    RL_TRY(check_prompt(prompt.written.tokens, context));
    note_demo_model(run.model);
    const uint32_t outputs = run.speculation.outputs(model);
    RL_TRY(place_model(loaded, run.model, context, outputs));
    Session session = RL_TRY(open_session(loaded, run.model, context, outputs));
    rescue_from_loss(session, loaded, run.model);
    RL_TRY(open_speculation(guesses, run.speculation, run.model, session));
    run.generate.drafter = guesses.speculation.get();
    run.methods = guesses.speculation.get();
    say_detail(fmt::format("seed {}", sampler.seed()));
    return answer_prompt(run, loaded, session, sampler, prompt, input);
}

// Nothing where there is no prompt.
Result<std::optional<Input>> gather_input(const RunOptions& run) {
    Input input;
    if (run.fim.given()) {
        input.fim = RL_TRY(read_fim(run.fim, run.prompt.escapes, &input.stray));
    } else if (!run.messages.empty()) {
        input.text = RL_TRY(read_prompt_file(run.messages));
    } else {
        std::optional<std::string> text = RL_TRY(gather_prompt(run.prompt, &input.stray));
        if (!text) return std::optional<Input>();
        input.text = std::move(*text);
        find_stray_bytes(run.system, "-sys", input.stray);
    }
    return std::optional<Input>(std::move(input));
}

int run_once(const std::vector<std::string>& arguments) {
    RunOptions run;
    run.prompt.combines = true;
    Options options = declare(run);
    if (const std::optional<int> code = options.parse(arguments)) return *code;
    int failure = kFailed;
    if (const Status taken = take_words(run, failure); !taken) return fail(taken.error(), failure);
    if (const Status usage = check_usage(options, run); !usage) return fail(usage.error(), kUsage);
    if (run.sampling.unread) return fail(*run.sampling.unread);
    if (run.prompt.escapes)
        for (std::string& stop : run.generate.stops) stop = unescape(stop);
    // ollama chats, too, where only a model is named.
    const bool named_alone = run.model.remote
                                 ? arguments.size() == 2 && arguments[0].find('=') == std::string::npos
                                 : arguments.size() == 1 && !run.model.model.empty();
    if (named_alone && !run.prompt.has_text && is_terminal(os::kStandardInput))
        return chat_command.run(arguments.size() == 2 ? arguments
                                                      : std::vector<std::string>{"-m", run.model.model});
    if (const std::optional<int> code = take_remote_model(run.model)) return *code;
    voice().informs = false;
    if (const Status found = take_demo_model(run.model); !found) return fail(found.error());
    run.model.head = run.speculation.head();
    if (const std::optional<int> code = join_job(run.model)) return *code;  // rank 0 alone has a prompt
    const Result<std::optional<Input>> input = gather_input(run);
    if (!input) return fail(input.error());
    if (!input.value())
        return fail(
            error("no prompt: redline run \"TEXT\" answers one, so do -p TEXT, -f FILE and standard input; "
                  "redline chat has conversations"),
            kUsage);
    const Result<int> code = run_prompt(run, options, *input.value());
    return code ? code.value() : fail(code.error());
}

}  // namespace

extern const Command run_command = {"run", "answer a prompt, or go on from a text", run_once};

}  // namespace redline::cli
