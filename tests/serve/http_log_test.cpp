// Ids of requests, and the log of accesses.
#include "serve/http/access_log.h"
#include "served.h"

using namespace redline;
using namespace redline::test;
namespace server = redline::serve;

namespace {

struct LogFile {
    std::string path =
        (std::filesystem::temp_directory_path() / fmt::format("redline_log_{}", ::getpid())).string();
    ~LogFile() { std::filesystem::remove(path); }
    std::unique_ptr<server::AccessLog> open() const {
        return server::AccessLog::open(path, false, [](const std::string& text) { FAIL_CHECK(text); })
            .value();
    }
};

size_t lines_of(const std::string& path) {
    if (!std::filesystem::exists(path)) return 0;
    const std::string text = read_file(path);
    return size_t(std::count(text.begin(), text.end(), '\n'));
}

// A server that keeps what it would log.
struct LoggedServer {
    std::mutex mutex;
    std::vector<server::HttpAccess> lines;
    Served served;

    explicit LoggedServer(const server::AccessOptions& access = {}, server::HttpOptions http = {})
        : served(access, std::move(http)) {
        served.server->set_log([this](const server::HttpAccess& access_line) {
            const std::lock_guard lock(mutex);
            lines.push_back(access_line);
        });
    }
    // The number of lines is waited for: a client has its answer before the line is there.
    server::HttpAccess line(size_t index) {
        REQUIRE(comes_true([&] {
            const std::lock_guard lock(mutex);
            return lines.size() > index;
        }));
        const std::lock_guard lock(mutex);
        return lines[index];
    }
};

const server::HttpAccess kAccess = {.id = "req-1",
                                    .peer = "[::1]:7",
                                    .method = "POST",
                                    .path = "/a \"%\n\xE2\x82\xAC",
                                    .status = 200,
                                    .bytes = 12,
                                    .seconds = 0.25,
                                    .prompt_tokens = 3,
                                    .generated_tokens = 4};

}  // namespace

TEST_CASE("ids: a sane one of the client comes back, and every other answer has a new one") {
    Served served({.keys = {"k"}}, {.limits = {.header_bytes = 8192}});
    const auto id = [&](const std::string& path, const HttpLines& headers) {
        return http_get(served.port(), path, headers).headers.at("x-request-id");
    };
    CHECK(id("/health", {"X-Request-Id: 4bf92f35-77b3:a/b=c@d.e+f_"}) == "4bf92f35-77b3:a/b=c@d.e+f_");
    // Refusals have it, too.
    CHECK(id("/v1/models", {"x-request-id: mine"}) == "mine");
    for (const std::string& bad : {std::string("a b"), std::string("a\"b"), std::string("\xC3\xA4"),
                                   std::string(129, 'a'), std::string()}) {
        const std::string made = id("/health", {"X-Request-Id: " + bad});
        CHECK_MESSAGE(made.starts_with("req-"), bad);
        CHECK(made.size() == 20);
    }
    CHECK(id("/health", {}) != id("/health", {}));
    for (const std::string& text :
         {std::string("nonsense\r\n\r\n"),
          "GET /health HTTP/1.1\r\nHost: x\r\nX: " + std::string(20000, 'a') + "\r\n\r\n"}) {
        HttpConnection bad(served.port());
        bad.send(text);
        const HttpGot got = bad.read();
        CHECK(got.status >= 400);
        CHECK(got.headers.at("x-request-id").starts_with("req-"));
    }
    const HttpGot page = http_get(served.port(), "/health", {"Origin: http://localhost:3000"});
    CHECK(page.headers.at("access-control-expose-headers") == "X-Request-Id");
}

TEST_CASE("ids: a stream has one, and a connection's second request has another") {
    Served served;
    HttpConnection client(served.port());
    client.send(http_text("POST", "/v1/chat/completions", chat_body({{"stream", true}}).dump(),
                          {"X-Request-Id: first"}) +
                http_text("GET", "/health"));
    CHECK(client.read().headers.at("x-request-id") == "first");
    CHECK(client.read().headers.at("x-request-id").starts_with("req-"));
}

TEST_CASE("access log: a request is told with its id, its peer, and the tokens where there are any") {
    LoggedServer logged;
    const HttpGot got =
        http_post(logged.served.port(), "/v1/chat/completions", chat_body().dump(), {"X-Request-Id: mine"});
    const Json usage = read_json(got.body)["usage"];
    const server::HttpAccess chat = logged.line(0);
    CHECK(chat.id == "mine");
    CHECK(chat.peer.starts_with("127.0.0.1:"));
    CHECK(chat.method == "POST");
    CHECK(chat.path == "/v1/chat/completions");
    CHECK(chat.status == 200);
    CHECK(chat.bytes > got.body.size());
    CHECK(chat.seconds >= 0.0);
    CHECK(chat.prompt_tokens == usage["prompt_tokens"].get<uint64_t>());
    CHECK(chat.generated_tokens == usage["completion_tokens"].get<uint64_t>());
    http_get(logged.served.port(), "/nowhere");
    const server::HttpAccess nowhere = logged.line(1);
    CHECK(nowhere.status == 404);
    CHECK(nowhere.id.starts_with("req-"));
    CHECK_FALSE(nowhere.prompt_tokens.has_value());
}

