// Lists of models, and facts about one, for Ollama's clients.
#include "serve/api/ollama.h"

#include "gguf/facts.h"
#include "text/tokens/infill.h"

namespace redline::serve {

namespace {

Json ollama_details(const Model& model) {
    const std::string family = model.config().arch;
    return {{"parent_model", ""},
            {"format", "gguf"},
            {"family", family},
            {"families", Json::array({family})},
            {"parameter_size", short_count(parameter_count(model.gguf()))},
            {"quantization_level", file_type(model.gguf())}};
}

// Keys of the file without the lists of its tokenizer, which are long.
Json model_info(const Metadata& metadata) {
    Json info = Json::object();
    for (const auto& [key, stored] : metadata.entries()) {
        if (key == "tokenizer.chat_template") continue;
        if (const auto* number = std::get_if<int64_t>(&stored.value)) info[key] = *number;
        if (const auto* real = std::get_if<double>(&stored.value)) info[key] = *real;
        if (const auto* flag = std::get_if<bool>(&stored.value)) info[key] = *flag;
        if (const auto* text = std::get_if<std::string>(&stored.value)) info[key] = *text;
    }
    return info;
}

}  // namespace

std::string ollama_name(const std::string& name) {
    return name.find(':') == name.npos ? name + ":latest" : name;
}

Json ollama_entry(Service& service) {
    const ServedModel& served = service.served;
    const Result<uint64_t> print = served.model->fingerprint();
    const std::string name = ollama_name(served.name);
    return {{"name", name},
            {"model", name},
            {"modified_at", rfc3339(served.created)},
            {"size", served.model->gguf().file_bytes()},
            {"digest", fmt::format("{:016x}{:048x}", print.ok() ? print.value() : 0, 0)},
            {"details", ollama_details(*served.model)}};
}

Json ollama_capabilities(Service& service) {
    const Model& model = *service.served.model;
    Json all = Json::array({"completion"});
    const Result<ChatWriter> made = service.writer({}, Json::object());
    if (made.ok()) {
        ChatWriter writer = made.value();
        const Json tools = Json::array(
            {{{"type", "function"}, {"function", {{"name", "f"}, {"parameters", Json::object()}}}}});
        if (writer.write(Json::array({{{"role", "user"}, {"content", "x"}}}), tools).ok())
            all.push_back("tools");
        if (writer.reasoning()) all.push_back("thinking");
    }
    if (infill_tokens(model.gguf().metadata(), model.tokenizer()).whole()) all.push_back("insert");
    return all;
}

void answer_ollama_tags(Service& service, const ExchangePtr& exchange) {
    reply_json(exchange, {{"models", Json::array({ollama_entry(service)})}});
}

void answer_ollama_running(Service& service, const ExchangePtr& exchange) {
    Json entry = ollama_entry(service);
    // The model stays as long as the server.
    entry["expires_at"] = rfc3339(seconds_now() + kCentury);
    entry["size_vram"] = entry["size"];
    entry["context_length"] = service.served.context;
    reply_json(exchange, {{"models", Json::array({std::move(entry)})}});
}

void answer_ollama_show(Service& service, const ExchangePtr& exchange) {
    const ServedModel& served = service.served;
    const Result<ChatWriter> writer = service.writer({}, Json::object());
    reply_json(exchange, {{"modelfile", fmt::format("FROM {}", served.path)},
                          {"parameters", fmt::format("num_ctx {}", served.context)},
                          {"template", writer.ok() ? writer.value().template_text() : ""},
                          {"details", ollama_details(*served.model)},
                          {"model_info", model_info(served.model->gguf().metadata())},
                          {"capabilities", ollama_capabilities(service)},
                          {"modified_at", rfc3339(served.created)}});
}

void answer_ollama_version(Service&, const ExchangePtr& exchange) {
    reply_json(exchange, {{"version", kOllamaVersion}});
}

void refuse_ollama(Service&, const ExchangePtr& exchange) {
    exchange->reply(problem_reply(
        Family::ollama, {.status = 501,
                         .message = fmt::format(
                             "{} is not supported: this server has one model, which it was started with, and "
                             "computes no embeddings yet; redline pull fetches models",
                             exchange->request().path)}));
}

}  // namespace redline::serve
