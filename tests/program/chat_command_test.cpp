// The commands of redline chat, and conversations that are kept in files.
#include "json/json.h"
#include "support/program.h"

using namespace redline;
using namespace redline::test;

namespace {

Outcome chat(const std::string& input, std::vector<std::string> more = {}) {
    std::vector<std::string> all = {"chat", "-m", chat_model(), "--temp", "0", "-n", "2", "-t", "1"};
    all.insert(all.end(), more.begin(), more.end());
    return redline_(all, input);
}

std::string fresh(const std::string& name) {
    const std::string path = file(name);
    std::filesystem::remove(path);
    return path;
}

unsigned mode_of(const std::string& path) {
    return unsigned(std::filesystem::status(path).permissions());
}

// An answer to each message that depends on chance, and so on the seed and on all that came before.
std::vector<std::string> by_chance(const std::vector<std::string>& more = {}) {
    std::vector<std::string> all = {"--temp", "30", "-s", "7", "-n", "8"};
    all.insert(all.end(), more.begin(), more.end());
    return all;
}

std::string ring_chat_model() {
    static const std::string path = [] {
        ChainModel chain;
        chain.chat = true;
        chain.next[ChainModel::kLetterA + 25] = ChainModel::kLetterA;
        chain.build().save(file("ring_chat.gguf"));
        return file("ring_chat.gguf");
    }();
    return path;
}

}  // namespace

TEST_CASE("chat: messages are taken back, answered again, and answers go on") {
    const Outcome got = chat("hello\n/continue\n/continue\n/undo\n/undo\n/continue\n");
    CHECK(got.out == "ab\ncd\nef\n");
    CHECK(has(got.err, "taken back: hello"));
    CHECK(has(got.err, "no message to take back"));
    CHECK(has(got.err, "there is no answer yet"));
    CHECK(got.code == 1);
    // Text after a continuation is part of the answer.
    const std::string path = fresh("on.md");
    CHECK(chat("/system be brief\nhello\n/continue\nmore\n/export " + path + "\n").code == 0);
    CHECK(read_file(path) ==
          "## System\n\nbe brief\n\n## User\n\nhello\n\n## Assistant\n\nabcd\n\n## User\n\nmore\n\n"
          "## Assistant\n\nab\n");
    CHECK(mode_of(path) == 0600);
    CHECK(has(chat("/edit\n").err, "no message to edit"));
    CHECK(has(chat("hello\n/edit\n").err, "/undo"));
}

TEST_CASE("chat: the answer before a turn that is taken back goes on, and is not lost") {
    const std::string path = fresh("before.md");
    const Outcome got = chat("one\ntwo\n/undo\n/continue\n/continue\n/export " + path + "\n");
    CHECK(got.code == 0);
    CHECK(got.out == "ab\nab\ncd\nef\n");
    CHECK(read_file(path) == "## User\n\none\n\n## Assistant\n\nabcdef\n");
}

TEST_CASE("chat: /continue of an answer that fills the context blames the answer and not the message") {
    const Outcome got = chat("hello\n/continue\n", {"-m", ring_chat_model(), "-n", "-1", "-c", "128"});
    CHECK(got.code == 1);
    CHECK(has(got.err, "the answer, 12"));
    CHECK(has(got.err, "fills the context of 128"));
    CHECK_FALSE(has(got.err, "the message has"));
}

TEST_CASE("chat: an answer that is cut within a character goes on with the whole of it") {
    // Behind "z" stand the three bytes of the euro sign, each a token.
    for (const std::string cut : {"27", "28"}) {
        const std::string path = fresh("cut.md");
        const Outcome got = chat("hello\n/set max-tokens -1\n/continue\n/export " + path + "\n", {"-n", cut});
        CHECK(got.out == "abcdefghijklmnopqrstuvwxyz\xEF\xBF\xBD\n\xE2\x82\xAC!\n");
        CHECK(has(read_file(path), "wxyz\xE2\x82\xAC!\n"));
    }
}

