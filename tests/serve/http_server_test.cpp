// The transport: keys, names, methods, limits, and clients that misbehave.
#include "base/os/system.h"
#include "served.h"

using namespace redline;
using namespace redline::test;
namespace server = redline::serve;

namespace {

server::HttpOptions with_limits(const server::HttpLimits& limits) {
    server::HttpOptions options;
    options.limits = limits;
    return options;
}

}  // namespace

TEST_CASE("http: a connection serves several requests, also where they come at once") {
    Served served;
    HttpConnection client(served.port());
    client.send(http_text("GET", "/health") + http_text("POST", "/tokenize", "{\"content\": \"ab\"}") +
                http_text("GET", "/health"));
    CHECK(client.read().body == "{\"status\":\"ok\"}");
    CHECK(client.read().body == "{\"tokens\":[3,4]}");
    CHECK(client.read().status == 200);
    client.send(http_text("HEAD", "/health"));
    const HttpGot head = client.read(true);
    CHECK(head.status == 200);
    CHECK(head.headers.at("content-length") == "15");
    client.send(http_text("GET", "/health", {}, {"Connection: close"}));
    CHECK(client.read().status == 200);
    CHECK(client.ends(5000));
}

TEST_CASE("http: a client of HTTP/1.0 gets a stream without chunks, which the end of the connection ends") {
    Served served;
    HttpConnection client(served.port());
    const std::string body = chat_body({{"stream", true}}).dump();
    client.send(
        fmt::format("POST /v1/chat/completions HTTP/1.0\r\nContent-Length: {}\r\n\r\n{}", body.size(), body));
    const HttpGot got = client.read();
    CHECK(got.headers.count("transfer-encoding") == 0);
    CHECK(got.body.starts_with("data: {"));
    CHECK(got.body.ends_with("data: [DONE]\n\n"));
}

TEST_CASE("http: paths and methods that are not there are errors in the form of their family") {
    Served served;
    const HttpGot nowhere = http_get(served.port(), "/v1/nowhere");
    CHECK(nowhere.status == 404);
    CHECK(read_json(nowhere.body)["error"]["type"] == "not_found_error");
    CHECK(read_json(http_get(served.port(), "/api/nowhere").body)["error"].is_string());
    CHECK(read_json(http_get(served.port(), "/v1/messages/x").body)["type"] == "error");
    const HttpGot method = http_get(served.port(), "/v1/chat/completions");
    CHECK(method.status == 405);
    CHECK(method.headers.at("allow") == "POST");
    CHECK(http_get(served.port(), "/health/").status == 200);
    CHECK(http_get(served.port(), "http://127.0.0.1/health").status == 200);
    CHECK(http_get(served.port(), "/%68ealth?x=1").status == 200);
}

TEST_CASE("http: with keys only requests that have one are answered, but for the health") {
    Served served({.keys = {"first", "second"}});
    const auto status = [&](const HttpLines& headers) {
        return http_get(served.port(), "/v1/models", headers).status;
    };
    CHECK(status({}) == 401);
    CHECK(status({"Authorization: Bearer wrong"}) == 401);
    CHECK(status({"Authorization: Bearer firs"}) == 401);
    CHECK(status({"Authorization: Bearer first "}) == 200);
    CHECK(status({"authorization: bearer second"}) == 200);
    CHECK(status({"X-Api-Key: second"}) == 200);
    CHECK(http_get(served.port(), "/health").status == 200);
    const HttpGot refused = http_get(served.port(), "/v1/messages");
    CHECK(refused.status == 401);
    CHECK(read_json(http_post(served.port(), "/v1/messages", "{}").body)["error"]["type"] ==
          "authentication_error");
    // The body of a stranger is not waited for.
    HttpConnection stranger(served.port());
    stranger.send("POST /v1/completions HTTP/1.1\r\nHost: x\r\nContent-Length: 1000000\r\n\r\n");
    CHECK(stranger.read().status == 401);
}

