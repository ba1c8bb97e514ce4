// Tells routers which beginnings of texts the caches hold, as vLLM does: messages of msgpack over ZeroMQ,
// whose library is opened at run time.
#pragma once

#include "base/result.h"
#include "serve/batch/held_blocks.h"

#include <condition_variable>
#include <deque>
#include <memory>
#include <string>
#include <thread>

namespace redline::serve {

// A batch of events in msgpack: [time, [event, ...], rank], where each event is a map with its "type", or a
// list that begins with it.
enum class EventForm : uint8_t { maps, lists };
std::string event_batch(std::span<const HeldBlocks::Change> changes, double seconds, uint32_t rank,
                        EventForm form);

class ZeroMq;

// A thread sends what is published; who subscribes late, or reads slowly, misses some, and sees that by the
// numbers of the messages.
class KvEvents {
public:
    struct Options {
        // "tcp://*:5557", "ipc://PATH": where subscribers connect to. A host's name: the subscriber there is
        // connected to.
        std::string endpoint;
        std::string topic = {};
        EventForm form = EventForm::maps;
    };
    // An error where the library is missing, or the endpoint cannot be had.
    static Result<std::unique_ptr<KvEvents>> open(const Options& options);
    // Sends what waits.
    ~KvEvents();
    KvEvents(const KvEvents&) = delete;

    // From any thread. `rank`: the number of the replica.
    void publish(std::vector<HeldBlocks::Change> changes, uint32_t rank);

private:
    struct Batch {
        uint64_t number;
        double seconds;
        uint32_t rank;
        std::vector<HeldBlocks::Change> changes;
    };
    KvEvents(std::unique_ptr<ZeroMq> socket, Options options);
    void run();

    const Options options_;
    const std::unique_ptr<ZeroMq> socket_;
    std::mutex mutex_;
    std::condition_variable changed_;
    std::deque<Batch> waiting_;
    uint64_t number_ = 0;  // of the next batch
    bool ending_ = false;
    std::thread sender_;
};

}  // namespace redline::serve