TEST_CASE("chat: a conversation is exported as JSON, and nothing is overwritten") {
    const std::string path = fresh("talk.json");
    CHECK(chat("hello\n/export " + path + "\n").code == 0);
    const auto read = parse_json(read_file(path));
    REQUIRE(read["messages"].size() == 2);
    CHECK(read["messages"][0] == Json({{"role", "user"}, {"content", "hello"}}));
    CHECK(read["messages"][1] == Json({{"role", "assistant"}, {"content", "ab"}}));
    const Outcome again = chat("bye\n/export " + path + "\n");
    CHECK(again.code == 1);
    CHECK(has(again.err, "exists"));
    CHECK(has(chat("/export talk.txt\n").err, ".md is Markdown"));
    write_file(file("precious"), "notes");
    CHECK(has(chat("hello\n/save " + file("precious") + "\n").err, "is no saved conversation"));
    const std::string nowhere = file("no folder/x");
    CHECK(has(chat("hello\n/save " + nowhere + "\n").err, "cannot create " + nowhere + ".lock: "));
    CHECK(read_file(file("precious")) == "notes");
}

TEST_CASE("chat: sampling values are changed between answers") {
    const Outcome got = chat("a\n/set max-tokens 4\na\n/set\n/set top_k 7\n/set --temp=0.5\n/set\n");
    CHECK(got.code == 0);
    CHECK(got.out == "ab\nabcd\n");
    for (const char* line : {"  temp                  0\n", "  max-tokens            4\n",
                             "  top-k                 7\n", "  temp                  0.5\n"})
        CHECK_MESSAGE(has(got.err, line), line, "\n", got.err);
    for (const auto& [line, words] :
         {std::pair<std::string, std::string>{"/set temp hot", "/set temp takes a number, not \"hot\""},
          {"/set top-q 1", "did you mean top-"},
          {"/set samplers nonsense", "nonsense"},
          {"/set top-p 2", "top_p"},
          {"/set status perhaps", "on or off"},
          {"/set ignore-eos perhaps", "on or off"},
          {"/set logit-bias 3", "ID+BIAS"},
          {"/set logit-bias", "ID+BIAS"},
          {"/set dry-sequence-breaker", "or none"}}) {
        const Outcome refused = chat(line + "\n");
        CHECK(refused.code == 1);
        CHECK_MESSAGE(has(refused.err, words), refused.err);
    }
    // Commands that are lists: token 3 is "a", with which an answer begins.
    const Outcome lists = chat(
        "/set logit-bias 3-inf 4+50\na\n/set\n/set logit-bias none\na\n/set dry-sequence-breaker \\n ; x\n"
        "/set samplers top_k; temperature\n/set ignore-eos on\n/set\n",
        {"-n", "1"});
    CHECK(lists.code == 0);
    CHECK(lists.out == "b\na\n");
    for (const char* line : {"  logit-bias            3-inf 4+50\n", "  dry-sequence-breaker  \\n : \" *\n",
                             "  logit-bias            none\n", "  dry-sequence-breaker  \\n ; x\n",
                             "  samplers              top_k; temperature\n", "  ignore-eos            on\n"})
        CHECK_MESSAGE(has(lists.err, line), line, "\n", lists.err);
}

TEST_CASE("chat: what is there is shown, and what there is not is refused politely") {
    const Outcome got =
        chat("/show\n/show template\n/tokens ab\n/model\n/image x.png\n", {"-sys", "be brief"});
    for (const char* part : {"plan: 2/2 layers on cpu", "template: the model's chat template",
                             "memory: weights", "system: be brief", "context: 0 of", "{% for message in",
                             "2 tokens: 3 \"a\" 4 \"b\"", "chat.gguf)", "text only"})
        CHECK_MESSAGE(has(got.err, part), part, "\n", got.err);
    CHECK(has(chat("/show me\n").err, "not \"me\""));
    // Sampling values, and which of them the model file gives.
    CHECK(has(got.err, "sampling: temp 0, top-k 40, top-p 0.95, min-p 0.05"));
    CHECK_FALSE(has(got.err, "recommends"));
    ChainModel chain;
    chain.chat = true;
    chain.extra.add("general.sampling.top_k", int32_t(7));
    chain.build().save(file("recommends.gguf"));
    for (const char* part : {"/show\n", "/show sampling\n"}) {
        const Outcome values = chat(part, {"-m", file("recommends.gguf")});
        CHECK(has(values.err, "the model file recommends: top_k 7"));
        CHECK(has(values.err, part == std::string("/show\n") ? ", top-k 7" : "  top-k                 7\n"));
    }
}

