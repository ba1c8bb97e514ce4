#include "cli/commands/chat_talk.h"

#include "base/file.h"
#include "base/nearest_name.h"
#include "cli/expected_speed.h"
#include "cli/report.h"
#include "cli/rescue.h"
#include "text/unicode.h"

#include <algorithm>
#include <filesystem>

namespace redline::cli {

Result<std::unique_ptr<ChatModel>> ChatModel::inspect(const ModelOptions& options,
                                                      const ChatWriterOptions& writer) {
    auto made = std::make_unique<ChatModel>();
    made->options = options;
    made->loaded = RL_TRY(inspect_model(options));
    made->writer = RL_TRY(ChatWriter::create(*made->loaded.model, writer));
    // What fits shows when the device is opened, after the model before this one is gone.
    made->context = options.context == 0 ? made->loaded.model->config().train_context
                                         : RL_TRY(choose_context(made->loaded, options));
    return made;
}

Result<Session> ChatModel::open() {
    if (options.context == 0) context = RL_TRY(choose_context(loaded, options));
    RL_TRY(place_model(loaded, options, context));
    Session session = RL_TRY(open_session(loaded, options, context));
    rescue_from_loss(session, loaded, options);
    return session;
}

void ChatModel::unload() {
    loaded.model->unload();
    loaded.backend.reset();
}

std::string ChatModel::name() const {
    constexpr size_t kMost = 32;
    const Result<std::string> given = loaded.model->gguf().metadata().text("general.name", "");
    std::string name = given ? given.value() : "";
    if (name.empty()) name = std::filesystem::path(options.model).stem().string();
    name = printable(name);
    if (name.size() <= kMost) return name;
    name.resize(kMost);
    while (!is_valid_utf8(name)) name.pop_back();
    return name;
}

Talk::Talk(ChatOptions options, FileDefaults defaults, std::unique_ptr<ChatModel> chat_model,
           Conversation conversation)
    : options_(std::move(options)),
      defaults_(std::move(defaults)),
      model_(std::move(chat_model)),
      conversation_(std::move(conversation)) {
    reader_.set_completer([this](const std::string& before) { return complete(before); });
}

Status Talk::resume() {
    std::error_code unknown;
    if (options_.session.empty()) return {};
    const bool saved = std::filesystem::exists(options_.session, unknown);
    const bool unsaved = std::filesystem::exists(journal(), unknown);
    if (!saved && !unsaved) return {};
    if (saved) RL_TRY(load_session(options_.session));
    if (unsaved) RL_TRY(take_journal());
    // What the user asks for now goes before what was so then.
    const uint32_t seed = options_.conversation.sampling.sampler.seed;
    if (seed != SamplerOptions().seed) conversation_.options().sampling.sampler.seed = seed;
    if (!options_.system.empty()) conversation_.set_system(options_.system);
    return {};
}

int Talk::run() {
    if (reader_.interactive())
        say(fmt::format("{}: /help lists the commands, Ctrl-D leaves", model_->name()));
    while (out_.open()) {
        Result<Typed> typed = reader_.read(std::exchange(draft_, {}));
        if (!typed) {
            leave();
            return fail(typed.error());
        }
        if (typed->kind == Typed::Kind::end) break;
        if (typed->kind == Typed::Kind::interrupted) {
            if (interrupted_at_prompt(typed.value())) continue;
            return leave();
        }
        hinted_ = false;
        if (!take(typed->text)) return leave();
    }
    if (reader_.interactive()) show("\n");
    return leave();
}

// False: leave. The first Ctrl-C only takes back what is typed.
bool Talk::interrupted_at_prompt(const Typed& typed) {
    const bool ending = interrupts_.ending();
    const int code = interrupts_.code();
    interrupts_.clear();
    edited_.reset();
    if (!reader_.edits()) show("\n");
    if (!ending && !typed.text.empty()) return true;
    if (!ending && !std::exchange(hinted_, true)) {
        show("(Ctrl-C again or Ctrl-D leaves)\n");
        return true;
    }
    exit_code_ = code;
    return false;
}

int Talk::leave() {
    if (has_model_ && !options_.session.empty()) {
        const Status saved = conversation_.turns() > 0 ? save_session(options_.session) : Status();
        std::error_code ignored;
        if (saved) std::filesystem::remove(journal(), ignored);
        if (!saved) refuse(saved.error());
        if (!saved) exit_code_ = kFailed;
    }
    return out_.finish(exit_code_);
}

void Talk::write_journal() {
    if (options_.session.empty()) return;
    const auto write = [this]() -> Status {
        const std::string text = conversation_.text();
        AtomicWriter file = RL_TRY(AtomicWriter::create(journal(), 0600));  // it holds what was said
        RL_TRY(file.write(std::as_bytes(std::span(text))));
        return file.commit();
    };
    const Status written = write();
    if (written || std::exchange(said_no_journal_, true)) return;
    note(fmt::format("what is said is kept at the end only: {}", written.error().message));
}

Status Talk::take_journal() {
    const std::string text = RL_TRY(read_text_file(journal()));
    RL_TRY(conversation_.take_text(text, journal()));
    say(fmt::format("the last chat ended before it was saved: {} messages are taken from {}",
                    conversation_.messages().size(), journal()));
    return {};
}

void Talk::refuse(const Error& problem) {
    fail(problem);
    if (!reader_.interactive()) exit_code_ = kFailed;
}

bool Talk::take(const std::string& text) {
    const std::optional<size_t> edited = std::exchange(edited_, {});
    if (text.find_first_not_of(" \t\n") == std::string::npos) return true;
    if (text[0] == '/') {
        const std::string word = text.substr(0, text.find_first_of(" \t\n"));
        const std::string rest = text.substr(std::min(word.size() + 1, text.size()));
        if (const TalkCommand* command = find_command(word)) return (this->*command->run)(rest);
        // A path or another text, unless it is nearly a command.
        const bool plain = word.find_first_of("/.*", 1) != std::string::npos;
        const std::string nearest = plain ? "" : nearest_name(word, command_names(true));
        if (!nearest.empty()) return misspelled(text, word, nearest);
    }
    if (edited && *edited < conversation_.turns()) conversation_.cut(*edited);
    return finish_turn(listen([&](const Listener& listener) { return conversation_.ask(text, listener); }),
                       text);
}

bool Talk::misspelled(const std::string& text, const std::string& word, const std::string& nearest) {
    refuse(error("{} is not a command; did you mean {}? A blank before it sends it as text", word, nearest));
    if (reader_.edits()) draft_ = text;
    return true;
}

Result<Turn> Talk::listen(const std::function<Result<Turn>(const Listener&)>& answer) {
    std::optional<ReadingLine> reading(std::in_place);
    Listener listener;
    listener.cancel = interrupts_.flag();
    listener.progress = [&](uint64_t done, uint64_t total) { reading->update(done, total); };
    listener.text = [&](std::string_view text) {
        reading.reset();
        return view_.put(text);
    };
    listener.reasoning = [&](std::string_view text) {
        if (conversation_.options().reasoning.hide) {
            if (reading) reading->unseen("thinking");
            return out_.open();
        }
        reading.reset();
        return view_.put_reasoning(text);
    };
    return answer(listener);
}

// False: leave, as after Ctrl-C when nobody is at the keyboard.
bool Talk::finish_turn(Result<Turn> turn, const std::string& question) {
    const bool cancelled = interrupts_.raised();
    const bool ending = interrupts_.ending();
    const int code = interrupts_.code();
    interrupts_.clear();
    if (!turn) {
        view_.end_line();
        refuse(turn.error());
        if (reader_.edits()) draft_ = question;
        return true;
    }
    view_.end();
    if (turn->reasoning_cut) say_detail("the reasoning was ended at its budget");
    write_journal();
    if (turn->unread > 0 && !std::exchange(said_dropping_, true))
        note(
            "the context is full: from now on the model reads the latest turns only; files keep all of "
            "them");
    if (turn->generation.reason == StopReason::broken)
        refuse(error("{}", turn->generation.fault));
    else if (cancelled)
        note(turn->generation.text.empty() ? "interrupted" : "interrupted; /continue goes on");
    else if (turn->generation.reason == StopReason::context_full)
        note(explain_stop(turn->generation, conversation_.session().context()));
    if (cancelled && turn->generation.text.empty() && reader_.edits()) draft_ = question;
    last_ = std::move(turn).value();
    if (const std::string awake = explain_kept_awake(model_->loaded); !awake.empty() && !said_awake_) {
        note(awake);
        said_awake_ = true;
    }
    if (!said_slow_) {
        const std::string slow =
            explain_slow(model_->loaded, conversation_.session().context(), last_->generation);
        if (!slow.empty()) note(slow);
        said_slow_ = !slow.empty();
    }
    if (voice().verbose)
        show_statistics();
    else
        say_status();
    if (!cancelled || (reader_.interactive() && !ending)) return true;
    exit_code_ = code;
    return false;
}

void Talk::say_status() {
    if (!options_.status || !reader_.interactive() || last_->generation.steps == 0) return;
    const Generation& made = last_->generation;
    const double speed = made.decode_seconds > 0.0 ? double(made.steps) / made.decode_seconds : 0.0;
    const Session& session = conversation_.session();
    const std::string line = fmt::format("[{}: {:.1f} tok/s, {} tokens, context {}/{}]", model_->name(),
                                         speed, made.tokens.size(), session.position(), session.context());
    say(voice().colour ? fmt::format("\x1b[2m{}\x1b[0m", line) : line);
}

void Talk::show_statistics() {
    const Session& session = conversation_.session();
    if (last_) say_statistics(model_->loaded, session, last_->prompt, last_->generation);
    const size_t turns = conversation_.turns();
    const size_t unread = conversation_.unread();
    say(fmt::format("context: {} of {} tokens, {} turn{}{}", session.position(), session.context(), turns,
                    turns == 1 ? "" : "s",
                    unread == 0 ? "" : fmt::format("; the oldest {} messages are not read", unread)));
}

}  // namespace redline::cli
