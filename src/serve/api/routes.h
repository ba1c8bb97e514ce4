// The table of all endpoints.
#pragma once

#include "serve/api/service.h"

namespace redline::serve {

// The service has to outlive the routes.
std::vector<Route> api_routes(Service& service);

}  // namespace redline::serve
