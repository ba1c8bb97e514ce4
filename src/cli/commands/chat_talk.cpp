#include "cli/commands/chat_talk.h"

#include "base/nearest_name.h"
#include "cli/demo_model.h"
#include "cli/report.h"
#include "host/expected_speed.h"
#include "host/rescue.h"
#include "text/tokens/unicode.h"

#include <algorithm>
#include <filesystem>

namespace redline::cli {

Result<std::unique_ptr<ChatModel>> ChatModel::inspect(const ModelOptions& options,
                                                      const ChatWriterOptions& writer,
                                                      const SpeculationOptions& speculation) {
    auto made = std::make_unique<ChatModel>();
    made->options = options;
    made->options.head = speculation.head();
    made->speculation = speculation;
    made->loaded = RL_TRY(inspect_model(made->options));
    made->guesses = RL_TRY(inspect_speculation(made->speculation, made->options, made->loaded));
    made->writer = RL_TRY(ChatWriter::create(*made->loaded.model, writer));
    // The context that fits shows when the device is opened, after the model before this one is gone.
    made->context = options.context == 0 ? made->loaded.model->config().train_context
                                         : RL_TRY(choose_context(made->loaded, made->options));
    return made;
}

Result<Session> ChatModel::open() {
    if (options.context == 0) context = RL_TRY(choose_context(loaded, options));
    note_demo_model(options);
    const uint32_t outputs = speculation.outputs(*loaded.model);
    RL_TRY(place_model(loaded, options, context, outputs));
    Session session = RL_TRY(open_session(loaded, options, context, outputs));
    rescue_from_loss(session, loaded, options);
    RL_TRY(open_speculation(guesses, speculation, options, session));
    return session;
}

void ChatModel::unload() {
    guesses.speculation.reset();
    for (const auto* second : {&guesses.draft, &guesses.head})
        if (*second) (*second)->model->unload();
    if (guesses.draft) guesses.draft->device.backend.reset();
    loaded.model->unload();
    for (OpenDevice* device : loaded.devices()) device->backend.reset();
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
           Conversation conversation, SessionPlace place, LineReader reader)
    : options_(std::move(options)),
      defaults_(std::move(defaults)),
      model_(std::move(chat_model)),
      conversation_(std::move(conversation)),
      reader_(std::move(reader)),
      place_(std::move(place)),
      in_file_(conversation_.changes()),
      in_journal_(in_file_) {
    reader_.set_completer([this](const std::string& before) { return complete(before); });
}

int Talk::run() {
    if (reader_.interactive())
        say(fmt::format("{}: /help lists the commands, Ctrl-D leaves", model_->name()));
    while (out_.open()) {
        write_journal();
        Result<Typed> typed = reader_.read(std::exchange(draft_, {}));
        if (!typed) {
            leave();
            return fail(typed.error());
        }
        if (typed->kind == Typed::Kind::end) {
            if (reader_.interactive()) show("\n");
            conversation_.set_draft({});
            break;
        }
        if (typed->kind == Typed::Kind::interrupted) {
            if (interrupted_at_prompt(typed.value())) continue;
            return leave();
        }
        hinted_ = false;
        if (!take(typed.value())) return leave();
    }
    return leave();
}

// False: leave. The first Ctrl-C only takes back what is typed.
bool Talk::interrupted_at_prompt(const Typed& typed) {
    const bool ending = interrupts_.ending();
    const int code = interrupts_.code();
    interrupts_.clear();
    edited_.reset();
    // A program that is ended has not been told that the line is unwanted.
    conversation_.set_draft(ending ? typed.text : "");
    if (ending && !place_.kept) reader_.keep_unsent(typed.text);
    if (!reader_.edits()) show("\n");
    if (!ending && !typed.text.empty()) return true;
    if (!ending && !std::exchange(hinted_, true)) {
        show("(Ctrl-C again or Ctrl-D leaves)\n");
        return true;
    }
    exit_code_ = code;
    return false;
}

void Talk::refuse(const Error& problem) {
    fail(problem);
    if (!reader_.interactive()) exit_code_ = kFailed;
}

bool Talk::take(const Typed& typed) {
    std::string text = typed.text;
    if (text.find_first_not_of(" \t\n") == std::string::npos) {
        edited_.reset();
        return true;
    }
    if (!is_valid_utf8(text)) {
        text = to_valid_utf8(text);
        note("the message is no UTF-8: U+FFFD stands where it is not");
    }
    if (text[0] == '/') {
        const std::string word = text.substr(0, text.find_first_of(" \t\n"));
        if (const TalkCommand* command = find_command(word)) return take_command(*command, typed);
        if (misspelled(typed, word)) return true;
    }
    return ask(with_attachments(attached_, text), typed.shown);
}

// False: leave.
bool Talk::take_command(const TalkCommand& command, const Typed& typed) {
    edited_.reset();
    const size_t word = std::min(typed.text.find_first_of(" \t\n"), typed.text.size());
    if (!(this->*command.run)(typed.text.substr(std::min(word + 1, typed.text.size())))) return false;
    const bool ending = interrupts_.ending();
    if (ending) exit_code_ = interrupts_.code();
    interrupts_.clear();
    return !ending;
}

bool Talk::misspelled(const Typed& typed, const std::string& word) {
    // A path, a comment and the like are text.
    const bool plain = word.size() < 2 || word.find_first_of("/.*", 1) != std::string::npos;
    const std::string nearest = plain ? "" : nearest_name(word, command_names(true));
    std::error_code unknown;
    if (plain || (nearest.empty() && std::filesystem::exists(word, unknown))) return false;
    refuse(error("{} is not a command; {} A blank before it sends it as text", printable(word),
                 nearest.empty() ? "/help lists them." : fmt::format("did you mean {}?", nearest)));
    if (reader_.edits()) draft_ = {typed.shown, true};
    return true;
}

// False: leave. The message is a draft until it has an answer, and comes back where it gets none.
bool Talk::ask(const std::string& text, const std::string& shown) {
    const std::optional<size_t> edited = std::exchange(edited_, {});
    const bool replaces = edited && *edited < conversation_.turns();
    conversation_.set_draft(text);
    write_journal();
    const uint64_t before = conversation_.changes();
    const bool stays =
        finish_turn(listen([&](const Listener& listener) {
                        return conversation_.ask(text, listener, replaces ? edited : std::nullopt);
                    }),
                    shown);
    if (conversation_.changes() == before) {
        edited_ = edited;
        return stays;
    }
    conversation_.set_draft({});
    attached_.clear();
    return stays;
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
bool Talk::finish_turn(Result<Turn> turn, const std::string& shown) {
    const bool cancelled = interrupts_.raised();
    const bool ending = interrupts_.ending();
    if (cancelled && (ending || !reader_.interactive())) exit_code_ = interrupts_.code();
    interrupts_.clear();
    const bool stays = !ending && (!cancelled || reader_.interactive());
    if (!turn) {
        view_.end_line();
        refuse(turn.error());
        if (reader_.edits()) draft_ = {shown, true};
        return stays;
    }
    view_.end();
    last_ = std::move(turn).value();
    explain_turn(*last_, cancelled);
    if (cancelled && last_->generation.text.empty() && reader_.edits()) draft_ = {shown};
    if (voice().verbose)
        show_statistics();
    else
        say_status();
    return stays;
}

void Talk::explain_turn(const Turn& turn, bool cancelled) {
    const Generation& made = turn.generation;
    const uint64_t context = conversation_.session().context();
    if (turn.reasoning_cut) say_detail("the reasoning was ended at its budget");
    if (turn.unread > 0 && !std::exchange(said_dropping_, true))
        note(
            "the context is full: from now on the model reads the latest turns only; files keep all of "
            "them");
    if (made.reason == StopReason::broken)
        refuse(error("{}", made.fault));
    else if (cancelled)
        note(made.text.empty() ? "interrupted" : "interrupted; /continue goes on");
    else if (made.reason == StopReason::context_full)
        note(explain_stop(made, context));
    if (const std::string awake = explain_kept_awake(model_->loaded); !awake.empty() && !said_awake_) {
        note(awake);
        said_awake_ = true;
    }
    if (const std::string shared = explain_shared_cpu(model_->loaded); !shared.empty() && !said_shared_) {
        say_detail(shared);
        said_shared_ = true;
    }
    if (said_slow_) return;
    const std::string slow = explain_slow(model_->loaded, context, made);
    if (!slow.empty()) note(slow);
    said_slow_ = !slow.empty();
}

void Talk::say_status() {
    if (!options_.status || !reader_.interactive() || last_->generation.steps == 0) return;
    const Generation& made = last_->generation;
    const double speed = made.decode_seconds > 0.0 ? double(made.steps) / made.decode_seconds : 0.0;
    const Session& session = conversation_.session();
    const bool cut = made.reason == StopReason::max_tokens;
    const std::string line = fmt::format(
        "[{}: {:.1f} tok/s, {} tokens{}, context {}/{}]", model_->name(), speed, made.tokens.size(),
        cut ? " (cut: -n; /continue goes on)" : "", session.position(), session.context());
    say(voice().colour ? fmt::format("\x1b[2m{}\x1b[0m", line) : line);
}

void Talk::show_statistics() {
    const Session& session = conversation_.session();
    if (last_) say_statistics(model_->loaded, session, last_->prompt, last_->generation);
    say_methods(model_->guesses.speculation.get());
    const size_t turns = conversation_.turns();
    const size_t unread = conversation_.unread();
    say(fmt::format("context: {} of {} tokens, {} turn{}{}", session.position(), session.context(), turns,
                    turns == 1 ? "" : "s",
                    unread == 0 ? "" : fmt::format("; the oldest {} messages are not read", unread)));
}

}  // namespace redline::cli
