// Conversations that are kept while one talks on a terminal, however the talk ends.
#include "support/chat_terminal.h"

using namespace redline;
using namespace redline::test;

TEST_CASE("chat on a terminal: a program that is ended leaves the terminal as it was") {
    for (const bool answering : {false, true}) {
        const std::string session = file(answering ? "ended_answering.session" : "ended.session");
        Terminal terminal(talk({"-n", "-1", "-c", "50000", "--session", session}, endless_model()));
        begin(terminal);
        terminal.type("/set max-tokens 3\rhello\r");
        REQUIRE(terminal.wait_for("hello\nabc\n"));
        begin(terminal);
        terminal.type("/set max-tokens -1\r\x1b[200~a paste without an end");
        REQUIRE(terminal.wait_for("max-tokens is -1"));
        if (answering) terminal.type("\x1b[201~\x15");
        terminal.type(answering ? "hello\r" : "hel");
        if (answering) REQUIRE(terminal.wait_for("xyzabc"));
        terminal.settle();
        ::kill(terminal.child(), SIGTERM);
        CHECK(terminal.finish() == 143);
        CHECK(std::filesystem::exists(session));
        CHECK(terminal.is_cooked());
        CHECK_FALSE(terminal.screen().pastes_bracketed());
    }
}

TEST_CASE("chat on a terminal: a session that is killed loses no message") {
    const std::string session = file("killed.session"), journal = session + ".journal";
    std::filesystem::remove(session);
    const auto killed_after = [&](const std::string& message) {
        Terminal terminal(talk({"--session", session}));
        begin(terminal);
        terminal.type(message + "\r");
        REQUIRE_MESSAGE(terminal.wait_for("\nabc\n"), terminal.screen().text());
        begin(terminal);
        ::kill(terminal.child(), SIGKILL);
        CHECK(terminal.finish() == -SIGKILL);
        return terminal.screen().text();
    };
    killed_after("one");
    CHECK_FALSE(std::filesystem::exists(session));
    CHECK(unsigned(std::filesystem::status(journal).permissions()) == 0600);
    CHECK(has(killed_after("two"), "2 messages are taken from"));
    {
        Terminal terminal(talk({"--session", session}));
        REQUIRE_MESSAGE(terminal.wait_for("4 messages are taken from"), terminal.screen().text());
        begin(terminal);
        terminal.type(kCtrlD);
        CHECK(terminal.finish() == 0);
    }
    CHECK(std::filesystem::exists(session));
    CHECK_FALSE(std::filesystem::exists(journal));
    // Messages written after the file was saved are stored beside it.
    CHECK(has(killed_after("three"), "4 messages"));
    Terminal terminal(talk({"--session", session}));
    REQUIRE_MESSAGE(terminal.wait_for("6 messages are taken from"), terminal.screen().text());
    begin(terminal);
    terminal.type("/undo\r");
    CHECK(terminal.wait_for("taken back: three"));
}

