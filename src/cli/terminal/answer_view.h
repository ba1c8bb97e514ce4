// The view that a user has of an answer while it comes: wrapped and without control characters on a terminal,
// as it is in a pipe; and a line that tells how far the reading of a long message is.
#pragma once

#include "cli/terminal/terminal.h"
#include "cli/terminal/word_wrap.h"

#include <condition_variable>
#include <mutex>
#include <thread>

namespace redline::cli {

class AnswerView {
public:
    explicit AnswerView(Output& out);

    // False when nothing more can be written.
    bool put(std::string_view text);
    // The reasoning of a model before it answers: dim where the terminal has colours, and in a pipe not a
    // part of the output but of what is said on standard error.
    bool put_reasoning(std::string_view text);
    // An answer is a line of the output at least, so that a pipe can tell them apart.
    void end();
    // Ends the line that is begun, as end() does; a message can follow.
    void end_line();

private:
    void end_reasoning();
    bool write(std::string_view text);

    Output& out_;
    bool terminal_;
    bool wraps_;
    bool written_ = false;    // anything, of this answer
    bool reasoning_ = false;  // was written last
    WordWrap wrap_;
};

// "reading: 812 of 4096 tokens  12 s" on one line of a terminal, once it takes longer than a second;
// "thinking  12 s" while tokens come that are not shown.
class ReadingLine {
public:
    ReadingLine();
    ~ReadingLine();
    void update(uint64_t done, uint64_t total);
    // Names the work that goes on unseen: "thinking".
    void unseen(std::string_view what);

private:
    void watch();

    std::mutex mutex_;
    std::condition_variable ended_;
    bool ends_ = false;
    uint64_t done_ = 0, total_ = 0;
    std::string unseen_;
    std::thread thread_;
};

}  // namespace redline::cli
