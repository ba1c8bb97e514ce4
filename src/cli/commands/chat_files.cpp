// The files of a conversation: those that keep it, its export, and those that are sent with a message.
#include "base/file.h"
#include "cli/commands/chat_talk.h"
#include "cli/text_size.h"
#include "cli/user_path.h"

#include <filesystem>

namespace redline::cli {

static constexpr size_t kShown = 200;  // columns of a message that is only mentioned

bool Talk::keeps_what_it_reads() const {
    return place_.kept && place_.kept->name() == place_.from;
}

Status Talk::resume() {
    std::error_code unknown;
    const std::string& from = place_.from;
    if (from.empty()) return {};
    const bool saved = std::filesystem::exists(from, unknown);
    const bool unsaved = std::filesystem::exists(journal_of(from), unknown);
    if (!saved && !unsaved) return {};
    // Another chat may keep both files, and write the other one after the one that is read first: the journal
    // is never older than it was then.
    const Result<std::string> said = unsaved ? read_text_file(journal_of(from)) : std::string();
    if (saved) {
        const Status loaded = load_session(from);
        if (!loaded)
            return error(
                "{}; --session with another name begins a new session, and without --session the "
                "chat is not kept",
                loaded.error().message);
    }
    Status taken;
    if (unsaved) taken = said ? take_journal(said.value(), journal_of(from)) : said.error();
    if (!taken) RL_TRY(pass_over_journal(taken.error(), saved));
    if (keeps_what_it_reads() && (!unsaved || !taken)) in_file_ = conversation_.changes();
    // The user's present wishes go before those of that time.
    const uint32_t seed = options_.conversation.sampling.sampler.seed;
    if (seed != SamplerOptions().seed) conversation_.options().sampling.sampler.seed = seed;
    if (!options_.system.empty()) conversation_.set_system(options_.system);
    if (conversation_.draft().empty()) return {};
    if (reader_.edits())
        draft_ = {conversation_.draft()};
    else
        note(fmt::format("the last message has no answer yet: {}", clipped(conversation_.draft(), kShown)));
    return {};
}

// "2 messages are", "a message without an answer is", or both.
static std::string taken_text(size_t messages, bool has_draft) {
    constexpr const char* kDraft = "a message without an answer";
    if (messages == 0) return has_draft ? fmt::format("{} is", kDraft) : "no message is";
    const std::string count = fmt::format("{} message{}", messages, messages == 1 ? "" : "s");
    if (has_draft) return fmt::format("{} and {} are", count, kDraft);
    return count + (messages == 1 ? " is" : " are");
}

Status Talk::take_journal(const std::string& text, const std::string& path) {
    RL_TRY(conversation_.take_text(text, path));
    say(fmt::format(
        "{}: {} taken from {}",
        keeps_what_it_reads() ? "the last chat ended before it was saved" : "the chat there is going on",
        taken_text(conversation_.messages().size(), !conversation_.draft().empty()), path));
    return {};
}

// The journal of another chat is left where it is.
Status Talk::pass_over_journal(const Error& problem, bool saved) {
    const std::string journal = journal_of(place_.from);
    if (!saved) return error("{}; remove or rename {} to begin anew", problem.message, journal);
    if (!keeps_what_it_reads()) {
        note(fmt::format("{}; the chat begins with what {} holds", problem.message, place_.from));
        return {};
    }
    std::error_code unknown, refused;
    std::string aside = journal + ".bad";
    for (int number = 2; std::filesystem::exists(aside, unknown); ++number)
        aside = fmt::format("{}.bad{}", journal, number);
    std::filesystem::rename(journal, aside, refused);
    if (refused)
        return error("{}; it cannot be renamed to {} ({}): remove it", problem.message, aside,
                     refused.message());
    note(fmt::format("{}; it is now {}, and the chat begins with what {} holds", problem.message, aside,
                     place_.from));
    return {};
}

int Talk::leave() {
    if (!attached_.empty()) note(fmt::format("{} was not sent", attached_.front().name));
    if (!has_model_ || !place_.kept || conversation_.changes() == in_file_) return out_.finish(exit_code_);
    write_journal();  // the other file may take long to write
    const Status saved = save_to(place_.kept->name());
    if (!saved) {
        const bool journaled = in_journal_ == conversation_.changes();
        refuse(journaled ? error("{}; the messages are kept in {}", saved.error().message,
                                 journal_of(place_.kept->name()))
                         : saved.error());
        exit_code_ = interrupts_.raised() ? interrupts_.code() : kFailed;
    }
    return out_.finish(exit_code_);
}

void Talk::write_journal() {
    const uint64_t now = conversation_.changes();
    if (!has_model_ || !place_.kept || now == in_file_ || now == in_journal_) return;
    const auto write = [&]() -> Status {
        const std::string text = conversation_.text();
        AtomicWriter file =
            RL_TRY(AtomicWriter::create(journal_of(place_.kept->path()), 0600));  // it holds what was said
        RL_TRY(file.write(std::as_bytes(std::span(text))));
        return file.commit();
    };
    const Status written = write();
    if (written) in_journal_ = now;
    if (written || std::exchange(said_no_journal_, true)) return;
    note(fmt::format("what is said is kept at the end only: {}", written.error().message));
}

Status Talk::save_conversation(const std::string& path, const std::string& name) {
    ProgressLine line("saving");
    const auto progress = [&](uint64_t done, uint64_t total) { line.update(done, total); };
    RL_TRY(conversation_.save(path, progress, interrupts_.flag()));
    say(fmt::format("saved in {}: {} messages, {} tokens", name, conversation_.messages().size(),
                    conversation_.session().position()));
    return {};
}

// The session's file is claimed already; any other is while it is written.
Status Talk::save_to(const std::string& path) {
    RL_TRY(check_replaceable(path));
    if (!place_.kept || real_path(path) != place_.kept->path()) {
        const FileClaim claim = RL_TRY(FileClaim::take(path));
        return save_conversation(claim.path(), path);
    }
    RL_TRY(save_conversation(place_.kept->path(), path));
    in_file_ = conversation_.changes();
    std::error_code ignored;
    std::filesystem::remove(journal_of(place_.kept->path()), ignored);
    return {};
}

Status Talk::load_session(const std::string& path) {
    ProgressLine line("loading");
    const auto progress = [&](uint64_t done, uint64_t total) { line.update(done, total); };
    RL_TRY(conversation_.load(path, progress, interrupts_.flag()));
    last_.reset();
    say(fmt::format("{}: {} messages, {} tokens", path, conversation_.messages().size(),
                    conversation_.session().position()));
    return {};
}

bool Talk::save(const std::string& rest) {
    const std::string path = !trimmed(rest).empty() ? user_path(rest)
                             : place_.kept          ? place_.kept->name()
                                                    : "";
    const Status saved =
        path.empty() ? error("/save takes a file, unless --session names one") : save_to(path);
    if (!saved) refuse(saved.error());
    return true;
}

bool Talk::load(const std::string& rest) {
    const std::string path = user_path(rest);
    if (path.empty()) return refuse(error("/load takes a file that /save wrote")), true;
    const Status loaded = load_session(path);
    if (!loaded)
        refuse(
            error("{}; /load takes a file that /save or --session wrote with this model, and /model goes on "
                  "with another",
                  loaded.error().message));
    return true;
}

static Status write_export(const std::vector<ChatMessage>& messages, const std::string& path) {
    const std::string text = RL_TRY(export_text(messages, path));
    std::error_code unknown;
    if (std::filesystem::exists(path, unknown))
        return error("{} exists: remove it or name another file", path);
    AtomicWriter file = RL_TRY(AtomicWriter::create(path, 0600));  // it holds what was said
    RL_TRY(file.write(std::as_bytes(std::span(text))));
    return file.commit();
}

bool Talk::export_to(const std::string& rest) {
    const std::string path = user_path(rest);
    if (path.empty()) return refuse(error("/export takes a file that ends with .md or .json")), true;
    const Status written = write_export(conversation_.messages(), path);
    if (written)
        tell(fmt::format("written: {}", path));
    else
        refuse(written.error());
    return true;
}

bool Talk::read_file(const std::string& rest) {
    const std::string wanted = trimmed(rest);
    if (wanted == kNothing) attached_.clear();
    if (wanted.empty() || wanted == kNothing) return list_attachments(), true;
    const Status done = attach(wanted);
    if (!done) refuse(done.error());
    return true;
}

static size_t count_tokens(const Model& model, const std::string& text) {
    return model.tokenizer().encode(text, {.add_special = false}).size();
}

void Talk::list_attachments() {
    if (attached_.empty()) tell("no file goes with the next message");
    for (const Attachment& file : attached_)
        tell(fmt::format("{}: {} tokens go with the next message", file.name,
                         count_tokens(*model_->loaded.model, file.text)));
}

Status Talk::attach(const std::string& name) {
    Attachment file = RL_TRY(read_attachment(user_path(name), name));
    const uint64_t context = conversation_.session().context();
    RL_TRY(check_text_size(*model_->loaded.model, name, file.text.size(), context));
    const size_t tokens = count_tokens(*model_->loaded.model, file.text);
    if (tokens >= context)
        return error("{} has {} tokens, more than fit in the context of {}: -c makes more room", name, tokens,
                     context);
    tell(fmt::format("{}: {} tokens go with the next message{}", name, tokens,
                     file.changes.empty() ? "" : fmt::format(" ({})", file.changes)));
    attached_.push_back(std::move(file));
    return {};
}

}  // namespace redline::cli
