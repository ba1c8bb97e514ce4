// Generating text as a user meets it: run and chat, with their pipes, limits, caches and interruptions.
#include "json/json.h"
#include "support/material.h"
#include "support/program.h"

#include <set>

using namespace redline;
using namespace redline::test;

TEST_CASE("run: only the text goes to standard output") {
    on_each_device([] {
        CHECK(redline_(greedy({"-p", "a", "-n", "5"})).err.empty());
        const Outcome got = redline_(greedy({"-p", "a", "-n", "5", "-v"}));
        CHECK(got.code == 0);
        CHECK(got.out == "bcdef");
        CHECK(has(got.err, "plan: 2/2 layers on " + backend() + " "));
        CHECK(has(got.err, "KV cache f16 256 tokens"));
        CHECK(has(got.err, "tok/s"));
        CHECK(has(got.err, "GB/s"));
        CHECK_FALSE(has(got.err, "\x1b"));

        const Outcome whole = redline_(greedy({"-p", "a", "-q"}));
        CHECK(whole.code == 0);
        CHECK(whole.out == ChainModel::kWholeText);
        CHECK(whole.err.empty());
        CHECK(redline_(greedy({"-p", "a", "-q", "--display-prompt", "-n", "2"})).out == "abc");
        CHECK(redline_(greedy({"-p", "a", "-q", "-n", "0"})).out.empty());
    });
}

TEST_CASE("run: llama.cpp's ways to write an option are taken, and negative numbers are numbers") {
    for (const std::vector<std::string>& form :
         {std::vector<std::string>{"-n", "3"}, {"-n3"}, {"--predict", "3"}, {"--n-predict=3"}, {"-n=3"}}) {
        INFO(form[0]);
        std::vector<std::string> more = {"-q", "-p", "a"};
        more.insert(more.end(), form.begin(), form.end());
        CHECK(redline_(greedy(more)).out == "bcd");
    }
    CHECK(
        redline_(greedy({"-q", "-p", "a", "--seed", "-1", "-n", "-1", "--temp", "0", "--top-k", "0"})).out ==
        ChainModel::kWholeText);
    CHECK(redline_(greedy({"-q", "-p", "a", "-ctk", "q8_0", "-ctv", "q8_0", "-n-1"})).out ==
          ChainModel::kWholeText);
    CHECK(redline_(greedy({"-q", "-p", "a", "-r", "e", "--stop", "xyz"})).out == "bcd");
    CHECK(redline_(greedy({"-q", "-p", "-q", "-n", "1"})).code == 0);  // a value that looks like an option
    CHECK(redline_(greedy({"-q", "-p", "a", "-n", "2", "-l", "4-inf"})).out[0] != 'b');
}

TEST_CASE("run: statistics and notes begin a new line where they meet the text in one pipe") {
    const std::string line = program() + " run --device cpu -m " + chain_model() + " -p a -n 2 --temp 0";
    const auto shell = [](const std::string& script) {
        Launch what;
        what.arguments = {"/bin/sh", "-c", script};
        return launch(what).out;
    };
    CHECK(has(shell(line + " -v 2>&1"), "bc\nprompt: "));
    CHECK(shell(line + " 2>&1") == "bc");
    CHECK(shell(line + " -q 2>&1") == "bc");
    CHECK(has(shell(line + " -n 9 -c 3 2>&1"), "bc\nredline: note: the text ends here"));
    CHECK(shell(line + " -n 9 -c 3 -q 2>&1") == "bc");
    CHECK(shell(line + " 2>/dev/null") == "bc");
}

