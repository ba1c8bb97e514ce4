// Several models behind one address: loading on demand, swaps, idle ones, faults.
#include "serve/pool/hosted_model.h"
#include "serve/pool/pool_routes.h"
#include "served.h"
#include "serving.h"

#include <fstream>

using namespace redline;
using namespace redline::test;
using namespace redline::serve;
namespace fs = std::filesystem;

namespace {

// A folder with two models that speak and a file that is none, and a server of them.
class Pooled {
public:
    explicit Pooled(PoolOptions options = {}) : folder_(temporary("pool")) {
        fs::create_directories(folder_);
        ChainModel chain;
        chain.chat = true;
        chain.chat_template = kServedTemplate;
        std::vector<OfferedModel> offered;
        for (const char* name : {"a", "b"}) {
            chain.build().save(path(name));
            offered.push_back({name, {std::string("alias-") + name}, path(name), 1000, 1700000000});
        }
        std::ofstream(path("corrupt")) << "GGUF, and then nothing of the kind";
        offered.push_back({"corrupt", {}, path("corrupt"), 34, 1700000000});
        hosting_.host = serving_host({});
        hosting_.scheduler = serve_options(2, 4096);
        hosting_.served.parallel = 2;
        hosting_.sampling = [](const Metadata&) -> Result<SamplerOptions> { return SamplerOptions{}; };
        options.build = "redline 0.0.0";
        options.say = [this](const std::string& text) {
            const std::lock_guard lock(mutex_);
            said_.push_back(text);
        };
        const auto open = [this](const OfferedModel& model) {
            ++loads;
            if (no_memory.exchange(false)) return OpenedModel{nullptr, {.status = 503, .message = "no room"}};
            return open_hosted(model, hosting_);
        };
        const auto check = [this](const OfferedModel& model, uint64_t held) {
            ++checks;
            Hosting hosting = hosting_;
            if (budget > 0) hosting.host.memory = budget;
            return check_hosted(model, hosting, held);
        };
        pool.emplace(offered, options, open, check);
        HttpOptions http;
        http.port = 0;
        server = must(ApiServer::listen(http, {}));
        server->open(pool_routes(*pool), 2);
    }
    ~Pooled() {
        server.reset();
        pool.reset();
        fs::remove_all(folder_);
    }

    HttpGot post(const std::string& path, const Json& body) {
        return http_post(server->port(), path, body.dump());
    }
    HttpGot ask(const std::string& model, const Json& more = Json::object()) {
        return http_post(server->port(), "/v1/completions", body(model, more).dump());
    }
    static Json body(const std::string& model, const Json& more) {
        Json body = {{"model", model}, {"prompt", "a"}, {"temperature", 0}, {"max_tokens", 8}};
        body.update(more);
        return body;
    }
    Json get(const std::string& path) { return read_json(http_get(server->port(), path).body); }
    std::string state(size_t index) { return get("/v1/models")["data"][index]["status"]["value"]; }
    // A connection on which an answer of so many tokens has begun to come.
    std::unique_ptr<HttpConnection> stream(const std::string& model, int tokens) {
        auto connection = std::make_unique<HttpConnection>(server->port());
        const Json wish = {{"stream", true}, {"ignore_eos", true}, {"max_tokens", tokens}};
        connection->send(http_text("POST", "/v1/completions", body(model, wish).dump()));
        CHECK(connection->receive());
        return connection;
    }
    std::vector<std::string> said() {
        const std::lock_guard lock(mutex_);
        return said_;
    }

    std::atomic<int> loads = 0, checks = 0;
    std::atomic<uint64_t> budget = 0;  // of the device, as models are checked; 0: what is free
    std::atomic<bool> no_memory = false;
    std::optional<ModelPool> pool;
    std::unique_ptr<ApiServer> server;

private:
    std::string path(const std::string& name) const { return folder_ + "/" + name + ".gguf"; }

    const std::string folder_;
    Hosting hosting_;
    std::mutex mutex_;
    std::vector<std::string> said_;
};

bool has(const std::string& text, const std::string& part) {
    return text.find(part) != text.npos;
}

// A stream that its limit of tokens has ended.
bool is_complete(const std::string& body) {
    return has(body, "\"finish_reason\":\"length\"") && body.ends_with("data: [DONE]\n\n");
}

}  // namespace

