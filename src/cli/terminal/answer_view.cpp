#include "cli/terminal/answer_view.h"

#include "cli/terminal/progress.h"

#include <fmt/format.h>

#include <chrono>
#include <cstdlib>

namespace redline::cli {

static constexpr std::string_view kDim = "\x1b[2m";
static constexpr std::string_view kUsual = "\x1b[0m";

AnswerView::AnswerView(Output& out)
    : out_(out), terminal_(is_terminal(os::kStandardOutput)), wraps_(terminal_ && can_move_cursor()) {}

bool AnswerView::write(std::string_view text) {
    written_ |= !text.empty();
    if (!terminal_) return wrap_.put(text, 0), out_.write(text);
    return out_.write(wrap_.put(for_terminal(text), wraps_ ? terminal_width(os::kStandardOutput) : 0));
}

bool AnswerView::put(std::string_view text) {
    end_reasoning();
    return write(text);
}

bool AnswerView::put_reasoning(std::string_view text) {
    const bool begins = !std::exchange(reasoning_, true);
    if (!terminal_) {
        if (!voice().quiet) show(for_terminal(text));
        return out_.open();
    }
    if (begins && voice().colour) out_.write(kDim);
    return write(text);
}

void AnswerView::end_reasoning() {
    if (!std::exchange(reasoning_, false)) return;
    if (!terminal_) {
        if (!voice().quiet) show("\n");
        return;
    }
    write(wrap_.at_start() ? "\n" : "\n\n");
    if (voice().colour) out_.write(kUsual);
}

void AnswerView::end_line() {
    if (reasoning_ && !terminal_) end_reasoning();
    if (std::exchange(reasoning_, false) && voice().colour) out_.write(kUsual);
    if (!wrap_.at_start()) write("\n");
    wrap_ = WordWrap();
    written_ = false;
}

void AnswerView::end() {
    if (!written_) write("\n");
    end_line();
}

ReadingLine::ReadingLine() {
    if (can_show_progress()) thread_ = std::thread([this] { watch(); });
}

ReadingLine::~ReadingLine() {
    {
        const std::lock_guard lock(mutex_);
        ends_ = true;
    }
    ended_.notify_one();
    if (thread_.joinable()) thread_.join();
}

void ReadingLine::update(uint64_t done, uint64_t total) {
    const std::lock_guard lock(mutex_);
    done_ = done;
    total_ = total;
}

void ReadingLine::unseen(std::string_view what) {
    const std::lock_guard lock(mutex_);
    unseen_ = what;
}

// Chunks may take long: time goes on meanwhile.
void ReadingLine::watch() {
    std::unique_lock lock(mutex_);
    for (int seconds = 1; !ended_.wait_for(lock, std::chrono::seconds(1), [this] { return ends_; });
         ++seconds) {
        if (total_ == 0 && unseen_.empty()) continue;
        const std::string what =
            unseen_.empty() ? fmt::format("reading: {} of {} tokens", done_, total_) : unseen_;
        show_progress(fmt::format("{}  {} s", what, seconds));
    }
    erase_progress();
}

}  // namespace redline::cli
