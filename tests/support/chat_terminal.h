// redline chat on a terminal, as a user has it.
#pragma once

#include "support/program.h"
#include "support/pty.h"

namespace redline::test {

// Without pseudo-terminals, as in a chroot without /dev/pts, these tests are skipped.
[[maybe_unused]] inline const bool has_terminals = [] {
    int ours = -1, theirs = -1;
    if (::openpty(&ours, &theirs, nullptr, nullptr, nullptr) != 0) {
        std::puts("[redline] not tested: chat on a terminal: no pseudo-terminal can be opened here");
        std::exit(0);
    }
    ::close(ours);
    ::close(theirs);
    return true;
}();

// The chain model answers "a" and what follows it. Nothing is kept in the user's home.
inline Launch talk(std::vector<std::string> more = {}, const std::string& model = chat_model()) {
    std::vector<std::string> all = {"chat", "-m", model, "--temp", "0", "-n", "3", "-t", "1"};
    all.insert(all.end(), more.begin(), more.end());
    Launch what = command(all);
    static const TemporaryFolder home;
    what.environment = {"HOME=" + home.path.string(), "XDG_STATE_HOME=" + home.path.string()};
    return what;
}

constexpr const char* kPrompt = ">";
constexpr const char* kCtrlC = "\x03";
constexpr const char* kCtrlD = "\x04";

constexpr const char* kLeft = "\x1b[D";
constexpr const char* kUp = "\x1b[A";
constexpr const char* kDown = "\x1b[B";
constexpr const char* kAltEnter = "\x1b\r";
constexpr const char* kBackspace = "\x7f";

inline void begin(Terminal& terminal) {
    REQUIRE_MESSAGE(terminal.wait_for_line(kPrompt), terminal.screen().text());
}

// Sends what is typed, and checks what the conversation then has as the message.
inline void check_sent(Terminal& terminal, const std::string& want) {
    terminal.type("\r");
    REQUIRE_MESSAGE(terminal.wait_for_line(kPrompt), terminal.screen().text());
    terminal.type("/undo\r");
    CHECK_MESSAGE(terminal.wait_for("taken back: " + want), terminal.screen().text());
    REQUIRE(terminal.wait_for_line(kPrompt));
    CHECK(terminal.screen().unknown() == "");
}

inline Launch with(Launch what, std::vector<std::string> environment) {
    what.environment.insert(what.environment.end(), environment.begin(), environment.end());
    return what;
}

// An answer without an end.
inline std::string endless_model() {
    static const std::string path = [] {
        ChainModel chain;
        chain.chat = true;
        chain.next[ChainModel::kLetterA + 25] = ChainModel::kLetterA;
        chain.build().save(file("endless.gguf"));
        return file("endless.gguf");
    }();
    return path;
}

}  // namespace redline::test