TEST_CASE("chat: a word behind a slash is a command or comes back, a path or a comment is a message") {
    CHECK(chat("/home/user is my folder\n/tmp is full\n//\n/* x */\n").out == "ab\nab\nab\nab\n");
    const Outcome unknown = chat("/what is this\n /what is this\n");
    CHECK(unknown.code == 1);
    CHECK(unknown.out == "ab\n");
    CHECK(has(unknown.err, "/what is not a command; /help lists them. A blank before it sends it as text"));
    const Outcome near = chat("/regne\n/sytem be brief\n");
    CHECK(near.code == 1);
    CHECK(near.out.empty());
    CHECK(has(near.err, "/regne is not a command; did you mean /regen?"));
    CHECK(has(near.err, "did you mean /system?"));
}

TEST_CASE("chat: the system text is shown, set and taken away") {
    const Outcome got = chat("/system\n/system be brief\n/system\n/system none\n/system\n");
    CHECK(got.code == 0);
    CHECK(has(got.err, "no system text\nthe system text is set\nbe brief\nno system text\nno system text\n"));
}

TEST_CASE("chat: files go with the next message, and only with that") {
    const std::string path = fresh("sent.json"), one = file("one.txt"), two = file("two two.txt");
    write_file(one, "abc\r\ndef\n");
    write_file(two, "xyz");
    write_file(file("binary"), std::string("a\0b", 3));
    const Outcome got = chat("/read " + one + "\n/read " + two + "\n/read\ncompare\nand?\n/read " + two +
                                 "\n/read none\nthen?\n/export " + path + "\n",
                             {"-c", "1000"});
    CHECK_MESSAGE(got.code == 0, got.err);
    CHECK(has(got.err, one + ": 7 tokens go with the next message (with line feeds for its CRLF)\n"));
    CHECK(has(got.err, "no file goes with the next message\n"));
    const auto messages = parse_json(read_file(path))["messages"];
    REQUIRE(messages.size() == 6);
    CHECK(messages[0]["content"] == one + ":\n```\nabc\ndef\n```\n\n" + two + ":\n```\nxyz\n```\n\ncompare");
    CHECK(messages[2]["content"] == "and?");
    CHECK(messages[4]["content"] == "then?");
    CHECK(has(chat("/read " + file("binary") + "\n").err, "is no text: its byte 1 is 0"));
    write_file(file("large.txt"), std::string(5000, 'a'));
    const Outcome large = chat("/read " + file("large.txt") + "\n", {"-c", "1000"});
    CHECK(large.code == 1);
    CHECK(has(large.err, "has 5000 tokens, more than fit in the context of 1000: -c makes more room"));
    CHECK(has(chat("/read " + one + "\n").err, one + " was not sent"));
}

TEST_CASE("chat: what is no UTF-8 is said, and the model and the files have the same of it") {
    const std::string path = fresh("bytes.json");
    const Outcome got = chat("caf\xE9\r\n/export " + path + "\n");
    CHECK(got.code == 0);
    CHECK(has(got.err, "the message is no UTF-8"));
    CHECK(parse_json(read_file(path))["messages"][0]["content"] == "caf\uFFFD");
}

TEST_CASE("chat: a session that is cleared or not changed is kept so") {
    const std::string path = fresh("cleared.session");
    CHECK(chat("one\n", {"--session", path}).code == 0);
    const auto written = std::filesystem::last_write_time(path);
    const std::string before = read_file(path);
    CHECK_FALSE(has(chat("/stats\n", {"--session", path}).err, "saved in"));
    CHECK(std::filesystem::last_write_time(path) == written);
    CHECK(chat("/clear\n", {"--session", path}).code == 0);
    CHECK(has(chat("/undo\n", {"--session", path}).err, "no message to take back"));
    CHECK_FALSE(std::filesystem::exists(path + ".lock"));
    // A file of the version before knew nothing of what is not read, or of drafts.
    write_file(path, before);
    CHECK(has(chat("/undo\n", {"--session", path}).err, "taken back: one"));
}

