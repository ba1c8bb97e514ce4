// The page that browsers see at /: three files that are part of the program.
#pragma once

#include "serve/api/openai.h"

namespace redline::serve {

void send_page(const ExchangePtr& exchange);
void answer_page(Service& service, const ExchangePtr& exchange);

}  // namespace redline::serve
