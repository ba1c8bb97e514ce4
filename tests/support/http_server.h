// A server of HTTP on this machine for one test: answers as the test says, with every fault that it wants.
#pragma once

#include <algorithm>
#include <atomic>
#include <functional>
#include <map>
#include <mutex>
#include <string>
#include <thread>
#include <vector>

#include <arpa/inet.h>
#include <netinet/in.h>
#include <poll.h>
#include <sys/socket.h>
#include <unistd.h>

namespace redline::test {

struct HttpAsked {
    std::string path;                            // with what follows '?'
    std::map<std::string, std::string> headers;  // names in small letters
};

struct HttpAnswer {
    int status = 200;
    std::vector<std::string> headers = {};  // "Name: value"
    std::string body = {};
    size_t send = std::string::npos;  // bytes of the body that are sent before the connection ends
    bool stall = false;               // instead of ending it, nothing more comes
};

class HttpServer {
public:
    explicit HttpServer(std::function<HttpAnswer(const HttpAsked&)> answer) : answer_(std::move(answer)) {
        listener_ = ::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
        sockaddr_in address = {};
        address.sin_family = AF_INET;
        address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
        socklen_t size = sizeof(address);
        auto* plain = reinterpret_cast<sockaddr*>(&address);
        if (::bind(listener_, plain, size) != 0 || ::listen(listener_, 16) != 0) std::abort();
        ::getsockname(listener_, plain, &size);
        port_ = ntohs(address.sin_port);
        thread_ = std::thread([this] { serve(); });
    }
    ~HttpServer() {
        ending_ = true;
        thread_.join();
        for (std::thread& thread : connections_) thread.join();
        ::close(listener_);
    }

    std::string url(const std::string& path = "") const {
        return "http://127.0.0.1:" + std::to_string(port_) + path;
    }
    std::vector<HttpAsked> asked() {
        const std::lock_guard lock(mutex_);
        return asked_;
    }

private:
    void serve() {
        while (!ending_) {
            pollfd waiting{listener_, POLLIN, 0};
            if (::poll(&waiting, 1, 20) <= 0) continue;
            const int connection = ::accept4(listener_, nullptr, nullptr, SOCK_CLOEXEC);
            if (connection >= 0) connections_.emplace_back([this, connection] { answer(connection); });
        }
    }

    void answer(int connection) {
        std::string text;
        char piece[4096];
        while (text.find("\r\n\r\n") == std::string::npos) {
            const ssize_t got = ::recv(connection, piece, sizeof(piece), 0);
            if (got <= 0) break;
            text.append(piece, size_t(got));
        }
        const HttpAsked asked = parse(text);
        {
            const std::lock_guard lock(mutex_);
            asked_.push_back(asked);
        }
        const HttpAnswer given = answer_(asked);
        std::string out = "HTTP/1.1 " + std::to_string(given.status) + " Status\r\nConnection: close\r\n";
        const auto is_length = [](const std::string& h) { return h.starts_with("Content-Length"); };
        if (std::none_of(given.headers.begin(), given.headers.end(), is_length))
            out += "Content-Length: " + std::to_string(given.body.size()) + "\r\n";
        for (const std::string& header : given.headers) out += header + "\r\n";
        out += "\r\n" + given.body.substr(0, given.send);
        for (size_t at = 0; at < out.size();) {
            const ssize_t put = ::send(connection, out.data() + at, out.size() - at, MSG_NOSIGNAL);
            if (put <= 0) break;
            at += size_t(put);
        }
        while (given.stall && !ending_) std::this_thread::sleep_for(std::chrono::milliseconds(20));
        ::close(connection);
    }

    static HttpAsked parse(const std::string& text) {
        HttpAsked asked;
        size_t at = text.find("\r\n");
        const size_t from = text.find(' '), to = text.find(' ', from + 1);
        if (to != std::string::npos) asked.path = text.substr(from + 1, to - from - 1);
        while (at != std::string::npos && at + 2 < text.size()) {
            const size_t end = text.find("\r\n", at + 2), colon = text.find(':', at + 2);
            if (end == std::string::npos || colon > end) break;
            std::string name = text.substr(at + 2, colon - at - 2);
            std::transform(name.begin(), name.end(), name.begin(),
                           [](char c) { return char(std::tolower(c)); });
            asked.headers[name] = text.substr(colon + 2, end - colon - 2);
            at = end;
        }
        return asked;
    }

    std::function<HttpAnswer(const HttpAsked&)> answer_;
    int listener_;
    uint16_t port_ = 0;
    std::atomic<bool> ending_ = false;
    std::thread thread_;
    std::vector<std::thread> connections_;
    std::mutex mutex_;
    std::vector<HttpAsked> asked_;
};

}  // namespace redline::test