TEST_CASE("pool: two models are loaded in turn by the name in a request, and lists tell their state") {
    Pooled served;
    CHECK(served.state(0) == "unloaded");
    CHECK(served.get("/api/ps")["models"].empty());
    CHECK(served.get("/props")["role"] == "router");
    CHECK(served.get("/slots").empty());
    const HttpGot first = served.ask("a");
    CHECK_MESSAGE(first.status == 200, first.body);
    CHECK(read_json(first.body)["model"] == "a");
    CHECK(served.state(0) == "loaded");
    CHECK(served.state(1) == "unloaded");
    CHECK(read_json(served.ask("alias-b").body)["model"] == "b");
    CHECK(served.state(0) == "unloaded");
    CHECK(served.state(1) == "loaded");
    CHECK(served.get("/props")["model_alias"] == "b");
    CHECK(served.get("/slots?model=b").size() == 2);
    CHECK(has(served.get("/slots?model=a").dump(), "is not loaded"));
    CHECK(served.get("/api/ps")["models"][0]["name"] == "b:latest");
    CHECK(served.get("/api/tags")["models"].size() == 3);
    CHECK(has(http_get(served.server->port(), "/metrics").body,
              "llamacpp:tokens_predicted_total{model=\"b\"} 8"));
    // Without a name the one that was used last answers.
    const HttpGot unnamed = http_post(served.server->port(), "/tokenize", R"({"content": "a"})");
    CHECK_MESSAGE(unnamed.status == 200, unnamed.body);
    CHECK(served.loads == 2);
}

TEST_CASE("pool: two models stay where two may, and metrics have each name below one head") {
    PoolOptions two;
    two.most = 2;
    Pooled served(two);
    for (const char* name : {"a", "b", "a:latest", "b"}) CHECK(served.ask(name).status == 200);
    CHECK(served.loads == 2);
    const std::string metrics = http_get(served.server->port(), "/metrics").body;
    const std::string head = "# TYPE llamacpp:requests_processing gauge\n";
    CHECK(has(metrics, head + "llamacpp:requests_processing{model=\"a\"} 0\n"
                              "llamacpp:requests_processing{model=\"b\"} 0\n"));
    CHECK(metrics.find(head) == metrics.rfind(head));
}

TEST_CASE("pool: a swap waits until the answer that streams is complete") {
    Pooled served;
    const std::unique_ptr<HttpConnection> running = served.stream("a", 4000);
    HttpGot other, later;
    std::thread second([&] { other = served.ask("b"); });
    CHECK(comes_true([&] { return served.pool->look()[0].state == ModelPool::State::closing; }));
    // Who comes for the first model now waits for its next turn.
    std::thread third([&] { later = served.ask("a"); });
    const HttpGot streamed = running->read();
    second.join();
    third.join();
    CHECK(streamed.whole);
    CHECK(is_complete(streamed.body));
    CHECK_MESSAGE(other.status == 200, other.body);
    CHECK_MESSAGE(later.status == 200, later.body);
    CHECK(served.loads == 3);
    const std::vector<std::string> said = served.said();
    REQUIRE(said.size() == 5);
    CHECK(said[1] == "a is unloaded: another model is wanted");
    CHECK(said[2] == "b is loaded");
}

TEST_CASE("pool: a model that nobody uses is unloaded, and loaded again on demand") {
    PoolOptions idle;
    idle.idle = std::chrono::milliseconds(200);
    Pooled served(idle);
    CHECK(served.ask("a").status == 200);
    // Looking at the lists does not keep it.
    CHECK(comes_true([&] { return served.state(0) == "unloaded"; }));
    CHECK(served.ask("a").status == 200);
    CHECK(served.loads == 2);
}

TEST_CASE("pool: a file that cannot be loaded is an error of its request, and others are served") {
    PoolOptions two;
    two.most = 2;
    Pooled served(two);
    const HttpGot got = served.ask("corrupt");
    CHECK(got.status == 400);
    CHECK(has(got.body, "corrupt.gguf"));
    const Json entry = served.get("/v1/models/corrupt");
    CHECK(entry["status"]["value"] == "unloaded");
    CHECK(entry["status"]["failed"] == true);
    CHECK(served.ask("a").status == 200);
    served.no_memory = true;
    CHECK(comes_true([&] { return served.pool->in_use() == 0; }));
    // A model that is not in use makes room for one that finds no memory, which is tried again.
    CHECK(served.ask("b").status == 200);
    CHECK(served.pool->health() == Health::serving);
    CHECK(served.state(0) == "unloaded");
}

