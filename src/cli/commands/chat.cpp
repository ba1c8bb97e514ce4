// redline chat: a conversation at the terminal, or one turn per line of a pipe.
#include "cli/conversation.h"
#include "cli/demo_model.h"
#include "cli/options/model_options.h"
#include "cli/report.h"
#include "cli/rescue.h"
#include "cli/terminal/line_reader.h"
#include "cli/terminal/terminal.h"
#include "memory/budget.h"
#include "sample/chain.h"

#include <unistd.h>

namespace redline::cli {

namespace {

struct ChatOptions {
    ModelOptions model;
    ConversationOptions conversation;
    ChatWriterOptions writer;
    std::string system;
    bool escapes = true;
    bool list_formats = false;
};

Options declare(ChatOptions& chat) {
    Options options("chat", "talk with an instruct model", {"chat [-m MODEL] [options]"});
    GenerateOptions& generate = chat.conversation.generate;
    options.group("conversation");
    options.text("-sys --system-prompt", "TEXT", "what the model is told before the first turn", chat.system);
    add_template_options(options, chat.writer);
    options.flag("--list-chat-formats", "print their names and exit", chat.list_formats);
    options.number("-n --predict --n-predict", "tokens of an answer at most; -1: until the model ends it",
                   generate.max_tokens, -1, std::numeric_limits<int64_t>::max());
    options.each("-r --reverse-prompt --stop", "TEXT", "end an answer before this text; may be given again",
                 [&generate](const std::string& text) -> Status {
                     if (text.empty()) return error("takes a text that is not empty");
                     generate.stops.push_back(text);
                     return {};
                 });
    options.choice(
        "--context-policy", {"drop", "stop"},
        "when the context is full: drop the oldest turns, keeping the system text and a quarter of the "
        "context for the answer, or stop and say so (default: drop)",
        [&chat](size_t index) { chat.conversation.policy = ContextPolicy(index); });
    options.flag("--special", "write control tokens out", generate.show_special);
    options.flag("-e --escape", "take \\n, \\t, \\\", \\\\ and the like in -sys and --stop (default)",
                 chat.escapes);
    options.flag("--no-escape", "take them as they are", chat.escapes, false);
    add_model_options(options, chat.model);
    add_sampling_options(options, chat.conversation.sampling);
    add_voice_options(options);
    options.example("redline chat -m model.gguf");
    options.example("redline chat -m model.gguf -sys \"Answer in one sentence.\" --temp 0 < questions.txt");
    options.remark(
        "At the prompt: /help lists the commands; a line that ends with a backslash goes on, and so does all "
        "between two lines of three double quotes. Ctrl-C ends an answer, Ctrl-D the program. From a pipe "
        "each line is a turn, and only the answers go to standard output.");
    return options;
}

constexpr std::string_view kHelp =
    "  /clear          forget the conversation\n"
    "  /system TEXT    set what the model is told before the first turn\n"
    "  /regen          another answer to the last message\n"
    "  /stats          speed of the last answer, and how full the context is\n"
    "  /exit           leave; so does Ctrl-D\n"
    "  \\ at the end of a line, or lines between two of \"\"\", make a longer message\n"
    "  a message that begins with a blank is never taken as a command";

class Chat {
public:
    Chat(const LoadedModel& loaded, Conversation conversation)
        : loaded_(loaded), conversation_(std::move(conversation)) {}

    int run() {
        if (reader_.interactive()) say("/help lists the commands, Ctrl-D leaves");
        while (out_.open()) {
            const Result<Typed> typed = reader_.read();
            if (!typed) return fail(typed.error());
            if (typed.value().kind == Typed::Kind::end) break;
            if (typed.value().kind == Typed::Kind::interrupted) {
                const bool ending = interrupts_.ending();
                interrupts_.clear();
                if (ending) return out_.finish(interrupts_.code());
                show(hinted_ ? "\n" : "\n(Ctrl-C again or Ctrl-D leaves)\n");
                if (std::exchange(hinted_, true)) return out_.finish(interrupts_.code());
                continue;
            }
            hinted_ = false;
            if (!take(typed.value().text)) return out_.finish(exit_code_);
        }
        if (reader_.interactive()) show("\n");
        return out_.finish(exit_code_);
    }

private:
    // False: leave.
    bool take(const std::string& line) {
        if (line.find_first_not_of(" \t") == std::string::npos) return true;
        if (line[0] == '/') return command(line);
        return finish_turn(conversation_.ask(line, sink(), interrupts_.flag()));
    }

