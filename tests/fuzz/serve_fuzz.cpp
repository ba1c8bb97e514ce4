// libFuzzer target for the bodies of requests. The first line of the input is a path, and after it may stand
// "full", "fault" or "gone": the queue is full, the answer ends by a fault, the client goes in its middle.
// The rest is the body. Whatever it is, there is one answer, which is JSON or a stream of JSON, and a request
// that is wrong is no fault of the server.
#include "fuzz/short_answers.h"

namespace {

using namespace redline;

// The network's thread is this one: it does what is posted once the handler has returned.
class BodyExchange final : public serve::Exchange {
public:
    explicit BodyExchange(serve::HttpRequest request) : request_(std::move(request)) {}
    const serve::HttpRequest& request() const override { return request_; }
    void reply(serve::HttpReply whole) override {
        fuzz::require_reply(whole.status, whole.type, whole.body);
        fuzz::require(written_.empty());
        ++answers;
    }
    void stream(serve::HttpReply head, std::string) override { type_ = head.type; }
    void write(std::string text) override { written_ += text; }
    void finish() override {
        fuzz::require_stream(type_, written_);
        ++answers;
    }
    void post(std::function<void()> work) override { work_.push_back(std::move(work)); }
    void when_gone(std::function<void()> work) override { gone_.push_back(std::move(work)); }
    void count_tokens(uint64_t, uint64_t) override {}

    void run_posted(bool goes) {
        for (size_t done = 0; !work_.empty(); ++done) {
            if (goes && done == 2)
                for (const auto& each : std::exchange(gone_, {})) each();
            const std::function<void()> work = std::move(work_.front());
            work_.pop_front();
            work();
        }
    }

    int answers = 0;

private:
    const serve::HttpRequest request_;
    std::string type_, written_;
    std::deque<std::function<void()>> work_;
    std::vector<std::function<void()>> gone_;
};

struct BodyServer {
    Model model = fuzz::chain_with_chat();
    fuzz::ShortAnswers answers{model.tokenizer()};
    serve::Service service{fuzz::served_chain(model), answers};
    std::vector<serve::Route> routes = serve::api_routes(service);
};

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
    static BodyServer server;
    const std::string_view input(reinterpret_cast<const char*>(data), size);
    const size_t line = input.find('\n');
    if (line == input.npos) return -1;
    const size_t space = std::min(input.find(' '), line);
    const std::string_view path = input.substr(0, space);
    const std::string_view way = space < line ? input.substr(space + 1, line - space - 1) : "";
    const auto route = std::ranges::find_if(
        server.routes, [&](const serve::Route& each) { return each.path == path && each.method != "GET"; });
    if (route == server.routes.end() || (way != "" && way != "full" && way != "fault" && way != "gone"))
        return -1;
    server.answers.refuses = way == "full";
    server.answers.fails = way == "fault";
    const auto exchange = std::make_shared<BodyExchange>(serve::HttpRequest{
        .method = route->method, .path = route->path, .body = std::string(input.substr(line + 1))});
    route->handler(exchange);
    exchange->run_posted(way == "gone");
    fuzz::require(exchange->answers == 1 || way == "gone");
    return 0;
}
