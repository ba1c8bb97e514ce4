#include "serve/http/router.h"

#include "json/json.h"

#include <algorithm>

namespace redline::serve {

namespace {

// The names that OpenAI's clients know, by the status.
std::string_view openai_type(int status) {
    switch (status) {
        case 401:
            return "authentication_error";
        case 403:
            return "permission_error";
        case 404:
            return "not_found_error";
        case 429:
            return "rate_limit_error";
        case 500:
            return "server_error";
        case 501:
            return "not_supported_error";
        case 503:
            return "unavailable_error";
    }
    return "invalid_request_error";
}

std::string_view anthropic_type(int status) {
    switch (status) {
        case 401:
            return "authentication_error";
        case 403:
            return "permission_error";
        case 404:
            return "not_found_error";
        case 413:
            return "request_too_large";
        case 429:
            return "rate_limit_error";
        case 500:
            return "api_error";
        case 503:
            return "overloaded_error";
    }
    return "invalid_request_error";
}

// Adds to the headers of an answer those that all answers to this request have.
class WithHeaders final : public Exchange {
public:
    WithHeaders(std::shared_ptr<Exchange> inner, std::vector<HttpHeader> headers)
        : inner_(std::move(inner)), headers_(std::move(headers)) {}

    const HttpRequest& request() const override { return inner_->request(); }
    void reply(HttpReply whole) override { inner_->reply(with(std::move(whole))); }
    void stream(HttpReply head, std::string ping) override {
        inner_->stream(with(std::move(head)), std::move(ping));
    }
    void write(std::string text) override { inner_->write(std::move(text)); }
    void finish() override { inner_->finish(); }
    void post(std::function<void()> work) override { inner_->post(std::move(work)); }
    void when_gone(std::function<void()> work) override { inner_->when_gone(std::move(work)); }
    void count_tokens(uint64_t prompt, uint64_t generated) override {
        inner_->count_tokens(prompt, generated);
    }

private:
    HttpReply with(HttpReply reply) const {
        reply.headers.insert(reply.headers.end(), headers_.begin(), headers_.end());
        return reply;
    }

