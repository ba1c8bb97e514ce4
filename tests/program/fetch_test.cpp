// Model files from a hub and from plain servers, with everything that goes wrong on the way.
#include "base/sha256.h"
#include "fetch/download.h"
#include "fetch/hub.h"
#include "gguf/check.h"
#include "support/gguf_builder.h"
#include "support/http_server.h"
#include "support/models.h"
#include "support/program.h"

using namespace redline;
using namespace redline::test;

namespace fs = std::filesystem;

namespace {

// The servers of these tests are on this machine, whatever proxy it has.
[[maybe_unused]] const int without_proxy = ::setenv("no_proxy", "*", 1);

std::string sha256(const std::string& text) {
    Sha256 hash;
    hash.update(std::as_bytes(std::span(text)));
    return hash.digest();
}

std::string content(size_t bytes) {
    std::string text;
    for (size_t i = 0; i < bytes; ++i) text += char('a' + (i * 7 + i / 26) % 26);
    return text;
}

// A file as servers give it, with ranges.
HttpAnswer ranged(const HttpAsked& asked, const std::string& body) {
    const auto range = asked.headers.find("range");
    if (range == asked.headers.end()) return {200, {}, body};
    const size_t first = std::stoul(range->second.substr(6));
    if (first >= body.size()) return {416, {}, ""};
    return {206,
            {fmt::format("Content-Range: bytes {}-{}/{}", first, body.size() - 1, body.size())},
            body.substr(first)};
}

struct Target {
    TemporaryFolder folder;
    std::string path = (folder.path / "deep/er/model.gguf").string();
    bool there() const { return fs::exists(path); }
    uint64_t partial() const { return fs::exists(path + ".part") ? fs::file_size(path + ".part") : 0; }
};

Status get(const HttpServer& server, const Target& target, const std::string& body, std::string hash = "",
           const std::atomic<bool>* cancel = nullptr) {
    return download(
        {server.url("/file"), {}, target.path, body.size(), std::move(hash), 1}, [](uint64_t, uint64_t) {},
        cancel);
}

std::string listing_entry(const std::string& path, size_t bytes, const std::string& hash) {
    return fmt::format(R"({{"type":"file","path":"{}","size":{},"oid":"1f","lfs":{{"oid":"{}","size":{}}}}})",
                       path, bytes, hash, bytes);
}

std::vector<HubFile> files_called(const std::vector<std::string>& names) {
    std::vector<HubFile> files;
    for (const std::string& name : names) files.push_back({name, 1, ""});
    return files;
}

}  // namespace

TEST_CASE("sha256 gives the standard's digests, whatever the pieces") {
    CHECK(sha256("") == "e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855");
    CHECK(sha256("abc") == "ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad");
    CHECK(sha256("abcdbcdecdefdefgefghfghighijhijkijkljklmklmnlmnomnopnopq") ==
          "248d6a61d20638b8e5c026930c3e6039a33ce45964ff2167f6ecedd419db06c1");
    CHECK(sha256(std::string(1000000, 'a')) ==
          "cdc76e5c9914fb9281a1c7e284d73e67f1809a48a497200e046d39ccc7112cd0");
    const std::string text = content(500);
    for (const size_t piece : {1, 3, 63, 64, 65, 200}) {
        Sha256 hash;
        for (size_t at = 0; at < text.size(); at += piece)
            hash.update(std::as_bytes(std::span(text)).subspan(at, std::min(piece, text.size() - at)));
        CHECK(hash.digest() == sha256(text));
    }
}

TEST_CASE("a file is fetched whole, through redirects, and an empty folder is made for it") {
    const std::string body = content(300000);
    HttpServer server([&](const HttpAsked& asked) -> HttpAnswer {
        if (asked.path == "/file") return {302, {"Location: /moved"}, "elsewhere"};
        return ranged(asked, body);
    });
    const Target target;
    REQUIRE(get(server, target, body, sha256(body)).ok());
    CHECK(read_file(target.path) == body);
    CHECK(target.partial() == 0);
}

