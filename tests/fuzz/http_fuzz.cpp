// libFuzzer target for connections: the input is what a client sends before it closes its side. An input of
// an odd length goes to a server of two models that wants a key. Each answer is HTTP, its JSON is JSON, its
// line in the log of accesses is one line, and the connection ends.
#include "fuzz/short_answers.h"
#include "serve/http/access_log.h"
#include "serve/http/connection.h"
#include "serve/pool/pool_routes.h"

#include <future>

namespace {

using namespace redline;

class HeldModel final : public serve::HostedModel {
public:
    explicit HeldModel(const Model& model) : answers_(model.tokenizer()), service_(named(model), answers_) {}
    serve::Service& service() override { return service_; }
    void drain(std::chrono::milliseconds) override {}
    uint64_t bytes() const override { return 1; }

private:
    static serve::ServedModel named(const Model& model) { return fuzz::served_chain(model); }

    fuzz::ShortAnswers answers_;
    serve::Service service_;
};

// Every route is answered on the thread of the network, which is the one of the target.
std::vector<serve::Route> at_once(std::vector<serve::Route> routes) {
    for (serve::Route& route : routes) route.at_once = true;
    return routes;
}

class ConnectionServer {
public:
    ConnectionServer()
        : pool_(
              {{"a", {"first"}, "/models/a.gguf"}, {"b", {}, "/models/b.gguf"}}, {.most = 2},
              [this](const serve::OfferedModel&) {
                  return serve::OpenedModel{std::make_unique<HeldModel>(model_)};
              },
              [](const serve::OfferedModel&, uint64_t) { return std::optional<serve::Problem>(); }) {
        for (const serve::OfferedModel& each : pool_.offered()) load(each);
        for (serve::HttpCore* core : {open_.get(), closed_.get()})
            core->log = [](const serve::HttpAccess& access) {
                for (const bool json : {false, true}) {
                    const std::string line = serve::access_line(access, 0, json);
                    fuzz::require(line.find('\n') == line.size() - 1);
                    fuzz::require(!json || !read_json(line).is_discarded());
                }
            };
    }

    // All that the server answers.
    std::string talk(std::string_view sent, bool with_key) {
        const std::shared_ptr<serve::HttpCore>& core = with_key ? closed_ : open_;
        int ends[2];
        fuzz::require(::socketpair(AF_UNIX, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0, ends) == 0);
        serve::tcp::socket socket(core->io);
        socket.assign(serve::tcp::v4(), ends[0]);
        std::make_shared<serve::Connection>(core, std::move(socket))->start();
        fuzz::require(::send(ends[1], sent.data(), sent.size(), MSG_NOSIGNAL) == ssize_t(sent.size()));
        std::string got;
        work(*core, ends[1], got);
        ::shutdown(ends[1], SHUT_WR);
        constexpr int kMostTries = 1000;
        for (int tries = 0; core->open > 0; ++tries) {
            fuzz::require(tries < kMostTries);
            work(*core, ends[1], got);
        }
        ::close(ends[1]);
        return got;
    }

private:
    void load(const serve::OfferedModel& model) {
        std::promise<void> loaded;
        pool_.want(model, std::make_shared<std::atomic<bool>>(false),
                   [&](serve::ModelPool::Lease, const serve::Problem&) { loaded.set_value(); });
        loaded.get_future().wait();
    }
    static void work(serve::HttpCore& core, int end, std::string& got) {
        core.io.restart();
        core.io.poll();
        char piece[16 << 10];
        for (ssize_t count = 0; (count = ::recv(end, piece, sizeof(piece), 0)) > 0;)
            got.append(piece, size_t(count));
    }

    static constexpr serve::HttpLimits kLimits = {.header_bytes = 1024, .body_bytes = 512};
    Model model_ = fuzz::chain_with_chat();
    fuzz::ShortAnswers answers_{model_.tokenizer()};
    serve::Service service_{fuzz::served_chain(model_), answers_};
    serve::ModelPool pool_;
    serve::Router of_one_{at_once(serve::api_routes(service_)), {}, 0};
    serve::Router of_two_{at_once(serve::pool_routes(pool_)), {.keys = {"k", "other"}, .origins = {"*"}}, 0};
    std::shared_ptr<serve::HttpCore> open_ = std::make_shared<serve::HttpCore>(of_one_, kLimits);
    std::shared_ptr<serve::HttpCore> closed_ = std::make_shared<serve::HttpCore>(of_two_, kLimits);
};

// Takes a line off the text; what precedes a line's end has no other end in it.
std::string_view take_line(std::string_view& text) {
    const size_t end = text.find("\r\n");
    fuzz::require(end != text.npos);
    const std::string_view line = text.substr(0, end);
    fuzz::require(line.find_first_of(std::string_view("\r\n\0", 3)) == line.npos);
    text.remove_prefix(end + 2);
    return line;
}

// Takes the first answer off the text. Whether it has a body depends on the method, so that the target looks
// at no further one.
void require_answer(std::string_view text, bool bodiless) {
    while (text.starts_with("HTTP/1.1 100 ")) text.remove_prefix(text.find("\r\n\r\n") + 4);
    if (text.empty()) return;
    const std::string_view first = take_line(text);
    fuzz::require(first.starts_with("HTTP/1.1 ") && first.size() > 12);
    const int status = std::atoi(std::string(first.substr(9, 3)).c_str());
    std::string_view type;
    size_t length = 0;
    bool chunked = false;
    for (std::string_view line; !(line = take_line(text)).empty();) {
        fuzz::require(line.find(": ") != line.npos);
        const std::string_view value = line.substr(line.find(": ") + 2);
        if (line.starts_with("Content-Type: ")) type = value;
        if (line.starts_with("Content-Length: ")) length = size_t(std::atoll(std::string(value).c_str()));
        if (line.starts_with("Transfer-Encoding: ")) chunked = true;
    }
    fuzz::require(chunked || bodiless || text.size() >= length);
    const bool whole = !chunked && !bodiless && status != 204;
    fuzz::require_reply(status, whole ? type : "", text.substr(0, whole ? length : 0));
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
    static ConnectionServer server;
    const std::string_view sent(reinterpret_cast<const char*>(data), size);
    // Ends of lines before a request are no part of it.
    const std::string_view request = sent.substr(std::min(sent.find_first_not_of("\r\n"), size));
    require_answer(server.talk(sent, size % 2 == 1), request.starts_with("HEAD "));
    return 0;
}
