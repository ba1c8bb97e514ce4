// redline chat on a terminal: typing, editing, interrupting, and what the screen shows.
#include "support/program.h"
#include "support/pty.h"

using namespace redline;
using namespace redline::test;

namespace {

// The chain model answers "a" and what follows it. Nothing is kept in the user's home.
Launch talk(std::vector<std::string> more = {}, const std::string& model = chat_model()) {
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

// An answer without an end.
std::string endless_model() {
    static const std::string path = [] {
        ChainModel chain;
        chain.chat = true;
        chain.next[ChainModel::kLetterA + 25] = ChainModel::kLetterA;
        chain.build().save(file("endless.gguf"));
        return file("endless.gguf");
    }();
    return path;
}

}  // namespace

TEST_CASE("chat on a terminal: a typed message is answered, Ctrl-D leaves") {
    Terminal terminal(talk());
    REQUIRE(terminal.wait_for_line(kPrompt));
    terminal.type("hello\r");
    REQUIRE_MESSAGE(terminal.wait_for("\nabc\n"), terminal.screen().text());
    REQUIRE(terminal.wait_for_line(kPrompt));
    terminal.type(kCtrlD);
    CHECK(terminal.finish() == 0);
    CHECK(terminal.screen().unknown() == "");
    CHECK(terminal.is_cooked());
}

TEST_CASE("chat on a terminal: Ctrl-C ends an answer, and twice at the prompt the program") {
    Terminal terminal(talk({"-n", "-1"}, endless_model()));
    REQUIRE(terminal.wait_for_line(kPrompt));
    terminal.type("hello\r");
    REQUIRE(terminal.wait_for("xyzabc"));
    terminal.type(kCtrlC);
    REQUIRE_MESSAGE(terminal.wait_for("interrupted"), terminal.screen().text());
    REQUIRE(terminal.wait_for_line(kPrompt));
    terminal.type(kCtrlC);
    REQUIRE(terminal.wait_for("Ctrl-C again"));
    REQUIRE(terminal.wait_for_line(kPrompt));
    terminal.type(kCtrlC);
    CHECK(terminal.finish() == 130);
    CHECK(terminal.is_cooked());
}
