// The time that a message takes to another rank.
#pragma once

#include "mpi/wire.h"

#include <condition_variable>
#include <mutex>
#include <span>

namespace redline {

class RemotePing {
public:
    explicit RemotePing(Wire& wire) : wire_(wire) {}

    // Seconds of one way, the median of some: half of the time that so many bytes take there and back. They
    // are sent a while apart, as the rows of tokens are. 0: no answer came.
    double seconds(uint32_t rank, uint64_t bytes);
    // Called by the wire's listener: true when the message was a ping, which is answered, or an answer.
    bool took(uint32_t from, std::span<const std::byte> message);

private:
    Wire& wire_;
    std::mutex measuring_;  // one at a time
    std::mutex mutex_;
    std::condition_variable came_;
    uint64_t sent_ = 0, answered_ = 0;  // numbers of pings
};

}  // namespace redline
