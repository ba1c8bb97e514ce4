#include "serve/http/connection.h"

#include <algorithm>
#include <cerrno>

namespace redline::serve {

namespace {

// The exchange as handlers see it: whatever it is told takes place on the network's thread.
class Visit final : public Exchange {
public:
    Visit(std::shared_ptr<Connection> connection, uint64_t serial, HttpRequest request, BodyShare share)
        : connection_(std::move(connection)),
          serial_(serial),
          share_(std::move(share)),
          request_(std::move(request)) {}
    // Behind all that it was told before, by any thread.
    ~Visit() override {
        connection_->core().post([c = connection_, serial = serial_] { c->abandoned(serial); });
    }

    const HttpRequest& request() const override { return request_; }
    void reply(HttpReply whole) override {
        there([whole = std::move(whole)](Connection& c, uint64_t serial) mutable {
            c.reply(serial, std::move(whole));
        });
    }
    void stream(HttpReply head, std::string ping) override {
        there([head = std::move(head), ping = std::move(ping)](Connection& c, uint64_t serial) mutable {
            c.stream(serial, std::move(head), std::move(ping));
        });
    }
    void write(std::string text) override {
        there([text = std::move(text)](Connection& c, uint64_t serial) { c.write(serial, text); });
    }
    void finish() override {
        there([](Connection& c, uint64_t serial) { c.finish(serial); });
    }
    void post(std::function<void()> work) override {
        connection_->core().post([c = connection_, work = std::move(work)] {
            try {
                work();
            } catch (const std::exception&) {
                c->close();  // memory ran out: the client sees a broken stream
            }
        });
    }
    void when_gone(std::function<void()> work) override {
        there([work = std::move(work)](Connection& c, uint64_t serial) { c.when_gone(serial, work); });
    }
    void count_tokens(uint64_t prompt, uint64_t generated) override {
        there([prompt, generated](Connection& c, uint64_t serial) {
            c.count_tokens(serial, prompt, generated);
        });
    }

private:
    template <typename Work>
    void there(Work work) {
        HttpCore& core = connection_->core();
        if (core.is_here()) return work(*connection_, serial_);
        core.post(
            [c = connection_, serial = serial_, work = std::move(work)]() mutable { work(*c, serial); });
    }