TEST_CASE("run: the prompt comes from an argument, a file, standard input, or several of them") {
    write_file(file("prompt.txt"), "ab\n");
    const auto text = [](std::vector<std::string> more, std::optional<std::string> input = {}) {
        more.insert(more.end(), {"-n", "1", "--display-prompt", "-q"});
        return redline_(greedy(more), std::move(input)).out;
    };
    CHECK(text({"-f", file("prompt.txt")}) == "abc");
    CHECK(text({}, "xy\n") == "xyz");
    CHECK(text({"-f", "-"}, "x") == "xy");
    CHECK(text({"-p", "k"}, "xy") == "k\nxyz");
    CHECK(text({"-p", "k", "-f", file("prompt.txt")}) == "k\nabc");
    CHECK(text({"-p", "k"}, "") == "kl");
    CHECK(text({"-p", "a\\nb"}) == "a\nbc");
    CHECK(text({"-p", "a\\nb", "--no-escape"}) == "a\\nbc");
    CHECK(text({"-p", ""}) == "a");  // BOS alone

    const Outcome none = redline_(greedy({}));
    CHECK(none.code == 2);
    CHECK(has(none.err, "no prompt"));
    CHECK(redline_(greedy({}), "").code == 2);
    CHECK(redline_(greedy({"-f", file("nowhere.txt")})).code == 1);
    const Outcome empty = redline_(greedy({"-p", "", "--no-bos"}));
    CHECK(empty.code == 2);
    CHECK(has(empty.err, "empty"));
}

TEST_CASE("run: a long prompt is no trouble as an argument, and too long a one says what the context is") {
    const std::string long_text(50000, 'a');
    const Outcome got = redline_(greedy({"--prompt=" + long_text}));
    CHECK(got.code == 1);
    CHECK(has(got.err, "50001 tokens"));
    CHECK(has(got.err, "-c"));
}

TEST_CASE("run: contexts of all sizes") {
    on_each_device([] {
        const Outcome full = redline_(greedy({"-p", "a", "-c", "6"}));
        CHECK(full.code == 0);
        CHECK(full.out == "bcdef");
        CHECK(has(full.err, "context of 6 tokens is full"));
        CHECK(redline_(greedy({"-p", "a", "-c", "6", "--context-shift", "-q"})).out ==
              ChainModel::kWholeText);
        CHECK(redline_(greedy({"-p", "", "-c", "1", "-q"})).out == "a");
        CHECK(redline_(greedy({"-p", "a", "-c", "0", "-q"})).out == ChainModel::kWholeText);
        const Outcome huge = redline_(greedy({"-p", "a", "-c", "4294967296"}));
        CHECK(huge.code == 1);
        CHECK(huge.out.empty());
        CHECK(has(huge.err, "weights need"));
        CHECK(has(huge.err, "trained for 256"));
    });
}

TEST_CASE("run: --json gives one object, and the same seed the same text") {
    on_each_device([] {
        const std::vector<std::string> hot = {
            "run", "-m",      chain_model(), "-p",      "a", "-n", "12", "--temp", "20", "--top-k",
            "0",   "--top-p", "1",           "--min-p", "0", "-s", "11", "--json", "-q"};
        const Outcome got = redline_(hot);
        REQUIRE(got.code == 0);
        const Json all = parse_json(got.out);
        CHECK(all["seed"] == 11);
        CHECK(all["prompt_tokens"] == 2);
        CHECK(all["generated_tokens"] == all["token_ids"].size());
        CHECK(all["timings"]["predicted_per_second"].is_number());
        CHECK(all["device"]["backend"] == backend());
        CHECK(all["model"]["architecture"] == "llama");
        CHECK(parse_json(redline_(hot).out)["text"] == all["text"]);

        const Json greedy_one = parse_json(redline_(greedy({"-p", "x", "--json", "-q"})).out);
        CHECK(greedy_one["text"] == "yz\xE2\x82\xAC!");
        CHECK(greedy_one["stop_reason"] == "end_of_generation");
        CHECK(parse_json(redline_(greedy({"-p", "a", "--stop", "e", "--json", "-q"})).out)["stop"] == "e");
    });
}

