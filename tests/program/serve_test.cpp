// redline serve, as users start it and their programs talk with it.
#include "json/json.h"
#include "support/http_client.h"
#include "support/program.h"

#include <thread>

using namespace redline;
using namespace redline::test;

namespace {

// Serves the model until `use` has returned, which gets the port once requests are answered; then a signal
// ends it. A shell runs `before`, if there is any, and becomes the server.
Outcome serve(std::vector<std::string> arguments, const std::function<void(uint16_t)>& use,
              const std::string& before = {}) {
    Launch what;
    what.arguments = {program(), "serve", "--port", "0", "--device", "cpu"};
    what.arguments.insert(what.arguments.end(), arguments.begin(), arguments.end());
    if (!before.empty()) {
        const std::string script = before + "\nexec \"$0\" \"$@\"";
        what.arguments.insert(what.arguments.begin(), {"/bin/sh", "-c", script});
    }
    what.signal = SIGTERM;
    what.interrupt_when = [&use](const std::string& out) {
        const size_t colon = out.rfind(':');
        if (out.empty() || out.back() != '\n' || colon == out.npos) return false;
        const auto port = uint16_t(std::atoi(out.c_str() + colon + 1));
        for (int i = 0; i < 600 && http_get(port, "/health").status != 200; ++i)
            std::this_thread::sleep_for(std::chrono::milliseconds(50));
        use(port);
        return true;
    };
    return launch(what);
}

Json completion(uint16_t port, const Json& more) {
    Json body = {{"prompt", "a"}, {"temperature", 0}};
    body.update(more);
    return read_json(http_post(port, "/v1/completions", body.dump()).body);
}

}  // namespace

TEST_CASE("serve: one line tells the address, several are answered at once, and a signal ends it") {
    std::vector<std::string> texts(6);
    Json models;
    const Outcome outcome = serve({"-m", chain_model()}, [&](uint16_t port) {
        std::vector<std::thread> clients;
        for (std::string& text : texts)
            clients.emplace_back([&text, port] {
                const Json got = completion(port, {{"max_tokens", 100}});
                text = got.is_object() ? got["choices"][0].value("text", "") : "no answer";
            });
        for (std::thread& client : clients) client.join();
        models = read_json(http_get(port, "/v1/models").body);
    });
    CHECK_MESSAGE(outcome.code == 0, outcome.err);
    CHECK(outcome.out.starts_with("listening on http://127.0.0.1:"));
    CHECK(std::count(outcome.out.begin(), outcome.out.end(), '\n') == 1);
    CHECK(has(outcome.err, "plan: "));
    for (const std::string& text : texts) CHECK(text == ChainModel::kWholeText);
    CHECK(models["data"][0]["id"] == std::filesystem::path(chain_model()).stem().string());
}

TEST_CASE("serve: a stream that runs when the signal comes is whole") {
    HttpGot got;
    std::thread client;
    const Outcome outcome = serve({"-m", chain_model(), "--api-key", "k", "-a", "other"}, [&](uint16_t port) {
        CHECK(http_post(port, "/v1/completions", "{}").status == 401);
        auto connection = std::make_shared<HttpConnection>(port);
        connection->send(
            http_text("POST", "/v1/completions",
                      R"({"prompt": "a", "stream": true, "ignore_eos": true, "max_tokens": 200})",
                      {"Authorization: Bearer k"}));
        CHECK(connection->receive());
        client = std::thread([connection, &got] { got = connection->read(); });
    });
    client.join();
    CHECK_MESSAGE(outcome.code == 0, outcome.err);
    CHECK(got.whole);
    CHECK(got.body.ends_with("data: [DONE]\n\n"));
    CHECK(has(got.body, "\"model\":\"other\""));
}

TEST_CASE("serve: the log file has a line for each request, and one that is full does not end the server") {
    const std::string log = file("access.log");
    const Outcome outcome = serve({"-m", chain_model(), "--log-file", log, "--log-json"}, [&](uint16_t port) {
        CHECK(
            http_post(port, "/v1/completions", R"({"prompt": "a", "max_tokens": 3})", {"X-Request-Id: mine"})
                .status == 200);
    });
    CHECK_MESSAGE(outcome.code == 0, outcome.err);
    std::ifstream in(log);
    Json line;
    for (std::string text; std::getline(in, text);) {
        line = read_json(text);
        CHECK(line["status"].is_number());
    }
    CHECK(line["id"] == "mine");
    CHECK(line["path"] == "/v1/completions");
    CHECK(line["generated_tokens"] == 3);
    int status = 0;
    const Outcome full = serve({"-m", chain_model(), "--log-file", "/dev/full"}, [&](uint16_t port) {
        for (int i = 0; i < 5; ++i) status = http_get(port, "/v1/models").status;
    });
    CHECK(full.code == 0);
    CHECK(status == 200);
    const size_t told = full.err.find("lines of the log of accesses /dev/full are lost");
    CHECK(told != full.err.npos);
    CHECK(full.err.find("are lost", told + 50) == full.err.npos);
}

