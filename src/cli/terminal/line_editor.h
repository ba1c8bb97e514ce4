// A line at the terminal while it is typed: moving in it, history, completion, pasted text. By libedit.
#pragma once

#include "cli/terminal/folds.h"
#include "cli/terminal/typed.h"

#include <functional>
#include <memory>
#include <string>
#include <vector>

namespace redline::cli {

// The words that the text from `begin` to the cursor could become.
struct Completion {
    size_t begin = 0;
    std::vector<std::string> choices;
};
using Completer = std::function<Completion(const std::string& before_cursor)>;

class LineEditor {
public:
    // Null where lines cannot be edited: standard input or standard error is no terminal, or the terminal
    // cannot move its cursor (TERM is dumb, unknown or not set).
    static std::unique_ptr<LineEditor> create();
    ~LineEditor();
    LineEditor(const LineEditor&) = delete;
    LineEditor& operator=(const LineEditor&) = delete;

    // Line ends in it come from pasted text, Alt-Enter and history. `prompt` ends with a blank; `draft` is
    // there to begin with, unless more was typed before: it is then the latest of what is remembered. So it
    // is where it came back unasked, and a second has not passed before the first letter. Long texts in the
    // line are folded: folds() opens them.
    Result<Typed> read(const std::string& prompt, const Draft& draft);
    Folds& folds() { return folds_; }
    // The newest comes last.
    void remember(const std::string& message);
    void set_completer(Completer completer) { completer_ = std::move(completer); }

private:
    struct Library;  // libedit's types, and the functions that it calls

    LineEditor();
    // A draft that is long even with its folds closed is one fold.
    std::string fold_whole(const std::string& draft);
    // Puts the draft into the line that is to be read, or among the earlier ones.
    void take_draft(const Draft& draft);

    std::unique_ptr<Library> library_;
    Completer completer_;
    std::vector<std::string> history_;
    Folds folds_;
};

}  // namespace redline::cli
