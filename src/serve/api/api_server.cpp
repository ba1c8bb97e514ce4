#include "serve/api/api_server.h"

namespace redline::serve {

std::optional<HttpReply> ApiServer::Entrance::admit(const HttpRequest& head) {
    if (Router* const router = router_.load()) return router->admit(head);
    std::optional<HttpReply> refused = loading_.admit(head);
    // The rules of access hold from the beginning; only the paths are not known yet.
    if (refused && refused->status != 404) return refused;
    return problem_reply(Family::openai,
                         {.status = 503, .message = "the model is being loaded", .retry_seconds = 2});
}

void ApiServer::Entrance::handle(std::shared_ptr<Exchange> exchange) {
    Router* const router = router_.load();
    if (!router) return exchange->reply(refuse(503, "the model is being loaded", exchange->request().path));
    router->handle(std::move(exchange));
}

HttpReply ApiServer::Entrance::refuse(int status, const std::string& message, std::string_view path) {
    return loading_.refuse(status, message, path);
}

Result<std::unique_ptr<ApiServer>> ApiServer::listen(const HttpOptions& options,
                                                     const AccessOptions& access) {
    std::unique_ptr<ApiServer> made(new ApiServer(access));
    made->http_ = RL_TRY(HttpServer::listen(options, made->entrance_));
    ApiServer* const server = made.get();
    made->network_ = std::thread([server] { server->http_->run(); });
    return made;
}

ApiServer::~ApiServer() {
    close(std::chrono::milliseconds(0));
}

void ApiServer::open(ServedModel model, Answering& answering, unsigned threads) {
    service_ = std::make_unique<Service>(std::move(model), answering);
    open(api_routes(*service_), threads);
}

void ApiServer::open(std::vector<Route> routes, unsigned threads) {
    router_ = std::make_unique<Router>(std::move(routes), access_, threads);
    entrance_.open(*router_);
}

void ApiServer::drain() {
    if (service_) service_->draining = true;
    if (http_) http_->drain();
}

void ApiServer::close(std::chrono::milliseconds longest) {
    drain();
    if (!network_.joinable()) return;
    http_->stop(longest);
    network_.join();
}

}  // namespace redline::serve
