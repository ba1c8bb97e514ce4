// A client of HTTP for tests: it sends what a test says, byte for byte, and reads answers whole or as they
// come.
#pragma once

#include <chrono>
#include <cstdlib>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include <arpa/inet.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <poll.h>
#include <sys/socket.h>
#include <unistd.h>

namespace redline::test {

struct HttpGot {
    int status = 0;                              // 0: the connection ended before an answer
    std::map<std::string, std::string> headers;  // names in small letters
    std::string body;                            // of chunks, joined
    bool whole = false;                          // it ended as it said
};

class HttpConnection {
public:
    explicit HttpConnection(uint16_t port, int receive_buffer = 0) {
        socket_ = ::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
        if (receive_buffer > 0)
            ::setsockopt(socket_, SOL_SOCKET, SO_RCVBUF, &receive_buffer, sizeof(receive_buffer));
        sockaddr_in address = {};
        address.sin_family = AF_INET;
        address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
        address.sin_port = htons(port);
        if (::connect(socket_, reinterpret_cast<sockaddr*>(&address), sizeof(address)) != 0) close();
        const int now = 1;
        ::setsockopt(socket_, IPPROTO_TCP, TCP_NODELAY, &now, sizeof(now));
    }
    ~HttpConnection() { close(); }
    HttpConnection(HttpConnection&& other) noexcept
        : socket_(std::exchange(other.socket_, -1)), held_(std::move(other.held_)) {}
    HttpConnection& operator=(HttpConnection&&) = delete;

    void close() {
        if (socket_ >= 0) ::close(std::exchange(socket_, -1));
    }
    void half_close() { ::shutdown(socket_, SHUT_WR); }
    bool open() const { return socket_ >= 0; }

    // False when the other side does not take all of it.
    bool send(std::string_view text) {
        while (!text.empty()) {
            const ssize_t put = ::send(socket_, text.data(), text.size(), MSG_NOSIGNAL);
            if (put <= 0) return false;
            text.remove_prefix(size_t(put));
        }
        return true;
    }

    // Waits for more, up to a time; false at the end or when nothing came.
    bool receive(int wait_ms = 20000) {
        pollfd ready{socket_, POLLIN, 0};
        if (::poll(&ready, 1, wait_ms) <= 0) return false;
        char piece[16384];
        const ssize_t got = ::recv(socket_, piece, sizeof(piece), 0);
        if (got > 0) held_.append(piece, size_t(got));
        return got > 0;
    }
    // True when the other side has ended the connection within a time.
    bool ends(int wait_ms) {
        const auto limit = std::chrono::steady_clock::now() + std::chrono::milliseconds(wait_ms);
        while (std::chrono::steady_clock::now() < limit) {
            pollfd ready{socket_, POLLIN, 0};
            char piece[16384];
            if (::poll(&ready, 1, 50) > 0 && ::recv(socket_, piece, sizeof(piece), 0) <= 0) return true;
        }
        return false;
    }

    // One answer; `head`: no body follows.
    HttpGot read(bool head = false) {
        HttpGot got;
        size_t end = 0;
        while ((end = held_.find("\r\n\r\n")) == held_.npos)
            if (!receive()) return got;
        read_head(held_.substr(0, end + 2), got);
        held_.erase(0, end + 4);
        if (head || got.status == 204) {
            got.whole = true;
        } else if (got.headers.count("transfer-encoding")) {
            while (read_chunk(got)) {
            }
        } else if (got.headers.count("content-length")) {
            const size_t length = size_t(std::atoll(got.headers["content-length"].c_str()));
            while (held_.size() < length && receive()) {
            }
            got.whole = held_.size() >= length;
            got.body = held_.substr(0, length);
            held_.erase(0, length);
        } else {
            while (receive()) {
            }
            got.body = std::exchange(held_, {});
            got.whole = true;
        }
        return got;
    }
    // Whatever has come so far.
    const std::string& held() const { return held_; }

private:
    static void read_head(const std::string& text, HttpGot& got) {
        got.status = std::atoi(text.substr(std::min<size_t>(9, text.size())).c_str());
        for (size_t at = text.find("\r\n") + 2; at < text.size();) {
            const size_t end = text.find("\r\n", at), colon = text.find(": ", at);
            if (colon < end) {
                std::string name = text.substr(at, colon - at);
                for (char& c : name) c = char(std::tolower(c));
                got.headers[name] = text.substr(colon + 2, end - colon - 2);
            }
            at = end + 2;
        }
    }
    bool read_chunk(HttpGot& got) {
        size_t line = 0;
        while ((line = held_.find("\r\n")) == held_.npos)
            if (!receive()) return false;
        const size_t length = size_t(std::strtoull(held_.c_str(), nullptr, 16));
        while (held_.size() < line + 2 + length + 2)
            if (!receive()) return false;
        got.body += held_.substr(line + 2, length);
        held_.erase(0, line + 2 + length + 2);
        got.whole = length == 0;
        return length > 0;
    }

    int socket_ = -1;
    std::string held_;
};

using HttpLines = std::vector<std::string>;  // "Name: value"

inline std::string http_text(const std::string& method, const std::string& path, const std::string& body = {},
                             const HttpLines& headers = {}) {
    std::string text = method + " " + path + " HTTP/1.1\r\n";
    bool named = false;
    for (const std::string& header : headers) {
        named = named || header.starts_with("Host:");
        text += header + "\r\n";
    }
    if (!named) text += "Host: 127.0.0.1\r\n";
    if (method == "POST") text += "Content-Length: " + std::to_string(body.size()) + "\r\n";
    return text + "\r\n" + body;
}

inline HttpGot http_get(uint16_t port, const std::string& path, const HttpLines& headers = {}) {
    HttpConnection connection(port);
    connection.send(http_text("GET", path, {}, headers));
    return connection.read();
}

inline HttpGot http_post(uint16_t port, const std::string& path, const std::string& body,
                         const HttpLines& headers = {}) {
    HttpConnection connection(port);
    connection.send(http_text("POST", path, body, headers));
    return connection.read();
}

}  // namespace redline::test