TEST_CASE("chat: a new session with a bare name is saved again and again") {
    const TemporaryFolder folder;
    const std::filesystem::path before = std::filesystem::current_path();
    const std::string model = chat_model();
    std::filesystem::current_path(folder.path);
    const Outcome got = chat("one\n/save\ntwo\n/save\nthree\n", {"--session", "bare.session"});
    std::filesystem::current_path(before);
    CHECK_MESSAGE(got.code == 0, got.err);
    CHECK_FALSE(has(got.err, "is in use"));
    CHECK(has(got.err, "saved in bare.session: 6 messages"));
    CHECK(std::distance(std::filesystem::directory_iterator(folder.path), {}) == 1);
}

TEST_CASE("chat: a journal that cannot be used is set aside, and the file goes on without it") {
    const std::string path = fresh("damaged.session"), journal = path + ".journal";
    CHECK(chat("one\n", {"--session", path}).code == 0);
    for (const std::string& text :
         {std::string(), std::string("{\"messages\":"),
          std::string("{\"messages\":[],\"last_answer\":[999999],\"answers\":0,\"seed\":0}")}) {
        std::filesystem::remove(journal + ".bad");
        write_file(journal, text);
        const Outcome got = chat("/undo\n", {"--session", path});
        CHECK(has(got.err, "it is now " + journal + ".bad"));
        CHECK(has(got.err, "taken back: one"));
        CHECK(read_file(journal + ".bad") == text);
        CHECK_FALSE(std::filesystem::exists(journal));
        CHECK(chat("/clear\none\n", {"--session", path}).code == 0);
    }
    // One set aside before stays.
    write_file(journal, "x");
    CHECK(has(chat("/stats\n", {"--session", path}).err, "it is now " + journal + ".bad2"));
    std::filesystem::remove(path);
    write_file(journal, "x");
    const Outcome alone = chat("one\n", {"--session", path});
    CHECK(alone.code == 1);
    CHECK(alone.out.empty());
    CHECK(has(alone.err, "remove or rename " + journal + " to begin anew"));
    CHECK(read_file(journal) == "x");
    std::filesystem::remove(journal);
}

TEST_CASE("chat: of a conversation nothing is read twice that did not change") {
    const auto statistics = [](const Outcome& got) {
        std::vector<std::string> lines;
        std::istringstream text(got.err);
        for (std::string line; std::getline(text, line);)
            if (line.starts_with("prompt: ")) lines.push_back(line.substr(8, line.find(" in ") - 8));
        return lines;
    };
    // A message is preceded by its marks and those that end the answer before it, some 20 tokens.
    const Outcome got = chat("abcdefghijklmnopqrst\n/stats\nab\n/stats\nab\n/stats\n/undo\nac\n/stats\n");
    const std::vector<std::string> read = statistics(got);
    REQUIRE(read.size() == 4);
    CHECK(read[1] == read[2]);
    CHECK(std::stoi(read[1]) < std::stoi(read[0]) - 5);
    CHECK(std::stoi(read[3]) < std::stoi(read[2]));
    // An answer in other tokens than the tokenizer would choose: of chance there are bytes among them.
    const Outcome odd = chat("abcdefghijklmnopqrst\n/stats\nab\n/stats\n", by_chance({"-n", "20"}));
    REQUIRE(statistics(odd).size() == 2);
    CHECK(std::stoi(statistics(odd)[1]) <= std::stoi(read[1]) + 1);
}