    bool command(const std::string& line) {
        const size_t blank = std::min(line.find(' '), line.size());
        const std::string name = line.substr(0, blank);
        const std::string rest = line.substr(std::min(blank + 1, line.size()));
        if (name == "/exit" || name == "/quit" || name == "/bye") return false;
        if (name == "/help" || name == "/?") {
            show(std::string(kHelp) + "\n");
        } else if (name == "/clear") {
            conversation_.clear();
            say("the conversation is forgotten");
        } else if (name == "/system") {
            conversation_.set_system(rest);
            say(rest.empty() ? "no system text" : "the system text is set");
        } else if (name == "/regen") {
            return finish_turn(conversation_.again(sink(), interrupts_.flag()));
        } else if (name == "/stats") {
            show_statistics();
        } else {
            note(fmt::format("{} is not a command; /help lists them, a blank before it sends it as text",
                             name));
        }
        return true;
    }

    TextSink sink() {
        ended_line_ = true;
        return [this](std::string_view text) {
            ended_line_ = text.ends_with('\n');
            return out_.write(terminal_out_ ? for_terminal(text) : std::string(text));
        };
    }

    // False: leave, as after Ctrl-C when nobody is at the keyboard.
    bool finish_turn(Result<Turn> turn) {
        const bool cancelled = interrupts_.raised();
        const bool ending = interrupts_.ending();
        interrupts_.clear();
        if (!turn) {
            if (!ended_line_) out_.write("\n");
            fail(turn.error());
            if (!reader_.interactive()) exit_code_ = kFailed;
            return true;
        }
        // An answer is a line of the output at least, so that a pipe can tell them apart.
        if (!ended_line_ || turn->generation.text.empty()) out_.write("\n");
        if (turn->dropped > 0 && !std::exchange(said_dropping_, true))
            note("the context is full: the oldest turns are forgotten from now on");
        if (cancelled)
            note("interrupted");
        else if (turn->generation.reason == StopReason::context_full)
            note(explain_stop(turn->generation, conversation_.session().context()));
        last_ = std::move(turn).value();
        if (voice().verbose) show_statistics();
        if (!cancelled || (reader_.interactive() && !ending)) return true;
        exit_code_ = interrupts_.code();
        return false;
    }

    void show_statistics() {
        if (last_) say_statistics(loaded_, conversation_.session(), last_->prompt, last_->generation);
        say(fmt::format("context: {} of {} tokens, {} turn{}", conversation_.session().position(),
                        conversation_.session().context(), conversation_.turns(),
                        conversation_.turns() == 1 ? "" : "s"));
    }

    const LoadedModel& loaded_;
    Conversation conversation_;
    Interrupts interrupts_;
    LineReader reader_;
    Output out_;
    const bool terminal_out_ = is_terminal(STDOUT_FILENO);
    bool ended_line_ = true;
    bool said_dropping_ = false;
    bool hinted_ = false;  // that Ctrl-C again leaves
    int exit_code_ = kDone;
    std::optional<Turn> last_;
};

Result<int> chat_with(ChatOptions& chat, const Options& options) {
    LoadedModel loaded = RL_TRY(inspect_model(chat.model));
    const Model& model = *loaded.model;
    ChatWriter writer = RL_TRY(ChatWriter::create(model, chat.writer));
    SamplerOptions& sampler = chat.conversation.sampling.sampler;
    RL_TRY(take_file_defaults(options, model.gguf().metadata(), sampler));
    const uint64_t context = choose_context(chat.model, model.config());
    // Checks the options, and settles a random seed.
    sampler.seed =
        RL_TRY(make_sampler(model, sampler, chat.conversation.sampling.ignore_eos, context)).seed();
    RL_TRY(place_model(loaded, chat.model, context));
    Session session = RL_TRY(open_session(loaded, chat.model, context));
    rescue_from_loss(session, loaded, chat.model);
    say_detail(fmt::format("{}, seed {}", writer.description(), sampler.seed));
    Conversation conversation(std::move(session), std::move(writer), chat.conversation);
    conversation.set_system(chat.escapes ? unescape(chat.system) : chat.system);
    return Chat(loaded, std::move(conversation)).run();
}

int list_formats() {
    Output out;
    for (const std::string& name : ChatFormat::names()) out.write(name + "\n");
    return out.finish();
}

int run(const std::vector<std::string>& arguments) {
    ChatOptions chat;
    Options options = declare(chat);
    if (const std::optional<int> code = options.parse(arguments)) return *code;
    if (chat.list_formats) return list_formats();
    Status usage = check_device_options(chat.model);
    if (usage) usage = check_options(chat.conversation.sampling.sampler);
    if (!usage) return fail(usage.error(), kUsage);
    if (chat.escapes)
        for (std::string& stop : chat.conversation.generate.stops) stop = unescape(stop);
    if (const Status found = take_demo_model(chat.model.model); !found) return fail(found.error(), kUsage);
    const Result<int> code = chat_with(chat, options);
    return code ? code.value() : fail(code.error());
}

}  // namespace

extern const Command chat_command = {"chat", "talk with an instruct model", run};

}  // namespace redline::cli