TEST_CASE("pool: a model for which there is no memory is 503, and the next request tries it again") {
    Pooled served;
    served.no_memory = true;
    const HttpGot full = served.ask("a");
    CHECK(full.status == 503);
    CHECK(has(full.body, "no room"));
    CHECK(full.headers.count("retry-after") == 1);
    CHECK(served.ask("a").status == 200);
}

TEST_CASE("pool: a name that is unknown is 404 and told what there is") {
    Pooled served;
    const HttpGot got = served.ask("gpt-4");
    CHECK(got.status == 404);
    CHECK(read_json(got.body)["error"]["type"] == "model_not_found");
    CHECK(has(got.body, R"(this server has \"a\", \"b\", \"corrupt\")"));
    CHECK(http_get(served.server->port(), "/v1/models/gpt-4").status == 404);
    const HttpGot unnamed = http_post(served.server->port(), "/v1/completions", R"({"prompt": "a"})");
    CHECK(unnamed.status == 400);
    CHECK(has(unnamed.body, "names no model"));
    CHECK(http_post(served.server->port(), "/v1/embeddings", R"({"model": "a"})").status == 501);
    CHECK(served.loads == 0);
}

TEST_CASE("pool: first requests that come together share one load") {
    Pooled served;
    std::vector<int> statuses(6);
    std::vector<std::thread> clients;
    for (int& status : statuses) clients.emplace_back([&] { status = served.ask("a").status; });
    for (std::thread& client : clients) client.join();
    CHECK(statuses == std::vector<int>(6, 200));
    CHECK(served.loads == 1);
}

TEST_CASE("pool: at the end answers under way are completed, and requests that wait are refused") {
    Pooled served;
    const std::unique_ptr<HttpConnection> running = served.stream("a", 4000);
    HttpGot other;
    std::thread second([&] { other = served.ask("b"); });
    CHECK(comes_true([&] { return served.pool->look()[0].state == ModelPool::State::closing; }));
    served.pool->drain(std::chrono::seconds(20));
    CHECK(http_get(served.server->port(), "/health").status == 503);
    CHECK(served.ask("a").status == 503);
    const HttpGot streamed = running->read();
    second.join();
    CHECK(streamed.whole);
    CHECK(is_complete(streamed.body));
    CHECK(other.status == 503);
}

TEST_CASE("pool: the loaded model stays where the one that is wanted cannot be loaded in its place") {
    Pooled served;
    CHECK(served.ask("a").status == 200);
    const HttpGot corrupt = served.ask("corrupt");
    CHECK(corrupt.status == 400);
    CHECK(has(corrupt.body, "corrupt.gguf"));
    CHECK(served.get("/v1/models/corrupt")["status"]["failed"] == true);
    CHECK(served.state(0) == "loaded");
    served.budget = 1000;
    const HttpGot large = served.ask("b");
    CHECK(large.status == 503);
    CHECK(has(large.body, "all that other models leave when they are unloaded"));
    CHECK(served.state(0) == "loaded");
    CHECK(served.loads == 1);
    // With the memory there the same request swaps them.
    served.budget = 0;
    CHECK(served.ask("b").status == 200);
    CHECK(served.state(0) == "unloaded");
    CHECK(served.loads == 2);
    CHECK(served.checks == 3);
}

TEST_CASE("pool: a model that finds no memory closes no other one where that would not help") {
    PoolOptions two;
    two.most = 2;
    Pooled served(two);
    CHECK(served.ask("a").status == 200);
    CHECK(comes_true([&] { return served.pool->in_use() == 0; }));
    served.no_memory = true;
    served.budget = 1000;
    CHECK(served.ask("b").status == 503);
    CHECK(served.state(0) == "loaded");
    CHECK(served.loads == 2);
}

TEST_CASE("pool: llama-server's paths load and unload models") {
    Pooled served;
    CHECK(read_json(served.post("/models/load", {{"model", "b"}}).body) == Json{{"success", true}});
    CHECK(served.get("/models")["data"][1]["status"]["value"] == "loaded");
    CHECK(served.post("/models/load", {{"model", "b"}}).status == 200);
    CHECK(served.post("/models/load", {{"model", "corrupt"}}).status == 400);
    CHECK(served.post("/models/load", {{"model", "gpt-4"}}).status == 404);
    CHECK(served.post("/models/unload", {{"model", "gpt-4"}}).status == 404);
    CHECK(read_json(served.post("/models/unload", {{"model", "b"}}).body) == Json{{"success", true}});
    CHECK(comes_true([&] { return served.state(1) == "unloaded"; }));
    CHECK(served.said().back() == "b is unloaded: a request asked for that");
    // The next request loads it again, and it stays.
    CHECK(served.ask("b").status == 200);
    CHECK(served.ask("b").status == 200);
    CHECK(served.loads == 2);
}