TEST_CASE("a token goes to the server that it is for, and not where that redirects to") {
    HttpServer other([](const HttpAsked&) { return HttpAnswer{200, {}, "body"}; });
    HttpServer server([&](const HttpAsked&) -> HttpAnswer {
        return {302, {"Location: " + other.url("/file")}, ""};
    });
    const Target target;
    const std::vector<std::string> headers = Hub{server.url(), "secret", 1}.headers();
    REQUIRE(
        download({server.url("/file"), headers, target.path, 4, sha256("body"), 1}, [](uint64_t, uint64_t) {
        }).ok());
    CHECK(server.asked()[0].headers.count("authorization") == 1);
    REQUIRE(other.asked().size() == 1);
    CHECK(other.asked()[0].headers.count("authorization") == 0);
}

TEST_CASE("what broke off goes on where it ended, also on a server without ranges") {
    const std::string body = content(100000);
    for (const bool ranges : {true, false}) {
        bool broken = true;
        HttpServer server([&](const HttpAsked& asked) -> HttpAnswer {
            HttpAnswer answer = ranges ? ranged(asked, body) : HttpAnswer{200, {}, body};
            if (std::exchange(broken, false)) answer.send = 40000;
            return answer;
        });
        const Target target;
        const Status first = get(server, target, body, sha256(body));
        CHECK(!first.ok());
        CHECK(!target.there());
        CHECK(target.partial() == 40000);
        REQUIRE(get(server, target, body, sha256(body)).ok());
        CHECK(read_file(target.path) == body);
        CHECK(server.asked()[1].headers.at("range") == "bytes=40000-");
    }
}

TEST_CASE("a damaged file, one of another size and a part of another file never get the name") {
    const std::string body = content(5000);
    HttpServer server([&](const HttpAsked& asked) { return ranged(asked, body); });
    const Target target;
    const Status damaged = get(server, target, body, sha256("other"));
    REQUIRE(!damaged.ok());
    CHECK(has(damaged.error().message, "damaged"));
    CHECK(!target.there());
    CHECK(target.partial() == 0);
    const Status larger = get(server, target, body + "x", sha256(body));
    REQUIRE(!larger.ok());
    CHECK(has(larger.error().message, "has 5000 bytes, and 5001 were announced"));
    CHECK(!target.there());
    write_file(target.path + ".part", std::string(1000, '!'));
    CHECK(!get(server, target, body, sha256(body)).ok());
    CHECK(get(server, target, body, sha256(body)).ok());
    CHECK(read_file(target.path) == body);
}

TEST_CASE("a server that falls silent, a refused connection and Ctrl-C are errors that keep what came") {
    const std::string body = content(5000);
    HttpServer server([&](const HttpAsked& asked) {
        HttpAnswer answer = ranged(asked, body);
        answer.send = 2000;
        answer.stall = true;
        return answer;
    });
    const Target target;
    const Status stalled = get(server, target, body, sha256(body));
    REQUIRE(!stalled.ok());
    CHECK(has(stalled.error().message, "no byte came"));
    CHECK(target.partial() == 2000);
    const std::atomic<bool> cancelled = true;
    const Status stopped = get(server, target, body, sha256(body), &cancelled);
    REQUIRE(!stopped.ok());
    CHECK(has(stopped.error().message, "interrupted"));
    const Status nobody =
        download({"http://127.0.0.1:1/file", {}, target.path, 0, "", 1}, [](uint64_t, uint64_t) {});
    REQUIRE(!nobody.ok());
    CHECK(has(nobody.error().message, "is there a network?"));
}

TEST_CASE("without a hash a transfer goes on only where the server still has the same version") {
    const std::string body = content(50000);
    std::string version = "\"one\"";
    bool broken = true;
    HttpServer server([&](const HttpAsked& asked) -> HttpAnswer {
        const auto same = asked.headers.find("if-range");
        HttpAnswer answer = same != asked.headers.end() && same->second == version
                                ? ranged(asked, body)
                                : HttpAnswer{200, {}, body};
        if (!version.empty()) answer.headers.push_back("ETag: " + version);
        if (std::exchange(broken, false)) answer.send = 20000;
        return answer;
    });
    const auto fetch = [&](const Target& target) {
        return download({server.url("/file"), {}, target.path, 0, "", 1}, [](uint64_t, uint64_t) {});
    };
    for (const std::string later : {"\"one\"", "\"two\""}) {
        const Target target;
        broken = true;
        version = "\"one\"";
        const Status cut = fetch(target);
        REQUIRE(!cut.ok());
        CHECK_MESSAGE(has(cut.error().message, "the same command goes on"), cut.error().message);
        CHECK(target.partial() == 20000);
        version = later;
        REQUIRE(fetch(target).ok());
        CHECK(read_file(target.path) == body);
        CHECK(!fs::exists(target.path + ".part.version"));
        CHECK(server.asked().back().headers.at("range") == "bytes=20000-");
    }
    version = "";
    broken = true;
    const Target target;
    const Status cut = fetch(target);
    REQUIRE(!cut.ok());
    CHECK(has(cut.error().message, server.url("/file") + ": "));
    CHECK(has(cut.error().message, "try again"));
    CHECK(!fs::exists(target.path + ".part"));
}