TEST_CASE("run: guesses leave the text as it is, and --json says by method what came of them") {
    const auto written = [](std::vector<std::string> more) {
        std::vector<std::string> all = {"run",    "-m", ring_model(), "-p", "a",        "-n", "120",
                                        "--temp", "0",  "--json",     "-q", "--device", "cpu"};
        all.insert(all.end(), more.begin(), more.end());
        const Outcome got = redline_(all);
        REQUIRE(got.code == 0);
        return parse_json(got.out);
    };
    const Json plain = written({"--spec-type", "none"}), guessed = written({"--spec-type", "ngram-simple"}),
               usual = written({});
    CHECK(guessed["text"] == plain["text"]);
    CHECK(usual["text"] == plain["text"]);
    REQUIRE(usual["speculation"].size() == 1);
    CHECK(usual["speculation"][0]["method"] == "ngram-simple");
    CHECK(plain["speculation"].empty());
    REQUIRE(guessed["speculation"].size() == 1);
    const Json& method = guessed["speculation"][0];
    CHECK(method["method"] == "ngram-simple");
    CHECK(method["rounds"] == guessed["timings"]["draft_rounds"]);
    CHECK(method["draft_n_accepted"] == guessed["timings"]["draft_n_accepted"]);
    CHECK(method["rounds"] > 0);
    CHECK(method["gain"].is_number());
    const Outcome none = redline_({"run", "-m", ring_model(), "-p", "a", "--spec-type", "draft-mtp", "-q"});
    CHECK(none.code == 1);
    CHECK(has(none.err, "this file has no MTP head"));
}

TEST_CASE("run: a full disk is an error, a reader that goes away is not, and Ctrl-C keeps the text") {
    on_each_device([] {
        Launch full = command(greedy({"-p", "a", "-q"}));
        full.output_path = "/dev/full";
        const Outcome no_space = launch(full);
        CHECK(no_space.code == 1);
        CHECK(has(no_space.err, "standard output"));

        const std::vector<std::string> endless = {"run", "-m",     ring_model(), "-p",
                                                  "a",   "--temp", "0",          "--context-shift"};
        Launch head = command(endless);
        head.close_after = 1;
        const Outcome gone = launch(head);
        CHECK(gone.code == 0);
        CHECK_FALSE(has(gone.err, "redline:"));

        std::vector<std::string> told = endless;
        told.emplace_back("-v");
        Launch interrupted = command(told);
        interrupted.interrupt_when = [](const std::string& out) { return out.size() > 100; };
        const Outcome stopped = launch(interrupted);
        CHECK(stopped.code == 130);
        CHECK(stopped.out.size() > 100);
        CHECK(has(stopped.err, "interrupted"));
        CHECK(has(stopped.err, "decode:"));
    });
}

TEST_CASE("run: a prompt cache is read less the second time, and no other file is ever overwritten") {
    on_each_device([] {
        const std::string cache = file("prompt.cache");
        std::filesystem::remove(cache);
        const auto run = [&](const std::string& prompt, std::vector<std::string> more = {}) {
            more.insert(more.end(), {"-p", prompt, "-n", "3", "--prompt-cache", cache, "--json", "-q"});
            const Outcome got = redline_(greedy(more));
            REQUIRE_MESSAGE(got.code == 0, got.err);
            return parse_json(got.out);
        };
        const Json first = run("abcdefgh");
        CHECK(first["cached_tokens"] == 0);
        const Json second = run("abcdefgh");
        CHECK(second["cached_tokens"] == 8);  // all but the last
        CHECK(second["text"] == first["text"]);
        CHECK(run("abcxyz", {"--prompt-cache-ro"})["cached_tokens"] == 4);
        CHECK(run("abcdefgh")["cached_tokens"] == 8);
        CHECK(run("abcxyz")["cached_tokens"] == 4);
        CHECK(run("abcxyz")["cached_tokens"] == 6);

        write_file(cache, "something else");
        const Outcome refused = redline_(greedy({"-p", "a", "--prompt-cache", cache}));
        CHECK(refused.code == 1);
        CHECK(has(refused.err, "prompt.cache"));
        CHECK(read_file(cache) == "something else");
    });
}

TEST_CASE("run: the file's sampling defaults count where the user says nothing, and are told with -v") {
    ChainModel chain;
    chain.extra.add("general.sampling.temp", 0.0f);
    chain.extra.add("general.sampling.top_k", int32_t(7));
    chain.build().save(file("defaults.gguf"));
    const std::vector<std::string> base = {"run", "-m", file("defaults.gguf"), "-p", "a", "-n", "5",
                                           "-s",  "3"};
    const Outcome got = redline_(base);
    CHECK(got.out == "bcdef");
    CHECK_FALSE(has(got.err, "top_k"));
    std::vector<std::string> loud = base;
    loud.push_back("-v");
    CHECK(has(redline_(loud).err, "sampling defaults of the file: temp 0, top_k 7"));
    std::vector<std::string> hot = base;
    hot.insert(hot.end(), {"--temp", "1.5", "--json", "-q"});
    CHECK(parse_json(redline_(hot).out)["temperature"] == 1.5);

    ChainModel wrong;
    wrong.extra.add("general.sampling.top_k", std::string("many"));
    wrong.build().save(file("wrong.gguf"));
    check_refused({"run", "-m", file("wrong.gguf"), "-p", "a", "-q"}, 1, {"general.sampling.top_k"});
}

