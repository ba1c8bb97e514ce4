#include "cli/terminal/line_editor.h"

#include "base/os/signals.h"
#include "base/os/terminal.h"
#include "cli/terminal/terminal.h"
#include "cli/terminal/word_wrap.h"
#include "text/tokens/unicode.h"

#include <algorithm>
#include <chrono>
#include <clocale>
#include <cstring>
#include <limits>

#include <histedit.h>
#include <unistd.h>

namespace redline::cli {

namespace {

constexpr size_t kMostCharacters = size_t(1) << 24;         // characters
constexpr std::string_view kBracketPastes = "\x1b[?2004h";  // until restore_terminal()
constexpr std::string_view kPasteBegin = "\x1b[200~";
// Keys by which functions of ours are called; typed, they do nothing.
constexpr wchar_t kTakeDraft = 0x1F, kDropDraft = 0x1E;
constexpr std::chrono::milliseconds kUnseen(1000);  // what is typed sooner does not answer what came back
constexpr wchar_t kCtrlC = 0x03;
constexpr std::string_view kMessage = "message of";  // how the mark of a folded one begins

std::wstring to_wide(std::string_view text) {
    std::wstring out;
    for (size_t at = 0; at < text.size();) {
        const Utf8Step step = utf8_step(text, at);
        out += step.kind == Utf8Step::Kind::character ? wchar_t(step.code) : L'\uFFFD';
        at += step.bytes;
    }
    return out;
}

std::string to_utf8(std::wstring_view text) {
    std::string out;
    for (const wchar_t c : text) append_utf8(out, char32_t(c));
    return out;
}

// The beginning that all of them share.
std::string common_start(const std::vector<std::string>& all) {
    std::string common = all[0];
    for (const std::string& one : all)
        common.erase(std::mismatch(common.begin(), common.end(), one.begin(), one.end()).first, common.end());
    while (!common.empty() && !is_valid_utf8(common)) common.pop_back();
    return common;
}

}  // namespace

struct LineEditor::Library {
    LineEditor* editor = nullptr;
    FILE* out = nullptr;
    EditLine* line = nullptr;
    HistoryW* searched = nullptr;  // by Ctrl-R
    std::wstring prompt;
    std::wstring draft;
    std::string unseen;                          // the draft, while a letter takes its place
    std::chrono::steady_clock::time_point seen;  // from then on none does
    std::string held;                            // bytes read and not yet given
    size_t columns = 0;                          // of the terminal, when the line was drawn
    size_t prompt_columns = 0;
    size_t invalid = 0;  // parts of what was read that were no UTF-8
    bool draft_waits = false;
    bool gives_up = false;    // the line is being left, as after Ctrl-C
    bool ended = false;       // no more input
    size_t place = 0;         // in the history; its size: the line that is being written
    std::wstring unfinished;  // that line, while the history is looked at

    static Library& of(EditLine* line) {
        void* data = nullptr;
        ::el_wget(line, EL_CLIENTDATA, &data);
        return *static_cast<Library*>(data);
    }

    std::wstring text() const {
        const LineInfoW* now = ::el_wline(line);
        return {now->buffer, now->lastchar};
    }
    size_t cursor() const {
        const LineInfoW* now = ::el_wline(line);
        return size_t(now->cursor - now->buffer);
    }
    void move_to(size_t at) { ::el_cursor(line, int(ptrdiff_t(at) - ptrdiff_t(cursor()))); }
    void set_text(const std::wstring& wanted) {
        const size_t length = text().size();
        move_to(length);
        ::el_wdeletestr(line, int(length));
        ::el_winsertstr(line, wanted.c_str());
    }

