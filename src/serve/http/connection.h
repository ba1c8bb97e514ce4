// One connection of a client: requests one after another, and the answer to the present one. For
// connection.cpp and server.cpp, the only files that see Boost.
#pragma once

#include "serve/http/server.h"

#include <boost/asio/io_context.hpp>
#include <boost/asio/ip/tcp.hpp>
#include <boost/asio/post.hpp>
#include <boost/asio/steady_timer.hpp>
#include <boost/beast/core/flat_buffer.hpp>
#include <boost/beast/http/parser.hpp>
#include <boost/beast/http/read.hpp>
#include <boost/beast/http/string_body.hpp>

#include <atomic>
#include <ctime>
#include <list>
#include <mutex>
#include <set>
#include <utility>

#include <sys/socket.h>

namespace redline::serve {

namespace asio = boost::asio;
namespace beast_http = boost::beast::http;
using asio::ip::tcp;
using Fault = boost::system::error_code;

class Connection;

// The bytes of one body in a sum over all of them, until this ends.
class BodyShare {
public:
    explicit BodyShare(std::atomic<uint64_t>& sum) : sum_(&sum) {}
    BodyShare(BodyShare&& other) noexcept : sum_(other.sum_), bytes_(std::exchange(other.bytes_, 0)) {}
    ~BodyShare() { set(0); }
    // Returns the sum with it. Fewer bytes than before subtract, as the numbers wrap around.
    uint64_t set(uint64_t bytes) {
        const uint64_t more = bytes - std::exchange(bytes_, bytes);
        return sum_->fetch_add(more) + more;
    }

private:
    std::atomic<uint64_t>* sum_;
    uint64_t bytes_ = 0;
};

class HttpCore : public std::enable_shared_from_this<HttpCore> {
public:
    HttpCore(HttpHandler& answers, const HttpLimits& bounds) : handler(answers), limits(bounds) {}

    Status listen(const HttpOptions& options);
    void run();
    void stop(std::chrono::milliseconds longest);
    // Ends all connections, and drops what is still to be done.
    void close_all();

    // From any thread: runs a function on the one of run(), or not at all once that has ended.
    void post(std::function<void()> work);
    bool is_here() { return io.get_executor().running_in_this_thread(); }

    void add(Connection& connection);
    void remove(Connection& connection);
    void idle(Connection& connection);
    void busy(Connection& connection);

    asio::io_context io{1};
    HttpHandler& handler;
    const HttpLimits limits;
    std::function<void(const HttpAccess&)> log;
    std::function<void(const std::string&)> note;
    tcp::acceptor acceptor{io};
    std::string host;
    uint16_t port = 0;
    std::atomic<uint64_t> open = 0;
    std::atomic<uint64_t> body_bytes = 0;  // of all requests that are being received or answered
    std::atomic<bool> draining = false;    // connections end behind their answers
    bool stopping = false;

private:
    void accept();
    void accept_one();
    void pause_accepting(const std::string& reason);

    std::mutex gate_;
    bool finished_ = false;  // nothing is posted any more
    bool noted_ = false;
    asio::steady_timer pause_{io};
    asio::steady_timer last_{io};
    std::set<Connection*> all_;
    std::list<Connection*> idle_;  // the longest first
};

class Connection : public std::enable_shared_from_this<Connection> {
public:
    Connection(std::shared_ptr<HttpCore> core, tcp::socket socket)
        : core_(std::move(core)), socket_(std::move(socket)) {}
    ~Connection() { close(); }

    void start();
    void close();
    // No further request is read; an idle connection ends at once.
    void end_soon();

    // For the exchange with this number; nothing happens where another is under way.
    void reply(uint64_t serial, HttpReply whole);
    void stream(uint64_t serial, HttpReply head, std::string ping);
    void write(uint64_t serial, const std::string& text);
    void finish(uint64_t serial);
    void when_gone(uint64_t serial, std::function<void()> work);
    void count_tokens(uint64_t serial, uint64_t prompt, uint64_t generated);
    void abandoned(uint64_t serial);
    HttpCore& core() { return *core_; }

    std::optional<std::list<Connection*>::iterator> idle_place;  // for the core

private:
    enum class State : uint8_t { idle, head, body, working, closing, closed };

    template <typename Function>
    auto then(Function function) {
        return [self = shared_from_this(), function](auto... results) {
            if (self->state_ != State::closed) function(*self, results...);
        };
    }
    void read_request();
    void read_head();
    void got_head(Fault fault);
    void take_head();
    bool has_room_for(uint64_t bytes);
    void read_body();
    void got_body(Fault fault);
    void begin_exchange();
    void watch();
    void look();
    void probe();
    void refuse(int status, const std::string& message);
    void cut();
    void complete();
    void log_access();
    void written();
    void linger();
    void drain();
    void push(std::string_view text);
    void send();
    void sent(Fault fault, size_t bytes);
    void arm();
    void set_deadline(std::chrono::milliseconds time);
    void expired();
    std::string head_text(const HttpReply& reply, std::optional<uint64_t> length) const;

    std::shared_ptr<HttpCore> core_;
    tcp::socket socket_;
    std::string peer_;  // at the beginning: a connection that is broken has none any more
    asio::steady_timer timer_{core_->io};
    uint64_t deadline_ = 0;  // number of the last one set
    State state_ = State::idle;
    boost::beast::flat_buffer buffer_;
    std::optional<beast_http::request_parser<beast_http::string_body>> parser_;
    HttpRequest request_;
    BodyShare body_share_{core_->body_bytes};
    uint64_t body_mark_ = 0;    // bytes of the body at its last progress
    bool keeps_ = true;         // the connection serves another request
    bool old_ = false;          // HTTP/1.0, which knows no chunks
    bool bodiless_ = false;     // HEAD
    bool half_closed_ = false;  // the client sends nothing more

    // The present exchange.
    uint64_t serial_ = 0;
    std::optional<HttpReply> stream_;  // its head
    std::string ping_;
    bool begun_ = false;                       // its head is written
    bool completed_ = false;                   // nothing will be added to what is queued
    std::vector<std::function<void()>> gone_;  // to be called when the client goes
    HttpAccess access_;
    std::chrono::steady_clock::time_point since_;

    std::string queue_;    // behind sending_
    std::string sending_;  // from sent_ on
    size_t sent_ = 0;
    bool writing_ = false;
    std::string dropped_;  // what comes after the last answer
};

}  // namespace redline::serve