TEST_CASE("run: what is not sound in a model's numbers is an error, not a text") {
    on_each_device([] {
        ChainModel chain;
        chain.gain = std::numeric_limits<float>::quiet_NaN();
        chain.build().save(file("nan.gguf"));
        check_refused({"run", "-m", file("nan.gguf"), "-p", "a", "-q"}, 1, {"logit"});
        check_refused({"bench", "-m", file("nan.gguf"), "-p", "8", "-n", "0", "-r", "1", "-o", "json", "-q"},
                      1, {"no figure", "nan"});
        ChainModel flat;
        flat.next.clear();
        flat.build().save(file("flat.gguf"));
        check_refused({"bench", "-m", file("flat.gguf"), "-p", "8", "-n", "0", "-r", "1", "-o", "json", "-q"},
                      1, {"no figure", "all"});
    });
}

TEST_CASE("chat: each line of a pipe is a turn, and only the answers are printed") {
    on_each_device([] {
        const std::vector<std::string> base = {"chat", "-m", chat_model(), "--temp", "0", "-t", "1"};
        const Outcome got = redline_(base, "hello\nagain\n");
        REQUIRE_MESSAGE(got.code == 0, got.err);
        const std::string answer = std::string("a") + ChainModel::kWholeText + "\n";
        CHECK(got.out == answer + answer);
        // The last line needs no line end; blank lines are no turns; closed input is no turn at all.
        CHECK(redline_(base, "hello\n\n  \nagain").out == answer + answer);
        CHECK(redline_(base).code == 0);
        CHECK(redline_(base).out.empty());
        // Two lines as one message, in either way.
        CHECK(redline_(base, "one\\\ntwo\n").out == answer);
        CHECK(redline_(base, "\"\"\"one\ntwo\"\"\"\n\"\"\"\nthree\n\"\"\"\n").out == answer + answer);
    });
}

TEST_CASE("chat: commands, and messages that only look like one") {
    const std::vector<std::string> base = {"chat", "-m", chat_model(), "--temp", "0", "-n", "2"};
    const Outcome got = redline_(
        base, "/help\n/stats\nhello\n/regen\n/system be brief\n/stats\n/clear\n/stat\n /stat\n/exit\nno\n");
    CHECK(got.code == 1);  // for the command that is none
    CHECK(got.out == "ab\nab\nab\n");
    CHECK(has(got.err, "/regen"));
    CHECK(has(got.err, "/stat is not a command"));
    CHECK(has(got.err, "1 turn"));
    const Outcome early = redline_(base, "/regen\n");
    CHECK(early.code == 1);
    CHECK(has(early.err, "no answer yet"));
}

TEST_CASE("chat: when the context is full the latest turns are read, or the turn is refused") {
    on_each_device([] {
        std::string many;
        for (int i = 0; i < 12; ++i) many += "abcdefgh\n";
        const std::vector<std::string> base = {"chat", "-m", chat_model(), "--temp", "0",
                                               "-n",   "3",  "-c",         "128"};
        const Outcome dropped = redline_(base, many);
        CHECK(dropped.code == 0);
        CHECK(std::count(dropped.out.begin(), dropped.out.end(), '\n') == 12);
        CHECK(has(dropped.err, "the latest turns only"));
        std::vector<std::string> strict = base;
        strict.insert(strict.end(), {"--context-policy", "stop"});
        const Outcome stopped = redline_(strict, many);
        CHECK(stopped.code == 1);
        CHECK(has(stopped.err, "/clear"));
        const Outcome too_long = redline_(base, std::string(500, 'a') + "\nb\n");
        CHECK(has(too_long.err, " fit in the context of 128"));
        CHECK(std::count(too_long.out.begin(), too_long.out.end(), '\n') ==
              1);  // the next message is answered
    });
}

