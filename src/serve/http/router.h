// Which function answers which request: a table of methods and paths, behind the rules of access.
#pragma once

#include "serve/http/access.h"
#include "serve/http/handler_threads.h"

#include <map>
#include <set>

namespace redline::serve {

// The form in which a family of clients expects errors.
enum class Family : uint8_t { openai, anthropic, ollama, plain };

// A fault of a request, before it has the form of a family.
struct Problem {
    int status = 400;
    std::string message = {};
    std::string type = {};       // empty: by the status
    std::string param = {};      // the member of the request that is wrong, where that is known
    uint64_t prompt_tokens = 0;  // of a prompt that the context has no room for
    uint64_t context = 0;
    uint32_t retry_seconds = 0;  // sent with 429 and 503
};
HttpReply problem_reply(Family family, const Problem& problem);
// The JSON of it, as it stands in a stream.
std::string problem_text(Family family, const Problem& problem);

using Handler = std::function<void(const std::shared_ptr<Exchange>&)>;

// Runs a handler. What it throws is the answer to the request: 503 for lack of memory, 500 else.
void answer_route(Family family, const std::shared_ptr<Exchange>& exchange, const Handler& handler);

struct Route {
    std::string method;
    std::string path;  // ends with * where any path behind it fits
    Family family = Family::openai;
    Handler handler;
    bool at_once = false;  // on the thread of the network, for what never waits
    bool open = false;     // no key is needed
};

class Router final : public HttpHandler {
public:
    Router(std::vector<Route> routes, AccessOptions access, unsigned threads);

    std::optional<HttpReply> admit(const HttpRequest& head) override;
    void handle(std::shared_ptr<Exchange> exchange) override;
    HttpReply refuse(int status, const std::string& message, std::string_view path) override;

private:
    const Route* find(const HttpRequest& request, std::set<std::string>* methods = nullptr) const;
    Family family_of(std::string_view path) const;
    std::vector<HttpHeader> shared_headers(const HttpRequest& request) const;

    const std::vector<Route> routes_;
    const AccessOptions access_;
    HandlerThreads workers_;
};

}  // namespace redline::serve