TEST_CASE(
    "serve: SIGHUP opens the log file again, and a file as large as files may be does not end the server") {
    const std::string log = file("rotated.log"), moved = log + ".1";
    const auto has_line = [](const std::string& path, const std::string& id) {
        return has(std::filesystem::exists(path) ? read_file(path) : "", id);
    };
    const auto ask_until = [](uint16_t port, const std::string& id, const std::function<bool()>& done) {
        for (int i = 0; i < 1000 && !done(); ++i) {
            http_get(port, "/health", {"X-Request-Id: " + id});
            std::this_thread::sleep_for(std::chrono::milliseconds(20));
        }
    };
    int status = 0;
    const std::string number = file("server.pid");
    const Outcome outcome = serve(
        {"-m", chain_model(), "--log-file", log},
        [&](uint16_t port) {
            ask_until(port, "first", [&] { return has_line(log, "first"); });
            std::filesystem::rename(log, moved);
            ::kill(std::atoi(read_file(number).c_str()), SIGHUP);
            ask_until(port, "second", [&] { return has_line(log, "second"); });
            const std::string path = "/" + std::string(4000, 'a');
            for (int i = 0; i < 10; ++i) status = http_get(port, path).status;
        },
        // Blocks of 512 bytes in some shells, of 1024 in others.
        "echo $$ >" + number + "; ulimit -f 20");
    CHECK_MESSAGE(outcome.code == 0, outcome.err);
    CHECK(has_line(moved, "first"));
    CHECK(has_line(log, "second"));
    CHECK(status == 404);
    const size_t told = outcome.err.find("are lost: File too large");
    CHECK(told != outcome.err.npos);
    CHECK(outcome.err.find("are lost", told + 50) == outcome.err.npos);
}

TEST_CASE("serve: where no more files can be open idle connections make room, which is said once") {
    int while_full = 0, later = 0;
    const Outcome outcome = serve(
        {"-m", chain_model()},
        [&](uint16_t port) {
            std::vector<HttpConnection> idle;
            for (int i = 0; i < 80; ++i) idle.emplace_back(port);
            while_full = http_get(port, "/health").status;
            idle.clear();
            later = http_get(port, "/health").status;
        },
        "ulimit -n 60");
    CHECK_MESSAGE(outcome.code == 0, outcome.err);
    CHECK(while_full == 200);
    CHECK(later == 200);
    const size_t told = outcome.err.find("cannot accept another connection: Too many open files");
    CHECK(told != outcome.err.npos);
    CHECK(outcome.err.find("cannot accept", told + 1) == outcome.err.npos);
}

TEST_CASE("serve: what is wrong is said in one line, before the model is loaded") {
    const auto error_of = [](std::vector<std::string> arguments, int code) {
        arguments.insert(arguments.begin(), {"serve", "-m", chain_model()});
        const Outcome outcome = redline_(arguments);
        CHECK(outcome.code == code);
        CHECK(std::count(outcome.err.begin(), outcome.err.end(), '\n') == 1);
        return outcome.err;
    };
    CHECK(has(error_of({"--port", "70000"}, 2), "--port"));
    CHECK(has(error_of({"--api-key", ""}, 2), "--api-key"));
    CHECK(has(error_of({"--api-key-file", file("no-keys")}, 1), "no-keys"));
    CHECK(has(error_of({"--log-file", file("no-folder") + "/log"}, 1), "no-folder"));
    CHECK(has(error_of({"--log-json"}, 2), "--log-file"));
    CHECK(has(error_of({"--host", "192.0.2.7", "--port", "0"}, 1), "--host"));
    CHECK(has(error_of({"--parallel", "0"}, 2), "--parallel"));
    CHECK(has(error_of({"--grammar", "root ::= \"a\""}, 2), "grammar"));
    CHECK(has(error_of({"--replicas", "3", "--device", "cpu,cpu"}, 1), "the 2 devices of --device cpu,cpu"));
    CHECK(has(error_of({"--replicas", "0"}, 2), "--replicas"));
    CHECK(has(error_of({"--kv-events", "nonsense"}, 1), "--kv-events "));
    CHECK(has(error_of({"--kv-events-topic", "kv"}, 2), "--kv-events ENDPOINT"));
    const Outcome taken = serve({"-m", chain_model()}, [&](uint16_t port) {
        CHECK(has(error_of({"--port", std::to_string(port)}, 1), "--port N takes another port"));
    });
    CHECK(taken.code == 0);
}