TEST_CASE(
    "chat: in a full context the model reads the latest turns and the system text, and files keep all") {
    const std::string path = fresh("full.json");
    std::string input;
    for (int i = 0; i < 9; ++i) input += fmt::format("message {}\n", i);
    // A message without any chance of room takes no turn with it.
    input += std::string(300, 'a') + "\n/export " + path + "\n";
    const std::string session = fresh("full.session");
    const Outcome got = chat(input + "/stats\n", {"-c", "128", "-sys", "be brief", "--session", session});
    CHECK(got.code == 1);
    CHECK(has(got.err, "from now on the model reads the latest turns only"));
    CHECK(has(got.err, "the message has 300 tokens, and"));
    CHECK(has(got.err, "the model was trained for 256 tokens, so the message has to be shorter"));
    CHECK(has(got.err, "9 turns; the oldest"));
    const auto check_all = [](const std::string& exported) {
        const auto messages = parse_json(read_file(exported))["messages"];
        REQUIRE(messages.size() == 1 + 2 * 9);
        CHECK(messages[0]["content"] == "be brief");
        for (size_t i = 0; i < 9; ++i) CHECK(messages[1 + 2 * i]["content"] == fmt::format("message {}", i));
        CHECK(messages[18]["content"] == "ab");
    };
    check_all(path);
    // The file has all of them, too, and the model goes on with what it read, at once.
    const std::string again = fresh("again.json");
    const Outcome on =
        chat("/stats\nmore\n/stats\n/undo\n/export " + again + "\n", {"-c", "128", "--session", session});
    CHECK_MESSAGE(on.code == 0, on.err);
    CHECK(has(on.err, "9 turns; the oldest"));
    check_all(again);
    const size_t read = on.err.find("prompt: ");
    REQUIRE(read != std::string::npos);
    CHECK(std::stoi(on.err.substr(read + 8)) < 48);
    // A message that is no longer read is taken back as any other, and in a larger context all are read.
    const Outcome back =
        chat(std::string("/undo\n/undo\n/undo\n/undo\n/undo\n/undo\n/undo\n/stats\nhi\n/stats\n"),
             {"-c", "128", "--session", session});
    CHECK(has(back.err, "taken back: message 2"));
    CHECK(has(back.err, "2 turns; the oldest 4 messages are not read"));
    CHECK(back.err.ends_with(" 3 turns\n") == false);
    const Outcome large = chat("more\n/stats\n", {"-c", "2048", "--session", session});
    CHECK_MESSAGE(has(large.err, "4 turns\n"), large.err);
}

TEST_CASE("chat: a full context is emptied by half, so that little is read anew") {
    std::string input;
    constexpr int kTurns = 24;
    for (char letter = 'a'; letter < 'a' + kTurns; ++letter)
        input += std::string(5, letter) + "\n/stats\n";  // none is like another
    const Outcome got = chat(input, {"-c", "192"});
    CHECK(got.code == 0);
    int total = 0, anew = 0;
    std::istringstream text(got.err);
    for (std::string line; std::getline(text, line);) {
        if (!line.starts_with("prompt: ")) continue;
        const int read = std::stoi(line.substr(8));
        total += read;
        anew += read > 40 ? 1 : 0;
    }
    // A turn has some 40 tokens, and 192 hold three with their answers: at most each second turn rereads.
    CHECK(has(got.err, "reads the latest turns only"));
    CAPTURE(total);
    CHECK(anew >= 2);
    CHECK(anew <= kTurns / 2);
}

TEST_CASE("chat: a saved conversation goes on at once, and as if it had never ended") {
    on_each_device([] {
        const std::string path = fresh("talk.session");
        const Outcome whole = chat("one\ntwo\nthree\n/stats\n", by_chance());
        REQUIRE_MESSAGE(whole.code == 0, whole.err);
        const Outcome first = chat("one\ntwo\n", by_chance({"--session", path}));
        CHECK_MESSAGE(first.code == 0, first.err);
        CHECK(mode_of(path) == 0600);
        const Outcome second = chat("three\n/stats\n", by_chance({"--session", path}));
        CHECK_MESSAGE(second.code == 0, second.err);
        CHECK(first.out + second.out == whole.out);
        const auto from_cache = [](const std::string& text) {
            const size_t at = text.find(" more from the cache");
            REQUIRE(at != std::string::npos);
            return text.substr(text.rfind(' ', at - 1), at - text.rfind(' ', at - 1));
        };
        CHECK(from_cache(second.err) == from_cache(whole.err));
        const Outcome seeded =
            chat("four\n/set\n", by_chance({"--session", path, "-s", "8", "-sys", "be odd"}));
        CHECK(has(seeded.err, "  seed                  8\n"));
        CHECK(has(chat("/show system\n", {"--session", path}).err, "be odd"));
        // By commands, and on from an answer that was cut short.
        const std::string other = fresh("other.session");
        CHECK(chat("one\n/save " + other + "\n").out == "ab\n");
        CHECK(chat("/load " + other + "\n/continue\n/save " + other + "\n").out == "cd\n");
        CHECK(chat("/load " + other + "\n/continue\n").out == "ef\n");
    });
}

