#include "serve/http/server.h"

#include "serve/http/connection.h"

namespace redline::serve {

Status HttpCore::listen(const HttpOptions& options) {
    host = options.host;
    Fault fault;
    tcp::resolver resolver(io);
    const auto found = resolver.resolve(options.host, std::to_string(options.port),
                                        tcp::resolver::passive | tcp::resolver::numeric_service, fault);
    if (fault || found.empty())
        return error(
            "--host {} is no address of this machine: {}; 127.0.0.1 serves this machine alone, "
            "0.0.0.0 the network, too",
            options.host, fault.message());
    const tcp::endpoint endpoint = found.begin()->endpoint();
    acceptor.open(endpoint.protocol(), fault);
    if (!fault) acceptor.set_option(tcp::acceptor::reuse_address(true), fault);
    if (!fault) acceptor.set_option(tcp::acceptor::enable_connection_aborted(true), fault);
    if (!fault) acceptor.non_blocking(true, fault);
    if (!fault) acceptor.bind(endpoint, fault);
    if (!fault) acceptor.listen(asio::socket_base::max_listen_connections, fault);
    if (fault)
        return error("cannot listen on {}:{}: {}; {}", options.host, options.port, fault.message(),
                     fault == asio::error::address_in_use ? "--port N takes another port, --port 0 any"
                                                          : "--host and --port choose the address");
    port = acceptor.local_endpoint().port();
    accept();
    return {};
}

void HttpCore::accept() {
    acceptor.async_wait(tcp::acceptor::wait_read, [core = shared_from_this()](Fault) {
        if (core->acceptor.is_open()) core->accept_one();
    });
}

void HttpCore::accept_one() {
    // One more would leave none that could make room.
    if (all_.size() >= limits.connections && idle_.empty())
        return pause_accepting(
            fmt::format("all of the {} connections that may be open are busy; others wait until one ends",
                        limits.connections));
    Fault fault;
    tcp::socket socket = acceptor.accept(fault);
    const bool went = fault == asio::error::would_block || fault == asio::error::connection_aborted;
    if (fault && !went)
        return pause_accepting(
            fmt::format("cannot accept another connection: {}; idle ones make room for it. A larger limit of "
                        "open files lets more in: ulimit -n, or LimitNOFILE= of systemd",
                        fault.message()));
    if (!fault) std::make_shared<Connection>(shared_from_this(), std::move(socket))->start();
    accept();
}

// An idle connection makes room, and the next try waits a moment.
void HttpCore::pause_accepting(const std::string& reason) {
    if (note && !std::exchange(noted_, true)) note(reason);
    const bool room = !idle_.empty();
    if (room) idle_.front()->close();
    pause_.expires_after(std::chrono::milliseconds(room ? 1 : 50));
    pause_.async_wait([core = shared_from_this()](Fault fault) {
        if (!fault && core->acceptor.is_open()) core->accept();
    });
}

void HttpCore::add(Connection& connection) {
    all_.insert(&connection);
    open = all_.size();
    if (all_.size() > limits.connections && !idle_.empty()) idle_.front()->close();
}

void HttpCore::remove(Connection& connection) {
    busy(connection);
    all_.erase(&connection);
    open = all_.size();
    if (stopping && all_.empty()) io.stop();
}

void HttpCore::idle(Connection& connection) {
    if (!connection.idle_place) connection.idle_place = idle_.insert(idle_.end(), &connection);
}

void HttpCore::busy(Connection& connection) {
    if (connection.idle_place) idle_.erase(*connection.idle_place);
    connection.idle_place.reset();
}

void HttpCore::post(std::function<void()> work) {
    const std::lock_guard lock(gate_);
    if (!finished_) asio::post(io, std::move(work));
}

void HttpCore::run() {
    io.run();
    close_all();
}

void HttpCore::stop(std::chrono::milliseconds longest) {
    asio::post(io, [core = shared_from_this(), longest] {
        core->stopping = true;
        Fault unimportant;
        core->acceptor.close(unimportant);
        core->pause_.cancel();
        const std::set<Connection*> all = core->all_;
        for (Connection* connection : all) connection->end_soon();
        if (core->all_.empty()) return core->io.stop();
        core->last_.expires_after(longest);
        core->last_.async_wait([core](Fault fault) {
            if (!fault) core->io.stop();
        });
    });
}

void HttpCore::close_all() {
    Fault unimportant;
    acceptor.close(unimportant);
    pause_.cancel();
    last_.cancel();
    while (!all_.empty()) (*all_.begin())->close();
    // Functions that still wait hold connections, and these hold the core; no more may come.
    {
        const std::lock_guard lock(gate_);
        finished_ = true;
    }
    io.restart();
    io.poll();
}

Result<std::unique_ptr<HttpServer>> HttpServer::listen(const HttpOptions& options, HttpHandler& handler) {
    auto core = std::make_shared<HttpCore>(handler, options.limits);
    core->note = options.note;
    RL_TRY(core->listen(options));
    return std::unique_ptr<HttpServer>(new HttpServer(std::move(core)));
}

HttpServer::~HttpServer() {
    core_->close_all();
}

std::string HttpServer::address() const {
    const bool numbers = core_->host.find(':') != std::string::npos;
    return fmt::format("http://{}{}{}:{}", numbers ? "[" : "", core_->host, numbers ? "]" : "", port());
}

uint16_t HttpServer::port() const {
    return core_->port;
}

void HttpServer::set_log(std::function<void(const HttpAccess&)> log) {
    core_->post([core = core_, log = std::move(log)] { core->log = log; });
}

void HttpServer::run() {
    core_->run();
}

void HttpServer::drain() {
    core_->draining = true;
}

void HttpServer::stop(std::chrono::milliseconds longest) {
    core_->stop(longest);
}

uint64_t HttpServer::connections() const {
    return core_->open;
}

}  // namespace redline::serve