    const std::shared_ptr<Exchange> inner_;
    const std::vector<HttpHeader> headers_;
};

}  // namespace

std::string problem_text(Family family, const Problem& problem) {
    Json out;
    const auto or_given = [&](std::string_view usual) {
        return problem.type.empty() ? std::string(usual) : problem.type;
    };
    switch (family) {
        case Family::anthropic:
            out = {{"type", "error"},
                   {"error",
                    {{"type", std::string(anthropic_type(problem.status))}, {"message", problem.message}}}};
            break;
        case Family::ollama:
            out = {{"error", problem.message}};
            break;
        default:
            out = {{"error",
                    {{"message", problem.message},
                     {"type", or_given(openai_type(problem.status))},
                     {"code", problem.status},
                     {"param", problem.param.empty() ? Json() : Json(problem.param)}}}};
            if (problem.context > 0) {
                out["error"]["n_prompt_tokens"] = problem.prompt_tokens;
                out["error"]["n_ctx"] = problem.context;
            }
    }
    return out.dump(-1, ' ', false, Json::error_handler_t::replace);
}

HttpReply problem_reply(Family family, const Problem& problem) {
    HttpReply reply{.status = problem.status, .body = problem_text(family, problem)};
    if (problem.status == 429 || problem.status == 503)
        reply.headers.push_back({"Retry-After", std::to_string(std::max(problem.retry_seconds, 1u))});
    if (problem.status == 401) reply.headers.push_back({"WWW-Authenticate", "Bearer"});
    return reply;
}

void answer_route(Family family, const std::shared_ptr<Exchange>& exchange, const Handler& handler) {
    try {
        handler(exchange);
    } catch (const std::bad_alloc&) {
        exchange->reply(problem_reply(family, {.status = 503, .message = "there is no memory left"}));
    } catch (const std::exception& fault) {
        exchange->reply(problem_reply(
            family, {.status = 500, .message = fmt::format("a fault of this server: {}", fault.what())}));
    }
}

Router::Router(std::vector<Route> routes, AccessOptions access, unsigned threads)
    : routes_(std::move(routes)), access_(std::move(access)), workers_(threads) {}

const Route* Router::find(const HttpRequest& request, std::set<std::string>* methods) const {
    std::string_view path = request.path;
    if (path.size() > 1 && path.ends_with('/')) path.remove_suffix(1);
    const std::string_view method = request.method == "HEAD" ? "GET" : std::string_view(request.method);
    for (const Route& route : routes_) {
        const std::string_view wanted = route.path;
        const bool fits = wanted.ends_with('*') ? path.size() >= wanted.size() &&
                                                      path.starts_with(wanted.substr(0, wanted.size() - 1))
                                                : path == wanted;
        if (fits && route.method == method) return &route;
        if (fits && methods) methods->insert(route.method);
    }
    return nullptr;
}

// By the beginning of a path, for those that no route has.
Family Router::family_of(std::string_view path) const {
    if (path.starts_with("/api/")) return Family::ollama;
    return path.starts_with("/v1/messages") ? Family::anthropic : Family::openai;
}

std::vector<HttpHeader> Router::shared_headers(const HttpRequest& request) const {
    const std::string_view origin = request.header("Origin");
    if (origin.empty()) return {};
    // The origin is one of a list, and no credentials of a browser are asked for.
    return {{"Access-Control-Allow-Origin", std::string(origin)},
            {"Access-Control-Expose-Headers", "X-Request-Id"},
            {"Vary", "Origin"}};
}

std::optional<HttpReply> Router::admit(const HttpRequest& head) {
    const Route* route = find(head);
    const Family family = route ? route->family : family_of(head.path);
    const auto refused = [&](int status, std::string message) {
        HttpReply reply = problem_reply(family, {.status = status, .message = std::move(message)});
        if (status != 403)
            for (HttpHeader& each : shared_headers(head)) reply.headers.push_back(std::move(each));
        return reply;
    };
    const std::string_view host = head.header("Host"), origin = head.header("Origin");
    if (access_.keys.empty() && !is_trusted_host(host, access_))
        return refused(403,
                       fmt::format("the name \"{}\" in the header Host is not known to be this server's: "
                                   "--allow-host says so, or --api-key lets only those in who have it",
                                   host));
    if (!origin.empty() && !is_trusted_origin(origin, host, access_))
        return refused(403, fmt::format("pages of {} may not use this server: --cors-origin {} lets them",
                                        origin, origin));
    if (head.method == "OPTIONS") {
        HttpReply reply{.status = 204};
        reply.headers = shared_headers(head);
        const std::string_view wanted = head.header("Access-Control-Request-Headers");
        reply.headers.push_back({"Access-Control-Allow-Methods", "GET, POST, DELETE, OPTIONS"});
        reply.headers.push_back({"Access-Control-Allow-Headers",
                                 wanted.empty() ? "Authorization, Content-Type" : std::string(wanted)});
        reply.headers.push_back({"Access-Control-Max-Age", "86400"});
        return reply;
    }
    if (!(route && route->open) && !has_key(head, access_))
        return refused(
            401, "the request has none of this server's keys: it is sent as \"Authorization: Bearer KEY\"");
    if (route) return {};
    std::set<std::string> methods;
    find(head, &methods);
    if (methods.empty()) return refused(404, fmt::format("there is nothing at {}", head.path));
    HttpReply reply =
        refused(405, fmt::format("{} takes {}, not {}", head.path, fmt::join(methods, ", "), head.method));
    reply.headers.push_back({"Allow", fmt::format("{}", fmt::join(methods, ", "))});
    return reply;
}

void Router::handle(std::shared_ptr<Exchange> exchange) {
    const Route* route = find(exchange->request());
    if (!route) return exchange->reply(refuse(404, "there is nothing here", exchange->request().path));
    if (std::vector<HttpHeader> headers = shared_headers(exchange->request()); !headers.empty())
        exchange = std::make_shared<WithHeaders>(std::move(exchange), std::move(headers));
    if (route->at_once) return answer_route(route->family, exchange, route->handler);
    workers_.run(
        [route, exchange = std::move(exchange)] { answer_route(route->family, exchange, route->handler); });
}

HttpReply Router::refuse(int status, const std::string& message, std::string_view path) {
    return problem_reply(family_of(path), {.status = status, .message = message});
}

}  // namespace redline::serve