TEST_CASE("chat: a session of another model, another version or another kind is refused, and left alone") {
    const std::string path = fresh("foreign.session");
    CHECK(chat("one\n", {"--session", path}).code == 0);
    const std::string sound = read_file(path);
    ChainModel other;
    other.chat = true;
    other.gain = 2.0f;
    other.build().save(file("other.gguf"));
    const auto refuse = [&](const std::string& model, const std::string& words) {
        const std::string before = read_file(path);
        const Outcome got = redline_({"chat", "-m", model, "--session", path}, "two\n");
        CHECK(got.code == 1);
        CHECK(got.out.empty());
        CHECK_MESSAGE(has(got.err, path + words), got.err);
        CHECK(read_file(path) == before);
    };
    refuse(file("other.gguf"),
           " was saved with another model, chain (" + chat_model() + "); --session with another name");
    std::string old = sound;
    old[7] = '2';
    write_file(path, old);
    refuse(chat_model(), " was saved by another version of redline, in a form that this one cannot read");
    write_file(path, sound.substr(0, sound.size() - 9));
    refuse(chat_model(), " has ");
    write_file(path, "a text");
    refuse(chat_model(), " is no session of redline; --session with another name begins a new session");
    for (const auto& [text, words] :
         {std::pair<std::string, std::string>{"", ": it is empty"},
          {read_file(chain_model()), " but a model: -m takes it"},
          {"{\"messages\": []}" + std::string(100, ' '), ": it may be JSON, as /export writes it"}}) {
        write_file(path, text);
        refuse(chat_model(), " is no session of redline" + words);
        const Outcome loaded = chat("/load " + path + "\n");
        CHECK(loaded.code == 1);
        CHECK_MESSAGE(
            has(loaded.err, path + " is no session of redline" + words + "; /load takes a file that"),
            loaded.err);
    }
    // A cache of run has no conversation in it.
    std::filesystem::remove(path);
    CHECK(redline_({"run", "-m", chat_model(), "-p", "ab", "-n", "1", "--prompt-cache", path}).code == 0);
    refuse(chat_model(), " holds no conversation");
}

TEST_CASE("chat: another model takes the conversation over, and one that is none leaves it where it is") {
    ChainModel chain;
    chain.chat = true;
    chain.name = "other";
    chain.next[ChainModel::kNewline] = ChainModel::kLetterA + 5;  // answers begin behind a line's end
    chain.build().save(file("f.gguf"));
    const std::string path = fresh("both.md");
    const Outcome got =
        chat("hello\n/model " + file("f.gguf") + "\n/continue\nmore\n/model " + file("none.gguf") +
             "\nstill\n/set top-k 3\n/model " + chat_model() + "\nback\n/set\n/export " + path + "\n");
    CHECK(got.out == "ab\ncd\nfg\nfg\nab\n");
    CHECK(has(got.err, "goes on with other"));
    CHECK(has(got.err, "none.gguf"));
    CHECK(has(got.err, "  top-k                 3\n"));
    CHECK(has(read_file(path), "hello\n\n## Assistant\n\nabcd"));
}

TEST_CASE("chat: a grammar goes on with an answer, begins anew with each, and binds another model") {
    const std::vector<std::string> bound = {"--grammar", "root ::= \"mnop\""};
    CHECK(chat("hello\n/continue\n/continue\nmore\n", bound).out == "mn\nop\n\nmn\n");
    const std::string demo = RL_SOURCE_DIR "/models/demo/redline-demo-q8_0.gguf";
    CHECK(chat("hello\n/model " + demo + "\nmore\n", bound).out.starts_with("mn\nmn"));
}

