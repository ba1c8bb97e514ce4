// redline chat on a terminal: typing, editing, interrupting, and what the screen shows.
#include "support/chat_terminal.h"

using namespace redline;
using namespace redline::test;

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

TEST_CASE("chat on a terminal: the prompt alone is coloured") {
    Terminal terminal(talk());
    begin(terminal);
    terminal.settle();
    CHECK_MESSAGE(has(terminal.bytes(), "\x1b[32m>\x1b[0m "), terminal.bytes());
}

TEST_CASE("chat on a terminal: Ctrl-C ends an answer, and twice at the prompt the program") {
    Terminal terminal(talk({"-n", "-1", "-c", "50000"}, endless_model()));
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

TEST_CASE("chat on a terminal: arrows move in the line, and characters of any width are edited whole") {
    Terminal terminal(talk());
    begin(terminal);
    terminal.type("helo");
    terminal.type(kLeft);
    terminal.type("l");
    CHECK_MESSAGE(terminal.wait_for_line("> hello"), terminal.screen().text());
    CHECK(terminal.wait([&] { return terminal.screen().column() == 6; }));
    check_sent(terminal, "hello");
    terminal.type("日本語é");
    CHECK(terminal.wait([&] { return terminal.screen().column() == 2 + 7; }));
    terminal.type(std::string(kLeft) + kLeft + kBackspace);
    CHECK_MESSAGE(terminal.wait_for_line("> 日語é"), terminal.screen().text());
    CHECK(terminal.wait([&] { return terminal.screen().column() == 4; }));
    check_sent(terminal, "日語é");
}

TEST_CASE("chat on a terminal: a line longer than the screen, and than the system's 4095 bytes, is whole") {
    const std::string path = file("long.md");
    Terminal terminal(talk(), 10, 40);
    begin(terminal);
    std::string text;
    for (int i = 0; text.size() < 6000; ++i) text += fmt::format("{} ", i);
    terminal.type("/system " + text +
                  "\x01\x05"
                  "end\r");
    REQUIRE_MESSAGE(terminal.wait_for("the system text is set"), terminal.screen().text());
    terminal.type("/export " + path + "\r");
    REQUIRE_MESSAGE(terminal.wait_for("written"), terminal.screen().text());
    CHECK(read_file(path) == "## System\n\n" + text + "end\n");
}

TEST_CASE("chat on a terminal: pasted lines are one message, and so are lines of Alt-Enter and \"\"\"") {
    Terminal terminal(talk());
    begin(terminal);
    CHECK(terminal.screen().pastes_bracketed());
    terminal.paste("one\rtwo\rthree");
    CHECK_MESSAGE(terminal.wait_for("\nthree"), terminal.screen().text());
    check_sent(terminal, "one\\ntwo\\nthree");
    terminal.type(std::string("a") + kAltEnter + "b" + kUp + "c");  // above the end of b, behind a
    check_sent(terminal, "ac\\nb");
    terminal.type("\"\"\"x\r");
    REQUIRE(terminal.wait_for_line("..."));
    terminal.type("y\"\"\"");
    check_sent(terminal, "x\\ny");
}

TEST_CASE("chat on a terminal: earlier messages come back, in a later chat too, for their user's eyes only") {
    const TemporaryFolder state;
    const std::vector<std::string> home = {"XDG_STATE_HOME=" + state.path.string()};
    {
        Terminal terminal(with(talk(), home));
        begin(terminal);
        terminal.paste("one\rmore");
        check_sent(terminal, "one\\nmore");
        terminal.type(std::string("draft") + kUp);
        CHECK_MESSAGE(terminal.wait_for_line("> /undo"), terminal.screen().text());
        terminal.type(kDown);
        CHECK_MESSAGE(terminal.wait_for_line("> draft"), terminal.screen().text());
    }
    const auto path = state.path / "redline" / "history";
    CHECK((std::filesystem::status(path).permissions() & std::filesystem::perms::all) ==
          std::filesystem::perms(0600));
    Terminal terminal(with(talk(), home));
    begin(terminal);
    terminal.type(std::string(kUp) + kUp);
    CHECK_MESSAGE(terminal.wait_for("one\nmore"), terminal.screen().text());
    check_sent(terminal, "one\\nmore");
}

TEST_CASE("chat on a terminal: Ctrl-C takes a typed line back, Ctrl-D does not leave before its end") {
    Terminal terminal(talk());
    begin(terminal);
    terminal.type(std::string("hello") + kCtrlC);
    REQUIRE_MESSAGE(terminal.wait_for("hello^C\n"), terminal.screen().text());
    begin(terminal);
    terminal.type(std::string("xa") + kLeft + kLeft + kCtrlD);
    CHECK_MESSAGE(terminal.wait_for_line("> a"), terminal.screen().text());
    check_sent(terminal, "a");
}

TEST_CASE("chat on a terminal: a command nearly right comes back, a path is a message") {
    Terminal terminal(talk());
    begin(terminal);
    terminal.type("/regne now\r");
    CHECK_MESSAGE(terminal.wait_for("did you mean"), terminal.screen().text());
    CHECK_MESSAGE(terminal.wait_for_line("> /regne now"), terminal.screen().text());
    terminal.type("\x15/home/user is my folder");
    check_sent(terminal, "/home/user is my folder");
    terminal.type("/* a comment */");
    check_sent(terminal, "/* a comment */");
}

TEST_CASE("chat on a terminal: Tab completes commands and the names of files") {
    const std::string path = file("tab_target.gguf");
    write_file(path, "x");
    Terminal terminal(talk(), 24, 160);
    begin(terminal);
    terminal.type("/reg\t");
    CHECK_MESSAGE(terminal.wait_for_line("> /regenerate"), terminal.screen().text());
    terminal.type("\x15/load " + path.substr(0, path.size() - 9) + "\t");
    CHECK_MESSAGE(terminal.wait_for_line("> /load " + path), terminal.screen().text());
    terminal.type("\x15/s\t\t");
    CHECK_MESSAGE(terminal.wait_for("/save"), terminal.screen().text());
    CHECK_MESSAGE(terminal.wait_for_line("> /s"), terminal.screen().text());
}

TEST_CASE("chat on a terminal: a window of another size is drawn anew") {
    Terminal terminal(talk(), 24, 60);
    begin(terminal);
    terminal.type("a line of some words that is longer than thirty");
    REQUIRE(terminal.wait_for("thirty"));
    terminal.resize(24, 30);
    terminal.settle();
    terminal.type("!");
    CHECK_MESSAGE(terminal.wait_for("thirty!"), terminal.screen().text());
    check_sent(terminal, "a line of some\nwords that is longer than\nthirty!");
}

TEST_CASE("chat on a terminal: a short line stays where it is while its window is resized") {
    Terminal terminal(talk(), 24, 60);
    begin(terminal);
    terminal.type("short");
    REQUIRE(terminal.wait_for_line("> short"));
    for (const int columns : {50, 40, 70}) {
        terminal.resize(24, columns);
        terminal.settle();
    }
    terminal.type("er");
    REQUIRE_MESSAGE(terminal.wait_for_line("> shorter"), terminal.screen().text());
    const std::string text = terminal.screen().text();
    CHECK(text.find('>') == text.rfind('>'));
    check_sent(terminal, "shorter");
}

TEST_CASE("chat on a terminal: what is typed during an answer waits, unseen, for the prompt") {
    Terminal terminal(talk({"-n", "-1", "-c", "50000"}, endless_model()));
    begin(terminal);
    terminal.type("hello\r");
    REQUIRE(terminal.wait_for("xyzabc"));
    terminal.type("QQQ");
    terminal.settle();
    CHECK_FALSE(has(terminal.screen().text(), "QQQ"));
    terminal.type(kCtrlC);
    CHECK_MESSAGE(terminal.wait_for_line("> QQQ"), terminal.screen().text());
}

TEST_CASE("chat on a terminal: answers are wrapped between words, and figures stand below if wanted") {
    ChainModel chain;
    chain.chat = true;
    chain.next[ChainModel::kLetterA + 4] = ChainModel::kSpace;
    chain.next[ChainModel::kSpace] = ChainModel::kLetterA;
    chain.build().save(file("words.gguf"));
    {
        Terminal terminal(talk({"-n", "24"}, file("words.gguf")), 24, 20);
        begin(terminal);
        terminal.type("hello\r");
        REQUIRE(terminal.wait_for("\nabcde abcde abcde\nabcde\n["));
        CHECK_MESSAGE(terminal.wait_for("tok/s"), terminal.screen().text());
        begin(terminal);
        terminal.type("/set status off\rbye\r");
        CHECK_MESSAGE(terminal.wait_for("bye\nabcde abcde abcde\nabcde\n>"), terminal.screen().text());
        CHECK(terminal.screen().dim_seen());
        CHECK(terminal.screen().unknown() == "");
    }
    Terminal terminal(with(talk({"--no-status"}), {"NO_COLOR=1"}), 24, 40);
    begin(terminal);
    terminal.type("hello\r");
    REQUIRE(terminal.wait_for("\nabc\n>"));
    terminal.type("/stats\r/help\r");
    CHECK(terminal.wait_for("never taken as a"));
    CHECK_FALSE(terminal.screen().dim_seen());
    CHECK_FALSE(terminal.screen().colour_seen());
}

TEST_CASE("chat on a terminal: reasoning stands dim above the answer") {
    Terminal terminal(talk({"-n", "-1", "--no-status"}, thinking_model()));
    begin(terminal);
    terminal.type("hello\r");
    CHECK_MESSAGE(terminal.wait_for("hello\nabc\n\nxyz\n>"), terminal.screen().text());
    CHECK(has(terminal.bytes(), "\x1b[2mabc"));
    terminal.type("/think hide\rhello\r");
    CHECK_MESSAGE(terminal.wait_for("hello\nxyz\n>"), terminal.screen().text());
}

TEST_CASE("chat on a terminal: Ctrl-C while a long message is read gives it back, and counts what was read") {
    // A batch of one token, and thousands of them to read.
    Terminal terminal(talk({"-b", "1", "-c", "300000"}, endless_model()));
    begin(terminal);
    terminal.paste(std::string(100000, 'q'));
    terminal.type("\r");
    REQUIRE_MESSAGE(terminal.wait_for("reading: "), terminal.screen().text());
    CHECK(terminal.wait_for(" of 1000"));
    terminal.type(kCtrlC);
    REQUIRE_MESSAGE(terminal.wait_for("interrupted"), terminal.screen().text());
    CHECK(terminal.wait_for_line("> [pasted 100000 bytes]"));
    CHECK_FALSE(has(terminal.screen().text(), "reading: "));
    terminal.type(std::string("\x15") + "/stats\r");
    REQUIRE(terminal.wait_for("prompt: "));
    const std::string text = terminal.screen().text();
    const int read = std::atoi(text.substr(text.rfind("prompt: ") + 8, 10).c_str());
    CHECK(read > 100);
    CHECK(read < 100000);
}

TEST_CASE("chat on a terminal: an earlier message is edited, and the talk goes on from there") {
    Terminal terminal(talk());
    begin(terminal);
    terminal.type("one\rtwo\r");
    REQUIRE(terminal.wait_for("> two\nabc\n["));
    begin(terminal);
    terminal.type("/edit 1\r");
    REQUIRE_MESSAGE(terminal.wait_for_line("> one"), terminal.screen().text());
    terminal.type(kCtrlC);
    begin(terminal);
    terminal.type("/stats\r");
    CHECK_MESSAGE(terminal.wait_for("2 turns"), terminal.screen().text());
    begin(terminal);
    terminal.type("/edit 1\r");
    REQUIRE(terminal.wait_for_line("> one"));
    terminal.type(" more\r");
    REQUIRE(terminal.wait_for("> one more\nabc\n"));
    begin(terminal);
    terminal.type("/stats\r");
    CHECK_MESSAGE(terminal.wait_for("1 turn\n"), terminal.screen().text());
}

TEST_CASE("chat on a terminal: an empty line leaves the editing of an earlier message") {
    Terminal terminal(talk());
    begin(terminal);
    terminal.type("one\rtwo\r");
    REQUIRE(terminal.wait_for("> two\nabc\n["));
    begin(terminal);
    terminal.type("/edit 1\r");
    REQUIRE_MESSAGE(terminal.wait_for_line("> one"), terminal.screen().text());
    terminal.type("\x15\r");
    begin(terminal);
    terminal.type("three\r");
    REQUIRE(terminal.wait_for("> three\nabc\n"));
    begin(terminal);
    terminal.type("/stats\r");
    CHECK_MESSAGE(terminal.wait_for("3 turns"), terminal.screen().text());
}

TEST_CASE("chat on a terminal: a dumb one is written to plainly") {
    for (const std::string kind : {"TERM=dumb", "TERM="}) {
        Terminal terminal(with(talk(), {kind}));
        begin(terminal);
        terminal.type("hello\r");
        REQUIRE_MESSAGE(terminal.wait_for("\nabc\n"), terminal.screen().text());
        begin(terminal);
        CHECK_FALSE(has(terminal.bytes(), "\x1b"));
        terminal.type(kCtrlD);
        CHECK(terminal.finish() == 0);
    }
}

TEST_CASE("chat on a terminal: line ends and control characters of a paste are text, and a change is said") {
    Terminal terminal(talk());
    begin(terminal);
    terminal.paste("one\r\ntwo\rthree\tfour");
    check_sent(terminal, "one\\ntwo\\nthree\\tfour");
    terminal.paste("a\x1b[31mb\x03\xff");
    REQUIRE_MESSAGE(terminal.wait_for("control characters stand as signs (2)"), terminal.screen().text());
    CHECK(terminal.wait_for("as U+FFFD (1)"));
    REQUIRE(terminal.wait_for_line("> a\u241b[31mb\u2403\uFFFD"));
    check_sent(terminal, "a\u241b[31mb\u2403\uFFFD");
}

TEST_CASE("chat on a terminal: a long paste is folded, opens by Tab, and is sent and remembered whole") {
    Terminal terminal(talk({"-c", "2000"}));
    begin(terminal);
    std::string text, sent;
    for (int i = 0; i < 12; ++i) {
        text += fmt::format("{}\r", i);
        sent += fmt::format("{}\\n", i);
    }
    terminal.type("see ");
    terminal.paste(text);
    CHECK_MESSAGE(terminal.wait_for_line("> see [pasted 12 lines]"), terminal.screen().text());
    terminal.type("!");
    check_sent(terminal, "see " + sent + "!");
    terminal.type(std::string(kUp) + kUp);
    CHECK_MESSAGE(terminal.wait_for_line("> [message of 13 lines]"), terminal.screen().text());
    terminal.type("\t");
    CHECK_MESSAGE(terminal.wait_for("> see 0\n1\n2\n"), terminal.screen().text());
    terminal.type("?");
    check_sent(terminal, "see " + sent + "!?");
}

TEST_CASE("chat on a terminal: a folded paste that was deleted is whole when it is brought back") {
    Terminal terminal(talk({"-c", "2000"}));
    begin(terminal);
    std::string text, sent;
    for (int i = 0; i < 12; ++i) {
        text += fmt::format("{}\r", i);
        sent += fmt::format("{}\\n", i);
    }
    terminal.paste(text);
    REQUIRE_MESSAGE(terminal.wait_for_line("> [pasted 12 lines]"), terminal.screen().text());
    terminal.type("\x15/stats\r");
    REQUIRE_MESSAGE(terminal.wait_for("0 turns"), terminal.screen().text());
    begin(terminal);
    terminal.type("\x19");
    REQUIRE_MESSAGE(terminal.wait_for_line("> [pasted 12 lines]"), terminal.screen().text());
    check_sent(terminal, sent);
}

TEST_CASE("chat on a terminal: a message that does not fit comes back folded, below it how much does") {
    Terminal terminal(talk({"-c", "128"}), 24, 200);
    begin(terminal);
    terminal.type("/read none\r");
    begin(terminal);
    terminal.paste(std::string(900, 'q'));
    terminal.type("\r");
    REQUIRE_MESSAGE(terminal.wait_for("the message has 900 tokens, and"), terminal.screen().text());
    CHECK(has(terminal.screen().text(), "> [pasted 900 bytes]\nredline: the message has"));
    CHECK(has(terminal.screen().text(), " fit in the context of 128"));
    CHECK_MESSAGE(terminal.wait_for_line("> [pasted 900 bytes]"), terminal.screen().text());
    terminal.type("\x15ok");
    check_sent(terminal, "ok");
}

TEST_CASE("chat on a terminal: Tab offers settings with their values, models and files to read") {
    const TemporaryFolder models;
    std::filesystem::copy(chat_model(), models.path / "little-model.gguf");
    Terminal terminal(with(talk(), {"REDLINE_MODELS=" + models.path.string()}), 24, 120);
    begin(terminal);
    const auto completes = [&](const std::string& typed, const std::string& line) {
        terminal.type("\x15" + typed + "\t");
        CHECK_MESSAGE(terminal.wait_for_line("> " + line), terminal.screen().text());
    };
    completes("/set top-k", "/set top-k");
    completes("/set top-k ", "/set top-k 40");
    completes("/set status of", "/set status off");
    completes("/model little", "/model little-model");
    completes("/read " + models.path.string() + "/li",
              "/read " + models.path.string() + "/little-model.gguf");
    terminal.type("\x15/system be brief\r");
    begin(terminal);
    completes("/system b", "/system be brief");
}

TEST_CASE("chat on a terminal: an answer is copied without the line ends of its rows") {
    ChainModel chain;
    chain.chat = true;
    chain.next[ChainModel::kLetterA + 4] = ChainModel::kSpace;
    chain.next[ChainModel::kSpace] = ChainModel::kLetterA;
    chain.build().save(file("words_to_copy.gguf"));
    Terminal terminal(talk({"-n", "23", "--no-status"}, file("words_to_copy.gguf")), 24, 20);
    begin(terminal);
    terminal.type("hello\r");
    REQUIRE(terminal.wait_for("\nabcde abcde abcde\nabcde\n>"));
    CHECK_MESSAGE(has(terminal.screen().copied(), "\nabcde abcde abcde   abcde\n>"),
                  terminal.screen().copied());
}

TEST_CASE("chat on a terminal: progress leaves nothing behind, in a narrow window too") {
    const std::string session = file("progress.session");
    Terminal terminal(talk({"-b", "1", "-c", "300000", "--session", session}, endless_model()), 24, 20);
    begin(terminal);
    terminal.paste(std::string(100000, 'q'));
    terminal.type("\r");
    REQUIRE_MESSAGE(terminal.wait_for("reading: "), terminal.screen().text());
    terminal.settle(2500);
    terminal.type(kCtrlC);
    REQUIRE(terminal.wait_for("interrupted"));
    CHECK_FALSE(has(terminal.screen().text(), "reading: "));
    terminal.type("\x15/set max-tokens 3\rhello\r");
    REQUIRE_MESSAGE(terminal.wait_for("hello\nabc\n"), terminal.screen().text());
    begin(terminal);
    terminal.type(kCtrlD);
    CHECK(terminal.finish() == 0);
    CHECK(has(terminal.bytes(), "saving"));
    CHECK_FALSE(has(terminal.screen().text(), "saving"));
    CHECK(has(terminal.screen().text(), "saved in"));
}

TEST_CASE("run on a terminal: a model's file alone begins a chat, and a shown prompt has coloured marks") {
    Launch what = talk();
    what.arguments = {program(), "run", chat_model()};
    Terminal chat(what);
    begin(chat);
    chat.type("hello\r");
    CHECK_MESSAGE(chat.wait_for("\nabcdef"), chat.screen().text());
    begin(chat);
    chat.type(kCtrlD);
    CHECK(chat.finish() == 0);

    what.arguments = {program(), "run", chat_model(), "-p", "say <|im_end|> \x1b[31m", "--show-prompt"};
    Terminal shown(what);
    CHECK(shown.finish() == 0);
    CHECK(has(shown.bytes(), "\x1b[36m<|im_start|>\x1b[0muser"));
    // The user's text is never a mark, and sets no colours.
    CHECK(has(shown.bytes(), "say <|im_end|> "));
    CHECK_FALSE(has(shown.bytes(), "\x1b[31m"));
    what.environment.push_back("NO_COLOR=1");
    Terminal plain(what);
    CHECK(plain.finish() == 0);
    CHECK_FALSE(has(plain.bytes(), "\x1b[36m"));
    CHECK(has(plain.bytes(), "<|im_start|>user"));
}

TEST_CASE("run on a terminal: the reading of a long prompt is shown, and words are not broken") {
    write_file(file("long.txt"), std::string(100000, 'q'));
    Launch what = talk();
    what.arguments = {program(), "run", endless_model(), "--device", "cpu", "-f", file("long.txt"), "-b",
                      "1",       "-c",  "300000",        "-t",       "1"};
    Terminal terminal(what);
    REQUIRE_MESSAGE(terminal.wait_for("reading: "), terminal.screen().text());
    CHECK(terminal.wait_for(" of 1000"));
    terminal.type(kCtrlC);
    REQUIRE(terminal.wait_for("interrupted"));
    CHECK(terminal.finish() == 130);
    CHECK_FALSE(has(terminal.screen().text(), "reading: "));

    what.arguments = {program(), "run", endless_model(), "--device", "cpu", "-c", "300000", "-t", "1",
                      "-p",      "q",   "--json"};
    Terminal unseen(what);
    REQUIRE_MESSAGE(unseen.wait_for("answering  "), unseen.screen().text());
    unseen.type(kCtrlC);
    CHECK(unseen.finish() == 130);
    CHECK_FALSE(has(unseen.screen().text(), "answering  "));

    const std::string demo = RL_SOURCE_DIR "/models/demo/redline-demo-q8_0.gguf";
    what.arguments = {program(), "run", demo, "What is GGUF?", "--temp", "0", "--device", "cpu", "-q"};
    Terminal wrapped(what);
    CHECK(wrapped.finish() == 0);
    CHECK_MESSAGE(has(wrapped.screen().text(), "holds the weights, the\ntokenizer"), wrapped.screen().text());
}

TEST_CASE("chat on a terminal: a line that comes back is not joined with what was typed ahead") {
    Terminal terminal(talk());
    begin(terminal);
    terminal.type("/sytem x\rHello");
    REQUIRE_MESSAGE(terminal.wait_for_line("> Hello"), terminal.screen().text());
    terminal.type(kUp);
    CHECK_MESSAGE(terminal.wait_for_line("> /sytem x"), terminal.screen().text());
    terminal.type(kDown);
    REQUIRE_MESSAGE(terminal.wait_for_line("> Hello"), terminal.screen().text());
    check_sent(terminal, "Hello");
    // The same line stands there before it is sent: it has come back once the message is there, too.
    const auto messages = [&] {
        size_t count = 0;
        const std::string text = terminal.screen().text(), part = "is not a command";
        for (size_t at = text.find(part); at != text.npos; at = text.find(part, at + 1)) ++count;
        return count;
    };
    const auto comes_back = [&](const std::string& line) {
        const size_t before = messages();
        terminal.type(line + "\r");
        return terminal.wait(
            [&] { return messages() > before && terminal.screen().cursor_line() == "> " + line; });
    };
    // A user who goes on typing has not seen the line yet; a paste is the same.
    bool replaced = false;
    for (int tries = 0; tries < 5 && !replaced; ++tries) {  // a busy machine may take longer than a second
        REQUIRE_MESSAGE(comes_back("/sytem y"), terminal.screen().text());
        terminal.paste("Hi");
        REQUIRE(terminal.wait([&] { return terminal.screen().cursor_line().ends_with("Hi"); }));
        replaced = terminal.screen().cursor_line() == "> Hi";
        if (!replaced) terminal.type(kCtrlC), begin(terminal);
    }
    REQUIRE_MESSAGE(replaced, terminal.screen().text());
    terminal.type(" you");
    check_sent(terminal, "Hi you");
    // Keys that move or delete are meant for it.
    REQUIRE_MESSAGE(comes_back("/sytem z"), terminal.screen().text());
    terminal.type(std::string(kBackspace) + "w");
    CHECK_MESSAGE(terminal.wait_for_line("> /sytem w"), terminal.screen().text());
}

TEST_CASE("chat on a terminal: a message that is edited makes way for one that was typed ahead") {
    Terminal terminal(talk());
    begin(terminal);
    terminal.type("one\r");
    REQUIRE(terminal.wait_for("> one\nabc\n["));
    begin(terminal);
    terminal.type("/edit\rtwo");
    REQUIRE_MESSAGE(terminal.wait_for_line("> two"), terminal.screen().text());
    CHECK(has(terminal.screen().text(), "the arrow up brings it"));
    terminal.type("\r");
    REQUIRE(terminal.wait_for("> two\nabc\n"));
    begin(terminal);
    terminal.type("/stats\r");
    CHECK_MESSAGE(terminal.wait_for("1 turn\n"), terminal.screen().text());
}

TEST_CASE("run and chat on a terminal: an answer that -n has cut is marked") {
    Launch what = talk();
    const auto run = [&](std::vector<std::string> more) {
        what.arguments = {program(), "run",    chat_model(), "hello", "--device",
                          "cpu",     "--temp", "0",          "-t",    "1"};
        what.arguments.insert(what.arguments.end(), more.begin(), more.end());
        Terminal terminal(what);
        CHECK(terminal.finish() == 0);
        return terminal.screen().text();
    };
    CHECK(has(run({"-n", "3"}), "abc\n(cut after 3 tokens: -n)\n"));
    for (const std::vector<std::string>& more : std::vector<std::vector<std::string>>{
             {"-n", "-1"}, {"-n", "3", "-q"}, {"-n", "3", "--json"}, {"-n", "8", "--stop", "d"}})
        CHECK_FALSE(has(run(more), "(cut"));
    Terminal terminal(talk());
    begin(terminal);
    terminal.type("hello\r");
    CHECK_MESSAGE(terminal.wait_for("3 tokens (cut: -n; /continue goes on), context"),
                  terminal.screen().text());
    begin(terminal);
    terminal.type("/set max-tokens -1\rhello\r");
    REQUIRE_MESSAGE(terminal.wait_for(" 30 tokens, context"), terminal.screen().text());
}
