// The description of the endpoints at /openapi.json.
#include "served.h"

#include <set>

using namespace redline;
using namespace redline::test;
namespace server = redline::serve;

namespace {

// All values of members "$ref", wherever they stand.
void collect_references(const Json& value, std::set<std::string>& all) {
    if (value.is_object() && value.contains("$ref")) all.insert(value["$ref"].get<std::string>());
    if (value.is_structured())
        for (const Json& each : value) collect_references(each, all);
}

}  // namespace

TEST_CASE("openapi: every endpoint is described, and nothing that is none") {
    Served served({.keys = {"k"}});
    const HttpGot got = http_get(served.port(), "/openapi.json");
    CHECK(got.status == 200);
    CHECK(got.headers.at("content-type") == "application/json");
    const Json document = read_json(got.body);
    REQUIRE(document.is_object());
    CHECK(document["openapi"] == "3.1.0");
    std::set<std::string> described, there;
    for (const auto& [path, methods] : document["paths"].items())
        for (const auto& [method, operation] : methods.items()) {
            std::string name = method;
            for (char& c : name) c = char(std::toupper(c));
            described.insert(name + " " + path.substr(0, path.find('{')));
            CHECK_MESSAGE(operation["responses"].contains("default"), path);
        }
    server::Service service({.model = &served.model}, served.answers);
    for (const server::Route& route : server::api_routes(service)) {
        const std::string path = route.path.substr(0, route.path.find('*'));
        there.insert(route.method + " " + path);
        std::string method = route.method;
        for (char& c : method) c = char(std::tolower(c));
        for (const auto& [name, methods] : document["paths"].items())
            // Endpoints that need no key say so.
            if (name.substr(0, name.find('{')) == path && methods.contains(method))
                CHECK_MESSAGE(route.open == methods[method].contains("security"), name);
    }
    CHECK(described == there);
}

TEST_CASE("api: messages without a text, or without a content to go on from, are wrong and end nothing") {
    Served served;
    for (const char* blocks : {R"([{"type": "text"}])", R"([{"type": "text", "text": ""}])", "[]"}) {
        const Json content = read_json(blocks);
        const Json message = {{"role", "user"}, {"content", content}};
        CHECK(served.post("/v1/messages", {{"max_tokens", 8}, {"messages", Json::array({message})}}).status ==
              400);
    }
    const Json calls = Json::array(
        {{{"id", "1"}, {"type", "function"}, {"function", {{"name", "f"}, {"arguments", "{}"}}}}});
    const Json last = {{"role", "assistant"}, {"tool_calls", calls}};
    const Json user = {{"role", "user"}, {"content", "a"}};
    CHECK(served
              .post("/v1/chat/completions",
                    {{"messages", Json::array({user, last})}, {"continue_final_message", true}})
              .status == 400);
    CHECK(http_get(served.port(), "/health").status == 200);
}

TEST_CASE("openapi: what the description refers to is there, and its examples are answered") {
    Served served;
    const Json document = read_json(http_get(served.port(), "/openapi.json").body);
    std::set<std::string> references;
    collect_references(document, references);
    CHECK(references.size() > 10);
    for (const std::string& reference : references)
        CHECK_MESSAGE(document.contains(Json::json_pointer(reference.substr(1))), reference);
    size_t examples = 0;
    for (const auto& [path, methods] : document["paths"].items())
        for (const Json& operation : methods) {
            const Json::json_pointer place("/requestBody/content/application~1json/example");
            if (!operation.contains(place)) continue;
            ++examples;
            const int status = served.post(path, operation[place]).status;
            // A model without tokens for gaps refuses to fill one.
            CHECK_MESSAGE(status == (path == "/infill" ? 400 : 200), path);
        }
    CHECK(examples > 10);
}
