// Messages between the processes of a job, its ranks: the way of all that goes from one to another.
#pragma once

#include "base/result.h"

#include <cstddef>
#include <functional>
#include <string>
#include <vector>

namespace redline {

using WireMessage = std::vector<std::byte>;

class Wire {
public:
    // Called by one thread: messages of a rank come in the order in which they were sent. It must not wait.
    using Listener = std::function<void(uint32_t from, WireMessage message)>;
    // A rank is lost, which is said once of each: its number and why.
    using LossListener = std::function<void(uint32_t rank, const std::string& why)>;

    virtual ~Wire() = default;
    virtual uint32_t rank() const = 0;
    virtual uint32_t ranks() const = 0;
    // The ranks on this machine, with this one.
    virtual uint32_t ranks_here() const = 0;
    // "rank 2 (host b)".
    virtual std::string name_of(uint32_t rank) const = 0;
    // Called once, before anything is sent. Messages that came before are kept for it.
    virtual void listen(Listener listener, LossListener losses) = 0;
    // From any thread. It does not wait for the message to arrive.
    virtual void send(uint32_t to, WireMessage message) = 0;
    // A thread waits for a message, and the wire looks for it more often; `more` or less by one.
    virtual void expect(bool more) = 0;
    // From now on ranks that do not answer are lost after a moment, since the launcher ends the job soon.
    virtual void hurry() = 0;
    // Ends all ranks with this exit status, at once.
    [[noreturn]] virtual void abort(int status) = 0;
    // Waits for the messages that were sent and for all ranks to finish.
    virtual void finish() = 0;
};

// Tells a wire that this thread waits, while it lives.
class Expecting {
public:
    explicit Expecting(Wire& wire) : wire_(wire) { wire_.expect(true); }
    ~Expecting() { wire_.expect(false); }
    Expecting(const Expecting&) = delete;
    Expecting& operator=(const Expecting&) = delete;

private:
    Wire& wire_;
};

}  // namespace redline
