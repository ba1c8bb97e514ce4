// Reads what a user types, a message at a time: on a terminal edited and remembered, from a pipe line by
// line.
#pragma once

#include "cli/terminal/history_file.h"
#include "cli/terminal/line_editor.h"

namespace redline::cli {

class LineReader {
public:
    LineReader();
    bool interactive() const { return interactive_; }
    // True where a line can be given back to be changed.
    bool edits() const { return editor_ != nullptr; }
    void set_completer(Completer completer);

    // The next message: a line; several when they end with a backslash, stand between two of """, were pasted
    // together or broken by Alt-Enter. On a terminal the line begins with `draft`, see LineEditor::read().
    Result<Typed> read(const Draft& draft);
    // One line in answer to a question, which is not remembered. `prompt` ends with a blank.
    Result<Typed> ask(const std::string& prompt) { return read_line(prompt); }

    // A line that was not sent when the program was ended: later chats have it among the earlier messages.
    void keep_unsent(const std::string& line) { remember(line); }

private:
    Result<Typed> read_line(const std::string& prompt, const Draft& draft = {});
    Result<Typed> read_plain(const std::string& prompt);
    Result<Typed> read_message(const Draft& draft);
    Result<Typed> read_fenced(Typed all);
    void remember(const std::string& message);

    bool interactive_;
    bool ended_ = false;
    std::string held_;  // read and not yet given
    std::unique_ptr<LineEditor> editor_;
    HistoryFile history_ = HistoryFile::of_user();
};

}  // namespace redline::cli