TEST_CASE("a server that sends the rest of another version is asked for all of it") {
    const std::string old_body = content(50000), body = std::string(50000, '!');
    for (const std::string version : {"ETag: \"two\"", "X-None: 1"}) {
        HttpServer server([&](const HttpAsked& asked) -> HttpAnswer {
            HttpAnswer answer = ranged(asked, body);
            answer.headers.push_back(version);
            return answer;
        });
        const Target target;
        fs::create_directories(fs::path(target.path).parent_path());
        write_file(target.path + ".part", old_body.substr(0, 20000));
        write_file(target.path + ".part.version", "\"one\"");
        const Status got =
            download({server.url("/file"), {}, target.path, 0, "", 1}, [](uint64_t, uint64_t) {});
        CHECK_MESSAGE(got.ok(), (got.ok() ? "" : got.error().message));
        CHECK(read_file(target.path) == body);
        CHECK(server.asked().size() == 2);
    }
}

TEST_CASE("a part that is longer than the server's file is of another one") {
    const std::string body = content(3000);
    HttpServer server([&](const HttpAsked& asked) { return ranged(asked, body); });
    const Target target;
    fs::create_directories(fs::path(target.path).parent_path());
    write_file(target.path + ".part", content(4000));
    const Status got =
        download({server.url("/file"), {}, target.path, 0, sha256(body), 1}, [](uint64_t, uint64_t) {});
    CHECK_MESSAGE(got.ok(), (got.ok() ? "" : got.error().message));
    CHECK(read_file(target.path) == body);
}

TEST_CASE("a page in place of the rest of a file leaves the part for the next attempt") {
    const std::string body = "GGUF" + content(50000);
    bool logged_in = false;
    HttpServer server([&](const HttpAsked& asked) {
        return logged_in ? ranged(asked, body) : HttpAnswer{200, {}, "<html>Please sign in</html>"};
    });
    const Target target;
    fs::create_directories(fs::path(target.path).parent_path());
    write_file(target.path + ".part", body.substr(0, 20000));
    Download what{server.url("/file"), {}, target.path, 0, sha256(body), 1};
    what.check_start = [](std::span<const std::byte> start) { return check_gguf_start(start, "it"); };
    const Status page = download(what, [](uint64_t, uint64_t) {});
    REQUIRE(!page.ok());
    CHECK(has(page.error().message, "is a web page"));
    CHECK(target.partial() == 20000);
    CHECK(size_on_server(what) == 0);
    logged_in = true;
    CHECK(size_on_server(what) == body.size());
    CHECK(download(what, [](uint64_t, uint64_t) {}).ok());
    CHECK(server.asked().back().headers.at("range") == "bytes=20000-");
    CHECK(read_file(target.path) == body);
}

TEST_CASE("a file that is sent compressed, which was not requested, is refused") {
    HttpServer server([](const HttpAsked&) {
        return HttpAnswer{200, {"Content-Encoding: gzip"}, std::string(100, '\x1f')};
    });
    const Target target;
    const Status got = get(server, target, std::string(100, '\x1f'));
    REQUIRE(!got.ok());
    CHECK(has(got.error().message, "compressed by gzip"));
    CHECK(server.asked()[0].headers.at("accept-encoding") == "identity");
    CHECK(target.partial() == 0);
}

TEST_CASE("statuses are explained, and no part is left of a file that is not there") {
    for (const auto& [status, words] : std::map<int, std::string>{{401, "HF_TOKEN"},
                                                                  {403, "gated"},
                                                                  {404, "no such file"},
                                                                  {429, "too many"},
                                                                  {503, "try again later"}}) {
        HttpServer server([status = status](const HttpAsked&) { return HttpAnswer{status, {}, "no"}; });
        const Target target;
        const Status refused = get(server, target, "body");
        REQUIRE(!refused.ok());
        CHECK(has(refused.error().message, fmt::format("answers {}", status)));
        CHECK(has(refused.error().message, words));
        CHECK(!fs::exists(target.path + ".part"));
    }
}