TEST_CASE("chat: a model without a known format is an error unless one is chosen") {
    check_refused({"chat", "-m", chain_model(), "-q"}, 1, {"--chat-format"});
    check_refused({"chat", "-m", chain_model(), "--chat-format", "morse", "-q"}, 2, {"morse"});
    const Outcome list = redline_({"chat", "--list-chat-formats"});
    CHECK(list.code == 0);
    CHECK(std::count(list.out.begin(), list.out.end(), '\n') >= 3);
}

TEST_CASE("run: --chat puts the prompt into the model's template") {
    const Outcome got = redline_({"run", "-m", chat_model(), "--chat", "-sys", "be brief", "-p", "hello",
                                  "--temp", "0", "-n", "3", "-q"});
    CHECK_MESSAGE(got.code == 0, got.err);
    CHECK(got.out == "abc");
    const Outcome empty = redline_({"run", "-m", chat_model(), "--chat", "-p", "", "-q"});
    CHECK(empty.code == 2);
    CHECK(has(empty.err, "the prompt is empty"));
    CHECK(empty.out.empty());
}

TEST_CASE("chat: a template from a file is used, its variables are given, and what it refuses is said") {
    // The last character decides what the chain model goes on with.
    write_file(file("custom.jinja"), "{{ messages[-1].content }}{{ ending|default('k') }}");
    const std::vector<std::string> base = {
        "chat", "-m", chain_model(), "--temp", "0", "-n", "2", "--chat-template", file("custom.jinja")};
    CHECK(redline_(base, "a\nb\n").out == "lm\nlm\n");
    std::vector<std::string> more = base;
    more.insert(more.end(), {"--chat-template-kwargs", "{\"ending\": \"c\"}"});
    CHECK(redline_(more, "a\n").out == "de\n");
    CHECK(redline_({"run", "-m", chain_model(), "--chat", "--chat-template", file("custom.jinja"), "-p", "x",
                    "--temp", "0", "-n", "2", "-q"})
              .out == "lm");
    write_file(file("custom.jinja"), "{{ raise_exception('not today') }}");
    const Outcome refused = redline_(base, "a\n");
    CHECK(refused.code == 1);
    CHECK(has(refused.err, "line 1, column 4: the template refuses the conversation: not today"));
    write_file(file("custom.jinja"), "{% if %}");
    CHECK(has(redline_(base, "a\n").err, "custom.jinja: line 1, column 7"));
}

TEST_CASE("info: --template prints the chat template as it is in the file") {
    const Outcome got = redline_({"info", "-m", chat_model(), "--template"});
    CHECK(got.code == 0);
    CHECK(got.out == ChainModel().chat_template);
    CHECK(has(redline_({"info", "-m", chat_model()}).out, "the file's own template"));
    check_refused({"info", "-m", chain_model(), "--template"}, 1, {"has no chat template"});
}

TEST_CASE("chat: where the model's template fails, a built-in format is used and that is said") {
    for (const std::string broken : {"{% if %}", "{{ raise_exception('not today') }}"}) {
        ChainModel chain;
        chain.chat = true;
        chain.chat_template = "<|im_start|> <|im_end|>" + broken;
        chain.build().save(file("broken.gguf"));
        const Outcome got =
            redline_({"chat", "-m", file("broken.gguf"), "--temp", "0", "-n", "2"}, "hello\nagain\n");
        CHECK(got.code == 0);
        CHECK(got.out == "ab\nab\n");
        CHECK(has(got.err, "the built-in chat format chatml is used instead"));
        CHECK(got.err.find("is used instead") == got.err.rfind("is used instead"));
    }
}

TEST_CASE("run: the known beginning of a real small model") {
    RL_NEED_MATERIAL(stories, "models/stories260K.gguf");
    const Outcome got =
        redline_({"run", "-m", stories, "-p", "Once upon a time", "-n", "60", "--temp", "0", "-q"});
    CHECK(got.code == 0);
    CHECK(got.out ==
          ", there was a little girl named Lily. She loved to play outside in the park. One day, she saw a "
          "big, red "
          "ball. She wanted to play with it, but it was too high.\nLily");
}