TEST_CASE(
    "chat on a terminal: a second window on a session is told who has it, and reads or goes elsewhere") {
    const std::string session = file("shared.session"), other = file("elsewhere.session");
    Terminal first(talk({"--session", session}));
    begin(first);
    first.type("one\r");
    REQUIRE(first.wait_for("\nabc\n"));
    begin(first);
    const std::string owner = fmt::format("process {} since", first.child());
    // From a pipe there is no choice.
    const Outcome piped = launch([&] {
        Launch what = talk({"--session", session});
        what.input = "two\n";
        return what;
    }());
    CHECK(piped.code == 1);
    CHECK(piped.out.empty());
    CHECK(has(piped.err, owner));
    CHECK(has(piped.err, "--session OTHER"));

    Terminal reader(talk({"--session", session}), 24, 200);
    REQUIRE_MESSAGE(reader.wait_for("Ctrl-D to leave>"), reader.screen().text());
    CHECK(has(reader.screen().text(), owner));
    reader.type("r\r");
    REQUIRE_MESSAGE(reader.wait_for("2 messages are taken from"), reader.screen().text());
    begin(reader);
    reader.type("two\r");
    REQUIRE(reader.wait_for("> two\nabc\n"));
    begin(reader);
    reader.type("/save " + session + "\r");
    CHECK_MESSAGE(reader.wait_for("shared.session is in use by process"), reader.screen().text());
    begin(reader);
    reader.type(kCtrlD);
    CHECK(reader.finish() == 0);

    Terminal second(talk({"--session", session}), 24, 200);
    REQUIRE(second.wait_for("Ctrl-D to leave>"));
    second.type(other + "\r");
    REQUIRE_MESSAGE(second.wait_for("2 messages are taken from"), second.screen().text());
    begin(second);
    second.type("three\r");
    REQUIRE(second.wait_for("> three\nabc\n"));
    begin(second);
    second.type(kCtrlD);
    CHECK(second.finish() == 0);

    Terminal leaver(talk({"--session", session}), 24, 200);
    REQUIRE(leaver.wait_for("Ctrl-D to leave>"));
    leaver.type(kCtrlD);
    CHECK(leaver.finish() == 1);

    first.type(kCtrlD);
    CHECK(first.finish() == 0);
    for (const auto& [path, messages] : {std::pair{session, "2 messages"}, {other, "4 messages"}}) {
        Terminal again(talk({"--session", path}), 24, 200);
        CHECK_MESSAGE(again.wait_for(messages), again.screen().text());
        CHECK_FALSE(std::filesystem::exists(path + ".journal"));
    }
}

TEST_CASE("chat on a terminal: what was typed and asked outlives a program that is ended or killed") {
    const std::string session = file("unsent.session");
    const Launch what = talk({"-n", "-1", "-c", "50000", "--session", session}, endless_model());
    {
        Terminal terminal(what);
        begin(terminal);
        terminal.type("half \x1b[200~a mess");
        terminal.settle();
        ::kill(terminal.child(), SIGHUP);
        CHECK(terminal.finish() == 129);
    }
    {
        Terminal terminal(what);
        REQUIRE_MESSAGE(terminal.wait_for_line("> half a mess"), terminal.screen().text());
        terminal.type("age\r");
        REQUIRE(terminal.wait_for("xyzabc"));
        ::kill(terminal.child(), SIGKILL);
        CHECK(terminal.finish() == -SIGKILL);
    }
    Terminal terminal(what);
    REQUIRE_MESSAGE(terminal.wait_for_line("> half a message"), terminal.screen().text());
    // Text that Ctrl-C discards is not sent, but can be recalled.
    terminal.type(kCtrlC);
    begin(terminal);
    terminal.type(kUp);
    CHECK_MESSAGE(terminal.wait_for_line("> half a message"), terminal.screen().text());
    terminal.type(std::string(kCtrlC) + kCtrlD);
    CHECK(terminal.finish() == 0);
    Terminal fresh(what);
    begin(fresh);
    fresh.settle();
    CHECK(fresh.screen().cursor_line() == ">");
}

TEST_CASE("chat on a terminal: after a change of the model the journal has no tokens of the one before") {
    const std::string session = file("exchanged.session"), journal = session + ".journal";
    Terminal terminal(talk({"--session", session}), 24, 200);
    begin(terminal);
    terminal.type("one\r");
    REQUIRE(terminal.wait_for("> one\nabc\n"));
    begin(terminal);
    CHECK_FALSE(has(read_file(journal), "\"last_answer\":[]"));
    terminal.type("/model " + endless_model() + "\r");
    REQUIRE_MESSAGE(terminal.wait_for("goes on with"), terminal.screen().text());
    begin(terminal);
    CHECK_MESSAGE(has(read_file(journal), "\"last_answer\":[]"), read_file(journal));
    terminal.type("/continue\r");
    CHECK_MESSAGE(terminal.wait_for("\ndef\n"), terminal.screen().text());
}