TEST_CASE("http: names that lead here from elsewhere, and pages of elsewhere, are refused unless allowed") {
    Served served({.hosts = {"llm.example.org"}, .origins = {"https://chat.example.org"}});
    const auto status = [&](const HttpLines& headers) {
        return http_get(served.port(), "/health", headers).status;
    };
    for (const char* host : {"localhost:8080", "127.0.0.1", "[::1]:80", "192.168.1.5:8080", "box",
                             "box.local", "LLM.example.org:443", "app.localhost"})
        CHECK_MESSAGE(status({fmt::format("Host: {}", host)}) == 200, host);
    CHECK(status({"Host: evil.example.com"}) == 403);
    CHECK(status({"Host: localhost.evil.com"}) == 403);
    CHECK(status({"Origin: http://localhost:3000"}) == 200);
    CHECK(status({"Origin: https://evil.com"}) == 403);
    CHECK(status({"Origin: https://localhost.evil.com"}) == 403);
    CHECK(status({"Origin: null"}) == 403);
    const HttpGot allowed = http_get(served.port(), "/health", {"Origin: https://chat.example.org"});
    CHECK(allowed.headers.at("access-control-allow-origin") == "https://chat.example.org");
    CHECK(allowed.headers.count("access-control-allow-credentials") == 0);
    HttpConnection client(served.port());
    client.send(
        http_text("OPTIONS", "/v1/chat/completions", {},
                  {"Origin: https://chat.example.org", "Access-Control-Request-Headers: content-type, x-a"}));
    const HttpGot preflight = client.read();
    CHECK(preflight.status == 204);
    CHECK(preflight.headers.at("access-control-allow-headers") == "content-type, x-a");
    client.send(http_text("GET", "/health"));
    CHECK(client.read().status == 200);
}

TEST_CASE("http: what is too large is refused before it has come") {
    Served served({}, with_limits({.header_bytes = 8192, .body_bytes = 100000}));
    HttpConnection large(served.port());
    large.send("POST /tokenize HTTP/1.1\r\nHost: x\r\nContent-Length: 209715200\r\n\r\n");
    const HttpGot got = large.read();
    CHECK(got.status == 413);
    CHECK(mentions(read_json(got.body)["error"]["message"].get<std::string>(), "100000"));
    // Sent all the same, it still gets to read the answer.
    HttpConnection stubborn(served.port());
    stubborn.send("POST /tokenize HTTP/1.1\r\nHost: x\r\nContent-Length: 20971520\r\n\r\n");
    const std::string piece(1 << 20, 'x');
    for (int i = 0; i < 20 && stubborn.send(piece); ++i) {
    }
    CHECK(stubborn.read().status == 413);
    // In chunks, which do not say how many will come.
    HttpConnection chunks(served.port());
    chunks.send("POST /tokenize HTTP/1.1\r\nHost: x\r\nTransfer-Encoding: chunked\r\n\r\n");
    for (int i = 0; i < 20; ++i) chunks.send(fmt::format("{:x}\r\n{}\r\n", 10000, std::string(10000, ' ')));
    CHECK(chunks.read().status == 413);
    // In the form of the path's family.
    HttpConnection messages(served.port());
    messages.send("POST /v1/messages HTTP/1.1\r\nHost: x\r\nContent-Length: 209715200\r\n\r\n");
    CHECK(read_json(messages.read().body)["error"]["type"] == "request_too_large");
    HttpConnection header(served.port());
    header.send("GET /health HTTP/1.1\r\nHost: x\r\nX-Long: " + std::string(20000, 'a') + "\r\n\r\n");
    CHECK(header.read().status == 431);
    for (const char* text :
         {"nonsense\r\n\r\n", "GET / HTTP/9.9\r\n\r\n", "GET /health HTTP/1.1\r\nbad header\r\n\r\n",
          "POST /tokenize HTTP/1.1\r\nContent-Length: -1\r\n\r\n",
          "POST /tokenize HTTP/1.1\r\nTransfer-Encoding: chunked\r\n\r\nzz\r\n"}) {
        HttpConnection bad(served.port());
        bad.send(text);
        CHECK_MESSAGE(bad.read().status == 400, text);
    }
    CHECK(http_get(served.port(), "/health").status == 200);
}