    std::shared_ptr<Connection> connection_;
    const uint64_t serial_;
    const BodyShare share_;
    const HttpRequest request_;
};

// Less of a body is no progress: a byte now and then would hold a connection for ever.
constexpr uint64_t kBodyStep = 4096;

std::string peer_of(const tcp::socket& socket) {
    Fault fault;
    const tcp::endpoint end = socket.remote_endpoint(fault);
    if (fault) return {};
    const std::string address = end.address().to_string();
    return end.address().is_v6() ? fmt::format("[{}]:{}", address, end.port())
                                 : fmt::format("{}:{}", address, end.port());
}

// Versions of Boost have texts of different types.
template <typename View>
std::string text_of(const View& view) {
    return std::string(view.data(), view.size());
}

// An error that Beast found in what came, and not one of the connection.
bool is_malformed(const Fault& fault) {
    return fault.category() == beast_http::make_error_code(beast_http::error::bad_method).category() &&
           fault != beast_http::error::end_of_stream && fault != beast_http::error::partial_message;
}

}  // namespace

void Connection::start() {
    Fault unimportant;
    socket_.set_option(tcp::no_delay(true), unimportant);
    peer_ = peer_of(socket_);
    core_->add(*this);
    read_request();
}

void Connection::close() {
    if (state_ == State::closed) return;
    state_ = State::closed;
    ++serial_;
    for (const auto& gone : std::exchange(gone_, {})) gone();
    Fault unimportant;
    socket_.close(unimportant);
    timer_.cancel();
    core_->remove(*this);
}

void Connection::end_soon() {
    keeps_ = false;
    // A request that is here already is answered.
    char byte = 0;
    const bool here = ::recv(socket_.native_handle(), &byte, 1, MSG_PEEK | MSG_DONTWAIT) > 0;
    if (state_ == State::idle && !here) close();
}

void Connection::set_deadline(std::chrono::milliseconds time) {
    timer_.expires_after(time);
    timer_.async_wait(then([number = ++deadline_](Connection& c, Fault fault) {
        if (!fault && number == c.deadline_) c.expired();
    }));
}

// The deadline of the present state.
void Connection::arm() {
    const HttpLimits& limits = core_->limits;
    if (writing_) return set_deadline(limits.write);
    if (state_ == State::working && stream_ && !ping_.empty()) return set_deadline(limits.ping);
    ++deadline_;
    timer_.cancel();
}

void Connection::expired() {
    if (writing_) return cut();
    switch (state_) {
        case State::head:
            return refuse(408, "the header of the request did not end in time");
        case State::body:
            return refuse(408, "the body of the request did not come in time");
        case State::working:
            return write(serial_, ping_);
        default:
            return close();
    }
}

void Connection::read_request() {
    state_ = State::idle;
    completed_ = begun_ = bodiless_ = false;
    access_ = {};
    stream_.reset();
    ping_.clear();
    gone_.clear();
    parser_.emplace();
    parser_->header_limit(core_->limits.header_bytes);
    parser_->body_limit(core_->limits.body_bytes);
    if (buffer_.size() > 0) return read_head();
    if (half_closed_) return close();
    core_->idle(*this);
    set_deadline(core_->limits.idle);
    socket_.async_wait(tcp::socket::wait_read, then([](Connection& c, Fault fault) {
                           if (fault) return c.close();
                           c.core_->busy(c);
                           c.read_head();
                       }));
}

void Connection::read_head() {
    state_ = State::head;
    since_ = std::chrono::steady_clock::now();
    set_deadline(core_->limits.head);
    beast_http::async_read_header(socket_, buffer_, *parser_,
                                  then([](Connection& c, Fault fault, size_t) { c.got_head(fault); }));
}

void Connection::got_head(Fault fault) {
    if (state_ != State::head) return;
    if (fault == beast_http::error::header_limit)
        return refuse(
            431, fmt::format("the header of the request has more than {} bytes", core_->limits.header_bytes));
    if (fault == beast_http::error::body_limit) {
        take_head();
        return refuse(
            413, fmt::format("the body of the request has more than {} bytes", core_->limits.body_bytes));
    }
    if (is_malformed(fault)) return refuse(400, fmt::format("the request is no HTTP: {}", fault.message()));
    if (fault) return close();
    take_head();
    since_ = std::chrono::steady_clock::now();
    if (std::optional<HttpReply> refusal = core_->handler.admit(request_)) {
        keeps_ = keeps_ && parser_->is_done();
        state_ = State::working;
        return reply(serial_, std::move(*refusal));
    }
    if (parser_->is_done()) return begin_exchange();
    if (!has_room_for(parser_->content_length().value_or(0))) return;
    if (same_name(request_.header("Expect"), "100-continue")) push("HTTP/1.1 100 Continue\r\n\r\n");
    state_ = State::body;
    body_mark_ = 0;
    set_deadline(core_->limits.body);
    read_body();
}

void Connection::take_head() {
    const auto& head = parser_->get();
    keeps_ = keeps_ && head.keep_alive() && !core_->stopping;
    old_ = head.version() < 11;
    bodiless_ = head.method() == beast_http::verb::head;
    request_ = {};
    request_.method = text_of(head.method_string());
    std::string_view target(head.target().data(), head.target().size());
    // The absolute form, which proxies use: "http://host/path".
    if (const size_t scheme = target.find("://"); scheme != target.npos && scheme < target.find('/'))
        target.remove_prefix(std::min(target.find('/', scheme + 3), target.size()));
    const size_t mark = std::min(target.find('?'), target.size());
    request_.path = percent_decoded(target.substr(0, mark));
    if (mark < target.size()) request_.query = target.substr(mark + 1);
    for (const auto& field : head)
        request_.headers.push_back({text_of(field.name_string()), text_of(field.value())});
    access_.method = request_.method;
    access_.path = request_.path;
    access_.id = request_.id = request_id(request_.header("X-Request-Id"));
}

// False: the bodies of all requests and so many bytes more would be too large together, and this request is
// refused. Its announced length is not counted before it comes, or requests that never come would keep others
// out.
bool Connection::has_room_for(uint64_t bytes) {
    const uint64_t most = core_->limits.all_bodies_bytes;
    if (core_->body_bytes + bytes <= most) return true;
    refuse(503, fmt::format("the bodies of all requests would have more than {} bytes together; try again "
                            "when some are answered",
                            most));
    return false;
}

void Connection::read_body() {
    beast_http::async_read_some(socket_, buffer_, *parser_,
                                then([](Connection& c, Fault fault, size_t) { c.got_body(fault); }));
}

void Connection::got_body(Fault fault) {
    if (state_ != State::body) return;
    if (fault == beast_http::error::body_limit)
        return refuse(
            413, fmt::format("the body of the request has more than {} bytes", core_->limits.body_bytes));
    if (is_malformed(fault))
        return refuse(400, fmt::format("the body of the request is no HTTP: {}", fault.message()));
    if (fault) return close();
    const uint64_t have = parser_->get().body().size();
    body_share_.set(have);
    if (!has_room_for(0)) return;
    if (!parser_->is_done()) {
        if (have >= body_mark_ + kBodyStep) {
            body_mark_ = have;
            set_deadline(core_->limits.body);
        }
        return read_body();
    }
    request_.body = std::move(parser_->get().body());
    begin_exchange();
}

void Connection::begin_exchange() {
    state_ = State::working;
    arm();
    const uint64_t serial = serial_;
    const auto visit =
        std::make_shared<Visit>(shared_from_this(), serial, std::move(request_), std::move(body_share_));
    try {
        core_->handler.handle(visit);
    } catch (const std::exception& problem) {
        reply(serial, core_->handler.refuse(500, problem.what(), access_.path));
    }
    if (state_ == State::working && serial == serial_) watch();
}

// Notices a client that goes while its answer is computed.
void Connection::watch() {
    socket_.async_wait(tcp::socket::wait_read, then([serial = serial_](Connection& c, Fault fault) {
                           if (!fault && serial == c.serial_ && c.state_ == State::working) c.look();
                       }));
}

void Connection::look() {
    char byte = 0;
    const ssize_t got = ::recv(socket_.native_handle(), &byte, 1, MSG_PEEK | MSG_DONTWAIT);
    if (got < 0 && (errno == EAGAIN || errno == EINTR)) return watch();
    // The next request is here already, and hides whether the client stays: a write will tell.
    if (got > 0) return;
    if (got < 0) return cut();
    half_closed_ = true;
    keeps_ = keeps_ && buffer_.size() > 0;
    if (!gone_.empty()) probe();
}

// A client that is gone and one that only sends no more look alike until something is sent to them. An
// interim answer, which clients of HTTP/1.1 pass over, is answered by a reset where nobody listens.
void Connection::probe() {
    if (old_) return cut();
    if (begun_) return write(serial_, ping_);
    push("HTTP/1.1 100 Continue\r\n\r\n");
    socket_.async_wait(tcp::socket::wait_error, then([serial = serial_](Connection& c, Fault fault) {
                           if (!fault && serial == c.serial_ && c.state_ == State::working) c.cut();
                       }));
}

// Answers a header that is no request, and a body that does not end.
void Connection::refuse(int status, const std::string& message) {
    keeps_ = false;
    state_ = State::working;
    if (access_.id.empty()) access_.id = request_id({});
    std::string().swap(parser_->get().body());
    body_share_.set(0);
    reply(serial_, core_->handler.refuse(status, message, access_.path));
}

void Connection::cut() {
    if (!completed_) log_access();
    close();
}

void Connection::log_access() {
    if (!core_->log) return;
    access_.seconds = std::chrono::duration<double>(std::chrono::steady_clock::now() - since_).count();
    access_.peer = peer_;
    core_->log(access_);
}

std::string Connection::head_text(const HttpReply& reply, std::optional<uint64_t> length) const {
    std::string out = fmt::format("HTTP/1.1 {} {}\r\n", reply.status, status_text(reply.status));
    char date[64];
    const std::time_t now = std::time(nullptr);
    std::tm parts = {};
    ::gmtime_r(&now, &parts);
    out.append(date, std::strftime(date, sizeof(date), "Date: %a, %d %b %Y %H:%M:%S GMT\r\n", &parts));
    out += fmt::format("X-Request-Id: {}\r\n", access_.id);
    if (reply.status != 204) out += fmt::format("Content-Type: {}\r\n", reply.type);
    for (const HttpHeader& each : reply.headers) out += fmt::format("{}: {}\r\n", each.name, each.value);
    if (length && reply.status != 204) out += fmt::format("Content-Length: {}\r\n", *length);
    if (!length && !old_) out += "Transfer-Encoding: chunked\r\n";
    out += keeps_ ? "Connection: keep-alive\r\n\r\n" : "Connection: close\r\n\r\n";
    return out;
}

void Connection::reply(uint64_t serial, HttpReply whole) {
    if (serial != serial_ || state_ != State::working || begun_) return;
    begun_ = true;
    keeps_ = keeps_ && !core_->draining;
    access_.status = whole.status;
    push(head_text(whole, whole.body.size()));
    if (!bodiless_) push(whole.body);
    complete();
}

void Connection::stream(uint64_t serial, HttpReply head, std::string ping) {
    if (serial != serial_ || state_ != State::working || begun_) return;
    stream_ = std::move(head);
    ping_ = std::move(ping);
    arm();
}

void Connection::write(uint64_t serial, const std::string& text) {
    if (serial != serial_ || state_ != State::working || !stream_) return;
    if (!begun_) {
        begun_ = true;
        keeps_ = keeps_ && !old_ && !core_->draining;
        access_.status = stream_->status;
        push(head_text(*stream_, {}));
    }
    if (text.empty() || bodiless_) return;
    push(old_ ? text : fmt::format("{:x}\r\n{}\r\n", text.size(), text));
    if (queue_.size() + sending_.size() - sent_ > core_->limits.unread_bytes) cut();
}

void Connection::finish(uint64_t serial) {
    if (serial != serial_ || state_ != State::working || !stream_) return;
    write(serial, {});
    if (state_ != State::working) return;
    if (!old_ && !bodiless_) push("0\r\n\r\n");
    complete();
}

void Connection::when_gone(uint64_t serial, std::function<void()> work) {
    if (serial != serial_ || state_ != State::working) return work();
    gone_.push_back(std::move(work));
    if (half_closed_ && gone_.size() == 1) probe();
}

void Connection::count_tokens(uint64_t serial, uint64_t prompt, uint64_t generated) {
    if (serial != serial_) return;
    access_.prompt_tokens = prompt;
    access_.generated_tokens = generated;
}

void Connection::abandoned(uint64_t serial) {
    if (serial != serial_ || state_ != State::working) return;
    if (begun_) return cut();
    reply(serial, core_->handler.refuse(500, "the request was dropped without an answer", access_.path));
}

void Connection::complete() {
    completed_ = true;
    ++serial_;
    gone_.clear();
    log_access();
    if (!writing_) written();
}

void Connection::push(std::string_view text) {
    access_.bytes += text.size();
    queue_ += text;
    if (!writing_) send();
}

void Connection::send() {
    writing_ = true;
    if (sent_ == sending_.size()) {
        sending_ = std::exchange(queue_, {});
        sent_ = 0;
    }
    arm();
    socket_.async_write_some(asio::buffer(sending_.data() + sent_, sending_.size() - sent_),
                             then([](Connection& c, Fault fault, size_t bytes) { c.sent(fault, bytes); }));
}

void Connection::sent(Fault fault, size_t bytes) {
    if (fault) return cut();
    sent_ += bytes;
    if (sent_ < sending_.size() || !queue_.empty()) return send();
    sending_.clear();
    sent_ = 0;
    writing_ = false;
    if (state_ == State::body) return set_deadline(core_->limits.body);
    arm();
    if (completed_) written();
}

void Connection::written() {
    if (state_ != State::working) return;
    if (keeps_ && !core_->stopping) return read_request();
    linger();
}

// A close while the client still sends would take the answer from it.
void Connection::linger() {
    state_ = State::closing;
    Fault fault;
    socket_.shutdown(tcp::socket::shutdown_send, fault);
    if (fault || half_closed_) return close();
    set_deadline(std::chrono::seconds(3));
    drain();
}

// The buffer of requests may belong to a read that is still under way.
void Connection::drain() {
    dropped_.resize(16 << 10);
    socket_.async_read_some(asio::buffer(dropped_), then([](Connection& c, Fault fault, size_t) {
                                if (fault) return c.close();
                                c.drain();
                            }));
}

}  // namespace redline::serve
