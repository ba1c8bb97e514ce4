// The server as a program runs it: it listens before the model is loaded, answers once it is, and ends
// without cutting answers short.
#pragma once

#include "serve/api/routes.h"
#include "serve/http/server.h"

#include <thread>

namespace redline::serve {

class ApiServer {
public:
    // Listens at once. Until open() requests are refused with 503, as clients expect of a model that is
    // loading.
    static Result<std::unique_ptr<ApiServer>> listen(const HttpOptions& options, const AccessOptions& access);
    ~ApiServer();

    std::string address() const { return http_->address(); }
    uint16_t port() const { return http_->port(); }
    uint64_t connections() const { return http_->connections(); }
    // The function is called on the thread of the network.
    void set_log(std::function<void(const HttpAccess&)> log) { http_->set_log(std::move(log)); }
    // From here on requests are answered; `answering` has to outlive this. `threads`: for JSON, templates and
    // tokens.
    void open(ServedModel model, Answering& answering, unsigned threads);
    // The same with other routes, where these refuse new requests once the server ends.
    void open(std::vector<Route> routes, unsigned threads);
    // Refuses new requests, and lets those under way go on.
    void drain();
    // Ends the connections; answers that are done are written first.
    void close(std::chrono::milliseconds longest);

private:
    // Answers in place of the router until there is one.
    class Entrance final : public HttpHandler {
    public:
        explicit Entrance(AccessOptions access) : loading_({}, std::move(access), 0) {}
        void open(Router& router) { router_ = &router; }

        std::optional<HttpReply> admit(const HttpRequest& head) override;
        void handle(std::shared_ptr<Exchange> exchange) override;
        HttpReply refuse(int status, const std::string& message, std::string_view path) override;

    private:
        Router loading_;
        std::atomic<Router*> router_ = nullptr;
    };

    explicit ApiServer(const AccessOptions& access) : access_(access), entrance_(access) {}

    const AccessOptions access_;
    Entrance entrance_;
    std::unique_ptr<Service> service_;
    std::unique_ptr<Router> router_;
    std::unique_ptr<HttpServer> http_;
    std::thread network_;
};

}  // namespace redline::serve
