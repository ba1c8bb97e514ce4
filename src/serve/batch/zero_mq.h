// The little of ZeroMQ's library that a publisher needs, opened at run time.
#pragma once

#include "base/result.h"

#include <memory>
#include <span>
#include <string>

namespace redline::serve {

// A socket of the kind PUB. After open() it is used by one thread.
class ZeroMq {
public:
    // Binds to the endpoint where it names no host ("*", "::", 0.0.0.0) or is a file, and connects elsewhere.
    static Result<std::unique_ptr<ZeroMq>> publisher(const std::string& endpoint);
    // Waits for a moment until subscribers have what was sent.
    ~ZeroMq();
    ZeroMq(const ZeroMq&) = delete;

    // Sends the parts of one message. Subscribers that are behind miss it.
    void send(std::span<const std::string> parts);

private:
    ZeroMq() = default;
    void* context_ = nullptr;
    void* socket_ = nullptr;
};

}  // namespace redline::serve