TEST_CASE("names of models on a hub") {
    CHECK(must(parse_hub_model("a/b")).repository == "a/b");
    CHECK(must(parse_hub_model("hf.co/a/b-c.d:Q4_K_M")).wanted == "Q4_K_M");
    for (const char* wrong : {"", "a", "a/", "/b", "a/b/c", "a/b:", "a/..", "a b/c", "../b"})
        CHECK_MESSAGE(!parse_hub_model(wrong).ok(), wrong);
}

TEST_CASE("the format that is meant is chosen, with all parts of a split model") {
    const auto chosen = [](const std::vector<std::string>& names, const std::string& wanted) {
        const Result<std::vector<HubFile>> got = choose_files(files_called(names), {"a/b", wanted});
        std::string all;
        if (!got) return "error: " + got.error().message;
        for (const HubFile& file : got.value()) all += (all.empty() ? "" : " ") + file.path;
        return all;
    };
    const std::vector<std::string> usual = {"README.md",     "m-Q4_K_M.gguf",  "m-Q4_K_S.gguf",
                                            "m-Q8_0.gguf",   "m-UD-Q8_0.gguf", "mmproj-F16.gguf",
                                            "m-IQ4_XS.gguf", "m-Q4_K.gguf"};
    CHECK(chosen(usual, "") == "m-Q4_K_M.gguf");
    CHECK(chosen(usual, "q8_0") == "m-Q8_0.gguf");
    CHECK(chosen(usual, "Q4_K") == "m-Q4_K.gguf");
    CHECK(chosen(usual, "UD-Q8_0") == "m-UD-Q8_0.gguf");
    CHECK(chosen(usual, "m-IQ4_XS.gguf") == "m-IQ4_XS.gguf");
    CHECK(has(chosen(usual, "Q2_K"), "no file of Q2_K"));
    // Every name that an error offers is that of a file which is there, and is taken.
    const std::vector<std::string> split = {"BF16/m-BF16-00001-of-00002.gguf",
                                            "BF16/m-BF16-00002-of-00002.gguf", "m-Q8_0.gguf"};
    CHECK(chosen(split, "Q2_K").ends_with(": BF16/m-BF16-00001-of-00002.gguf, m-Q8_0.gguf"));
    for (const std::string& part : {split[0], split[1], std::string("BF16")})
        CHECK(chosen(split, part) == split[0] + " " + split[1]);
    CHECK(has(chosen({split[1]}, ""), "lacks BF16/m-BF16-00001-of-00002.gguf"));
    CHECK(has(chosen({"model.safetensors"}, ""), "has no GGUF files; models in other forms"));
    CHECK(chosen({"only.gguf", "mmproj.gguf"}, "") == "only.gguf");
    CHECK(
        chosen({"Q4_K_M/m-Q4_K_M-00002-of-00002.gguf", "Q4_K_M/m-Q4_K_M-00001-of-00002.gguf", "m-Q8_0.gguf"},
               "") == "Q4_K_M/m-Q4_K_M-00001-of-00002.gguf Q4_K_M/m-Q4_K_M-00002-of-00002.gguf");
}

TEST_CASE(
    "a listing of several pages is read, and one that leads elsewhere or out of the folder is refused") {
    std::string second, link;
    HttpServer* here = nullptr;
    HttpServer server([&](const HttpAsked& asked) -> HttpAnswer {
        if (asked.path.find("cursor") != std::string::npos) return {200, {}, second};
        const std::string next = link.empty() ? here->url("/api/models/a/b/tree/main?cursor=2") : link;
        return {200, {"Link: <" + next + ">; rel=\"next\""}, "[" + listing_entry("one.gguf", 3, "AB") + "]"};
    });
    here = &server;
    const Hub hub{server.url(), "secret", 1};
    second = "[" + listing_entry("two.gguf", 4, "cd") + R"(,{"type":"directory","path":"folder"}])";
    const std::vector<HubFile> files = must(hub.list({"a/b", ""}));
    REQUIRE(files.size() == 2);
    CHECK(files[0].sha256 == "ab");
    CHECK(files[1].bytes == 4);
    CHECK(server.asked()[0].headers.at("authorization") == "Bearer secret");
    second = "[" + listing_entry("../../etc/two.gguf", 4, "cd") + "]";
    CHECK(!hub.list({"a/b", ""}).ok());
    second = "{\"error\": \"no\"}";
    CHECK(!hub.list({"a/b", ""}).ok());
    link = "http://127.0.0.2:1/next";
    const auto elsewhere = hub.list({"a/b", ""});
    REQUIRE(!elsewhere.ok());
    CHECK(has(elsewhere.error().message, "another server"));
}