TEST_CASE("access log: what is no request, and a client that goes, are lines, too") {
    LoggedServer logged;
    HttpConnection bad(logged.served.port());
    bad.send("nonsense\r\n\r\n");
    CHECK(bad.read().status == 400);
    const server::HttpAccess first = logged.line(0);
    CHECK(first.status == 400);
    CHECK(first.method.empty());
    CHECK(first.seconds < 60.0);
    *logged.served.answers.script() = {.endless = true};
    HttpConnection gone(logged.served.port());
    gone.send(http_text("POST", "/v1/chat/completions", chat_body().dump()));
    CHECK(comes_true([&] { return logged.served.answers.requests()->size() == 1; }));
    gone.close();
    const server::HttpAccess second = logged.line(1);
    CHECK(second.status == 0);
    CHECK(second.prompt_tokens > 0u);
    CHECK(second.peer.starts_with("127.0.0.1:"));
}

TEST_CASE("access log: lines are words or JSON, and no path can forge one") {
    CHECK(server::access_line(kAccess, 1764417600250, false) ==
          "2025-11-29T12:00:00.250Z req-1 [::1]:7 POST /a%20\"%25%0A%E2%82%AC 200 12 0.250 3 4\n");
    CHECK(server::access_line({}, 0, false) == "1970-01-01T00:00:00.000Z - - - - 0 0 0.000 - -\n");
    const std::string line = server::access_line(kAccess, 1764417600250, true);
    CHECK(std::count(line.begin(), line.end(), '\n') == 1);
    const Json json = read_json(line);
    CHECK(json["time"] == "2025-11-29T12:00:00.250Z");
    CHECK(json["path"] == kAccess.path);
    CHECK(json["generated_tokens"] == 4);
    server::HttpAccess broken;
    broken.path = "/\xFF";
    const Json other = read_json(server::access_line(broken, 0, true));
    CHECK(other["path"] == "/\xEF\xBF\xBD");
    CHECK_FALSE(other.contains("prompt_tokens"));
}

TEST_CASE("access log: lines are appended, and a file that cannot be had is an error that names it") {
    LogFile file;
    for (int i = 0; i < 2; ++i) file.open()->add(kAccess);
    CHECK(lines_of(file.path) == 2);
    for (const char* path : {"/no/such/folder/log", "/tmp"}) {
        const auto refused = server::AccessLog::open(path, false, {});
        REQUIRE_FALSE(refused.ok());
        CHECK(mentions(refused.error().message, path));
        CHECK(mentions(refused.error().message, "--log-file"));
    }
}

TEST_CASE("access log: a file that was moved away keeps its lines, and further ones go to a new one") {
    LogFile file, moved;
    moved.path += ".1";
    const auto log = file.open();
    log->add(kAccess);
    CHECK(comes_true([&] { return lines_of(file.path) == 1; }));
    std::filesystem::rename(file.path, moved.path);
    log->add(kAccess);
    log->reopen();
    log->add(kAccess);
    CHECK(comes_true([&] { return lines_of(file.path) == 1; }));
    CHECK(lines_of(moved.path) == 2);
}

TEST_CASE("access log: where the path leads nowhere any more lines go to the file that it was") {
    LogFile folder;
    std::filesystem::create_directory(folder.path);
    std::atomic<int> told = 0;
    auto log = server::AccessLog::open(folder.path + "/log", false, [&](const std::string& text) {
                   told += mentions(text, "again: No such file") ? 1 : 100;
               }).value();
    const std::string moved = folder.path + ".1";
    std::filesystem::rename(folder.path, moved);
    log->reopen();
    log->add(kAccess);
    log.reset();
    CHECK(told == 1);
    CHECK(lines_of(moved + "/log") == 1);
    std::filesystem::remove_all(moved);
}

TEST_CASE("access log: a full disk is told once, and once more after the file was opened again") {
    if (!std::filesystem::exists("/dev/full")) return;
    std::atomic<int> told = 0;
    auto log = server::AccessLog::open("/dev/full", true, [&](const std::string& text) {
                   told += mentions(text, "/dev/full") && mentions(text, "No space left") ? 1 : 100;
               }).value();
    log->add(kAccess);
    CHECK(comes_true([&] { return told == 1; }));
    log->add(kAccess);
    log->reopen();
    log->add(kAccess);
    log.reset();
    CHECK(told == 2);
}
