#include "serve/pool/pool_routes.h"

#include "serve/api/native.h"
#include "serve/api/ollama.h"
#include "serve/api/page.h"
#include "serve/api/worker.h"

namespace redline::serve {

namespace {

// Keeps a model until the exchange has ended, with all that it answers.
class HoldingExchange final : public Exchange {
public:
    HoldingExchange(ExchangePtr inner, ModelPool::Lease model)
        : model_(std::move(model)), inner_(std::move(inner)) {}

    const HttpRequest& request() const override { return inner_->request(); }
    void reply(HttpReply whole) override { inner_->reply(std::move(whole)); }
    void stream(HttpReply head, std::string ping) override {
        inner_->stream(std::move(head), std::move(ping));
    }
    void write(std::string text) override { inner_->write(std::move(text)); }
    void finish() override { inner_->finish(); }
    void post(std::function<void()> work) override { inner_->post(std::move(work)); }
    void when_gone(std::function<void()> work) override { inner_->when_gone(std::move(work)); }
    void count_tokens(uint64_t prompt, uint64_t generated) override {
        inner_->count_tokens(prompt, generated);
    }

private:
    const ModelPool::Lease model_;
    const ExchangePtr inner_;
};

// Decoded; empty: the query has no such member.
std::string query_value(std::string_view query, std::string_view name) {
    for (size_t at = 0; at < query.size();) {
        const std::string_view member = query.substr(at, query.find('&', at) - at);
        const size_t equals = member.find('=');
        if (equals != member.npos && member.substr(0, equals) == name)
            return percent_decoded(member.substr(equals + 1));
        at += member.size() + 1;
    }
    return {};
}

std::string all_names(const ModelPool& pool) {
    constexpr size_t kMost = 20;
    const std::vector<OfferedModel>& offered = pool.offered();
    std::string names;
    for (size_t i = 0; i < std::min(kMost, offered.size()); ++i)
        names += fmt::format("{}\"{}\"", i > 0 ? ", " : "", offered[i].name);
    if (offered.size() > kMost) names += fmt::format(" and {} more", offered.size() - kMost);
    return names;
}

// The model of this name; without a name the one that was used last. Where there is a single one it answers
// to any name, as a server with -m does.
const OfferedModel* model_called(const ModelPool& pool, const std::string& name, Problem& problem) {
    if (pool.offered().size() == 1) return &pool.offered()[0];
    if (name.empty()) {
        if (const OfferedModel* const recent = pool.recent()) return recent;
        problem = {.message = fmt::format("the request names no model, and none is loaded: model can be {}",
                                          all_names(pool)),
                   .param = "model"};
        return nullptr;
    }
    const OfferedModel* const found = pool.find(name);
    if (!found)
        problem = {
            .status = 404,
            .message = fmt::format("there is no model \"{}\"; this server has {}", name, all_names(pool)),
            .type = "model_not_found",
            .param = "model"};
    return found;
}

// The model that a body names; null: the request was answered with what is wrong.
Result<const OfferedModel*> model_of_body(const ModelPool& pool, Family family, const Fields& fields,
                                          const ExchangePtr& exchange) {
    // Ollama's /api/show used to call it name.
    const std::string older = RL_TRY(fields.text("name"));
    Problem problem;
    const OfferedModel* const model = model_called(pool, RL_TRY(fields.text("model", older)), problem);
    if (!model) exchange->reply(problem_reply(family, problem));
    return model;
}

std::shared_ptr<const std::atomic<bool>> gone_flag(const ExchangePtr& exchange) {
    const auto gone = std::make_shared<std::atomic<bool>>(false);
    exchange->when_gone([gone] { *gone = true; });
    return gone;
}

void answer_by_body(ModelPool& pool, const ApiEndpoint& endpoint, const ExchangePtr& exchange) {
    const auto begin = [&]() -> Status {
        const Json body = RL_TRY(parse_body(exchange->request().body));
        const Fields fields(body);
        const OfferedModel* const model = RL_TRY(model_of_body(pool, endpoint.family, fields, exchange));
        if (!model) return {};
        std::optional<std::chrono::milliseconds> keep;
        if (endpoint.family == Family::ollama) keep = RL_TRY(read_keep_alive(fields));
        // A request to unload loads nothing.
        if (keep && keep->count() == 0 && RL_TRY(is_load_request(endpoint.path, body))) {
            pool.unload(*model);
            reply_load(exchange, model->name, "unload");
            return {};
        }
        const auto answer = [&endpoint, exchange](ModelPool::Lease held, const Problem& why) {
            if (!held) return exchange->reply(problem_reply(endpoint.family, why));
            Service& service = *held;
            answer_route(endpoint.family, std::make_shared<HoldingExchange>(exchange, std::move(held)),
                         [&](const ExchangePtr& holding) { endpoint.answer(service, holding); });
        };
        pool.want(*model, gone_flag(exchange), answer, keep);
        return {};
    };
    if (const Status begun = begin(); !begun) reply_error(exchange, endpoint.family, begun.error());
}

// Answers once the model is there, or with the reason why it is not. Who goes meanwhile still gets it loaded.
void load_named(ModelPool& pool, const ExchangePtr& exchange) {
    const auto begin = [&]() -> Status {
        const Json body = RL_TRY(parse_body(exchange->request().body));
        const OfferedModel* const model = RL_TRY(model_of_body(pool, Family::openai, Fields(body), exchange));
        if (!model) return {};
        pool.want(*model, nullptr, [exchange](const ModelPool::Lease& held, const Problem& why) {
            if (!held) return exchange->reply(problem_reply(Family::openai, why));
            reply_json(exchange, {{"success", true}});
        });
        return {};
    };
    if (const Status begun = begin(); !begun) reply_error(exchange, Family::openai, begun.error());
}

void unload_named(ModelPool& pool, const ExchangePtr& exchange) {
    const auto begin = [&]() -> Status {
        const Json body = RL_TRY(parse_body(exchange->request().body));
        const OfferedModel* const model = RL_TRY(model_of_body(pool, Family::openai, Fields(body), exchange));
        if (!model) return {};
        pool.unload(*model);
        reply_json(exchange, {{"success", true}});
        return {};
    };
    if (const Status begun = begin(); !begun) reply_error(exchange, Family::openai, begun.error());
}

void answer_by_query(ModelPool& pool, const ApiEndpoint& endpoint, const ExchangePtr& exchange) {
    const std::string name = query_value(exchange->request().query, "model");
    if (name.empty() && !pool.recent()) {
        if (endpoint.path == std::string_view("/slots")) return reply_json(exchange, Json::array());
        return reply_json(exchange, {{"role", "router"},
                                     {"models", pool.offered().size()},
                                     {"models_max", pool.options().most},
                                     {"build_info", pool.options().build}});
    }
    Problem problem;
    const OfferedModel* const model = model_called(pool, name, problem);
    if (!model) return exchange->reply(problem_reply(endpoint.family, problem));
    const ModelPool::Seen seen = pool.look(*model);
    if (seen.lease) return endpoint.answer(*seen.lease, exchange);
    problem.message =
        fmt::format("the model \"{}\" is not loaded; a request that it answers loads it", seen.model->name);
    exchange->reply(problem_reply(endpoint.family, problem));
}

std::string_view state_name(ModelPool::State state) {
    using enum ModelPool::State;
    return state == unloaded ? "unloaded" : state == loading ? "loading" : "loaded";
}

Json entry_of(const ModelPool::Seen& seen) {
    const OfferedModel& model = *seen.model;
    Json entry = seen.lease ? model_entry(*seen.lease)
                            : Json{{"id", model.name},         {"object", "model"},
                                   {"type", "model"},          {"display_name", model.name},
                                   {"created", model.created}, {"created_at", rfc3339(model.created)},
                                   {"owned_by", "redline"}};
    if (!model.aliases.empty()) entry["aliases"] = model.aliases;
    entry["status"] = {{"value", std::string(state_name(seen.state))}};
    if (!seen.fault.empty()) {
        entry["status"]["failed"] = true;
        entry["status"]["message"] = seen.fault;
    }
    return entry;
}

void list_models(ModelPool& pool, const ExchangePtr& exchange) {
    Json all = Json::array();
    for (const ModelPool::Seen& seen : pool.look()) all.push_back(entry_of(seen));
    Json out = {{"object", "list"}, {"has_more", false}};
    out["first_id"] = all.front()["id"];
    out["last_id"] = all.back()["id"];
    out["data"] = std::move(all);
    reply_json(exchange, out);
}

void show_model(ModelPool& pool, const ExchangePtr& exchange) {
    constexpr std::string_view kBefore = "/models/";
    const std::string& path = exchange->request().path;
    const std::string name = path.substr(path.find(kBefore) + kBefore.size());
    if (const OfferedModel* const model = pool.find(name))
        return reply_json(exchange, entry_of(pool.look(*model)));
    exchange->reply(problem_reply(
        Family::openai,
        {.status = 404,
         .message = fmt::format("there is no model \"{}\"; this server has {}", name, all_names(pool)),
         .type = "model_not_found",
         .param = "model"}));
}

Json ollama_entry_of(const ModelPool::Seen& seen) {
    if (seen.lease) return ollama_entry(*seen.lease);
    const OfferedModel& model = *seen.model;
    const std::string name = ollama_name(model.name);
    return {{"name", name},
            {"model", name},
            {"modified_at", rfc3339(model.created)},
            {"size", model.bytes},
            {"digest", fmt::format("{:016x}{:048x}", std::hash<std::string>()(model.path), 0)},
            {"details",
             {{"parent_model", ""},
              {"format", "gguf"},
              {"family", ""},
              {"families", Json::array()},
              {"parameter_size", ""},
              {"quantization_level", ""}}}};
}

void list_ollama(ModelPool& pool, const ExchangePtr& exchange) {
    Json all = Json::array();
    for (const ModelPool::Seen& seen : pool.look()) {
        Json entry = ollama_entry_of(seen);
        entry["status"] = {{"value", std::string(state_name(seen.state))}};
        all.push_back(std::move(entry));
    }
    reply_json(exchange, {{"models", std::move(all)}});
}

void list_running(ModelPool& pool, const ExchangePtr& exchange) {
    Json all = Json::array();
    for (const ModelPool::Seen& seen : pool.look()) {
        if (!seen.lease) continue;
        Json entry = ollama_entry_of(seen);
        const int64_t left = seen.left == kForever ? kCentury : seen.left.count() / 1000;
        entry["expires_at"] = rfc3339(seconds_now() + left);
        entry["size_vram"] = entry["size"];
        entry["context_length"] = seen.lease->served.context;
        all.push_back(std::move(entry));
    }
    reply_json(exchange, {{"models", std::move(all)}});
}

void tell_health(ModelPool& pool, const ExchangePtr& exchange) {
    const Health health = pool.health();
    if (health == Health::serving) return reply_json(exchange, {{"status", "ok"}});
    const char* const why = health == Health::draining ? "the server ends, and takes no new requests"
                                                       : "a device was lost, and is being opened again";
    exchange->reply(problem_reply(Family::openai, {.status = 503, .message = why}));
}

void tell_metrics(ModelPool& pool, const ExchangePtr& exchange) {
    std::vector<ModelPool::Lease> loaded;
    for (ModelPool::Seen& seen : pool.look())
        if (seen.lease) loaded.push_back(std::move(seen.lease));
    exchange->reply(metrics_of(loaded));
}

void tell_load(ModelPool& pool, const ExchangePtr& exchange) {
    std::vector<Statistics> all;
    for (const ModelPool::Seen& seen : pool.look())
        if (seen.lease) all.push_back(seen.lease->answers.statistics());
    const bool plain = exchange->request().path == "/load";
    reply_json(exchange, plain ? server_load_json(all) : load_json(all));
}

void tell_build(ModelPool& pool, const ExchangePtr& exchange) {
    reply_json(exchange, {{"version", pool.options().build}});
}

void tell_version(ModelPool&, const ExchangePtr& exchange) {
    reply_json(exchange, {{"version", kOllamaVersion}});
}

void page(ModelPool&, const ExchangePtr& exchange) {
    send_page(exchange);
}

void openapi(ModelPool&, const ExchangePtr& exchange) {
    send_openapi(exchange);
}

using PoolEndpoint = void (*)(ModelPool&, const ExchangePtr&);

// In place of the endpoints that tell of one model.
constexpr std::pair<std::string_view, PoolEndpoint> kWhole[] = {
    {"/", page},
    {"/page.js", page},
    {"/page.css", page},
    {"/openapi.json", openapi},
    {"/health", tell_health},
    {"/v1/health", tell_health},
    {"/ping", tell_health},
    {"/version", tell_build},
    {"/load", tell_load},
    {"/get_load", tell_load},
    {"/v1/models", list_models},
    {"/models", list_models},
    {"/v1/models/*", show_model},
    {"/models/load", load_named},
    {"/models/unload", unload_named},
    {"/metrics", tell_metrics},
    {"/api/tags", list_ollama},
    {"/api/ps", list_running},
    {"/api/version", tell_version},
};
constexpr std::string_view kRefused[] = {"/v1/embeddings",  "/embeddings", "/embedding", "/api/embed",
                                         "/api/embeddings", "/api/pull",   "/api/push",  "/api/create",
                                         "/api/copy",       "/api/delete"};

Handler handler_of(ModelPool& pool, const ApiEndpoint& endpoint) {
    const std::string_view path = endpoint.path;
    for (const auto& [whole, answer] : kWhole)
        if (whole == path) return [&pool, answer](const ExchangePtr& exchange) { answer(pool, exchange); };
    if (std::ranges::find(kRefused, path) != std::end(kRefused))
        return [&endpoint](const ExchangePtr& exchange) {
            exchange->reply(problem_reply(
                endpoint.family,
                {.status = 501,
                 .message = fmt::format("{} is not supported: the models are those of the folder that the "
                                        "server was started with, and embeddings are not computed yet",
                                        exchange->request().path)}));
        };
    if (std::string_view(endpoint.method) == "GET")
        return [&pool, &endpoint](const ExchangePtr& exchange) { answer_by_query(pool, endpoint, exchange); };
    return [&pool, &endpoint](const ExchangePtr& exchange) {
        if (pool.draining())
            return exchange->reply(problem_reply(
                endpoint.family, {.status = 503, .message = "the server ends, and takes no new requests"}));
        answer_by_body(pool, endpoint, exchange);
    };
}

}  // namespace

std::vector<Route> pool_routes(ModelPool& pool) {
    std::vector<Route> routes;
    for (const ApiEndpoint& endpoint : api_endpoints())
        routes.push_back({endpoint.method, endpoint.path, endpoint.family, handler_of(pool, endpoint),
                          endpoint.at_once, endpoint.open});
    return routes;
}

}  // namespace redline::serve