    void bind();
    int next(wchar_t* key);
    bool begins_anew();
    bool is_typed_ahead() const;
    void redraw();
    unsigned char stop();
    unsigned char paste();
    // Says what was not taken from a paste as it is. True: that was written below the line.
    bool say_changed(size_t controls, size_t bad, bool cut);
    unsigned char step_line(bool up);
    unsigned char complete();
    void list(const std::vector<std::string>& choices);
};

// The next key: of bytes read before, or waited for.
int LineEditor::Library::next(wchar_t* key) {
    if (gives_up) return 0;
    if (std::exchange(draft_waits, false)) {
        *key = kTakeDraft;
        return 1;
    }
    while (true) {
        if (!held.empty() && begins_anew()) {
            *key = kDropDraft;
            return 1;
        }
        if (!held.empty()) {
            const Utf8Step step = utf8_step(held, 0);
            if (step.kind != Utf8Step::Kind::cut || ended) {
                const bool character = step.kind == Utf8Step::Kind::character;
                invalid += character ? 0 : 1;
                *key = character ? wchar_t(step.code) : L'\uFFFD';
                held.erase(0, step.bytes);
                return 1;
            }
        }
        if (ended) return 0;
        switch (wait_for_event(os::kStandardInput)) {
            case Event::interrupt:
                gives_up = true;
                *key = kCtrlC;
                return 1;
            case Event::redraw:
                redraw();
                break;
            case Event::input:
                char chunk[1 << 12];
                std::error_code fault;
                const size_t got = os::read_some(os::kStandardInput, chunk, fault);
                held.append(chunk, got);
                ended = fault ? !os::is_temporary(fault) : got == 0;
        }
    }
}

bool LineEditor::Library::is_typed_ahead() const {
    return !held.empty() || os::has_input(os::kStandardInput);
}

// True, once, where the first key behind a draft is a letter or a paste that was not typed for it.
bool LineEditor::Library::begins_anew() {
    const std::string draft_text = std::exchange(unseen, {});
    const auto first = static_cast<unsigned char>(held[0]);
    const bool text = (first >= ' ' && first != 0x7F) || held.starts_with(kPasteBegin);
    if (draft_text.empty() || !text || std::chrono::steady_clock::now() >= seen) return false;
    editor->remember(draft_text);
    place = editor->history_.size();
    return true;
}

// Terminals disagree on where the cursor is when a line of several rows stands in a window of another size:
// such a line is drawn below, any other in its place.
void LineEditor::Library::redraw() {
    const size_t before = std::exchange(columns, terminal_width(os::kStandardError));
    const std::string now = to_utf8(text());
    const size_t room = std::min(before, columns) - std::min({before, columns, prompt_columns + 1});
    const bool one_row = now.find('\n') == now.npos && clipped(now, room).size() == now.size();
    show(one_row ? "\r\x1b[J" : "\r\n\x1b[J");
    ::el_resize(line);
    ::el_wset(line, EL_REFRESH);
}

// The system does this by itself where keys make signals.
unsigned char LineEditor::Library::stop() {
    ::el_wset(line, EL_PREP_TERM, 0);
    restore_terminal();
    os::suspend();
    ::el_wset(line, EL_PREP_TERM, 1);
    show(kBracketPastes);
    return CC_NORM;
}

// Between ESC[200~, which brought us here, and ESC[201~ all is text.
unsigned char LineEditor::Library::paste() {
    constexpr std::wstring_view kEnd = L"\x1b[201~";
    const size_t invalid_before = invalid;
    bool cut = false;
    std::wstring pasted;
    wchar_t next_one = 0;
    while (!pasted.ends_with(kEnd) && ::el_wgetc(line, &next_one) == 1) {
        cut |= pasted.size() >= kMostCharacters;
        if (pasted.size() >= kMostCharacters)
            pasted.erase(kMostCharacters - kEnd.size(), 1);  // the end is still found
        pasted += next_one;
    }
    if (pasted.ends_with(kEnd)) pasted.erase(pasted.size() - kEnd.size());
    if (gives_up && pasted.ends_with(kCtrlC)) pasted.pop_back();  // a signal, which next() gives as this key
    const PastedText taken = take_paste(to_utf8(pasted));
    ::el_winsertstr(line, to_wide(editor->folds_.fold(taken.text, "pasted")).c_str());
    return say_changed(taken.replaced, invalid - invalid_before, cut) ? CC_REDISPLAY : CC_REFRESH;
}

bool LineEditor::Library::say_changed(size_t controls, size_t bad, bool cut) {
    std::vector<std::string> changed;
    if (controls > 0) changed.push_back(fmt::format("control characters stand as signs ({})", controls));
    if (bad > 0) changed.push_back(fmt::format("what is no UTF-8 as U+FFFD ({})", bad));
    if (cut) changed.push_back(fmt::format("only {} characters are taken", kMostCharacters));
    if (changed.empty() || voice().quiet) return false;
    show("\n");
    note(fmt::format("of the pasted text {}", fmt::join(changed, ", ")));
    return true;
}

// To the line above or below in a message of several, and beyond them through the history.
unsigned char LineEditor::Library::step_line(bool up) {
    const std::wstring now = text();
    const size_t at = cursor();
    const size_t before = at == 0 ? now.npos : now.rfind(L'\n', at - 1);
    const size_t begin = before == now.npos ? 0 : before + 1;
    const size_t end = std::min(now.find(L'\n', at), now.size());
    if (up && begin > 0) {
        const size_t above = begin < 2 ? now.npos : now.rfind(L'\n', begin - 2);
        move_to(std::min((above == now.npos ? 0 : above + 1) + (at - begin), begin - 1));
        return CC_REFRESH;
    }
    if (!up && end < now.size()) {
        move_to(std::min(end + 1 + (at - begin), std::min(now.find(L'\n', end + 1), now.size())));
        return CC_REFRESH;
    }
    const std::vector<std::string>& all = editor->history_;
    if (up ? place == 0 : place >= all.size()) return CC_ERROR;
    if (place == all.size()) unfinished = now;
    place = up ? place - 1 : place + 1;
    set_text(place == all.size() ? unfinished : to_wide(editor->folds_.fold(all[place], kMessage)));
    return CC_REFRESH;
}

void LineEditor::Library::list(const std::vector<std::string>& choices) {
    constexpr size_t kMostChoices = 60;
    std::string all = "\n";
    for (size_t i = 0; i < std::min(choices.size(), kMostChoices); ++i)
        all += for_terminal(choices[i]) + "  ";
    if (choices.size() > kMostChoices) all += fmt::format("and {} more", choices.size() - kMostChoices);
    show(all + "\n");
}

unsigned char LineEditor::Library::complete() {
    const std::string before = to_utf8(text().substr(0, cursor()));
    if (const std::optional<std::string> mark = editor->folds_.mark_at_end(before)) {
        ::el_wdeletestr(line, int(to_wide(*mark).size()));
        ::el_winsertstr(line, to_wide(editor->folds_.open(*mark)).c_str());
        return CC_REFRESH;
    }
    const Completion found = editor->completer_ ? editor->completer_(before) : Completion();
    if (found.choices.empty()) return CC_ERROR;
    const std::string had = before.substr(found.begin);
    const std::string common = common_start(found.choices);
    if (common.size() > had.size()) {
        ::el_winsertstr(line, to_wide(common.substr(had.size())).c_str());
        return CC_REFRESH;
    }
    if (found.choices.size() == 1) return CC_ERROR;
    list(found.choices);
    return CC_REDISPLAY;
}

void LineEditor::Library::bind() {
    using Function = unsigned char (*)(EditLine*, int);
    const auto add = [this](const wchar_t* name, Function function,
                            std::initializer_list<const wchar_t*> keys) {
        ::el_wset(line, EL_ADDFN, name, name, function);
        for (const wchar_t* key : keys) ::el_wset(line, EL_BIND, key, name, nullptr);
    };
    add(L"redline-paste", [](EditLine* e, int) { return of(e).paste(); }, {L"\x1b[200~"});
    add(L"redline-up", [](EditLine* e, int) { return of(e).step_line(true); },
        {L"\x1b[A", L"\x1bOA", L"\x10"});
    add(L"redline-down", [](EditLine* e, int) { return of(e).step_line(false); },
        {L"\x1b[B", L"\x1bOB", L"\x0e"});
    add(L"redline-complete", [](EditLine* e, int) { return of(e).complete(); }, {L"\t"});
    const Function line_end = [](EditLine* e, int) -> unsigned char {
        ::el_winsertstr(e, L"\n");
        return CC_REFRESH;
    };
    add(L"redline-line-end", line_end, {L"\x1b\r", L"\x1b\n"});
    const Function take_draft = [](EditLine* e, int) -> unsigned char {
        ::el_winsertstr(e, std::exchange(of(e).draft, {}).c_str());
        return CC_REFRESH;
    };
    add(L"redline-take-draft", take_draft, {L"\x1f"});
    const Function drop_draft = [](EditLine* e, int) -> unsigned char {
        of(e).set_text({});
        return CC_REFRESH;
    };
    add(L"redline-drop-draft", drop_draft, {L"\x1e"});
    // The cursor goes below the line, which stays on the screen.
    const Function give_up = [](EditLine* e, int) -> unsigned char {
        of(e).move_to(of(e).text().size());
        of(e).gives_up = true;
        return CC_REFRESH;
    };
    add(L"redline-give-up", give_up, {L"\x03"});
    add(L"redline-stop", [](EditLine* e, int) { return of(e).stop(); }, {L"\x1a"});
    const std::pair<const wchar_t*, const wchar_t*> usual[] = {
        {L"\x1b[H", L"ed-move-to-beg"},       {L"\x1bOH", L"ed-move-to-beg"},
        {L"\x1b[1~", L"ed-move-to-beg"},      {L"\x1b[F", L"ed-move-to-end"},
        {L"\x1bOF", L"ed-move-to-end"},       {L"\x1b[4~", L"ed-move-to-end"},
        {L"\x1b[3~", L"ed-delete-next-char"}, {L"\x1b[1;5C", L"em-next-word"},
        {L"\x1b[1;5D", L"ed-prev-word"},      {L"\x12", L"em-inc-search-prev"},
        {L"\x17", L"ed-delete-prev-word"}};
    for (const auto& [key, function] : usual) ::el_wset(line, EL_BIND, key, function, nullptr);
}

LineEditor::LineEditor() : library_(std::make_unique<Library>()) {
    library_->editor = this;
}

std::unique_ptr<LineEditor> LineEditor::create() {
    if (!is_terminal(os::kStandardInput) || !is_terminal(os::kStandardError) || !can_move_cursor())
        return nullptr;
    // Typed text is UTF-8 whatever the locale says; the width of characters is the locale's knowledge.
    if (!std::setlocale(LC_CTYPE, "C.UTF-8")) return nullptr;
    std::unique_ptr<LineEditor> made(new LineEditor());
    Library& library = *made->library_;
    watch_window();
    // Buffered, unlike stderr: a line is drawn in one piece.
    library.out = ::fdopen(::dup(os::kStandardError), "w");
    if (!library.out) return nullptr;
    library.line = ::el_init("redline", stdin, library.out, library.out);
    if (!library.line) return nullptr;
    ::el_wset(library.line, EL_CLIENTDATA, &library);
    ::el_wset(library.line, EL_EDITOR, L"emacs");
    library.searched = ::history_winit();
    HistEventW event;
    ::history_w(library.searched, &event, H_SETSIZE, std::numeric_limits<int>::max());
    ::el_wset(library.line, EL_HIST, ::history_w, library.searched);
    ::el_source(library.line, nullptr);  // the user's ~/.editrc
    library.bind();
    // Keys are read in the order in which they are typed, Ctrl-C among them. Between two lines nothing is
    // shown of them, and they wait. The system leaves "\r" and "\n" apart: pasted, both are one line end.
    ::el_wset(library.line, EL_SETTY, L"-d", L"-isig", L"-icrnl", L"-inlcr", nullptr);
    ::el_wset(library.line, EL_SETTY, L"-x", L"-icanon", L"-echo", L"-icrnl", L"-inlcr", L"+noflsh", nullptr);
    ::el_wset(
        library.line, EL_GETCFN, +[](EditLine* line, wchar_t* key) { return Library::of(line).next(key); });
    ::el_wset(
        library.line, EL_PROMPT_ESC, +[](EditLine* line) { return Library::of(line).prompt.data(); }, L'\1');
    return made;
}

LineEditor::~LineEditor() {
    if (library_->line) ::el_end(library_->line);
    if (library_->searched) ::history_wend(library_->searched);
    if (library_->out) std::fclose(library_->out);
    restore_terminal();
}

std::string LineEditor::fold_whole(const std::string& draft) {
    return Folds::is_long(draft) ? folds_.fold(folds_.open(draft), kMessage) : draft;
}

void LineEditor::take_draft(const Draft& draft) {
    Library& library = *library_;
    library.draft_waits = !draft.text.empty() && !library.is_typed_ahead();
    library.draft = library.draft_waits ? to_wide(fold_whole(draft.text)) : std::wstring();
    library.unseen = library.draft_waits && draft.unasked ? folds_.open(draft.text) : std::string();
    library.seen = std::chrono::steady_clock::now() + kUnseen;
    if (draft.text.empty() || library.draft_waits) return;
    remember(folds_.open(draft.text));
    note("the line that came back makes way for what was typed meanwhile; the arrow up brings it");
}

Result<Typed> LineEditor::read(const std::string& prompt, const Draft& draft) {
    Library& library = *library_;
    // libedit leaves a sequence out that no character follows: the prompt's blank ends it.
    const std::string name = prompt.substr(0, prompt.size() - 1);
    library.prompt = to_wide(voice().colour ? fmt::format("\1\x1b[32m\1{}\1\x1b[0m\1 ", name) : prompt);
    take_draft(draft);
    library.gives_up = false;
    library.place = history_.size();
    library.columns = terminal_width(os::kStandardError);
    library.prompt_columns = prompt.size();
    int length = 0;
    show(kBracketPastes);
    ::el_wset(library.line, EL_PREP_TERM, 1);  // before the prompt, behind which one types
    const wchar_t* typed = ::el_wgets(library.line, &length);
    if (library.gives_up) {
        show("^C\n");
        return Typed{Typed::Kind::interrupted, to_utf8(library.text()), {}};
    }
    if (!typed || length <= 0) return Typed{Typed::Kind::end, {}, {}};
    std::string text = to_utf8({typed, size_t(length)});
    if (text.ends_with('\n')) text.pop_back();
    return Typed{Typed::Kind::message, std::move(text), {}};
}

void LineEditor::remember(const std::string& message) {
    if (message.find_first_not_of(" \t\n") == std::string::npos) return;
    if (!history_.empty() && history_.back() == message) return;
    HistEventW event;
    ::history_w(library_->searched, &event, H_ENTER, to_wide(message).c_str());
    history_.push_back(message);
}

}  // namespace redline::cli