TEST_CASE(
    "run: layers that the GPU has no room for, or that -ngl leaves, run on the CPU, and the plan says so") {
    on_each_device([] {
        if (backend() == "cpu") return;
        const Outcome told = redline_(greedy({"-v", "--raw", "-p", "ab", "-n", "6", "-ngl", "1"}));
        INFO(told.err);
        CHECK(told.code == 0);
        CHECK(told.out == "cdefgh");
        CHECK(has(told.err, fmt::format("plan: 1/2 layers on {} (", backend())));
        CHECK(has(told.err, ", 1 on cpu ("));

        const Json info = parse_json(redline_({"info", "-m", chain_model(), "-t", "1", "--json"}).out);
        const std::string less = fmt::format("{}K", info["memory"]["total"].get<uint64_t>() / 1024 - 1);
        const Outcome split = redline_(greedy({"--raw", "-p", "ab", "-n", "6", "--mem-budget", less}));
        INFO(split.err);
        CHECK(split.code == 0);
        CHECK(split.out == "cdefgh");
        CHECK(has(split.err, "the others on the CPU, which is slower"));
        // The chain was trained for little, so that most of its context fits: here none does, whole.
        const std::string weights = fmt::format("{}K", info["memory"]["weights"].get<uint64_t>() / 1024);
        const Outcome longest =
            redline_(greedy({"--raw", "-p", "ab", "-n", "6", "-c", "0", "--mem-budget", weights}));
        INFO(longest.err);
        CHECK(longest.code == 0);
        CHECK(longest.out == "cdefgh");
        CHECK(has(longest.err, "the others on the CPU, which is slower"));
        const Outcome parted =
            redline_(greedy({"-v", "--raw", "-p", "ab", "-n", "6", "-c", "0", "-ngl", "1"}));
        CHECK(parted.code == 0);
        CHECK(has(parted.err, fmt::format("plan: 1/2 layers on {} (", backend())));
        // Asked to have all layers there, it refuses.
        check_refused(greedy({"--raw", "-p", "ab", "-ngl", "all", "--mem-budget", less}), 1,
                      {"as asked for"});

        const Outcome chat = redline_({"chat", "-m", chat_model(), "-t", "1", "-ngl", "1"}, "/show\n");
        const std::string places = fmt::format("plan: 1/2 layers on {} (", backend());
        CHECK(chat.err.find(places) < chat.err.rfind(places));  // before the first prompt, and when asked for
        CHECK(has(chat.err, fmt::format("that {} offers and ", backend())));
        // A model that is not split is reported.
        const Outcome unsplit =
            redline_({"verify", "--device", backend(), "-m", chain_model(), "-t", "1", "-ngl", "1"});
        CHECK(has(unsplit.err, "-ngl 1: nothing is split here; all 2 layers are on"));
    });
}