TEST_CASE("http: bodies that are too large together are refused, until some are answered or gone") {
    Served served({}, with_limits({.body_bytes = 100000, .all_bodies_bytes = 150000}));
    const auto announce = [&](const std::string& path, size_t bytes, bool head = false) {
        HttpConnection client(served.port());
        client.send(
            fmt::format("POST {} HTTP/1.1\r\nHost: x\r\nExpect: 100-continue\r\nContent-Length: {}\r\n\r\n",
                        path, bytes));
        return client.read(head);
    };
    const auto room_for = [&](size_t bytes) { return announce("/tokenize", bytes, true).status == 100; };
    // An announced body takes no room before it comes.
    HttpConnection patient(served.port());
    patient.send("POST /tokenize HTTP/1.1\r\nHost: x\r\nContent-Length: 100000\r\n\r\n");
    const std::string tokens = std::string(90000, ' ') + "{\"content\": \"ab\"}";
    HttpConnection slow(served.port());
    slow.send(fmt::format("POST /tokenize HTTP/1.1\r\nHost: x\r\nContent-Length: {}\r\n\r\n", tokens.size()) +
              tokens.substr(0, 80000));
    CHECK(comes_true([&] { return !room_for(70001); }));
    CHECK(room_for(70000));
    const HttpGot messages = announce("/v1/messages", 90000);
    CHECK(messages.status == 503);
    CHECK(messages.headers.at("retry-after") == "1");
    CHECK(read_json(messages.body)["error"]["type"] == "overloaded_error");
    CHECK(mentions(read_json(messages.body)["error"]["message"].get<std::string>(), "150000 bytes together"));
    CHECK(read_json(announce("/api/chat", 90000).body)["error"].is_string());
    // In chunks, which do not say how many will come.
    HttpConnection chunks(served.port());
    chunks.send("POST /v1/completions HTTP/1.1\r\nHost: x\r\nTransfer-Encoding: chunked\r\n\r\n");
    for (int i = 0; i < 9; ++i) chunks.send(fmt::format("{:x}\r\n{}\r\n", 10000, std::string(10000, ' ')));
    const HttpGot refused = chunks.read();
    CHECK(refused.status == 503);
    CHECK(read_json(refused.body)["error"]["type"] == "unavailable_error");
    CHECK(room_for(70000));
    slow.send(tokens.substr(80000));
    CHECK(slow.read().body == "{\"tokens\":[3,4]}");
    CHECK(comes_true([&] { return room_for(100000); }));
    // A request that is being answered counts until the answer has ended, or its client has gone.
    served.answers.script()->waits = true;
    {
        HttpConnection answered(served.port());
        answered.send(
            http_text("POST", "/v1/chat/completions", std::string(90000, ' ') + chat_body().dump()));
        CHECK(comes_true([&] { return !room_for(60000); }));
    }
    CHECK(comes_true([&] { return room_for(100000); }));
}

TEST_CASE("http: a body in chunks is read, and one that waits for a word gets it") {
    Served served;
    HttpConnection chunks(served.port());
    chunks.send("POST /tokenize HTTP/1.1\r\nHost: x\r\nTransfer-Encoding: chunked\r\n\r\n");
    chunks.send("9\r\n{\"content\r\n8\r\n\": \"ab\"}\r\n0\r\n\r\n");
    CHECK(chunks.read().body == "{\"tokens\":[3,4]}");
    HttpConnection patient(served.port());
    patient.send("POST /tokenize HTTP/1.1\r\nHost: x\r\nExpect: 100-continue\r\nContent-Length: 17\r\n\r\n");
    CHECK(patient.read(true).status == 100);
    patient.send("{\"content\":\"abc\"}");
    CHECK(patient.read().status == 200);
}

TEST_CASE("http: clients that never finish a header or a body, or are idle, are let go in time") {
    using std::chrono::milliseconds;
    Served served(
        {}, with_limits({.idle = milliseconds(300), .head = milliseconds(300), .body = milliseconds(300)}));
    HttpConnection idle(served.port()), head(served.port()), body(served.port());
    head.send("GET /hea");
    body.send("POST /tokenize HTTP/1.1\r\nHost: x\r\nContent-Length: 100\r\n\r\n{");
    CHECK(head.read().status == 408);
    CHECK(body.read().status == 408);
    CHECK(idle.ends(5000));
    CHECK(comes_true([&] { return served.server->connections() == 0; }));
}

TEST_CASE("http: two thousand idle connections leave the server as it was, and the longest idle make room") {
    // Both ends of a connection are files of this process.
    const uint64_t count = std::min<uint64_t>(2000, (os::raise_open_files() - 100) / 2);
    const uint32_t most = uint32_t(count * 3 / 4);
    Served served({}, with_limits({.connections = most}));
    std::vector<HttpConnection> idle;
    for (uint64_t i = 0; i < count; ++i) idle.emplace_back(served.port());
    CHECK(idle.back().open());
    CHECK(http_get(served.port(), "/health").status == 200);
    CHECK(served.server->connections() <= most + 1);
    CHECK(idle[0].ends(5000));
    // The latest are still served.
    idle.back().send(http_text("GET", "/health"));
    CHECK(idle.back().read().status == 200);
}

TEST_CASE("http: a client that reads nothing is cut, and its answer ends") {
    Served served({}, with_limits({.unread_bytes = 200000}));
    *served.answers.script() = {.pieces = {std::string(4000, 'x')}, .endless = true, .counts = false};
    HttpConnection slow(served.port(), 4096);
    slow.send(http_text("POST", "/v1/chat/completions", chat_body({{"stream", true}}).dump()));
    CHECK(comes_true([&] { return served.answers.cancelled() == 1; }));
    CHECK(comes_true([&] { return served.server->connections() == 0; }));
}