TEST_CASE("serve: the models of a folder answer by their names, and options of one model are refused") {
    const std::string folder = file("served-models");
    std::filesystem::create_directories(folder + "/sub");
    for (const char* name : {"/one.gguf", "/sub/two.gguf"})
        std::filesystem::copy_file(chain_model(), folder + name,
                                   std::filesystem::copy_options::overwrite_existing);
    Json models, one, two;
    const Outcome outcome = serve({"--models", folder, "--idle-unload", "600"}, [&](uint16_t port) {
        one = completion(port, {{"model", "one"}, {"max_tokens", 100}});
        two = completion(port, {{"model", "sub/two"}, {"max_tokens", 100}});
        models = read_json(http_get(port, "/v1/models").body)["data"];
    });
    CHECK_MESSAGE(outcome.code == 0, outcome.err);
    CHECK(one["choices"][0]["text"] == ChainModel::kWholeText);
    CHECK(two["choices"][0]["text"] == ChainModel::kWholeText);
    CHECK(two["model"] == "sub/two");
    REQUIRE(models.size() == 2);
    CHECK(models[0]["status"]["value"] == "unloaded");
    CHECK(models[1]["status"]["value"] == "loaded");
    CHECK(has(outcome.err, "one is unloaded: another model is wanted"));

    const auto refused = [](std::vector<std::string> arguments) {
        arguments.insert(arguments.begin(), "serve");
        return redline_(arguments);
    };
    CHECK(refused({"--models", folder, "-m", chain_model()}).code == 2);
    CHECK(refused({"--models", folder, "-a", "name"}).code == 2);
    CHECK(has(refused({"-m", chain_model(), "--models-max", "2"}).err, "--models DIR"));
    CHECK(has(refused({"--models", file("no-folder")}).err, "there is no such folder"));
}

TEST_CASE("serve: a file of presets names the models and the options of each") {
    const std::string presets = file("models.ini");
    std::ofstream(presets) << "version = 1\n"
                              "; for all\n"
                              "[*]\n"
                              "c = 256\n"
                              "temp = 0\n"
                              "mmap = true\n"
                              "no-tune = true\n"
                              "\n"
                              "[first/model:Q4]\n"
                              "model = " +
                                  chain_model() +
                                  "\n"
                                  "ctx-size = 128\n"
                                  "alias = first\n"
                                  "idle-unload = 900\n"
                                  "load-on-startup = true\n"
                                  "[second]\r\n"
                                  "LLAMA_ARG_MODEL = " +
                                  chain_model() +
                                  "\r\n"
                                  "keep-alive-of-others = 1\n";
    const auto refused = [&] { return redline_({"serve", "--models", presets}); };
    const Outcome unknown = refused();
    CHECK(unknown.code == 1);
    CHECK(has(unknown.err, "models.ini:17: there is no option keep-alive-of-others"));
    const auto replace_last = [&](const std::string& line) {
        std::ifstream in(presets);
        std::string all, one;
        for (std::vector<std::string> lines; std::getline(in, one);) all += one + "\n";
        in.close();
        all = all.substr(0, all.rfind('\n', all.size() - 2) + 1) + line + "\n";
        std::ofstream(presets) << all;
    };
    for (const auto& [line, told] : std::vector<std::pair<std::string, std::string>>{
             {"parallel = 0", "models.ini:17: parallel takes a whole number from 1"},
             {"port = 80", "models.ini:17: port holds for the whole server"},
             {"mmproj = x.gguf", "models.ini:17: mmproj: models read text alone here"},
             {"[second]", "models.ini:17: the section [second] is in line 15 already"},
             {"temp = 0.5\nno option", "models.ini:18: \"no option\" is neither a section"}}) {
        replace_last(line);
        CHECK_MESSAGE(has(refused().err, told), refused().err);
    }
    replace_last("temp = 1");
    replace_last("[third]\nmodel = /no/such.gguf");
    CHECK_MESSAGE(has(refused().err, "[third]: model /no/such.gguf: "), refused().err);
    replace_last("model = " + chain_model());

    Json models, running, first;
    int again = 0;
    const Outcome outcome = serve({"--models", presets, "--parallel", "2"}, [&](uint16_t port) {
        for (int i = 0; i < 600 && running.empty(); ++i) {
            running = read_json(http_get(port, "/api/ps").body)["models"];
            std::this_thread::sleep_for(std::chrono::milliseconds(50));
        }
        first = completion(port, {{"model", "first"}, {"max_tokens", 100}});
        again = http_post(port, "/v1/completions", R"({"model": "second", "prompt": "a", "max_tokens": 2})")
                    .status;
        models = read_json(http_get(port, "/v1/models").body)["data"];
    });
    CHECK_MESSAGE(outcome.code == 0, outcome.err);
    REQUIRE(running.size() == 1);
    CHECK(running[0]["name"] == "first/model:Q4");
    CHECK(running[0]["context_length"] == 128);
    CHECK(first["model"] == "first/model:Q4");
    CHECK(first["choices"][0]["text"] == ChainModel::kWholeText);
    CHECK(again == 200);
    REQUIRE(models.size() == 3);
    CHECK(models[1]["id"] == "second");
    CHECK(models[1]["meta"]["n_ctx"] == 256);
}

