// One request over HTTP and the way back to its client. Nothing here knows of a library for networks.
#pragma once

#include <chrono>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace redline::serve {

struct HttpHeader {
    std::string name;
    std::string value;
};

struct HttpRequest {
    std::string id;  // of the client's header X-Request-Id, or made here; the answer has it, too
    std::string method;
    std::string path;   // percent-decoded, without the query
    std::string query;  // as it came, without the question mark
    std::vector<HttpHeader> headers;
    std::string body;

    // The value of the first header of this name, in any case; empty: there is none.
    std::string_view header(std::string_view name) const;
};

struct HttpReply {
    int status = 200;
    std::string type = "application/json";
    std::string body = {};
    std::vector<HttpHeader> headers = {};
};

// Functions may be called from any thread; calls of one thread take effect in their order. After the end, and
// when the client is gone, they do nothing. An exchange that is dropped without an answer answers 500.
class Exchange {
public:
    virtual ~Exchange() = default;

    virtual const HttpRequest& request() const = 0;
    // The whole answer. Not after the first write().
    virtual void reply(HttpReply whole) = 0;
    // The answer will be a stream with this status, type and headers. They go out with the first write() or
    // ping, so that what fails before is a plain error. `ping` is written after a silence; empty: never.
    virtual void stream(HttpReply head, std::string ping) = 0;
    virtual void write(std::string text) = 0;
    virtual void finish() = 0;
    // Runs a function on the thread that serves the network.
    virtual void post(std::function<void()> work) = 0;
    // Each is called once on that thread when the client goes before the end, at once if it is gone already.
    virtual void when_gone(std::function<void()> work) = 0;
    // Tells the log of accesses how many tokens the prompt has, and the answers so far.
    virtual void count_tokens(uint64_t prompt, uint64_t generated) = 0;
};

// The part of a server that answers.
class HttpHandler {
public:
    virtual ~HttpHandler() = default;
    // Looks at a request whose body has not come yet. An answer refuses it, and the body is not read.
    virtual std::optional<HttpReply> admit(const HttpRequest& head) = 0;
    // Called on the thread of the network, and has to return at once.
    virtual void handle(std::shared_ptr<Exchange> exchange) = 0;
    // The answer to what never became a request: a header that is too long, a body that is too large. The
    // path is empty where it is not known.
    virtual HttpReply refuse(int status, const std::string& message, std::string_view path) = 0;
};

// "text" with %20 and the like decoded.
std::string percent_decoded(std::string_view text);
// "Not Found"; for a status that is not known "Status".
std::string_view status_text(int status);
bool same_name(std::string_view a, std::string_view b);  // in any case, of ASCII
// The id that a client gave its request, where that is 1 to 128 letters, digits and -_.:+=/@ and thus can
// stand in headers and logs as it is; a new one in place of any other.
std::string request_id(std::string_view given);

}  // namespace redline::serve
