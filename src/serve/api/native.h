// llama-server's endpoints beside OpenAI's: completion, infill, tokens, templates, and what monitors read.
#pragma once

#include "serve/api/openai.h"

namespace redline::serve {

void answer_native_completion(Service& service, const ExchangePtr& exchange);  // /completion
void answer_infill(Service& service, const ExchangePtr& exchange);
void answer_tokenize(Service& service, const ExchangePtr& exchange);
void answer_detokenize(Service& service, const ExchangePtr& exchange);
void answer_template(Service& service, const ExchangePtr& exchange);  // /apply-template
void answer_health(Service& service, const ExchangePtr& exchange);
void answer_props(Service& service, const ExchangePtr& exchange);
void answer_slots(Service& service, const ExchangePtr& exchange);
void answer_model_load(Service& service, const ExchangePtr& exchange);    // /models/load
void refuse_model_unload(Service& service, const ExchangePtr& exchange);  // /models/unload
void answer_metrics(Service& service, const ExchangePtr& exchange);
// The metrics of several models, each with its name as a label.
HttpReply metrics_of(std::span<const std::shared_ptr<Service>> models);

}  // namespace redline::serve
