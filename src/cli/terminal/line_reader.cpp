#include "cli/terminal/line_reader.h"

#include "cli/terminal/terminal.h"

namespace redline::cli {

static constexpr size_t kMostLineBytes = size_t(1) << 26;

LineReader::LineReader() : interactive_(is_terminal(os::kStandardInput)), editor_(LineEditor::create()) {
    if (!editor_) return;
    const Result<std::vector<std::string>> past = history_.load();
    if (!past) note(fmt::format("no history of earlier chats: {}", past.error().message));
    if (!past) return;
    for (const std::string& message : past.value()) editor_->remember(message);
}

void LineReader::set_completer(Completer completer) {
    if (editor_) editor_->set_completer(std::move(completer));
}

Result<Typed> LineReader::read_plain(const std::string& prompt) {
    // The system's line editor takes so much of one, and drops the rest.
    constexpr size_t kMostTyped = 4095;
    if (interactive_) show(voice().colour ? fmt::format("\x1b[32m{}\x1b[0m", prompt) : prompt);
    while (true) {
        const size_t end = held_.find('\n');
        if (end != std::string::npos || (ended_ && !held_.empty())) {
            std::string line = held_.substr(0, end);
            held_.erase(0, end == std::string::npos ? end : end + 1);
            if (interactive_ && line.size() >= kMostTyped)
                note(fmt::format("this terminal takes {} bytes of a line: the rest is lost; a pipe takes all",
                                 kMostTyped));
            if (line.ends_with('\r')) line.pop_back();
            return Typed{Typed::Kind::message, std::move(line), {}};
        }
        if (ended_) return Typed{Typed::Kind::end, {}, {}};
        if (held_.size() > kMostLineBytes)
            return error("a line of input has more than {} bytes", kMostLineBytes);
        if (wait_for_event(os::kStandardInput) == Event::interrupt)
            return Typed{Typed::Kind::interrupted, {}, {}};
        char chunk[1 << 14];
        std::error_code fault;
        const size_t got = os::read_some(os::kStandardInput, chunk, fault);
        if (fault == std::errc::interrupted) continue;
        if (fault && fault != std::errc::bad_file_descriptor)
            return error("cannot read standard input: {}", fault.message());
        ended_ = got == 0;
        held_.append(chunk, got);
    }
}

Result<Typed> LineReader::read_line(const std::string& prompt, const Draft& draft) {
    return editor_ ? editor_->read(prompt, draft) : read_plain(prompt);
}

Result<Typed> LineReader::read(const Draft& draft) {
    if (editor_) editor_->folds().forget_old(draft.text);
    Typed typed = RL_TRY(read_message(draft));
    typed.shown = typed.text;
    if (editor_) typed.text = editor_->folds().open(typed.text);
    // A line that Ctrl-C takes back is found where earlier messages are.
    if (typed.kind == Typed::Kind::interrupted && editor_) editor_->remember(typed.text);
    if (typed.kind == Typed::Kind::message) remember(typed.text);
    return typed;
}

static constexpr std::string_view kFence = "\"\"\"";
static constexpr const char* kMore = "... ";

Result<Typed> LineReader::read_message(const Draft& draft) {
    Typed all = RL_TRY(read_line("> ", draft));
    // Several lines at once were pasted, and are whole.
    const bool whole = all.text.find('\n') != std::string::npos;
    if (all.kind != Typed::Kind::message) return all;
    if (all.text.starts_with(kFence) && (!whole || all.text.ends_with(kFence)))
        return read_fenced(std::move(all));
    while (!whole && all.text.ends_with('\\')) {
        const Typed more = RL_TRY(read_line(kMore));
        all.text.back() = '\n';
        if (more.kind == Typed::Kind::end) return all;
        all.text += more.text;
        all.kind = more.kind;
        if (more.kind == Typed::Kind::interrupted) return all;
    }
    return all;
}

Result<Typed> LineReader::read_fenced(Typed all) {
    all.text.erase(0, kFence.size());
    while (!all.text.ends_with(kFence)) {
        const Typed more = RL_TRY(read_line(kMore));
        if (more.kind == Typed::Kind::end) return all;
        all.text += "\n" + more.text;
        all.kind = more.kind;
        if (more.kind == Typed::Kind::interrupted) return all;
    }
    all.text.erase(all.text.size() - kFence.size());
    if (all.text.starts_with('\n')) all.text.erase(0, 1);
    if (all.text.ends_with('\n')) all.text.pop_back();
    return all;
}

void LineReader::remember(const std::string& message) {
    if (!editor_ || message.find_first_not_of(" \t\n") == std::string::npos) return;
    editor_->remember(message);
    const Status kept = history_.add(message);
    if (kept) return;
    note(fmt::format("the history is not kept: {}", kept.error().message));
    history_ = HistoryFile({});
}

}  // namespace redline::cli