TEST_CASE("http: a client that reads nothing of a whole answer is cut after a time") {
    Served served({}, with_limits({.write = std::chrono::milliseconds(300)}));
    *served.answers.script() = {.pieces = {std::string(20 << 20, 'x')}, .counts = false};
    HttpConnection slow(served.port(), 4096);
    slow.send(http_text("POST", "/v1/chat/completions", chat_body().dump()));
    CHECK(comes_true([&] { return served.answers.requests()->size() == 1; }));
    CHECK(comes_true([&] { return served.server->connections() == 0; }));
}

TEST_CASE("http: a stream that is silent gets comments, with its head if need be") {
    Served served({}, with_limits({.ping = std::chrono::milliseconds(100)}));
    served.answers.script()->waits = true;
    HttpConnection client(served.port());
    client.send(http_text("POST", "/v1/chat/completions", chat_body({{"stream", true}}).dump()));
    CHECK(comes_true([&] {
        client.receive(50);
        return mentions(client.held(), "200 OK") && mentions(client.held(), ":\n\n");
    }));
}

TEST_CASE("http: before the model is loaded requests are told to come back") {
    Served served({}, {}, false);
    const HttpGot early = http_get(served.port(), "/health");
    CHECK(early.status == 503);
    CHECK(early.headers.count("retry-after") == 1);
    CHECK(served.post("/v1/chat/completions", chat_body()).status == 503);
    served.open();
    CHECK(http_get(served.port(), "/health").status == 200);
}

TEST_CASE("http: an ending server writes what it has begun, and then nobody is served") {
    Served served;
    *served.answers.script() = {.pieces = {"a"}, .endless = true};
    HttpConnection client(served.port());
    client.send(http_text("POST", "/v1/chat/completions", chat_body({{"stream", true}}).dump()));
    CHECK(client.receive());
    served.server->drain();
    served.server->close(std::chrono::milliseconds(200));
    CHECK(comes_true([&] { return served.answers.cancelled() == 1; }));
    CHECK_FALSE(HttpConnection(served.port()).open());
}

TEST_CASE(
    "http: a port that is taken, and an address of another machine, are errors that say what would work") {
    Served served;
    server::HttpOptions taken;
    taken.port = served.port();
    const auto second = server::ApiServer::listen(taken, {});
    REQUIRE_FALSE(second.ok());
    CHECK(mentions(second.error().message, "--port"));
    server::HttpOptions elsewhere;
    elsewhere.host = "192.0.2.1";
    elsewhere.port = 0;
    CHECK(mentions(server::ApiServer::listen(elsewhere, {}).error().message, "--host"));
    elsewhere.host = "no such host";
    CHECK(mentions(server::ApiServer::listen(elsewhere, {}).error().message, "127.0.0.1"));
}

TEST_CASE("page: its three files come without a key, and let nothing in from elsewhere") {
    Served served({.keys = {"k"}});
    for (const auto& [path, type] : std::map<std::string, std::string>{
             {"/", "text/html"}, {"/page.js", "text/javascript"}, {"/page.css", "text/css"}}) {
        const HttpGot got = http_get(served.port(), path);
        CHECK(got.status == 200);
        CHECK(got.headers.at("content-type").starts_with(type));
        CHECK(mentions(got.headers.at("content-security-policy"), "default-src 'none'"));
        CHECK_FALSE(mentions(got.body, "innerHTML"));
        CHECK_FALSE(mentions(got.body, "http://"));
        CHECK_FALSE(mentions(got.body, "https://"));
    }
    CHECK(mentions(http_get(served.port(), "/").body, "page.js"));
}

TEST_CASE(
    "page: its scripts come as one, and its policy allows neither scripts in HTML nor images of elsewhere") {
    Served served;
    const HttpGot got = http_get(served.port(), "/page.js");
    for (const char* function :
         {"function show_markdown", "function store_talk", "function show_message", "function answer"})
        CHECK(mentions(got.body, function));
    const std::string& policy = got.headers.at("content-security-policy");
    CHECK(mentions(policy, "script-src 'self';"));
    CHECK(mentions(policy, "img-src data:;"));
    CHECK_FALSE(mentions(policy, "unsafe"));
}

TEST_CASE("keys: a file has one in a line") {
    const std::string path =
        (std::filesystem::temp_directory_path() / fmt::format("redline_keys_{}", ::getpid())).string();
    std::ofstream(path) << "# comment\n\n  one \r\ntwo\n";
    CHECK(server::read_keys(path).value() == std::vector<std::string>{"one", "two"});
    std::ofstream(path) << "# none\n";
    CHECK_FALSE(server::read_keys(path).ok());
    std::filesystem::remove(path);
    CHECK_FALSE(server::read_keys(path).ok());
}