TEST_CASE(
    "run: a split model's prompt is computed on the GPU where that is asked for, and the plan says so") {
    on_each_device([] {
        if (backend() == "cpu") {
            const Outcome none = redline_(greedy({"--raw", "-p", "ab", "-n", "6", "--op-offload"}));
            CHECK(none.out == "cdefgh");
            CHECK(has(none.err, "--op-offload: no GPU is used"));
            return;
        }
        const std::string prompt(40, 'c');
        const auto with = [&](const std::string& model, std::vector<std::string> more) {
            std::vector<std::string> all = {"run", "-m",   model, "--temp", "0",    "-t", "1", "--raw",
                                            "-p",  prompt, "-n",  "3",      "-ngl", "1",  "-v"};
            all.insert(all.end(), more.begin(), more.end());
            return redline_(all);
        };
        for (const std::string& model : {chain_model(), mixture_model()}) {
            const Outcome there = with(model, {"--op-offload"}), here = with(model, {"--no-op-offload"}),
                          by_itself = with(model, {}),
                          none_there = with(model, {"-ngl", "0", "--op-offload"});
            INFO(there.err, none_there.err);
            CHECK(none_there.out == here.out);
            CHECK(has(none_there.err, fmt::format("plan: 0/2 layers on {} (", backend())));
            CHECK(has(none_there.err, "; steps of 32 tokens and more wholly there, through "));
            CHECK(there.code == 0);
            CHECK(there.out == here.out);
            CHECK(has(there.err, "; steps of 32 tokens and more wholly there, through "));
            CHECK(has(there.err, " of staging"));
            CHECK_FALSE(has(here.err, "of staging"));
            // Small models are not measured for it.
            CHECK_FALSE(has(by_itself.err, "of staging"));
        }
        const Outcome told =
            redline_({"info", "-m", chain_model(), "-t", "1", "-ngl", "1", "--op-offload", "--json"});
        const Json split = parse_json(told.out)["memory"]["split"];
        CHECK(split["stream"]["rows"] == 32);
        // A model without room on the device is split as without the option, and that is reported.
        const Json whole = parse_json(redline_({"info", "-m", chain_model(), "-t", "1", "--json"}).out);
        const std::string less = fmt::format("{}K", whole["memory"]["total"].get<uint64_t>() / 1024 - 1);
        const Outcome tight =
            redline_(greedy({"-v", "--raw", "-p", "ab", "-n", "6", "--mem-budget", less, "--op-offload"}));
        INFO(tight.err);
        CHECK(tight.out == "cdefgh");
        CHECK(has(tight.err, fmt::format("plan: 1/2 layers on {} (", backend())));
        CHECK(has(tight.err, "; --op-offload: there is no room for the staging"));
        CHECK(split["stream"]["staging"].get<uint64_t>() > 0);
    });
}

TEST_CASE("info: the split that run makes of a model, with its memory and cost, or why run refuses") {
    on_each_device([] {
        if (backend() == "cpu") return;
        const auto info = [](std::vector<std::string> more) {
            std::vector<std::string> words = {"info", "-m", mixture_model(), "-t", "1"};
            words.insert(words.end(), more.begin(), more.end());
            return redline_(words);
        };
        const Json whole = parse_json(info({"--json"}).out)["memory"];
        CHECK_FALSE(whole.contains("split"));
        CHECK(whole["most_tokens_per_second"].is_null());  // small models are bound by other things
        const std::string less = fmt::format("{}K", whole["total"].get<uint64_t>() / 1024 - 1);
        const Outcome run = redline_({"run", "-m", mixture_model(), "--temp", "0", "-t", "1", "--raw", "-p",
                                      "ab", "-n", "1", "--mem-budget", less});
        const Json all = parse_json(info({"--json", "--plan", "--mem-budget", less}).out);
        const Json split = all["memory"]["split"];
        CHECK(split["device"] == backend());
        CHECK(split["device_layers"] == 2);
        CHECK(split["cpu_experts"] == 1);
        REQUIRE(split["places"].size() == 2);
        for (const Json& place : split["places"]) CHECK(place["total"] <= place["available"]);
        REQUIRE(split["notes"].size() == 1);
        CHECK(has(run.err, split["notes"][0].get<std::string>()));
        std::set<std::string> devices;
        for (const Json& step : all["plan"]["steps"]) devices.insert(step["device"].get<std::string>());
        CHECK(devices == std::set<std::string>{"cpu", backend()});

        const Outcome text = info({"--plan", "--mem-budget", less});
        CHECK(has(text.out, fmt::format("run splits it: 2/2 layers on {}, the experts of 1 on cpu; the CPU "
                                        "reads ",
                                        backend())));
        CHECK(has(text.out, "\non cpu:\n"));
        CHECK(has(info({"-ngl", "1"}).out,
                  fmt::format("run splits it: 1/2 layers on {}, 1 on cpu", backend())));
        // The requested layers do not fit.
        const Outcome refused = info({"-ngl", "2", "--mem-budget", less});
        CHECK(has(refused.out, "run refuses: "));
        CHECK(has(refused.out, ", or --cpu-moe auto, which leaves experts to the CPU, or -ngl 1"));
        check_refused({"run", "-m", mixture_model(), "-t", "1", "-p", "a", "-ngl", "2", "--mem-budget", less},
                      1, {", or -ngl 1"});
    });
}