TEST_CASE("chat: what a model thinks is kept apart from its answer") {
    const auto think = [](const std::string& input, std::vector<std::string> more = {}) {
        std::vector<std::string> all = {"-m", thinking_model(), "-n", "-1"};
        all.insert(all.end(), more.begin(), more.end());
        return chat(input, all);
    };
    const Outcome shown = think("hello\n");
    CHECK(shown.out == "xyz\n");
    CHECK(has(shown.err, "\nabc\n"));
    CHECK_FALSE(has(think("hello\n", {"--think", "hide"}).err, "abc"));
    CHECK(think("hello\n", {"--think", "hide"}).out == "xyz\n");
    // The reasoning that the template closes is none of the model's.
    CHECK(think("/think off\nhello\n/think on\nhello\n").out == "abc</think>xyz\nxyz\n");
    // Cut short within the reasoning; and the whole of it in the conversation, but not in what is read next.
    const std::string path = fresh("thoughts.json"), session = fresh("thoughts.session");
    CHECK(think("hello\n", {"-n", "2", "--session", session}).out == "\n");
    const Outcome on = think("/continue\n/export " + path + "\n", {"--session", session});
    CHECK(on.out == "xyz\n");
    const auto answer = parse_json(read_file(path))["messages"][1];
    CHECK(answer["reasoning_content"] == "abc");
    CHECK(answer["content"] == "xyz");
    // A budget cuts it, by an option or in between; as does a template that cannot switch it off.
    const Outcome cut = think("hello\n", {"--reasoning-budget", "2"});
    CHECK(cut.out == "abc</think>xyz\n");  // behind the closing mark the model begins anew
    CHECK(has(cut.err, "\nab\n"));
    const Outcome set = think("/set reasoning-budget 1\nhello\n/set reasoning-budget -1\nhello\n");
    CHECK(set.out == "abc</think>xyz\nxyz\n");
    CHECK(has(set.err, "\na\n"));
    write_file(file("always.jinja"), "{{ messages[-1].content }}{# </think> #}<think>\n");
    const std::vector<std::string> always = {"--chat-template", file("always.jinja")};
    CHECK(think("/think off\nhello\n", always).out == "abc</think>xyz\n");
    CHECK(has(think("/think off\n", always).err, "cut at its beginning"));
    CHECK(has(think("/set reasoning-budget x\n").err, "/set reasoning-budget takes a whole number"));
    CHECK(think("hello\n", {"--hidethinking"}).err.find("abc") == std::string::npos);
    CHECK(think("hello\n", {"--reasoning", "off"}).out == "abc</think>xyz\n");
    CHECK(has(chat("/think off\n").err, "not known to reason"));
    CHECK(has(chat("/think hard\n").err, "/think takes on, off, hide"));
}

TEST_CASE("chat: /show template shows the one that is used") {
    write_file(file("shown.jinja"), "{% for m in messages %}<{{ m.content }}>{% endfor %}");
    const Outcome got = chat("/show template\n", {"--chat-template", file("shown.jinja")});
    CHECK(has(got.err, "the chat template in " + file("shown.jinja")));
    CHECK_MESSAGE(has(got.err, "<{{ m.content }}>"), got.err);
    CHECK_FALSE(has(got.err, "im_start"));
    CHECK_FALSE(has(chat("/show template\n", {"--chat-format", "chatml"}).err, "{%"));
    CHECK(has(chat("/show template\n").err, "im_start"));
}

TEST_CASE("chat: a message or a file that is too large for any context is refused by its size at once") {
    write_file(file("huge.txt"), std::string(60'000'000, 'a'));
    const Outcome read = chat("/read " + file("huge.txt") + "\n");
    CHECK(has(read.err, "huge.txt has 60.0 MB, and the context of 256 tokens takes"));
    CHECK(has(read.err, "give it a part of the text"));
    const Outcome said = chat(std::string(50'000'000, 'a') + "\n");
    CHECK(has(said.err, "the message has 50.0 MB, and the context of 256 tokens takes"));
}