namespace {

// Runs the program with a separate home folder, whose hub is this server.
Outcome at_home(const fs::path& home, const HttpServer& server, std::vector<std::string> arguments) {
    Launch what = command(std::move(arguments));
    what.environment = {"HOME=" + home.string(), "HF_ENDPOINT=" + server.url() + "/", "no_proxy=*"};
    for (const char* name : {"REDLINE_MODELS", "XDG_DATA_HOME", "XDG_CACHE_HOME", "HF_HOME", "HF_HUB_CACHE",
                             "LLAMA_CACHE", "OLLAMA_MODELS", "HF_TOKEN", "http_proxy"})
        what.environment.push_back(std::string(name) + "=");
    return launch(what);
}

}  // namespace

TEST_CASE("redline pull: what is no whole model never gets the name of one") {
    const std::string body = read_file(chain_model());
    std::map<std::string, HttpAnswer> answers = {
        {"/page.gguf", {200, {}, "<!DOCTYPE html><html><body>Sign in</body></html>"}},
        {"/login.gguf", {302, {"Location: /page.gguf"}, ""}},
        {"/empty.gguf", {200, {}, ""}},
        {"/short.gguf", {200, {}, "GGUF"}},
        {"/cut.gguf", {200, {}, body.substr(0, body.size() - 1000)}},
        {"/error.gguf", {200, {}, R"({"error": "no such model"})"}},
        {"/model.gguf", {200, {}, body}}};
    HttpServer server([&](const HttpAsked& asked) {
        const auto found = answers.find(asked.path);
        return found == answers.end() ? HttpAnswer{404, {}, "no"} : found->second;
    });
    const TemporaryFolder home;
    const fs::path folder = home.path / "got";
    const auto pull = [&](const std::string& name) {
        return at_home(home.path, server, {"pull", "-o", folder.string(), server.url("/" + name)});
    };
    for (const auto& [name, words] : std::map<std::string, std::string>{{"page", "is a web page"},
                                                                        {"login", "is a web page"},
                                                                        {"empty", "is empty"},
                                                                        {"short", "cut short"},
                                                                        {"cut", "cut short"},
                                                                        {"error", "is a JSON text"}}) {
        const Outcome got = pull(name + ".gguf");
        CAPTURE(got.err);
        CHECK(got.code == 1);
        CHECK(has(got.err, words));
        CHECK(has(got.err, server.url("/")));
        CHECK(std::count(got.err.begin(), got.err.end(), '\n') == 1);
        CHECK(fs::is_empty(folder));
    }
    // An existing file with this name is checked, too.
    write_file((folder / "model.gguf").string(), body.substr(0, 5000));
    const Outcome anew = pull("model.gguf");
    CHECK_MESSAGE(anew.code == 0, anew.err);
    CHECK(has(anew.err, "fetched anew"));
    CHECK(read_file((folder / "model.gguf").string()) == body);
    CHECK(has(pull("model.gguf").err, "is there already"));
    answers["/model.gguf"].body += std::string(32, '\0');
    const Outcome other = pull("model.gguf");
    CHECK(other.code == 1);
    CHECK_MESSAGE(has(other.err, "is there already, another model of"), other.err);
    CHECK(read_file((folder / "model.gguf").string()) == body);
}

TEST_CASE("redline pull: a whole file that this build cannot read is kept, and not fetched again") {
    std::string body = read_file(chain_model());
    body[4] = 1;  // the version
    HttpServer server([&](const HttpAsked& asked) -> HttpAnswer {
        if (asked.path.starts_with("/api/"))
            return {200, {}, "[" + listing_entry("old.gguf", body.size(), sha256(body)) + "]"};
        return ranged(asked, body);
    });
    const TemporaryFolder home;
    const std::string folder = (home.path / "got").string();
    for (const auto& [wanted, place] : std::map<std::string, std::string>{
             {"us/er", "/us/er/old.gguf"}, {server.url("/old.gguf"), "/old.gguf"}}) {
        const Outcome got = at_home(home.path, server, {"pull", "-o", folder, wanted});
        CHECK(got.code == 1);
        CHECK_MESSAGE(has(got.err, "is of GGUF version 1"), got.err);
        CHECK(has(got.err, "the download is complete and is kept as " + folder + place));
        CHECK(read_file(folder + place) == body);
        const Outcome again = at_home(home.path, server, {"pull", "-o", folder, wanted});
        CHECK(again.code == 1);
        CHECK_MESSAGE(has(again.err, "it is there already"), again.err);
        CHECK(read_file(folder + place) == body);
    }
}

