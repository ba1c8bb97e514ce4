// The endpoints of a server with several models: requests go to the model that they name.
#pragma once

#include "serve/api/routes.h"
#include "serve/pool/model_pool.h"

namespace redline::serve {

// The pool has to outlive the routes.
std::vector<Route> pool_routes(ModelPool& pool);

}  // namespace redline::serve