TEST_CASE("serve: replicas answer at one address, each with its slots, and say where they run") {
    std::vector<std::string> texts(8);
    Json slots, props;
    std::string metrics;
    const Outcome outcome = serve({"-m", chain_model(), "--replicas", "2", "-np", "2"}, [&](uint16_t port) {
        std::vector<std::thread> clients;
        for (std::string& text : texts)
            clients.emplace_back([&text, port] {
                const Json got = completion(port, {{"max_tokens", 100}});
                text = got.is_object() ? got["choices"][0].value("text", "") : "no answer";
            });
        for (std::thread& client : clients) client.join();
        slots = read_json(http_get(port, "/slots").body);
        props = read_json(http_get(port, "/props").body);
        metrics = http_get(port, "/metrics").body;
    });
    CHECK_MESSAGE(outcome.code == 0, outcome.err);
    for (const std::string& text : texts) CHECK(text == ChainModel::kWholeText);
    REQUIRE(slots.size() == 4);
    CHECK(slots[1]["replica"] == 0);
    CHECK(slots[2]["replica"] == 1);
    CHECK(props["total_slots"] == 4);
    REQUIRE(props["replicas"].size() == 2);
    CHECK(props["replicas"][1]["state"] == "serving");
    CHECK(has(metrics, "finished_reason=\"stop\"} 8\n"));
    for (const char* replica : {"0", "1"}) {
        CHECK(has(metrics, fmt::format(",replica=\"{}\",device=\"cpu (", replica)));
        CHECK(has(outcome.err, fmt::format("replica {}: plan: ", replica)));
        CHECK(has(outcome.err, fmt::format("replica {}: cpu (", replica)));
    }
    CHECK(has(outcome.err, "2 replicas, each 2 requests at a time"));
    const Outcome several = redline_({"serve", "--models", file("."), "--replicas", "2"});
    CHECK(several.code == 2);
    CHECK(has(several.err, "--replicas is for a server of one model"));
}

TEST_CASE("serve: what was read stays in --cache-dir over a restart") {
    const std::string folder = file("kept-sequences");
    const std::string prompt(100, 'a');
    Json before, after;
    for (Json* got : {&before, &after}) {
        const Outcome outcome =
            serve({"-m", chain_model(), "--cache-dir", folder, "--cache-size", "100M"}, [&](uint16_t port) {
                *got = completion(port, {{"prompt", prompt}, {"max_tokens", 20}});
            });
        CHECK_MESSAGE(outcome.code == 0, outcome.err);
    }
    CHECK(before["usage"]["prompt_tokens_details"]["cached_tokens"] == 0);
    CHECK(after["usage"]["prompt_tokens_details"]["cached_tokens"] > 90);
    CHECK(after["choices"][0]["text"] == before["choices"][0]["text"]);

    const Outcome unwritable = redline_({"serve", "-m", chain_model(), "--cache-dir", "/proc/kept"});
    CHECK(unwritable.code == 1);
    CHECK(has(unwritable.err, "the cache folder /proc/kept cannot be made"));
    CHECK(redline_({"serve", "-m", chain_model(), "--cache-size", "1G"}).code == 2);
    CHECK(redline_({"serve", "-m", chain_model(), "--cache-dir", folder, "--cache-size", "4"}).code == 2);
}