TEST_CASE("pool: a model that is asked to go completes its answers before") {
    Pooled served;
    const std::unique_ptr<HttpConnection> running = served.stream("a", 4000);
    CHECK(served.post("/models/unload", {{"model", "a"}}).status == 200);
    const HttpGot streamed = running->read();
    CHECK(streamed.whole);
    CHECK(is_complete(streamed.body));
    CHECK(comes_true([&] { return served.state(0) == "unloaded"; }));
}

TEST_CASE("pool: keep_alive of Ollama's requests says how long a model stays") {
    Pooled served;
    const auto chat = [&](const Json& keep, bool empty) {
        Json body = {{"model", "a"}, {"stream", false}, {"options", {{"num_predict", 2}}}};
        body["messages"] = Json::array();
        if (!empty) body["messages"].push_back({{"role", "user"}, {"content", "a"}});
        if (!keep.is_null()) body["keep_alive"] = keep;
        return served.post("/api/chat", body);
    };
    const auto expires = [&]() -> std::string { return served.get("/api/ps")["models"][0]["expires_at"]; };
    // An empty one loads; without keep_alive the model stays as long as --idle-unload says, here forever.
    const HttpGot load = chat({}, true);
    CHECK_MESSAGE(load.status == 200, load.body);
    CHECK(read_json(load.body)["done_reason"] == "load");
    CHECK(served.state(0) == "loaded");
    const int64_t now = seconds_now();
    CHECK(expires() > rfc3339(now + int64_t(90) * 365 * 86400));
    CHECK(chat("1h30m", false).status == 200);
    CHECK(expires() > rfc3339(now + 5000));
    CHECK(expires() < rfc3339(now + 9000));
    CHECK(chat(-1, false).status == 200);
    CHECK(expires() > rfc3339(now + int64_t(90) * 365 * 86400));
    CHECK(chat("later", false).status == 400);
    CHECK(served.state(0) == "loaded");
    CHECK(chat(0, false).status == 200);
    CHECK(comes_true([&] { return served.state(0) == "unloaded"; }));
    // A request to unload loads nothing.
    const HttpGot unload = chat("0s", true);
    CHECK(read_json(unload.body)["done_reason"] == "unload");
    CHECK(read_json(served.post("/api/generate", {{"model", "a"}, {"keep_alive", 0}}).body)["done_reason"] ==
          "unload");
    CHECK(served.loads == 1);
    CHECK(chat(0.05, true).status == 200);
    CHECK(comes_true([&] { return served.state(0) == "unloaded"; }));
    CHECK(served.loads == 2);
}

TEST_CASE("api: keep_alive has seconds or a duration, and below 0 means forever") {
    const auto read = [](const Json& value) { return read_keep_alive(Fields(std::as_const(value))); };
    const auto milliseconds = [&](const Json& keep) -> int64_t {
        const Json body = {{"keep_alive", keep}};
        return must(read(body)).value_or(std::chrono::milliseconds(-1)).count();
    };
    CHECK(milliseconds(300) == 300000);
    CHECK(milliseconds("5m") == 300000);
    CHECK(milliseconds("1h0.5m2s") == 3632000);
    CHECK(milliseconds("250ms") == 250);
    CHECK(milliseconds("60") == 60000);
    CHECK(milliseconds("+1s") == 1000);
    CHECK(milliseconds(0) == 0);
    CHECK(milliseconds(nullptr) == -1);
    for (const Json& forever : {Json(-1), Json("-1"), Json("-5m"), Json(1e300)})
        CHECK(milliseconds(forever) == kForever.count());
    for (const Json& wrong : {Json("x"), Json(""), Json("5m3"), Json("5 m"), Json("1..5s"), Json("-"),
                              Json(true), Json::array()}) {
        const Json body = {{"keep_alive", wrong}};
        CHECK_FALSE(read(body).ok());
    }
}