// Checks the mixture, whose plan must contain these words.
static void check_experts(std::vector<std::string> more, const std::vector<std::string>& words) {
    std::vector<std::string> all = {
        "run", "-m", mixture_model(), "--temp", "0", "-t", "1", "--raw", "-p", "ab", "-n", "6", "-v"};
    all.insert(all.end(), more.begin(), more.end());
    const Outcome got = redline_(all);
    INFO(fmt::format("{}: {}", fmt::join(more, " "), got.err));
    CHECK(got.code == 0);
    CHECK(got.out == "cdefgh");
    for (const std::string& word : words) CHECK(has(got.err, word));
}

TEST_CASE(
    "run: experts and tensors are on the CPU where llama.cpp's options put them, and the plan says so") {
    on_each_device([] {
        if (backend() == "cpu") return;
        const std::string all = fmt::format("plan: 2/2 layers on {} (", backend());
        for (const std::vector<std::string>& form : {std::vector<std::string>{"--cpu-moe"},
                                                     {"-cmoe"},
                                                     {"--cpu-moe", "all"},
                                                     {"--n-cpu-moe", "99"},
                                                     {"-ngl", "99", "--cpu-moe"},
                                                     {"-ot", "ffn_.*_exps=CPU"},
                                                     {"-ot", "\\.ffn_(up|down|gate)_exps=cpu"}})
            check_experts(form, {all, ", the experts of 2 on cpu ("});
        for (const std::vector<std::string>& form : {std::vector<std::string>{"--cpu-moe", "1"},
                                                     {"-ncmoe", "1"},
                                                     {"-ot", "blk\\.(1|2)\\.ffn.*=CPU"},
                                                     {"-ncmoe", "2", "-ot", "blk\\.0\\.=GPU"}})
            check_experts(form, {all, ", the experts of 1 on cpu ("});
        const std::string one = fmt::format("plan: 1/2 layers on {} (", backend());
        check_experts({"--cpu-moe", "-ngl", "1"}, {one, ", 1 and the experts of 1 on cpu ("});
        check_experts({"-ot", "blk\\.0\\.=CPU"}, {one, ", 1 on cpu ("});
        check_experts({"-ot", "blk\\.1\\.attn=CPU,nothing=CPU"},
                      {all, ", parts of 1 on cpu (", "-ot nothing: no tensor of this model"});
        check_experts({"-ot", "token_embd=CPU"}, {all, ", the embedding or the output on cpu ("});

        const std::vector<std::string> run = {"run", "-m", mixture_model(), "-p", "a"};
        const auto refused = [&](const std::string& places, int code, const std::string& words) {
            std::vector<std::string> line = run;
            line.insert(line.end(), {"-ot", places});
            check_refused(line, code, {words});
        };
        refused("ffn_up_exps=CPU", 1, "computed together");
        refused("exps=Metal0", 1, fmt::format("tensors can be on {} or cpu", backend()));
        refused("exps", 2, "takes PATTERN=DEVICE");
        refused("(=CPU", 1, "is no pattern");
        CHECK(has(redline_(greedy({"--raw", "-p", "a", "-n", "1", "--cpu-moe"})).err, "has no experts"));
    });
}

TEST_CASE("run: what a GPU has no room for is experts first, and both ways are said with their costs") {
    on_each_device([] {
        if (backend() == "cpu") return;
        const Json info = parse_json(redline_({"info", "-m", mixture_model(), "-t", "1", "--json"}).out);
        const std::string less = fmt::format("{}K", info["memory"]["total"].get<uint64_t>() / 1024 - 1);
        check_experts(
            {"--mem-budget", less},
            {"2 of 2 layers run there, but the experts of 1 on the CPU, which is slower (the CPU reads ",
             " per token; the other way, 1 of 2 layers run there, the others on the CPU: the CPU reads ",
             ", the experts of 1 on cpu ("});
        check_experts({"--mem-budget", less, "-ngl", "all", "--cpu-moe", "auto"},
                      {"but the experts of 1 on the CPU, which is slower;"});
        check_experts({"--mem-budget", less, "--cpu-moe", "off"},
                      {"1 of 2 layers run there, the others on the CPU, which is slower;"});
        check_refused({"run", "-m", mixture_model(), "-p", "a", "-ngl", "all", "--mem-budget", less}, 1,
                      {"as asked for", ", or --cpu-moe auto, which leaves experts to the CPU"});
    });
}
