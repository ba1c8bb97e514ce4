#include "serve/api/page.h"

#include "page_generated.h"

namespace redline::serve {

void send_page(const ExchangePtr& exchange) {
    const std::string& path = exchange->request().path;
    HttpReply reply{.type = "text/html; charset=utf-8", .body = kPageHtml};
    if (path == "/page.js") reply = {.type = "text/javascript; charset=utf-8", .body = kPageScript};
    if (path == "/page.css") reply = {.type = "text/css; charset=utf-8", .body = kPageStyle};
    // Nothing comes from elsewhere, nothing goes elsewhere, and no other page shows this one in a frame.
    reply.headers = {
        {"Content-Security-Policy",
         "default-src 'none'; script-src 'self'; style-src 'self'; connect-src 'self'; img-src data:; "
         "base-uri 'none'; form-action 'none'; frame-ancestors 'none'"},
        {"X-Content-Type-Options", "nosniff"},
        {"Referrer-Policy", "no-referrer"},
        {"Cache-Control", "no-cache"}};
    exchange->reply(std::move(reply));
}

void answer_page(Service&, const ExchangePtr& exchange) {
    send_page(exchange);
}

void send_openapi(const ExchangePtr& exchange) {
    exchange->reply({.body = kOpenApi});
}

void answer_openapi(Service&, const ExchangePtr& exchange) {
    send_openapi(exchange);
}

}  // namespace redline::serve
