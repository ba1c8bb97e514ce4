// A server of HTTP/1.1 on one thread: it reads requests within limits, hands them to a handler, and writes
// the answers. A client that goes, reads nothing, or never finishes its request costs no more than a
// connection, for a bounded time.
#pragma once

#include "base/result.h"
#include "serve/http/exchange.h"

#include <chrono>
#include <cstdint>
#include <functional>

namespace redline::serve {

struct HttpLimits {
    uint32_t header_bytes = 32 << 10;
    uint64_t body_bytes = uint64_t(64) << 20;
    uint64_t all_bodies_bytes = uint64_t(1) << 30;  // of requests being received or answered, together
    uint32_t connections = 8192;             // the one idle the longest makes room; with none, new ones wait
    uint64_t unread_bytes = 4 << 20;         // of a stream that the client does not read; more cuts it
    std::chrono::milliseconds idle{75000};   // between requests
    std::chrono::milliseconds head{15000};   // from the first byte of a header to its end
    std::chrono::milliseconds body{30000};   // without 4 KiB more of a body
    std::chrono::milliseconds write{30000};  // without any progress of an answer
    std::chrono::milliseconds ping{15000};   // silence of a stream before a ping
};

struct HttpOptions {
    std::string host = "127.0.0.1";
    uint16_t port = 8080;  // 0: any that is free
    HttpLimits limits = {};
    // Is told once, on the thread of run(), why new connections wait.
    std::function<void(const std::string&)> note = {};
};

// An exchange that has ended, for a log of accesses.
struct HttpAccess {
    std::string id, peer;      // the peer is an address and a port
    std::string method, path;  // empty where what came is no HTTP
    int status = 0;            // 0: the client went before the answer began
    uint64_t bytes = 0;
    double seconds = 0.0;
    std::optional<uint64_t> prompt_tokens = {};
    std::optional<uint64_t> generated_tokens = {};
};

class HttpCore;  // see connection.h

class HttpServer {
public:
    // Listens. An error says which address cannot be had, and why.
    static Result<std::unique_ptr<HttpServer>> listen(const HttpOptions& options, HttpHandler& handler);
    ~HttpServer();

    // With the port that was chosen: "http://127.0.0.1:8080".
    std::string address() const;
    uint16_t port() const;
    // From any thread. The function is called on that of run(), for what ends from here on.
    void set_log(std::function<void(const HttpAccess&)> log);

    // Serves on this thread until stop().
    void run();
    // From any thread: answers that begin from here on end their connections, so that clients which keep some
    // go elsewhere.
    void drain();
    // From any thread: ends run() when the answers under way are written, and this time has passed at the
    // latest.
    void stop(std::chrono::milliseconds longest);
    uint64_t connections() const;  // open ones

private:
    explicit HttpServer(std::shared_ptr<HttpCore> core) : core_(std::move(core)) {}
    std::shared_ptr<HttpCore> core_;
};

}  // namespace redline::serve