TEST_CASE("redline pull: the URL of any part brings all parts of a split model") {
    const auto part = [](uint16_t index, uint16_t count) {
        GgufBuilder b;
        b.add("split.no", index).add("split.count", count).add("split.tensors.count", int32_t(2));
        if (index == 0) b.add("general.architecture", std::string("llama"));
        b.tensor_f32(fmt::format("t{}", index), {32}, std::vector<float>(32, 1.0f));
        const Bytes bytes = b.bytes();
        return std::string(reinterpret_cast<const char*>(bytes.data()), bytes.size());
    };
    std::vector<std::string> parts = {part(0, 2), part(1, 2)};
    HttpServer server([&](const HttpAsked& asked) -> HttpAnswer {
        for (size_t i = 0; i < 2; ++i)
            if (asked.path == fmt::format("/m-{:05}-of-00002.gguf?download=true", i + 1))
                return {200, {}, parts[i]};
        return {asked.path == "/renamed.gguf" ? 200 : 404, {}, parts[0]};
    });
    const TemporaryFolder home;
    const auto pull = [&](const std::string& folder, const std::string& path) {
        return at_home(home.path, server, {"pull", "-o", (home.path / folder).string(), server.url(path)});
    };
    for (const std::string index : {"1", "2"}) {
        const Outcome got = pull("got" + index, "/m-0000" + index + "-of-00002.gguf?download=true");
        CHECK_MESSAGE(got.code == 0, got.err);
        CHECK(has(got.out, "m-00001-of-00002.gguf"));
        CHECK(read_file((home.path / ("got" + index) / "m-00002-of-00002.gguf").string()) == parts[1]);
    }
    const Outcome renamed = pull("other", "/renamed.gguf");
    CHECK(renamed.code == 1);
    CHECK_MESSAGE(has(renamed.err, "is part 1 of 2 of a split model, which its name does not say"),
                  renamed.err);
    parts[1] = part(0, 2);
    const Outcome mixed = pull("mixed", "/m-00001-of-00002.gguf?download=true");
    CHECK(mixed.code == 1);
    CHECK_MESSAGE(has(mixed.err, "is part 1 of 2"), mixed.err);
}

TEST_CASE("-hf finds what any program of this machine has fetched, and --offline fetches nothing") {
    const TemporaryFolder home;
    const std::vector<std::string> places = {
        ".local/share/redline/models/us/er-GGUF/letters-Q8_0.gguf",
        ".cache/huggingface/hub/models--us--er-GGUF/snapshots/11/letters-Q8_0.gguf",
        ".cache/llama.cpp/us_er-GGUF_letters-Q8_0.gguf", ".lmstudio/models/us/er-GGUF/letters-Q8_0.gguf",
        ".ollama/models/blobs/sha256-77"};
    HttpServer server([](const HttpAsked&) { return HttpAnswer{404, {}, "no"}; });
    const auto run = [&](std::vector<std::string> line) {
        line.insert(line.end(), {"-p", "a", "-n", "2", "--temp", "0"});
        return at_home(home.path, server, std::move(line));
    };
    for (const std::string& place : places) {
        CAPTURE(place);
        const fs::path path = home.path / place;
        fs::create_directories(path.parent_path());
        fs::copy_file(chain_model(), path);
        const fs::path manifest = home.path / ".ollama/models/manifests/hf.co/us/er-GGUF/Q8_0";
        if (has(place, "ollama")) {
            fs::create_directories(manifest.parent_path());
            write_file(manifest.string(), R"({"layers":[{"mediaType":"application/vnd.ollama.image.model",)"
                                          R"("digest":"sha256:77","size":3}]})");
        }
        CHECK(run({"run", "-hf", "us/er-GGUF:q8_0"}).out == "bc");
        CHECK(run({"run", "-hf", "US/er-gguf", "--offline"}).out == "bc");
        CHECK(run({"run", "-m", "us/er-GGUF:Q8_0"}).out == "bc");
        CHECK(run({"run", "us/er-GGUF"}).out == "bc");
        const Outcome other = run({"run", "-hf", "us/er-GGUF:Q4_K_M", "--offline"});
        CHECK(other.code == 1);
        CHECK(has(other.err, "--offline: no program here has fetched us/er-GGUF:Q4_K_M"));
        fs::remove(path);
        fs::remove(manifest);
    }
    CHECK(server.asked().empty());
    // A file that is cut is passed over.
    fs::create_directories((home.path / places[0]).parent_path());
    write_file((home.path / places[0]).string(), read_file(chain_model()).substr(0, 5000));
    const Outcome cut = run({"run", "-hf", "us/er-GGUF:Q8_0", "--offline"});
    CHECK(cut.code == 1);
    CHECK_MESSAGE(has(cut.err, "passed over"), cut.err);
}