TEST_CASE("chat on a terminal: changes behind an answer are in the journal, too") {
    const std::string session = file("changed.session");
    {
        Terminal terminal(talk({"--session", session}));
        begin(terminal);
        terminal.type("one\r");
        REQUIRE(terminal.wait_for("> one\nabc\n"));
        begin(terminal);
        terminal.type("two\r");
        REQUIRE(terminal.wait_for("> two\nabc\n"));
        begin(terminal);
        terminal.type("/undo\r");
        REQUIRE(terminal.wait_for("taken back: two"));
        begin(terminal);
        ::kill(terminal.child(), SIGKILL);
        CHECK(terminal.finish() == -SIGKILL);
    }
    Terminal terminal(talk({"--session", session}));
    CHECK_MESSAGE(terminal.wait_for("2 messages are taken from"), terminal.screen().text());
}

TEST_CASE("chat on a terminal: a message that had no answer when a chat was killed is announced as one") {
    const std::string session = file("only_asked.session");
    const Launch what = talk({"-n", "-1", "-c", "50000", "--session", session}, endless_model());
    {
        Terminal terminal(what);
        begin(terminal);
        terminal.type("hello\r");
        REQUIRE(terminal.wait_for("xyzabc"));
        ::kill(terminal.child(), SIGKILL);
        CHECK(terminal.finish() == -SIGKILL);
    }
    Terminal terminal(what, 24, 200);
    REQUIRE_MESSAGE(terminal.wait_for_line("> hello"), terminal.screen().text());
    CHECK_MESSAGE(
        has(terminal.screen().text(), "saved: a message without an answer is taken from " + session),
        terminal.screen().text());
}

TEST_CASE(
    "chat on a terminal: a window that is closed ends the program as SIGHUP does, and nothing is lost") {
    const TemporaryFolder state;
    const auto in_state = [&](std::vector<std::string> more, const std::string& model) {
        return with(talk(std::move(more), model), {"XDG_STATE_HOME=" + state.path.string()});
    };
    // While an answer is written, which then fails.
    const std::string session = file("window.session");
    {
        Terminal terminal(in_state({"-n", "-1", "-c", "50000", "--session", session}, endless_model()));
        begin(terminal);
        terminal.type("hello\r");
        REQUIRE(terminal.wait_for("xyzabc"));
        CHECK(terminal.hang_up() == 129);
    }
    {
        Terminal terminal(in_state({"--session", session}, endless_model()), 24, 200);
        CHECK_MESSAGE(terminal.wait_for(session + ": 2 messages"), terminal.screen().text());
        begin(terminal);
        terminal.type("half a line");
        terminal.settle();
        CHECK(terminal.hang_up() == 129);
    }
    {
        Terminal terminal(in_state({"--session", session}, endless_model()));
        CHECK_MESSAGE(terminal.wait_for_line("> half a line"), terminal.screen().text());
    }
    // A chat that is kept nowhere leaves its line among the earlier messages.
    {
        Terminal terminal(in_state({}, chat_model()));
        begin(terminal);
        terminal.type("not sent");
        terminal.settle();
        CHECK(terminal.hang_up() == 129);
    }
    Terminal terminal(in_state({}, chat_model()));
    begin(terminal);
    terminal.type(kUp);
    CHECK_MESSAGE(terminal.wait_for_line("> not sent"), terminal.screen().text());
}

TEST_CASE("run on a terminal: a window that is closed during an answer ends it as SIGHUP does") {
    Launch what = talk();
    what.arguments = {program(), "run", endless_model(), "hello", "--device",
                      "cpu",     "-c",  "300000",        "-t",    "1"};
    Terminal terminal(what);
    REQUIRE(terminal.wait_for("abc"));
    CHECK(terminal.hang_up() == 129);
}
