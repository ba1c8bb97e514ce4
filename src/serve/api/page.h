// Files that are part of the program: the page that browsers see at /, and the description of all endpoints.
#pragma once

#include "serve/api/openai.h"

namespace redline::serve {

void send_page(const ExchangePtr& exchange);
void send_openapi(const ExchangePtr& exchange);
void answer_page(Service& service, const ExchangePtr& exchange);
void answer_openapi(Service& service, const ExchangePtr& exchange);  // /openapi.json

}  // namespace redline::serve