TEST_CASE("redline pull: fetches a model that then is listed and runs by its name") {
    const std::string body = read_file(chain_model());
    HttpServer server([&](const HttpAsked& asked) -> HttpAnswer {
        if (asked.path.starts_with("/api/models/us/er-GGUF/"))
            return {200, {}, "[" + listing_entry("letters-Q8_0.gguf", body.size(), sha256(body)) + "]"};
        if (asked.path == "/us/er-GGUF/resolve/main/letters-Q8_0.gguf") return ranged(asked, body);
        return {asked.path.find("gated") == std::string::npos ? 404 : 401, {}, "no"};
    });
    const TemporaryFolder home;
    const auto at_home = [&](std::vector<std::string> arguments) {
        Launch what = command(std::move(arguments));
        what.environment = {"HOME=" + home.path.string(),
                            "HF_ENDPOINT=" + server.url() + "/",
                            "REDLINE_MODELS=",
                            "XDG_DATA_HOME=",
                            "HF_TOKEN=",
                            "http_proxy=",
                            "no_proxy=*"};
        return launch(what);
    };
    const Outcome got = at_home({"pull", "us/er-GGUF:Q8_0"});
    INFO(got.err);
    CHECK(got.code == 0);
    CHECK(got.out ==
          (home.path / ".local/share/redline/models/us/er-GGUF/letters-Q8_0.gguf").string() + "\n");
    CHECK(read_file(got.out.substr(0, got.out.size() - 1)) == body);
    CHECK(has(at_home({"pull", "-hf", "us/er-GGUF", "--json"}).err, "is there already"));
    CHECK(at_home({"run", "-m", "letters-q8", "-p", "a", "-n", "2", "--temp", "0"}).out == "bc");
    // llama.cpp's way to name a model: this one is here, so that no server is asked.
    const size_t asked = server.asked().size();
    const std::vector<std::string> letters = {"-p", "a", "-n", "2", "--temp", "0"};
    const auto with_letters = [&](std::vector<std::string> line) {
        line.insert(line.end(), letters.begin(), letters.end());
        return at_home(line);
    };
    for (const std::string name : {"us/er-GGUF", "us/er-GGUF:Q8_0"})
        CHECK(with_letters({"run", "-hf", name}).out == "bc");
    CHECK(server.asked().size() == asked);
    fs::remove_all(home.path / ".local/share/redline/models");
    const Outcome fetched = with_letters({"run", "-hf", "us/er-GGUF:Q8_0"});
    CHECK_MESSAGE(fetched.out == "bc", fetched.err);
    CHECK(has(fetched.err, "fetching letters-Q8_0.gguf"));
    CHECK(server.asked().size() > asked);
    CHECK(has(with_letters({"run", "-hf", "no/body"}).err, "answers 404"));
    CHECK(with_letters({"run", "-hf", "no/body", "-m", "x.gguf"}).code == 2);
    CHECK(with_letters({"run", "-hf", "nobody"}).code == 2);
    const Outcome missing = at_home({"pull", "no/body"});
    CHECK(missing.code == 1);
    CHECK(has(missing.err, "answers 404"));
    CHECK(has(at_home({"pull", "a/gated"}).err, "HF_TOKEN"));
    CHECK(at_home({"pull"}).code == 2);
    CHECK(at_home({"pull", "not-a-model"}).code == 2);
}
