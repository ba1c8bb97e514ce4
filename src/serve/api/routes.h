// The table of all endpoints.
#pragma once

#include "serve/api/service.h"

namespace redline::serve {

struct ApiEndpoint {
    const char* method;
    const char* path;
    void (*answer)(Service&, const std::shared_ptr<Exchange>&);
    Family family = Family::openai;
    bool at_once = false;
    bool open = false;
};
std::span<const ApiEndpoint> api_endpoints();

// The service has to outlive the routes.
std::vector<Route> api_routes(Service& service);

}  // namespace redline::serve
